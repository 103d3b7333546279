//! Every golden record, cut at every byte, lengthened, and with every unknown mask bit set.

use typhon_trace::{
    decode::{self, Field},
    record::{RECORD_HEADER_BYTES, Record},
    registry::{FieldInfo, KindInfo, Variable},
};

use super::{
    golden::{frozen, raw_bits},
    registry_writer::{all_bits, payload, set_size},
    typed,
};

/// Name and value of each field. Text, since a NaN differs from itself.
fn fields(record: &Record<'_>) -> Vec<String> {
    decode::fields(record).map(|field| format!("{}={:?}", field.name, field.value)).collect()
}

/// Sizes at which bytes mean something else than in a record of today.
fn is_other_form(kind: &KindInfo, record: &Record<'_>) -> bool {
    let bytes = record.payload().map_or(0, <[u8]>::len);
    let has_padding = |optional: &typhon_trace::registry::OptionalField| {
        usize::from(optional.slot_bytes) > optional.field.ty.bytes()
    };
    kind.alt_layouts.iter().any(|layout| usize::from(layout.payload_bytes) == bytes)
        || kind.optional.iter().any(has_padding)
}

/// The payload that the registry gives for the fields found; `None` when a required one is absent.
fn payload_of(kind: &KindInfo, found: &[Field<'_>]) -> Option<Vec<u8>> {
    let value =
        |info: &FieldInfo| found.iter().find(|field| field.name == info.name).map(|field| &field.value);
    let is_absent = |info: &FieldInfo| value(info).is_none() && info.name != "pad0";
    if kind.required.iter().any(is_absent) {
        return None;
    }
    let present = kind.optional.iter().filter(|optional| value(&optional.field).is_some());
    let mask = present.fold(0, |mask, optional| mask | optional.mask);
    Some(payload(kind, mask, &mut |info| value(info).map_or(0, raw_bits)))
}

#[test]
fn b18_b19_truncation_leaves_a_prefix_of_the_fields() {
    for vector in frozen() {
        let kind = vector.kind();
        let whole: Vec<&str> = decode::fields(&vector.record()).map(|field| field.name).collect();
        let whole_values = fields(&vector.record());
        for size in RECORD_HEADER_BYTES..vector.bytes.len() {
            let mut bytes = vector.bytes[..size].to_vec();
            set_size(&mut bytes);
            let record = Record::parse(&bytes).unwrap();
            let found: Vec<Field<'_>> = decode::fields(&record).collect();
            let check = decode::check_layout(&record);
            assert_eq!(check.is_none(), record.is_short_span(), "{} cut to {size}", vector.name);
            if record.is_short_span() || is_other_form(kind, &record) {
                continue;
            }
            let names: Vec<&str> = found.iter().map(|field| field.name).collect();
            assert_eq!(names, whole[..names.len()], "{} cut to {size}", vector.name);
            if kind.variable == Variable::None {
                assert_eq!(fields(&record), whole_values[..names.len()], "{} cut to {size}", vector.name);
                let expected = payload_of(kind, &found).filter(|_| kind.is_writable());
                let again = typed::reencode(&record);
                let again = again.as_deref().map(|bytes| Record::parse(bytes).unwrap().payload().unwrap());
                assert_eq!(again, expected.as_deref(), "{} cut to {size}", vector.name);
            }
        }
    }
}

#[test]
fn b20_appended_bytes_change_nothing() {
    let mut random: u32 = 1;
    for vector in frozen() {
        let kind = vector.kind();
        let mut bytes = vector.bytes.clone();
        for _ in 0..64 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            bytes.push((random >> 24) as u8);
            set_size(&mut bytes);
            let record = Record::parse(&bytes).unwrap();
            if kind.alt_layouts.iter().any(|layout| {
                record.payload().is_some_and(|payload| payload.len() == usize::from(layout.payload_bytes))
            }) {
                continue;
            }
            assert_eq!(fields(&record), fields(&vector.record()), "{} of {} bytes", vector.name, bytes.len());
            if kind.is_writable() {
                assert_eq!(typed::reencode(&record).as_ref(), Some(&vector.bytes), "{}", vector.name);
            }
            if kind.variable != Variable::SpanName {
                let check = decode::check_layout(&record).unwrap();
                assert!(check.is_unexpected_length, "{} of {} bytes: {check:?}", vector.name, bytes.len());
            }
        }
    }
}

#[test]
fn b20_unknown_mask_bits_leave_known_fields_alone() {
    let mut tried = 0;
    for vector in frozen().iter().filter(|vector| vector.kind().has_mask_byte) {
        let kind = vector.kind();
        let known = all_bits(kind);
        let mask_at =
            vector.bytes.len() - vector.record().payload().map_or(0, <[u8]>::len) + kind.required_bytes();
        for bit in (0..8).map(|bit| 1 << bit).filter(|bit| known & bit == 0) {
            let mut bytes = vector.bytes.clone();
            bytes[mask_at] |= bit;
            bytes.extend([0xA5; 9]);
            set_size(&mut bytes);
            let record = Record::parse(&bytes).unwrap();
            assert_eq!(fields(&record), fields(&vector.record()), "{} with bit {bit:#x}", vector.name);
            let check = decode::check_layout(&record).unwrap();
            assert_eq!(check.unknown_mask_bits, bit, "{}", vector.name);
            assert!(!check.is_unexpected_length, "{}: {check:?}", vector.name);
            if kind.is_writable() {
                let again = typed::reencode(&record);
                assert_eq!(again.as_ref(), Some(&vector.bytes), "{}: writers know no such bit", vector.name);
            }
            tried += 1;
        }
    }
    assert!(tried > 500, "{tried} combinations");
}
