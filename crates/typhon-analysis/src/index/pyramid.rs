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
}

/// The base level of a row of these groups.
fn base_of(groups: &[GroupHead], time: TimeBase) -> u8 {
    let (Some(first), Some(last)) = (groups.first(), groups.last()) else { return 0 };
    base_level(time.ns(last.reach) - time.ns(first.first_start), last.first_index + u64::from(last.count))
}

/// Builds the levels of a row while its entries come.
///
/// The base level is known at the end only. Until then it is guessed: from the entries so far, rather too low than too
/// high, since levels below the base can be left away, and the levels above come out the same.
#[derive(Debug)]
pub(crate) struct PyramidWriter {
    base: u8,
    /// By level, from the base on, up to the highest that there can be.
    open: Vec<Aggregate>,
    /// Until then no bucket ends.
    open_until_ns: u64,
    closed: Vec<Vec<Aggregate>>,
    heads: Vec<Vec<LevelHead>>,
    classes: Vec<(Vec<Entry>, Vec<GroupHead>)>,
    is_shared: bool,
    is_indexed: bool,
}

impl PyramidWriter {
    /// For a row that begins with these groups. In a shared row spans may overlap, so none is drawn by itself.
    /// `is_indexed`: the references of the row are places already.
    ///
    /// # Errors
    /// As [`Pieces::read`] and [`StoreWriter::append`].
    pub(crate) fn begin(
        groups: &[GroupHead],
        is_shared: bool,
        is_indexed: bool,
        time: TimeBase,
        store: &StoreWriter,
    ) -> io::Result<Self> {
        Self::from_base(Self::guess(groups, time), groups, is_shared, is_indexed, time, store)
    }

    /// For a row that consists of these groups.
    ///
    /// # Errors
    /// As [`Pieces::read`] and [`StoreWriter::append`].
    pub(crate) fn whole(
        groups: &[GroupHead],
        is_shared: bool,
        is_indexed: bool,
        time: TimeBase,
        store: &StoreWriter,
    ) -> io::Result<Self> {
        Self::from_base(base_of(groups, time), groups, is_shared, is_indexed, time, store)
    }

    /// The base level if the row goes on like this. Where the last entry ends says less than where it begins.
    fn guess(groups: &[GroupHead], time: TimeBase) -> u8 {
        let (Some(first), Some(last)) = (groups.first(), groups.last()) else { return 0 };
        let extent_ns = time.ns(last.last_start) - time.ns(first.first_start);
        base_level(extent_ns - extent_ns / 32, last.first_index + u64::from(last.count))
    }

    fn from_base(
        base: u8,
        groups: &[GroupHead],
        is_shared: bool,
        is_indexed: bool,
        time: TimeBase,
        store: &StoreWriter,
    ) -> io::Result<Self> {
        let levels = usize::from(64 - base);
        let mut writer = Self {
            base,
            open: vec![Aggregate::default(); levels],
            open_until_ns: 0,
            closed: vec![Vec::new(); levels],
            heads: vec![Vec::new(); levels],
            classes: vec![Default::default(); 64],
            is_shared,
            is_indexed,
        };
        let mut reader = GroupReader::default();
        for head in groups {
            writer.add_all(reader.read(store, head)?, head.first_index, time, store)?;
        }
        Ok(writer)
    }

    /// Adds the entries of the group that came last.
    ///
    /// # Errors
    /// As [`StoreWriter::append`].
    pub(crate) fn add(
        &mut self,
        entries: &[Entry],
        groups: &[GroupHead],
        time: TimeBase,
        store: &StoreWriter,
    ) -> io::Result<()> {
        let first_index = groups.last().map_or(0, |last| last.first_index);
        self.add_all(entries, first_index, time, store)?;
        self.raise(Self::guess(groups, time));
        Ok(())
    }

    fn add_all(
        &mut self,
        entries: &[Entry],
        first_index: u64,
        time: TimeBase,
        store: &StoreWriter,
    ) -> io::Result<()> {
        for (entry, index) in entries.iter().zip(first_index..) {
            let (start, end) = entry.extent_ns(time);
            let duration = end - start;
            if start >= self.open_until_ns {
                self.close_before(start, store)?;
            }
            let mut level = 0;
            if let Some(class) = class_of(duration).filter(|class| *class >= self.base && !self.is_shared) {
                level = usize::from(class - self.base) + 1;
                let (waiting, heads) = &mut self.classes[usize::from(class)];
                let reference = if self.is_indexed { entry.reference } else { index };
                waiting.push(Entry { reference, ..*entry });
                if waiting.len() == GROUP_ENTRIES {
                    flush_class(waiting, heads, time, store)?;
                }
            }
            if let Some(open) = self.open.get_mut(level) {
                if open.count == 0 {
                    let shift = usize::from(self.base) + level;
                    open.bucket = start >> shift;
                    self.open_until_ns = self.open_until_ns.min(end_of_bucket(open.bucket, shift));
                }
                let (longest_ns, name) = (duration, entry.name);
                open.add(&Aggregate { bucket: 0, count: 1, busy_ns: duration, longest_ns, name });
            }
        }
        Ok(())
    }

    /// Closes the buckets that end at or before `start`, the lower levels first.
    fn close_before(&mut self, start: u64, store: &StoreWriter) -> io::Result<()> {
        self.open_until_ns = u64::MAX;
        for level in 0..self.open.len() {
            let shift = usize::from(self.base) + level;
            let Aggregate { bucket, count, .. } = self.open[level];
            if count > 0 && bucket == start >> shift {
                self.open_until_ns = end_of_bucket(bucket, shift);
                break;
            }
            if count > 0 {
                self.close(level, store)?;
            }
        }
        Ok(())
    }

    fn close(&mut self, level: usize, store: &StoreWriter) -> io::Result<()> {
        let done = self.take_up(level);
        self.closed[level].push(done);
        if self.closed[level].len() == GROUP_ENTRIES { self.flush_level(level, store) } else { Ok(()) }
    }

    /// Takes an open bucket out, after it was added to that above.
    fn take_up(&mut self, level: usize) -> Aggregate {
        let done = std::mem::take(&mut self.open[level]);
        if let Some(above) = self.open.get_mut(level + 1) {
            above.bucket = done.bucket / 2;
            above.add(&done);
        }
        done
    }

    /// Leaves the levels below `base` away.
    fn raise(&mut self, base: u8) {
        while self.base < base {
            if self.open[0].count > 0 {
                self.take_up(0);
            }
            self.open.remove(0);
            self.closed.remove(0);
            self.heads.remove(0);
            self.classes[usize::from(self.base)] = Default::default();
            self.base += 1;
            self.open_until_ns = 0;
        }
    }

    fn flush_level(&mut self, level: usize, store: &StoreWriter) -> io::Result<()> {
        let closed = &mut self.closed[level];
        if let (Some(first), Some(last)) = (closed.first(), closed.last()) {
            let (first_bucket, last_bucket) = (first.bucket, last.bucket);
            let piece = write_level(closed, store)?;
            let count = closed.len() as u32;
            self.heads[level].push(LevelHead { piece, count, first_bucket, last_bucket });
            closed.clear();
        }
        Ok(())
    }

    /// The levels of the row, which consists of these groups.
    ///
    /// # Errors
    /// As [`Pieces::read`] and [`StoreWriter::append`].
    pub(crate) fn finish(
        mut self,
        groups: &[GroupHead],
        time: TimeBase,
        store: &StoreWriter,
    ) -> io::Result<Pyramid> {
        let (Some(first), Some(last)) = (groups.first(), groups.last()) else { return Err(damaged()) };
        let base = base_of(groups, time);
        if self.base > base {
            // The row has become denser, so levels are missing.
            self = Self::from_base(base, groups, self.is_shared, self.is_indexed, time, store)?;
        }
        self.raise(base);
        let (from_ns, to_ns) = (time.ns(first.first_start), time.ns(last.last_start));
        let mut levels = 1;
        while levels < self.open.len() && is_apart(from_ns, to_ns, usize::from(base) + levels - 1) {
            levels += 1;
        }
        for level in 0..levels {
            if self.open[level].count > 0 {
                self.close(level, store)?;
            }
            self.flush_level(level, store)?;
        }
        self.heads.truncate(levels);
        let mut classes = Vec::new();
        for ((mut waiting, mut groups), class) in self.classes.into_iter().zip(0..) {
            flush_class(&mut waiting, &mut groups, time, store)?;
            if !groups.is_empty() {
                classes.push(Class { class, groups });
            }
        }
        Ok(Pyramid { base, levels: self.heads, classes })
    }
}

/// Do the times lie in different buckets?
fn is_apart(from_ns: u64, to_ns: u64, level: usize) -> bool {
    from_ns >> level != to_ns >> level
}

/// The first moment after a bucket.
#[inline]
fn end_of_bucket(bucket: u64, level: usize) -> u64 {
    // That of the last one is after all times.
    u64::try_from((u128::from(bucket) + 1) << level).unwrap_or(u64::MAX)
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
    use crate::clock::Clock;
    use crate::index::row::{Row, RowWriter};
    use proptest::prelude::*;

    const TIME_PER_SECOND: i64 = 10_000_000;

    /// Spans of some parts, each with as many, with that much between their starts, and at most that long.
    fn parts() -> impl Strategy<Value = Vec<(usize, i64, i64)>> {
        let part = (1usize..6).prop_map(|groups| groups * GROUP_ENTRIES);
        let gap = prop_oneof![Just(0i64), 1i64..4, 1i64..2_000];
        prop::collection::vec((part, gap, prop_oneof![1i64..3, 1i64..5_000, Just(1 << 40)]), 1..6)
    }

    fn entries(parts: &[(usize, i64, i64)]) -> Vec<Entry> {
        let (mut start, mut chance) = (0, 1u64);
        let spans =
            parts.iter().flat_map(|(count, gap, longest)| std::iter::repeat_n((*gap, *longest), *count));
        let entry = |(gap, longest): (i64, i64)| {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let random = (chance >> 33) as i64;
            start += if gap > 0 { random % (2 * gap) } else { 0 };
            // Long ones are rare.
            let length =
                if random % 16 == 0 { (chance >> 20) as i64 % longest } else { random % longest.min(9) };
            Entry { start, length, reference: 7, name: (random % 5) as u16, flags: 1 }
        };
        spans.map(entry).collect()
    }

    type Contents = (u8, Vec<Vec<Aggregate>>, Vec<(u8, Vec<Entry>)>);

    /// The levels of a row as they are read back.
    fn contents(entries: &[Entry], is_shared: bool, builds_levels_late: bool) -> Contents {
        let (time, store) = (TimeBase::new(Clock::new(TIME_PER_SECOND), 0), StoreWriter::in_memory());
        let mut writer = RowWriter::default();
        (writer.row, writer.builds_levels_late) = (Row { is_shared, ..Row::default() }, builds_levels_late);
        entries.iter().for_each(|entry| writer.push(*entry, time, &store).expect("written"));
        let row = writer.finish(time, &store).expect("written");
        let (store, _) = store.finish().expect("kept");
        let Some(pyramid) = row.pyramid else { return (0, Vec::new(), Vec::new()) };
        let (mut levels, mut groups) = (LevelReader::default(), GroupReader::default());
        let level = |heads: &Vec<LevelHead>| {
            heads.iter().flat_map(|head| levels.read(&store, head).expect("read").to_vec()).collect()
        };
        let aggregates = pyramid.levels.iter().map(level).collect();
        let class = |class: &Class| {
            let spans =
                class.groups.iter().flat_map(|head| groups.read(&store, head).expect("read").to_vec());
            (class.class, spans.collect())
        };
        (pyramid.base, aggregates, pyramid.classes.iter().map(class).collect())
    }

    /// What a level is by definition, besides names.
    fn counts(entries: &[Entry], level: u8) -> Vec<(u64, u64, u64)> {
        let mut counts = std::collections::BTreeMap::new();
        for entry in entries {
            let (start, end) = entry.extent_ns(TimeBase::new(Clock::new(TIME_PER_SECOND), 0));
            if end - start < 1 << level {
                let (count, busy_ns) = counts.entry(start >> level).or_insert((0, 0));
                (*count, *busy_ns) = (*count + 1, *busy_ns + (end - start));
            }
        }
        counts.into_iter().map(|(bucket, (count, busy_ns))| (bucket, count, busy_ns)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn levels_are_the_same_whatever_was_guessed(parts in parts(), is_shared: bool) {
            let entries = entries(&parts);
            let (early, late) = (contents(&entries, is_shared, false), contents(&entries, is_shared, true));
            prop_assert_eq!(&early, &late);
            let (base, levels, _) = early;
            for (aggregates, level) in levels.iter().zip(base..).filter(|_| !is_shared) {
                let found: Vec<_> = aggregates.iter().map(|one| (one.bucket, one.count, one.busy_ns)).collect();
                prop_assert_eq!(found, counts(&entries, level));
            }
        }
    }

    /// A row that becomes denser has a lower base than was guessed, one that thins out a higher one.
    #[test]
    fn a_guess_that_turns_out_wrong_is_corrected() {
        for gaps in [[900, 3], [3, 900]] {
            let entries = entries(&gaps.map(|gap| (12 * GROUP_ENTRIES, gap, 5_000)));
            assert_eq!(contents(&entries, false, false), contents(&entries, false, true));
        }
    }

    #[test]
    fn the_base_level_holds_eight_spans_a_bucket() {
        assert_eq!(base_level(0, 10), 0);
        assert_eq!(base_level(1 << 20, 1 << 20), 3);
        assert_eq!(base_level((1 << 20) + 1, 1 << 20), 4);
        assert_eq!(base_level(u64::MAX, 1), 63);
        assert_eq!(base_level(5, 1_000_000), 0);
    }
}
