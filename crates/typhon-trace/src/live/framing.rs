//! Cutting a byte stream into frames, and keeping frames until the socket has taken them.

use std::collections::VecDeque;

use super::{FRAME_HEADER_BYTES, LiveError, MAX_CLIENT_PAYLOAD_BYTES, MAX_SERVER_PAYLOAD_BYTES};

/// Who sent a frame; decides how large it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the engine to the viewer: at most 8 MiB.
    FromServer,
    /// From the viewer to the engine: at most 64 KiB.
    FromClient,
}

impl Direction {
    /// Largest payload in this direction, bytes.
    pub const fn max_payload_bytes(self) -> usize {
        match self {
            Self::FromServer => MAX_SERVER_PAYLOAD_BYTES,
            Self::FromClient => MAX_CLIENT_PAYLOAD_BYTES,
        }
    }
}

/// One received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Type, see [`super::frame_type`]; may be unknown.
    pub kind: u8,
    /// Payload.
    pub payload: &'a [u8],
}

/// Finds the frames in a byte stream. Memory grows with the bytes received, never with a stated length.
#[derive(Debug)]
pub struct FrameDecoder {
    max_payload_bytes: usize,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that belong to frames already returned.
    consumed: usize,
}

impl FrameDecoder {
    /// A decoder for frames that the other side sent in `direction`.
    pub fn new(direction: Direction) -> Self {
        Self { max_payload_bytes: direction.max_payload_bytes(), buffer: Vec::new(), consumed: 0 }
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.consumed);
        self.consumed = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame; `None` when more bytes are needed.
    ///
    /// # Errors
    /// [`LiveError::BadLength`], on every call from then on.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, LiveError> {
        let rest = &self.buffer[self.consumed..];
        let Some((&[kind, a, b, c, d], rest)) = rest.split_first_chunk::<FRAME_HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = i32::from_le_bytes([a, b, c, d]);
        let limit = self.max_payload_bytes;
        let payload_bytes = usize::try_from(length).ok().filter(|&bytes| bytes <= limit);
        let payload_bytes = payload_bytes.ok_or(LiveError::BadLength { kind, length, limit })?;
        Ok(rest.get(..payload_bytes).map(|payload| {
            self.consumed += FRAME_HEADER_BYTES + payload_bytes;
            Frame { kind, payload }
        }))
    }

    /// Bytes of a frame that has not arrived whole. Not 0 at the end of the connection: the frame is lost.
    pub fn partial_bytes(&self) -> usize {
        self.buffer.len() - self.consumed
    }
}

/// A frame ready to be sent, header included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    bytes: Vec<u8>,
}

impl Outgoing {
    /// Builds a frame of any type.
    ///
    /// # Errors
    /// [`LiveError::TooLarge`].
    pub fn new(direction: Direction, kind: u8, payload: &[u8]) -> Result<Self, LiveError> {
        let limit = direction.max_payload_bytes();
        if payload.len() > limit {
            return Err(LiveError::TooLarge { kind, length: payload.len(), limit });
        }
        Ok(Self::within_limit(kind, payload))
    }

    /// A frame whose payload is known to be small.
    pub(super) fn within_limit(kind: u8, payload: &[u8]) -> Self {
        debug_assert!(payload.len() <= MAX_SERVER_PAYLOAD_BYTES);
        let mut bytes = Vec::with_capacity(FRAME_HEADER_BYTES + payload.len());
        bytes.push(kind);
        bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        bytes.extend_from_slice(payload);
        Self { bytes }
    }

    /// The bytes on the wire.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Frames on their way into a socket that takes as much as it likes.
///
/// A frame of which the other side has seen the first byte must be sent to its end; one that has not been started can
/// be dropped when the socket does not keep up.
#[derive(Debug, Default)]
pub struct Outbox {
    frames: VecDeque<Outgoing>,
    sent_of_first: usize,
}

impl Outbox {
    /// Adds a frame at the end.
    pub fn push(&mut self, frame: Outgoing) {
        self.frames.push_back(frame);
    }

    /// The bytes to be sent next; empty when nothing is left.
    pub fn pending(&self) -> &[u8] {
        self.frames.front().map_or(&[], |frame| &frame.bytes[self.sent_of_first..])
    }

    /// Tells that the socket took the first `count` bytes of [`Outbox::pending`]; more than that counts as all.
    pub fn advance(&mut self, count: usize) {
        self.sent_of_first += count.min(self.pending().len());
        if self.pending().is_empty() {
            self.frames.pop_front();
            self.sent_of_first = 0;
        }
    }

    /// Is everything sent?
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Drops the frames that have not been started and returns their number.
    pub fn drop_unstarted(&mut self) -> usize {
        let keep = usize::from(self.sent_of_first > 0);
        let dropped = self.frames.len().saturating_sub(keep);
        self.frames.truncate(keep);
        dropped
    }
}
