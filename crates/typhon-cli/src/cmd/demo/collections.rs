//! The managed program's collections, as the finished recording has them.

use std::fs::File;
use std::path::Path;
use typhon_analysis::clock::Clock;
use typhon_analysis::gc::{GcCollector, GcSummary};
use typhon_trace::TraceError;
use typhon_trace::reader::{ReadOptions, StreamReader};

/// What is in a file. `None` without any collection, and if the file cannot be read, which is not what the demo is about.
pub(super) fn of(path: &Path) -> Option<GcSummary> {
    read(File::open(path).ok()?).ok()?
}

fn read(file: File) -> Result<Option<GcSummary>, TraceError> {
    let mut reader = StreamReader::from_file(file, ReadOptions::default())?;
    let clock = Clock::new(reader.preamble().header.timestamp_frequency);
    let mut collector = GcCollector::default();
    let (mut first, mut last) = (i64::MAX, i64::MIN);
    while let Some(block) = reader.next_delivered()? {
        for record in block.payload.events() {
            first = first.min(record.timestamp());
            last = last.max(record.timestamp());
            collector.observe(&record, clock, true, true);
        }
    }
    Ok(collector.finish(first.min(last)..last))
}
