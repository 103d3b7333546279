//! Bytes that the format wants to be zero. Nothing reads them, and no checksum covers the padding, so that a log is as
//! good with others in their place; but whoever wrote those was no log, or a crash tore the write.

use super::{BLOCK_HEADER_BYTES, FRAME_HEADER_BYTES, SegmentHeader, u32_at};
use std::ops::Range;

/// Reserved bytes of the headers.
const SEGMENT_RESERVED: Range<usize> = 56..60;
const BLOCK_RESERVED: Range<usize> = 48..60;
const FRAME_RESERVED: Range<usize> = 20..24;

/// Some of them that are not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotZero {
    /// Offset of the first.
    pub(crate) first: usize,
    /// How many there are.
    pub(crate) bytes: u64,
}

/// Looks at the front of a segment up to its first block.
pub(crate) fn in_segment_header(front: &[u8]) -> Option<NotZero> {
    let mut seen = Seen { bytes: front, found: None };
    seen.look_at(SEGMENT_RESERVED);
    seen.look_at(SegmentHeader::BYTES..front.len());
    seen.found
}

/// Looks at a block whose checksums are right, with its padding as far as the file has it.
pub(crate) fn in_block(bytes: &[u8]) -> Option<NotZero> {
    let mut seen = Seen { bytes, found: None };
    seen.look_at(BLOCK_RESERVED);
    let length = u32_at(bytes, 4) as usize;
    let mut at = BLOCK_HEADER_BYTES;
    while at + FRAME_HEADER_BYTES <= length {
        seen.look_at(at + FRAME_RESERVED.start..at + FRAME_RESERVED.end);
        let end = at + u32_at(bytes, at) as usize;
        at = end.next_multiple_of(8);
        seen.look_at(end..at);
    }
    seen.look_at(length..bytes.len());
    seen.found
}

struct Seen<'a> {
    bytes: &'a [u8],
    found: Option<NotZero>,
}

impl Seen<'_> {
    fn look_at(&mut self, range: Range<usize>) {
        let Some(bytes) = self.bytes.get(range.clone()) else { return };
        let Some(at) = bytes.iter().position(|byte| *byte != 0) else { return };
        let found = self.found.get_or_insert(NotZero { first: range.start + at, bytes: 0 });
        found.bytes += bytes.iter().filter(|byte| **byte != 0).count() as u64;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A block with two frames, of 35 and of 32 bytes, and zeros up to 4096.
    fn block() -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        bytes[..48].fill(0xAA);
        bytes[60..64].fill(0xAA);
        for (at, length) in [(64, 35_u32), (104, 32)] {
            bytes[at..at + length as usize].fill(0xAA);
            bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
            bytes[at + 20..at + 24].fill(0);
        }
        bytes[4..8].copy_from_slice(&136_u32.to_le_bytes());
        bytes
    }

    #[test]
    fn every_byte_that_has_to_be_zero_is_looked_at_and_no_other() {
        let zeros: Vec<usize> =
            (48..60).chain(84..88).chain(99..104).chain(124..128).chain(136..4096).collect();
        assert_eq!(in_block(&block()), None);
        for at in (0..4096).filter(|at| !matches!(at, 4..8 | 64..68 | 104..108)) {
            let mut bytes = block();
            bytes[at] ^= 1;
            let expected = zeros.contains(&at).then_some(NotZero { first: at, bytes: 1 });
            assert_eq!(in_block(&bytes), expected, "byte {at}");
        }
        let header = |at: usize| {
            let mut bytes = [0; 4096];
            bytes[at] = 1;
            in_segment_header(&bytes)
        };
        for at in 0..4096 {
            let expected = (at >= 64 || (56..60).contains(&at)).then_some(NotZero { first: at, bytes: 1 });
            assert_eq!(header(at), expected, "byte {at}");
        }
    }

    #[test]
    fn a_file_that_was_cut_off_has_less_of_them() {
        assert_eq!(
            (in_block(&block()[..136]), in_segment_header(&[1; 64])),
            (None, Some(NotZero { first: 56, bytes: 4 }))
        );
        assert_eq!(in_segment_header(&[1; 10]), None);
    }
}
