use std::io::Cursor;

use typhon_trace::checksum::{DROPPED_RECORDS_NAME, named_instant};
use typhon_trace::header::FileHeader;
use typhon_trace::record::RecordWalk;
use typhon_trace::tables::{Archetype, Tables};
use typhon_trace::trailer::{CpuFrame, CpuSample, CpuSamples, FileEntry, FileTable, QueryStrings, Section};
use typhon_trace::trailer::{SourceLocation, SourceManifest, SpanNames};
use typhon_trace::writer::{CloseInfo, CloseStep, TraceWriter, WriterOptions};
use typhon_trace::{RecordRefusal, TraceError};

use super::support::{instant, open, section, span};

pub(crate) type MemoryWriter = TraceWriter<Cursor<Vec<u8>>>;

pub(crate) fn tables() -> Tables {
    let archetype =
        |archetype_id, name: &str, routing_id| Archetype { archetype_id, name: name.into(), routing_id };
    Tables { archetypes: vec![archetype(1, "Ant", 7), archetype(2, "Nest", 9)], ..Tables::default() }
}

pub(crate) fn writer() -> MemoryWriter {
    let header = FileHeader::new(639_315_870_044_133_855);
    TraceWriter::create(Cursor::default(), header, &tables(), WriterOptions::new(200)).unwrap()
}

fn close(mut writer: MemoryWriter, info: &CloseInfo) -> Vec<u8> {
    let report = writer.close(info);
    assert!(report.complete, "{:?}", report.problems);
    assert!(report.problems.is_empty());
    writer.into_inner().into_inner()
}

pub(crate) fn close_info() -> CloseInfo {
    CloseInfo { stop_timestamp: 5_000, duration_ticks: 4_000, tsn_max: 77, ..CloseInfo::default() }
}

fn names(entries: &[(u16, &str)]) -> SpanNames {
    let mut names = SpanNames::default();
    entries.iter().for_each(|&(id, name)| names.push(id, name));
    names
}

#[test]
fn records_come_back_in_order() {
    let mut writer = writer();
    let records: Vec<_> = (0..100_000).map(|i| span(1, i, &(i * 7).to_le_bytes())).collect();
    let all = records.concat();
    let (one_by_one, at_once) = all.split_at(records[0].len() * 1_000);
    for record in RecordWalk::new(one_by_one) {
        writer.write_records(record.bytes()).unwrap();
    }
    writer.write_records(at_once).unwrap();
    let file = close(writer, &close_info());
    let opened = open(&file);
    assert!(opened.closing);
    assert!(opened.records() == all);
}

#[test]
fn b23_blocks_keep_both_limits_and_leave_room_for_the_marker() {
    let mut writer = writer();
    let small = instant(0, 1, 1, &[]);
    writer.write_records(&small.repeat(8_191)).unwrap();
    assert_eq!(writer.written().blocks, 0, "8,191 records fit into one block");
    writer.write_records(&small).unwrap();
    assert_eq!(writer.written().blocks, 1);
    writer.flush().unwrap();
    let large = instant(9, 1, 1, &vec![0; 65_534 - 12]);
    let filler = instant(9, 1, 1, &vec![1; 262_124 - 3 * 65_534 - 12]);
    writer.write_records(&[large.repeat(3), filler].concat()).unwrap();
    assert_eq!(writer.written().blocks, 2, "262,124 bytes fit into one block");
    writer.write_records(&small).unwrap();
    assert_eq!(writer.written().blocks, 3);
    let opened = open(&close(writer, &close_info()));
    let sizes: Vec<_> = opened.blocks.iter().map(Vec::len).collect();
    assert_eq!(sizes, [8_191 * 12, 12, 262_124, 12]);
}

#[test]
fn b23_empty_batches_write_no_block() {
    let mut writer = writer();
    writer.write_records(&[]).unwrap();
    writer.flush().unwrap();
    assert_eq!(writer.written().blocks, 0);
}

#[test]
fn b25_header_and_tables_are_out_before_the_first_block() {
    let writer = writer();
    let opened = open(&writer.into_inner().into_inner());
    assert_eq!(opened.tables.tables, tables());
    assert_eq!(opened.names.entries.len(), 4, "a file that ends here still declares its checksums");
    assert!(!opened.header.is_closed());
}

#[test]
fn b25_flush_hands_every_record_over() {
    let mut writer = writer();
    let records = [instant(0, 1, 1, &[]), span(1, 2, b"x")].concat();
    writer.write_records(&records).unwrap();
    writer.flush().unwrap();
    let opened = open(writer.into_inner().get_ref());
    assert_eq!(opened.records(), records);
}

#[test]
fn b26_close_completes_the_header() {
    let mut writer = writer();
    writer.write_records(&instant(0, 1, 1, &[]).repeat(3)).unwrap();
    let opened = open(&close(writer, &close_info()));
    assert!(opened.closing && opened.header.is_closed());
    assert_eq!(
        (opened.header.tsn_max, opened.header.duration_ticks, opened.header.tick_count),
        (77, 4_000, 3)
    );
    assert_eq!(opened.header.archetype_count, 2);
}

#[test]
fn b27_close_is_idempotent_and_final() {
    let mut writer = writer();
    let bytes = writer.close(&close_info()).bytes;
    let again = writer.close(&CloseInfo::default());
    assert_eq!((again.bytes, again.complete), (bytes, true));
    let record = instant(0, 1, 1, &[]);
    assert!(matches!(writer.write_records(&record), Err(TraceError::AlreadyClosed)));
    assert!(matches!(writer.flush(), Err(TraceError::AlreadyClosed)));
    let file = writer.into_inner().into_inner();
    assert_eq!(open(&file).header.tsn_max, 77);
    assert_eq!(file.len() as u64, bytes);
}

#[test]
fn b37_losses_stand_before_the_next_records_and_carry_their_remainder() {
    let mut writer = writer();
    writer.write_records(&instant(0, 1, 10, &[])).unwrap();
    writer.records_dropped(5, i32::MAX as u64 + 3);
    writer.records_dropped(2, 1);
    writer.flush().unwrap();
    writer.write_records(&instant(1, 1, 20, &[])).unwrap();
    writer.flush().unwrap();
    let file = close(writer, &close_info());
    let opened = open(&file);
    let id = opened.names.entries.iter().find(|entry| entry.name == DROPPED_RECORDS_NAME).unwrap().id;
    let marker = |slot, time, count| named_instant(slot, time, id, count).to_vec();
    assert_eq!(opened.blocks[0], instant(0, 1, 10, &[]));
    let second = [marker(2, 20, 1), marker(5, 20, i32::MAX), instant(1, 1, 20, &[])].concat();
    assert_eq!(opened.blocks[1], second);
    assert_eq!(opened.blocks[2], marker(5, 5_000, 3), "close reports what is left");
    assert_eq!(opened.blocks.len(), 3);
}

#[test]
fn b37_a_name_given_by_the_caller_is_used() {
    let mut writer = writer();
    writer.span_names(&names(&[(3, DROPPED_RECORDS_NAME)])).unwrap();
    writer.records_dropped(1, 9);
    let opened = open(&close(writer, &close_info()));
    assert_eq!(opened.blocks[0], named_instant(1, 5_000, 3, 9));
    assert_eq!(opened.names.entries.iter().filter(|entry| entry.name == DROPPED_RECORDS_NAME).count(), 1);
}

#[test]
fn span_names_stand_before_the_block_that_uses_them() {
    let mut writer = writer();
    writer.write_records(&instant(0, 1, 1, &[])).unwrap();
    writer.flush().unwrap();
    writer.span_names(&names(&[(0, "lap")])).unwrap();
    writer.write_records(&named_instant(1, 2, 0, 5)).unwrap();
    writer.flush().unwrap();
    writer.span_names(&names(&[(1, "late")])).unwrap();
    let file = close(writer, &close_info());
    let opened = open(&file);
    assert_eq!(opened.names.get(0), Some("lap"));
    assert_eq!(
        opened.names.get(1),
        Some("late"),
        "names without a block are written before the closing block"
    );
    let lap = file.windows(3).position(|bytes| bytes == b"lap").unwrap();
    let late = file.windows(4).position(|bytes| bytes == b"late").unwrap();
    assert!(lap < late);
}

#[test]
fn reserved_names_are_refused() {
    let mut writer = writer();
    for taken in [(65_535, "mine"), (65_531, "mine"), (1, "typhon.crc32c.block")] {
        let refused = writer.span_names(&names(&[(0, "fine"), taken]));
        assert!(matches!(refused, Err(TraceError::ReservedName { id, .. }) if id == taken.0), "{taken:?}");
    }
    assert_eq!(
        open(&close(writer, &close_info())).names.get(0),
        None,
        "a refused table is not taken in part"
    );
}

#[test]
fn b2_a_writer_refuses_removed_kinds_and_a_copy_keeps_them() {
    for kind in [164, 235, 240] {
        let before = instant(0, 1, 1, &[]);
        let removed = instant(kind, 1, 1, &[0; 60]);
        let batch = [before.clone(), removed, before.clone()].concat();
        let mut writer = writer();
        let refused = writer.write_records(&batch);
        let expected = RecordRefusal::RemovedKind { kind };
        assert!(
            matches!(refused, Err(TraceError::RefusedRecord { offset: 12, refusal }) if refusal == expected),
            "{refused:?}"
        );
        assert_eq!(open(&close(writer, &close_info())).records(), before);
        let mut writer = super::output::writer();
        writer.copy_records(&batch).unwrap();
        assert_eq!(open(&close(writer, &close_info())).records(), batch);
    }
}

#[test]
fn b6_illegal_sizes_are_refused() {
    let too_small = [11, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let sentinel = [&[0xFF, 0xFF][..], &[0; 65_533]].concat();
    let cut = &instant(0, 1, 1, &[0; 8])[..15];
    let short_span = instant(40, 1, 1, &[0; 24]);
    for batch in [&too_small[..], &sentinel, cut, &short_span] {
        let refused = writer().write_records(batch);
        assert!(matches!(refused, Err(TraceError::RefusedRecord { offset: 0, .. })), "{refused:?}");
    }
    writer().copy_records(&short_span).unwrap();
}

#[test]
fn b20_a_copy_keeps_dialect_clock_and_unknown_records() {
    let reference = FileHeader { reserved0: 0, timestamp_frequency: 10_000_000, ..FileHeader::new(1) };
    let options = WriterOptions::avoiding(0, [65_535, 65_533]).unwrap();
    let mut writer =
        TraceWriter::create(Cursor::default(), reference.clone(), &Tables::default(), options).unwrap();
    writer.span_names(&names(&[(65_535, "theirs"), (65_533, "also theirs")])).unwrap();
    let unknown = instant(255, 3, 9, b"bytes of a later version");
    writer.copy_records(&unknown).unwrap();
    let opened = open(&close(writer, &close_info()));
    assert_eq!(opened.records(), unknown);
    assert_eq!((opened.header.reserved0, opened.header.timestamp_frequency), (0, 10_000_000));
    assert_eq!(opened.names.get(65_535), Some("theirs"));
    assert!(!opened.checksum_names.contains(65_535) && !opened.checksum_names.contains(65_533));
}

#[test]
fn b38_a_copy_of_a_copy_carries_no_stale_markers() {
    let records = [instant(0, 1, 10, &[]), span(1, 11, b"abc")].concat();
    let mut first = writer();
    first.write_records(&records).unwrap();
    let source = open(&close(first, &close_info()));
    let mut second = writer();
    for block in &source.raw_blocks {
        second.copy_records(source.checksum_names.events(block)).unwrap();
    }
    let copy = open(&close(second, &close_info()));
    assert_eq!(copy.records(), records);
}

#[test]
fn b38_the_marker_has_slot_and_time_of_the_rules() {
    let mut writer = writer();
    writer.write_records(&instant(0, 1, 123, &[])).unwrap();
    let opened = open(&close(writer, &close_info()));
    let markers = opened.raw_blocks.iter().flat_map(|block| RecordWalk::new(block));
    let markers = markers.filter_map(|record| opened.checksum_names.marker(&record));
    let times: Vec<_> = markers.map(|marker| (marker.slot, marker.timestamp)).collect();
    assert_eq!(times, [(200, 123), (200, 5_000), (200, 5_000), (200, 5_000)]);
}

#[test]
fn b38_without_events_the_closing_block_is_the_first() {
    let opened = open(&close(writer(), &close_info()));
    assert!(opened.closing && opened.blocks.is_empty());
}

#[test]
fn several_engines_make_routing_ids_unknown() {
    let mut writer = writer();
    writer.write_records(&instant(0, 1, 1, &[])).unwrap();
    let opened = open(&close(writer, &CloseInfo { multiple_engines: true, ..close_info() }));
    assert!(opened.header.multiple_engines_observed());
    let ids: Vec<_> = opened.tables.tables.archetypes.iter().map(|entry| entry.routing_id).collect();
    assert_eq!(ids, [0xFFFF, 0xFFFF]);
    let names: Vec<_> = opened.tables.tables.archetypes.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["Ant", "Nest"]);
}

fn full_close_info() -> CloseInfo {
    let mut cpu_samples = CpuSamples {
        samples: vec![CpuSample { timestamp: 5, slot: 1, sample_type: 0, stack_index: 0 }],
        frames: vec![CpuFrame { frame_id: 3, file_id: 0, line: 9, method: "main".into() }],
        ..CpuSamples::default()
    };
    cpu_samples.stacks.push(&[3]);
    CloseInfo {
        sources: Some((
            FileTable { files: vec![FileEntry { file_id: 0, path: "src/main.rs".into() }] },
            SourceManifest {
                entries: vec![SourceLocation { id: 1, file_id: 0, line: 3, kind: 0, method: "tick".into() }],
            },
        )),
        cpu_samples,
        query_strings: QueryStrings { texts: vec![String::new(), "a.rs".into()] },
        ..close_info()
    }
}

#[test]
fn trailer_sections_stand_in_reference_order_and_read_back() {
    let info = full_close_info();
    let file = close(writer(), &info);
    let offsets = open(&file).header.offsets;
    assert!(offsets.file_table < offsets.source_location_manifest);
    assert!(offsets.source_location_manifest < offsets.cpu_sample_section);
    assert!(offsets.cpu_sample_section < offsets.query_source_string_table);
    let (files, manifest) = info.sources.unwrap();
    let mut bytes = section(&file, offsets.file_table, Section::FileTable);
    assert_eq!(FileTable::read(&mut bytes).unwrap().value, files);
    let mut bytes = section(&file, offsets.source_location_manifest, Section::SourceManifest);
    assert_eq!(SourceManifest::read(&mut bytes).unwrap().value, manifest);
    let mut bytes = section(&file, offsets.cpu_sample_section, Section::CpuSamples);
    assert_eq!(CpuSamples::read(&mut bytes).unwrap().value, info.cpu_samples);
    let mut bytes = section(&file, offsets.query_source_string_table, Section::QueryStrings);
    assert_eq!(QueryStrings::read(&mut bytes).unwrap().value, info.query_strings);
    assert!(bytes.is_empty(), "the last section ends the file");
}

#[test]
fn empty_sections_are_left_out() {
    let info = CloseInfo { query_strings: QueryStrings { texts: vec![String::new()] }, ..close_info() };
    let opened = open(&close(writer(), &info));
    assert!(opened.trailer.is_empty());
    assert_eq!(opened.header.offsets, Default::default());
}

#[test]
fn a_section_beyond_the_format_costs_only_itself() {
    let files = (0..65_536).map(|id| FileEntry { file_id: id as u16, path: "x".into() }).collect();
    let mut info = full_close_info();
    info.sources = Some((FileTable { files }, SourceManifest::default()));
    let mut writer = writer();
    let report = writer.close(&info);
    assert!(report.complete);
    let [problem] = &report.problems[..] else { panic!("{:?}", report.problems) };
    assert_eq!(problem.step, CloseStep::Sources);
    assert!(matches!(problem.error, TraceError::Limit { value: 65_536, limit: 65_535, .. }));
    let file = writer.into_inner().into_inner();
    let offsets = open(&file).header.offsets;
    assert_eq!((offsets.file_table, offsets.source_location_manifest), (0, 0));
    section(&file, offsets.cpu_sample_section, Section::CpuSamples);
}

#[test]
fn the_same_calls_give_the_same_bytes() {
    let record = || {
        let mut writer = writer();
        writer.span_names(&names(&[(1, "a"), (2, "b")])).unwrap();
        writer.records_dropped(3, 4);
        for i in 0..20_000 {
            writer.write_records(&span(1, i, &i.to_le_bytes())).unwrap();
        }
        close(writer, &full_close_info())
    };
    assert!(record() == record());
}

#[test]
fn a_clock_that_stands_still_is_refused() {
    let header = FileHeader { timestamp_frequency: 0, ..FileHeader::new(0) };
    let created = TraceWriter::create(Cursor::default(), header, &Tables::default(), WriterOptions::new(0));
    assert!(matches!(created, Err(TraceError::BadClockFrequency { found: 0 })));
}
