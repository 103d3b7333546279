//! The front of a file. Whatever is read can be written, and from then on reading and writing change nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use typhon_trace::header::{FileHeader, HEADER_BYTES};
use typhon_trace::tables::Tables;

fuzz_target!(|front: &[u8]| {
    let Ok(header) = FileHeader::parse(front) else { return };
    let written = header.encode();
    let again = FileHeader::parse(&written).expect("our own header parses");
    assert_eq!(again.encode(), written);

    let mut rest = &front[HEADER_BYTES..];
    let before = rest.len();
    let read = Tables::read(&mut rest).expect("reading from memory has no I/O errors");
    assert!(read.raw.len() <= before);
    assert!(front[HEADER_BYTES..].starts_with(&read.raw), "the raw bytes are those of the file");
    for offset in &read.routing_id_offsets {
        assert!(offset + 2 <= read.raw.len());
    }
    let Ok(written) = read.tables.encode() else { return };
    let again = Tables::read(&mut written.bytes.as_slice()).expect("reading from memory has no I/O errors");
    assert_eq!(again.cut, None);
    assert_eq!(again.routing_id_offsets, written.routing_id_offsets);
    let twice = again.tables.encode().expect("what was encoded once encodes again");
    assert_eq!(twice.bytes, written.bytes);
});
