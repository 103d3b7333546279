//! What producers bring: a frame that is ready, space for it, and where it went.

use crate::claim::Place;
use crate::format::{FRAME_HEADER_BYTES, FrameHeader, FrameKind};
use crate::stream::Stream;
use crate::{Lsn, Tsn};

/// A frame before it has a place: everything that can fail or take time is done.
#[derive(Debug, Clone, Copy)]
pub struct Draft<'a> {
    kind: FrameKind,
    seq: u64,
    /// Free for the caller.
    pub flags: u8,
    /// The unit of work; free for the caller.
    pub uow: u16,
    /// Records in the body; free for the caller.
    pub records: u32,
    body: &'a [u8],
    body_crc: u32,
}

impl<'a> Draft<'a> {
    fn new(kind: FrameKind, seq: u64, body: &'a [u8]) -> Self {
        Self { kind, seq, flags: 0, uow: 0, records: 0, body, body_crc: crc32c::crc32c(body) }
    }

    /// A transaction.
    pub fn commit(body: &'a [u8]) -> Self {
        Self::new(FrameKind::Commit, 0, body)
    }

    /// A part of the fence with this number. It has no effect until the fence's end.
    pub fn fence_part(fence: u64, body: &'a [u8]) -> Self {
        Self::new(FrameKind::FencePart, fence, body)
    }

    /// The end of a fence. How many parts it has, and of which fence, is for the body to say: see
    /// [`FenceEnd`](crate::FenceEnd).
    pub fn fence_end(body: &'a [u8]) -> Self {
        Self::new(FrameKind::FenceEnd, 0, body)
    }

    /// A frame of any kind that takes no sequence number, with a number of the caller's.
    ///
    /// `None` for kinds that take the next sequence number.
    pub fn other(kind: FrameKind, seq: u64, body: &'a [u8]) -> Option<Self> {
        (!kind.takes_tsn()).then(|| Self::new(kind, seq, body))
    }

    /// Bytes of stream that it takes, which is how much to reserve.
    pub fn span_bytes(&self) -> u64 {
        Self::span_of(self.body.len())
    }

    /// Bytes of stream that a body of this length takes.
    pub const fn span_of(body_bytes: usize) -> u64 {
        ((FRAME_HEADER_BYTES + body_bytes) as u64).next_multiple_of(8)
    }
}

/// Where a frame went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The end of the frame: durable when the watermark is here or beyond.
    pub lsn: Lsn,
    /// Its sequence number, if its kind takes one.
    pub tsn: Option<Tsn>,
}

impl Draft<'_> {
    /// Puts the frame into the stream. Infallible: space was reserved, and there is nothing left to do but to copy.
    pub(crate) fn put(&self, stream: &Stream) -> Appended {
        let takes_tsn = self.kind.takes_tsn();
        let header = |place: Place| {
            let header = FrameHeader {
                length: (FRAME_HEADER_BYTES + self.body.len()) as u32,
                kind: self.kind as u8,
                flags: self.flags,
                uow: self.uow,
                seq: if takes_tsn { place.tsn } else { self.seq },
                records: self.records,
                body_crc: self.body_crc,
            };
            header.to_words()
        };
        let place = stream.append(self.span_bytes(), takes_tsn, header, self.body);
        let lsn = Lsn(place.position + self.span_bytes());
        Appended { lsn, tsn: takes_tsn.then_some(Tsn(place.tsn)) }
    }
}
