//! One pass over all records, on all cores.

use super::Report;
use crate::output::progress::Progress;
use std::ops::ControlFlow;
use std::path::PathBuf;
use typhon_analysis::clock::Clock;
use typhon_analysis::gc::{GcCollector, GcSummary};
use typhon_analysis::pipeline::{PipelineOptions, map_blocks};
use typhon_analysis::units::TimeUnit;
use typhon_trace::TraceError;
use typhon_trace::checksum::is_checksum_name;
use typhon_trace::event::{GcEndView, GcStartView};
use typhon_trace::header::FileHeader;
use typhon_trace::reader::{BlockBuffer, BlockDigest, BlockFeed, Derived, Sequenced, Source, Totals};
use typhon_trace::record::Record;
use typhon_trace::registry::id;
use typhon_trace::trailer::SpanNames;

/// What only reading all records can tell.
pub(super) struct Scan {
    pub(super) derived: Derived,
    pub(super) totals: Totals,
    pub(super) gc: Option<GcSummary>,
}

/// Reads a trace to its end.
pub(super) fn scan<S: Source + Send>(
    feed: BlockFeed<S>,
    mut progress: Progress,
    path: PathBuf,
) -> Result<Report, TraceError> {
    let preamble = feed.preamble().clone();
    let header = &preamble.header;
    let mut derived = Derived::default();
    let mut gc = GcCollector::default();
    let mut stated_records = 0;
    let outcome = map_blocks(
        feed,
        PipelineOptions::default(),
        || |buffer: &BlockBuffer| (BlockDigest::of(buffer), collections(buffer, header)),
        |block: Sequenced<(BlockDigest, GcCollector)>| {
            let entry = &block.summary.entry;
            progress.update(entry.end());
            stated_records += u64::from(entry.header.records);
            if block.delivered {
                derived.add(&block.payload.0);
                gc.merge(block.payload.1);
            }
            Ok::<_, TraceError>(ControlFlow::Continue(()))
        },
    )?;
    let Some(outcome) = outcome else { unreachable!("reading was not broken off") };
    let clock = Clock::new(header.timestamp_frequency);
    let gc = gc.finish(clock, derived.duration_ticks());
    Ok(Report {
        path,
        file_bytes: outcome.file_bytes,
        blocks: outcome.totals.blocks,
        uncompressed_bytes: outcome.totals.uncompressed_bytes,
        stated_records,
        span_names: own_names(&outcome.span_names),
        sections: outcome.sections,
        notices: outcome.notices,
        scan: Some(Scan { derived, totals: outcome.totals, gc }),
        preamble,
    })
}

/// The garbage collections of a block.
fn collections(buffer: &BlockBuffer, header: &FileHeader) -> GcCollector {
    let mut gc = GcCollector::default();
    for record in buffer.events() {
        match record.kind() {
            id::GC_START => {
                if let Some(count) = GcStartView::new(&record).and_then(|start| start.count()) {
                    gc.start(count);
                }
            }
            id::GC_END => end(&mut gc, &record, header),
            id::GC_SUSPENSION => {
                if let Some(span) = record.span() {
                    gc.suspension(record.timestamp(), span.duration);
                }
            }
            _ => {}
        }
    }
    gc
}

fn end(gc: &mut GcCollector, record: &Record<'_>, header: &FileHeader) {
    let Some(view) = GcEndView::new(record) else { return };
    let (Some(generation), Some(count)) = (view.generation(), view.count()) else { return };
    let clock = Clock::new(header.timestamp_frequency);
    let step_ns = TimeUnit::DialectTicks.ns_per_step(clock, header.is_typhon_dialect());
    let pause_ns = view.pause_duration_ticks().map(|ticks| (ticks as f64 * step_ns) as i64);
    gc.end(generation, count, pause_ns);
}

/// Span names that are not those of checksums.
pub(super) fn own_names(names: &SpanNames) -> u64 {
    names.entries.iter().filter(|entry| !is_checksum_name(&entry.name)).count() as u64
}
