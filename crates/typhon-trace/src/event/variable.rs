//! Entries of the variable parts: gauges of kind 76, names of kinds 77 and 246, evaluators of kind 247
//! (brief 01 §3.5).

use std::{borrow::Cow, fmt, iter::FusedIterator};

use super::{
    enums::CompareOp,
    wire::{PackedList, Wire},
};
use crate::registry::GaugeValueKind;

/// Text inside a record. It should be UTF-8, but a damaged or foreign file may hold anything.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Text<'a>(pub &'a [u8]);

impl<'a> Text<'a> {
    /// The text, with replacement characters where it is not UTF-8.
    pub fn to_str_lossy(self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.0)
    }

    /// The text if it is UTF-8.
    pub fn as_str(self) -> Option<&'a str> {
        std::str::from_utf8(self.0).ok()
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_str_lossy())
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.to_str_lossy(), f)
    }
}

/// The longest prefix of `text` that fits into `limit` bytes without splitting a character.
pub(crate) fn cut_at_char(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

/// Value of a gauge; the variant is its encoding on the wire, and no more than that: the unit is in the gauge's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GaugeValue {
    /// A count that fits 32 bits.
    U32Count(u32),
    /// Anything that needs 64 bits: bytes, but also totals such as TxChainCommitTotal.
    U64Bytes(u64),
    /// A number that may be negative.
    I64Signed(i64),
    /// Percent × 100.
    U32PercentHundredths(u32),
}

impl GaugeValue {
    /// The encoding.
    pub fn kind(self) -> GaugeValueKind {
        match self {
            Self::U32Count(_) => GaugeValueKind::U32Count,
            Self::U64Bytes(_) => GaugeValueKind::U64Bytes,
            Self::I64Signed(_) => GaugeValueKind::I64Signed,
            Self::U32PercentHundredths(_) => GaugeValueKind::U32PercentHundredths,
        }
    }

    /// The number, whatever its encoding.
    pub fn as_i128(self) -> i128 {
        match self {
            Self::U32Count(value) | Self::U32PercentHundredths(value) => value.into(),
            Self::U64Bytes(value) => value.into(),
            Self::I64Signed(value) => value.into(),
        }
    }
}

/// One entry of a gauge snapshot (kind 76).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gauge {
    /// Gauge id; see [`crate::registry::gauge`]. May be unknown to the registry.
    pub id: u16,
    /// Its value.
    pub value: GaugeValue,
}

impl Gauge {
    /// Bytes of id and value kind in front of the value.
    const PREFIX_BYTES: usize = 3;

    /// Bytes on the wire.
    pub fn wire_bytes(&self) -> usize {
        Self::PREFIX_BYTES + self.value.kind().value_bytes()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let id = u16::read(bytes)?;
        let kind = GaugeValueKind::from_wire(*bytes.get(2)?)?;
        let value = &bytes[Self::PREFIX_BYTES..];
        let value = match kind {
            GaugeValueKind::U32Count => GaugeValue::U32Count(u32::read(value)?),
            GaugeValueKind::U64Bytes => GaugeValue::U64Bytes(u64::read(value)?),
            GaugeValueKind::I64Signed => GaugeValue::I64Signed(i64::read(value)?),
            GaugeValueKind::U32PercentHundredths => GaugeValue::U32PercentHundredths(u32::read(value)?),
        };
        Some(Self { id, value })
    }

    /// Writes the entry to the start of `out`, which has room for it, and returns the rest.
    pub(crate) fn write<'o>(&self, out: &'o mut [u8]) -> &'o mut [u8] {
        let (entry, rest) = out.split_at_mut(self.wire_bytes());
        self.id.write(entry);
        entry[2] = self.value.kind().to_wire();
        let value = &mut entry[Self::PREFIX_BYTES..];
        match self.value {
            GaugeValue::U32Count(number) | GaugeValue::U32PercentHundredths(number) => number.write(value),
            GaugeValue::U64Bytes(number) => number.write(value),
            GaugeValue::I64Signed(number) => number.write(value),
        }
        rest
    }
}

/// Entries of a gauge snapshot. Ends early at an entry whose value kind is unknown, since its length is unknown
/// too, and at one that runs past the record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Gauges<'a> {
    rest: &'a [u8],
    left: u16,
}

impl<'a> Gauges<'a> {
    pub(crate) fn new(bytes: &'a [u8], count: u16) -> Self {
        Self { rest: bytes, left: count }
    }

    /// Entries announced but not yet delivered. Not zero at the end of the iteration: the snapshot ended early.
    pub fn left(&self) -> u16 {
        self.left
    }

    /// Bytes behind the entries delivered so far.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl Iterator for Gauges<'_> {
    type Item = Gauge;

    #[inline]
    fn next(&mut self) -> Option<Gauge> {
        if self.left == 0 {
            return None;
        }
        let gauge = Gauge::read(self.rest)?;
        self.rest = &self.rest[gauge.wire_bytes()..];
        self.left -= 1;
        Some(gauge)
    }
}

impl FusedIterator for Gauges<'_> {}

impl fmt::Debug for Gauges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

/// One condition of a query definition (kind 247).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evaluator {
    /// Index among the indexed fields of the target component, in field-id order.
    pub field_idx: u16,
    /// Comparison, unknown numbers are kept.
    pub op: CompareOp,
    /// Written as 0, kept as found.
    pub reserved: u8,
}

impl Wire for Evaluator {
    const BYTES: usize = 4;

    #[inline]
    fn read(bytes: &[u8]) -> Option<Self> {
        let [low, high, op, reserved] = *bytes.first_chunk()?;
        Some(Self { field_idx: u16::from_le_bytes([low, high]), op: CompareOp(op), reserved })
    }

    #[inline]
    fn write(self, out: &mut [u8]) {
        let [low, high] = self.field_idx.to_le_bytes();
        out[..Self::BYTES].copy_from_slice(&[low, high, self.op.0, self.reserved]);
    }
}

/// The part of kind 77 after the fixed fields; `None` when the record ends before the whole name.
pub(crate) fn thread_name(bytes: &[u8], name_bytes: u16) -> Option<(Text<'_>, Option<u8>)> {
    let (name, rest) = bytes.split_at_checked(name_bytes.into())?;
    Some((Text(name), rest.first().copied()))
}

/// The name of kind 246: up to the first zero byte or the end of the record.
pub(crate) fn span_name(bytes: &[u8]) -> Text<'_> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    Text(&bytes[..end])
}

/// The lists of kind 247, from the first evaluator on. The second one is `None` when the record ends before its
/// count.
pub(crate) fn query_lists(
    bytes: &[u8],
    evaluators: u16,
) -> (PackedList<'_, Evaluator>, Option<PackedList<'_, u16>>) {
    let list = PackedList::new(bytes, evaluators);
    let dependencies = bytes.get(list.announced_bytes()..).and_then(|rest| {
        let (count, entries) = rest.split_first_chunk()?;
        Some(PackedList::new(entries, u16::from_le_bytes(*count)))
    });
    (list, dependencies)
}
