use std::collections::HashMap;
use std::sync::Arc;

use super::blob::BlobHeader;
use super::cursor::Cursor;
use super::sequence::SequenceTracker;
use super::{Continuity, Metadata, NettraceError, NettraceFault};

/// Largest block that is accepted; runtimes send blocks of about 100 KiB.
pub const MAX_BLOCK_BYTES: usize = 16 << 20;

/// Metadata records held for one stream; a runtime has a few thousand kinds of event at most.
const MAX_METADATA: usize = 65_536;
/// Bytes of all metadata records of a stream; held in memory they take several times as much.
const MAX_METADATA_BYTES: usize = 16 << 20;
/// Longest type name of an object; the longest known one has 13 bytes.
const MAX_TYPE_NAME_BYTES: usize = 64;
const MAGIC: &[u8; 8] = b"Nettrace";
const SERIALIZATION: &[u8; 20] = b"!FastSerialization.1";
const PREAMBLE_BYTES: usize = MAGIC.len() + 4 + SERIALIZATION.len();
const TRACE_BODY_BYTES: usize = 48;
/// Newest `Trace` object that is understood.
const TRACE_VERSION: i32 = 5;
/// Newest block objects that are understood.
const BLOCK_VERSION: i32 = 2;

mod tag {
    pub(super) const NULL: u8 = 1;
    pub(super) const BEGIN: u8 = 5;
    pub(super) const END: u8 = 6;
}

/// The stream's first object: which process, which clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceInfo {
    /// Format version of the Trace object, 4 or 5.
    pub version: i32,
    /// Lowest reader version that the stream accepts.
    pub min_reader: i32,
    /// Wall clock when the session started.
    pub sync_utc: UtcTime,
    /// The target's monotonic clock at that same moment, ticks.
    pub sync_ticks: u64,
    /// Ticks per second of every timestamp in the stream; 1e9 on Linux. Never 0.
    pub ticks_per_second: u64,
    /// Bytes in a pointer of the target, 4 or 8.
    pub pointer_bytes: u32,
    /// Process id, as the target sees it.
    pub process_id: u32,
    /// Number of processors that the target sees.
    pub processors: u32,
    /// Period of the sample profiler, ns; of no meaning without it.
    pub cpu_sampling_period_ns: u32,
}

/// A UTC date and time of day as the runtime sends it, unchecked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it all
pub struct UtcTime {
    pub year: u16,
    pub month: u16,
    /// 0 = Sunday.
    pub day_of_week: u16,
    pub day: u16,
    pub hour: u16,
    pub minute: u16,
    pub second: u16,
    pub millisecond: u16,
}

/// Everything about an event except its kind and payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventHeader {
    /// When it happened, in ticks of the target's monotonic clock. Never before the previous event of the same
    /// capture thread (see [`Continuity::TimeReversed`]).
    pub timestamp: u64,
    /// Operating-system id of the thread that wrote the event.
    pub capture_thread: u64,
    /// Thread that the event is about; differs from the capture thread for CPU samples only.
    pub thread: u64,
    /// Number of the event on its capture thread, from 1.
    pub sequence: u32,
    /// Processor it ran on, `u32::MAX` where the runtime does not know (always so on Linux).
    pub processor: u32,
    /// Call stack reference; stacks themselves are not decoded.
    pub stack_id: u32,
    /// Activity and related activity, all zero when there is none.
    pub activity_ids: [[u8; 16]; 2],
    /// Nothing later in the stream is older than this event.
    pub sorted: bool,
    /// Whether events of this thread are missing right before it.
    pub continuity: Continuity,
}

/// One event, borrowed from the decoder.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// Which kind of event.
    pub metadata: &'a Arc<Metadata>,
    /// When and where.
    pub header: EventHeader,
    /// The event's own bytes; their layout follows from provider, event id and version.
    pub payload: &'a [u8],
}

/// Events of one thread that the runtime dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostEvents {
    /// Thread whose events are missing.
    pub capture_thread: u64,
    /// How many.
    pub count: u32,
}

/// A point in the stream at which everything older has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequencePoint<'a> {
    /// Its time, ticks; no later event is older.
    pub timestamp: u64,
    /// Events that should have come before this point and never did, per thread.
    pub lost: &'a [LostEvents],
}

/// What [`Decoder::next_item`] yields.
#[derive(Debug, Clone, Copy)]
pub enum Item<'a> {
    /// Always the first item.
    Trace(TraceInfo),
    /// An event, in stream order: in time order within its capture thread, not across threads.
    Event(Event<'a>),
    /// Everything older than this has been sent.
    SequencePoint(SequencePoint<'a>),
    /// The stream's own end mark; always the last item.
    End,
}

/// Push decoder: [`feed`](Self::feed) it bytes as they arrive, take items with [`next_item`](Self::next_item).
///
/// Items do not depend on how the stream is cut into chunks. After an error the decoder yields that error for ever.
#[derive(Debug)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Bytes of `buffer` that are done with.
    consumed: usize,
    /// Stream offset of `buffer[0]`.
    base: u64,
    phase: Phase,
    trace: Option<TraceInfo>,
    /// With the size of each one's payload.
    metadata: HashMap<u32, (Arc<Metadata>, usize)>,
    metadata_bytes: usize,
    sequence: SequenceTracker,
    lost: Vec<LostEvents>,
    failure: Option<NettraceError>,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Preamble,
    ObjectStart,
    TraceBody { version: i32, min_reader: i32 },
    BlockBody(BlockKind),
    Blobs(Blobs),
    ObjectEnd,
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Events,
    Metadata,
    SequencePoint,
    /// Call stacks, and types that a newer runtime may add.
    Skipped,
}

/// A block whose blobs are being yielded.
#[derive(Debug, Clone, Copy)]
struct Blobs {
    kind: BlockKind,
    compressed: bool,
    remaining: usize,
    min_timestamp: u64,
    max_timestamp: u64,
    header: BlobHeader,
}

/// A decoded item without its borrows.
enum Step {
    Trace(TraceInfo),
    Event { header: EventHeader, metadata_id: u32, payload_end: usize, payload_bytes: usize },
    SequencePoint(u64),
    End,
    NeedMore,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A decoder at the start of a stream.
    pub fn new() -> Self {
        Self {
            buffer: Vec::new(),
            consumed: 0,
            base: 0,
            phase: Phase::Preamble,
            trace: None,
            metadata: HashMap::new(),
            metadata_bytes: 0,
            sequence: SequenceTracker::default(),
            lost: Vec::new(),
            failure: None,
        }
    }

    /// Appends the next bytes of the stream. Take all items before feeding more, or they pile up in memory.
    pub fn feed(&mut self, bytes: &[u8]) {
        // Moving the rest down only once half is consumed keeps the cost linear however small the chunks are.
        if self.consumed > self.buffer.len() / 2 {
            self.buffer.drain(..self.consumed);
            self.base += self.consumed as u64;
            self.consumed = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next item, or `None` when more bytes are needed.
    ///
    /// # Errors
    /// The stream is malformed or of a version that this reader does not know. Items already taken stay valid.
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>, NettraceError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        match self.step() {
            Ok(step) => Ok(self.item(step)),
            Err(failure) => {
                self.failure = Some(failure.clone());
                Err(failure)
            }
        }
    }

    /// The stream's Trace object, once it has been decoded.
    pub fn trace(&self) -> Option<&TraceInfo> {
        self.trace.as_ref()
    }

    /// Whether the end mark was decoded.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    /// Stream offset of the first byte that has not been decoded.
    pub fn position(&self) -> u64 {
        self.base + self.consumed as u64
    }

    /// Bytes fed that wait for the rest of their object.
    pub fn pending_bytes(&self) -> usize {
        self.buffer.len() - self.consumed
    }

    fn item(&self, step: Step) -> Option<Item<'_>> {
        match step {
            Step::NeedMore => None,
            Step::Trace(trace) => Some(Item::Trace(trace)),
            Step::SequencePoint(timestamp) => {
                Some(Item::SequencePoint(SequencePoint { timestamp, lost: &self.lost }))
            }
            Step::End => Some(Item::End),
            Step::Event { header, metadata_id, payload_end, payload_bytes } => Some(Item::Event(Event {
                metadata: &self.metadata[&metadata_id].0,
                header,
                payload: &self.buffer[payload_end - payload_bytes..payload_end],
            })),
        }
    }

    fn step(&mut self) -> Result<Step, NettraceError> {
        loop {
            let step = match self.phase {
                Phase::Preamble => self.preamble()?,
                Phase::ObjectStart => self.object_start()?,
                Phase::TraceBody { version, min_reader } => self.trace_body(version, min_reader)?,
                Phase::BlockBody(kind) => self.block_body(kind)?,
                Phase::Blobs(blobs) => self.next_blob(blobs)?,
                Phase::ObjectEnd => self.object_end()?,
                Phase::Ended if self.pending_bytes() > 0 => {
                    return Err(self.cursor("").fault(NettraceFault::TrailingBytes));
                }
                Phase::Ended => Some(Step::NeedMore),
            };
            if let Some(step) = step {
                return Ok(step);
            }
        }
    }

    fn cursor(&self, what: &'static str) -> Cursor<'_> {
        Cursor::new(&self.buffer[self.consumed..], self.position(), what)
    }

    fn enter(&mut self, phase: Phase, consumed: usize) {
        self.consumed += consumed;
        self.phase = phase;
    }

    fn preamble(&mut self) -> Result<Option<Step>, NettraceError> {
        let bytes = &self.buffer[self.consumed..];
        let at = |offset: u64, fault| Err(NettraceError { offset, fault });
        if !MAGIC.starts_with(&bytes[..bytes.len().min(MAGIC.len())]) {
            return at(0, NettraceFault::NotNettrace);
        }
        if let Some(version) = bytes.get(8..16).filter(|version| version[..4] == [0; 4]) {
            // From version 6 on a zero takes the place of the serialisation header's length.
            let major = u32::from_le_bytes([version[4], version[5], version[6], version[7]]);
            return at(12, NettraceFault::UnsupportedVersion(major));
        }
        if bytes.len() < PREAMBLE_BYTES {
            return Ok(Some(Step::NeedMore));
        }
        if bytes[8..12] != (SERIALIZATION.len() as u32).to_le_bytes() || bytes[12..32] != *SERIALIZATION {
            return at(8, NettraceFault::BadSerializationHeader);
        }
        self.enter(Phase::ObjectStart, PREAMBLE_BYTES);
        Ok(None)
    }

    /// `begin begin null version minReader name end`, or the null tag that ends the stream.
    fn object_start(&mut self) -> Result<Option<Step>, NettraceError> {
        let mut cursor = self.cursor("object type");
        if cursor.remaining() == 0 {
            return Ok(Some(Step::NeedMore));
        }
        match cursor.u8()? {
            tag::BEGIN => {}
            tag::NULL if self.trace.is_some() => {
                self.enter(Phase::Ended, 1);
                return Ok(Some(Step::End));
            }
            tag::NULL => return Err(self.cursor("").fault(NettraceFault::TraceObjectMisplaced)),
            found => {
                let expected = "an object or the end of the stream";
                return Err(self.cursor("").fault(NettraceFault::UnexpectedTag { found, expected }));
            }
        }
        if cursor.remaining() < 14 {
            return Ok(Some(Step::NeedMore));
        }
        expect_tag(&mut cursor, tag::BEGIN, "the object's type")?;
        expect_tag(&mut cursor, tag::NULL, "the type's null type")?;
        let version = cursor.i32()?;
        let min_reader = cursor.i32()?;
        let name_bytes = cursor.length("type name length", MAX_TYPE_NAME_BYTES)?;
        if cursor.remaining() < name_bytes + 1 {
            return Ok(Some(Step::NeedMore));
        }
        let name = cursor.take(name_bytes)?;
        let (known, phase) = match name {
            b"Trace" => (TRACE_VERSION, Phase::TraceBody { version, min_reader }),
            b"EventBlock" => (BLOCK_VERSION, Phase::BlockBody(BlockKind::Events)),
            b"MetadataBlock" => (BLOCK_VERSION, Phase::BlockBody(BlockKind::Metadata)),
            b"SPBlock" => (BLOCK_VERSION, Phase::BlockBody(BlockKind::SequencePoint)),
            _ => (i32::MAX, Phase::BlockBody(BlockKind::Skipped)),
        };
        let is_trace = matches!(phase, Phase::TraceBody { .. });
        if is_trace != self.trace.is_none() {
            return Err(self.cursor("").fault(NettraceFault::TraceObjectMisplaced));
        }
        if is_trace && (version < 4 || min_reader > known) {
            let version = if version < 4 { version } else { min_reader };
            return Err(self.cursor("").fault(NettraceFault::UnsupportedVersion(version.max(0) as u32)));
        }
        if min_reader > known {
            let name = String::from_utf8_lossy(name).into_owned();
            let fault = NettraceFault::ReaderTooOld { name, needed: min_reader, known };
            return Err(self.cursor("").fault(fault));
        }
        expect_tag(&mut cursor, tag::END, "the end of the type")?;
        let consumed = cursor.position();
        self.enter(phase, consumed);
        Ok(None)
    }

    fn trace_body(&mut self, version: i32, min_reader: i32) -> Result<Option<Step>, NettraceError> {
        let mut cursor = self.cursor("Trace object");
        if cursor.remaining() < TRACE_BODY_BYTES {
            return Ok(Some(Step::NeedMore));
        }
        let trace = read_trace(&mut cursor, version, min_reader)?;
        self.trace = Some(trace);
        self.enter(Phase::ObjectEnd, TRACE_BODY_BYTES);
        Ok(Some(Step::Trace(trace)))
    }

    /// Waits for the whole block, then takes it apart or makes it the source of the next items.
    fn block_body(&mut self, kind: BlockKind) -> Result<Option<Step>, NettraceError> {
        let mut cursor = self.cursor("block size");
        if cursor.remaining() < 4 {
            return Ok(Some(Step::NeedMore));
        }
        let block_bytes = cursor.length("block size", MAX_BLOCK_BYTES)?;
        // Blocks are aligned relative to the start of the stream, not of the object.
        let padding = ((self.position() + 4).wrapping_neg() % 4) as usize;
        if cursor.remaining() < padding + block_bytes {
            return Ok(Some(Step::NeedMore));
        }
        cursor.take(padding)?;
        let start = cursor.position();
        let base = self.position() + start as u64;
        let block = cursor.take(block_bytes)?;
        match kind {
            BlockKind::Skipped => {
                self.enter(Phase::ObjectEnd, start + block_bytes);
                Ok(None)
            }
            BlockKind::SequencePoint => {
                let (timestamp, threads) = read_sequence_point(block, base)?;
                self.lost.clear();
                for (capture_thread, sequence) in threads {
                    let count = self.sequence.on_sequence_point(capture_thread, sequence);
                    if count > 0 {
                        self.lost.push(LostEvents { capture_thread, count });
                    }
                }
                self.enter(Phase::ObjectEnd, start + block_bytes);
                Ok(Some(Step::SequencePoint(timestamp)))
            }
            BlockKind::Events | BlockKind::Metadata => {
                let (header_bytes, blobs) = read_block_header(block, base, kind)?;
                self.enter(Phase::Blobs(blobs), start + header_bytes);
                Ok(None)
            }
        }
    }

    fn next_blob(&mut self, mut blobs: Blobs) -> Result<Option<Step>, NettraceError> {
        if blobs.remaining == 0 {
            self.enter(Phase::ObjectEnd, 0);
            return Ok(None);
        }
        let block = &self.buffer[self.consumed..self.consumed + blobs.remaining];
        let mut cursor = Cursor::new(block, self.position(), "event");
        if blobs.compressed {
            blobs.header.read_compressed(&mut cursor)?;
        } else {
            blobs.header.read_plain(&mut cursor)?;
        }
        let payload_base = self.position() + cursor.position() as u64;
        let payload = blobs.header.payload(&mut cursor)?;
        let header = blobs.header;
        let payload_end = self.consumed + cursor.position();
        let step = if blobs.kind == BlockKind::Metadata {
            let (metadata, size) = (Metadata::parse(payload, payload_base)?, payload.len());
            let replaced = self.metadata.insert(metadata.metadata_id, (Arc::new(metadata), size));
            self.metadata_bytes = self.metadata_bytes + size - replaced.map_or(0, |(_, size)| size);
            self.check_limit("number of metadata records", self.metadata.len(), MAX_METADATA)?;
            self.check_limit("bytes of metadata records", self.metadata_bytes, MAX_METADATA_BYTES)?;
            None
        } else {
            self.check_event(&blobs)?;
            Some(self.event_step(&header, payload_end))
        };
        let mut blob_bytes = payload_end - self.consumed;
        if !blobs.compressed {
            let padding = (self.position() + blob_bytes as u64).wrapping_neg() % 4;
            blob_bytes = (blob_bytes + padding as usize).min(blobs.remaining);
        }
        blobs.remaining -= blob_bytes;
        self.enter(Phase::Blobs(blobs), blob_bytes);
        Ok(step)
    }

    fn check_limit(&self, what: &'static str, value: usize, limit: usize) -> Result<(), NettraceError> {
        if value > limit {
            let (value, limit) = (value as i64, limit as i64);
            return Err(self.cursor("").fault(NettraceFault::LimitExceeded { what, value, limit }));
        }
        Ok(())
    }

    fn check_event(&self, blobs: &Blobs) -> Result<(), NettraceError> {
        let BlobHeader { metadata_id, timestamp, .. } = blobs.header;
        if !self.metadata.contains_key(&metadata_id) {
            return Err(self.cursor("").fault(NettraceFault::UnknownMetadata(metadata_id)));
        }
        if !(blobs.min_timestamp..=blobs.max_timestamp).contains(&timestamp) {
            let (min, max) = (blobs.min_timestamp, blobs.max_timestamp);
            return Err(self.cursor("").fault(NettraceFault::TimestampOutsideBlock { timestamp, min, max }));
        }
        Ok(())
    }

    fn event_step(&mut self, blob: &BlobHeader, payload_end: usize) -> Step {
        let mut timestamp = blob.timestamp;
        let continuity = self.sequence.on_event(blob.capture_thread, blob.sequence, &mut timestamp);
        let header = EventHeader {
            timestamp,
            capture_thread: blob.capture_thread,
            thread: blob.thread,
            sequence: blob.sequence,
            processor: blob.processor,
            stack_id: blob.stack_id,
            activity_ids: [blob.activity_id, blob.related_activity_id],
            sorted: blob.sorted,
            continuity,
        };
        let payload_bytes = blob.payload_bytes as usize;
        Step::Event { header, metadata_id: blob.metadata_id, payload_end, payload_bytes }
    }

    fn object_end(&mut self) -> Result<Option<Step>, NettraceError> {
        let mut cursor = self.cursor("end of object");
        if cursor.remaining() == 0 {
            return Ok(Some(Step::NeedMore));
        }
        expect_tag(&mut cursor, tag::END, "the end of the object")?;
        self.enter(Phase::ObjectStart, 1);
        Ok(None)
    }
}

fn expect_tag(cursor: &mut Cursor<'_>, tag: u8, expected: &'static str) -> Result<(), NettraceError> {
    let place = cursor.clone();
    match cursor.u8()? {
        found if found == tag => Ok(()),
        found => Err(place.fault(NettraceFault::UnexpectedTag { found, expected })),
    }
}

fn read_trace(cursor: &mut Cursor<'_>, version: i32, min_reader: i32) -> Result<TraceInfo, NettraceError> {
    let sync_utc = UtcTime {
        year: cursor.u16()?,
        month: cursor.u16()?,
        day_of_week: cursor.u16()?,
        day: cursor.u16()?,
        hour: cursor.u16()?,
        minute: cursor.u16()?,
        second: cursor.u16()?,
        millisecond: cursor.u16()?,
    };
    let sync_ticks = cursor.u64()?;
    let frequency_place = cursor.clone();
    let ticks_per_second = cursor.u64()?;
    if ticks_per_second == 0 || ticks_per_second > i64::MAX as u64 {
        return Err(frequency_place.fault(NettraceFault::BadTraceField("clock frequency")));
    }
    let pointer_place = cursor.clone();
    let pointer_bytes = cursor.u32()?;
    if !matches!(pointer_bytes, 4 | 8) {
        return Err(pointer_place.fault(NettraceFault::BadTraceField("pointer size")));
    }
    Ok(TraceInfo {
        version,
        min_reader,
        sync_utc,
        sync_ticks,
        ticks_per_second,
        pointer_bytes,
        process_id: cursor.u32()?,
        processors: cursor.u32()?,
        cpu_sampling_period_ns: cursor.u32()?,
    })
}

fn read_block_header(block: &[u8], base: u64, kind: BlockKind) -> Result<(usize, Blobs), NettraceError> {
    let mut cursor = Cursor::new(block, base, "block header");
    let header_bytes = usize::from(cursor.u16()?);
    let compressed = cursor.u16()? & 1 != 0;
    let min_timestamp = cursor.u64()?;
    let max_timestamp = cursor.u64()?;
    if header_bytes < cursor.position() || header_bytes > block.len() {
        return Err(Cursor::new(block, base, "").fault(NettraceFault::LimitExceeded {
            what: "block header size",
            value: header_bytes as i64,
            limit: block.len() as i64,
        }));
    }
    let remaining = block.len() - header_bytes;
    let header = BlobHeader::default();
    Ok((header_bytes, Blobs { kind, compressed, remaining, min_timestamp, max_timestamp, header }))
}

/// Time of the point, and the number that each thread has reached.
fn read_sequence_point(block: &[u8], base: u64) -> Result<(u64, Vec<(u64, u32)>), NettraceError> {
    let mut cursor = Cursor::new(block, base, "sequence point");
    let timestamp = cursor.u64()?;
    let limit = cursor.remaining().saturating_sub(4) / 12;
    let count = cursor.length("sequence point thread count", limit)?;
    let threads = (0..count).map(|_| Ok((cursor.u64()?, cursor.u32()?))).collect::<Result<_, _>>()?;
    Ok((timestamp, threads))
}
