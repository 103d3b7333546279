//! The bytes of a log on disk: `docs/log-format.md` says what they are, this module is their only reader and writer.
//!
//! Pure functions over slices: any bytes decode to a value or to the reason why not, and nothing here allocates.

mod block;
mod frame;
mod segment;
pub(crate) mod zeros;

pub(crate) use block::seal;
pub use block::{Block, BlockHeader};
pub use frame::{Frame, FrameHeader, FrameKind, Frames, UnknownKind};
pub use segment::SegmentHeader;
pub(crate) use zeros::NotZero;

use std::fmt;

/// Bytes at the front of a segment that belong to its header.
pub const SEGMENT_HEADER_BYTES: u64 = 4096;
/// Bytes in front of the frames of a block.
pub const BLOCK_HEADER_BYTES: usize = 64;
/// Bytes in front of the body of a frame.
pub const FRAME_HEADER_BYTES: usize = 32;
/// Blocks begin at multiples of this.
pub const BLOCK_ALIGNMENT: u64 = 4096;
/// Positions are multiples of this; headers that say otherwise were made up.
pub const POSITION_ALIGNMENT: u64 = 8;
/// The version of the format that this crate reads and writes.
pub const FORMAT_VERSION: u32 = 1;

/// The database that files belong to: chosen by chance when it is created.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct StoreId(pub [u8; 16]);

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreId({self})")
    }
}

/// Why bytes are not what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// The first bytes say that this is something else.
    #[error("no magic")]
    Magic,
    /// Written by another version.
    #[error("version {0}")]
    Version(u32),
    /// A length is impossible or reaches beyond what there is.
    #[error("impossible length")]
    Length,
    /// Numbers contradict each other.
    #[error("contradiction")]
    Contradiction,
    /// The checksum of a header differs.
    #[error("header checksum")]
    HeaderChecksum,
    /// The checksum of a frame's body differs.
    #[error("body checksum")]
    BodyChecksum,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

/// A fixed field. Callers have checked the length of what they decode.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}
