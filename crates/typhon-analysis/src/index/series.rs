//! The values of one gauge over time, with their extremes by level of detail and over the whole trace.

use super::group::{self, Entry, GROUP_ENTRIES, GroupHead, GroupReader};
use super::packed::{Packer, Unpacker, unzigzag, zigzag};
use super::pyramid::LevelHead;
use super::store::{Piece, Pieces, Store, StoreWriter, damaged};
use super::time::TimeBase;
use std::io;

/// Values in a bucket, taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Envelope {
    pub(crate) bucket: u64,
    pub(crate) samples: u64,
    pub(crate) min: i64,
    pub(crate) max: i64,
    pub(crate) last: i64,
}

impl Envelope {
    fn of(value: i64) -> Self {
        Self { bucket: 0, samples: 1, min: value, max: value, last: value }
    }

    /// Adds what lies later.
    fn add(&mut self, other: &Self) {
        if self.samples == 0 {
            (self.min, self.max) = (other.min, other.max);
        }
        self.samples = self.samples.saturating_add(other.samples);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.last = other.last;
    }
}

/// A gauge's values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Series {
    pub(crate) groups: Vec<GroupHead>,
    /// Of all values.
    pub(crate) min: i64,
    pub(crate) max: i64,
    /// Lowest level that is stored, about eight values a bucket.
    pub(crate) base: u8,
    /// By level, from the base on; none when there is a single group.
    pub(crate) levels: Vec<Vec<LevelHead>>,
}

impl Series {
    /// Number of values.
    pub(crate) fn count(&self) -> u64 {
        self.groups.last().map_or(0, |last| last.first_index + u64::from(last.count))
    }

    /// The envelopes of the buckets of `level` from `first` to before `end`, and the value before them.
    ///
    /// # Errors
    /// As [`Pieces::read`].
    pub(crate) fn envelopes(
        &self,
        level: u8,
        buckets: std::ops::Range<u64>,
        time: TimeBase,
        store: &Store,
    ) -> io::Result<(Option<i64>, Vec<Envelope>)> {
        let start_ns = buckets.start << level;
        let before = self.value_before(time.first_tick_at(start_ns), store)?;
        let mut found = Vec::new();
        let mut add = |bucket: u64, envelope: &Envelope| {
            if !buckets.contains(&bucket) {
                return;
            }
            match found.last_mut() {
                Some(Envelope { bucket: last, .. }) if *last == bucket => {}
                _ => found.push(Envelope { bucket, ..Envelope::default() }),
            }
            if let Some(last) = found.last_mut() {
                last.add(envelope);
            }
        };
        if self.levels.is_empty() || level < self.base {
            let end_ns = buckets.end.saturating_mul(1 << level);
            let mut reader = GroupReader::default();
            let (from, to) = (time.first_tick_at(start_ns), time.first_tick_at(end_ns));
            let first = self.groups.partition_point(|head| head.last_start < from);
            let after = self.groups.partition_point(|head| head.first_start < to);
            for head in &self.groups[first..after.max(first)] {
                for entry in reader.read(store, head)? {
                    add(time.ns(entry.start) >> level, &Envelope::of(entry.length));
                }
            }
        } else {
            let stored = level.min(self.base + (self.levels.len() - 1) as u8);
            let up = level - stored;
            let heads = &self.levels[usize::from(stored - self.base)];
            let first = heads.partition_point(|head| head.last_bucket >> up < buckets.start);
            let mut bytes = Vec::new();
            for head in heads[first..].iter().take_while(|head| head.first_bucket >> up < buckets.end) {
                for envelope in read_level(store, head, &mut bytes)? {
                    add(envelope.bucket >> up, &envelope);
                }
            }
        }
        Ok((before, found))
    }

    fn value_before(&self, ticks: i64, store: &Store) -> io::Result<Option<i64>> {
        let after = self.groups.partition_point(|head| head.first_start < ticks);
        let Some(head) = after.checked_sub(1).and_then(|at| self.groups.get(at)) else { return Ok(None) };
        let mut reader = GroupReader::default();
        let entries = reader.read(store, head)?;
        let at = entries.partition_point(|entry| entry.start < ticks);
        Ok(at.checked_sub(1).map(|at| entries[at].length))
    }
}

/// Collects a series in order of time.
#[derive(Debug, Default)]
pub(crate) struct SeriesWriter {
    series: Series,
    waiting: Vec<Entry>,
}

impl SeriesWriter {
    /// Adds a value, which is the entry's length.
    ///
    /// # Errors
    /// As [`StoreWriter::append`].
    pub(crate) fn push(&mut self, entry: Entry, time: TimeBase, store: &StoreWriter) -> io::Result<()> {
        let is_first = self.series.groups.is_empty() && self.waiting.is_empty();
        let Series { min, max, .. } = &mut self.series;
        *min = if is_first { entry.length } else { (*min).min(entry.length) };
        *max = if is_first { entry.length } else { (*max).max(entry.length) };
        self.waiting.push(entry);
        if self.waiting.len() == GROUP_ENTRIES { self.flush(time, store) } else { Ok(()) }
    }

    fn flush(&mut self, time: TimeBase, store: &StoreWriter) -> io::Result<()> {
        if !self.waiting.is_empty() {
            self.series.groups.push(group::write(&self.waiting, self.series.groups.last(), time, store)?);
            self.waiting.clear();
        }
        Ok(())
    }

    /// Packs the rest and builds the levels.
    ///
    /// # Errors
    /// As [`StoreWriter::append`].
    pub(crate) fn finish(mut self, time: TimeBase, store: &StoreWriter) -> io::Result<Series> {
        self.flush(time, store)?;
        if self.series.groups.len() > 1 {
            self.build_levels(time, store)?;
        }
        Ok(self.series)
    }

    fn build_levels(&mut self, time: TimeBase, store: &StoreWriter) -> io::Result<()> {
        let (Some(first), Some(last)) = (self.series.groups.first(), self.series.groups.last()) else {
            return Ok(());
        };
        let (from, to) = (time.ns(first.first_start), time.ns(last.last_start));
        let per_bucket = ((to - from) / self.series.count().max(1)).saturating_mul(8);
        let base = per_bucket.checked_ilog2().map_or(0, |level| level as u8);
        let mut levels = vec![LevelWriter::default()];
        while (to >> (usize::from(base) + levels.len() - 1))
            - (from >> (usize::from(base) + levels.len() - 1))
            > 1
        {
            levels.push(LevelWriter::default());
        }
        let mut reader = GroupReader::default();
        for head in &self.series.groups {
            for entry in reader.read(store, head)? {
                let start = time.ns(entry.start);
                for (writer, level) in levels.iter_mut().zip(base..) {
                    writer.add(start >> level, &Envelope::of(entry.length), store)?;
                }
            }
        }
        self.series.base = base;
        self.series.levels =
            levels.into_iter().map(|level| level.finish(store)).collect::<io::Result<_>>()?;
        Ok(())
    }
}

#[derive(Debug, Default)]
struct LevelWriter {
    closed: Vec<Envelope>,
    heads: Vec<LevelHead>,
}

impl LevelWriter {
    fn add(&mut self, bucket: u64, envelope: &Envelope, store: &StoreWriter) -> io::Result<()> {
        if self.closed.last().is_none_or(|last| last.bucket != bucket) {
            if self.closed.len() == GROUP_ENTRIES {
                self.flush(store)?;
            }
            self.closed.push(Envelope { bucket, ..Envelope::default() });
        }
        if let Some(last) = self.closed.last_mut() {
            last.add(envelope);
        }
        Ok(())
    }

    fn flush(&mut self, store: &StoreWriter) -> io::Result<()> {
        if let (Some(first), Some(last)) = (self.closed.first(), self.closed.last()) {
            let (first_bucket, last_bucket) = (first.bucket, last.bucket);
            let piece = write_level(&self.closed, store)?;
            self.heads.push(LevelHead { piece, count: self.closed.len() as u32, first_bucket, last_bucket });
            self.closed.clear();
        }
        Ok(())
    }

    fn finish(mut self, store: &StoreWriter) -> io::Result<Vec<LevelHead>> {
        self.flush(store)?;
        Ok(self.heads)
    }
}

fn write_level(envelopes: &[Envelope], store: &StoreWriter) -> io::Result<Piece> {
    let mut columns = Packer::new(envelopes, 8);
    let mut bucket = envelopes.first().map_or(0, |first| first.bucket);
    columns.put(|envelope| {
        let gap = envelope.bucket - bucket;
        bucket = envelope.bucket;
        gap
    });
    columns.put(|envelope| envelope.samples);
    columns.put(|envelope| zigzag(envelope.min));
    columns.put(|envelope| envelope.max.wrapping_sub(envelope.min) as u64);
    columns.put(|envelope| envelope.last.wrapping_sub(envelope.min) as u64);
    store.append(&columns.finish())
}

fn read_level(store: &Store, head: &LevelHead, bytes: &mut Vec<u8>) -> io::Result<Vec<Envelope>> {
    if head.count as usize > GROUP_ENTRIES {
        return Err(damaged());
    }
    store.read(head.piece, bytes)?;
    let mut envelopes = vec![Envelope::default(); head.count as usize];
    let (items, mut column) = (&mut envelopes, Vec::new());
    let mut columns = Unpacker::new(bytes, &mut column);
    let mut bucket = head.first_bucket;
    columns.take(items, |envelope, gap| {
        bucket = bucket.wrapping_add(gap);
        envelope.bucket = bucket;
    })?;
    columns.take(items, |envelope, samples| envelope.samples = samples)?;
    columns.take(items, |envelope, min| envelope.min = unzigzag(min))?;
    columns.take(items, |envelope, above| envelope.max = envelope.min.wrapping_add(above as i64))?;
    columns.take(items, |envelope, above| envelope.last = envelope.min.wrapping_add(above as i64))?;
    Ok(envelopes)
}
