//! Frames: what one append writes.

use super::{FRAME_HEADER_BYTES, Invalid, u16_at, u32_at, u64_at};
use crate::Lsn;
use std::fmt;

/// What the checksum of a header covers.
const COVERED_BYTES: usize = 28;

/// What a frame is. Numbers are those on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// One transaction, whole; takes a sequence number.
    Commit = 1,
    /// A part of a fence, without effect until its [`FrameKind::FenceEnd`].
    FencePart = 2,
    /// Ends a fence and gives effect to the parts directly before it; takes a sequence number.
    FenceEnd = 3,
    /// A bulk load begins.
    BulkBegin = 4,
    /// A bulk load is complete.
    BulkEnd = 5,
    /// A change of the catalog.
    Catalog = 6,
}

/// A number that is no kind of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownKind(pub u8);

impl FrameKind {
    /// Does a frame of this kind take the next sequence number? Others carry one that the caller chose.
    pub const fn takes_tsn(self) -> bool {
        matches!(self, Self::Commit | Self::FenceEnd)
    }

    /// All kinds, by number.
    pub const ALL: [Self; 6] =
        [Self::Commit, Self::FencePart, Self::FenceEnd, Self::BulkBegin, Self::BulkEnd, Self::Catalog];
}

impl TryFrom<u8> for FrameKind {
    type Error = UnknownKind;

    fn try_from(number: u8) -> Result<Self, UnknownKind> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number).ok_or(UnknownKind(number))
    }
}

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The 32 bytes in front of a frame's body (`docs/log-format.md`, section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of header and body.
    pub length: u32,
    /// Number of the kind; unknown ones are skipped by readers of transactions.
    pub kind: u8,
    /// Free for the caller.
    pub flags: u8,
    /// The unit of work it belongs to; free for the caller.
    pub uow: u16,
    /// Sequence number, fence number or bulk id, by kind.
    pub seq: u64,
    /// Records in the body; free for the caller.
    pub records: u32,
    /// CRC-32C of the body.
    pub body_crc: u32,
}

impl FrameHeader {
    /// Bytes that a frame takes in the stream of positions: its length, rounded up to a multiple of 8.
    pub fn span_bytes(&self) -> u64 {
        u64::from(self.length).next_multiple_of(8)
    }

    /// The header's bytes as four little-endian words. The first holds the length, which is never 0.
    pub(crate) fn to_words(self) -> [u64; 4] {
        let first = u64::from(self.length)
            | u64::from(self.kind) << 32
            | u64::from(self.flags) << 40
            | u64::from(self.uow) << 48;
        let mut bytes = [0; FRAME_HEADER_BYTES];
        bytes[..8].copy_from_slice(&first.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.seq.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.records.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.body_crc.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..COVERED_BYTES]);
        let last = u64::from(self.body_crc) | u64::from(crc) << 32;
        [first, self.seq, u64::from(self.records), last]
    }

    /// Reads a header whose body follows somewhere.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(bytes: &[u8]) -> Result<Self, Invalid> {
        if bytes.len() < FRAME_HEADER_BYTES {
            return Err(Invalid::Length);
        }
        if crc32c::crc32c(&bytes[..COVERED_BYTES]) != u32_at(bytes, COVERED_BYTES) {
            return Err(Invalid::HeaderChecksum);
        }
        Self::parse(bytes)
    }

    /// Reads a header whose checksum was found right before.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Invalid> {
        if bytes.len() < FRAME_HEADER_BYTES {
            return Err(Invalid::Length);
        }
        let header = Self {
            length: u32_at(bytes, 0),
            kind: bytes[4],
            flags: bytes[5],
            uow: u16_at(bytes, 6),
            seq: u64_at(bytes, 8),
            records: u32_at(bytes, 16),
            body_crc: u32_at(bytes, 24),
        };
        if (header.length as usize) < FRAME_HEADER_BYTES { Err(Invalid::Length) } else { Ok(header) }
    }
}

/// A frame as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Its position: the end of the frame in the stream.
    pub lsn: Lsn,
    /// What is said about it.
    pub header: FrameHeader,
    /// What the caller wrote.
    pub body: &'a [u8],
}

impl Frame<'_> {
    /// The kind, if this version knows it.
    pub fn kind(&self) -> Option<FrameKind> {
        FrameKind::try_from(self.header.kind).ok()
    }
}

/// The frames in the bytes of a block, whose checksums are checked; ends at the first that is not right.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    bytes: &'a [u8],
    lsn: u64,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(bytes: &'a [u8], first_lsn: u64) -> Self {
        Self { bytes, lsn: first_lsn }
    }

    /// Bytes not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// The next frame.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'a>>, Invalid> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let header = FrameHeader::decode(self.bytes)?;
        let span = usize::try_from(header.span_bytes()).map_err(|_| Invalid::Length)?;
        let (frame, rest) = self.bytes.split_at_checked(span).ok_or(Invalid::Length)?;
        let body = &frame[FRAME_HEADER_BYTES..header.length as usize];
        if crc32c::crc32c(body) != header.body_crc && !crate::sync::planted(crate::sync::Fault::BodyUnchecked)
        {
            return Err(Invalid::BodyChecksum);
        }
        self.bytes = rest;
        self.lsn += span as u64;
        Ok(Some(Frame { lsn: Lsn(self.lsn), header, body }))
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        self.next_frame().unwrap_or(None)
    }
}
