use std::io::{self, Read};

use proptest::collection::vec;
use proptest::prelude::*;
use typhon_trace::header::HEADER_BYTES;
use typhon_trace::tables::*;
use typhon_trace::{NoticeCode, TraceError};

use super::{RECORDINGS, recording};

fn read(bytes: &[u8]) -> TablesRead {
    Tables::read(&mut &*bytes).unwrap()
}

fn codes(read: &TablesRead) -> Vec<NoticeCode> {
    read.notices.iter().map(|notice| notice.code).collect()
}

#[test]
fn reference_tables_read_back_byte_for_byte() {
    for name in RECORDINGS {
        let file = recording(name);
        let read = read(&file[HEADER_BYTES..]);
        assert_eq!((read.cut, codes(&read)), (None, vec![]), "{name}");
        let encoded = read.tables.encode().unwrap();
        assert_eq!(encoded.bytes, read.raw, "{name}");
        assert_eq!(encoded.bytes, file[HEADER_BYTES..][..encoded.bytes.len()], "{name}");
        assert_eq!(encoded.routing_id_offsets, read.routing_id_offsets, "{name}");
    }
}

#[test]
fn entries_of_a_reference_file_have_their_known_values() {
    let tables = read(&recording("anthill")[HEADER_BYTES..]).tables;
    assert_eq!(tables.system_name(1), Some("EnvironmentTick"));
    assert_eq!(tables.systems[0].successors, [3, 9]);
    assert_eq!(tables.archetype_name(1), Some("AntHill.Core.Ant"));
    assert_eq!(tables.component_type_name(6), Some("AntHill.Core.Obstacle"));
    assert_eq!(tables.tracks[0].tags, ["engine"]);
    assert_eq!((tables.dags[1].name.as_str(), tables.dags[1].track_index), ("Fence", 2));
    assert_eq!(tables.component_definitions[0].fields[0].spatial_margin, 50.0);
    let cluster = tables.archetype_definitions[0].cluster_info.unwrap();
    assert_eq!((cluster.cluster_size, cluster.cluster_stride), (49, 3968));
    assert_eq!(tables.runtime_config.unwrap().telemetry_ring_capacity, 1024);
    assert_eq!(tables.event_queues[1].event_type_name, "AntHill.Core.FoodPickedUpEvent");
    assert_eq!((tables.resource_graph.len(), tables.resource_graph[1].parent_id), (15, 1));
}

#[test]
fn routing_id_offsets_point_at_the_routing_ids() {
    let read = read(&recording("anthill")[HEADER_BYTES..]);
    let found =
        read.routing_id_offsets.iter().map(|&at| u16::from_le_bytes([read.raw[at], read.raw[at + 1]]));
    assert!(found.eq(read.tables.archetypes.iter().map(|entry| entry.routing_id)));
}

#[test]
fn schema_fingerprints_of_reference_files_are_reproduced() {
    for (name, fingerprint) in
        [("guide-shard", 8_322_668_396_615_888_679), ("anthill", 5_774_849_937_633_204_456)]
    {
        assert_eq!(read(&recording(name)[HEADER_BYTES..]).tables.schema_fingerprint(), fingerprint, "{name}");
    }
    assert_eq!(Tables::default().schema_fingerprint(), 0, "no engine");
}

#[test]
fn the_fingerprint_sorts_by_utf_16_then_revision() {
    // U+10000 is written with surrogates in UTF-16, which sort before U+E000; in UTF-8 it is the other way round.
    let sorted = [("A", 2_i32), ("\u{10000}", 1), ("\u{E000}", 1), ("\u{E000}", 5)];
    let definition = |&(name, revision): &(&str, i32)| ComponentDefinition {
        name: name.into(),
        revision,
        ..Default::default()
    };
    let fed: Vec<u8> = sorted
        .iter()
        .flat_map(|(name, revision)| [name.as_bytes(), &revision.to_le_bytes(), &[0xFF]].concat())
        .collect();
    let expected = fed.iter().fold(14_695_981_039_346_656_037_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211)
    });
    for rotation in 0..sorted.len() {
        let mut order = sorted;
        order.rotate_left(rotation);
        let tables =
            Tables { component_definitions: order.iter().map(definition).collect(), ..Tables::default() };
        assert_eq!(tables.schema_fingerprint(), expected);
    }
}

#[test]
fn empty_tables_take_23_bytes() {
    let encoded = Tables::default().encode().unwrap();
    assert_eq!(encoded.bytes, [0; 23]);
    assert_eq!(read(&encoded.bytes).tables, Tables::default());
}

/// Which tables hold something, as a bit set.
fn filled(tables: &Tables) -> u16 {
    let filled = [
        !tables.systems.is_empty(),
        !tables.archetypes.is_empty(),
        !tables.component_types.is_empty(),
        !tables.tracks.is_empty(),
        !tables.dags.is_empty(),
        !tables.component_definitions.is_empty(),
        !tables.archetype_definitions.is_empty(),
        !tables.index_catalog.is_empty(),
        tables.runtime_config.is_some(),
        !tables.event_queues.is_empty(),
        !tables.resource_graph.is_empty(),
    ];
    filled.iter().enumerate().map(|(bit, &set)| u16::from(set) << bit).sum()
}

#[test]
fn b30_a_cut_anywhere_delivers_the_tables_before_it() {
    let file = recording("all-kinds");
    let whole = read(&file[HEADER_BYTES..]);
    assert_eq!(filled(&whole.tables), 0x7FF, "the file fills every table");
    let mut last = 0;
    for cut in 0..whole.raw.len() {
        let read = read(&whole.raw[..cut]);
        let at = read.cut.expect("it is cut");
        assert!(!at.too_long && at.table >= last);
        last = at.table;
        assert_eq!(filled(&read.tables), (1 << (at.table - 1)) - 1, "cut at {cut} in table {}", at.table);
        let notice = &read.notices[0];
        assert_eq!(
            (notice.code, notice.offset),
            (NoticeCode::TablesTruncated, Some((HEADER_BYTES + cut) as u64))
        );
        assert_eq!(read.raw, whole.raw[..cut], "the bytes are kept for the checksum");
    }
    assert_eq!(last, 11);
}

#[test]
fn b34_an_endless_source_is_cut_at_the_limit() {
    for byte in [0x01, 0x7F, 0xFF] {
        let read = Tables::read(&mut io::repeat(byte)).unwrap();
        assert!(read.cut.unwrap().too_long, "{byte:#x}");
        assert_eq!(codes(&read)[0], NoticeCode::TableDamaged);
        assert!(read.raw.len() as u64 <= MAX_TABLES_BYTES);
    }
}

#[test]
fn b34_empty_texts_are_bounded_too() {
    let system = |count| System { reads: vec![String::new(); count], ..System::default() };
    let tables = |systems: Vec<System>| Tables { systems, ..Tables::default() };
    let full = tables((0..15).map(|_| system(65_535)).collect());
    assert_eq!(read(&full.encode().unwrap().bytes).cut, None);
    let more = tables((0..17).map(|_| system(65_535)).collect());
    assert!(matches!(more.encode(), Err(TraceError::Limit { limit: MAX_TABLE_TEXTS, .. })));
    // Two systems beyond the limit, written by hand: 16 such systems are 16 × 65,537 texts.
    let mut bytes = full.encode().unwrap().bytes;
    let system_bytes = (bytes.len() - 23) / 15;
    let one = bytes[2..2 + system_bytes].to_vec();
    bytes[0] = 17;
    bytes.splice(2..2, one.repeat(2));
    assert_eq!(read(&bytes).cut, Some(TablesCut { table: 1, too_long: true }));
}

#[test]
fn an_error_of_the_source_is_passed_on() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("unplugged"))
        }
    }
    assert_eq!(Tables::read(&mut Broken).unwrap_err().to_string(), "unplugged");
}

#[test]
fn exactly_the_bytes_of_the_tables_are_consumed() {
    let bytes = [&Tables::default().encode().unwrap().bytes[..], b"SPAN"].concat();
    let mut rest = &bytes[..];
    Tables::read(&mut rest).unwrap();
    assert_eq!(rest, b"SPAN");
}

#[test]
fn more_than_255_neighbours_are_capped_with_a_notice() {
    let system = |predecessors: u16, successors: u16| System {
        predecessors: (0..predecessors).collect(),
        successors: (0..successors).collect(),
        dag_id: 7,
        ..System::default()
    };
    let tables = Tables { systems: vec![system(300, 255), system(1, 256)], ..Tables::default() };
    let encoded = tables.encode().unwrap();
    assert_eq!(encoded.notices.len(), 1);
    assert_eq!((encoded.notices[0].code, encoded.notices[0].count), (NoticeCode::ValueCut, 2));
    let expected = Tables { systems: vec![system(255, 255), system(1, 255)], ..Tables::default() };
    assert_eq!(read(&encoded.bytes).tables, expected);
}

#[test]
fn long_names_are_cut_between_characters() {
    let name = format!("{}\u{20ac}", "n".repeat(254));
    let tables =
        Tables { component_types: vec![ComponentType { component_type_id: 1, name }], ..Tables::default() };
    let encoded = tables.encode().unwrap();
    assert_eq!(encoded.notices[0].code, NoticeCode::ValueCut);
    assert_eq!(read(&encoded.bytes).tables.component_type_name(1), Some("n".repeat(254).as_str()));
}

#[test]
fn field_type_modifiers_survive() {
    let flags = FIELD_INDEXED | FIELD_UNSIGNED | FIELD_DOUBLE;
    let field = FieldDefinition { field_type: 4, flags, ..FieldDefinition::default() };
    let definition = ComponentDefinition { fields: vec![field], ..ComponentDefinition::default() };
    let tables = Tables { component_definitions: vec![definition], ..Tables::default() };
    assert_eq!(read(&tables.encode().unwrap().bytes).tables, tables);
}

#[test]
fn the_presence_byte_of_the_cluster_rules_not_the_flags() {
    let with =
        ArchetypeDefinition { flags: 0, cluster_info: Some(ClusterInfo::default()), ..Default::default() };
    let without = ArchetypeDefinition { flags: 7, cluster_info: None, ..Default::default() };
    let tables = Tables { archetype_definitions: vec![with, without], ..Tables::default() };
    let encoded = tables.encode().unwrap();
    assert_eq!(read(&encoded.bytes).tables, tables);
}

#[test]
fn too_many_entries_are_refused() {
    let archetypes = vec![Archetype::default(); 65_536];
    let refused = Tables { archetypes, ..Tables::default() }.encode();
    assert!(matches!(refused, Err(TraceError::Limit { value: 65_536, limit: 65_535, .. })));
    let resource_graph = vec![ResourceNode::default(); 400_000];
    let refused = Tables { resource_graph, ..Tables::default() }.encode();
    assert!(
        matches!(refused, Err(TraceError::Limit { limit: MAX_TABLES_BYTES, .. })),
        "readers stop there as well"
    );
}

#[test]
fn duplicate_ids_are_reported_and_the_last_one_counts() {
    let archetype = |name: &str| Archetype { archetype_id: 4, name: name.into(), routing_id: 1 };
    let tables =
        Tables { archetypes: ["first", "second", "last"].map(archetype).to_vec(), ..Tables::default() };
    let read = read(&tables.encode().unwrap().bytes);
    assert_eq!(read.tables.archetype_name(4), Some("last"));
    assert_eq!(read.tables.archetypes.len(), 3, "a copy stays exact");
    assert_eq!(codes(&read), [NoticeCode::DuplicateId]);
    assert_eq!(read.notices[0].count, 2);
}

#[test]
fn text_that_is_not_utf_8_is_replaced_and_reported() {
    let name = "ab".to_owned();
    let tables =
        Tables { component_types: vec![ComponentType { component_type_id: 1, name }], ..Tables::default() };
    let mut bytes = tables.encode().unwrap().bytes;
    let at = bytes.windows(2).position(|pair| pair == b"ab").unwrap();
    bytes[at] = 0xFF;
    let read = read(&bytes);
    assert_eq!(read.tables.component_type_name(1), Some("\u{FFFD}b"));
    assert_eq!(codes(&read), [NoticeCode::InvalidUtf8]);
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(".{0,20}", 0..4)
}

prop_compose! {
    fn system()(
        numbers in any::<(u16, u8, u8, bool, u8, bool, u16)>(),
        neighbours in (vec(any::<u16>(), 0..6), vec(any::<u16>(), 0..6)),
        names in (".{0,40}", ".{0,40}"),
        access in vec(texts(), 12),
    ) -> System {
        let (index, r#type, priority, is_parallel, tier_filter, is_exclusive_phase, dag_id) = numbers;
        let (predecessors, successors) = neighbours;
        let (name, phase_name) = names;
        let mut access = access.into_iter();
        let mut next = || access.next().unwrap();
        System {
            index, name, r#type, priority, is_parallel, tier_filter, predecessors, successors, phase_name,
            is_exclusive_phase, reads: next(), reads_fresh: next(), reads_snapshot: next(),
            additional_reads: next(), writes: next(), side_writes: next(), writes_events: next(),
            reads_events: next(), writes_resources: next(), reads_resources: next(), explicit_after: next(),
            explicit_before: next(), dag_id,
        }
    }
}

prop_compose! {
    fn archetype_definition()(
        numbers in any::<(u16, i32, u16, u8, u16, u16, u8)>(),
        name in ".{0,40}",
        lists in (vec(any::<u16>(), 0..6), vec(any::<i32>(), 0..17), vec(any::<u16>(), 0..6)),
        cluster in any::<Option<(u16, u32, u32, u32, u32, u16)>>(),
    ) -> ArchetypeDefinition {
        let (archetype_id, revision, parent_archetype_id, component_count, versioned, transient, flags) = numbers;
        let (child_archetype_ids, component_type_ids, cascade_targets) = lists;
        ArchetypeDefinition {
            archetype_id, name, revision, parent_archetype_id, child_archetype_ids, component_count,
            component_type_ids, versioned_slot_mask: versioned, transient_slot_mask: transient, cascade_targets,
            flags,
            cluster_info: cluster.map(|(size, stride, header, ids, elements, multiple)| ClusterInfo {
                cluster_size: size, cluster_stride: stride, header_size: header, entity_ids_offset: ids,
                index_element_ids_base_offset: elements, multiple_indexed_field_count: multiple,
            }),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_tables_round_trip(
        systems in vec(system(), 0..4),
        archetype_definitions in vec(archetype_definition(), 0..4),
        resources in vec((any::<(i64, u8, i64, i64, u8)>(), ".{0,40}"), 0..4),
        queues in vec((any::<(u16, i32)>(), ".{0,40}", ".{0,40}"), 0..4),
    ) {
        let resource_graph = resources.into_iter().map(|((id, r#type, parent_id, created, policy), name)| {
            ResourceNode { id, name, r#type, parent_id, created_at_utc_ticks: created, exhaustion_policy: policy }
        });
        let event_queues = queues.into_iter().map(|((queue_index, capacity), name, event_type_name)| {
            EventQueue { queue_index, name, capacity, event_type_name }
        });
        let tables = Tables {
            systems, archetype_definitions, resource_graph: resource_graph.collect(),
            event_queues: event_queues.collect(), ..Tables::default()
        };
        let encoded = tables.encode().unwrap();
        prop_assert!(encoded.notices.is_empty());
        let read = read(&encoded.bytes);
        prop_assert_eq!(read.cut, None);
        prop_assert_eq!(read.tables, tables);
        prop_assert_eq!(read.raw, encoded.bytes);
    }

    #[test]
    fn b34_any_bytes_are_read_without_panic(bytes in vec(any::<u8>(), 0..2_000)) {
        let read = read(&bytes);
        prop_assert_eq!(&read.raw[..], &bytes[..read.raw.len()]);
    }
}
