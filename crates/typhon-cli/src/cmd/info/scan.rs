//! One pass over all records, on all cores.

use super::Report;
use crate::output::progress::Progress;
use std::ops::ControlFlow;
use std::path::PathBuf;
use typhon_analysis::clock::Clock;
use typhon_analysis::gc::{GcCollector, GcSummary};
use typhon_analysis::pipeline::{PipelineOptions, map_blocks};
use typhon_trace::TraceError;
use typhon_trace::checksum::is_checksum_name;
use typhon_trace::header::FileHeader;
use typhon_trace::reader::{BlockBuffer, BlockDigest, BlockFeed, Derived, Sequenced, Source, Totals};
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
    let mut preamble = feed.preamble().clone();
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
    let gc = gc.finish(derived.range.map_or(0..0, |range| range.start..range.end));
    preamble.add_late_tables(&outcome.sections);
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
    let clock = Clock::new(header.timestamp_frequency);
    let mut gc = GcCollector::default();
    buffer.events().for_each(|record| gc.observe(&record, clock, header.is_typhon_dialect(), true));
    gc
}

/// Span names that are not those of checksums.
pub(super) fn own_names(names: &SpanNames) -> u64 {
    names.entries.iter().filter(|entry| !is_checksum_name(&entry.name)).count() as u64
}
