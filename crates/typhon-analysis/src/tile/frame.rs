//! The answer: frames of 32 bytes and their entries.

use super::entries::{CounterEntry, SpanEntry, TickEntry};

/// Bytes in front of the entries.
pub const FRAME_HEADER_BYTES: usize = 32;
/// Lane of frames that belong to no lane.
pub const NO_LANE: u32 = u32::MAX;

/// Flag of a frame: the trace is still being indexed, or recorded.
pub const TILE_INCOMPLETE: u8 = 1;
/// Flag of a frame: a limit of the request was reached and this tile was left empty; ask one level coarser.
pub const TILE_CAPPED: u8 = 2;
/// Flag of a frame: data is missing somewhere in its time.
pub const TILE_NOTICE: u8 = 4;
/// Flag of a frame: the request names an older generation.
pub const TILE_STALE: u8 = 8;

const MAGIC: [u8; 4] = *b"TYTL";
const VERSION: u16 = 1;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Content {
    /// Spans.
    Spans = 0,
    /// Instants.
    Instants = 1,
    /// Times off the processor.
    OffCpu = 2,
    /// A gauge.
    Counter = 3,
    /// Ticks.
    Ticks = 4,
    /// Nothing: the answer is complete.
    End = 255,
}

/// Entries of a frame.
#[derive(Debug, Clone, PartialEq)]
pub enum Entries {
    /// Spans, instants or times off the processor, by (row, x0).
    Spans(Vec<SpanEntry>),
    /// Values of a gauge, by x.
    Counter(Vec<CounterEntry>),
    /// Ticks, by time.
    Ticks(Vec<TickEntry>),
    /// None: the last frame of an answer.
    End,
}

/// One frame of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Tile {
    /// What it holds.
    pub content: Content,
    /// `TILE_…` bits.
    pub flags: u8,
    /// Id of the request.
    pub request_id: u32,
    /// Lane; of the last frame the number of tiles sent.
    pub lane: u32,
    /// Tile; of the last frame the microseconds it took.
    pub tile: u64,
    /// Level.
    pub level: u8,
    /// Rows asked for.
    pub row_count: u8,
    /// First of them.
    pub first_row: u16,
    /// The entries.
    pub entries: Entries,
}

/// What is wrong with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not a tile of protocol version 1")]
pub struct TileFault;

/// The frame that ends an answer.
pub fn end_frame(request_id: u32, tiles: u32, took_us: u64, level: u8) -> Tile {
    Tile {
        content: Content::End,
        flags: 0,
        request_id,
        lane: tiles,
        tile: took_us,
        level,
        row_count: 0,
        first_row: 0,
        entries: Entries::End,
    }
}

impl Tile {
    /// Bytes of the frame.
    pub fn encoded_bytes(&self) -> usize {
        FRAME_HEADER_BYTES
            + match &self.entries {
                Entries::Spans(entries) => entries.len() * SpanEntry::BYTES,
                Entries::Counter(entries) => entries.len() * CounterEntry::BYTES,
                Entries::Ticks(entries) => entries.len() * TickEntry::BYTES,
                Entries::End => 0,
            }
    }

    /// Number of entries.
    pub fn entry_count(&self) -> usize {
        match &self.entries {
            Entries::Spans(entries) => entries.len(),
            Entries::Counter(entries) => entries.len(),
            Entries::Ticks(entries) => entries.len(),
            Entries::End => 0,
        }
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.reserve(self.encoded_bytes());
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[self.content as u8, self.flags]);
        out.extend_from_slice(&self.request_id.to_le_bytes());
        out.extend_from_slice(&self.lane.to_le_bytes());
        out.extend_from_slice(&self.tile.to_le_bytes());
        out.extend_from_slice(&[self.level, self.row_count]);
        out.extend_from_slice(&self.first_row.to_le_bytes());
        out.extend_from_slice(&(self.entry_count() as u32).to_le_bytes());
        match &self.entries {
            Entries::Spans(entries) => entries.iter().for_each(|entry| entry.encode(out)),
            Entries::Counter(entries) => entries.iter().for_each(|entry| entry.encode(out)),
            Entries::Ticks(entries) => entries.iter().for_each(|entry| entry.encode(out)),
            Entries::End => {}
        }
    }

    /// Reads one frame, which is all of `bytes`.
    ///
    /// # Errors
    /// When it is not such a frame.
    pub fn decode(bytes: &[u8]) -> Result<Self, TileFault> {
        let (head, rest) = bytes.split_first_chunk::<FRAME_HEADER_BYTES>().ok_or(TileFault)?;
        if head[..4] != MAGIC || head[4..6] != VERSION.to_le_bytes() {
            return Err(TileFault);
        }
        let u32_at = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let count = u32_at(28) as usize;
        let (content, entries) = match head[6] {
            0 => (Content::Spans, Entries::Spans(read(rest, count, SpanEntry::decode)?)),
            1 => (Content::Instants, Entries::Spans(read(rest, count, SpanEntry::decode)?)),
            2 => (Content::OffCpu, Entries::Spans(read(rest, count, SpanEntry::decode)?)),
            3 => (Content::Counter, Entries::Counter(read(rest, count, CounterEntry::decode)?)),
            4 => (Content::Ticks, Entries::Ticks(read(rest, count, TickEntry::decode)?)),
            255 if count == 0 && rest.is_empty() => (Content::End, Entries::End),
            _ => return Err(TileFault),
        };
        Ok(Self {
            content,
            flags: head[7],
            request_id: u32_at(8),
            lane: u32_at(12),
            tile: u64::from(u32_at(16)) | u64::from(u32_at(20)) << 32,
            level: head[24],
            row_count: head[25],
            first_row: u16::from_le_bytes([head[26], head[27]]),
            entries,
        })
    }
}

fn read<const N: usize, T>(
    bytes: &[u8],
    count: usize,
    decode: fn(&[u8; N]) -> T,
) -> Result<Vec<T>, TileFault> {
    let (entries, rest) = bytes.as_chunks::<N>();
    if entries.len() != count || !rest.is_empty() {
        return Err(TileFault);
    }
    Ok(entries.iter().map(decode).collect())
}
