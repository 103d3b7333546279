//! A whole file: the reader for pipes, the one for files and random access must agree about all of it, and a repaired
//! copy is sound and holds every record that could be read.
#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use typhon_trace::reader::{
    BlockBuffer, BlockSummary, FileVerdict, Outcome, ReadOptions, Source, StreamReader, TraceFile,
    VerifyOptions, verify,
};
use typhon_trace::repair::repair;
use typhon_trace::{Notice, TraceError};

fuzz_target!(|file: &[u8]| {
    for options in [ReadOptions { salvage: false }, ReadOptions { salvage: true }] {
        let opened = StreamReader::from_file(file, options);
        let piped = StreamReader::from_reader(file, options);
        let (Ok(opened), Ok(piped)) = (&opened, &piped) else {
            assert_eq!(opened.is_err(), piped.is_err());
            assert!(TraceFile::open(file).is_err());
            continue;
        };
        // As text, since a field that is NaN equals nothing.
        assert_eq!(format!("{:?}", opened.preamble().tables), format!("{:?}", piped.preamble().tables));
    }
    let plain = ReadOptions { salvage: false };
    let salvage = ReadOptions { salvage: true };
    let Ok(whole) = read(StreamReader::from_file(file, plain)) else { return };
    let piped = read(StreamReader::from_reader(file, plain)).expect("it opens from a file");
    assert_eq!(whole.summaries, piped.summaries);
    let salvaged = read(StreamReader::from_file(file, salvage)).expect("it opens without salvage");
    assert!(salvaged.events.len() >= whole.events.len(), "salvage only adds");
    check_random_access(file, &whole.summaries);
    check_repair(file, plain, &whole.events);
    check_repair(file, salvage, &salvaged.events);
});

/// What reading to the end gave.
struct Whole {
    summaries: Vec<BlockSummary>,
    /// Bytes of the events that may be used.
    events: Vec<u8>,
}

fn read<S: Source>(reader: Result<StreamReader<S>, TraceError>) -> Result<Whole, ()> {
    let mut reader = reader.map_err(drop)?;
    let mut summaries = Vec::new();
    let (mut events, mut count) = (Vec::new(), 0);
    while let Some(block) = reader.next_block().expect("reading from memory has no I/O errors") {
        assert_eq!(block.payload.events().count(), block.summary.events as usize);
        if block.delivered {
            count += u64::from(block.summary.events);
            block.payload.events().for_each(|record| events.extend_from_slice(record.bytes()));
        }
        summaries.push(block.summary.clone());
    }
    let outcome = reader.finish().expect("reading from memory has no I/O errors");
    assert_eq!(outcome.totals.blocks, summaries.len() as u64);
    assert_eq!(outcome.totals.events, count);
    check_notices(&outcome);
    Ok(Whole { summaries, events })
}

/// Notices are ordered and lie inside the file.
fn check_notices(outcome: &Outcome) {
    let offsets: Vec<u64> = outcome.notices.iter().filter_map(|notice: &Notice| notice.offset).collect();
    assert!(offsets.iter().all(|offset| *offset <= outcome.file_bytes), "{:?}", outcome.notices);
}

fn check_random_access(file: &[u8], expected: &[BlockSummary]) {
    let trace = TraceFile::open(file).expect("it opens as a stream");
    let index = trace.scan(ReadOptions::default()).expect("reading from memory has no I/O errors");
    assert_eq!(index.entries.len(), expected.len());
    let mut buffer = BlockBuffer::new();
    for (entry, expected) in index.entries.iter().zip(expected) {
        trace.read_block(&index, entry, &mut buffer).expect("reading from memory has no I/O errors");
        assert_eq!(buffer.summary(), Some(expected));
    }
}

fn check_repair(file: &[u8], options: ReadOptions, expected: &[u8]) {
    let trace = TraceFile::open(file).expect("it opens as a stream");
    let (sink, report) = match repair(&trace, options, Cursor::new(Vec::new()), |_| {}) {
        Ok(repaired) => repaired,
        // Texts that had to be replaced, or more span names than the format can hold beside ours.
        Err(TraceError::Limit { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    assert!(report.written.complete, "{:?}", report.written);
    let copy = sink.into_inner();
    let reader = || StreamReader::from_file(&copy, ReadOptions::default());
    let copied = read(reader()).expect("our own file opens");
    assert!(copied.events == expected, "the copy holds every event that was read, in the same order");
    let report = verify(reader().expect("it just opened"), VerifyOptions::default(), |_| {});
    let findings = report.expect("reading from memory has no I/O errors").findings;
    assert!(FileVerdict::of(&findings) <= FileVerdict::SoundWithNotices, "{findings:?}");
}
