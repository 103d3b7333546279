//! Lanes: rows and instants of a thread, a system, a strip or the collector, or the values of a gauge.

use super::group::Entry;
use super::item::{Item, SPAN_NO_END, SPAN_TAIL};
use super::row::{Row, RowWriter};
use super::rows::{NESTED_ROWS_MAX, OVERFLOW_ROWS_MAX, Place, RowAssigner};
use super::series::{Series, SeriesWriter};
use super::sort::Merge;
use super::store::StoreWriter;
use super::time::TimeBase;
use std::io;

/// A strip of operations that gathers spans from all threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strip {
    /// Phases of the tick.
    Phases,
    /// Page cache, without its disk operations.
    PageCache,
    /// Reads, writes and flushes.
    DiskIo,
    /// Transactions.
    Transactions,
    /// Write-ahead log.
    Wal,
    /// Checkpoints.
    Checkpoint,
}

impl Strip {
    /// Every strip, in the order of their lanes.
    pub const ALL: [Self; 6] =
        [Self::Phases, Self::PageCache, Self::DiskIo, Self::Transactions, Self::Wal, Self::Checkpoint];
}

/// What a lane is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LaneKind {
    /// The collector of a managed runtime: suspensions as spans, starts and ends of collections as instants.
    Gc,
    /// A gauge of the snapshots at the end of ticks, or, without those, of the sizes that collections report.
    Gauge {
        /// Gauge id, see [`typhon_trace::registry::gauge`].
        gauge: u16,
    },
    /// A thread; index into [`crate::survey::Threads::all`].
    Thread {
        /// Place among the threads of the trace.
        thread: usize,
    },
    /// A system, by its index in the systems table.
    System {
        /// Index in the table.
        index: u16,
    },
    /// A strip of operations.
    Strip(Strip),
}

/// A lane of the index.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) kind: LaneKind,
    pub(crate) rows: Vec<Row>,
    /// Rows that nest; those behind them are overflow rows.
    pub(crate) nested_rows: usize,
    pub(crate) instants: Row,
    pub(crate) series: Option<Series>,
}

impl Lane {
    pub(crate) fn new(kind: LaneKind) -> Self {
        Self { kind, rows: Vec::new(), nested_rows: 0, instants: Row::default(), series: None }
    }
}

/// Nested and overflow rows of a lane whose levels are built while their entries come, which takes up to 4 MiB for each.
const ROWS_WITH_LEVELS: usize = 8;

/// Spans that wait in the writers of a lane, over all rows.
const WAITING_MAX: usize = 1 << 19;

/// Gives the spans of a lane, which come in the order of nesting, their rows.
pub(crate) struct LaneWriter<'s> {
    assigner: RowAssigner,
    nested: Vec<RowWriter>,
    overflow: Vec<RowWriter>,
    waiting: usize,
    /// A span without an end lasts until the next record of the lane (brief 11 B-13), so it has to wait for that.
    open_ended: Option<Item>,
    time: TimeBase,
    store: &'s StoreWriter,
}

impl<'s> LaneWriter<'s> {
    pub(crate) fn new(nests: bool, time: TimeBase, store: &'s StoreWriter) -> Self {
        let assigner = RowAssigner::new(nests);
        Self { assigner, nested: Vec::new(), overflow: Vec::new(), waiting: 0, open_ended: None, time, store }
    }

    pub(crate) fn push(&mut self, item: Item) -> io::Result<()> {
        if let Some(open) = self.open_ended.take() {
            self.place(Item { length: item.start.saturating_sub(open.start), ..open })?;
        }
        if item.flags & SPAN_NO_END != 0 {
            self.open_ended = Some(item);
            return Ok(());
        }
        self.place(item)
    }

    fn place(&mut self, item: Item) -> io::Result<()> {
        let place = self.assigner.place(item.start, item.end(), item.flags & SPAN_TAIL != 0);
        let (writers, row, last) = match place {
            Place::Nested(row) => (&mut self.nested, row, NESTED_ROWS_MAX - 1),
            Place::Overflow(row) => (&mut self.overflow, row, OVERFLOW_ROWS_MAX - 1),
        };
        while writers.len() <= row {
            let mut writer = RowWriter::default();
            writer.row.is_overflow = matches!(place, Place::Overflow(_));
            writer.row.is_shared = writers.len() == last;
            writer.builds_levels_late = writers.len() >= ROWS_WITH_LEVELS;
            writers.push(writer);
        }
        writers[row].push(entry(&item), self.time, self.store)?;
        self.waiting += 1;
        if self.waiting >= WAITING_MAX {
            self.waiting = 0;
            for writer in self.nested.iter_mut().chain(&mut self.overflow) {
                writer.flush(self.time, self.store)?;
            }
        }
        Ok(())
    }

    /// The rows, nested ones first, and how many of them nest.
    pub(crate) fn finish(mut self) -> io::Result<(Vec<Row>, usize)> {
        if let Some(open) = self.open_ended.take() {
            self.place(open)?;
        }
        let nested = self.nested.len();
        let (time, store) = (self.time, self.store);
        let writers = self.nested.into_iter().chain(self.overflow);
        let rows = writers.map(|writer| writer.finish(time, store)).collect::<io::Result<_>>()?;
        Ok((rows, nested))
    }
}

/// Goes over the items that start before `until`.
///
/// # Errors
/// When items cannot be read, and what `take` returns.
pub(crate) fn for_each_part(
    items: &mut Merge<'_>,
    until: Option<i64>,
    mut take: impl FnMut(&[Item]) -> io::Result<()>,
) -> io::Result<()> {
    loop {
        let part = items.next_part(until)?;
        if part.is_empty() {
            return Ok(());
        }
        take(part)?;
    }
}

/// The instants of a lane that are before `until`.
pub(crate) fn write_instants(
    items: &mut Merge<'_>,
    until: Option<i64>,
    time: TimeBase,
    store: &StoreWriter,
) -> io::Result<Row> {
    let mut writer = RowWriter::default();
    for_each_part(items, until, |part| {
        part.iter().try_for_each(|item| writer.push(entry(item), time, store))
    })?;
    writer.finish(time, store)
}

/// The values of a gauge.
pub(crate) fn write_series(items: &mut Merge<'_>, time: TimeBase, store: &StoreWriter) -> io::Result<Series> {
    let mut writer = SeriesWriter::default();
    for_each_part(items, None, |part| {
        part.iter().try_for_each(|item| writer.push(entry(item), time, store))
    })?;
    writer.finish(time, store)
}

fn entry(item: &Item) -> Entry {
    let Item { start, length, ordinal, name, flags, .. } = *item;
    Entry { start, length, reference: ordinal, name, flags }
}

impl Lane {
    /// First start and last end, ticks.
    pub(crate) fn extent(&self) -> Option<(i64, i64)> {
        let series = self.series.as_ref().map(|series| &series.groups);
        let groups = self.rows.iter().chain([&self.instants]).map(|row| &row.groups);
        let ends = groups.filter_map(|groups| Some((groups.first()?.first_start, groups.last()?.reach)));
        // The length of a value is no duration.
        let values = series.and_then(|groups| Some((groups.first()?.first_start, groups.last()?.last_start)));
        ends.chain(values).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }
}
