//! Older and alternative forms of single kinds, recognised by the size of the payload.

use typhon_trace::{decode, event::*, record::Record, registry};

use super::{
    registry_writer::{Header, full_payload, record},
    typed,
};

/// A record of a kind with this payload.
fn form(id: u8, payload: &[u8]) -> Vec<u8> {
    record(registry::kind(id).expect("a kind"), &Header::EXAMPLE, payload)
}

/// The first bytes of today's full payload.
fn prefix(id: u8, bytes: usize) -> Vec<u8> {
    form(id, &full_payload(registry::kind(id).expect("a kind"), 0)[..bytes])
}

fn parse(record: &[u8]) -> Record<'_> {
    Record::parse(record).expect("a whole record")
}

fn field_names(record: &[u8]) -> Vec<&'static str> {
    decode::fields(&parse(record)).map(|field| field.name).collect()
}

fn is_expected(record: &[u8]) -> bool {
    !decode::check_layout(&parse(record)).expect("a known kind").is_unexpected_length
}

#[test]
fn kind_5_of_3_bytes_lacks_the_counts() {
    let old = prefix(5, 3);
    assert_eq!(field_names(&old), ["systemIdx", "skipReason"]);
    let view = SystemSkippedView::new(&Record::parse(&old).unwrap()).unwrap();
    assert_eq!((view.system_idx(), view.skip_reason()), (Some(u16::MAX), Some(SkipReason(255))));
    assert_eq!((view.would_be_chunk_count(), view.successors_unblocked()), (None, None));
    assert_eq!(view.to_event(), None);
    assert!(is_expected(&old) && is_expected(&prefix(5, 7)) && !is_expected(&prefix(5, 5)));
    assert_eq!(SystemSkipped::default().record_bytes(), 12 + 7);
}

#[test]
fn kinds_50_to_54_without_mask_byte() {
    for id in [50, 51, 53, 54] {
        assert!(is_expected(&prefix(id, 4)) && is_expected(&prefix(id, 5)));
        assert!(!is_expected(&prefix(id, 3)));
    }
    assert!(!is_expected(&prefix(52, 4)), "kind 52 always had one");
    let view = PageCacheFetchView::from_payload(&[7, 0, 0, 0]);
    assert_eq!(view.to_event(), Some(PageCacheFetch { file_page_index: 7 }));
    assert_eq!(PageCacheFetch { file_page_index: 7 }.payload_bytes(), 5);
}

#[test]
fn kind_60_of_6_and_10_bytes() {
    let oldest = prefix(60, 6);
    assert_eq!(field_names(&oldest), ["archetypeId", "migrationCount"]);
    let old = prefix(60, 10);
    assert_eq!(field_names(&old), ["archetypeId", "migrationCount", "componentCount"]);
    assert!(is_expected(&oldest) && is_expected(&old) && is_expected(&prefix(60, 11)));
    let view = ClusterMigrationView::from_payload(&[1, 0, 2, 0, 0, 0]);
    assert_eq!(
        (view.migration_count(), view.component_count(), view.crossing_count()),
        (Some(2), None, None)
    );
}

#[test]
fn kind_66_of_58_139_147_and_155_bytes() {
    for (bytes, fields) in [(58, 15), (139, 32), (147, 34), (155, 36)] {
        let record = prefix(66, bytes);
        assert_eq!(field_names(&record).len(), fields, "{bytes} bytes");
        assert!(is_expected(&record));
    }
    let view = SpatialArchetypeTelemetryView::from_payload(&[1; 147]);
    assert_eq!((view.runnable_realms(), view.rates_realms_touched()), (Some(0x0101_0101), None));
    assert!(!is_expected(&prefix(66, 100)));
}

#[test]
fn kind_75_without_mask_byte() {
    assert!(is_expected(&prefix(75, 1)) && is_expected(&prefix(75, 2)));
    let view = GcSuspensionView::from_payload(&[1]);
    assert_eq!(view.to_event(), Some(GcSuspension { reason: GcSuspendReason::FOR_GC }));
    assert_eq!(GcSuspension::default().payload_bytes(), 2);
}

#[test]
fn kind_189_of_19_bytes_has_no_optional_fields() {
    let old = prefix(189, 19);
    assert_eq!(field_names(&old), ["evaluatorCount", "indexFieldIdx", "rangeMin", "rangeMax"]);
    assert!(is_expected(&old));
    let record = Record::parse(&old).unwrap();
    assert_eq!(QueryPlanView::new(&record).unwrap().query_instance_kind(), None);
}

#[test]
fn kind_221_of_8_bytes_lacks_the_retries() {
    assert_eq!(field_names(&prefix(221, 8)), ["waitUs", "producerThread"]);
    assert!(is_expected(&prefix(221, 8)) && is_expected(&prefix(221, 10)));
    assert_eq!(DurabilityWalBackpressure::default().payload_bytes(), 10);
}

#[test]
fn kind_244_of_26_bytes_has_no_padding() {
    let fields = [1_u32, 0x0001_0002, 3, 4, 5, 6, 7];
    let padded: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
    let mut padded = padded;
    padded[6..8].fill(0);
    let unpadded: Vec<u8> = padded[..6].iter().chain(&padded[8..]).copied().collect();
    assert_eq!((padded.len(), unpadded.len()), (28, 26));
    let expected = QueueTickEnd {
        tick: 1,
        queue_id: 2,
        peak_depth: 3,
        end_of_tick_depth: 4,
        overflow_count: 5,
        produced: 6,
        consumed: 7,
    };
    for payload in [&padded, &unpadded] {
        assert_eq!(QueueTickEndView::from_payload(payload).to_event(), Some(expected));
        let record = form(244, payload);
        assert!(is_expected(&record));
        assert!(!field_names(&record).contains(&"pad0"));
        let again = typed::reencode(&Record::parse(&record).unwrap());
        assert_eq!(again, Some(form(244, &padded)), "both are written with padding");
    }
}

#[test]
fn kind_249_of_14_bytes_is_another_layout() {
    let payload = [1, 0, 2, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0];
    let view = SpatialClusterMigrationDetectScanView::from_payload(&payload);
    assert_eq!((view.scan_slot_count(), view.migrations_queued()), (Some(2), Some(7)));
    assert_eq!((view.hysteresis_absorbed(), view.clusters_touched()), (Some(9), None));
    let record = form(249, &payload);
    let names = ["archetypeId", "scanSlotCount", "migrationsQueued", "hysteresisAbsorbed"];
    assert_eq!(field_names(&record), names);
    assert!(is_expected(&record));
    // One byte more, and the byte 7 is a mask again.
    let masked = SpatialClusterMigrationDetectScanView::from_payload(&[1, 0, 2, 0, 0, 0, 1, 5, 0, 0, 0]);
    assert_eq!((masked.migrations_queued(), masked.hysteresis_absorbed()), (Some(5), None));
}

#[test]
fn kind_250_of_10_bytes_is_another_layout() {
    let payload = [1, 0, 2, 0, 0, 0, 7, 0, 0, 0];
    let view = SpatialClusterAabbRefreshView::from_payload(&payload);
    assert_eq!((view.cluster_scanned(), view.aabb_changed(), view.slots_scanned()), (Some(2), Some(7), None));
    assert_eq!(field_names(&form(250, &payload)), ["archetypeId", "clusterScanned", "aabbChanged"]);
    assert!(is_expected(&form(250, &payload)));
}

#[test]
fn kind_34_reads_found_in_four_bytes_or_in_one() {
    let padded = EcsQueryAnyView::from_payload(&[5, 0, 0x06, 1, 0, 0, 0, 2]);
    let packed = EcsQueryAnyView::from_payload(&[5, 0, 0x06, 1, 2]);
    for view in [padded, packed] {
        assert_eq!((view.found(), view.scan_mode()), (Some(true), Some(EcsQueryScanMode::TARGETED)));
        let record = form(34, view.raw());
        assert_eq!(field_names(&record), ["archetypeTypeId", "found", "scanMode"]);
        assert!(is_expected(&record));
    }
    let alone = EcsQueryAnyView::from_payload(&[5, 0, 0x04, 1]);
    assert_eq!((alone.found(), alone.scan_mode()), (Some(true), None));
}

#[test]
fn b22_any_byte_but_zero_is_true_and_unnamed_numbers_stay() {
    let view = TransactionCommitView::from_payload(&[0, 0, 0, 0, 0, 0, 0, 0, 0x02, 7]);
    assert_eq!(view.conflict_detected(), Some(true));
    let end = TickEndView::from_payload(&[77, 1]);
    assert_eq!(end.overload_level().map(|level| (level.0, level.name())), Some((77, None)));
    assert_eq!(OverloadLevel(77).to_string(), "77");
    assert_eq!(OverloadLevel::PLAYER_SHEDDING.to_string(), "PlayerShedding");
    let record = form(1, &[77, 1]);
    let check = decode::check_layout(&Record::parse(&record).unwrap()).unwrap();
    assert_eq!(check.unknown_enum_value, Some(("overloadLevel", 77)));
}

#[test]
fn b3_unknown_kinds_have_no_fields() {
    let mut bytes = form(1, &[1, 2]);
    bytes[2] = 255;
    let record = Record::parse(&bytes).unwrap();
    assert_eq!(decode::fields(&record).count(), 0);
    assert_eq!(decode::check_layout(&record), None);
    assert_eq!(EventView::new(&record), None);
    assert_eq!(record.payload(), Some(&[1, 2][..]), "an unknown kind is taken for an instant");
}

#[test]
fn b7_short_spans_have_no_fields() {
    let mut bytes = form(243, &[1]);
    bytes.truncate(30);
    super::registry_writer::set_size(&mut bytes);
    let record = Record::parse(&bytes).unwrap();
    assert!(record.is_short_span());
    assert_eq!(decode::fields(&record).count(), 0);
    assert_eq!(decode::check_layout(&record), None);
    assert_eq!(EventView::new(&record), None);
}

#[test]
fn a_view_is_only_made_of_its_own_kind() {
    let bytes = form(1, &[0, 1]);
    let record = Record::parse(&bytes).unwrap();
    assert!(TickEndView::new(&record).is_some());
    assert_eq!(TickStartView::new(&record), None);
}
