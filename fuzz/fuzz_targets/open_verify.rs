//! A whole file: the reader for pipes, the one for files and random access must agree about all of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use typhon_trace::Notice;
use typhon_trace::reader::{
    BlockBuffer, BlockSummary, Outcome, ReadOptions, Source, StreamReader, TraceFile,
};

fuzz_target!(|file: &[u8]| {
    for options in [ReadOptions { salvage: false }, ReadOptions { salvage: true }] {
        let opened = StreamReader::from_file(file, options);
        let piped = StreamReader::from_reader(file, options);
        let (Ok(opened), Ok(piped)) = (&opened, &piped) else {
            assert_eq!(opened.is_err(), piped.is_err());
            assert!(TraceFile::open(file).is_err());
            continue;
        };
        assert_eq!(opened.preamble().tables, piped.preamble().tables);
    }
    let Ok(plain) = read(StreamReader::from_file(file, ReadOptions { salvage: false })) else { return };
    let piped = read(StreamReader::from_reader(file, ReadOptions { salvage: false }));
    assert_eq!(plain.summaries, piped.expect("it opens from a file").summaries);
    let salvaged =
        read(StreamReader::from_file(file, ReadOptions { salvage: true })).expect("it opens without");
    assert!(salvaged.events >= plain.events, "salvage only adds");
    check_random_access(file, &plain.summaries);
});

/// What reading to the end gave.
struct Whole {
    summaries: Vec<BlockSummary>,
    events: u64,
}

fn read<S: Source>(reader: Result<StreamReader<S>, typhon_trace::TraceError>) -> Result<Whole, ()> {
    let mut reader = reader.map_err(drop)?;
    let mut summaries = Vec::new();
    let mut events = 0;
    while let Some(block) = reader.next_block().expect("reading from memory has no I/O errors") {
        let counted = block.payload.events().count() as u64;
        assert_eq!(counted, u64::from(block.summary.events));
        events += if block.delivered { counted } else { 0 };
        summaries.push(block.summary.clone());
    }
    let outcome = reader.finish().expect("reading from memory has no I/O errors");
    assert_eq!(outcome.totals.blocks, summaries.len() as u64);
    assert_eq!(outcome.totals.events, events);
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
