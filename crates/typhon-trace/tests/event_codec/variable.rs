//! The kinds with a variable part.

use proptest::prelude::*;
use typhon_trace::{
    decode::{self, LayoutCheck, Value},
    event::*,
    record::{MAX_RECORD_BYTES, Record},
    registry,
};

use super::registry_writer::{Header, record};

fn form(id: u8, payload: &[u8]) -> Vec<u8> {
    record(registry::kind(id).expect("a kind"), &Header::EXAMPLE, payload)
}

fn instant(event: &impl InstantEvent) -> Vec<u8> {
    let mut out = vec![0xAA; event.record_bytes()];
    assert_eq!(event.encode(3, 1_000_000_000, &mut out), Ok(out.len()));
    out
}

fn check(bytes: &[u8]) -> LayoutCheck {
    decode::check_layout(&Record::parse(bytes).expect("a whole record")).expect("a known kind")
}

fn gauge(id: u16, value: GaugeValue) -> Gauge {
    Gauge { id, value }
}

#[test]
fn snapshot_values_of_every_kind_are_read_back() {
    let gauges = [
        gauge(0x0200, GaugeValue::U32Count(u32::MAX)),
        gauge(0x0100, GaugeValue::U64Bytes(u64::MAX)),
        gauge(0xFFFF, GaugeValue::I64Signed(-5)),
        gauge(0x0103, GaugeValue::U32PercentHundredths(1234)),
    ];
    let bytes = instant(&PerTickSnapshot { tick_number: 9, gauges: &gauges });
    assert_eq!(bytes.len(), 22 + 7 + 11 + 11 + 7);
    let view = PerTickSnapshotView::new(&Record::parse(&bytes).unwrap()).unwrap();
    assert_eq!((view.tick_number(), view.field_count(), view.flags()), (Some(9), Some(4), Some(0)));
    assert_eq!(view.gauges().collect::<Vec<_>>(), gauges);
    assert!(check(&bytes).is_clean());
}

#[test]
fn a_gauge_of_unknown_value_kind_ends_the_snapshot() {
    let gauges = [gauge(1, GaugeValue::U32Count(1)), gauge(2, GaugeValue::U32Count(2))];
    let mut bytes = instant(&PerTickSnapshot { tick_number: 9, gauges: &gauges });
    bytes[22 + 7 + 2] = 4;
    let view = PerTickSnapshotView::new(&Record::parse(&bytes).unwrap()).unwrap();
    let mut found = view.gauges();
    assert_eq!(found.by_ref().collect::<Vec<_>>(), gauges[..1]);
    assert_eq!(found.left(), 1);
    assert!(check(&bytes).is_list_cut);
}

#[test]
fn a_snapshot_is_capped_after_a_whole_gauge() {
    let gauges = vec![gauge(7, GaugeValue::I64Signed(1)); 7_000];
    let bytes = instant(&PerTickSnapshot { tick_number: 1, gauges: &gauges });
    assert_eq!(bytes.len(), 22 + 5_955 * 11);
    assert!(bytes.len() <= MAX_RECORD_BYTES && bytes.len() + 11 > MAX_RECORD_BYTES);
    let view = PerTickSnapshotView::new(&Record::parse(&bytes).unwrap()).unwrap();
    assert_eq!((view.field_count(), view.gauges().count()), (Some(5_955), 5_955));
}

#[test]
fn thread_kind_byte_may_be_missing() {
    let bytes = form(77, b"\x05\x00\x00\x00\x04\x00main");
    let record = Record::parse(&bytes).unwrap();
    let view = ThreadInfoView::new(&record).unwrap();
    assert_eq!(
        (view.managed_thread_id(), view.name(), view.thread_kind()),
        (Some(5), Some(Text(b"main")), None)
    );
    let names: Vec<&str> = decode::fields(&record).map(|field| field.name).collect();
    assert_eq!(names, ["managedThreadId", "name"]);
    assert!(check(&bytes).is_clean());
}

#[test]
fn thread_info_is_decoded_with_its_kind() {
    let bytes =
        instant(&ThreadInfo { managed_thread_id: 5, name: "größe", thread_kind: ThreadKind::WORKER });
    assert_eq!(bytes.len(), 19 + 7);
    let record = Record::parse(&bytes).unwrap();
    let fields: Vec<_> = decode::fields(&record).collect();
    assert_eq!(fields[1].value, Value::Text(Text("größe".as_bytes())));
    assert_eq!((fields[2].name, fields[2].value_name()), ("threadKind", Some("Worker")));
}

#[test]
fn a_thread_name_that_runs_past_the_record_is_absent() {
    let bytes = form(77, b"\x05\x00\x00\x00\x09\x00main");
    let record = Record::parse(&bytes).unwrap();
    assert_eq!(ThreadInfoView::new(&record).unwrap().name(), None);
    assert_eq!(decode::fields(&record).count(), 1);
    assert!(check(&bytes).is_unexpected_length);
}

#[test]
fn names_are_cut_between_two_characters() {
    // One byte too many, in the middle of a character of two bytes.
    let name = "x".repeat(MAX_NAME_BYTES - 1) + "ä";
    let bytes = instant(&ThreadInfo { managed_thread_id: 1, name: &name, thread_kind: ThreadKind::OTHER });
    let view = ThreadInfoView::new(&Record::parse(&bytes).unwrap()).unwrap();
    assert_eq!(view.name().and_then(Text::as_str), Some(&name[..254]));
    assert_eq!(view.thread_kind(), Some(ThreadKind::OTHER));

    for (name, kept) in
        [(&*name, 254), (&"y".repeat(255), 255), (&"y".repeat(256), 255), (&"z".repeat(70_000), 255)]
    {
        let event = NamedSpan { name };
        assert_eq!(event.payload_bytes(), kept + 1);
        let mut out = vec![0; 512];
        event.encode(1, 2, &SpanFields::default(), &mut out).unwrap();
        let view = NamedSpanView::new(&Record::parse(&out).unwrap()).unwrap();
        assert_eq!(view.name().as_str(), Some(&name[..kept]));
    }
}

#[test]
fn longer_names_of_other_writers_are_read_whole() {
    let mut payload = vec![b'x'; 60_000];
    payload.push(0);
    let bytes = form(246, &payload);
    let view = NamedSpanView::new(&Record::parse(&bytes).unwrap()).unwrap();
    assert_eq!(view.name().0.len(), 60_000);
    assert!(check(&bytes).is_clean());
}

#[test]
fn a_span_name_ends_at_a_zero_byte_or_with_the_record() {
    for (payload, clean) in [(&b"load\0"[..], true), (b"load", true), (b"load\0more", false)] {
        let bytes = form(246, payload);
        let view = NamedSpanView::new(&Record::parse(&bytes).unwrap()).unwrap();
        assert_eq!(view.name(), Text(b"load"));
        assert_eq!(check(&bytes).is_clean(), clean);
    }
    assert_eq!(NamedSpan { name: "a\0b" }.payload_bytes(), 2);
}

#[test]
fn text_that_is_not_utf8_is_shown_with_replacement_characters() {
    let text = Text(b"a\xFFb");
    assert_eq!((text.as_str(), text.to_string()), (None, "a\u{FFFD}b".to_owned()));
}

#[test]
fn a_definition_that_announces_too_much_keeps_what_fits() {
    let mut payload = vec![0; 22];
    payload[20] = 3;
    payload.extend([1, 0, 2, 0, 5, 0, 9, 0, 7]);
    let bytes = form(247, &payload);
    let record = Record::parse(&bytes).unwrap();
    let view = QueryDefinitionDescribeView::new(&record).unwrap();
    let found: Vec<Evaluator> = view.evaluators().iter().collect();
    let evaluator = |field_idx, op| Evaluator { field_idx, op: CompareOp(op), reserved: 0 };
    assert_eq!(found, [evaluator(1, 2), evaluator(5, 9)]);
    assert!(view.evaluators().is_cut() && view.is_cut());
    assert_eq!(view.field_dependencies(), None);
    let layout = check(&bytes);
    assert!(layout.is_list_cut);
    assert_eq!(layout.expected_bytes, 22 + 3 * 4 + 2);
    assert_eq!(layout.unknown_enum_value, Some(("evaluators", 9)));
}

#[test]
fn a_definition_is_capped_after_a_whole_entry() {
    let evaluators = vec![Evaluator { field_idx: 1, op: CompareOp::EQUAL, reserved: 0 }; 20_000];
    let head = QueryDefinitionHead {
        kind: QueryInstanceKind::ECS_QUERY,
        local_id: 1,
        target_component_type: 0,
        primary_index_field_idx: -1,
        sort_field_idx: -1,
        sort_descending: true,
        definition_source_file_id: 0,
        definition_source_line: 0,
        definition_source_method_id: 0,
    };
    let bytes =
        instant(&QueryDefinitionDescribe { head, evaluators: &evaluators, field_dependencies: &[1, 2] });
    assert_eq!(bytes.len(), MAX_RECORD_BYTES);
    let view = QueryDefinitionDescribeView::new(&Record::parse(&bytes).unwrap()).unwrap();
    assert_eq!(
        (view.evaluators().len(), view.field_dependencies().map(|list| list.len())),
        (16_374, Some(1))
    );
    assert!(!view.is_cut());
}

#[test]
fn query_arguments_are_capped_at_8190() {
    let thresholds: Vec<i64> = (0..9_000).collect();
    let bytes = instant(&QueryArgs { thresholds: &thresholds });
    assert_eq!(bytes.len(), MAX_RECORD_BYTES);
    let view = QueryArgsView::new(&Record::parse(&bytes).unwrap()).unwrap();
    assert_eq!(view.thresholds().len(), 8_190);
    assert_eq!(view.thresholds().get(8_189), Some(8_189));
    assert_eq!(view.thresholds().get(8_190), None);
    assert_eq!(view.thresholds().get(usize::MAX), None);
}

proptest! {
    #[test]
    fn thread_info_round_trips(managed_thread_id in any::<i32>(), name in "\\PC{0,60}", kind in any::<u8>()) {
        let event = ThreadInfo { managed_thread_id, name: &name, thread_kind: ThreadKind(kind) };
        let bytes = instant(&event);
        let view = ThreadInfoView::new(&Record::parse(&bytes).unwrap()).unwrap();
        prop_assert_eq!(view.managed_thread_id(), Some(managed_thread_id));
        prop_assert_eq!(view.name().and_then(Text::as_str), Some(name.as_str()));
        prop_assert_eq!(view.thread_kind(), Some(ThreadKind(kind)));
    }

    #[test]
    fn snapshots_round_trip(
        tick_number in any::<u32>(),
        values in prop::collection::vec((any::<u16>(), 0_u8..4, any::<u64>()), 0..60),
    ) {
        let gauges: Vec<Gauge> = values.iter().map(|(id, kind, raw)| gauge(*id, match kind {
            0 => GaugeValue::U32Count(*raw as u32),
            1 => GaugeValue::U64Bytes(*raw),
            2 => GaugeValue::I64Signed(*raw as i64),
            _ => GaugeValue::U32PercentHundredths(*raw as u32),
        })).collect();
        let bytes = instant(&PerTickSnapshot { tick_number, gauges: &gauges });
        let view = PerTickSnapshotView::new(&Record::parse(&bytes).unwrap()).unwrap();
        prop_assert_eq!(view.gauges().collect::<Vec<_>>(), gauges);
        prop_assert!(check(&bytes).is_clean());
    }

    #[test]
    fn cut_names_are_the_longest_that_fit(start in 240_usize..260, tail in "\\PC{0,20}") {
        let name = "x".repeat(start) + &tail;
        let event = ThreadInfo { managed_thread_id: 0, name: &name, thread_kind: ThreadKind::MAIN };
        let bytes = instant(&event);
        let view = ThreadInfoView::new(&Record::parse(&bytes).unwrap()).unwrap();
        let kept = view.name().and_then(Text::as_str).expect("whole characters");
        prop_assert!(name.starts_with(kept) && kept.len() <= MAX_NAME_BYTES);
        let next = name[kept.len()..].chars().next();
        prop_assert!(next.is_none_or(|next| kept.len() + next.len_utf8() > MAX_NAME_BYTES));
    }
}
