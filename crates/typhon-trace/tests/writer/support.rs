//! A deliberately simple whole-file reader: the yardstick for what the writer leaves behind.

use typhon_trace::block::{BlockHeader, Boundary};
use typhon_trace::checksum::{Checksum, ChecksumNames, ClosingBlock, Crc32c, NamesFound};
use typhon_trace::header::{FileHeader, HEADER_BYTES};
use typhon_trace::record::RecordWalk;
use typhon_trace::tables::{Tables, TablesRead};
use typhon_trace::trailer::{Section, SpanNames};

/// Everything in a file, checksum markers taken out and compared.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) header: FileHeader,
    pub(crate) tables: TablesRead,
    pub(crate) names: SpanNames,
    /// Records of every whole event block.
    pub(crate) blocks: Vec<Vec<u8>>,
    /// The same with their checksum markers, and the closing block.
    pub(crate) raw_blocks: Vec<Vec<u8>>,
    /// The header and trailer checksums were there and right.
    pub(crate) closing: bool,
    /// Bytes behind the last whole part.
    pub(crate) torn_bytes: usize,
    /// Everything behind the closing block.
    pub(crate) trailer: Vec<u8>,
    pub(crate) checksum_names: ChecksumNames,
}

impl Opened {
    pub(crate) fn records(&self) -> Vec<u8> {
        self.blocks.concat()
    }
}

/// Opens a file and panics on everything that a writer must not leave behind, except a torn last part.
pub(crate) fn open(file: &[u8]) -> Opened {
    let header = FileHeader::parse(file).expect("header");
    let header_bytes: &[u8; HEADER_BYTES] = file.first_chunk().expect("header");
    let mut rest = &file[HEADER_BYTES..];
    let tables = Tables::read(&mut rest).expect("no source errors");
    assert_eq!(tables.cut, None);
    let mut link = Crc32c::of_tables(&tables.raw, &tables.routing_id_offsets);
    let mut opened = Opened {
        header,
        tables,
        names: SpanNames::default(),
        blocks: Vec::new(),
        raw_blocks: Vec::new(),
        closing: false,
        torn_bytes: 0,
        trailer: Vec::new(),
        checksum_names: ChecksumNames::DEFAULT,
    };
    let mut due = Checksum::Tables;
    while let Some(next) = rest.first_chunk::<4>() {
        match Boundary::of(*next) {
            Boundary::SpanNames => {
                let start = rest;
                rest = &rest[4..];
                let read = SpanNames::read(&mut rest).expect("no source errors");
                if read.cut {
                    rest = start;
                    break;
                }
                link.update(&start[..start.len() - rest.len()]);
                opened.names.entries.extend(read.value.entries);
            }
            Boundary::Block => {
                let NamesFound::All(names) = ChecksumNames::find(&opened.names) else { panic!("no names") };
                opened.checksum_names = names;
                let Some((records, block)) = whole_block(rest) else { break };
                rest = &rest[block.len()..];
                let marker = names.leading_marker(&records).expect("every block begins with a marker");
                assert_eq!((marker.checksum, marker.crc), (due, link.value()));
                opened.raw_blocks.push(records.clone());
                if let Some(closing) = ClosingBlock::parse(&names, &records) {
                    assert_eq!(closing.encode(&names), block);
                    if opened.header.is_closed() {
                        assert_eq!(closing.header_crc, Crc32c::of_header(header_bytes).value());
                    }
                    assert_eq!(closing.trailer_crc, Crc32c::of(rest).value());
                    opened.closing = true;
                    opened.trailer = rest.to_vec();
                    return opened;
                }
                opened.blocks.push(names.events(&records).to_vec());
                link = Crc32c::of(block);
                due = Checksum::Block;
            }
            other => panic!("{other:?} without a closing block"),
        }
    }
    opened.torn_bytes = rest.len();
    opened
}

fn whole_block(bytes: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let header = BlockHeader::parse(bytes.first_chunk()?).expect("block header");
    let block = bytes.get(..header.total_bytes() as usize)?;
    let mut buffer = Vec::new();
    let records = header.decompress(&block[12..], &mut buffer).expect("block data");
    let mut walk = RecordWalk::new(records);
    assert_eq!(walk.by_ref().count(), header.records as usize);
    assert_eq!(walk.fault(), None);
    Some((records.to_vec(), block))
}

/// A span record of kind 40 with the given start.
pub(crate) fn span(slot: u8, timestamp: i64, payload: &[u8]) -> Vec<u8> {
    let mut record = instant(40, slot, timestamp, &[0; 25]);
    record.extend_from_slice(payload);
    set_size(&mut record);
    record
}

/// A record with the common header and any bytes behind it.
pub(crate) fn instant(kind: u8, slot: u8, timestamp: i64, payload: &[u8]) -> Vec<u8> {
    let mut record = vec![0, 0, kind, slot];
    record.extend_from_slice(&timestamp.to_le_bytes());
    record.extend_from_slice(payload);
    set_size(&mut record);
    record
}

fn set_size(record: &mut [u8]) {
    let size = u16::try_from(record.len()).expect("record size");
    record[..2].copy_from_slice(&size.to_le_bytes());
}

/// The section at an offset of the header, magic stripped.
pub(crate) fn section(file: &[u8], offset: i64, section: Section) -> &[u8] {
    let bytes = &file[usize::try_from(offset).expect("offset")..];
    assert_eq!(bytes[..4], section.magic());
    &bytes[4..]
}
