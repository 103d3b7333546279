//! `--to trace`: a valid trace that holds the selected records and what is needed to understand them.

use crate::cli::Export;
use crate::cmd::conclusion::{Conclusion, check_closed};
use crate::cmd::input::open_trace;
use crate::cmd::repair::recorded_ns;
use crate::cmd::selection::Selection;
use crate::failure::Failure;
use crate::output::file::OutputFile;
use crate::output::progress::Progress;
use crate::output::stream::Style;
use std::fs::File;
use typhon_analysis::facts::{RecordFacts, TraceContext};
use typhon_analysis::filter::Number;
use typhon_analysis::stream_state::StreamState;
use typhon_trace::TraceError;
use typhon_trace::event::{Gauge, InstantEvent, PerTickSnapshot, PerTickSnapshotView};
use typhon_trace::reader::{BlockBuffer, Outcome, ReadOptions, Sections, TraceFile};
use typhon_trace::record::Record;
use typhon_trace::registry::{self, id};
use typhon_trace::repair::{TraceCopy, is_loss};
use typhon_trace::writer::CloseReport;

pub(super) fn run(
    args: &Export,
    selection: &Selection,
    style: &Style,
    create: impl FnOnce() -> Result<OutputFile, Failure>,
) -> Result<Conclusion, Failure> {
    let source = open_trace(&args.file)?;
    let output = create()?;
    let progress = Progress::new(style, "exporting", source.data().metadata().ok().map(|data| data.len()));
    let (mut written, outcome) = cut(&source, selection, output.writer()?, progress)
        .map_err(|err| Failure::copying(&args.file, Some(&args.output), err))?;
    check_closed(&mut written, &args.output)?;
    Ok(Conclusion {
        command: "export",
        bytes: output.finish()?,
        output: Some(args.output.clone()),
        records: written.records,
        dropped: outcome.totals.dropped_records,
        duration_ns: recorded_ns(&args.output),
        losses: outcome.notices.into_iter().filter(is_loss).collect(),
    })
}

fn cut(
    source: &TraceFile<File>,
    selection: &Selection,
    sink: File,
    mut progress: Progress,
) -> Result<(CloseReport, Outcome), TraceError> {
    let options = ReadOptions::default();
    let mut copy = TraceCopy::begin(source, &source.span_names(options)?, sink)?;
    let mut cutter = Cutter::new(source, selection);
    let mut reader = source.stream(options)?;
    while let Some(block) = reader.next_delivered()? {
        if selection.is_everything() {
            copy.block(&block.payload)?;
        } else {
            copy.records(cutter.select(&block.payload))?;
        }
        progress.update(block.summary.entry.end());
    }
    let mut outcome = reader.finish()?;
    let mut sections = std::mem::take(&mut outcome.sections).or(source.sections());
    cutter.cut_samples(&mut sections);
    let is_whole = selection.is_everything() && !outcome.notices.iter().any(is_loss);
    let (_, written) = copy.finish(sections, is_whole);
    Ok((written, outcome))
}

/// Picks the records of a block.
struct Cutter<'a> {
    selection: &'a Selection,
    context: TraceContext<'a>,
    has_origin: bool,
    state: StreamState,
    kept: Vec<u8>,
}

impl<'a> Cutter<'a> {
    fn new(source: &'a TraceFile<File>, selection: &'a Selection) -> Self {
        let context = TraceContext::new(source.header(), source.tables(), source.sections(), 0);
        Self { selection, context, has_origin: false, state: StreamState::new(), kept: Vec::new() }
    }

    /// The selected records of a block, and those that others depend on.
    fn select(&mut self, block: &BlockBuffer) -> &[u8] {
        self.kept.clear();
        for record in block.events() {
            if !self.has_origin {
                self.has_origin = true;
                self.context.origin_ticks = record.timestamp();
            }
            self.state.advance(&record);
            let thread = self.state.thread(record.slot());
            let facts = RecordFacts { record, context: &self.context, thread, tick: self.state.tick() };
            let is_needed = matches!(record.kind(), id::THREAD_INFO | id::QUERY_DEFINITION_DESCRIBE);
            if is_needed || self.selection.passes(&facts) {
                self.kept.extend_from_slice(record.bytes());
            } else if record.kind() == id::PER_TICK_SNAPSHOT {
                push_capacities(&mut self.kept, &record);
            }
        }
        &self.kept
    }

    /// Keeps the CPU samples that lie in the time window. Filters are about records, and say nothing about samples.
    fn cut_samples(&self, sections: &mut Sections) {
        if let (Some(window), Some(cpu)) = (self.selection.window(), &mut sections.cpu_samples) {
            cpu.samples.retain(|sample| {
                window.contains(Number::Int(self.context.relative_ns(sample.timestamp).into()))
            });
        }
    }
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
