//! Damage to files with and without checksums: what is kept, what is reported, and that nothing hangs or panics.

use std::io::{self, Read};

use proptest::prelude::*;
use proptest::sample::Index;
use typhon_trace::block::{BlockEncoder, encode_literal_only};
use typhon_trace::reader::{BlockBuffer, EndReason, Outcome, ReadOptions, StreamReader, TraceFile, Verdict};
use typhon_trace::trailer::Section;
use typhon_trace::{NoticeCode, Severity, TraceError};

use super::fixture::{
    PLAIN, Recipe, SALVAGE, SeenBlock, names, read, record, records, reference_file, seen, verify_bytes,
};

/// A file without checksums: the smallest header and tables, then what is given.
fn plain_file(parts: &[&[u8]]) -> Vec<u8> {
    let whole = Recipe { blocks: vec![], names_before: None, sections: false, close: false }.write();
    let names_at = whole.windows(4).position(|window| window == b"SPAN").unwrap();
    let mut file = whole[..names_at].to_vec();
    file[203] = 0;
    parts.iter().for_each(|part| file.extend_from_slice(part));
    file
}

fn block(seed: i64, count: i64) -> Vec<u8> {
    BlockEncoder::default().encode(&records(seed, count), count as u32).to_vec()
}

fn count(outcome: &Outcome, code: NoticeCode) -> usize {
    outcome.notices.iter().filter(|notice| notice.code == code).count()
}

fn events(blocks: &[SeenBlock]) -> Vec<Vec<u8>> {
    blocks.iter().filter(|block| block.delivered).map(|block| block.events.clone()).collect()
}

/// Random access must see what streaming sees: the same places, verdicts and events.
fn agrees_with_random_access(file: &[u8], options: ReadOptions, blocks: &[SeenBlock]) {
    let opened = TraceFile::open(file).unwrap();
    let index = opened.scan(options).unwrap();
    let mut buffer = BlockBuffer::new();
    let mut places = Vec::new();
    for (position, entry) in index.entries.iter().enumerate() {
        let verdict = opened.read_checked(&index, position, &mut buffer).unwrap();
        let events: Vec<u8> = buffer.events().flat_map(|record| record.bytes().to_vec()).collect();
        places.push((entry.offset, verdict, events));
    }
    let streamed: Vec<_> =
        blocks.iter().map(|block| (block.offset, block.verdict, block.events.clone())).collect();
    assert_eq!(places, streamed);
}

/// File offset of the end of a block.
fn end_of(file: &[u8], block: &SeenBlock) -> u64 {
    let size = u32::from_le_bytes(*file[block.offset as usize + 4..].first_chunk().unwrap());
    block.offset + 12 + u64::from(size)
}

/// Cuts a file at every byte: what comes out is exactly the complete blocks, and no cut inside an item is silent. A
/// cut between two items shows only in a closed file.
fn sweep_cuts(file: &[u8]) {
    let (whole, _) = read(file, PLAIN).unwrap();
    let tables_end = TraceFile::open(file).unwrap().preamble().tables_end;
    let between: Vec<u64> =
        whole.iter().flat_map(|block| [block.offset, end_of(file, block)]).chain([tables_end]).collect();
    for cut in 0..file.len() {
        let part = &file[..cut];
        if cut < 207 {
            let refused = read(part, PLAIN);
            assert!(matches!(
                refused,
                Err(TraceError::NotATrace { .. } | TraceError::HeaderTruncated { .. })
            ));
            continue;
        }
        let (blocks, outcome) = read(part, PLAIN).unwrap();
        let complete = whole.iter().take_while(|block| end_of(file, block) <= cut as u64);
        let expected: Vec<_> = complete.map(|block| block.events.clone()).collect();
        assert_eq!(events(&blocks), expected, "cut at {cut}");
        let silent = outcome.notices.iter().all(|notice| notice.severity() == Severity::Info);
        let closed = TraceFile::open(part).unwrap().header().is_closed();
        assert!(!silent || (!closed && between.contains(&(cut as u64))), "cut at {cut} goes unseen");
        agrees_with_random_access(part, PLAIN, &blocks);
        let (salvaged, _) = read(part, SALVAGE).unwrap();
        assert_eq!(events(&salvaged), expected, "salvage, cut at {cut}");
    }
}

#[test]
fn b30_a_file_cut_at_any_byte_gives_every_complete_block() {
    sweep_cuts(&Recipe::full().write());
    sweep_cuts(&Recipe { close: false, ..Recipe::full() }.write());
}

#[test]
fn b30_a_file_without_checksums_cut_at_any_byte_gives_every_complete_block() {
    let file = plain_file(&[&block(1, 4), &block(2, 1), &block(3, 3)]);
    sweep_cuts(&file);
}

#[test]
fn b30_the_truncation_notice_counts_blocks_and_bytes() {
    let file = plain_file(&[&block(1, 4), &block(2, 9)]);
    let (_, outcome) = read(&file[..file.len() - 5], PLAIN).unwrap();
    let notice = outcome.notices.iter().find(|notice| notice.code == NoticeCode::Truncated).unwrap();
    assert!(notice.message.starts_with("truncated after 1 blocks"), "{}", notice.message);
    assert_eq!(notice.count, block(2, 9).len() as u64 - 5);
}

#[test]
fn b6_a_bad_record_size_loses_the_rest_of_its_block_only() {
    for bad in [[0, 0], [11, 0], [0xFF, 0xFF], [200, 0]] {
        let mut content = records(1, 2);
        let place = content.len();
        content.extend_from_slice(&records(2, 2));
        content[place..place + 2].copy_from_slice(&bad);
        let damaged = BlockEncoder::default().encode(&content, 4).to_vec();
        let file = plain_file(&[&damaged, &block(5, 3)]);
        let (blocks, outcome) = read(&file, PLAIN).unwrap();
        assert_eq!(events(&blocks), [records(1, 2), records(5, 3)]);
        let notice = outcome.notices.iter().find(|notice| notice.code == NoticeCode::BadRecord).unwrap();
        assert_eq!((notice.block, notice.record), (Some(0), Some(2)));
        assert_eq!(notice.count, (content.len() - place) as u64);
    }
}

#[test]
fn b7_a_short_span_is_skipped_and_counted() {
    let short = record(20, 50, &[0; 4]);
    let content = [records(1, 2), short.clone(), short, records(2, 1)].concat();
    let file = plain_file(&[BlockEncoder::default().encode(&content, 5)]);
    let (blocks, outcome) = read(&file, PLAIN).unwrap();
    assert_eq!(events(&blocks), [[records(1, 2), records(2, 1)].concat()]);
    let notice = outcome.notices.iter().find(|notice| notice.code == NoticeCode::ShortSpan).unwrap();
    assert_eq!((notice.count, notice.record), (2, Some(2)));
}

#[test]
fn b9_a_wrong_record_count_is_a_notice() {
    let mut damaged = block(1, 4);
    damaged[8] = 3;
    let (blocks, outcome) = read(&plain_file(&[&damaged]), PLAIN).unwrap();
    assert_eq!(events(&blocks), [records(1, 4)]);
    assert_eq!(count(&outcome, NoticeCode::RecordCountMismatch), 1);
}

#[test]
fn b3_unknown_kinds_are_events() {
    let content = [record(255, 1, &[1, 2, 3]), record(12, 2, &[])].concat();
    let file = plain_file(&[BlockEncoder::default().encode(&content, 2)]);
    let (blocks, outcome) = read(&file, PLAIN).unwrap();
    assert_eq!(events(&blocks), [content]);
    assert_eq!(count(&outcome, NoticeCode::ShortSpan), 0);
    let report = verify_bytes(&file, PLAIN).unwrap();
    assert_eq!(report.findings.iter().filter(|it| it.code == NoticeCode::UnknownKind).count(), 2);
}

#[test]
fn b28_magic_is_checked_before_version() {
    let file = Recipe::full().write();
    let mut other = file.clone();
    other[4] = 11;
    assert!(matches!(read(&other, PLAIN), Err(TraceError::UnsupportedVersion { found: 11 })));
    other[0] = b'X';
    assert!(matches!(read(&other, PLAIN), Err(TraceError::NotATrace { .. })));
    assert!(matches!(read(&[], PLAIN), Err(TraceError::NotATrace { .. })));
}

#[test]
fn b29_a_block_whose_data_does_not_decode_is_skipped_by_its_length() {
    let mut damaged = block(2, 8);
    damaged[12] = 0xFF;
    damaged[13..17].fill(0xFF);
    let file = plain_file(&[&block(1, 2), &damaged, &block(3, 3)]);
    for options in [PLAIN, SALVAGE] {
        let (blocks, outcome) = read(&file, options).unwrap();
        assert_eq!(events(&blocks), [records(1, 2), Vec::new(), records(3, 3)]);
        let notice = outcome.notices.iter().find(|notice| notice.code == NoticeCode::BadBlockData).unwrap();
        assert_eq!(notice.block, Some(1));
        assert!(notice.message.ends_with("8 records lost"), "{}", notice.message);
        agrees_with_random_access(&file, options, &blocks);
    }
}

#[test]
fn b29_zeros_to_the_end_are_a_torn_tail_and_nothing_else_is() {
    let file = plain_file(&[&block(1, 2), &[0; 5000]]);
    let (blocks, outcome) = read(&file, PLAIN).unwrap();
    assert_eq!((events(&blocks), outcome.end_of_blocks.reason), (vec![records(1, 2)], EndReason::Torn));
    assert_eq!(count(&outcome, NoticeCode::Truncated), 1);

    let mut zeroed = block(2, 3);
    zeroed[..4].fill(0);
    let file = plain_file(&[&block(1, 2), &zeroed, &block(3, 3)]);
    let (blocks, outcome) = read(&file, PLAIN).unwrap();
    assert_eq!((events(&blocks), outcome.end_of_blocks.reason), (vec![records(1, 2)], EndReason::Damage));
    assert_eq!(count(&outcome, NoticeCode::BadBlockHeader), 1);
    let (blocks, _) = read(&file, SALVAGE).unwrap();
    assert_eq!(events(&blocks), [records(1, 2), records(3, 3)]);
}

#[test]
fn b33_salvage_resumes_at_the_next_sound_block() {
    let mut damaged = block(2, 30);
    damaged[3] = 0x7F;
    let file = plain_file(&[&block(1, 2), &damaged, &block(3, 3), &block(4, 1)]);
    let (blocks, outcome) = read(&file, PLAIN).unwrap();
    assert_eq!(events(&blocks), [records(1, 2)]);
    let notice = outcome.notices.iter().find(|notice| notice.code == NoticeCode::BadBlockHeader).unwrap();
    assert_eq!(notice.count, (damaged.len() + block(3, 3).len() + block(4, 1).len()) as u64);

    let (blocks, outcome) = read(&file, SALVAGE).unwrap();
    assert_eq!(events(&blocks), [records(1, 2), records(3, 3), records(4, 1)]);
    let notice = outcome.notices.iter().find(|notice| notice.code == NoticeCode::Skipped).unwrap();
    assert_eq!(notice.count, damaged.len() as u64);
    agrees_with_random_access(&file, SALVAGE, &blocks);
}

#[test]
fn b33_salvage_undoes_a_wrong_length() {
    for wrong in [5, 40, 100, 100_000] {
        let mut damaged = block(2, 30);
        damaged[4..8].copy_from_slice(&u32::to_le_bytes(wrong));
        let file = plain_file(&[&block(1, 2), &damaged, &block(3, 20), &block(4, 1)]);
        let (blocks, _) = read(&file, SALVAGE).unwrap();
        let kept: Vec<_> = events(&blocks).into_iter().filter(|block| !block.is_empty()).collect();
        assert_eq!(kept, [records(1, 2), records(3, 20), records(4, 1)], "length {wrong}");
        agrees_with_random_access(&file, SALVAGE, &blocks);
    }
}

#[test]
fn b33_salvage_finds_names_and_trailer_sections() {
    let mut file = Recipe::full().write();
    let (blocks, _) = read(&file, PLAIN).unwrap();
    file[blocks[0].offset as usize + 3] = 0x7F;
    file[blocks[3].offset as usize + 3] = 0x7F;
    let (after, outcome) = read(&file, SALVAGE).unwrap();
    assert_eq!(events(&after), [records(2, 1), records(3, 5)]);
    assert_eq!(outcome.span_names.get(2), Some("dig"));
    assert_eq!(outcome.sections.places.first().map(|place| place.1), Some(Section::FileTable));
    assert_eq!(outcome.sections.places.len(), 4);
    assert_eq!(after[1].verdict, Verdict::Unchecked, "its successor is lost");
}

#[test]
fn b33_salvage_passes_over_a_sea_of_plausible_headers_in_linear_time() {
    // Every 12 bytes stand a header that passes the range test, and LZ4 literals behind it that never add up.
    let header = [0x00, 0x00, 0x80, 0x00, 0xF0, 0xFF, 0x0F, 0x00, 0x01, 0x00, 0x00, 0x00];
    let sea: Vec<u8> = header.iter().copied().cycle().take(3_000_000).collect();
    let mut bad = block(1, 1);
    bad[3] = 0x7F;
    let file = plain_file(&[&bad, &sea, &block(7, 2)]);
    let (blocks, _) = read(&file, SALVAGE).unwrap();
    assert_eq!(events(&blocks), [records(7, 2)]);
}

#[test]
fn b32_a_wrong_section_offset_makes_the_section_absent() {
    let file = Recipe::full().write();
    for (offset, value) in [(47, 1u64), (47, 1 << 40), (47, u64::MAX), (55, 230), (79, file.len() as u64 - 2)]
    {
        let mut damaged = file.clone();
        damaged[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
        let opened = TraceFile::open(&damaged).unwrap();
        assert_eq!(opened.sections().places.len(), 3);
        assert!(opened.notices().iter().any(|notice| notice.code == NoticeCode::SectionOffset));
        let (_, outcome) = read(&damaged, PLAIN).unwrap();
        assert_eq!(outcome.sections.places.len(), 4, "a stream finds it all the same");
        assert_eq!(count(&outcome, NoticeCode::SectionOffset), 1);
    }
}

#[test]
fn b31_a_crashed_file_derives_its_counts() {
    let file = Recipe { close: false, ..Recipe::full() }.write();
    let report = verify_bytes(&file, PLAIN).unwrap();
    assert_eq!(report.derived.tick_count(), 3);
    assert_eq!(report.derived.events(), 9);
    assert_eq!(report.derived.duration_ticks(), 3_004 - 1_000);
}

#[test]
fn b31_the_query_catalogue_holds_each_query_once() {
    let query = |local_id: u32, line: u8| {
        let mut payload = vec![0; 24];
        payload[1..5].copy_from_slice(&local_id.to_le_bytes());
        payload[14] = line;
        record(247, 7, &payload)
    };
    let first = [query(1, 10), query(2, 20)].concat();
    let second = [query(1, 11), query(3, 30)].concat();
    let mut encoder = BlockEncoder::default();
    let (first, second) = (encoder.encode(&first, 2).to_vec(), encoder.encode(&second, 2).to_vec());
    let report = verify_bytes(&plain_file(&[&first, &second]), PLAIN).unwrap();
    assert_eq!(report.derived.query_definitions, [query(1, 10), query(2, 20), query(3, 30)]);
}

#[test]
fn b34_absurd_counts_and_sizes_are_refused_without_memory() {
    let header = |a: i32, b: i32, c: i32| [a.to_le_bytes(), b.to_le_bytes(), c.to_le_bytes()].concat();
    for (a, b, c) in [
        (i32::MAX, 10, 1),
        (16 << 20, (16 << 20) + 70_000, 1),
        (-1, 10, 1),
        (100, -1, 1),
        (100, 0, 1),
        (100, 50, -1),
        (100, 50, 9),
        (100, 117, 1),
    ] {
        let file = plain_file(&[&block(1, 2), &header(a, b, c), &[7; 40], &block(2, 2)]);
        let (blocks, outcome) = read(&file, PLAIN).unwrap();
        assert_eq!(events(&blocks), [records(1, 2)]);
        assert_eq!(count(&outcome, NoticeCode::BadBlockHeader), 1, "{a} {b} {c}");
        let (blocks, _) = read(&file, SALVAGE).unwrap();
        assert_eq!(events(&blocks), [records(1, 2), records(2, 2)], "{a} {b} {c}");
    }
    // The largest sizes that are in range, in a file that ends right there.
    let file = plain_file(&[&block(1, 2), &header(16 << 20, 16 << 20, 1_398_101), &[7; 40]]);
    let (blocks, outcome) = read(&file, PLAIN).unwrap();
    assert_eq!((events(&blocks), count(&outcome, NoticeCode::Truncated)), (vec![records(1, 2)], 1));
    // Names, sections and tables that announce more than there is.
    let mut announced = Vec::new();
    names(&[(1, "a")]).encode(&mut announced).unwrap();
    announced[4..6].fill(0xFF);
    let (_, outcome) = read(&plain_file(&[&block(1, 2), &announced]), PLAIN).unwrap();
    assert_eq!(count(&outcome, NoticeCode::Truncated), 1);
}

#[test]
fn b34_sections_that_repeat_without_end_do_not_fill_the_memory() {
    let nameless = |id: u16| [id.to_le_bytes()[0], id.to_le_bytes()[1], 0];
    let names =
        [&b"SPAN\xff\xff"[..], (0..u16::MAX).map(nameless).collect::<Vec<_>>().as_flattened()].concat();
    let empty_table = b"SFLB\0\0\0\0";
    let file = plain_file(&[&block(1, 2), &empty_table.repeat(1_000), &names.repeat(5)]);
    let (_, outcome) = read(&file, PLAIN).unwrap();
    assert!(outcome.span_names.entries.len() <= 2 << 16, "{} names", outcome.span_names.entries.len());
    let last_table = file.len() - 5 * names.len() - empty_table.len();
    assert_eq!(outcome.sections.places, [(last_table as u64, Section::FileTable)]);
    assert!(count(&outcome, NoticeCode::DuplicateId) > 0);
}

#[test]
fn b34_a_run_of_mismatching_blocks_does_not_hold_the_reader_up() {
    let mut file = Recipe { blocks: vec![2; 40], names_before: None, sections: false, close: true }.write();
    let (blocks, _) = read(&file, PLAIN).unwrap();
    for block in &blocks[..40] {
        // The payload of the marker at the start of each block: the checksum of the block before it.
        file[block.offset as usize + 12 + 2 + 16] ^= 1;
    }
    let (after, outcome) = read(&file, PLAIN).unwrap();
    assert_eq!(after.len(), blocks.len());
    assert!(outcome.totals.proven_blocks <= 2);
    agrees_with_random_access(&file, PLAIN, &after);
}

#[test]
fn invariant_9_permuted_blocks_give_the_same_events() {
    let parts: Vec<Vec<u8>> = (1..=4).map(|seed| block(seed, seed + 1)).collect();
    let derived = |order: &[usize]| {
        let parts: Vec<&[u8]> = order.iter().map(|&at| parts[at].as_slice()).collect();
        let report = verify_bytes(&plain_file(&parts), PLAIN).unwrap();
        (report.derived.kinds.to_vec(), report.derived.range)
    };
    let expected = derived(&[0, 1, 2, 3]);
    assert_eq!(derived(&[3, 1, 0, 2]), expected);
    assert_eq!(derived(&[2, 3, 1, 0]), expected);
}

#[test]
fn a_literal_only_block_reads_like_any_other() {
    let content = records(1, 300);
    let (blocks, _) = read(&plain_file(&[&encode_literal_only(&content, 300)]), PLAIN).unwrap();
    assert_eq!(events(&blocks), [content]);
}

/// Reads with every reader and option; panics and hangs are the failures.
fn read_every_way(file: &[u8]) {
    for options in [PLAIN, SALVAGE] {
        if let Ok((blocks, outcome)) = read(file, options) {
            assert!(outcome.end_of_blocks.offset <= outcome.file_bytes);
            assert_eq!(outcome.file_bytes, file.len() as u64);
            agrees_with_random_access(file, options, &blocks);
        }
        let _ = verify_bytes(file, options);
    }
}

#[test]
fn b34_every_bit_flip_of_a_file_without_checksums_is_survived() {
    let file = plain_file(&[&block(1, 3), &block(2, 1), &block(3, 2)]);
    for place in 0..file.len() * 8 {
        let mut damaged = file.clone();
        damaged[place / 8] ^= 1 << (place % 8);
        read_every_way(&damaged);
    }
}

#[test]
fn b34_bit_flips_in_the_tables_of_a_reference_file_are_survived() {
    let file = reference_file("all-kinds.typhon-trace");
    for place in (207..922).step_by(17) {
        let mut damaged = file.clone();
        damaged[place] ^= 1 << (place % 8);
        read_every_way(&damaged);
    }
}

/// Gives one to three bytes per call.
struct ShortReads<'a>(&'a [u8], usize);

impl Read for ShortReads<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 += 1;
        let room = buffer.len().min(1 + self.1 % 3);
        self.0.read(&mut buffer[..room])
    }
}

#[test]
fn a_pipe_that_delivers_byte_by_byte_gives_the_same() {
    let file = Recipe::full().write();
    let (expected, _) = read(&file, PLAIN).unwrap();
    let mut reader = StreamReader::from_reader(ShortReads(&file, 0), PLAIN).unwrap();
    for block in &expected {
        assert_eq!(&seen(reader.next_block().unwrap().unwrap()), block);
    }
    assert!(reader.next_block().unwrap().is_none());
    assert_eq!(reader.finish().unwrap().notices, []);
}

#[test]
fn a_growing_file_shows_its_new_blocks_in_the_next_scan() {
    let whole = plain_file(&[&block(1, 2), &block(2, 3)]);
    let first_end = plain_file(&[&block(1, 2)]).len();
    let path = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(path.path(), &whole[..first_end + 5]).unwrap();
    let opened = TraceFile::open(std::fs::File::open(path.path()).unwrap()).unwrap();
    let index = opened.scan(PLAIN).unwrap();
    assert_eq!((index.entries.len(), index.end_of_blocks.reason), (1, EndReason::Torn));
    std::fs::write(path.path(), &whole).unwrap();
    let index = opened.scan(PLAIN).unwrap();
    assert_eq!((index.entries.len(), index.end_of_blocks.reason), (2, EndReason::EndOfFile));
    let mut buffer = BlockBuffer::new();
    opened.read_block(&index, &index.entries[1], &mut buffer).unwrap();
    assert_eq!(buffer.events_bytes().unwrap(), records(2, 3));
}

/// One kind of damage.
#[derive(Debug, Clone)]
enum Damage {
    Set(Index, u8),
    Zero(Index, usize),
    Copy(Index, Index, usize),
    Names(Index),
}

impl Damage {
    fn any() -> impl Strategy<Value = Self> {
        prop_oneof![
            (any::<Index>(), any::<u8>()).prop_map(|(at, value)| Self::Set(at, value)),
            (any::<Index>(), 1usize..200).prop_map(|(at, count)| Self::Zero(at, count)),
            (any::<Index>(), any::<Index>(), 4usize..200)
                .prop_map(|(from, to, count)| Self::Copy(from, to, count)),
            any::<Index>().prop_map(Self::Names),
        ]
    }

    /// Damages anything behind the header.
    fn apply(&self, file: &mut [u8]) {
        let place = |index: &Index| 207 + index.index(file.len() - 207);
        match *self {
            Self::Set(ref at, value) => file[place(at)] = value,
            Self::Zero(ref at, count) => {
                let at = place(at);
                let end = file.len().min(at + count);
                file[at..end].fill(0);
            }
            Self::Copy(ref from, ref to, count) => {
                let (from, to) = (place(from), place(to));
                let count = count.min(file.len() - from).min(file.len() - to);
                file.copy_within(from..from + count, to);
            }
            Self::Names(ref at) => {
                let at = place(at);
                let end = file.len().min(at + 6);
                file[at..end].copy_from_slice(&b"SPAN\x02\x00"[..end - at]);
            }
        }
    }
}

proptest! {
    #[test]
    fn b34_random_corruption_is_survived(
        damage in prop::collection::vec(Damage::any(), 1..8),
        with_checksums in any::<bool>(),
        cut in prop::option::of(any::<Index>()),
    ) {
        let mut file = if with_checksums {
            Recipe { blocks: vec![3, 1, 40, 2, 9], ..Recipe::full() }.write()
        } else {
            plain_file(&[&block(1, 60), &block(2, 1), &block(3, 400), &block(4, 7)])
        };
        damage.iter().for_each(|damage| damage.apply(&mut file));
        if let Some(cut) = cut {
            file.truncate(207 + cut.index(file.len() - 207));
        }
        read_every_way(&file);
    }
}
