//! What is known of a record besides its own bytes: names, times in nanoseconds, the filter's view of it.

use crate::clock::Clock;
use crate::filter::{Facts, FieldFact, Number, SystemRef};
use crate::placing::Place;
use crate::units::TimeUnit;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use typhon_trace::TraceError;
use typhon_trace::decode::{self, Field, Value};
use typhon_trace::event::Text;
use typhon_trace::header::FileHeader;
use typhon_trace::reader::{ReadAt, ReadOptions, Sections, TraceFile};
use typhon_trace::record::Record;
use typhon_trace::registry::{self, id};
use typhon_trace::tables::Tables;
use typhon_trace::trailer::{FileTable, SourceLocation, SourceManifest, SpanNames};

/// Everything that turns the numbers of a trace into names and times. Borrowed from an opened trace.
#[derive(Debug, Clone, Copy)]
pub struct TraceContext<'a> {
    /// The metadata tables.
    pub tables: &'a Tables,
    /// The trace clock.
    pub clock: Clock,
    /// Timestamp of the first record of the file, ticks; relative times count from here.
    pub origin_ticks: i64,
    /// Written by this project (header dialect 1), which decides the unit of some fields.
    pub own_dialect: bool,
    /// Paths of source files; absent while a pipe is being read, and in files that were not closed.
    pub file_table: Option<&'a FileTable>,
    /// Source locations.
    pub source_manifest: Option<&'a SourceManifest>,
    /// Names of marks (kind 6); absent while a pipe is being read.
    pub mark_names: Option<&'a MarkNames>,
}

/// Names of a program's marks (kind 6) by their ids: the tables of names in the whole file (brief 01 B-29).
#[derive(Debug, Clone, Default)]
pub struct MarkNames(HashMap<i32, String>);

impl MarkNames {
    /// Looks for the names in the whole file, in a pass over its blocks that decompresses none.
    ///
    /// # Errors
    /// Those of [`TraceFile::span_names`].
    pub fn read<A: ReadAt>(trace: &TraceFile<A>) -> Result<Self, TraceError> {
        Ok(Self::new(trace.span_names(ReadOptions::default())?))
    }

    /// These names; of two with one id the last.
    pub fn new(names: SpanNames) -> Self {
        Self(names.entries.into_iter().map(|entry| (i32::from(entry.id), entry.name)).collect())
    }

    /// The name of an id.
    pub fn get(&self, id: i32) -> Option<&str> {
        self.0.get(&id).map(String::as_str)
    }
}

impl<'a> TraceContext<'a> {
    /// For records of a trace with this header, these tables and sections; relative times count from `origin_ticks`.
    pub fn new(header: &FileHeader, tables: &'a Tables, sections: &'a Sections, origin_ticks: i64) -> Self {
        Self {
            tables,
            clock: Clock::new(header.timestamp_frequency),
            origin_ticks,
            own_dialect: header.is_typhon_dialect(),
            file_table: sections.file_table.as_ref(),
            source_manifest: sections.source_manifest.as_ref(),
            mark_names: None,
        }
    }

    /// The same with the names of marks.
    #[must_use]
    pub fn with_mark_names(self, names: &'a MarkNames) -> Self {
        Self { mark_names: Some(names), ..self }
    }

    /// Nanoseconds since the first record of the file; negative for records from before it.
    #[inline]
    pub fn relative_ns(&self, timestamp_ticks: i64) -> i64 {
        self.clock.to_ns(timestamp_ticks.saturating_sub(self.origin_ticks))
    }

    /// The source location behind a site id, with the path of its file.
    pub fn site(&self, site: u16) -> Option<(&'a SourceLocation, Option<&'a str>)> {
        let location = self.source_manifest?.get(site)?;
        Some((location, self.file_table.and_then(|table| table.path(location.file_id))))
    }

    /// The system that a record is about, if its kind says so.
    #[inline]
    pub fn system(&self, record: &Record<'_>) -> Option<SystemRef<'a>> {
        let index = system_index(record)?;
        Some(SystemRef { index, name: self.tables.system_name(index) })
    }

    /// Name of the value of a field: of its enumeration, or that of a mark.
    pub fn value_name(&self, kind: u8, field: &Field<'_>) -> Option<&'a str> {
        match (kind, field.name) {
            (id::INSTANT, "nameId") => {
                let id = i32::try_from(field.value.as_i128()?).ok()?;
                self.mark_names?.get(id)
            }
            _ => field.value_name(),
        }
    }

    /// What a bar of this record says: the system of a chunk, the user's own text, or the kind (brief 11 §1, "Name").
    /// `None` for kinds that the registry does not list.
    pub fn name<'r>(&self, record: &Record<'r>) -> Option<Cow<'r, str>>
    where
        'a: 'r,
    {
        match record.kind() {
            id::NAMED_SPAN => user_text(record).map(Text::to_str_lossy),
            id::INSTANT => decode::fields(record)
                .find_map(|field| self.value_name(id::INSTANT, &field))
                .map(Cow::Borrowed),
            id::SCHEDULER_CHUNK => self.system(record).and_then(|system| system.name).map(Cow::Borrowed),
            _ => None,
        }
        .or_else(|| registry::kind(record.kind()).map(|kind| Cow::Borrowed(kind.name)))
    }
}

/// Fields that name one system.
const SYSTEM_FIELDS: [&str; 4] = ["systemIdx", "sysIdx", "systemIndex", "ownerSystemIdx"];

/// Are records of a kind about a system?
pub(crate) fn has_system(kind: u8) -> bool {
    registry::kind(kind)
        .is_some_and(|kind| decode::field_names(kind).any(|name| SYSTEM_FIELDS.contains(&name)))
}

/// Index of the system that a record is about. Only fields that name one system count; lists of edges do not.
pub fn system_index(record: &Record<'_>) -> Option<u16> {
    if !has_system(record.kind()) {
        return None;
    }
    let field = decode::fields(record).find(|field| SYSTEM_FIELDS.contains(&field.name))?;
    u16::try_from(field.value.as_i128()?).ok()
}

fn user_text<'r>(record: &Record<'r>) -> Option<Text<'r>> {
    decode::fields(record).find_map(|field| match field.value {
        Value::Text(text) if field.name == "name" => Some(text),
        _ => None,
    })
}

/// The part of a trace that a command is about, in trace-clock ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeWindow {
    /// Time asked for: a record counts when any part of it lies inside. Instants and empty spans count by their moment.
    pub touching: Range<i64>,
    /// Ticks asked for: a record belongs to the tick in which it starts (brief 01 B-36).
    pub starting: Range<i64>,
}

impl TimeWindow {
    /// Does the record count?
    #[inline]
    pub fn includes(&self, record: &Record<'_>) -> bool {
        let start = record.timestamp();
        if !self.starting.contains(&start) || start >= self.touching.end {
            return false;
        }
        start >= self.touching.start
            || record.span().is_some_and(|span| start.saturating_add(span.duration) > self.touching.start)
    }

    /// Does a span of this start and duration count? An instant has the duration 0.
    #[inline]
    pub fn includes_span(&self, start: i64, duration: i64) -> bool {
        self.starting.contains(&start)
            && start < self.touching.end
            && (start >= self.touching.start || start.saturating_add(duration) > self.touching.start)
    }

    /// The time that both limits leave.
    pub fn extent(&self) -> Range<i64> {
        self.touching.start.max(self.starting.start)..self.touching.end.min(self.starting.end)
    }
}

/// One record as filters see it.
#[derive(Debug, Clone, Copy)]
pub struct RecordFacts<'a> {
    /// The record.
    pub record: Record<'a>,
    /// Names and times.
    pub context: &'a TraceContext<'a>,
    /// Name of the thread that had the slot.
    pub thread: Option<&'a str>,
    /// Number of the tick, as the caller counts ticks.
    pub tick: u64,
    /// Where a span lies among the others; `None` for instants, and when the caller does not know.
    pub place: Option<Place>,
}

impl Facts for RecordFacts<'_> {
    fn kind(&self) -> u8 {
        self.record.kind()
    }

    fn slot(&self) -> u8 {
        self.record.slot()
    }

    fn tick(&self) -> u64 {
        self.tick
    }

    fn ts_ns(&self) -> i64 {
        self.context.relative_ns(self.record.timestamp())
    }

    fn dur_ns(&self) -> Option<i64> {
        self.record.span().map(|span| self.context.clock.to_ns(span.duration))
    }

    fn self_ns(&self) -> Option<i64> {
        self.place.map(|place| self.context.clock.to_ns(place.self_ticks))
    }

    fn depth(&self) -> Option<u32> {
        self.place.map(|place| place.depth)
    }

    fn span_id(&self) -> Option<u64> {
        self.record.span().map(|span| span.span_id)
    }

    fn parent_span_id(&self) -> Option<u64> {
        self.record.span().map(|span| span.parent_span_id).filter(|parent| *parent != 0)
    }

    fn trace_id(&self) -> Option<Cow<'_, str>> {
        let id = self.record.span()?.trace_id?;
        Some(Cow::Owned(format!("{:032x}", u128::from_be_bytes(*id))))
    }

    fn site_id(&self) -> Option<u16> {
        self.record.span().and_then(|span| span.site)
    }

    fn site_texts(&self) -> [Option<Cow<'_, str>>; 2] {
        let Some((location, path)) = self.site_id().and_then(|site| self.context.site(site)) else {
            return [None, None];
        };
        let place = path.map(|path| Cow::Owned(format!("{path}:{}", location.line)));
        [place, Some(Cow::Borrowed(location.method.as_str()))]
    }

    fn name(&self) -> Option<Cow<'_, str>> {
        self.context.name(&self.record)
    }

    fn thread(&self) -> Option<Cow<'_, str>> {
        self.thread.map(Cow::Borrowed)
    }

    fn system(&self) -> Option<SystemRef<'_>> {
        self.context.system(&self.record)
    }

    fn field(&self, name: &str) -> Option<FieldFact<'_>> {
        let field = decode::fields(&self.record).find(|field| field.name == name)?;
        Some(field_fact(self.record.kind(), &field, self.context))
    }
}

fn field_fact<'r>(kind: u8, field: &Field<'r>, context: &TraceContext<'r>) -> FieldFact<'r> {
    let number = match field.value {
        Value::F32(value) => Some(Number::Float(value.into())),
        Value::F64(value) => Some(Number::Float(value)),
        _ => field.value.as_i128().map(Number::Int),
    };
    let unit = field.info.and_then(TimeUnit::of);
    let nanoseconds = number.zip(unit).map(|(number, unit)| {
        Number::Float(number.as_f64() * unit.ns_per_step(context.clock, context.own_dialect))
    });
    let text = match field.value {
        Value::Text(text) => Some(text.to_str_lossy()),
        Value::Bool(value) => Some(Cow::Borrowed(if value { "true" } else { "false" })),
        _ => context.value_name(kind, field).map(Cow::Borrowed),
    };
    FieldFact { number, nanoseconds, text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter;

    fn chunk(system: u16, start: i64, duration: i64) -> Vec<u8> {
        let mut bytes = vec![0; 47];
        bytes[0] = 47;
        bytes[2] = id::SCHEDULER_CHUNK;
        bytes[3] = 3;
        bytes[4..12].copy_from_slice(&start.to_le_bytes());
        bytes[12..20].copy_from_slice(&duration.to_le_bytes());
        bytes[20] = 9;
        bytes[37..39].copy_from_slice(&system.to_le_bytes());
        bytes
    }

    #[test]
    fn a_chunk_bears_the_name_of_its_system() {
        let mut tables = Tables::default();
        let system = typhon_trace::tables::System { index: 4, name: "Move".into(), ..Default::default() };
        tables.systems.push(system);
        let context = TraceContext {
            tables: &tables,
            clock: Clock::new(1_000_000),
            origin_ticks: 100,
            own_dialect: true,
            file_table: None,
            source_manifest: None,
            mark_names: None,
        };
        let bytes = chunk(4, 150, 30);
        let facts = RecordFacts {
            record: Record::parse(&bytes).unwrap(),
            context: &context,
            thread: Some("Worker-1"),
            tick: 12,
            place: Some(Place { self_ticks: 20, depth: 2 }),
        };
        assert_eq!(facts.name().as_deref(), Some("Move"));
        assert_eq!((facts.ts_ns(), facts.dur_ns()), (50_000, Some(30_000)));
        for (text, expected) in [
            ("kind=SchedulerChunk system=Move dur>=30us", true),
            ("thread~^Worker tick=12 slot=3", true),
            ("field.systemIdx=5", false),
            ("dur>30us", false),
            ("self=20us depth=2", true),
            ("self>=30us | depth<2", false),
        ] {
            assert_eq!(filter::parse(text).unwrap().matches(&facts), expected, "{text}");
        }
    }
}
