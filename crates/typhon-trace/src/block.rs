//! Blocks: a 12-byte header and LZ4 data (block format, no frame) of whole records (format spec, "Block").
//!
//! Blocks are self-contained, so that they can be decoded in any order and on any number of threads. Everything here
//! is about one block at a time; finding the next one is the reader's work, helped by [`Boundary::of`].

use crate::trailer::Section;

/// Bytes of a block header: uncompressed size, compressed size, record count, 4 bytes each.
pub const BLOCK_HEADER_BYTES: usize = 12;
/// Largest uncompressed size that a reader accepts.
pub const MAX_BLOCK_BYTES: usize = 16 << 20;
/// Most bytes of events in a block written here: 256 KiB less the checksum marker.
pub const MAX_EVENT_BYTES: usize = 262_124;
/// Most events in a block written here: 8,192 less the checksum marker.
pub const MAX_EVENTS: usize = 8_191;
/// Most data bytes that are handed to the decoder: those of an incompressible block of [`MAX_BLOCK_BYTES`]. The decoder
/// adds up a length in 32 bits; with one byte more, nothing but 255s could overflow it.
const LZ4_INPUT_BYTES_MAX: usize = (u32::MAX / 255) as usize + 1;

/// What stands at the end of a block (or of the tables), decided by the next four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// A span name table: to be read here, blocks may follow.
    SpanNames,
    /// A section that is found through the header: the blocks end here.
    Trailer(Section),
    /// Zero: the blocks end here, in a tail that was never written.
    ZeroTail,
    /// The first field of a block header, sound or not.
    Block,
}

impl Boundary {
    /// Classifies the next four bytes.
    pub fn of(next: [u8; 4]) -> Self {
        match Section::of_magic(next) {
            Some(Section::SpanNames) => Self::SpanNames,
            Some(section) => Self::Trailer(section),
            None if next == [0; 4] => Self::ZeroTail,
            None => Self::Block,
        }
    }
}

/// The validated header of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHeader {
    /// Bytes of records, 1..=16 MiB.
    pub uncompressed_bytes: u32,
    /// Bytes of LZ4 data after the header.
    pub compressed_bytes: u32,
    /// Number of records as stated; the walk over the records decides.
    pub records: u32,
}

impl BlockHeader {
    /// Reads and validates a block header.
    ///
    /// # Errors
    /// [`BlockFault::BadHeader`] with the three numbers found.
    pub fn parse(bytes: &[u8; BLOCK_HEADER_BYTES]) -> Result<Self, BlockFault> {
        let word = |at: usize| i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let (uncompressed, compressed, records) = (word(0), word(4), word(8));
        let fault = BlockFault::BadHeader { uncompressed, compressed, records };
        let size = |value: i32| u32::try_from(value).map_err(|_| fault.clone());
        let (uncompressed_bytes, compressed_bytes) = (size(uncompressed)?, size(compressed)?);
        let records = size(records)?;
        let sound = (1..=MAX_BLOCK_BYTES as u32).contains(&uncompressed_bytes)
            && (1..=max_compressed_bytes(uncompressed_bytes)).contains(&compressed_bytes)
            && records <= uncompressed_bytes / crate::record::RECORD_HEADER_BYTES as u32;
        if sound { Ok(Self { uncompressed_bytes, compressed_bytes, records }) } else { Err(fault) }
    }

    /// The 12 bytes on disk.
    pub fn encode(&self) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.uncompressed_bytes.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.compressed_bytes.to_le_bytes());
        bytes[8..].copy_from_slice(&self.records.to_le_bytes());
        bytes
    }

    /// Bytes of the whole block on disk.
    pub fn total_bytes(&self) -> u64 {
        BLOCK_HEADER_BYTES as u64 + u64::from(self.compressed_bytes)
    }

    /// Decompresses the data of this block into `buffer`, which is reused from block to block and only grows.
    ///
    /// # Errors
    /// [`BlockFault::BadData`] unless the data is whole LZ4 and decodes to exactly the stated size.
    pub fn decompress<'b>(&self, data: &[u8], buffer: &'b mut Vec<u8>) -> Result<&'b [u8], BlockFault> {
        let expected = self.uncompressed_bytes as usize;
        if data.len() > LZ4_INPUT_BYTES_MAX {
            let reason = format!("{} bytes of data are more than any encoder writes", data.len());
            return Err(BlockFault::BadData { expected, reason });
        }
        if buffer.len() < expected {
            buffer.resize(expected, 0);
        }
        let target = &mut buffer[..expected];
        match lz4_flex::block::decompress_into(data, target) {
            Ok(decoded) if decoded == expected => Ok(target),
            Ok(decoded) => Err(BlockFault::BadData { expected, reason: format!("it decodes to {decoded}") }),
            Err(error) => Err(BlockFault::BadData { expected, reason: error.to_string() }),
        }
    }
}

/// Largest LZ4 size of `uncompressed` bytes: literals only, with a length byte per 255 of them.
fn max_compressed_bytes(uncompressed: u32) -> u32 {
    uncompressed + uncompressed / 255 + 16
}

/// Why a block cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlockFault {
    /// A number of the header is out of range.
    #[error(
        "block header with {uncompressed} bytes, {compressed} compressed, {records} records is out of range"
    )]
    BadHeader {
        /// Stated uncompressed size.
        uncompressed: i32,
        /// Stated compressed size.
        compressed: i32,
        /// Stated number of records.
        records: i32,
    },
    /// The data does not decode to the stated size.
    #[error("block data does not decode to {expected} bytes: {reason}")]
    BadData {
        /// Stated uncompressed size.
        expected: usize,
        /// What the decoder says.
        reason: String,
    },
}

/// Compresses blocks; keeps its output buffer from block to block.
#[derive(Debug, Default)]
pub struct BlockEncoder {
    out: Vec<u8>,
}

impl BlockEncoder {
    /// Compresses `records`, `count` whole records of at most [`MAX_BLOCK_BYTES`] in all, and returns the block:
    /// header and data. The same input gives the same bytes.
    pub fn encode(&mut self, records: &[u8], count: u32) -> &[u8] {
        debug_assert!((1..=MAX_BLOCK_BYTES).contains(&records.len()));
        let room = BLOCK_HEADER_BYTES + lz4_flex::block::get_maximum_output_size(records.len());
        if self.out.len() < room {
            self.out.resize(room, 0);
        }
        let (header, data) = self.out.split_at_mut(BLOCK_HEADER_BYTES);
        let compressed = match lz4_flex::block::compress_into(records, data) {
            Ok(compressed) => compressed,
            Err(error) => unreachable!("the output has the size that the encoder asks for: {error}"),
        };
        header.copy_from_slice(
            &BlockHeader {
                uncompressed_bytes: records.len() as u32,
                compressed_bytes: compressed as u32,
                records: count,
            }
            .encode(),
        );
        &self.out[..BLOCK_HEADER_BYTES + compressed]
    }
}

/// A block whose data is one run of LZ4 literals. Bytes and encoding are in one-to-one correspondence, which makes
/// every change of such a block visible; see [`crate::checksum`].
pub fn encode_literal_only(records: &[u8], count: u32) -> Vec<u8> {
    const TOKEN_MAX: usize = 15;
    let mut data = Vec::with_capacity(max_compressed_bytes(records.len() as u32) as usize);
    data.push((records.len().min(TOKEN_MAX) as u8) << 4);
    if let Some(mut rest) = records.len().checked_sub(TOKEN_MAX) {
        while rest >= 255 {
            data.push(255);
            rest -= 255;
        }
        data.push(rest as u8);
    }
    data.extend_from_slice(records);
    let header = BlockHeader {
        uncompressed_bytes: records.len() as u32,
        compressed_bytes: data.len() as u32,
        records: count,
    };
    [&header.encode()[..], &data].concat()
}
