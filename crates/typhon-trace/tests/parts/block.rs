use proptest::collection::vec;
use proptest::prelude::*;
use typhon_trace::block::*;
use typhon_trace::record::RecordWalk;
use typhon_trace::trailer::Section;

fn header(uncompressed: i32, compressed: i32, records: i32) -> Result<BlockHeader, BlockFault> {
    let words = [uncompressed, compressed, records].map(i32::to_le_bytes);
    BlockHeader::parse(&words.concat().try_into().unwrap())
}

#[test]
fn b29_sizes_and_counts_are_checked_at_their_limits() {
    const MAX: i32 = 16 << 20;
    let largest_data = MAX + MAX / 255 + 16;
    for sound in [(1, 1, 0), (12, 12, 1), (255, 272, 21), (254, 270, 0), (MAX, largest_data, MAX / 12)] {
        let (uncompressed, compressed, records) = sound;
        let header = header(uncompressed, compressed, records).unwrap();
        assert_eq!(header.uncompressed_bytes as i32, uncompressed);
        assert_eq!(header.total_bytes(), compressed as u64 + 12);
        assert_eq!(BlockHeader::parse(&header.encode()).unwrap(), header);
    }
    let bad = [
        (0, 1, 0),
        (-1, 1, 0),
        (MAX + 1, 1, 0),
        (i32::MAX, 1, 0),
        (12, 0, 1),
        (12, -5, 1),
        (12, 12 + 16 + 1, 1),
        (255, 273, 0),
        (MAX, largest_data + 1, 0),
        (12, 12, -1),
        (12, 12, 2),
        (11, 11, 1),
        (i32::MIN, i32::MIN, i32::MIN),
    ];
    for (uncompressed, compressed, records) in bad {
        let expected = BlockFault::BadHeader { uncompressed, compressed, records };
        assert_eq!(header(uncompressed, compressed, records), Err(expected));
    }
}

#[test]
fn b29_the_next_four_bytes_tell_what_follows() {
    assert_eq!(Boundary::of(*b"SPAN"), Boundary::SpanNames);
    for section in Section::ALL.into_iter().filter(|&section| section != Section::SpanNames) {
        assert_eq!(Boundary::of(section.magic()), Boundary::Trailer(section));
    }
    assert_eq!(Boundary::of([0; 4]), Boundary::ZeroTail);
    assert_eq!(Boundary::of([1, 0, 0, 0]), Boundary::Block);
}

#[test]
fn no_section_can_be_taken_for_a_block() {
    for section in Section::ALL {
        let word = i32::from_le_bytes(section.magic());
        assert!(header(word, 1, 0).is_err(), "{}", section.name());
    }
}

/// TickStart and TickEnd of the format specification's worked examples.
const TWO_RECORDS: [u8; 26] = [
    0x0c, 0x00, 0x00, 0x03, 0x00, 0xca, 0x9a, 0x3b, 0x00, 0x00, 0x00, 0x00, //
    0x0e, 0x00, 0x01, 0x03, 0x00, 0xd3, 0xd7, 0x3b, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
];

#[test]
fn a_literal_only_block_is_the_worked_example() {
    let start = [0x1a, 0, 0, 0, 0x1c, 0, 0, 0, 2, 0, 0, 0, 0xf0, 0x0b];
    assert_eq!(encode_literal_only(&TWO_RECORDS, 2), [&start[..], &TWO_RECORDS].concat());
}

#[test]
fn literal_only_blocks_decode_at_every_length() {
    let mut buffer = Vec::new();
    for length in (1..1_100).chain([65_535, 262_144]) {
        let records: Vec<u8> = (0..length).map(|index| (index * 31 % 251) as u8).collect();
        let block = encode_literal_only(&records, 0);
        let header = BlockHeader::parse(block.first_chunk().unwrap()).unwrap();
        assert_eq!(header.decompress(&block[12..], &mut buffer).unwrap(), records);
    }
}

#[test]
fn the_encoder_gives_the_same_bytes_whatever_it_did_before() {
    let block = BlockEncoder::default().encode(&TWO_RECORDS, 2).to_vec();
    let mut used = BlockEncoder::default();
    used.encode(&[0xA5; 100_000], 0);
    assert_eq!(used.encode(&TWO_RECORDS, 2), block);
}

#[test]
fn data_that_decodes_to_another_size_is_refused() {
    let mut encoder = BlockEncoder::default();
    let block = encoder.encode(&[7; 1_000], 0).to_vec();
    let sound = BlockHeader::parse(block.first_chunk().unwrap()).unwrap();
    let mut buffer = vec![0xEE; 5_000];
    assert_eq!(sound.decompress(&block[12..], &mut buffer).unwrap(), [7; 1_000]);
    for size in [1, 999, 1_001, 4_000] {
        let wrong = BlockHeader { uncompressed_bytes: size, ..sound };
        let result = wrong.decompress(&block[12..], &mut buffer);
        assert!(
            matches!(result, Err(BlockFault::BadData { expected, .. }) if expected == size as usize),
            "{size}"
        );
    }
    for cut in 0..block.len() - 12 {
        assert!(sound.decompress(&block[12..12 + cut], &mut buffer).is_err(), "cut at {cut}");
    }
}

#[test]
fn room_is_left_for_the_marker_within_256_kib_and_8192_records() {
    use typhon_trace::checksum::MARKER_BYTES;
    assert_eq!(MAX_EVENT_BYTES + MARKER_BYTES, 256 << 10);
    assert_eq!(MAX_EVENTS + 1, 8_192);
}

#[test]
fn b24_blocks_of_a_recording_decode_in_any_order() {
    let file = super::recording("guide-shard");
    let mut found = Vec::new();
    let mut at = 6_313;
    while Boundary::of(file[at..at + 4].try_into().unwrap()) == Boundary::Block {
        let header = BlockHeader::parse(file[at..at + 12].try_into().unwrap()).unwrap();
        found.push((header, at + 12));
        at += header.total_bytes() as usize;
    }
    assert_eq!((found.len(), at), (116, 100_711));
    let mut buffer = Vec::new();
    let mut records = 0;
    for (header, data) in found.iter().rev() {
        let data = &file[*data..][..header.compressed_bytes as usize];
        let mut walk = RecordWalk::new(header.decompress(data, &mut buffer).unwrap());
        assert_eq!(walk.by_ref().count(), header.records as usize);
        assert_eq!(walk.fault(), None);
        records += header.records;
    }
    assert_eq!(records, 4_194);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_bytes_compress_and_decompress(records in vec(any::<u8>(), 1..5_000), repeat in 1_usize..20) {
        let records = records.repeat(repeat);
        let mut encoder = BlockEncoder::default();
        let block = encoder.encode(&records, 0).to_vec();
        let header = BlockHeader::parse(block.first_chunk().unwrap()).unwrap();
        let mut buffer = Vec::new();
        prop_assert_eq!(header.decompress(&block[12..], &mut buffer).unwrap(), &records);
    }

    #[test]
    fn b34_any_data_decodes_or_fails(data in vec(any::<u8>(), 0..600), size in 1_u32..100_000) {
        let header = BlockHeader { uncompressed_bytes: size, compressed_bytes: data.len() as u32, records: 0 };
        let mut buffer = Vec::new();
        if let Ok(records) = header.decompress(&data, &mut buffer) {
            prop_assert_eq!(records.len(), size as usize);
        }
    }
}

#[test]
fn b34_a_length_that_overflows_the_decoders_counter_is_bad_data() {
    let header = BlockHeader {
        uncompressed_bytes: MAX_BLOCK_BYTES as u32,
        compressed_bytes: (MAX_BLOCK_BYTES + MAX_BLOCK_BYTES / 255 + 16) as u32,
        records: 1,
    };
    assert_eq!(BlockHeader::parse(&header.encode()), Ok(header));
    let mut data = vec![0xFF; header.compressed_bytes as usize];
    data[0] = 0xF0;
    assert!(matches!(header.decompress(&data, &mut Vec::new()), Err(BlockFault::BadData { .. })));
}

#[test]
fn b34_the_largest_block_decodes_even_when_nothing_in_it_is_compressed() {
    let records = vec![7; MAX_BLOCK_BYTES];
    let block = encode_literal_only(&records, 1);
    let (head, data) = block.split_first_chunk().unwrap();
    let mut buffer = Vec::new();
    assert!(BlockHeader::parse(head).unwrap().decompress(data, &mut buffer).unwrap() == records);
}
