//! A block header and its data: what decodes also survives being encoded again, and nothing decodes to another size.
#![no_main]

use libfuzzer_sys::fuzz_target;
use typhon_trace::block::{BLOCK_HEADER_BYTES, BlockEncoder, BlockHeader, encode_literal_only};

/// Larger blocks take the same path, only more slowly.
const BLOCK_BYTES_MAX: u32 = 1 << 20;

fuzz_target!(|input: &[u8]| {
    let Some((head, data)) = input.split_first_chunk::<BLOCK_HEADER_BYTES>() else { return };
    let Ok(header) = BlockHeader::parse(head) else { return };
    assert_eq!(header.encode(), *head, "a header that was accepted is its own encoding");
    if header.uncompressed_bytes > BLOCK_BYTES_MAX {
        return;
    }
    let mut buffer = Vec::new();
    let Ok(records) = header.decompress(data, &mut buffer) else { return };
    assert_eq!(records.len(), header.uncompressed_bytes as usize);
    let compressed = BlockEncoder::default().encode(records, header.records).to_vec();
    for encoded in [compressed, encode_literal_only(records, header.records)] {
        assert_eq!(decode(&encoded), records);
    }
});

/// Decodes a block that was encoded here and therefore has to be sound.
fn decode(encoded: &[u8]) -> Vec<u8> {
    let (head, data) = encoded.split_first_chunk().expect("a block has a header");
    let header = BlockHeader::parse(head).expect("our own header is in range");
    assert_eq!(header.compressed_bytes as usize, data.len());
    let mut buffer = Vec::new();
    header.decompress(data, &mut buffer).expect("our own data decodes").to_vec()
}
