//! The entries of one row in one tile (brief 11 §3.2).

use super::entries::{
    FLAG_AGGREGATE, FLAG_FAULT, FLAG_FROM_LEFT, FLAG_NO_END, FLAG_OVERFLOW, FLAG_SITE, FLAG_TAIL,
    FLAG_TO_RIGHT, SpanEntry,
};
use super::{MAX_ROW_ENTRIES, TILE_BUCKETS, tile_range_ns};
use crate::index::Names;
use crate::index::group::{Entry, GroupHead, GroupReader};
use crate::index::item::{SPAN_HAS_SITE, SPAN_NO_END, SPAN_TAIL};
use crate::index::names::is_fault;
use crate::index::pyramid::{Aggregate, LevelReader, Pyramid};
use crate::index::row::Row;
use crate::index::store::Store;
use crate::index::time::TimeBase;
use std::io;
use std::ops::Range;

/// Makes the entries of rows, keeping its buffers.
pub(crate) struct RowPainter<'i> {
    store: &'i Store,
    names: &'i Names,
    time: TimeBase,
    level: u8,
    /// By row of the lane that is being painted: neighbouring tiles often need the same group.
    groups: Vec<GroupReader>,
    levels: LevelReader,
}

/// What is being put together for one row.
struct Canvas {
    /// Reader of the row's groups.
    reader: usize,
    range_ns: Range<u64>,
    first_bucket: u64,
    level: u8,
    exact: Vec<SpanEntry>,
    aggregates: Vec<(Aggregate, Option<u64>)>,
}

impl<'i> RowPainter<'i> {
    pub(crate) fn new(store: &'i Store, names: &'i Names, time: TimeBase, level: u8) -> Self {
        Self { store, names, time, level, groups: Vec::new(), levels: LevelReader::default() }
    }

    /// Other rows come.
    pub(crate) fn next_lane(&mut self) {
        self.groups.clear();
    }

    /// Appends the entries of a row in order of x0.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub(crate) fn paint(
        &mut self,
        row: &Row,
        row_offset: u8,
        tile: u64,
        is_instants: bool,
        out: &mut Vec<SpanEntry>,
    ) -> io::Result<()> {
        let range_ns = tile_range_ns(self.level, tile);
        let reader = usize::from(row_offset);
        if self.groups.len() <= reader {
            self.groups.resize_with(reader + 1, GroupReader::default);
        }
        let mut canvas = Canvas {
            reader,
            first_bucket: range_ns.start >> self.level,
            range_ns,
            level: self.level,
            exact: Vec::new(),
            aggregates: Vec::new(),
        };
        if !canvas.range_ns.is_empty() {
            match row.pyramid.as_deref().filter(|pyramid| self.level >= pyramid.base) {
                Some(pyramid) => self.paint_pyramid(pyramid, row, &mut canvas)?,
                None => self.paint_groups(row, &mut canvas)?,
            }
        }
        let overflow = if row.is_overflow { FLAG_OVERFLOW } else { 0 };
        self.emit(canvas, row_offset, overflow, is_instants, out);
        Ok(())
    }

    fn ticks(&self, range_ns: &Range<u64>) -> Range<i64> {
        self.time.first_tick_at(range_ns.start)..self.time.first_tick_at(range_ns.end)
    }

    /// Looks at every span, but takes groups as a whole that lie in one bucket.
    fn paint_groups(&mut self, row: &Row, canvas: &mut Canvas) -> io::Result<()> {
        let ticks = self.ticks(&canvas.range_ns);
        for head in Row::touching(&row.groups, ticks.start, ticks.end) {
            if let Some(whole) = self.whole_group(head, row.is_shared, &canvas.range_ns) {
                canvas.add(whole, None);
                continue;
            }
            let entries = self.groups[canvas.reader].read(self.store, head)?;
            let seen = in_view(entries, &ticks);
            let first = head.first_index + seen.start as u64;
            for (entry, index) in entries[seen].iter().zip(first..) {
                let index = if row.is_indexed { entry.reference } else { index };
                let (start, end) = entry.extent_ns(self.time);
                let is_long = !row.is_shared && end - start >= 1 << canvas.level;
                if is_long {
                    canvas.exact(entry, start, end, index, self.names);
                } else if canvas.range_ns.contains(&start) {
                    let duration = end - start;
                    let single = Aggregate {
                        bucket: start >> canvas.level,
                        count: 1,
                        busy_ns: duration,
                        longest_ns: duration,
                        name: entry.name,
                    };
                    canvas.add(single, (!row.is_shared).then_some(index | u64::from(entry.flags) << 56));
                }
            }
        }
        Ok(())
    }

    fn whole_group(&self, head: &GroupHead, is_shared: bool, range_ns: &Range<u64>) -> Option<Aggregate> {
        let (first, last) = (self.time.ns(head.first_start), self.time.ns(head.last_start));
        let is_whole = first >> self.level == last >> self.level
            && range_ns.contains(&first)
            && (is_shared || head.longest_ns < 1 << self.level);
        (is_whole && head.count > 1).then(|| Aggregate {
            bucket: first >> self.level,
            count: head.count.into(),
            busy_ns: head.busy_ns,
            longest_ns: head.longest_ns,
            name: head.longest_name,
        })
    }

    fn paint_pyramid(&mut self, pyramid: &Pyramid, row: &Row, canvas: &mut Canvas) -> io::Result<()> {
        let ticks = self.ticks(&canvas.range_ns);
        let stored = self.level.min(pyramid.top());
        let up = self.level - stored;
        let buckets = canvas.first_bucket..canvas.first_bucket + TILE_BUCKETS;
        let heads = pyramid.levels.get(usize::from(stored - pyramid.base)).map_or(&[][..], Vec::as_slice);
        let first = heads.partition_point(|head| head.last_bucket >> up < buckets.start);
        for head in heads[first..].iter().take_while(|head| head.first_bucket >> up < buckets.end) {
            for aggregate in self.levels.read(self.store, head)? {
                let bucket = aggregate.bucket >> up;
                if buckets.contains(&bucket) {
                    canvas.add(Aggregate { bucket, ..*aggregate }, None);
                }
            }
        }
        // Lists below the level are in the stored aggregates, except when the level is higher than any stored one.
        for class in pyramid.classes.iter().filter(|class| class.class >= stored) {
            for head in Row::touching(&class.groups, ticks.start, ticks.end) {
                let entries = self.groups[canvas.reader].read(self.store, head)?;
                for entry in &entries[in_view(entries, &ticks)] {
                    let (start, end) = entry.extent_ns(self.time);
                    if class.class >= self.level {
                        canvas.exact(entry, start, end, entry.reference, self.names);
                    } else if canvas.range_ns.contains(&start) {
                        let (bucket, duration) = (start >> self.level, end - start);
                        let (busy_ns, longest_ns, name) = (duration, duration, entry.name);
                        canvas.add_unordered(Aggregate { bucket, count: 1, busy_ns, longest_ns, name });
                    }
                }
            }
        }
        debug_assert!(!row.is_shared || pyramid.classes.is_empty());
        Ok(())
    }

    /// Merges what looks alike and puts exact entries and aggregates in order.
    fn emit(&self, mut canvas: Canvas, row: u8, overflow: u8, is_instants: bool, out: &mut Vec<SpanEntry>) {
        canvas.exact.sort_by_key(|entry| (entry.x0, entry.index));
        let width_ns = 1u64 << self.level;
        let mut merged: Vec<(SpanEntry, u64)> = Vec::new();
        for (aggregate, single) in &canvas.aggregates {
            let entry = self.short_entry(&canvas, aggregate, *single, is_instants);
            if let Some((last, busy_ns)) = merged.last_mut()
                && !is_instants
                && entry.flags == FLAG_AGGREGATE
                && looks_alike(last, &entry)
            {
                *busy_ns = busy_ns.saturating_add(aggregate.busy_ns);
                last.x1 = entry.x1;
                last.index = last.index.saturating_add(entry.index);
                last.cover = cover(*busy_ns, u64::from(last.x1 - last.x0) * width_ns);
                continue;
            }
            merged.push((entry, aggregate.busy_ns));
        }
        // Bars of a whole bucket and short spans between them can be one more than there is room for.
        while merged.len() + canvas.exact.len() > MAX_ROW_ENTRIES && merged.len() > 1 {
            let Some((last, _)) = merged.pop() else { break };
            if let Some((before, _)) = merged.last_mut() {
                before.index = before.count().saturating_add(last.count()).min(u32::MAX.into()) as u32;
                before.flags = FLAG_AGGREGATE;
                before.x1 = before.x1.max(last.x1);
            }
        }
        let start = out.len();
        out.extend(canvas.exact.into_iter().chain(merged.into_iter().map(|(entry, _)| entry)));
        out[start..].sort_by_key(|entry| entry.x0);
        for entry in &mut out[start..] {
            entry.row = row;
            entry.flags |= overflow;
        }
    }

    /// What is shorter than a bucket.
    fn short_entry(
        &self,
        canvas: &Canvas,
        aggregate: &Aggregate,
        single: Option<u64>,
        is_instants: bool,
    ) -> SpanEntry {
        let x0 = (aggregate.bucket - canvas.first_bucket) as u16;
        let mut entry = SpanEntry {
            x0,
            x1: if is_instants { x0 } else { x0 + 1 },
            row: 0,
            flags: FLAG_AGGREGATE,
            name: aggregate.name,
            index: aggregate.count.min(u32::MAX.into()) as u32,
            cover: cover(aggregate.busy_ns, 1 << self.level),
            group: group(self.names, aggregate.name),
        };
        if let Some(single) = single.filter(|_| aggregate.count == 1) {
            entry.flags = span_flags((single >> 56) as u8, aggregate.name, self.names);
            entry.index = single as u32;
        }
        entry
    }
}

/// The entries that begin in a range of ticks, and the one before them: in a row without overlaps no other reaches in.
fn in_view(entries: &[Entry], ticks: &Range<i64>) -> Range<usize> {
    let first = entries.partition_point(|entry| entry.start < ticks.start);
    let after = entries.partition_point(|entry| entry.start < ticks.end);
    first.saturating_sub(1)..after.max(first)
}

fn looks_alike(last: &SpanEntry, next: &SpanEntry) -> bool {
    last.flags == next.flags
        && last.name == next.name
        && last.x1 == next.x0
        && last.cover.abs_diff(next.cover) <= u16::MAX / 16
}

fn cover(busy_ns: u64, width_ns: u64) -> u16 {
    let share = u128::from(busy_ns) * u128::from(u16::MAX) / u128::from(width_ns.max(1));
    share.min(u16::MAX.into()) as u16
}

fn group(names: &Names, name: u16) -> u16 {
    names.get(name).map_or(0, |name| name.group)
}

fn span_flags(flags: u8, name: u16, names: &Names) -> u8 {
    let fault = names.get(name).is_some_and(|name| is_fault(name.kind));
    let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    bit(flags & SPAN_HAS_SITE != 0, FLAG_SITE)
        | bit(flags & SPAN_NO_END != 0, FLAG_NO_END)
        | bit(flags & SPAN_TAIL != 0, FLAG_TAIL)
        | bit(fault, FLAG_FAULT)
}

impl Canvas {
    fn exact(&mut self, entry: &Entry, start: u64, end: u64, index: u64, names: &Names) {
        let Range { start: from, end: to } = self.range_ns;
        if start >= to || end <= from {
            return;
        }
        let x0 = (start.max(from) - from) >> self.level;
        let x1 = (end.min(to) - from).div_ceil(1 << self.level).clamp(x0 + 1, TILE_BUCKETS);
        let busy_ns = end.min(to).saturating_sub(start.max(from));
        let sides = if start < from { FLAG_FROM_LEFT } else { 0 } | if end > to { FLAG_TO_RIGHT } else { 0 };
        self.exact.push(SpanEntry {
            x0: x0 as u16,
            x1: x1 as u16,
            row: 0,
            flags: span_flags(entry.flags, entry.name, names) | sides,
            name: entry.name,
            index: index.min(u32::MAX.into()) as u32,
            cover: cover(busy_ns, (x1 - x0) << self.level),
            group: group(names, entry.name),
        });
    }

    /// Adds what begins in the last bucket or in a later one; `single` is known for one span.
    fn add(&mut self, aggregate: Aggregate, single: Option<u64>) {
        match self.aggregates.last_mut() {
            Some((last, of_last)) if last.bucket == aggregate.bucket => {
                last.add(&aggregate);
                *of_last = None;
            }
            _ => self.aggregates.push((aggregate, single)),
        }
    }

    /// Adds what may begin in any bucket.
    fn add_unordered(&mut self, aggregate: Aggregate) {
        let at = self.aggregates.partition_point(|(of, _)| of.bucket < aggregate.bucket);
        match self.aggregates.get_mut(at) {
            Some((of, _)) if of.bucket == aggregate.bucket => of.add(&aggregate),
            _ => self.aggregates.insert(at, (aggregate, None)),
        }
    }
}
