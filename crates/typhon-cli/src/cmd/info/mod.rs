//! `typhon trace info`: what a trace is, what is in it, and whether it is whole.

mod document;
mod scan;
mod summary;

use super::input::{Input, shown};
use crate::cli::Info;
use crate::failure::Failure;
use crate::output::json;
use crate::output::progress::Progress;
use crate::output::stream::{Style, print};
use scan::{Scan, scan};
use std::path::PathBuf;
use typhon_analysis::beside::sections_beside;
use typhon_trace::checksum::NamesFound;
use typhon_trace::reader::{BlockFeed, Preamble, ReadOptions, Sections, TraceFile};
use typhon_trace::{Notice, TraceError};

/// Files up to this size are read whole without being asked to: it takes no noticeable time.
const SMALL_BYTES: u64 = 64 << 20;

pub(crate) fn run(args: &Info, style: &Style) -> Result<u8, Failure> {
    let path = shown(&args.file);
    let input = Input::open(&args.file)?;
    let progress = Progress::new(style, "scanning", input.bytes());
    let report = read(&input, args.scan, progress, path.clone()).map_err(|err| Failure::trace(&path, err))?;
    if style.json {
        print(&json::document(&document::of(&report)))?;
    } else {
        print(summary::of(&report).as_bytes())?;
    }
    Ok(0)
}

/// Everything that is known of a trace.
struct Report {
    path: PathBuf,
    file_bytes: u64,
    preamble: Preamble,
    blocks: u64,
    uncompressed_bytes: u64,
    /// Sum of the record counts in the block headers; counts checksum markers too.
    stated_records: u64,
    sections: Sections,
    /// Number of span names that are the user's own.
    span_names: u64,
    notices: Vec<Notice>,
    /// What only reading all records can tell; `None` when they were not read.
    scan: Option<Scan>,
}

impl Report {
    /// Duration of the recording in clock ticks: what close wrote, else what the records say.
    fn duration_ticks(&self) -> Option<i64> {
        if self.preamble.header.is_closed() {
            return Some(self.preamble.header.duration_ticks);
        }
        self.scan.as_ref().map(|scan| scan.derived.duration_ticks())
    }

    /// Number of ticks: what the records say, else what close wrote.
    fn ticks(&self) -> Option<u64> {
        match &self.scan {
            Some(scan) => Some(scan.derived.tick_count()),
            None => self.preamble.header.is_closed().then(|| self.preamble.header.tick_count.into()),
        }
    }

    /// Adds what stands beside a file that was not closed.
    fn add_beside(&mut self) {
        let (sections, notices) = sections_beside(&self.path);
        self.sections = std::mem::take(&mut self.sections).or(&sections);
        self.preamble.add_late_tables(&self.sections);
        self.notices.extend(notices);
    }

    /// Does the file carry checksums?
    fn has_checksums(&self) -> bool {
        matches!(self.preamble.names, NamesFound::All(_))
    }
}

fn read(input: &Input, forced: bool, progress: Progress, path: PathBuf) -> Result<Report, TraceError> {
    match input {
        Input::Pipe(pipe) => scan(BlockFeed::from_reader(pipe, ReadOptions::default())?, progress, path),
        Input::File(file) => {
            let feed = BlockFeed::from_file(file, ReadOptions::default())?;
            let is_small = input.bytes().is_none_or(|bytes| bytes <= SMALL_BYTES);
            let is_closed = feed.preamble().header.is_closed();
            if !(forced || is_small || !is_closed) {
                return outline(&TraceFile::open(file)?, path);
            }
            let mut report = scan(feed, progress, path)?;
            if !is_closed {
                report.add_beside();
            }
            Ok(report)
        }
    }
}

/// Reads block headers and sections only.
fn outline(trace: &TraceFile<&std::fs::File>, path: PathBuf) -> Result<Report, TraceError> {
    let index = trace.scan(ReadOptions::default())?;
    Ok(Report {
        path,
        file_bytes: index.file_bytes,
        preamble: trace.preamble().clone(),
        blocks: index.entries.len() as u64,
        uncompressed_bytes: index.uncompressed_bytes(),
        stated_records: index.stated_records(),
        sections: trace.sections().clone(),
        span_names: scan::own_names(&index.span_names),
        notices: merged(trace.notices(), index.notices),
        scan: None,
    })
}

/// Notices of two passes over one file, each once.
fn merged(first: &[Notice], second: Vec<Notice>) -> Vec<Notice> {
    let mut all = first.to_vec();
    all.extend(second.into_iter().filter(|notice| !first.contains(notice)));
    all
}
