//! The worked examples of the format description, byte for byte.

use typhon_trace::{
    event::*,
    record::{Record, SpanHead},
};

use super::{hex, unhex};

const TRACE_ID: [u8; 16] = *b"\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36";

fn check_instant(event: &impl InstantEvent, slot: u8, timestamp: i64, expected: &str) {
    let mut out = [0xAA; 128];
    let size = event.encode(slot, timestamp, &mut out).expect("room");
    assert_eq!(size, event.record_bytes());
    assert_eq!(hex(&out[..size]), hex(&unhex(expected)));
}

fn check_span(event: &impl SpanEvent, slot: u8, start: i64, span: &SpanFields, expected: &str) {
    let mut out = [0xAA; 128];
    let size = event.encode(slot, start, span, &mut out).expect("room");
    assert_eq!(size, event.record_bytes(span));
    assert_eq!(hex(&out[..size]), hex(&unhex(expected)));
}

#[test]
fn tick_start_and_end() {
    check_instant(&TickStart {}, 3, 1_000_000_000, "0c 00 00 03 00 ca 9a 3b 00 00 00 00");
    let end = TickEnd { overload_level: OverloadLevel::NORMAL, tick_multiplier: 1 };
    check_instant(&end, 3, 1_004_000_000, "0e 00 01 03 00 d3 d7 3b 00 00 00 00 00 01");
}

#[test]
fn b11_span_with_and_without_optional_header_parts() {
    let plain = SpanFields {
        duration: 1_250,
        span_id: 1 << 56 | 7,
        parent_span_id: 1 << 56 | 6,
        ..SpanFields::default()
    };
    check_span(
        &BTreeInsert {},
        1,
        1_000_005_000,
        &plain,
        "25 00 28 01 88 dd 9a 3b 00 00 00 00 e2 04 00 00 00 00 00 00 07 00 00 00 00 00 00 01 \
         06 00 00 00 00 00 00 01 00",
    );
    let full = SpanFields { trace_id: Some(TRACE_ID), site: Some(0x0123), ..plain };
    check_span(
        &BTreeInsert {},
        1,
        1_000_005_000,
        &full,
        "37 00 28 01 88 dd 9a 3b 00 00 00 00 e2 04 00 00 00 00 00 00 07 00 00 00 00 00 00 01 \
         06 00 00 00 00 00 00 01 03 4b f9 2f 35 77 b3 4d a6 a3 ce 92 9d 0e 0e 47 36 23 01",
    );
}

#[test]
fn transaction_commit_with_one_optional_field() {
    let event = TransactionCommit { tsn: 4242, component_count: Some(3), ..TransactionCommit::default() };
    let span = SpanFields { duration: 85_000, span_id: 2 << 56 | 1, ..SpanFields::default() };
    check_span(
        &event,
        2,
        1_000_010_000,
        &span,
        "32 00 14 02 10 f1 9a 3b 00 00 00 00 08 4c 01 00 00 00 00 00 01 00 00 00 00 00 00 02 \
         00 00 00 00 00 00 00 00 00 92 10 00 00 00 00 00 00 01 03 00 00 00",
    );
}

#[test]
fn b17_registry_order_is_not_bit_order() {
    let event =
        EcsQueryAny { archetype_type_id: 5, found: Some(true), scan_mode: Some(EcsQueryScanMode::TARGETED) };
    let span = SpanFields { duration: 900, span_id: 2 << 56 | 2, ..SpanFields::default() };
    check_span(
        &event,
        2,
        1_000_020_000,
        &span,
        "2d 00 22 02 20 18 9b 3b 00 00 00 00 84 03 00 00 00 00 00 00 02 00 00 00 00 00 00 02 \
         00 00 00 00 00 00 00 00 00 05 00 06 01 00 00 00 02",
    );
}

#[test]
fn gc_end() {
    let event = GcEnd {
        generation: 1,
        count: 12,
        pause_duration_ticks: 2_500_000,
        promoted_bytes: 65_536,
        gen0_size_after: 1 << 20,
        gen1_size_after: 2 << 20,
        gen2_size_after: 4 << 20,
        loh_size_after: 512 << 10,
        poh_size_after: 256 << 10,
        total_committed_bytes: 16 << 20,
    };
    check_instant(
        &event,
        9,
        1_000_030_000,
        "51 00 08 09 30 3f 9b 3b 00 00 00 00 01 0c 00 00 00 a0 25 26 00 00 00 00 00 \
         00 00 01 00 00 00 00 00 00 00 10 00 00 00 00 00 00 00 20 00 00 00 00 00 00 00 40 00 00 00 00 00 \
         00 00 08 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00 00 01 00 00 00 00",
    );
}

#[test]
fn query_definition() {
    let evaluator = |field_idx, op| Evaluator { field_idx, op, reserved: 0 };
    let event = QueryDefinitionDescribe {
        head: QueryDefinitionHead {
            kind: QueryInstanceKind::VIEW,
            local_id: 17,
            target_component_type: 21,
            primary_index_field_idx: 4,
            sort_field_idx: -1,
            sort_descending: false,
            definition_source_file_id: 1,
            definition_source_line: 128,
            definition_source_method_id: 2,
        },
        evaluators: &[evaluator(4, CompareOp::GREATER_THAN), evaluator(7, CompareOp::LESS_THAN_OR_EQUAL)],
        field_dependencies: &[4],
    };
    check_instant(
        &event,
        2,
        1_000_040_000,
        "2e 00 f7 02 40 66 9b 3b 00 00 00 00 00 11 00 00 00 15 00 04 00 ff ff 00 01 00 80 00 00 00 02 00 \
         02 00 04 00 02 00 07 00 05 00 01 00 04 00",
    );
}

#[test]
fn span_header_is_read_back() {
    let span = SpanFields {
        duration: -1,
        span_id: u64::MAX,
        parent_span_id: 5,
        trace_id: Some(TRACE_ID),
        site: Some(0x8001),
    };
    let mut out = [0; 64];
    let size = CheckpointFsync {}.encode(254, i64::MIN, &span, &mut out).unwrap();
    let record = Record::parse(&out[..size]).unwrap();
    assert_eq!(record.span().map(SpanFields::from), Some(span));
    assert_eq!(record.span().map(|head: SpanHead<'_>| head.payload_offset()), Some(55));
    assert_eq!((record.slot(), record.timestamp()), (254, i64::MIN));
}

#[test]
fn a_destination_that_is_too_small_is_left_alone() {
    let event = TransactionCommit { tsn: 1, component_count: Some(3), ..TransactionCommit::default() };
    let span = SpanFields::default();
    for available in 0..50 {
        let mut out = vec![0xAA; available];
        let error = event.encode(1, 2, &span, &mut out).unwrap_err();
        assert_eq!(error, BufferTooSmall { needed: 50, available });
        assert!(out.iter().all(|byte| *byte == 0xAA));
    }
    assert_eq!(event.encode(1, 2, &span, &mut [0; 50]), Ok(50));
}
