//! Statistics and the longest spans of a selection, from the index alone (brief 11 §2.4).

use super::event::{RelatedSpan, own_length};
use super::filter::Filtered;
use super::{Cancel, Place, Session, SessionError};
use crate::facts::TimeWindow;
use crate::gc::GcSummary;
use crate::index::group::{Entry, GroupReader};
use crate::index::lane::Lane;
use crate::index::{Index, Name, gc};
use crate::stats::{
    CHECK_SPANS, GroupBy, Row, RowData, StatsLimits, bound_exact_durations, finish_rows, thread_label,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use typhon_trace::registry;
use typhon_trace::tables::Tables;

/// What `typhon trace stats` tells, of a window.
#[derive(Debug)]
pub struct SelectionStats {
    /// Rows, largest total first, then by count, then by name.
    pub rows: Vec<Row>,
    /// Collections in the window, if the trace has any.
    pub gc: Option<GcSummary>,
    /// The time that was looked at, clock ticks.
    pub observed: Range<i64>,
}

/// What makes a span one of the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpanOrder {
    /// Its duration.
    Total,
    /// Its self time.
    Own,
}

/// One of the longest spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopSpan {
    /// The span.
    pub span: RelatedSpan,
    /// Its self time, ns.
    pub self_ns: u64,
    /// Shown number of its tick.
    pub tick: i64,
}

impl Session {
    /// The window between two moments of the session's axis: what touches it counts.
    ///
    /// # Errors
    /// When the index is not ready.
    pub fn window(&self, range_ns: Range<u64>) -> Result<TimeWindow, SessionError> {
        let time = self.index()?.time;
        let touching = time.first_tick_at(range_ns.start)..time.first_tick_at(range_ns.end);
        Ok(TimeWindow { touching, starting: i64::MIN..i64::MAX })
    }

    /// The matches of a filter; `None` for 0, which stands for no filter.
    fn filter_of(&self, id: u16) -> Result<Option<Arc<Filtered>>, SessionError> {
        if id == 0 { Ok(None) } else { self.shared.filtered(id).map(Some) }
    }

    /// What `typhon trace stats` tells of a window, or of the whole trace. With a `filter` (0 for none) only its
    /// matches enter the rows.
    ///
    /// # Errors
    /// When the index is not ready or cannot be read, or cancelled.
    pub fn stats(
        &self,
        group_by: GroupBy,
        window: Option<&TimeWindow>,
        filter: u16,
        cancel: &Cancel,
    ) -> Result<SelectionStats, SessionError> {
        let index = self.index()?;
        let filtered = self.filter_of(filter)?;
        let passes = |entry: &Entry| filtered.as_ref().is_none_or(|filter| filter.matches(entry.reference));
        let mut table = Table {
            index: &index,
            tables: self.trace().tables(),
            group_by,
            rows: HashMap::new(),
            by_name: HashMap::new(),
            unchecked: 0,
        };
        for (number, lane) in index.threads() {
            walk_lane(&index, lane, window, cancel, |_, entry, self_ticks| {
                if passes(entry) {
                    table.span(number, entry, self_ticks);
                }
            })?;
            let mut reader = GroupReader::default();
            for head in &lane.instants.groups {
                cancel.check()?;
                let is_outside = window.is_some_and(|window| {
                    let extent = window.extent();
                    head.last_start < extent.start || head.first_start >= extent.end
                });
                if is_outside {
                    continue;
                }
                let entries = reader.read(&index.store, head)?.iter();
                entries
                    .filter(|entry| window.is_none_or(|window| window.includes_span(entry.start, 0)))
                    .filter(|entry| passes(entry))
                    .for_each(|entry| table.row(number, entry.name, |row| row.add_instants(1)));
            }
        }
        let mut observed = index.survey.first_ticks..index.survey.last_ticks;
        if let Some(extent) = window.map(TimeWindow::extent) {
            observed = observed.start.max(extent.start)..observed.end.min(extent.end);
        }
        Ok(SelectionStats {
            rows: finish_rows(table.rows.into_iter()),
            gc: gc::summary(&index.gc, index.time.clock(), window, observed.clone()),
            observed,
        })
    }

    /// The `count` longest spans that touch a window and pass a filter (0 for none), the longest first; of equal ones the
    /// earlier.
    ///
    /// # Errors
    /// As [`Session::stats`].
    pub fn top_spans(
        &self,
        order: SpanOrder,
        window: Option<&TimeWindow>,
        filter: u16,
        count: usize,
        cancel: &Cancel,
    ) -> Result<Vec<TopSpan>, SessionError> {
        let index = self.index()?;
        let filtered = self.filter_of(filter)?;
        // The smallest of the longest is on top.
        let mut longest: BinaryHeap<Reverse<Candidate>> = BinaryHeap::new();
        for (number, lane) in index.threads() {
            walk_lane(&index, lane, window, cancel, |(row, at), entry, self_ticks| {
                if filtered.as_ref().is_some_and(|filter| !filter.matches(entry.reference)) {
                    return;
                }
                let value = match order {
                    SpanOrder::Total => own_length(entry),
                    SpanOrder::Own => self_ticks,
                };
                let earlier = Reverse((entry.start, entry.reference));
                let key = Candidate { value, earlier, self_ticks, lane: number, row, at };
                if longest.len() < count {
                    longest.push(Reverse(key));
                } else if longest.peek().is_some_and(|least| least.0 < key) {
                    longest.pop();
                    longest.push(Reverse(key));
                }
            })?;
        }
        let mut reader = GroupReader::default();
        let mut spans = Vec::new();
        for Reverse(Candidate { self_ticks, lane, row, at, .. }) in longest.into_sorted_vec() {
            let place = Place { lane, row: Some(row), index: at };
            let entry = index.row(lane, Some(row))?.entry(at, &index.store, &mut reader)?;
            let span = entry.and_then(|entry| Some((index.related(place, &entry)?, entry.start)));
            spans.extend(span.map(|(span, start)| TopSpan {
                span,
                self_ns: index.time.ns_of_duration(self_ticks),
                tick: index.survey.ticks.tick_at(start),
            }));
        }
        Ok(spans)
    }
}

/// A span that may be one of the longest; larger ones come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    value: i64,
    earlier: Reverse<(i64, u64)>,
    self_ticks: i64,
    lane: u32,
    row: u16,
    at: u64,
}

/// Rows by their text while they are filled.
struct Table<'i> {
    index: &'i Index,
    tables: &'i Tables,
    group_by: GroupBy,
    rows: HashMap<String, RowData>,
    /// The text of a name or, by thread, of a lane; `None` for what does not enter a row.
    by_name: HashMap<u32, Option<String>>,
    /// Spans since the rows' memory was last looked at.
    unchecked: usize,
}

impl Table<'_> {
    fn span(&mut self, lane: u32, entry: &Entry, self_ticks: i64) {
        let clock = self.index.time.clock();
        let duration_ns = clock.to_ns(own_length(entry)) as u64;
        let self_ns = clock.to_ns(self_ticks).max(0) as u64;
        self.row(lane, entry.name, |row| row.add_span(duration_ns, self_ns));
        self.unchecked += 1;
        if self.unchecked > CHECK_SPANS {
            self.unchecked = 0;
            bound_exact_durations(self.rows.values_mut(), StatsLimits::default().exact_durations);
        }
    }

    fn row(&mut self, lane: u32, name: u16, add: impl FnOnce(&mut RowData)) {
        let key = if self.group_by == GroupBy::Thread { lane } else { name.into() };
        let (index, tables, group_by) = (self.index, self.tables, self.group_by);
        let text = self.by_name.entry(key).or_insert_with(|| match group_by {
            GroupBy::Thread => match index.lanes[lane as usize].kind {
                crate::index::LaneKind::Thread { thread } => Some(thread_label(&index.survey, thread)),
                _ => None,
            },
            _ => match index.names.get(name) {
                Some(name) => text_of(name, group_by, tables),
                None => Some("(other names)".to_owned()),
            },
        });
        let Some(text) = text else { return };
        match self.rows.get_mut(text.as_str()) {
            Some(row) => add(row),
            None => add(self.rows.entry(text.clone()).or_default()),
        }
    }
}

fn text_of(name: &Name, group_by: GroupBy, tables: &Tables) -> Option<String> {
    let info = registry::kind(name.kind);
    let of_kind = || info.map_or_else(|| format!("kind {}", name.kind), |info| info.name.to_owned());
    match group_by {
        GroupBy::Kind => Some(of_kind()),
        GroupBy::Family => Some(info.map_or_else(of_kind, |info| info.family.to_owned())),
        GroupBy::System => name.system.map(|index| match tables.system_name(index) {
            Some(name) => name.to_owned(),
            None => format!("system {index}"),
        }),
        GroupBy::Name | GroupBy::Thread => Some(name.text.clone()),
    }
}

/// Goes over the spans of a lane that touch a window, with their self times in ticks.
fn walk_lane(
    index: &Index,
    lane: &Lane,
    window: Option<&TimeWindow>,
    cancel: &Cancel,
    mut visit: impl FnMut((u16, u64), &Entry, i64),
) -> Result<(), SessionError> {
    let mut reader = GroupReader::default();
    for (row, number) in lane.rows.iter().zip(0u16..) {
        let nests = usize::from(number) + 1 < lane.nested_rows;
        let mut children = nests.then(|| Cursor::new(index, &lane.rows[usize::from(number) + 1]));
        for head in &row.groups {
            cancel.check()?;
            let is_outside = window.is_some_and(|window| {
                let extent = window.extent();
                head.reach < extent.start || head.first_start >= extent.end
            });
            if is_outside {
                continue;
            }
            for (entry, at) in reader.read(&index.store, head)?.iter().zip(head.first_index..) {
                if window.is_some_and(|window| !window.includes_span(entry.start, own_length(entry))) {
                    continue;
                }
                let inside = match &mut children {
                    Some(children) => children.ticks_inside(entry)?,
                    None => 0,
                };
                visit((number, at), entry, own_length(entry).saturating_sub(inside));
            }
        }
    }
    Ok(())
}

/// The spans of the row below, in step with those of a row.
struct Cursor<'i> {
    index: &'i Index,
    row: &'i crate::index::row::Row,
    reader: GroupReader,
    held: Vec<Entry>,
    next_group: usize,
    at: usize,
}

impl<'i> Cursor<'i> {
    fn new(index: &'i Index, row: &'i crate::index::row::Row) -> Self {
        Self { index, row, reader: GroupReader::default(), held: Vec::new(), next_group: 0, at: 0 }
    }

    fn peek(&mut self) -> Result<Option<Entry>, SessionError> {
        while self.at == self.held.len() {
            let Some(head) = self.row.groups.get(self.next_group) else { return Ok(None) };
            self.held.clear();
            self.held.extend_from_slice(self.reader.read(&self.index.store, head)?);
            (self.next_group, self.at) = (self.next_group + 1, 0);
        }
        Ok(Some(self.held[self.at]))
    }

    /// Time of the spans that lie inside `parent`. Parents come in order of time.
    fn ticks_inside(&mut self, parent: &Entry) -> Result<i64, SessionError> {
        self.skip_before(parent.start);
        let mut ticks = 0i64;
        while let Some(child) = self.peek()? {
            if child.start < parent.start {
                self.at += 1;
                continue;
            }
            if child.start >= parent.end() {
                break;
            }
            ticks = ticks.saturating_add(own_length(&child));
            self.at += 1;
        }
        Ok(ticks)
    }

    /// Leaves out groups that end before a moment.
    fn skip_before(&mut self, start: i64) {
        let rest = &self.row.groups[self.next_group..];
        let skipped = rest.partition_point(|head| head.last_start < start);
        if skipped > 0 {
            self.next_group += skipped;
            (self.held, self.at) = (Vec::new(), 0);
        }
    }
}
