//! Look-ups of single events, for the inspector (brief 11 B-22, B-23).

use super::{Cancel, Session, SessionError, Shared};
use crate::facts::system_index;
use crate::index::group::{Entry, GroupReader};
use crate::index::item::SPAN_NO_END;
use crate::index::lane::Lane;
use crate::index::row::Row;
use crate::index::{EventId, Index, LaneKind};
use crate::units::TimeUnit;
use std::ops::Range;
use typhon_trace::decode::{self, Field, Value};
use typhon_trace::event::{Evaluator, Gauge};
use typhon_trace::reader::BlockBuffer;
use typhon_trace::record::Record;
use typhon_trace::registry;

/// Where an event is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// Lane.
    pub lane: u32,
    /// Row; `None` for instants.
    pub row: Option<u16>,
    /// Place in the row, or among the instants of the lane.
    pub index: u64,
}

/// Value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldValue {
    /// Unsigned number.
    Unsigned(u64),
    /// Signed number.
    Signed(i64),
    /// f32.
    F32(f32),
    /// f64.
    F64(f64),
    /// true or false.
    Bool(bool),
    /// Text. Comes from the trace and may hold anything.
    Text(String),
    /// Gauges of a snapshot.
    Gauges(Vec<Gauge>),
    /// Conditions of a query.
    Evaluators(Vec<Evaluator>),
    /// Indexes or thresholds.
    Numbers(Vec<i64>),
}

/// A field of an event.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldView {
    /// Registry name.
    pub name: &'static str,
    /// Unit or meaning as the registry has it; empty when plain.
    pub unit: &'static str,
    /// Value; `None` when the record does not have the field, which is not the same as 0.
    pub value: Option<FieldValue>,
    /// Name of the value, if its enumeration has one.
    pub value_name: Option<String>,
    /// The value in nanoseconds, if it is a time.
    pub ns: Option<f64>,
}

/// Everything about one event.
#[derive(Debug, Clone, PartialEq)]
pub struct EventDetail {
    /// The event.
    pub id: EventId,
    /// Where it is drawn in the lane of its thread; `None` only when the index has no such entry.
    pub place: Option<Place>,
    /// Kind id.
    pub kind: u8,
    /// What its bar says.
    pub name: String,
    /// Slot.
    pub slot: u8,
    /// Name of the thread.
    pub thread: Option<String>,
    /// System it is about.
    pub system: Option<u16>,
    /// Shown number of its tick; 0 before the first.
    pub tick: i64,
    /// Start on the session's axis, ns.
    pub start_ns: u64,
    /// Start relative to the first record of the file, ns, as the command line prints it.
    pub ts_ns: i64,
    /// Start as stored, clock ticks.
    pub start_ticks: i64,
    /// Duration, ns; spans only.
    pub duration_ns: Option<i64>,
    /// Duration minus that of its direct children, ns; spans only.
    pub self_ns: Option<u64>,
    /// Spans around it; spans that nest only.
    pub depth: Option<u16>,
    /// Span id; spans only.
    pub span_id: Option<u64>,
    /// Parent's span id as stored; `None` at top level.
    pub parent_span_id: Option<u64>,
    /// W3C trace id in textual order.
    pub trace_id: Option<[u8; 16]>,
    /// Source-location id.
    pub site: Option<u16>,
    /// The span has no end of its own.
    pub has_no_end: bool,
    /// Every field of the kind, absent ones included.
    pub fields: Vec<FieldView>,
    /// The record as stored.
    pub bytes: Vec<u8>,
}

/// A span near another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelatedSpan {
    /// The event.
    pub id: EventId,
    /// Where it is drawn.
    pub place: Place,
    /// Name.
    pub name: u16,
    /// Start, ns on the session's axis.
    pub start_ns: u64,
    /// Duration, ns.
    pub duration_ns: u64,
}

/// How a span compares with all spans of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Siblings {
    /// Spans of the name in the whole trace, this one included.
    pub count: u64,
    /// Those that are shorter.
    pub shorter: u64,
    /// Those that last just as long, this one included.
    pub equal: u64,
}

impl Siblings {
    /// Share of the spans that are no longer than this one, in percent.
    pub fn percentile(&self) -> f64 {
        (self.shorter + self.equal) as f64 * 100.0 / self.count.max(1) as f64
    }
}

impl Session {
    /// Everything about an event.
    ///
    /// # Errors
    /// When there is no such event, the index is not ready, or the file cannot be read any more.
    pub fn event(&self, id: EventId) -> Result<EventDetail, SessionError> {
        let index = self.index()?;
        self.shared.with_record(&index, id, |record| self.shared.detail(&index, id, record))?
    }

    /// The event at a place, as tiles name it.
    ///
    /// # Errors
    /// When there is no such place, or the index is not ready.
    pub fn event_at(&self, place: Place) -> Result<EventId, SessionError> {
        let index = self.index()?;
        let row = index.row(place.lane, place.row)?;
        let entry = row.entry(place.index, &index.store, &mut GroupReader::default())?;
        entry
            .and_then(|entry| index.blocks.event(entry.reference))
            .ok_or_else(|| SessionError::unknown("such entry"))
    }

    /// The spans around a span, the innermost first, by time in its lane.
    ///
    /// # Errors
    /// As [`Session::event_at`].
    pub fn parents(&self, place: Place) -> Result<Vec<RelatedSpan>, SessionError> {
        let index = self.index()?;
        let (lane, row) = index.nested(place)?;
        let mut reader = GroupReader::default();
        let Some(span) = lane.rows[row].entry(place.index, &index.store, &mut reader)? else {
            return Err(SessionError::unknown("such entry"));
        };
        let mut parents = Vec::new();
        for row in (0..row).rev() {
            if let Some((at, entry)) = lane.rows[row].last_at(span.start, &index.store, &mut reader)?
                && entry.end() >= span.end()
            {
                let place = Place { row: Some(row as u16), index: at, ..place };
                parents.extend(index.related(place, &entry));
            }
        }
        Ok(parents)
    }

    /// Some of the spans directly inside a span, in order of time, and how many there are.
    ///
    /// # Errors
    /// As [`Session::event_at`].
    pub fn children(&self, place: Place, page: Range<u64>) -> Result<(u64, Vec<RelatedSpan>), SessionError> {
        let index = self.index()?;
        let (lane, row) = index.nested(place)?;
        let mut reader = GroupReader::default();
        let Some(span) = lane.rows[row].entry(place.index, &index.store, &mut reader)? else {
            return Err(SessionError::unknown("such entry"));
        };
        let Some(below) = lane.rows.get(row + 1).filter(|_| row + 1 < lane.nested_rows) else {
            return Ok((0, Vec::new()));
        };
        let all = index.children_of(&span, below, &mut reader)?;
        let first = all.start.saturating_add(page.start).min(all.end);
        let last = all.start.saturating_add(page.end).min(all.end);
        let mut children = Vec::new();
        for at in first..last {
            if let Some(entry) = below.entry(at, &index.store, &mut reader)? {
                let place = Place { row: Some(row as u16 + 1), index: at, ..place };
                children.extend(index.related(place, &entry));
            }
        }
        Ok((all.end - all.start, children))
    }

    /// How the span compares with all spans of its name. Looks at the whole index.
    ///
    /// # Errors
    /// As [`Session::event_at`], and when cancelled.
    pub fn siblings(&self, place: Place, cancel: &Cancel) -> Result<Siblings, SessionError> {
        let index = self.index()?;
        let mut reader = GroupReader::default();
        let row = index.row(place.lane, place.row)?;
        let Some(span) = row.entry(place.index, &index.store, &mut reader)? else {
            return Err(SessionError::unknown("such entry"));
        };
        let mut siblings = Siblings { count: 0, shorter: 0, equal: 0 };
        for row in index.thread_rows() {
            for head in &row.groups {
                cancel.check()?;
                for entry in reader.read(&index.store, head)?.iter().filter(|entry| entry.name == span.name) {
                    siblings.count += 1;
                    siblings.shorter += u64::from(entry.length < span.length);
                    siblings.equal += u64::from(entry.length == span.length);
                }
            }
        }
        Ok(siblings)
    }

    /// The entry of a row that covers a moment, or else begins nearest to it.
    ///
    /// # Errors
    /// When there is no such row, or the index is not ready.
    pub fn nearest(&self, lane: u32, row: Option<u16>, at_ns: u64) -> Result<Option<Place>, SessionError> {
        let index = self.index()?;
        let of = index.row(lane, row)?;
        let mut reader = GroupReader::default();
        let ticks = index.time.first_tick_at(at_ns);
        let before = of.last_at(ticks, &index.store, &mut reader)?;
        let next = of.first_from(ticks, &index.store, &mut reader)?;
        let after = of.entry(next, &index.store, &mut reader)?;
        let distance = |entry: &Entry| {
            if entry.start <= ticks && entry.end() > ticks { 0 } else { entry.start.abs_diff(ticks) }
        };
        let candidates = before.into_iter().chain(after.map(|entry| (next, entry)));
        let best = candidates.min_by_key(|(_, entry)| distance(entry));
        Ok(best.map(|(index, _)| Place { lane, row, index }))
    }
}

impl Index {
    /// A row of a lane, or its instants.
    pub(super) fn row(&self, lane: u32, row: Option<u16>) -> Result<&Row, SessionError> {
        let unknown = || SessionError::unknown(format!("lane {lane} with such a row"));
        let lane = self.lanes.get(lane as usize).ok_or_else(unknown)?;
        match row {
            None => Ok(&lane.instants),
            Some(row) => lane.rows.get(usize::from(row)).ok_or_else(unknown),
        }
    }

    /// A place in a row of spans.
    fn nested(&self, place: Place) -> Result<(&Lane, usize), SessionError> {
        self.row(place.lane, place.row)?;
        match place.row {
            Some(row) => Ok((&self.lanes[place.lane as usize], usize::from(row))),
            None => Err(SessionError::unknown("span at the place of an instant")),
        }
    }

    /// The rows that hold every span exactly once.
    pub(super) fn thread_rows(&self) -> impl Iterator<Item = &Row> {
        self.threads().flat_map(|(_, lane)| &lane.rows)
    }

    /// The lanes of threads, each with its number.
    pub(super) fn threads(&self) -> impl Iterator<Item = (u32, &Lane)> {
        (0..).zip(&self.lanes).filter(|(_, lane)| matches!(lane.kind, LaneKind::Thread { .. }))
    }

    pub(super) fn related(&self, place: Place, entry: &Entry) -> Option<RelatedSpan> {
        let id = self.blocks.event(entry.reference)?;
        let (start_ns, name) = (self.time.ns(entry.start), entry.name);
        Some(RelatedSpan {
            id,
            place,
            name,
            start_ns,
            duration_ns: self.time.ns_of_duration(own_length(entry)),
        })
    }

    /// Places in the row below of the spans inside a span that nests.
    fn children_of(
        &self,
        span: &Entry,
        below: &Row,
        reader: &mut GroupReader,
    ) -> Result<Range<u64>, SessionError> {
        let first = below.first_from(span.start, &self.store, reader)?;
        let end = below.first_from(span.end(), &self.store, reader)?.max(first);
        Ok(first..end)
    }

    /// Where an event is drawn in the lane of its thread.
    pub(super) fn locate(&self, ordinal: u64, record: &Record<'_>) -> Result<Option<Place>, SessionError> {
        let start = record.timestamp();
        let Some(thread) = self.survey.threads.index_at(record.slot(), start) else { return Ok(None) };
        let is_it = |lane: &Lane| matches!(lane.kind, LaneKind::Thread { thread: of } if of == thread);
        let Some(at) = self.lanes.iter().position(is_it) else { return Ok(None) };
        let lane = &self.lanes[at];
        let mut reader = GroupReader::default();
        let place = |row, index| Place { lane: at as u32, row, index };
        if record.span().is_none() {
            return Ok(self
                .find(&lane.instants, ordinal, start, &mut reader)?
                .map(|index| place(None, index)));
        }
        for (row, number) in lane.rows.iter().zip(0u16..) {
            if let Some(index) = self.find(row, ordinal, start, &mut reader)? {
                return Ok(Some(place(Some(number), index)));
            }
        }
        Ok(None)
    }

    fn find(
        &self,
        row: &Row,
        ordinal: u64,
        start: i64,
        reader: &mut GroupReader,
    ) -> Result<Option<u64>, SessionError> {
        let first = row.groups.partition_point(|head| head.last_start < start);
        for head in row.groups[first..].iter().take_while(|head| head.first_start <= start) {
            let entries = reader.read(&self.store, head)?;
            let found = entries.iter().position(|entry| entry.start == start && entry.reference == ordinal);
            if let Some(at) = found {
                return Ok(Some(head.first_index + at as u64));
            }
        }
        Ok(None)
    }

    /// Duration of a span minus that of the spans directly inside it, ticks; as in [`crate::nesting`].
    pub(super) fn self_ticks(&self, place: Place) -> Result<i64, SessionError> {
        let (lane, row) = self.nested(place)?;
        let mut reader = GroupReader::default();
        let Some(span) = lane.rows[row].entry(place.index, &self.store, &mut reader)? else { return Ok(0) };
        let mut own = own_length(&span);
        if row + 1 < lane.nested_rows {
            let below = &lane.rows[row + 1];
            let children = self.children_of(&span, below, &mut reader)?;
            for head in &below.groups {
                let end = head.first_index + u64::from(head.count);
                if end <= children.start || head.first_index >= children.end {
                    continue;
                }
                for (entry, index) in reader.read(&self.store, head)?.iter().zip(head.first_index..) {
                    if children.contains(&index) {
                        own = own.saturating_sub(own_length(entry));
                    }
                }
            }
        }
        Ok(own)
    }
}

/// What a span's own record says of its duration, ticks ≥ 0: one without an end is drawn longer than that.
pub(super) fn own_length(entry: &Entry) -> i64 {
    if entry.flags & SPAN_NO_END != 0 { 0 } else { entry.length }
}

impl Shared {
    /// Reads the record of an event from the file.
    pub(super) fn with_record<T>(
        &self,
        index: &Index,
        id: EventId,
        look: impl FnOnce(&Record<'_>) -> T,
    ) -> Result<T, SessionError> {
        let unknown = || SessionError::unknown(format!("event {}.{}", id.block, id.record));
        let entry = index.blocks.entry(id.block).ok_or_else(unknown)?;
        let mut buffer = BlockBuffer::new();
        self.trace.read_known_block(&index.span_names, &entry, &mut buffer)?;
        let markers = buffer.summary().map_or(0, |summary| summary.leading_markers());
        let at = id.record.checked_sub(markers).ok_or_else(unknown)?;
        let record = buffer.events().nth(at as usize).ok_or_else(unknown)?;
        Ok(look(&record))
    }

    fn detail(&self, index: &Index, id: EventId, record: &Record<'_>) -> Result<EventDetail, SessionError> {
        let context = self.context(index);
        let (start, span) = (record.timestamp(), record.span());
        let ordinal = index.blocks.ordinal(id);
        let place = ordinal.map_or(Ok(None), |ordinal| index.locate(ordinal, record))?;
        let row = place.and_then(|place| Some((place, place.row?)));
        let nests = |place: Place, row: u16| usize::from(row) < index.lanes[place.lane as usize].nested_rows;
        let is_tail = registry::kind(record.kind()).is_some_and(|kind| kind.correlates_span_id.is_some());
        let self_ns = match row {
            Some((place, _)) => Some(index.time.ns_of_duration(index.self_ticks(place)?)),
            None => None,
        };
        let name =
            context.name(record).map_or_else(|| format!("kind {}", record.kind()), |name| name.into_owned());
        let thread = index.survey.threads.at(record.slot(), start);
        Ok(EventDetail {
            id,
            place,
            kind: record.kind(),
            name,
            slot: record.slot(),
            thread: thread.map(|thread| thread.label().into_owned()),
            system: system_index(record),
            tick: index.survey.ticks.tick_at(start),
            start_ns: index.time.ns(start),
            ts_ns: context.relative_ns(start),
            start_ticks: start,
            duration_ns: span.map(|span| context.clock.to_ns(span.duration)),
            self_ns,
            depth: row.filter(|(place, row)| nests(*place, *row) && !is_tail).map(|(_, row)| row),
            span_id: span.map(|span| span.span_id),
            parent_span_id: span.map(|span| span.parent_span_id).filter(|parent| *parent != 0),
            trace_id: span.and_then(|span| span.trace_id).copied(),
            site: span.and_then(|span| span.site),
            has_no_end: span.is_some_and(|span| span.duration < 0),
            fields: fields(record, &context),
            bytes: record.bytes().to_vec(),
        })
    }
}

/// Every field of the record's kind, in wire order.
fn fields(record: &Record<'_>, context: &crate::facts::TraceContext<'_>) -> Vec<FieldView> {
    let Some(kind) = registry::kind(record.kind()) else { return Vec::new() };
    let mut present: Vec<Field<'_>> = decode::fields(record).collect();
    let mut views: Vec<FieldView> = decode::field_names(kind)
        .map(|name| match present.iter().position(|field| field.name == name) {
            Some(at) => view(record.kind(), &present.remove(at), context),
            None => {
                let unit = kind.field(name).map_or("", |info| info.unit);
                FieldView { name, unit, value: None, value_name: None, ns: None }
            }
        })
        .collect();
    // Alternative layouts may have fields of their own.
    views.extend(present.iter().map(|field| view(record.kind(), field, context)));
    views
}

fn view(kind: u8, field: &Field<'_>, context: &crate::facts::TraceContext<'_>) -> FieldView {
    let value = match field.value {
        Value::Unsigned(value) => FieldValue::Unsigned(value),
        Value::Signed(value) => FieldValue::Signed(value),
        Value::F32(value) => FieldValue::F32(value),
        Value::F64(value) => FieldValue::F64(value),
        Value::Bool(value) => FieldValue::Bool(value),
        Value::Text(text) => FieldValue::Text(text.to_str_lossy().into_owned()),
        Value::Gauges(gauges) => FieldValue::Gauges(gauges.collect()),
        Value::Evaluators(list) => FieldValue::Evaluators(list.iter().collect()),
        Value::FieldIndexes(list) => FieldValue::Numbers(list.iter().map(i64::from).collect()),
        Value::Thresholds(list) => FieldValue::Numbers(list.iter().collect()),
    };
    let number = match field.value {
        Value::F32(value) => Some(f64::from(value)),
        Value::F64(value) => Some(value),
        _ => field.value.as_i128().map(|value| value as f64),
    };
    let unit = field.info.and_then(TimeUnit::of);
    let ns =
        number.zip(unit).map(|(number, unit)| number * unit.ns_per_step(context.clock, context.own_dialect));
    let unit = field.info.map_or("", |info| info.unit);
    FieldView {
        name: field.name,
        unit,
        value: Some(value),
        value_name: context.value_name(kind, field).map(str::to_owned),
        ns,
    }
}
