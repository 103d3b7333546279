//! The strict codec of query definitions (kind 247) and query arguments (kind 248).

use proptest::prelude::*;
use typhon_trace::{
    event::{CompareOp, Evaluator, QueryDefinitionHead, QueryInstanceKind},
    query_definition::{MAX_THRESHOLDS, QueryArgsRecord, QueryCodecError as Error, QueryDefinitionRecord},
};

fn head() -> QueryDefinitionHead {
    QueryDefinitionHead {
        kind: QueryInstanceKind::VIEW,
        local_id: 17,
        target_component_type: 21,
        primary_index_field_idx: 4,
        sort_field_idx: -1,
        sort_descending: false,
        definition_source_file_id: 1,
        definition_source_line: 128,
        definition_source_method_id: 2,
    }
}

fn definition<'a>(evaluators: &'a [u8], field_dependencies: &'a [u8]) -> QueryDefinitionRecord<'a> {
    QueryDefinitionRecord { slot: 2, timestamp: 1_000_040_000, head: head(), evaluators, field_dependencies }
}

const EXAMPLE: &[u8] = &[
    0x2e, 0x00, 0xf7, 0x02, 0x40, 0x66, 0x9b, 0x3b, 0, 0, 0, 0, 0x00, 0x11, 0, 0, 0, 0x15, 0, 0x04, 0, 0xff,
    0xff, 0x00, 0x01, 0, 0x80, 0, 0, 0, 0x02, 0, 0x02, 0, 0x04, 0, 0x02, 0, 0x07, 0, 0x05, 0, 0x01, 0, 0x04,
    0,
];

fn encode(record: &QueryDefinitionRecord<'_>) -> Vec<u8> {
    let mut out = vec![0; 65_534];
    let size = record.encode(&mut out).expect("a sound definition");
    out.truncate(size);
    out
}

#[test]
fn sizes_are_those_of_the_format() {
    assert_eq!(QueryDefinitionRecord::compute_size(0, 0), Ok(36));
    assert_eq!(QueryDefinitionRecord::compute_size(4, 4), Ok(60));
    assert_eq!(QueryDefinitionRecord::compute_size(16, 16), Ok(132));
    assert_eq!(QueryDefinitionRecord::compute_size(16_374, 1), Ok(65_534));
    assert_eq!(QueryDefinitionRecord::compute_size(16_374, 2), Err(Error::RecordTooLong { size: 65_536 }));
    assert_eq!(
        QueryDefinitionRecord::compute_size(65_536, 0),
        Err(Error::TooMany { list: "evaluators", count: 65_536 })
    );
    assert_eq!(
        QueryDefinitionRecord::compute_size(0, usize::MAX),
        Err(Error::TooMany { list: "field dependencies", count: usize::MAX })
    );
    assert_eq!(QueryArgsRecord::compute_size(4), Ok(46));
    assert_eq!(QueryArgsRecord::compute_size(8_190), Ok(65_534));
    assert_eq!(QueryArgsRecord::compute_size(8_191), Err(Error::RecordTooLong { size: 65_542 }));
    assert_eq!(MAX_THRESHOLDS, 8_190);
}

#[test]
fn the_worked_example_is_decoded_and_encoded() {
    let record = QueryDefinitionRecord::decode(EXAMPLE).unwrap();
    assert_eq!(record, definition(&[4, 0, 2, 0, 7, 0, 5, 0], &[4, 0]));
    let evaluators: Vec<Evaluator> = record.evaluator_list().iter().collect();
    let expected = |field_idx, op| Evaluator { field_idx, op, reserved: 0 };
    assert_eq!(
        evaluators,
        [expected(4, CompareOp::GREATER_THAN), expected(7, CompareOp::LESS_THAN_OR_EQUAL)]
    );
    assert_eq!(record.field_dependency_list().iter().collect::<Vec<u16>>(), [4]);
    assert_eq!(encode(&record), EXAMPLE);
}

#[test]
fn every_decode_error_is_named() {
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = EXAMPLE.to_vec();
        change(&mut bytes);
        QueryDefinitionRecord::decode(&bytes).map(|record| record.head.local_id)
    };
    assert_eq!(with(&|bytes| bytes.truncate(11)), Err(Error::HeaderCut { available: 11 }));
    assert_eq!(with(&|bytes| bytes.clear()), Err(Error::HeaderCut { available: 0 }));
    assert_eq!(with(&|bytes| bytes[2] = 248), Err(Error::WrongKind { found: 248, expected: 247 }));
    assert_eq!(with(&|bytes| bytes[0] += 1), Err(Error::PastInput { size: 47, available: 46 }));
    assert_eq!(with(&|bytes| bytes[0] = 35), Err(Error::RecordTooShort { size: 35, minimum: 36 }));
    assert_eq!(with(&|bytes| bytes[0] = 0), Err(Error::RecordTooShort { size: 0, minimum: 36 }));
    let past = |list, count, end| Err(Error::ListPastEnd { list, count, end, size: 46 });
    assert_eq!(with(&|bytes| bytes[32] = 4), past("evaluators", 4, 36 + 16));
    assert_eq!(with(&|bytes| bytes[42] = 2), past("field dependencies", 2, 36 + 8 + 4));
    assert_eq!(with(&|bytes| bytes[33] = 0xFF), past("evaluators", 0xFF02, 36 + 4 * 0xFF02));
}

#[test]
fn every_encode_error_leaves_the_destination_alone() {
    let check = |record: QueryDefinitionRecord<'_>, available: usize, expected: Error| {
        let mut out = vec![0xAA; available];
        assert_eq!(record.encode(&mut out), Err(expected));
        assert!(out.iter().all(|byte| *byte == 0xAA));
    };
    let partial = |list, bytes, entry_bytes| Error::PartialEntry { list, bytes, entry_bytes };
    check(definition(&[0; 5], &[]), 100, partial("evaluators", 5, 4));
    check(definition(&[], &[0; 3]), 100, partial("field dependencies", 3, 2));
    let many = vec![0; 4 * 65_536];
    check(definition(&many, &[]), 100, Error::TooMany { list: "evaluators", count: 65_536 });
    check(
        definition(&[], &many[..2 * 65_536]),
        100,
        Error::TooMany { list: "field dependencies", count: 65_536 },
    );
    check(definition(&many[..4 * 16_375], &[]), 70_000, Error::RecordTooLong { size: 65_536 });
    check(definition(&[0; 8], &[0; 2]), 45, Error::DestinationTooShort { needed: 46, available: 45 });
}

#[test]
fn unknown_kinds_operators_and_reserved_bytes_are_decoded_as_they_are() {
    let mut bytes = EXAMPLE.to_vec();
    bytes[12] = 9;
    bytes[36] = 200;
    bytes[37] = 77;
    let record = QueryDefinitionRecord::decode(&bytes).unwrap();
    assert_eq!(record.head.kind, QueryInstanceKind(9));
    let first = record.evaluator_list().get(0);
    assert_eq!(first, Some(Evaluator { field_idx: 4, op: CompareOp(200), reserved: 77 }));
    assert_eq!(encode(&record), bytes);
}

#[test]
fn bytes_behind_the_lists_and_behind_the_record_are_ignored() {
    let mut bytes = EXAMPLE.to_vec();
    bytes.extend([1, 2, 3]);
    assert_eq!(QueryDefinitionRecord::decode(&bytes), QueryDefinitionRecord::decode(EXAMPLE));
    bytes[0] += 3;
    assert_eq!(QueryDefinitionRecord::decode(&bytes), QueryDefinitionRecord::decode(EXAMPLE));
}

#[test]
fn every_query_arguments_error_is_named() {
    let thresholds = [1_u8; 16];
    let record = QueryArgsRecord { slot: 1, timestamp: 5, thresholds: &thresholds };
    let mut bytes = vec![0; 30];
    assert_eq!(record.encode(&mut bytes), Ok(30));
    assert_eq!(QueryArgsRecord::decode(&bytes), Ok(record));
    assert_eq!(record.threshold_list().iter().collect::<Vec<i64>>(), [0x0101_0101_0101_0101; 2]);
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        QueryArgsRecord::decode(&bytes).map(|record| record.slot)
    };
    assert_eq!(QueryArgsRecord::decode(&bytes[..4]), Err(Error::HeaderCut { available: 4 }));
    assert_eq!(with(2, 247), Err(Error::WrongKind { found: 247, expected: 248 }));
    assert_eq!(with(0, 31), Err(Error::PastInput { size: 31, available: 30 }));
    assert_eq!(with(0, 13), Err(Error::RecordTooShort { size: 13, minimum: 14 }));
    assert_eq!(with(12, 3), Err(Error::ListPastEnd { list: "thresholds", count: 3, end: 38, size: 30 }));
    let mut out = [0xAA; 29];
    let short = Error::DestinationTooShort { needed: 30, available: 29 };
    assert_eq!(record.encode(&mut out), Err(short));
    let odd = QueryArgsRecord { thresholds: &thresholds[..9], ..record };
    let partial = Error::PartialEntry { list: "thresholds", bytes: 9, entry_bytes: 8 };
    assert_eq!(odd.encode(&mut out), Err(partial));
    assert_eq!(out, [0xAA; 29]);
}

proptest! {
    #[test]
    fn definitions_round_trip(
        evaluators in prop::collection::vec(any::<[u8; 4]>(), 0..40),
        dependencies in prop::collection::vec(any::<[u8; 2]>(), 0..40),
        ids in (any::<u8>(), any::<u32>(), any::<u16>(), any::<i16>(), any::<i16>()),
        place in (any::<bool>(), any::<u16>(), any::<i32>(), any::<u16>()),
        slot in any::<u8>(),
        timestamp in any::<i64>(),
    ) {
        let head = QueryDefinitionHead {
            kind: QueryInstanceKind(ids.0),
            local_id: ids.1,
            target_component_type: ids.2,
            primary_index_field_idx: ids.3,
            sort_field_idx: ids.4,
            sort_descending: place.0,
            definition_source_file_id: place.1,
            definition_source_line: place.2,
            definition_source_method_id: place.3,
        };
        let (evaluators, field_dependencies) = (evaluators.concat(), dependencies.concat());
        let (evaluators, field_dependencies) = (evaluators.as_slice(), field_dependencies.as_slice());
        let record = QueryDefinitionRecord { slot, timestamp, head, evaluators, field_dependencies };
        let bytes = encode(&record);
        let size = QueryDefinitionRecord::compute_size(evaluators.len() / 4, field_dependencies.len() / 2);
        prop_assert_eq!(size, Ok(bytes.len()));
        prop_assert_eq!(QueryDefinitionRecord::decode(&bytes), Ok(record));
        for cut in 0..bytes.len() {
            prop_assert!(QueryDefinitionRecord::decode(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..120), is_args in any::<bool>()) {
        if let Some(kind) = bytes.get_mut(2) {
            *kind = if is_args { 248 } else { 247 };
        }
        if let [size, rest, ..] = bytes.as_mut_slice() {
            (*size, *rest) = (*size % 128, 0);
        }
        // A record that is accepted is written back as it was, up to its appended bytes and its boolean.
        if let Ok(record) = QueryDefinitionRecord::decode(&bytes) {
            let again = encode(&record);
            prop_assert_eq!(&again[24..], &bytes[24..again.len()]);
        }
        if let Ok(record) = QueryArgsRecord::decode(&bytes) {
            let mut again = vec![0; 200];
            let size = record.encode(&mut again).unwrap();
            prop_assert_eq!(&again[2..size], &bytes[2..size]);
        }
    }
}
