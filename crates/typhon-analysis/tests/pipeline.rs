//! The ordered parallel pipeline gives what a single thread gives, in the same order, and ends cleanly in every case.

#![allow(clippy::unwrap_used)] // a panic is a report

use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

use typhon_analysis::pipeline::{PipelineOptions, map_blocks};
use typhon_trace::reader::{
    BlockBuffer, BlockFeed, Outcome, ReadOptions, StreamReader, Verdict, VerifyOptions, verify,
};
use typhon_trace::{Notice, TraceError};

fn anthill() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/anthill.typhon-trace");
    std::fs::read(path).unwrap()
}

/// The same file with damage of several kinds: a bad record, data that does not decode, a bad block header.
fn damaged_anthill() -> Vec<u8> {
    let mut file = anthill();
    let mut feed = BlockFeed::from_reader(file.as_slice(), ReadOptions::default()).unwrap();
    let offsets: Vec<usize> =
        std::iter::from_fn(|| feed.next_entry().unwrap()).map(|it| it.offset as usize).collect();
    file[offsets[40] + 12] = 0xFF;
    file[offsets[90] + 3] = 0x7F;
    file[offsets[91] + 14] ^= 0x55;
    let last = offsets[offsets.len() - 1];
    file.truncate(last + 20);
    file
}

fn options(threads: usize, batch_bytes: usize, salvage: bool) -> PipelineOptions {
    let mut options = PipelineOptions::new(NonZeroUsize::new(threads).unwrap());
    options.batch_bytes = batch_bytes;
    options.read.salvage = salvage;
    options
}

/// One line per block: place, verdict, and a digest over its events.
#[derive(Debug, PartialEq)]
struct Line(u64, Verdict, bool, u64);

fn digest(buffer: &BlockBuffer) -> u64 {
    let bytes = buffer.events().flat_map(|record| record.bytes().iter().copied());
    bytes.fold(0, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte)))
}

fn serial(file: &[u8], salvage: bool) -> (Vec<Line>, Outcome) {
    let mut reader = StreamReader::from_reader(file, ReadOptions { salvage }).unwrap();
    let mut lines = Vec::new();
    while let Some(block) = reader.next_block().unwrap() {
        lines.push(Line(block.summary.entry.offset, block.verdict, block.delivered, digest(&block.payload)));
    }
    (lines, reader.finish().unwrap())
}

fn parallel(file: &[u8], options: PipelineOptions) -> (Vec<Line>, Outcome) {
    let feed = BlockFeed::from_reader(file, options.read).unwrap();
    let mut lines = Vec::new();
    let outcome = map_blocks(
        feed,
        options,
        || digest,
        |block| {
            lines.push(Line(block.summary.entry.offset, block.verdict, block.delivered, block.payload));
            Ok::<_, TraceError>(ControlFlow::Continue(()))
        },
    );
    (lines, outcome.unwrap().unwrap())
}

fn places(notices: &[Notice]) -> Vec<String> {
    notices.iter().map(|notice| format!("{notice:?}")).collect()
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    for (file, salvage) in [(anthill(), false), (damaged_anthill(), false), (damaged_anthill(), true)] {
        let (expected, outcome) = serial(&file, salvage);
        assert!(expected.len() > 40);
        for (threads, batch_bytes) in [(1, 0), (2, 0), (2, 4096), (4, 128 * 1024), (7, 100)] {
            let (lines, other) = parallel(&file, options(threads, batch_bytes, salvage));
            assert_eq!(lines, expected);
            assert_eq!(other.totals, outcome.totals);
            assert_eq!(places(&other.notices), places(&outcome.notices));
            assert_eq!(other.sections, outcome.sections);
        }
    }
}

#[test]
fn a_pipeline_over_a_file_reads_with_positioned_reads() {
    let file = anthill();
    let (expected, _) = serial(&file, false);
    let feed = BlockFeed::from_file(&file, ReadOptions::default()).unwrap();
    let mut offsets = Vec::new();
    let outcome = map_blocks(
        feed,
        options(3, 0, false),
        || |_: &BlockBuffer| (),
        |block| {
            offsets.push(block.summary.entry.offset);
            Ok::<_, TraceError>(ControlFlow::Continue(()))
        },
    );
    assert!(outcome.unwrap().is_some());
    assert!(offsets.iter().eq(expected.iter().map(|line| &line.0)));
}

#[test]
fn a_consumer_can_break_off() {
    let file = anthill();
    let feed = BlockFeed::from_reader(file.as_slice(), ReadOptions::default()).unwrap();
    let mut seen = 0;
    let outcome = map_blocks(
        feed,
        options(2, 0, false),
        || |_: &BlockBuffer| (),
        |_| {
            seen += 1;
            Ok::<_, TraceError>(if seen == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        },
    );
    assert!(outcome.unwrap().is_none());
    assert_eq!(seen, 5);
}

#[derive(Debug)]
enum ConsumerError {
    Full,
    Trace(TraceError),
}

impl From<TraceError> for ConsumerError {
    fn from(error: TraceError) -> Self {
        Self::Trace(error)
    }
}

#[test]
fn an_error_of_the_consumer_ends_the_pipeline() {
    let file = anthill();
    let feed = BlockFeed::from_reader(file.as_slice(), ReadOptions::default()).unwrap();
    let outcome =
        map_blocks(feed, options(4, 0, false), || |_: &BlockBuffer| (), |_| Err(ConsumerError::Full));
    assert!(matches!(outcome, Err(ConsumerError::Full)));
}

/// Fails once the bytes are used up, instead of ending.
struct FailingInput<'a>(&'a [u8]);

impl Read for FailingInput<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("the disk is gone")),
            count => Ok(count),
        }
    }
}

#[test]
fn a_read_error_comes_after_every_block_before_it() {
    let file = anthill();
    let cut = &file[..300_000];
    let (expected, _) = serial(cut, false);
    for threads in [1, 2, 4] {
        let feed = BlockFeed::from_reader(FailingInput(cut), ReadOptions::default()).unwrap();
        let mut seen = 0;
        let outcome = map_blocks(
            feed,
            options(threads, 2000, false),
            || |_: &BlockBuffer| (),
            |_| {
                seen += 1;
                Ok::<_, ConsumerError>(ControlFlow::Continue(()))
            },
        );
        assert!(matches!(outcome, Err(ConsumerError::Trace(TraceError::Io { .. }))));
        assert_eq!(seen, expected.len());
    }
}

#[test]
fn a_panic_in_a_worker_reaches_the_caller() {
    let file = anthill();
    let result = std::panic::catch_unwind(|| {
        let feed = BlockFeed::from_reader(file.as_slice(), ReadOptions::default()).unwrap();
        let worker =
            || |buffer: &BlockBuffer| assert!(buffer.summary().unwrap().entry.index != 50, "worker fault");
        map_blocks(feed, options(2, 0, false), worker, |_| Ok::<_, TraceError>(ControlFlow::Continue(())))
    });
    assert!(result.is_err());
}

#[test]
fn a_parallel_verification_reports_what_a_serial_one_reports() {
    for file in [anthill(), damaged_anthill()] {
        let checks = VerifyOptions { deep: true };
        let reader = StreamReader::from_reader(file.as_slice(), ReadOptions { salvage: true }).unwrap();
        let expected = verify(reader, checks, |_| ()).unwrap();
        for threads in [1, 2, 4] {
            let options = options(threads, 3000, true);
            let feed = BlockFeed::from_reader(file.as_slice(), options.read).unwrap();
            let report = typhon_analysis::verify::verify(feed, options, checks, |_| ()).unwrap();
            assert_eq!(report.verdict, expected.verdict);
            assert_eq!(report.findings, expected.findings);
            assert_eq!(report.totals, expected.totals);
            assert_eq!(report.derived.kinds, expected.derived.kinds);
        }
    }
}
