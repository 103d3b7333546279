//! `docs/log-format.md`, taken at its word: a writer made from that page alone, whose files the library opens, and a
//! reader made from it that understands what the library writes.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use typhon_log::format::{Block, BlockHeader, FrameHeader, Invalid, SegmentHeader, StoreId};
use typhon_log::{Draft, Fault, LogError, Lsn, Options, Stop, Store, plant};
use typhon_store::sim::SimIo;
use typhon_store::{Access, Io, Open, read_exact_at, write_all_at};
use typhon_sync::Deadline;

const STORE: [u8; 16] = *b"sixteen bytes ok";

fn frame(kind: u8, seq: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 32];
    bytes[..4].copy_from_slice(&(32 + body.len() as u32).to_le_bytes());
    bytes[4] = kind;
    bytes[8..16].copy_from_slice(&seq.to_le_bytes());
    bytes[24..28].copy_from_slice(&crc32c::crc32c(body).to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..28]);
    bytes[28..32].copy_from_slice(&crc.to_le_bytes());
    bytes.extend_from_slice(body);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

struct BlockOf {
    first: u64,
    segment: u64,
    epoch: u32,
    previous: u32,
    flags: u32,
}

/// A padded block, and its checksum.
fn block(of: &BlockOf, frames: &[Vec<u8>]) -> (Vec<u8>, u32) {
    let payload = frames.concat();
    let mut bytes = vec![0; 64];
    bytes[..4].copy_from_slice(b"TYBK");
    bytes[4..8].copy_from_slice(&(64 + payload.len() as u32).to_le_bytes());
    bytes[8..16].copy_from_slice(&of.first.to_le_bytes());
    bytes[16..24].copy_from_slice(&(of.first + payload.len() as u64).to_le_bytes());
    bytes[24..32].copy_from_slice(&of.segment.to_le_bytes());
    bytes[32..36].copy_from_slice(&of.epoch.to_le_bytes());
    bytes[36..40].copy_from_slice(&(frames.len() as u32).to_le_bytes());
    bytes[40..44].copy_from_slice(&of.previous.to_le_bytes());
    bytes[44..48].copy_from_slice(&of.flags.to_le_bytes());
    let mut covered = bytes[..60].to_vec();
    frames.iter().for_each(|frame| covered.extend_from_slice(&frame[..28]));
    let crc = crc32c::crc32c_append(crc32c::crc32c(&STORE), &covered);
    bytes[60..64].copy_from_slice(&crc.to_le_bytes());
    bytes.extend_from_slice(&payload);
    bytes.resize(bytes.len().next_multiple_of(4096), 0);
    (bytes, crc)
}

fn segment(id: u64, first: u64, epoch: u32, blocks: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    bytes[..4].copy_from_slice(b"TYFW");
    bytes[4..8].copy_from_slice(&1_u32.to_le_bytes());
    bytes[8..24].copy_from_slice(&STORE);
    bytes[24..32].copy_from_slice(&id.to_le_bytes());
    bytes[32..40].copy_from_slice(&first.to_le_bytes());
    bytes[44..48].copy_from_slice(&epoch.to_le_bytes());
    bytes[48..56].copy_from_slice(&65_536_u64.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..60]);
    bytes[60..64].copy_from_slice(&crc.to_le_bytes());
    bytes.extend_from_slice(&blocks.concat());
    bytes.resize(65_536, 0);
    bytes
}

fn anchor(floor: u64, base: u64, next_tsn: u64, epoch: u32) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    bytes[..4].copy_from_slice(b"TYAN");
    bytes[4..8].copy_from_slice(&1_u32.to_le_bytes());
    bytes[8..24].copy_from_slice(&STORE);
    for (at, value) in [(24, 9), (32, floor), (40, base), (48, next_tsn)] {
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    bytes[56..60].copy_from_slice(&epoch.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..4092]);
    bytes[4092..].copy_from_slice(&crc.to_le_bytes());
    bytes.resize(8192, 0);
    bytes
}

fn put(io: &SimIo, name: &str, bytes: &[u8]) {
    io.create_dir(Path::new("/db")).unwrap();
    let file = io.open(&Path::new("/db").join(name), Open::cached(Access::Create)).unwrap();
    write_all_at(&*file, bytes, 0, false).unwrap();
}

fn get(io: &SimIo, name: &str) -> Vec<u8> {
    let file = io.open(&Path::new("/db").join(name), Open::cached(Access::Read)).unwrap();
    let mut bytes = vec![0; file.length().unwrap() as usize];
    read_exact_at(&*file, &mut bytes, 0).unwrap();
    bytes
}

type Frames = Vec<(u64, u8, u64, Vec<u8>)>;

fn recover(io: &SimIo) -> Result<(Frames, Stop), LogError> {
    let opening = Store::open(Arc::new(io.clone()), Path::new("/db"), Options::small(), b"")?;
    let mut replay = opening.frames();
    let mut frames = Vec::new();
    while let Some(frame) = replay.next_frame()? {
        frames.push((frame.lsn.0, frame.header.kind, frame.header.seq, frame.body.to_vec()));
    }
    Ok((frames, opening.report().stop))
}

/// Two segments with three blocks, the base inside the first.
fn by_hand() -> SimIo {
    let io = SimIo::new(0);
    let of = BlockOf { first: 8000, segment: 5, epoch: 3, previous: 0, flags: 1 };
    let (first, crc) = block(&of, &[frame(1, 70, b"before the base"), frame(1, 71, b"first")]);
    let of = BlockOf { first: 8000 + 48 + 40, previous: crc, ..of };
    let (second, crc) = block(&of, &[frame(200, 0, b"a kind of the future"), frame(2, 4, &[7; 5000])]);
    let end = of.first + 56 + 5032;
    let of = BlockOf { first: end, segment: 6, previous: crc, ..of };
    let (third, _) = block(&of, &[frame(1, 72, b"")]);
    put(&io, "0000000000000005.wal", &segment(5, 8000, 3, &[first, second]));
    put(&io, "0000000000000006.wal", &segment(6, end, 3, &[third]));
    put(&io, "anchor", &anchor(5, 8048, 60, 3));
    io
}

#[test]
fn files_made_from_the_page_alone_are_recovered() {
    let (frames, stop) = recover(&by_hand()).unwrap();
    let expected: Frames = vec![
        (8088, 1, 71, b"first".to_vec()),
        (8144, 200, 0, b"a kind of the future".to_vec()),
        (13_176, 2, 4, vec![7; 5000]),
        (13_208, 1, 72, vec![]),
    ];
    assert_eq!((frames, stop), (expected, Stop::End));
}

#[test]
fn numbers_go_on_above_everything_by_the_steps_of_the_page() {
    let io = by_hand();
    let opening = Store::open(Arc::new(io.clone()), Path::new("/db"), Options::small(), b"").unwrap();
    let log = opening.start(b"state").unwrap();
    let appended = log.commit(&Draft::commit(b"x"), Deadline::INFINITE).unwrap();
    assert_eq!(appended.lsn, Lsn(13_208 + (1 << 30) + 40));
    assert_eq!(appended.tsn.unwrap().0, 73 + (1 << 25));
    drop(log);
    // The library's own files, read from the page alone.
    let bytes = get(&io, "0000000000000007.wal");
    let of = BlockOf { first: 13_208 + (1 << 30), segment: 7, epoch: 4, previous: 0, flags: 1 };
    let (expected, _) = block(&of, &[frame(1, 73 + (1 << 25), b"x")]);
    assert_eq!(bytes[4096..8192], expected[..]);
    let expected = segment(7, of.first, 4, &[]);
    assert_eq!((&bytes[..44], &bytes[44..48]), (&expected[..44], &4_u32.to_le_bytes()[..]));
    let slots = get(&io, "anchor");
    assert_eq!(slots[4096 + 24..4096 + 32], 10_u64.to_le_bytes());
    assert_eq!(slots[4096 + 60..4096 + 69], *b"\x05\0\0\0state");
}

/// With the order in which this crate makes segments, the floor and the names already keep old blocks out; the epoch
/// is the second line, shown here by a file that only it excludes.
#[test]
fn ruling_28_a_segment_of_another_open_does_not_count() {
    let io = by_hand();
    let of = BlockOf { first: 13_208, segment: 7, epoch: 2, previous: 0, flags: 0 };
    put(&io, "0000000000000007.wal", &segment(7, 13_208, 2, &[block(&of, &[frame(1, 99, b"past")]).0]));
    assert_eq!(recover(&io).unwrap().0.len(), 4);
    plant(&[Fault::NoEpoch]);
    let mistaken = recover(&io).unwrap().0;
    plant(&[]);
    assert_eq!(mistaken.len(), 5, "the mistake would be noticed");
}

#[test]
fn t2_a_middle_block_that_is_lost_ends_the_log_or_is_damage() {
    // The last block says that everything before it was durable.
    let io = by_hand();
    io.damage(Path::new("/db/0000000000000005.wal"), 8192 + 100, 1).unwrap();
    let error = recover(&io).unwrap_err();
    assert!(matches!(error, LogError::Corruption { prefix: Lsn(8088), lsn: Lsn(13_176), .. }), "{error}");
    assert!(error.to_string().contains("0000000000000006.wal") && error.to_string().contains("backup"));
    // The last block itself may as well be a torn tail.
    let io = by_hand();
    io.damage(Path::new("/db/0000000000000006.wal"), 4096 + 63, 1).unwrap();
    let (frames, stop) = recover(&io).unwrap();
    assert_eq!((frames.len(), stop), (3, Stop::Torn(Invalid::HeaderChecksum)));
}

#[test]
fn damage_can_be_accepted_by_an_option() {
    let io = by_hand();
    io.damage(Path::new("/db/0000000000000005.wal"), 8192 + 100, 1).unwrap();
    let options = Options { truncate_damage: true, ..Options::small() };
    let opening = Store::open(Arc::new(io), Path::new("/db"), options, b"").unwrap();
    assert_eq!(opening.report().end, Lsn(8088));
}

#[test]
fn blocks_in_a_file_without_a_header_are_evidence() {
    let io = by_hand();
    io.damage(Path::new("/db/0000000000000006.wal"), 20, 1).unwrap();
    io.damage(Path::new("/db/0000000000000005.wal"), 8192 + 100, 1).unwrap();
    assert!(matches!(recover(&io).unwrap_err(), LogError::Corruption { .. }));
    plant(&[Fault::IgnoreHeaderless]);
    let mistaken = recover(&io);
    plant(&[]);
    assert_eq!(mistaken.unwrap().0.len(), 1, "the mistake would be noticed");
}

#[test]
fn a_block_of_a_later_open_shows_that_the_anchor_is_old() {
    let io = by_hand();
    let of = BlockOf { first: 1 << 31, segment: 7, epoch: 4, previous: 0, flags: 1 };
    put(&io, "0000000000000007.wal", &segment(7, 1 << 31, 4, &[block(&of, &[frame(1, 1 << 26, b"new")]).0]));
    let error = recover(&io).unwrap_err();
    assert!(matches!(error, LogError::AnchorDamaged { .. }), "{error}");
}

/// A torn write may leave whole frames of an older block of the same shape.
#[test]
fn l4_a_whole_frame_in_place_of_another_is_noticed() {
    let of = BlockOf { first: 4096, segment: 1, epoch: 1, previous: 0, flags: 0 };
    let (mut bytes, _) = block(&of, &[frame(1, 7, b"this"), frame(1, 8, b"new one")]);
    Block::decode(&bytes, StoreId(STORE)).unwrap();
    let old = frame(1, 3, b"old one");
    let at = 64 + 40;
    bytes[at..at + old.len()].copy_from_slice(&old);
    assert_eq!(Block::decode(&bytes, StoreId(STORE)).unwrap_err(), Invalid::HeaderChecksum);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Every single damaged byte is found, wherever it is.
    #[test]
    fn a_block_with_a_wrong_byte_is_no_block(
        bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..6),
        at in any::<prop::sample::Index>(),
        flip in 1_u8..,
    ) {
        let frames: Vec<_> = bodies.iter().map(|body| frame(1, 1, body)).collect();
        let of = BlockOf { first: 4096, segment: 1, epoch: 1, previous: 0, flags: 0 };
        let (mut bytes, _) = block(&of, &frames);
        let store = StoreId(STORE);
        let read: Vec<_> = Block::decode(&bytes, store).unwrap().frames().map(|frame| frame.body.to_vec()).collect();
        prop_assert_eq!(read, bodies.clone());
        prop_assert!(Block::decode(&bytes, StoreId([0; 16])).is_err());
        // Zeros behind a body carry nothing and are not covered.
        let mut offset = 64;
        let covered: Vec<usize> = bodies.iter().flat_map(|body| {
            let start = offset;
            offset += (32 + body.len()).next_multiple_of(8);
            start..start + 32 + body.len()
        }).chain(0..64).collect();
        let at = covered[at.index(covered.len())];
        bytes[at] ^= flip;
        prop_assert!(Block::decode(&bytes, store).is_err(), "byte {}", at);
    }

    #[test]
    fn any_bytes_decode_to_a_value_or_a_reason(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = (SegmentHeader::decode(&bytes), BlockHeader::decode(&bytes), FrameHeader::decode(&bytes));
        let _ = Block::decode(&bytes, StoreId(STORE));
    }
}

/// A log that consists of an anchor and an empty segment.
fn empty(id: u64, base: u64, first: u64, next_tsn: u64, epoch: u32) -> SimIo {
    let io = SimIo::new(0);
    put(&io, "anchor", &anchor(id, base, next_tsn, epoch));
    put(&io, &format!("{id:016}.wal"), &segment(id, first, epoch, &[]));
    io
}

#[test]
fn numbers_that_no_use_brings_about_are_refused() {
    let start = |io: SimIo| {
        let opening = Store::open(Arc::new(io), Path::new("/db"), Options::small(), b"")?;
        opening.start(b"").map(drop)
    };
    start(empty(5, 8000, 8000, 7, 3)).unwrap();
    for (what, io) in [
        ("position", empty(5, 1 << 60, 8000, 7, 3)),
        ("sequence number", empty(5, 8000, 8000, u64::MAX, 3)),
        ("open", empty(5, 8000, 8000, 7, u32::MAX)),
        ("segment", empty(9_100_000_000_000_000, 8000, 8000, 7, 3)),
    ] {
        let error = start(io).unwrap_err();
        assert!(matches!(error, LogError::Exhausted { .. }), "{error}");
        assert!(error.to_string().starts_with(what) && error.to_string().contains("backup"), "{error}");
    }
    // Positions are multiples of 8.
    assert!(matches!(recover(&empty(5, 8004, 8000, 7, 3)), Err(LogError::AnchorDamaged { .. })));
    assert!(matches!(recover(&empty(5, 8000, 7996, 7, 3)), Err(LogError::SegmentMissing { .. })));
}

/// With the order in which this crate writes, the log reaches the base; an engine's page may say otherwise.
#[test]
fn rulings_1_7_the_prefix_does_not_end_before_the_base() {
    let end = |io: SimIo| {
        let opening = Store::open(Arc::new(io), Path::new("/db"), Options::small(), b"").unwrap();
        opening.report().end
    };
    assert_eq!(end(empty(5, 16_000, 8000, 7, 3)), Lsn(16_000));
    plant(&[Fault::EndBelowBase]);
    let mistaken = end(empty(5, 16_000, 8000, 7, 3));
    plant(&[]);
    assert_eq!(mistaken, Lsn(8000), "the mistake would be noticed");
}
