//! Entries of tiles.

/// Flag of an entry: several spans or instants, `index` is their number.
pub const FLAG_AGGREGATE: u8 = 1;
/// Flag of an entry: the span begins before the tile.
pub const FLAG_FROM_LEFT: u8 = 2;
/// Flag of an entry: the span ends behind the tile.
pub const FLAG_TO_RIGHT: u8 = 4;
/// Flag of an entry: the span has no end of its own.
pub const FLAG_NO_END: u8 = 8;
/// Flag of an entry: the row holds spans that overlap others without nesting.
pub const FLAG_OVERFLOW: u8 = 16;
/// Flag of an entry: the record names a source location.
pub const FLAG_SITE: u8 = 32;
/// Flag of an entry: the kind reports a fault.
pub const FLAG_FAULT: u8 = 64;
/// Flag of an entry: it completes an operation that another span of the same start kicked off.
pub const FLAG_TAIL: u8 = 128;

/// A span, an instant, or several of them. 16 bytes, usable as a vertex as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SpanEntry {
    /// First bucket, 0..=511.
    pub x0: u16,
    /// Bucket behind the last, 1..=512; `x0` for instants.
    pub x1: u16,
    /// Row minus the tile's first row.
    pub row: u8,
    /// `FLAG_…` bits.
    pub flags: u8,
    /// Name; of an aggregate that of its longest member.
    pub name: u16,
    /// Place in the row; of an aggregate the number of members, at most u32::MAX.
    pub index: u32,
    /// Share of the buckets that is covered, 0..=65,535.
    pub cover: u16,
    /// See [`crate::index::Name::group`].
    pub group: u16,
}

/// Values of a gauge in a bucket. 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CounterEntry {
    /// Bucket, 0..=511.
    pub x: u16,
    /// Number of values, at most 65,535; 0: the value from before the tile.
    pub samples: u16,
    /// Smallest.
    pub min: f32,
    /// Largest.
    pub max: f32,
    /// Last.
    pub last: f32,
}

/// Ticks that begin in a bucket. 32 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TickEntry {
    /// Shown number of the first one, at most u32::MAX.
    pub first_tick: u32,
    /// How many.
    pub ticks: u32,
    /// When the first one began, ns on the session's axis.
    pub start_ns: u64,
    /// Longest duration, ms.
    pub max_ms: f32,
    /// Sum of durations, ms.
    pub sum_ms: f32,
    /// Collections that began in them.
    pub collections: u16,
    /// Highest overload level.
    pub max_level: u8,
    /// Highest multiplier.
    pub max_multiplier: u8,
    /// 1: numbers are missing before one of them. 2: one of them has no end.
    pub flags: u32,
}

impl SpanEntry {
    /// Bytes of an entry.
    pub const BYTES: usize = 16;

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.x0.to_le_bytes());
        out.extend_from_slice(&self.x1.to_le_bytes());
        out.extend_from_slice(&[self.row, self.flags]);
        out.extend_from_slice(&self.name.to_le_bytes());
        out.extend_from_slice(&self.index.to_le_bytes());
        out.extend_from_slice(&self.cover.to_le_bytes());
        out.extend_from_slice(&self.group.to_le_bytes());
    }

    pub(super) fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Self {
            x0: u16_at(0),
            x1: u16_at(2),
            row: bytes[4],
            flags: bytes[5],
            name: u16_at(6),
            index: u32::from(u16_at(8)) | u32::from(u16_at(10)) << 16,
            cover: u16_at(12),
            group: u16_at(14),
        }
    }

    /// Spans or instants that the entry stands for.
    pub fn count(&self) -> u64 {
        if self.flags & FLAG_AGGREGATE != 0 { self.index.into() } else { 1 }
    }
}

impl CounterEntry {
    /// Bytes of an entry.
    pub const BYTES: usize = 16;

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.x.to_le_bytes());
        out.extend_from_slice(&self.samples.to_le_bytes());
        for value in [self.min, self.max, self.last] {
            out.extend_from_slice(&value.to_le_bytes());
        }
    }

    pub(super) fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let [a, b, c, d, rest @ ..] = *bytes;
        let float = |at: usize| f32::from_le_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]);
        Self {
            x: u16::from_le_bytes([a, b]),
            samples: u16::from_le_bytes([c, d]),
            min: float(0),
            max: float(4),
            last: float(8),
        }
    }
}

impl TickEntry {
    /// Bytes of an entry.
    pub const BYTES: usize = 32;

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.first_tick.to_le_bytes());
        out.extend_from_slice(&self.ticks.to_le_bytes());
        out.extend_from_slice(&self.start_ns.to_le_bytes());
        out.extend_from_slice(&self.max_ms.to_le_bytes());
        out.extend_from_slice(&self.sum_ms.to_le_bytes());
        out.extend_from_slice(&self.collections.to_le_bytes());
        out.extend_from_slice(&[self.max_level, self.max_multiplier]);
        out.extend_from_slice(&self.flags.to_le_bytes());
    }

    pub(super) fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let word = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        let u32_at = |at: usize| u32::from_le_bytes(word(at));
        Self {
            first_tick: u32_at(0),
            ticks: u32_at(4),
            start_ns: u64::from(u32_at(8)) | u64::from(u32_at(12)) << 32,
            max_ms: f32::from_le_bytes(word(16)),
            sum_ms: f32::from_le_bytes(word(20)),
            collections: u32_at(24) as u16,
            max_level: bytes[26],
            max_multiplier: bytes[27],
            flags: u32_at(28),
        }
    }
}
