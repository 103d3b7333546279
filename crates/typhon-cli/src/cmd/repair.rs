//! `typhon trace repair`: a whole, closed copy of a damaged trace.

use super::conclusion::{Conclusion, check_closed};
use super::input::open_trace;
use crate::cli::Repair;
use crate::failure::Failure;
use crate::output::file::OutputFile;
use crate::output::progress::Progress;
use crate::output::stream::Style;
use std::fs::File;
use std::path::Path;
use typhon_analysis::clock::Clock;
use typhon_trace::TraceError;
use typhon_trace::reader::{ReadOptions, TraceFile};
use typhon_trace::repair::{CountingSink, RepairReport, repair};
use typhon_trace::writer::TraceSink;

/// Exit code when something was lost.
const LOSSES: u8 = 3;

pub(crate) fn run(args: &Repair, style: &Style) -> Result<u8, Failure> {
    let source = open_trace(&args.file)?;
    let options = ReadOptions { salvage: args.salvage };
    let progress = Progress::new(style, "repairing", source.data().metadata().ok().map(|data| data.len()));
    let failed = |err: TraceError| Failure::copying(&args.file, args.output.as_deref(), err);
    let output = match (&args.output, args.dry_run) {
        (Some(path), false) => Some((path, OutputFile::create(path, args.force, Some(&args.file))?)),
        _ => None,
    };
    let mut report = match &output {
        None => copy(&source, options, CountingSink::default(), progress).map_err(failed)?,
        Some((path, file)) => {
            let mut report = copy(&source, options, file.writer()?, progress).map_err(failed)?;
            check_closed(&mut report.written, path)?;
            report
        }
    };
    let (path, bytes, duration_ns) = match output {
        None => (None, report.written.bytes, None),
        Some((path, file)) => (Some(path.clone()), file.finish()?, recorded_ns(path)),
    };
    let conclusion = Conclusion {
        command: "repair",
        output: path,
        bytes,
        records: report.written.records,
        dropped: report.totals.dropped_records,
        duration_ns,
        losses: std::mem::take(&mut report.losses),
    };
    conclusion.print(style)?;
    Ok(if conclusion.losses.is_empty() { 0 } else { LOSSES })
}

fn copy<K: TraceSink>(
    source: &TraceFile<File>,
    options: ReadOptions,
    sink: K,
    mut progress: Progress,
) -> Result<RepairReport, TraceError> {
    repair(source, options, sink, |done| progress.update(done)).map(|(_, report)| report)
}

/// Length of a recording as its header states it.
pub(super) fn recorded_ns(path: &Path) -> Option<i64> {
    let trace = TraceFile::open(File::open(path).ok()?).ok()?;
    let header = trace.header();
    Some(Clock::new(header.timestamp_frequency).to_ns(header.duration_ticks))
}
