//! Levels of detail of one row (brief 11 §3.2).
//!
//! The base level is the one at which a bucket holds about eight spans. From there up, every occupied bucket of every
//! level has an aggregate over the spans that are shorter than the bucket and begin in it; the longer ones are kept
//! once more in lists by the power of two of their duration. Below the base level a tile holds few enough spans to
//! look at them all. Rows of a single group need none of this.
//!
//! ```text
//! level b+2   |        aggregates        |        aggregates        |   + spans of ≥ 2^(b+2) ns, from the lists
//! level b+1   | aggregates | aggregates  | aggregates | aggregates  |   + spans of ≥ 2^(b+1) ns
//! level b     | agg | agg  | agg  | agg  | agg  | agg | agg  | agg  |   + spans of ≥ 2^b ns
//! below       the spans themselves, or the heads of groups that lie in one bucket
//! ```

use super::group::{self, Entry, GROUP_ENTRIES, GroupHead, GroupReader};
use super::packed::{Packer, Unpacker};
use super::store::{Piece, Pieces, Store, StoreWriter, damaged};
use super::time::TimeBase;
use std::io;

/// Spans that begin in a bucket, taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Aggregate {
    /// Start of the bucket in units of its width.
    pub(crate) bucket: u64,
    pub(crate) count: u64,
    /// Sum of durations.
    pub(crate) busy_ns: u64,
    /// The longest one, the first of several; its duration is known while levels are built only.
    pub(crate) longest_ns: u64,
    pub(crate) name: u16,
}

impl Aggregate {
    /// Adds what lies later in the bucket.
    #[inline]
    pub(crate) fn add(&mut self, other: &Self) {
        if self.count == 0 || other.longest_ns > self.longest_ns {
            (self.longest_ns, self.name) = (other.longest_ns, other.name);
        }
        self.count = self.count.saturating_add(other.count);
        self.busy_ns = self.busy_ns.saturating_add(other.busy_ns);
    }
}

/// Where a run of aggregates is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LevelHead {
    pub(crate) piece: Piece,
    pub(crate) count: u32,
    pub(crate) first_bucket: u64,
    pub(crate) last_bucket: u64,
}

/// Spans of 2^class ns and more, but less than twice that.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Class {
    pub(crate) class: u8,
    /// Their references are places in the row.
    pub(crate) groups: Vec<GroupHead>,
}

/// The levels of a row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Pyramid {
    pub(crate) base: u8,
    /// By level, from the base on.
    pub(crate) levels: Vec<Vec<LevelHead>>,
    /// Ascending.
    pub(crate) classes: Vec<Class>,
}

/// The power of two of a duration; `None` for 0.
#[inline]
pub(crate) fn class_of(duration_ns: u64) -> Option<u8> {
    duration_ns.checked_ilog2().map(|class| class as u8)
}

/// ceil(log2(8 × extent ÷ spans)).
fn base_level(extent_ns: u64, spans: u64) -> u8 {
    let bucket = (u128::from(extent_ns) * 8).div_ceil(u128::from(spans.max(1)));
    (u128::BITS - bucket.saturating_sub(1).leading_zeros()).min(63) as u8
}

impl Pyramid {
    /// The highest level that is stored.
    pub(crate) fn top(&self) -> u8 {
        self.base + self.levels.len().saturating_sub(1) as u8
    }

    /// Builds the levels of a row from its groups. In a shared row spans may overlap, so none is drawn by itself.
    /// `is_indexed`: the references of the row are places already.
    pub(crate) fn build(
        groups: &[GroupHead],
        is_shared: bool,
        is_indexed: bool,
        time: TimeBase,
        store: &StoreWriter,
    ) -> io::Result<Self> {
        let (Some(first), Some(last)) = (groups.first(), groups.last()) else { return Err(damaged()) };
        let spans = last.first_index + u64::from(last.count);
        let (from, to) = (time.ns(first.first_start), time.ns(last.reach));
        let base = base_level(to - from, spans);
        let mut builder = Builder::new(base, from, time.ns(last.last_start), time, store);
        let mut reader = GroupReader::default();
        for head in groups {
            for (entry, index) in reader.read(store, head)?.iter().zip(head.first_index..) {
                let reference = if is_indexed { entry.reference } else { index };
                builder.add(&Entry { reference, ..*entry }, is_shared)?;
            }
        }
        builder.finish()
    }
}

struct Builder<'s> {
    base: u8,
    open: Vec<Aggregate>,
    closed: Vec<Vec<Aggregate>>,
    heads: Vec<Vec<LevelHead>>,
    classes: Vec<(Vec<Entry>, Vec<GroupHead>)>,
    time: TimeBase,
    store: &'s StoreWriter,
}

impl<'s> Builder<'s> {
    fn new(base: u8, from_ns: u64, last_start_ns: u64, time: TimeBase, store: &'s StoreWriter) -> Self {
        let mut top = base;
        while top < 63 && (last_start_ns >> top) - (from_ns >> top) > 0 {
            top += 1;
        }
        let levels = usize::from(top - base) + 1;
        Self {
            base,
            open: vec![Aggregate::default(); levels],
            closed: vec![Vec::new(); levels],
            heads: vec![Vec::new(); levels],
            classes: vec![Default::default(); 64],
            time,
            store,
        }
    }

    fn add(&mut self, entry: &Entry, is_shared: bool) -> io::Result<()> {
        let (start, end) = entry.extent_ns(self.time);
        let duration = end - start;
        self.close_before(start)?;
        let class = if is_shared { None } else { class_of(duration).filter(|class| *class >= self.base) };
        let mut level = 0;
        if let Some(class) = class {
            level = usize::from(class - self.base) + 1;
            let (waiting, heads) = &mut self.classes[usize::from(class)];
            waiting.push(*entry);
            if waiting.len() == GROUP_ENTRIES {
                flush_class(waiting, heads, self.time, self.store)?;
            }
        }
        if let Some(open) = self.open.get_mut(level) {
            open.bucket = start >> (usize::from(self.base) + level);
            open.add(&Aggregate {
                count: 1,
                busy_ns: duration,
                longest_ns: duration,
                name: entry.name,
                bucket: 0,
            });
        }
        Ok(())
    }

    /// Closes the buckets that end at or before `start`, the lower levels first.
    #[inline]
    fn close_before(&mut self, start: u64) -> io::Result<()> {
        for level in 0..self.open.len() {
            let bucket = start >> (usize::from(self.base) + level);
            if self.open[level].count == 0 {
                continue;
            }
            if self.open[level].bucket == bucket {
                break;
            }
            self.close(level)?;
        }
        Ok(())
    }

    fn close(&mut self, level: usize) -> io::Result<()> {
        let done = std::mem::take(&mut self.open[level]);
        if let Some(above) = self.open.get_mut(level + 1) {
            above.bucket = done.bucket / 2;
            above.add(&done);
        }
        self.closed[level].push(done);
        if self.closed[level].len() == GROUP_ENTRIES {
            self.flush_level(level)?;
        }
        Ok(())
    }

    fn flush_level(&mut self, level: usize) -> io::Result<()> {
        let closed = &mut self.closed[level];
        if let (Some(first), Some(last)) = (closed.first(), closed.last()) {
            let (first_bucket, last_bucket) = (first.bucket, last.bucket);
            let piece = write_level(closed, self.store)?;
            let count = closed.len() as u32;
            self.heads[level].push(LevelHead { piece, count, first_bucket, last_bucket });
            closed.clear();
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<Pyramid> {
        for level in 0..self.open.len() {
            if self.open[level].count > 0 {
                self.close(level)?;
            }
            self.flush_level(level)?;
        }
        let mut classes = Vec::new();
        for ((mut waiting, mut groups), class) in self.classes.into_iter().zip(0..) {
            flush_class(&mut waiting, &mut groups, self.time, self.store)?;
            if !groups.is_empty() {
                classes.push(Class { class, groups });
            }
        }
        Ok(Pyramid { base: self.base, levels: self.heads, classes })
    }
}

fn flush_class(
    waiting: &mut Vec<Entry>,
    heads: &mut Vec<GroupHead>,
    time: TimeBase,
    store: &StoreWriter,
) -> io::Result<()> {
    if !waiting.is_empty() {
        heads.push(group::write(waiting, heads.last(), time, store)?);
        waiting.clear();
    }
    Ok(())
}

fn write_level(aggregates: &[Aggregate], store: &StoreWriter) -> io::Result<Piece> {
    let mut columns = Packer::new(aggregates, 8);
    let mut bucket = aggregates.first().map_or(0, |first| first.bucket);
    columns.put(|aggregate| {
        let gap = aggregate.bucket - bucket;
        bucket = aggregate.bucket;
        gap
    });
    columns.put(|aggregate| aggregate.count);
    columns.put(|aggregate| aggregate.busy_ns);
    columns.put(|aggregate| aggregate.name.into());
    store.append(&columns.finish())
}

/// Reads aggregates, keeping its buffers.
#[derive(Debug, Default)]
pub(crate) struct LevelReader {
    bytes: Vec<u8>,
    column: Vec<u64>,
    aggregates: Vec<Aggregate>,
}

impl LevelReader {
    /// A run of aggregates.
    ///
    /// # Errors
    /// As [`Pieces::read`].
    pub(crate) fn read(&mut self, store: &Store, head: &LevelHead) -> io::Result<&[Aggregate]> {
        if head.count as usize > GROUP_ENTRIES {
            return Err(damaged());
        }
        store.read(head.piece, &mut self.bytes)?;
        self.aggregates.clear();
        self.aggregates.resize(head.count as usize, Aggregate::default());
        let (aggregates, mut columns) = (&mut self.aggregates, Unpacker::new(&self.bytes, &mut self.column));
        let mut bucket = head.first_bucket;
        columns.take(aggregates, |aggregate, gap| {
            bucket = bucket.wrapping_add(gap);
            aggregate.bucket = bucket;
        })?;
        columns.take(aggregates, |aggregate, count| aggregate.count = count)?;
        columns.take(aggregates, |aggregate, busy_ns| aggregate.busy_ns = busy_ns)?;
        columns.take(aggregates, |aggregate, name| aggregate.name = name as u16)?;
        Ok(&self.aggregates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_level_holds_eight_spans_a_bucket() {
        assert_eq!(base_level(0, 10), 0);
        assert_eq!(base_level(1 << 20, 1 << 20), 3);
        assert_eq!(base_level((1 << 20) + 1, 1 << 20), 4);
        assert_eq!(base_level(u64::MAX, 1), 63);
        assert_eq!(base_level(5, 1_000_000), 0);
    }
}
