//! A part of a trace as a trace: the selected records, and what is needed to understand them.

use super::Scope;
use crate::facts::{MarkNames, TraceContext};
use crate::placing::{Place, PlaceFaults, Placer};
use std::fs::File;
use std::ops::ControlFlow;
use typhon_trace::TraceError;
use typhon_trace::event::{Gauge, InstantEvent, PerTickSnapshot, PerTickSnapshotView};
use typhon_trace::reader::{BlockBuffer, Outcome, ReadOptions, Sections, TraceFile};
use typhon_trace::record::{Record, RecordWalk};
use typhon_trace::registry::{self, id};
use typhon_trace::repair::{TraceCopy, is_loss};
use typhon_trace::writer::{CloseReport, TraceSink};

/// What was written, and what the source was like.
#[derive(Debug)]
pub struct Cut {
    /// Of the new file.
    pub written: CloseReport,
    /// Of the source.
    pub outcome: Outcome,
    /// Spans that a filter may have misplaced.
    pub faults: PlaceFaults,
}

/// Writes a closed trace that holds the records of a scope, or all of them. `progress` gets the bytes of the source that
/// are read; `None` when it broke off.
///
/// # Errors
/// When the source cannot be read or the sink not be written; what goes wrong at closing is in the report.
pub fn cut<K: TraceSink>(
    source: &TraceFile<File>,
    scope: Option<&Scope<'_>>,
    sink: K,
    mut progress: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<Cut>, TraceError> {
    let options = ReadOptions::default();
    let names = source.span_names(options)?;
    let mut copy = TraceCopy::begin(source, &names, sink)?;
    let marks = MarkNames::new(names);
    let mut cutter = scope.map(|scope| Cutter::new(source, &marks, scope));
    let mut reader = source.stream(options)?;
    while let Some(block) = reader.next_delivered()? {
        match &mut cutter {
            None => copy.block(&block.payload)?,
            Some(cutter) => cutter.block(&block.payload, |records| copy.records(records))?,
        }
        if progress(block.summary.entry.end()).is_break() {
            return Ok(None);
        }
    }
    let mut outcome = reader.finish()?;
    let mut sections = std::mem::take(&mut outcome.sections).or(source.sections());
    let is_whole = cutter.is_none() && !outcome.notices.iter().any(is_loss);
    let mut faults = PlaceFaults::default();
    if let Some(mut cutter) = cutter {
        faults = cutter.finish(|records| copy.records(records))?;
        cutter.cut_samples(&mut sections);
    }
    let (_, written) = copy.finish(sections, is_whole);
    Ok(Some(Cut { written, outcome, faults }))
}

/// Picks the records of a trace.
struct Cutter<'a> {
    scope: &'a Scope<'a>,
    context: TraceContext<'a>,
    /// Holds blocks back until the places of their spans are known, if the filter asks for them.
    placer: Option<Placer<Vec<u8>>>,
}

impl<'a> Cutter<'a> {
    fn new(source: &'a TraceFile<File>, marks: &'a MarkNames, scope: &'a Scope<'a>) -> Self {
        let origin_ticks = scope.survey.as_ref().map_or(0, |survey| survey.origin_ticks);
        let context = TraceContext::new(source.header(), source.tables(), source.sections(), origin_ticks)
            .with_mark_names(marks);
        Self { scope, context, placer: scope.needs_places().then(Placer::default) }
    }

    /// Hands on the selected records of a block, and those that others depend on.
    fn block(
        &mut self,
        block: &BlockBuffer,
        mut write: impl FnMut(&[u8]) -> Result<(), TraceError>,
    ) -> Result<(), TraceError> {
        let Some(placer) = &mut self.placer else {
            return write(&select(self.scope, &self.context, block.events(), &[]));
        };
        let mut bytes = Vec::with_capacity(block.walked().len());
        block.events().for_each(|record| bytes.extend_from_slice(record.bytes()));
        placer.push(bytes, |bytes, see| RecordWalk::new(bytes).for_each(see));
        self.placed(write)
    }

    /// Hands on what was held back, and tells which places may be off.
    fn finish(
        &mut self,
        write: impl FnMut(&[u8]) -> Result<(), TraceError>,
    ) -> Result<PlaceFaults, TraceError> {
        if let Some(placer) = &mut self.placer {
            placer.finish();
        }
        self.placed(write)?;
        Ok(self.placer.as_ref().map(Placer::faults).unwrap_or_default())
    }

    fn placed(&mut self, mut write: impl FnMut(&[u8]) -> Result<(), TraceError>) -> Result<(), TraceError> {
        while let Some((bytes, places)) = self.placer.as_mut().and_then(Placer::pop) {
            write(&select(self.scope, &self.context, RecordWalk::new(&bytes), &places))?;
        }
        Ok(())
    }

    /// Keeps the CPU samples that lie in the time window. Filters are about records, and say nothing about samples.
    fn cut_samples(&self, sections: &mut Sections) {
        if let (Some(window), Some(cpu)) = (&self.scope.window, &mut sections.cpu_samples) {
            let extent = window.extent();
            cpu.samples.retain(|sample| extent.contains(&sample.timestamp));
        }
    }
}

/// The bytes of the selected records, and of those that others depend on. `places` are those of the spans.
fn select<'r>(
    scope: &Scope<'_>,
    context: &TraceContext<'_>,
    records: impl Iterator<Item = Record<'r>>,
    places: &[Place],
) -> Vec<u8> {
    let (mut kept, mut places) = (Vec::new(), places.iter().copied());
    for record in records {
        let place = record.span().and_then(|_| places.next());
        let is_needed = matches!(record.kind(), id::THREAD_INFO | id::QUERY_DEFINITION_DESCRIBE);
        if is_needed || scope.includes(&scope.facts(record, context, place)) {
            kept.extend_from_slice(record.bytes());
        } else if record.kind() == id::PER_TICK_SNAPSHOT {
            push_capacities(&mut kept, &record);
        }
    }
    kept
}

/// Appends the gauges of a snapshot that are written once in a session, as a snapshot of their own. The others belong
/// to a tick that is cut away.
fn push_capacities(out: &mut Vec<u8>, record: &Record<'_>) {
    let Some(view) = PerTickSnapshotView::new(record) else { return };
    let is_once = |gauge: &Gauge| registry::gauge(gauge.id).is_some_and(|info| info.once);
    let gauges: Vec<Gauge> = view.gauges().filter(is_once).collect();
    let Some(tick_number) = view.tick_number().filter(|_| !gauges.is_empty()) else { return };
    let snapshot = PerTickSnapshot { tick_number, gauges: &gauges };
    let start = out.len();
    out.resize(start + snapshot.record_bytes(), 0);
    let encoded = snapshot.encode(record.slot(), record.timestamp(), &mut out[start..]);
    debug_assert!(encoded.is_ok(), "the room was asked for");
}
