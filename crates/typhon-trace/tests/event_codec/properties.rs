//! Random records of every kind.

use proptest::prelude::*;
use typhon_trace::{
    decode::{self, Value},
    event::EventView,
    record::Record,
    registry::{FieldInfo, FieldRole, FieldType, KINDS, KindInfo, Shape, Variable},
};

use super::{
    golden::raw_bits,
    registry_writer::{Header, all_bits, payload, record, set_size},
    typed,
};

fn header() -> impl Strategy<Value = Header> {
    let ids = (any::<u64>(), any::<u64>(), any::<Option<[u8; 16]>>(), any::<Option<u16>>());
    (any::<u8>(), any::<i64>(), any::<i64>(), ids).prop_map(|(slot, timestamp, duration, ids)| {
        let (span_id, parent, trace_id, site) = ids;
        Header { slot, timestamp, duration, span_id, parent, trace_id, site }
    })
}

fn fixed_kind() -> impl Strategy<Value = &'static KindInfo> {
    let kinds: Vec<&KindInfo> = KINDS.iter().filter(|kind| kind.variable == Variable::None).collect();
    prop::sample::select(kinds)
}

/// A raw value cut to the width of its field and extended like a decoded one.
fn as_decoded(field: &FieldInfo, raw: u64) -> u64 {
    match field.ty {
        FieldType::U8 => u64::from(raw as u8),
        FieldType::U16 => u64::from(raw as u16),
        FieldType::U32 | FieldType::F32 => u64::from(raw as u32),
        FieldType::U64 | FieldType::I64 | FieldType::F64 => raw,
        FieldType::I8 => raw as i8 as u64,
        FieldType::I16 => raw as i16 as u64,
        FieldType::I32 => raw as i32 as u64,
        FieldType::Bool8 => u64::from(raw as u8 != 0),
    }
}

/// A well-mixed value per field.
fn values(seed: u64) -> impl FnMut(&FieldInfo) -> u64 {
    let mut state = seed;
    move |field| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = state ^ state >> 29;
        if field.ty == FieldType::Bool8 { mixed >> 60 & 1 } else { mixed }
    }
}

fn scalars(record: &Record<'_>) -> Vec<(&'static str, u64)> {
    decode::fields(record).map(|field| (field.name, raw_bits(&field.value))).collect()
}

proptest! {
    #[test]
    fn records_of_fixed_layout_round_trip(
        kind in fixed_kind(),
        mask in any::<u8>(),
        seed in any::<u64>(),
        header in header(),
    ) {
        let mask = mask & all_bits(kind);
        let mut written = vec![];
        let mut value = values(seed);
        let body = payload(kind, mask, &mut |field| {
            let raw = value(field);
            written.push((field.name, as_decoded(field, raw)));
            raw
        });
        let bytes = record(kind, &header, &body);
        let parsed = Record::parse(&bytes).unwrap();
        prop_assert_eq!(scalars(&parsed), written);
        prop_assert_eq!((parsed.slot(), parsed.timestamp()), (header.slot, header.timestamp));
        if kind.shape == Shape::Span {
            let span = parsed.span().unwrap();
            prop_assert_eq!((span.duration, span.span_id), (header.duration, header.span_id));
            prop_assert_eq!((span.trace_id.copied(), span.site), (header.trace_id, header.site));
        }
        if body.len() != 14 || kind.id != 249 {
            let check = decode::check_layout(&parsed).unwrap();
            prop_assert!(!check.is_unexpected_length && check.unknown_mask_bits == 0);
            prop_assert_eq!(check.expected_bytes, body.len());
        }
        prop_assert_eq!(typed::reencode(&parsed), kind.is_writable().then_some(bytes));
    }

    #[test]
    fn any_bytes_of_any_kind_are_read_without_panic(
        id in any::<u8>(),
        rest in prop::collection::vec(any::<u8>(), 9..200),
    ) {
        let mut bytes = vec![0, 0, id];
        bytes.extend(rest);
        set_size(&mut bytes);
        let parsed = Record::parse(&bytes).unwrap();
        let known = typhon_trace::registry::kind(id).filter(|_| !parsed.is_short_span());
        prop_assert_eq!(decode::check_layout(&parsed).is_some(), known.is_some());
        prop_assert_eq!(EventView::new(&parsed).is_some(), known.is_some());
        for field in decode::fields(&parsed) {
            let shown = format!("{field:?}");
            prop_assert!(shown.contains(field.name));
        }
        if let (Some(kind), Some(again)) = (known, typed::reencode(&parsed))
            && kind.variable == Variable::None
        {
            let again = Record::parse(&again).unwrap();
            prop_assert_eq!(scalars(&again), scalars(&parsed), "typed and dynamic reading agree");
        }
    }

    #[test]
    fn field_names_announces_what_fields_delivers(
        index in 0..KINDS.len(),
        rest in prop::collection::vec(any::<u8>(), 100..300),
    ) {
        let kind = &KINDS[index];
        let bytes = record(kind, &Header::ZERO, &rest);
        let parsed = Record::parse(&bytes).unwrap();
        let mut announced = decode::field_names(kind);
        for field in decode::fields(&parsed) {
            let follows = announced.any(|name| name == field.name);
            prop_assert!(follows, "{} in order", field.name);
        }
    }
}

#[test]
fn field_names_leave_counts_and_padding_out() {
    for kind in KINDS {
        let hidden = kind.required.iter().filter(|field| field.role != FieldRole::Value);
        for field in hidden {
            assert!(decode::field_names(kind).all(|name| name != field.name), "{}", kind.name);
        }
    }
}

#[test]
fn value_names_come_from_the_registry() {
    let kind = typhon_trace::registry::kind(1).unwrap();
    let bytes = record(kind, &Header::ZERO, &[4, 1]);
    let parsed = Record::parse(&bytes).unwrap();
    let fields: Vec<_> = decode::fields(&parsed).collect();
    assert_eq!(fields[0].value, Value::Unsigned(4));
    assert_eq!(fields[0].value_name(), Some("PlayerShedding"));
    assert_eq!(fields[1].value_name(), None);
}
