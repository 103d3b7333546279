//! Writes records from nothing but the registry, sharing no code with the typed encoders, so that the two can be
//! held against each other. Also writes the kinds that the library only reads.

use typhon_trace::registry::{FieldInfo, FieldRole, FieldType, KindInfo, OptionalField, Shape, Variable};

/// The header of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    pub(crate) slot: u8,
    pub(crate) timestamp: i64,
    pub(crate) duration: i64,
    pub(crate) span_id: u64,
    pub(crate) parent: u64,
    pub(crate) trace_id: Option<[u8; 16]>,
    pub(crate) site: Option<u16>,
}

impl Header {
    pub(crate) const ZERO: Self =
        Self { slot: 0, timestamp: 0, duration: 0, span_id: 0, parent: 0, trace_id: None, site: None };
    pub(crate) const EXAMPLE: Self = Self {
        slot: 3,
        timestamp: 1_000_000_000,
        duration: 1_250,
        span_id: 3 << 56 | 7,
        parent: 3 << 56 | 6,
        trace_id: None,
        site: None,
    };
}

/// A whole record around a payload. Instants leave the span part of the header out.
pub(crate) fn record(kind: &KindInfo, header: &Header, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, kind.id, header.slot];
    bytes.extend(header.timestamp.to_le_bytes());
    if kind.shape == Shape::Span {
        bytes.extend(header.duration.to_le_bytes());
        bytes.extend(header.span_id.to_le_bytes());
        bytes.extend(header.parent.to_le_bytes());
        bytes.push(u8::from(header.trace_id.is_some()) | u8::from(header.site.is_some()) << 1);
        bytes.extend(header.trace_id.iter().flatten());
        bytes.extend(header.site.iter().flat_map(|site| site.to_le_bytes()));
    }
    bytes.extend(payload);
    set_size(&mut bytes);
    bytes
}

/// Makes the size field say what the record has.
pub(crate) fn set_size(record: &mut [u8]) {
    let size = u16::try_from(record.len()).expect("a record of at most 65,534 bytes");
    record[..2].copy_from_slice(&size.to_le_bytes());
}

/// The payload of a kind of fixed layout: `value` gives the raw value of a field, optional fields are those in
/// `mask`.
pub(crate) fn payload(kind: &KindInfo, mask: u8, value: &mut dyn FnMut(&FieldInfo) -> u64) -> Vec<u8> {
    let mut bytes = vec![];
    for field in kind.required {
        let raw = if field.role == FieldRole::Padding { 0 } else { value(field) };
        put(&mut bytes, field.ty, raw);
    }
    if kind.has_mask_byte {
        bytes.push(mask);
    }
    for OptionalField { mask: bit, slot_bytes, field } in kind.optional {
        if mask & bit != 0 {
            let end = bytes.len() + usize::from(*slot_bytes);
            put(&mut bytes, field.ty, value(field));
            bytes.resize(end, 0);
        }
    }
    bytes
}

/// The low bytes of a raw value.
fn put(bytes: &mut Vec<u8>, ty: FieldType, raw: u64) {
    bytes.extend(&raw.to_le_bytes()[..ty.bytes()]);
}

/// Largest raw value of a field: all bits set, but 1 for booleans, which have no other spelling when written.
pub(crate) fn largest(field: &FieldInfo) -> u64 {
    if field.ty == FieldType::Bool8 { 1 } else { u64::MAX }
}

/// All known mask bits.
pub(crate) fn all_bits(kind: &KindInfo) -> u8 {
    kind.optional.iter().fold(0, |all, optional| all | optional.mask)
}

/// A payload with every required field at its largest value, or variable parts of some length.
pub(crate) fn full_payload(kind: &KindInfo, mask: u8) -> Vec<u8> {
    let mut bytes = vec![];
    match kind.variable {
        Variable::None => return payload(kind, mask, &mut largest),
        Variable::Gauges => {
            bytes.extend(u32::MAX.to_le_bytes());
            bytes.extend(4_u16.to_le_bytes());
            bytes.extend(0_u32.to_le_bytes());
            for (id, value_kind, value_bytes) in
                [(0x0102_u16, 0, 4), (0x0100, 1, 8), (0x0FFF, 2, 8), (0x0103, 3, 4)]
            {
                bytes.extend(id.to_le_bytes());
                bytes.push(value_kind);
                bytes.extend(std::iter::repeat_n(0xFF, value_bytes));
            }
        }
        Variable::ThreadName => {
            bytes.extend(i32::MAX.to_le_bytes());
            bytes.extend(9_u16.to_le_bytes());
            bytes.extend("größten".as_bytes());
            bytes.push(0xFF);
        }
        Variable::SpanName => bytes.extend("load wörld\0".as_bytes()),
        Variable::QueryDefinition => {
            bytes.push(0xFF);
            bytes.extend(u32::MAX.to_le_bytes());
            bytes.extend([0xFF; 6]);
            bytes.push(1);
            bytes.extend([0xFF; 8]);
            bytes.extend(2_u16.to_le_bytes());
            bytes.extend([0xFF; 8]);
            bytes.extend(3_u16.to_le_bytes());
            bytes.extend([0xFF; 6]);
        }
        Variable::Thresholds => {
            bytes.extend(2_u16.to_le_bytes());
            bytes.extend([0xFF; 16]);
        }
    }
    bytes
}

/// A payload of zeros, with empty variable parts.
pub(crate) fn zero_payload(kind: &KindInfo) -> Vec<u8> {
    let mut bytes = payload(kind, 0, &mut |_| 0);
    match kind.variable {
        Variable::ThreadName | Variable::SpanName => bytes.push(0),
        Variable::QueryDefinition => bytes.extend([0, 0]),
        Variable::None | Variable::Gauges | Variable::Thresholds => {}
    }
    bytes
}
