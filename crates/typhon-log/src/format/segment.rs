//! The header of a segment.

use super::{FORMAT_VERSION, Invalid, POSITION_ALIGNMENT, StoreId, array, u32_at, u64_at};

const MAGIC: [u8; 4] = *b"TYFW";
/// What the checksum covers.
const COVERED_BYTES: usize = 60;

/// The first 64 bytes of a segment file; zeros up to 4096 follow (`docs/log-format.md`, section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The database.
    pub store: StoreId,
    /// The segment's number, from 1; 0 marks a spare: a file prepared to become a segment.
    pub id: u64,
    /// Position of the first frame.
    pub first_lsn: u64,
    /// The layout that record bodies follow; opaque to the log.
    pub schema_epoch: u32,
    /// The open, counted from 1, that wrote the segment.
    pub open_epoch: u32,
    /// Length of the file; no block reaches beyond.
    pub size_bytes: u64,
}

impl SegmentHeader {
    /// Bytes of the header that are not zero by definition.
    pub const BYTES: usize = 64;

    /// Is the file a spare?
    pub fn is_spare(&self) -> bool {
        self.id == 0
    }

    /// May these be the first bytes of a file whose header was about to be written? It is written over zeros or an older
    /// header, and a process may end after any byte of it. Anything else was never a segment.
    pub fn may_have_begun(bytes: &[u8]) -> bool {
        let first = &bytes[..bytes.len().min(MAGIC.len())];
        let written = first.iter().zip(MAGIC).take_while(|(byte, magic)| **byte == *magic).count();
        first[written..].iter().all(|byte| *byte == 0)
    }

    /// Writes the header to the front of `bytes`, which has at least [`SegmentHeader::BYTES`].
    pub fn encode(&self, bytes: &mut [u8]) {
        bytes[..Self::BYTES].fill(0);
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[8..24].copy_from_slice(&self.store.0);
        bytes[24..32].copy_from_slice(&self.id.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.first_lsn.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.schema_epoch.to_le_bytes());
        bytes[44..48].copy_from_slice(&self.open_epoch.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.size_bytes.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..COVERED_BYTES]);
        bytes[COVERED_BYTES..Self::BYTES].copy_from_slice(&crc.to_le_bytes());
    }

    /// Reads a header.
    ///
    /// # Errors
    /// What is wrong with it; the version is only believed if the checksum is right.
    pub fn decode(bytes: &[u8]) -> Result<Self, Invalid> {
        if bytes.len() < Self::BYTES {
            return Err(Invalid::Length);
        }
        if bytes[..4] != MAGIC {
            return Err(Invalid::Magic);
        }
        if crc32c::crc32c(&bytes[..COVERED_BYTES]) != u32_at(bytes, COVERED_BYTES) {
            return Err(Invalid::HeaderChecksum);
        }
        let version = u32_at(bytes, 4);
        if version != FORMAT_VERSION {
            return Err(Invalid::Version(version));
        }
        let first_lsn = u64_at(bytes, 32);
        if !first_lsn.is_multiple_of(POSITION_ALIGNMENT) {
            return Err(Invalid::Contradiction);
        }
        Ok(Self {
            store: StoreId(array(bytes, 8)),
            id: u64_at(bytes, 24),
            first_lsn,
            schema_epoch: u32_at(bytes, 40),
            open_epoch: u32_at(bytes, 44),
            size_bytes: u64_at(bytes, 48),
        })
    }
}
