use std::io;

use proptest::collection::vec;
use proptest::prelude::*;
use typhon_trace::header::FileHeader;
use typhon_trace::trailer::*;
use typhon_trace::{NoticeCode, TraceError};

use super::recording;

/// The bytes of a recording after the magic of a section.
fn at(file: &[u8], offset: i64) -> &[u8] {
    &file[usize::try_from(offset).unwrap() + 4..]
}

#[test]
fn reference_sections_read_back_byte_for_byte() {
    for name in ["guide-shard", "anthill"] {
        let file = recording(name);
        let offsets = FileHeader::parse(&file).unwrap().offsets;
        let check = |offset: i64, read_bytes: u64, cut: bool, encoded: Vec<u8>| {
            assert!(!cut, "{name}");
            assert_eq!(encoded.len() as u64, read_bytes + 4, "{name}");
            assert_eq!(encoded, file[offset as usize..][..encoded.len()], "{name}");
        };
        let read = FileTable::read(&mut at(&file, offsets.file_table)).unwrap();
        let mut encoded = Vec::new();
        read.value.encode(&mut encoded).unwrap();
        check(offsets.file_table, read.bytes, read.cut, encoded);
        let read = SourceManifest::read(&mut at(&file, offsets.source_location_manifest)).unwrap();
        let mut encoded = Vec::new();
        read.value.encode(&mut encoded).unwrap();
        check(offsets.source_location_manifest, read.bytes, read.cut, encoded);
        let read = CpuSamples::read(&mut at(&file, offsets.cpu_sample_section)).unwrap();
        let mut encoded = Vec::new();
        read.value.encode(&mut encoded).unwrap();
        check(offsets.cpu_sample_section, read.bytes, read.cut, encoded);
        let read = QueryStrings::read(&mut at(&file, offsets.query_source_string_table)).unwrap();
        let mut encoded = Vec::new();
        read.value.encode(&mut encoded).unwrap();
        check(offsets.query_source_string_table, read.bytes, read.cut, encoded);
    }
}

#[test]
fn entries_of_a_reference_file_have_their_known_values() {
    let file = recording("guide-shard");
    let offsets = FileHeader::parse(&file).unwrap().offsets;
    let files = FileTable::read(&mut at(&file, offsets.file_table)).unwrap().value;
    let first = "/_/src/Typhon.Engine/Durability/internals/CheckpointManager.cs";
    assert_eq!((files.files.len(), files.path(0)), (79, Some(first)));
    let manifest = SourceManifest::read(&mut at(&file, offsets.source_location_manifest)).unwrap().value;
    let entry = manifest.get(2).unwrap();
    assert_eq!((entry.file_id, entry.line, entry.method.as_str()), (0, 507, "RunCheckpointCycle"));
    let strings = QueryStrings::read(&mut at(&file, offsets.query_source_string_table)).unwrap().value;
    assert_eq!((strings.get(0), strings.get(1)), (None, Some("/_/doc/guide/example/Program.cs")));
    let cpu = CpuSamples::read(&mut at(&file, offsets.cpu_sample_section)).unwrap().value;
    assert_eq!((cpu.samples.len(), cpu.stacks.len(), cpu.frames.len()), (3_880, 142, 306));
    assert_eq!((cpu.samples[0].timestamp, cpu.samples[0].slot), (796_840_226_750, NO_SLOT));
    assert_eq!(cpu.stacks.get(1).unwrap()[..2], [21, 22]);
    assert!(cpu.frame(0).unwrap().method.starts_with("System.Threading.Monitor.Wait("));
}

#[test]
fn cpu_samples_are_sorted_by_slot_without_slot_first() {
    let file = recording("anthill");
    let offsets = FileHeader::parse(&file).unwrap().offsets;
    let cpu = CpuSamples::read(&mut at(&file, offsets.cpu_sample_section)).unwrap().value;
    let mut shuffled = cpu.clone();
    shuffled.samples.reverse();
    assert_ne!(shuffled, cpu);
    shuffled.sort();
    let order = |cpu: &CpuSamples| cpu.samples.iter().map(|it| (it.slot, it.timestamp)).collect::<Vec<_>>();
    assert_eq!(order(&shuffled), order(&cpu));
}

fn example_cpu_samples() -> CpuSamples {
    let mut cpu = CpuSamples::default();
    for (stack_index, stack) in [&[1_u16, 2][..], &[], &[2]].iter().enumerate() {
        cpu.stacks.push(stack);
        let sample = CpuSample { timestamp: 9, slot: 1, sample_type: 1, stack_index: stack_index as u32 };
        cpu.samples.push(sample);
    }
    for frame_id in [1, 2] {
        cpu.frames.push(CpuFrame { frame_id, file_id: 3, line: 4, method: "run".into() });
    }
    cpu
}

#[test]
fn a_cut_section_keeps_the_entries_before_the_cut() {
    let cpu = example_cpu_samples();
    let mut bytes = Vec::new();
    cpu.encode(&mut bytes).unwrap();
    let body = &bytes[4..];
    for cut in 0..body.len() {
        let read = CpuSamples::read(&mut &body[..cut]).unwrap();
        assert!(read.cut);
        assert_eq!(read.notices.len(), 1, "one cut is one notice: {:?}", read.notices);
        assert_eq!(read.notices[0].code, NoticeCode::SectionDamaged);
        assert_eq!(read.notices[0].offset, Some(cut as u64));
        assert!(cpu.samples.starts_with(&read.value.samples) && cpu.frames.starts_with(&read.value.frames));
        assert!(read.value.stacks.iter().eq(cpu.stacks.iter().take(read.value.stacks.len())));
    }
    let read = CpuSamples::read(&mut &*body).unwrap();
    assert_eq!((read.value, read.cut, read.bytes), (cpu, false, body.len() as u64));
}

#[test]
fn b34_absurd_counts_end_at_the_end_of_the_bytes() {
    let body = [&[0xFF; 4][..], &[1, 0, 1, 0, b'x']].concat();
    let read = FileTable::read(&mut &*body).unwrap();
    assert!(read.cut);
    assert_eq!(read.value.files, [FileEntry { file_id: 1, path: "x".into() }]);
    let read = CpuSamples::read(&mut &[0xFF; 4][..]).unwrap();
    assert!(read.cut && read.value.samples.is_empty());
}

#[test]
fn b34_an_endless_source_ends_at_the_number_of_ids() {
    fn check<T>(read: SectionRead<T>, entries: impl Fn(&T) -> usize) {
        assert!(read.cut);
        assert_eq!(entries(&read.value), MAX_IDS);
        assert!(read.notices.iter().any(|notice| notice.code == NoticeCode::SectionDamaged));
    }
    let mut source = io::repeat(1);
    check(FileTable::read(&mut source).unwrap(), |table| table.files.len());
    check(SourceManifest::read(&mut source).unwrap(), |manifest| manifest.entries.len());
    check(QueryStrings::read(&mut source).unwrap(), |strings| strings.texts.len());
    check(QueryDefinitions::read(&mut source).unwrap(), |definitions| definitions.records.len());
    let no_samples = [0; 4];
    let stacks = io::Read::chain(&no_samples[..], io::Read::chain(&[0xFF; 4][..], io::repeat(0)));
    check(CpuSamples::read(&mut { stacks }).unwrap(), |cpu| cpu.stacks.len());
}

#[test]
fn more_than_65_535_files_are_refused() {
    let table = |count: u32| FileTable {
        files: (0..count).map(|id| FileEntry { file_id: id as u16, path: String::new() }).collect(),
    };
    table(65_535).encode(&mut Vec::new()).unwrap();
    let refused = table(65_536).encode(&mut Vec::new());
    assert!(matches!(refused, Err(TraceError::Limit { value: 65_536, limit: 65_535, .. })));
}

#[test]
fn duplicate_ids_are_reported_and_the_last_one_counts() {
    let entry = |path: &str| FileEntry { file_id: 5, path: path.into() };
    let table = FileTable { files: vec![entry("old.rs"), entry("new.rs")] };
    let mut bytes = Vec::new();
    table.encode(&mut bytes).unwrap();
    let read = FileTable::read(&mut &bytes[4..]).unwrap();
    assert_eq!(read.value.path(5), Some("new.rs"));
    assert_eq!(read.notices[0].code, NoticeCode::DuplicateId);
    assert_eq!(read.value, table);
}

#[test]
fn a_later_span_name_wins() {
    let mut names = SpanNames::default();
    names.push(1, "first");
    names.push(1, "second");
    assert_eq!(names.get(1), Some("second"));
}

#[test]
fn b34_names_that_repeat_without_end_do_not_fill_the_memory() {
    let mut all = SpanNames::default();
    for round in 0..10 {
        let mut table = SpanNames::default();
        (0..65_535).for_each(|id| table.push(id, format!("{round}")));
        all.merge(table);
        assert!(all.entries.len() <= 2 * MAX_IDS);
    }
    assert_eq!((all.get(0), all.get(65_534)), (Some("9"), Some("9")));
}

#[test]
fn long_paths_are_cut_between_characters() {
    let path = format!("{}\u{20ac}", "p".repeat(65_533));
    let table = FileTable { files: vec![FileEntry { file_id: 0, path }] };
    let mut bytes = Vec::new();
    table.encode(&mut bytes).unwrap();
    let read = FileTable::read(&mut &bytes[4..]).unwrap();
    assert_eq!(read.value.path(0), Some("p".repeat(65_533).as_str()));
}

#[test]
fn the_reserved_query_definition_section_is_read() {
    let body = [&2_u32.to_le_bytes()[..], &[3, 0, 7, 8, 9], &[0, 0], b"next"].concat();
    let mut rest = &body[..];
    let read = QueryDefinitions::read(&mut rest).unwrap();
    assert_eq!(read.value.records, [vec![7, 8, 9], vec![]]);
    assert_eq!((read.cut, read.bytes, rest), (false, 11, &b"next"[..]));
}

#[test]
fn text_that_is_not_utf_8_is_replaced_and_reported() {
    let body = [1, 0, 9, 0, 2, b'a', 0xFF];
    let read = SpanNames::read(&mut &body[..]).unwrap();
    assert_eq!(read.value.get(9), Some("a\u{FFFD}"));
    assert_eq!(read.notices[0].code, NoticeCode::InvalidUtf8);
}

proptest! {
    #[test]
    fn b34_any_bytes_are_read_without_panic(bytes in vec(any::<u8>(), 0..500)) {
        let mut consumed = vec![
            SpanNames::read(&mut &*bytes).unwrap().bytes,
            FileTable::read(&mut &*bytes).unwrap().bytes,
            SourceManifest::read(&mut &*bytes).unwrap().bytes,
            QueryStrings::read(&mut &*bytes).unwrap().bytes,
            QueryDefinitions::read(&mut &*bytes).unwrap().bytes,
        ];
        consumed.push(CpuSamples::read(&mut &*bytes).unwrap().bytes);
        prop_assert!(consumed.iter().all(|&count| count <= bytes.len() as u64));
    }

    #[test]
    fn span_names_round_trip(names in vec((any::<u16>(), ".{0,60}"), 0..20)) {
        let mut table = SpanNames::default();
        names.iter().for_each(|(id, name)| table.push(*id, name.as_str()));
        let mut bytes = Vec::new();
        table.encode(&mut bytes).unwrap();
        let read = SpanNames::read(&mut &bytes[4..]).unwrap();
        prop_assert_eq!((read.value, read.cut), (table, false));
    }
}
