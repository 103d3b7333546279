//! The files of a write-ahead log: whatever they hold, looking at them and opening the log end with a log or a reason, both
//! with the same one, and a log that opens can be written on.
#![no_main]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use typhon_log::inspect::Inspection;
use typhon_log::{Draft, LogError, Opening, Options, Replay, Store};
use typhon_store::sim::SimIo;
use typhon_store::{Access, Io, Open, ReadOnly, write_all_at};
use typhon_sync::Deadline;

const DIRECTORY: &str = "/db";
const PAGE_BYTES: usize = 4096;
/// Bytes in front of a piece: file, page, length.
const PIECE_HEADER_BYTES: usize = 4;

fuzz_target!(|bytes: &[u8]| {
    let Some((flags, pieces)) = bytes.split_first() else { return };
    let mut files = assemble(pieces);
    if flags & 1 == 1 {
        files.values_mut().for_each(|bytes| set_checksums(bytes));
    }
    let io = SimIo::new(1);
    write(&io, &files);
    for path in files.keys().filter(|path| path.extension().is_some()) {
        if let Ok(found) = Inspection::of_segment(&read_only(&io), path) {
            drop(frames(found.frames()));
        }
    }
    check(&io);
});

/// Files from pieces: which file, which page of it, how many bytes, the bytes. Pages that nobody mentions are zeros.
fn assemble(mut pieces: &[u8]) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
    while let Some((header, rest)) = pieces.split_at_checked(PIECE_HEADER_BYTES) {
        let name = match header[0] % 32 {
            0 => "anchor".to_owned(),
            number @ 1..16 => format!("{number:016}.wal"),
            number => format!("{:016}.spare", number - 16),
        };
        let length = usize::from(u16::from_le_bytes([header[2], header[3]])).min(rest.len());
        let (bytes, rest) = rest.split_at(length);
        let file = files.entry(Path::new(DIRECTORY).join(name)).or_default();
        let start = usize::from(header[1] % 32) * PAGE_BYTES;
        // A piece of its own length ends the file where it ends; others fill their page.
        let end =
            if header[1] & 128 == 0 { (start + length).next_multiple_of(PAGE_BYTES) } else { start + length };
        file.resize(file.len().max(end), 0);
        file[start..start + length].copy_from_slice(bytes);
        pieces = rest;
    }
    files
}

/// Makes checksums right wherever there is a structure that has some, so that changes get past them.
fn set_checksums(bytes: &mut [u8]) {
    let store = bytes.get(8..24).map(<[u8]>::to_vec).unwrap_or_default();
    for start in (0..bytes.len()).step_by(PAGE_BYTES) {
        let page = &mut bytes[start..];
        match page.get(..4) {
            Some(b"TYFW") => set(page, 60, |page| crc32c::crc32c(&page[..60])),
            Some(b"TYAN") => set(page, 4092, |page| crc32c::crc32c(&page[..4092])),
            Some(b"TYBK") => set_block(page, &store),
            _ => {}
        }
    }
}

fn set(bytes: &mut [u8], at: usize, crc: impl FnOnce(&[u8]) -> u32) {
    if bytes.len() >= at + 4 {
        let crc = crc(bytes).to_le_bytes();
        bytes[at..at + 4].copy_from_slice(&crc);
    }
}

fn length_at(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..at + 4).map_or(0, |word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]) as usize)
}

fn set_block(block: &mut [u8], store: &[u8]) {
    let end = length_at(block, 4).min(block.len());
    let mut list = crc32c::crc32c(store);
    list = crc32c::crc32c_append(list, &block[..60.min(block.len())]);
    let mut at = 64;
    while at + 32 <= end {
        let length = length_at(block, at).max(32);
        let Some(frame) = block.get_mut(at..at + length) else { break };
        let body = crc32c::crc32c(&frame[32..]);
        set(frame, 24, |_| body);
        set(frame, 28, |frame| crc32c::crc32c(&frame[..28]));
        list = crc32c::crc32c_append(list, &frame[..28]);
        at += length.next_multiple_of(8);
    }
    set(block, 60, |_| list);
}

fn write(io: &SimIo, files: &BTreeMap<PathBuf, Vec<u8>>) {
    io.create_dir(Path::new(DIRECTORY)).expect("a new disk");
    for (path, bytes) in files {
        let file = io.open(path, Open::cached(Access::Create)).expect("a new file");
        write_all_at(&*file, bytes, 0, false).expect("written");
    }
}

fn read_only(io: &SimIo) -> impl Io {
    ReadOnly::new(io.process(), |_| {})
}

fn open(io: &SimIo) -> Result<Opening, LogError> {
    let options = Options { ring_bytes: 4 << 10, segment_bytes: 8 << 10, ..Options::small() };
    Store::open(Arc::new(io.process()), Path::new(DIRECTORY), options, b"new")
}

/// All frames: position, sequence number and body.
fn frames(mut replay: Replay<'_>) -> Vec<(u64, u64, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some(frame) = replay.next_frame().expect("what was scanned can be read") {
        frames.push((frame.lsn.0, frame.header.seq, frame.body.to_vec()));
    }
    frames
}

fn check(io: &SimIo) {
    let found = Inspection::of_directory(&read_only(io), Path::new(DIRECTORY));
    let opened = open(io);
    let opening = match (opened, &found) {
        (Ok(opening), Ok(found)) => {
            assert!(found.problems.is_empty(), "{:?}", found.problems);
            assert_eq!(opening.report(), found.report());
            assert_eq!(frames(opening.frames()), frames(found.frames()));
            opening
        }
        // There is nothing; the open has made a new log.
        (Ok(opening), Err(LogError::NotALog { .. })) => opening,
        (Ok(_), Err(error)) => panic!("opened, but looking says {error}"),
        (Err(error), Ok(found)) => return assert!(!found.problems.is_empty(), "refused: {error}"),
        (Err(_), Err(_)) => return,
    };
    let report = opening.report();
    let mut before = report.base.0;
    for (lsn, ..) in frames(opening.frames()) {
        assert!(lsn > before && lsn <= report.end.0, "{lsn} in {report:?}");
        before = lsn;
    }
    write_on(io, opening);
}

/// What is appended now comes back, alone, with higher numbers than everything before.
fn write_on(io: &SimIo, opening: Opening) {
    let end = opening.report().end;
    let highest = frames(opening.frames()).last().map_or(0, |(lsn, ..)| *lsn);
    let log = match opening.start(b"state") {
        Ok(log) => log,
        Err(LogError::Exhausted { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    let appended: Vec<_> = [&b"one"[..], b"two"]
        .into_iter()
        .map(|body| {
            let appended = log.commit(&Draft::commit(body), Deadline::INFINITE).expect("durable");
            (appended.lsn.0, appended.tsn.expect("a commit").0, body.to_vec())
        })
        .collect();
    assert!(appended[0].0 > highest && appended[0].0 > end.0);
    drop(log);
    let opening = open(io).expect("opens again");
    assert_eq!((opening.state(), frames(opening.frames())), (&b"state"[..], appended));
}
