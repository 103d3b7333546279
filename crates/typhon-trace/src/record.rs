//! One record: the 12-byte common header, the span extension, and the walk over a block of them.

use crate::registry;

/// Bytes of the common header: u16 size, u8 kind, u8 slot, i64 timestamp.
pub const RECORD_HEADER_BYTES: usize = 12;
/// Bytes of the span extension: i64 duration, u64 id, u64 parent, u8 flags.
pub const SPAN_EXTENSION_BYTES: usize = 25;
/// Bytes from the start of a span record to its payload when neither optional header part is present.
pub const SPAN_HEADER_BYTES: usize = RECORD_HEADER_BYTES + SPAN_EXTENSION_BYTES;
/// Largest legal record; 0xFFFF is reserved for the producers' wrap sentinel.
pub const MAX_RECORD_BYTES: usize = 65_534;
/// Span flag: 16 bytes of trace context follow the span extension.
pub const SPAN_FLAG_TRACE_CONTEXT: u8 = 0x01;
/// Span flag: a u16 source-location id follows (after the trace context, if any).
pub const SPAN_FLAG_SITE: u8 = 0x02;

/// A borrowed record of exactly its own size; at least the common header is present.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// Takes the record at the start of `bytes`; further bytes are left out.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, RecordFault> {
        let Some(head) = bytes.first_chunk::<2>() else {
            return Err(RecordFault::HeaderCut { available: bytes.len() });
        };
        let size = u16::from_le_bytes(*head) as usize;
        if !(RECORD_HEADER_BYTES..=MAX_RECORD_BYTES).contains(&size) {
            return Err(RecordFault::BadSize { size });
        }
        match bytes.get(..size) {
            Some(bytes) => Ok(Self { bytes }),
            None => Err(RecordFault::PastEnd { size, available: bytes.len() }),
        }
    }

    /// All bytes of the record, header included.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Size in bytes, 12..=65,534.
    #[inline]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Event kind id; may be unknown to the registry.
    #[inline]
    pub fn kind(&self) -> u8 {
        self.bytes[2]
    }

    /// Index of the producer's thread slot.
    #[inline]
    pub fn slot(&self) -> u8 {
        self.bytes[3]
    }

    /// Start timestamp in trace-clock ticks. Damaged files may hold negative values; they are kept as they are.
    #[inline]
    pub fn timestamp(&self) -> i64 {
        match self.bytes[4..].first_chunk::<8>() {
            Some(raw) => i64::from_le_bytes(*raw),
            None => 0,
        }
    }

    /// The span extension; `None` for instants, unknown kinds and spans shorter than their own header.
    #[inline]
    pub fn span(&self) -> Option<SpanHead<'a>> {
        if registry::is_span(self.kind()) { SpanHead::parse(self.bytes) } else { None }
    }

    /// Bytes after the common header (instants, unknown kinds) or after the whole span header.
    /// `None` for a span record shorter than its own header.
    #[inline]
    pub fn payload(&self) -> Option<&'a [u8]> {
        // Shapes and flags mix freely in a block, so a branch on either would often be predicted wrong.
        const OPTIONAL_PARTS_BYTES: [usize; 4] = [0, 16, 2, 18];
        let flags = self.bytes.get(SPAN_HEADER_BYTES - 1).copied().unwrap_or(0);
        let parts = usize::from(flags & (SPAN_FLAG_TRACE_CONTEXT | SPAN_FLAG_SITE));
        let span_bytes = SPAN_EXTENSION_BYTES + OPTIONAL_PARTS_BYTES[parts];
        let offset = RECORD_HEADER_BYTES + usize::from(registry::is_span(self.kind())) * span_bytes;
        self.bytes.get(offset..)
    }

    /// Is this a span record that its own size does not leave room for the span header? Such a record is damaged
    /// but can be stepped over.
    #[inline]
    pub fn is_short_span(&self) -> bool {
        if !registry::is_span(self.kind()) {
            return false;
        }
        // The flags are the last byte of the fixed header; this runs for every record that is read.
        match self.bytes.get(SPAN_HEADER_BYTES - 1) {
            None => true,
            Some(flags) => self.bytes.len() < SPAN_HEADER_BYTES + extension_bytes(*flags),
        }
    }
}

impl std::fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record")
            .field("kind", &self.kind())
            .field("slot", &self.slot())
            .field("timestamp", &self.timestamp())
            .field("size", &self.size())
            .finish()
    }
}

/// The header part that spans have and instants lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanHead<'a> {
    /// Duration in trace-clock ticks.
    pub duration: i64,
    /// Id of the span, opaque; 0 only in damaged records.
    pub span_id: u64,
    /// Id of the enclosing span, 0 at top level. May name a span that is not in the file.
    pub parent_span_id: u64,
    /// Raw flag byte; unknown bits are ignored.
    pub flags: u8,
    /// W3C trace id in textual byte order, when the span ran inside a distributed trace.
    pub trace_id: Option<&'a [u8; 16]>,
    /// Source-location id, an index into the manifest section.
    pub site: Option<u16>,
}

impl<'a> SpanHead<'a> {
    /// Reads the span extension of a whole record; `None` when the record is shorter than its header.
    #[inline]
    pub fn parse(record: &'a [u8]) -> Option<Self> {
        let fixed = record.first_chunk::<SPAN_HEADER_BYTES>()?;
        let word = |at: usize| {
            let mut raw = [0; 8];
            raw.copy_from_slice(&fixed[at..at + 8]);
            u64::from_le_bytes(raw)
        };
        let flags = fixed[36];
        let mut rest = &record[SPAN_HEADER_BYTES..];
        let mut trace_id = None;
        let mut site = None;
        if flags & SPAN_FLAG_TRACE_CONTEXT != 0 {
            let (id, tail) = rest.split_first_chunk::<16>()?;
            trace_id = Some(id);
            rest = tail;
        }
        if flags & SPAN_FLAG_SITE != 0 {
            let (id, _) = rest.split_first_chunk::<2>()?;
            site = Some(u16::from_le_bytes(*id));
        }
        Some(Self {
            duration: word(12) as i64,
            span_id: word(20),
            parent_span_id: word(28),
            flags,
            trace_id,
            site,
        })
    }

    /// Offset of the payload from the start of the record: 37, 39, 53 or 55.
    #[inline]
    pub fn payload_offset(&self) -> usize {
        SPAN_HEADER_BYTES + extension_bytes(self.flags)
    }
}

/// Bytes of the header parts that a flag byte announces: trace context and source-location id.
#[inline]
fn extension_bytes(flags: u8) -> usize {
    usize::from(flags & SPAN_FLAG_TRACE_CONTEXT) * 16 + usize::from(flags & SPAN_FLAG_SITE)
}

/// Why the walk of a block cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordFault {
    /// Fewer bytes are left than a size field needs.
    #[error("{available} bytes left, too few for a record header")]
    HeaderCut {
        /// Bytes left in the block.
        available: usize,
    },
    /// The size is below the header or one of the producers' sentinels.
    #[error("record size {size} is outside 12..=65,534")]
    BadSize {
        /// The size found.
        size: usize,
    },
    /// The record would run past the end of the block.
    #[error("record of {size} bytes runs past the end of the block, {available} bytes are left")]
    PastEnd {
        /// The size found.
        size: usize,
        /// Bytes left in the block.
        available: usize,
    },
}

/// Walks the records of one decompressed block. After `next` has returned `None`, [`RecordWalk::fault`] tells
/// whether the walk reached the end.
#[derive(Debug, Clone)]
pub struct RecordWalk<'a> {
    block: &'a [u8],
    offset: usize,
    fault: Option<RecordFault>,
}

impl<'a> RecordWalk<'a> {
    /// Starts at the first byte of a decompressed block.
    pub fn new(block: &'a [u8]) -> Self {
        Self { block, offset: 0, fault: None }
    }

    /// Offset in the block of the next record, or of the fault.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The fault that ended the walk early, if any.
    pub fn fault(&self) -> Option<RecordFault> {
        self.fault
    }
}

impl<'a> Iterator for RecordWalk<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        let rest = &self.block[self.offset..];
        if rest.is_empty() || self.fault.is_some() {
            return None;
        }
        match Record::parse(rest) {
            Ok(record) => {
                self.offset += record.size();
                Some(record)
            }
            Err(fault) => {
                self.fault = Some(fault);
                None
            }
        }
    }
}
