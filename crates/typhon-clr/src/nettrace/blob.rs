use super::cursor::Cursor;
use super::{NettraceError, NettraceFault};

/// Fields of one blob's header, before they are resolved against metadata and sequence numbers.
///
/// With compressed headers a blob names only what changed; the rest repeats from the blob before it in the block.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BlobHeader {
    pub(super) metadata_id: u32,
    pub(super) sequence: u32,
    pub(super) capture_thread: u64,
    pub(super) processor: u32,
    pub(super) thread: u64,
    pub(super) stack_id: u32,
    pub(super) timestamp: u64,
    pub(super) activity_id: [u8; 16],
    pub(super) related_activity_id: [u8; 16],
    pub(super) sorted: bool,
    pub(super) payload_bytes: u32,
}

mod flag {
    pub(super) const METADATA_ID: u8 = 1;
    pub(super) const CAPTURE_THREAD_AND_SEQUENCE: u8 = 2;
    pub(super) const THREAD: u8 = 4;
    pub(super) const STACK_ID: u8 = 8;
    pub(super) const ACTIVITY_ID: u8 = 16;
    pub(super) const RELATED_ACTIVITY_ID: u8 = 32;
    pub(super) const SORTED: u8 = 64;
    pub(super) const PAYLOAD_BYTES: u8 = 128;
}

impl BlobHeader {
    /// Reads a compressed header into `self`, which holds the previous blob's (all zero at the start of a block).
    pub(super) fn read_compressed(&mut self, cursor: &mut Cursor<'_>) -> Result<(), NettraceError> {
        let flags = cursor.u8()?;
        let has = |bit: u8| flags & bit != 0;
        if has(flag::METADATA_ID) {
            self.metadata_id = cursor.varint32()?;
        }
        if has(flag::CAPTURE_THREAD_AND_SEQUENCE) {
            self.sequence = self.sequence.wrapping_add(cursor.varint32()?);
            self.capture_thread = cursor.varint64()?;
            self.processor = cursor.varint32()?;
        }
        if self.metadata_id != 0 {
            self.sequence = self.sequence.wrapping_add(1);
        }
        if has(flag::THREAD) {
            self.thread = cursor.varint64()?;
        }
        if has(flag::STACK_ID) {
            self.stack_id = cursor.varint32()?;
        }
        // A delta is negative, modulo 2^64, where the stream switches to another thread.
        self.timestamp = self.timestamp.wrapping_add(cursor.varint64()?);
        if has(flag::ACTIVITY_ID) {
            self.activity_id = cursor.id128()?;
        }
        if has(flag::RELATED_ACTIVITY_ID) {
            self.related_activity_id = cursor.id128()?;
        }
        self.sorted = has(flag::SORTED);
        if has(flag::PAYLOAD_BYTES) {
            self.payload_bytes = cursor.varint32()?;
        }
        Ok(())
    }

    /// Reads a header in the uncompressed form (block flag bit 0 clear).
    pub(super) fn read_plain(&mut self, cursor: &mut Cursor<'_>) -> Result<(), NettraceError> {
        // The size repeats what the payload length says; the payload length is the one that is used.
        cursor.u32()?;
        let metadata_id = cursor.u32()?;
        self.sorted = metadata_id >> 31 != 0;
        self.metadata_id = metadata_id & 0x7fff_ffff;
        self.sequence = cursor.u32()?;
        self.thread = cursor.u64()?;
        self.capture_thread = cursor.u64()?;
        self.processor = cursor.u32()?;
        self.stack_id = cursor.u32()?;
        self.timestamp = cursor.u64()?;
        self.activity_id = cursor.id128()?;
        self.related_activity_id = cursor.id128()?;
        self.payload_bytes = cursor.u32()?;
        Ok(())
    }

    /// Takes the payload that follows the header.
    pub(super) fn payload<'a>(&self, cursor: &mut Cursor<'a>) -> Result<&'a [u8], NettraceError> {
        let available = cursor.remaining();
        cursor.take(self.payload_bytes as usize).map_err(|error| NettraceError {
            fault: NettraceFault::LimitExceeded {
                what: "payload length",
                value: i64::from(self.payload_bytes),
                limit: available as i64,
            },
            ..error
        })
    }
}
