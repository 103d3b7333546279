//! Writing records: the traits that every owned event implements, and the header in front of the payload.

use super::wire::Wire;
use crate::record::{
    MAX_RECORD_BYTES, RECORD_HEADER_BYTES, SPAN_FLAG_SITE, SPAN_FLAG_TRACE_CONTEXT, SPAN_HEADER_BYTES,
    SpanHead,
};

/// Bytes of the trace context of a span.
const TRACE_CONTEXT_BYTES: usize = 16;
/// Bytes of the source-location id of a span.
const SITE_BYTES: usize = 2;
/// Longest name that is written, of a thread or a span, in bytes of UTF-8; longer ones are cut between two characters
/// (brief 02, section 4). Readers take any length.
pub const MAX_NAME_BYTES: usize = 255;
/// Largest payload of an instant.
pub(super) const MAX_INSTANT_PAYLOAD_BYTES: usize = MAX_RECORD_BYTES - RECORD_HEADER_BYTES;

/// The destination is shorter than the record. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the record needs {needed} bytes, the buffer has {available}")]
pub struct BufferTooSmall {
    /// Bytes that the record takes.
    pub needed: usize,
    /// Bytes of the buffer.
    pub available: usize,
}

/// An event that can be written. Implemented by the owned form of every live kind.
pub trait Event {
    /// Id of the kind.
    const KIND: u8;

    /// Exact size of the payload.
    fn payload_bytes(&self) -> usize;

    /// Writes the payload in its current full layout to the start of `out` and returns its size.
    fn encode_payload(&self, out: &mut [u8]) -> Result<usize, BufferTooSmall>;
}

/// An event that marks a point in time.
pub trait InstantEvent: Event {
    /// Exact size of the record.
    #[inline]
    fn record_bytes(&self) -> usize {
        RECORD_HEADER_BYTES + self.payload_bytes()
    }

    /// Writes a whole record to the start of `out` and returns its size.
    ///
    /// `slot` is the producer's thread slot, `timestamp` is in trace-clock ticks.
    #[inline]
    fn encode(&self, slot: u8, timestamp: i64, out: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let size = self.record_bytes();
        let out = exactly(out, size)?;
        let (header, payload) = out.split_at_mut(RECORD_HEADER_BYTES);
        put_common_header(header, size, Self::KIND, slot, timestamp);
        self.encode_payload(payload)?;
        Ok(size)
    }
}

/// An event that has a duration.
pub trait SpanEvent: Event {
    /// Exact size of the record.
    #[inline]
    fn record_bytes(&self, span: &SpanFields) -> usize {
        span.header_bytes() + self.payload_bytes()
    }

    /// Writes a whole record to the start of `out` and returns its size.
    ///
    /// `slot` is the producer's thread slot, `start` is in trace-clock ticks.
    #[inline]
    fn encode(
        &self,
        slot: u8,
        start: i64,
        span: &SpanFields,
        out: &mut [u8],
    ) -> Result<usize, BufferTooSmall> {
        let size = self.record_bytes(span);
        let out = exactly(out, size)?;
        let (header, payload) = out.split_at_mut(span.header_bytes());
        put_common_header(header, size, Self::KIND, slot, start);
        span.put(header);
        self.encode_payload(payload)?;
        Ok(size)
    }
}

/// What the header of a span says besides its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpanFields {
    /// Trace-clock ticks from start to end.
    pub duration: i64,
    /// Id of the span: slot << 56 | counter of the slot; never 0.
    pub span_id: u64,
    /// Id of the enclosing span, 0 at top level.
    pub parent_span_id: u64,
    /// W3C trace id in textual byte order, when the span ran inside a distributed trace.
    pub trace_id: Option<[u8; TRACE_CONTEXT_BYTES]>,
    /// Source-location id.
    pub site: Option<u16>,
}

impl SpanFields {
    /// Bytes from the start of the record to its payload: 37, 39, 53 or 55.
    #[inline]
    pub fn header_bytes(&self) -> usize {
        let trace_context = if self.trace_id.is_some() { TRACE_CONTEXT_BYTES } else { 0 };
        SPAN_HEADER_BYTES + trace_context + if self.site.is_some() { SITE_BYTES } else { 0 }
    }

    /// Writes everything behind the common header; `header` has exactly [`Self::header_bytes`].
    #[inline]
    fn put(&self, header: &mut [u8]) {
        self.duration.write(&mut header[12..]);
        self.span_id.write(&mut header[20..]);
        self.parent_span_id.write(&mut header[28..]);
        header[36] = 0;
        let mut end = SPAN_HEADER_BYTES;
        if let Some(trace_id) = &self.trace_id {
            header[36] |= SPAN_FLAG_TRACE_CONTEXT;
            header[end..end + TRACE_CONTEXT_BYTES].copy_from_slice(trace_id);
            end += TRACE_CONTEXT_BYTES;
        }
        if let Some(site) = self.site {
            header[36] |= SPAN_FLAG_SITE;
            site.write(&mut header[end..]);
        }
    }
}

impl From<SpanHead<'_>> for SpanFields {
    fn from(head: SpanHead<'_>) -> Self {
        Self {
            duration: head.duration,
            span_id: head.span_id,
            parent_span_id: head.parent_span_id,
            trace_id: head.trace_id.copied(),
            site: head.site,
        }
    }
}

/// The first `size` bytes of a destination.
#[inline]
pub(super) fn exactly(out: &mut [u8], size: usize) -> Result<&mut [u8], BufferTooSmall> {
    let available = out.len();
    out.get_mut(..size).ok_or(BufferTooSmall { needed: size, available })
}

/// Writes the 12 bytes that every record starts with.
#[inline]
pub(crate) fn put_common_header(header: &mut [u8], size: usize, kind: u8, slot: u8, timestamp: i64) {
    debug_assert!(size <= MAX_RECORD_BYTES, "every payload is bounded by its type");
    (size as u16).write(header);
    header[2] = kind;
    header[3] = slot;
    timestamp.write(&mut header[4..]);
}
