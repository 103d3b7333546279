//! Blocks: what one write puts on disk.

use super::frame::{FrameKind, Frames};
use super::{
    BLOCK_ALIGNMENT, BLOCK_HEADER_BYTES, FRAME_HEADER_BYTES, Invalid, POSITION_ALIGNMENT, StoreId, u32_at,
    u64_at,
};
use crate::sync::{Fault, planted};

const MAGIC: [u8; 4] = *b"TYBK";
/// What the checksum covers of the header.
const COVERED_BYTES: usize = 60;
/// Everything before the block was durable when it was written.
const FOLLOWS_DURABLE: u32 = 1;

/// The 64 bytes in front of a block's frames (`docs/log-format.md`, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHeader {
    /// Bytes of header and frames, without the padding up to the next multiple of 4096.
    pub length: u32,
    /// Position at which the first frame begins.
    pub first_lsn: u64,
    /// Position at which the last frame ends.
    pub end_lsn: u64,
    /// The segment it was written to.
    pub segment: u64,
    /// The open that wrote it.
    pub open_epoch: u32,
    /// How many frames.
    pub frames: u32,
    /// Checksum of the block before it; 0 in the first block of an open.
    pub previous_crc: u32,
    /// Everything before it was durable when it was written (bit 0 of the flags).
    pub follows_durable: bool,
    /// Its own checksum, over the header and the headers of all frames without their checksums.
    pub crc: u32,
}

impl BlockHeader {
    /// Reads a header; whether the checksum is right shows with the frames, see [`Block::decode`].
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(bytes: &[u8]) -> Result<Self, Invalid> {
        if bytes.len() < BLOCK_HEADER_BYTES {
            return Err(Invalid::Length);
        }
        if bytes[..4] != MAGIC {
            return Err(Invalid::Magic);
        }
        let header = Self {
            length: u32_at(bytes, 4),
            first_lsn: u64_at(bytes, 8),
            end_lsn: u64_at(bytes, 16),
            segment: u64_at(bytes, 24),
            open_epoch: u32_at(bytes, 32),
            frames: u32_at(bytes, 36),
            previous_crc: u32_at(bytes, 40),
            follows_durable: u32_at(bytes, 44) & FOLLOWS_DURABLE != 0,
            crc: u32_at(bytes, COVERED_BYTES),
        };
        let frames_bytes = u64::from(header.length).checked_sub(BLOCK_HEADER_BYTES as u64);
        if frames_bytes.is_none_or(|bytes| bytes < FRAME_HEADER_BYTES as u64) {
            return Err(Invalid::Length);
        }
        let is_aligned = header.first_lsn.is_multiple_of(POSITION_ALIGNMENT);
        if !is_aligned || header.end_lsn.checked_sub(header.first_lsn) != frames_bytes {
            return Err(Invalid::Contradiction);
        }
        Ok(header)
    }

    /// Bytes from this block's beginning to where the next one may begin.
    pub fn padded_bytes(&self) -> u64 {
        u64::from(self.length).next_multiple_of(BLOCK_ALIGNMENT)
    }

    /// Writes the header, with an empty checksum.
    fn encode(&self, bytes: &mut [u8]) {
        bytes[..BLOCK_HEADER_BYTES].fill(0);
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.first_lsn.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.end_lsn.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.segment.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.open_epoch.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.frames.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.previous_crc.to_le_bytes());
        bytes[44..48].copy_from_slice(&u32::from(self.follows_durable).to_le_bytes());
    }
}

/// Completes a block in place: `bytes` has room for the header, then the frames, whose headers and bodies carry
/// checksums of their own. Returns the block's checksum; whatever `header` says of it is ignored.
pub(crate) fn seal(header: &BlockHeader, bytes: &mut [u8], store: StoreId) -> u32 {
    header.encode(bytes);
    let mut crc = crc32c::crc32c_append(store_seed(store), &bytes[..COVERED_BYTES]);
    let mut rest = &bytes[BLOCK_HEADER_BYTES..header.length as usize];
    while rest.len() >= FRAME_HEADER_BYTES {
        let span = (u32_at(rest, 0) as usize).next_multiple_of(8);
        crc = crc32c::crc32c_append(crc, listed(rest));
        rest = rest.get(span..).unwrap_or_default();
    }
    bytes[COVERED_BYTES..BLOCK_HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    crc
}

/// What the checksum of a block covers of a frame: its header without the header's own checksum. With that it would
/// cover nothing: bytes followed by their CRC take a CRC to the same value, whatever they are.
fn listed(frame: &[u8]) -> &[u8] {
    &frame[..FRAME_HEADER_BYTES - 4]
}

/// Blocks of another database never have a right checksum.
fn store_seed(store: StoreId) -> u32 {
    crc32c::crc32c(&store.0)
}

/// A block all of whose checksums are right.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// What is said about it.
    pub header: BlockHeader,
    frames: &'a [u8],
    next_tsn: u64,
}

impl<'a> Block<'a> {
    /// Reads and checks a block: its header, every frame, and that they fill it exactly.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(bytes: &'a [u8], store: StoreId) -> Result<Self, Invalid> {
        let header = BlockHeader::decode(bytes)?;
        let bytes = bytes.get(..header.length as usize).ok_or(Invalid::Length)?;
        let mut crc = crc32c::crc32c_append(store_seed(store), &bytes[..COVERED_BYTES]);
        let mut frames = Frames::new(&bytes[BLOCK_HEADER_BYTES..], header.first_lsn);
        let (mut count, mut next_tsn) = (0, 0);
        loop {
            let before = frames.rest();
            let Some(frame) = frames.next_frame()? else { break };
            if frame.kind().is_some_and(FrameKind::takes_tsn) {
                next_tsn = frame.header.seq.saturating_add(1).max(next_tsn);
            }
            crc = crc32c::crc32c_append(crc, listed(before));
            count += 1;
        }
        if count != header.frames {
            return Err(Invalid::Contradiction);
        }
        if crc != header.crc && !planted(Fault::ListUnchecked) {
            return Err(Invalid::HeaderChecksum);
        }
        Ok(Self { header, frames: &bytes[BLOCK_HEADER_BYTES..], next_tsn })
    }

    /// Above every sequence number of its frames; 0 without any.
    pub(crate) fn next_tsn(&self) -> u64 {
        self.next_tsn
    }

    /// Its frames, in order.
    pub fn frames(&self) -> Frames<'a> {
        Frames::new(self.frames, self.header.first_lsn)
    }
}
