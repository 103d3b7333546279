use typhon_trace::block::BlockHeader;
use typhon_trace::checksum::*;
use typhon_trace::header::{FileHeader, HEADER_BYTES};
use typhon_trace::record::Record;
use typhon_trace::tables::{Archetype, Tables};
use typhon_trace::trailer::SpanNames;

const NAMES: ChecksumNames = ChecksumNames::DEFAULT;

fn names() -> SpanNames {
    let mut names = SpanNames::default();
    NAMES.add_to(&mut names);
    names
}

#[test]
fn the_checksum_is_castagnoli() {
    assert_eq!(Crc32c::of(b"123456789").value(), 0xE306_9283);
    let mut parts = Crc32c::of(b"1234");
    parts.update(b"56789");
    assert_eq!(parts.value(), 0xE306_9283);
}

#[test]
fn all_four_names_or_none_are_found() {
    assert_eq!(ChecksumNames::find(&SpanNames::default()), NamesFound::None);
    assert_eq!(ChecksumNames::find(&names()), NamesFound::All(NAMES));
    for missing in 0..4 {
        let mut names = names();
        names.entries.remove(missing);
        assert_eq!(ChecksumNames::find(&names), NamesFound::Partial);
    }
    let mut renamed = names();
    renamed.push(NAMES.id(Checksum::Block), "something else");
    assert_eq!(ChecksumNames::find(&renamed), NamesFound::Partial, "the last name of an id counts");
}

#[test]
fn free_ids_are_found_for_a_copy() {
    assert_eq!(ChecksumNames::avoiding([]), Some(NAMES));
    let around = ChecksumNames::avoiding([65_535, 65_533]).unwrap();
    let ids = Checksum::ALL.map(|checksum| around.id(checksum));
    assert_eq!(ids, [65_530, 65_531, 65_532, 65_534]);
    assert_eq!(ChecksumNames::avoiding(3..=u16::MAX), None);
}

#[test]
fn markers_are_kind_6_instants() {
    let marker = Marker { checksum: Checksum::Block, crc: 0xDEAD_BEEF, slot: 4, timestamp: -2 };
    let bytes = marker.encode(&NAMES);
    let record = Record::parse(&bytes).unwrap();
    assert_eq!((record.kind(), record.slot(), record.timestamp(), record.size()), (6, 4, -2, 20));
    assert_eq!(record.payload().unwrap(), [0xFD, 0xFF, 0, 0, 0xEF, 0xBE, 0xAD, 0xDE]);
    assert_eq!(NAMES.marker(&record), Some(marker));
    let other = named_instant(4, -2, 17, 5);
    assert_eq!(NAMES.marker(&Record::parse(&other).unwrap()), None);
}

#[test]
fn a_longer_or_negative_name_id_is_no_marker() {
    let mut bytes = named_instant(0, 0, NAMES.id(Checksum::Block), 1).to_vec();
    bytes[15] = 0xFF;
    assert_eq!(NAMES.marker(&Record::parse(&bytes).unwrap()), None, "ids are i32 in the record");
    let mut longer = named_instant(0, 0, NAMES.id(Checksum::Block), 1).to_vec();
    longer.push(0);
    longer[0] += 1;
    assert_eq!(NAMES.marker(&Record::parse(&longer).unwrap()), None);
}

fn closing() -> ClosingBlock {
    ClosingBlock {
        slot: 3,
        timestamp: 1_000_000,
        first: Checksum::Block,
        first_crc: 0x1234_5678,
        header_crc: 0,
        trailer_crc: u32::MAX,
    }
}

/// Reads the block as a reader does: header, data, markers, and then the comparison with its only form.
fn read_closing(block: &[u8]) -> Option<ClosingBlock> {
    let header = BlockHeader::parse(block.first_chunk()?).ok()?;
    let data = block.get(12..12 + header.compressed_bytes as usize)?;
    let mut buffer = Vec::new();
    let closing = ClosingBlock::parse(&NAMES, header.decompress(data, &mut buffer).ok()?)?;
    (closing.encode(&NAMES) == block).then_some(closing)
}

#[test]
fn b38_every_flipped_bit_of_the_closing_block_shows() {
    let block = closing().encode(&NAMES);
    assert_eq!(read_closing(&block), Some(closing()));
    for bit in 0..block.len() * 8 {
        let mut flipped = block.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        // A flip in a checksum leaves a sound block that says something else, and one in the first name one that
        // does not belong at this place: the reader compares both. Everything else must not be a closing block.
        if let Some(read) = read_closing(&flipped) {
            assert_eq!((read.slot, read.timestamp), (3, 1_000_000), "bit {bit}");
            let compared = |it: ClosingBlock| (it.first, it.first_crc, it.header_crc, it.trailer_crc);
            assert_ne!(compared(read), compared(closing()), "bit {bit}");
        }
    }
}

#[test]
fn a_block_of_events_is_no_closing_block() {
    let marker = named_instant(1, 5, NAMES.id(Checksum::Block), 9);
    let event = named_instant(1, 5, 17, 9);
    let records = [marker, event, event].concat();
    assert_eq!(ClosingBlock::parse(&NAMES, &records), None);
    assert_eq!(NAMES.events(&records), [event, event].concat());
    assert_eq!(
        NAMES.events(&records[20..]),
        [event, event].concat(),
        "nothing is taken from a block without marker"
    );
    let block = closing().encode(&NAMES);
    assert!(NAMES.events(&block[14..]).is_empty());
}

#[test]
fn b38_the_tables_checksum_does_not_see_routing_ids() {
    let crc_of = |routing_id, name: &str| {
        let archetypes = (0..3).map(|archetype_id| Archetype { archetype_id, name: name.into(), routing_id });
        let encoded = Tables { archetypes: archetypes.collect(), ..Tables::default() }.encode().unwrap();
        Crc32c::of_tables(&encoded.bytes, &encoded.routing_id_offsets).value()
    };
    assert_eq!(crc_of(7, "Ant"), crc_of(0xFFFF, "Ant"));
    assert_ne!(crc_of(7, "Ant"), crc_of(7, "Anu"));
    let patched = Tables {
        archetypes: vec![Archetype { archetype_id: 0, name: "A".into(), routing_id: 0xFFFF }],
        ..Tables::default()
    };
    let encoded = patched.encode().unwrap();
    let masked = Crc32c::of_tables(&encoded.bytes, &encoded.routing_id_offsets);
    assert_eq!(masked, Crc32c::of(&encoded.bytes), "ids that are unknown anyway need no mask");
}

#[test]
fn b38_the_header_checksum_sees_every_byte_but_the_offsets() {
    let header = FileHeader { tsn_max: 5, ..FileHeader::new(9) }.encode();
    let crc = Crc32c::of_header(&header);
    for at in 0..HEADER_BYTES {
        let mut changed = header;
        changed[at] ^= 0x10;
        assert_eq!(Crc32c::of_header(&changed) == crc, (47..87).contains(&at), "byte {at}");
    }
}

#[test]
fn a_copy_recognises_the_names_it_must_not_take_over() {
    assert!(names().entries.iter().all(|entry| is_checksum_name(&entry.name)));
    assert!(!is_checksum_name(DROPPED_RECORDS_NAME));
}
