//! What `repair` writes: a closed, sound file with everything that could be read.

use std::io::Cursor;

use typhon_trace::NoticeCode;
use typhon_trace::reader::{BlockBuffer, FileVerdict, ReadOptions, TraceFile};
use typhon_trace::repair::{CountingSink, RepairReport, TraceCopy, repair};
use typhon_trace::trailer::SourceLocation;

use super::fixture::{PLAIN, Recipe, SALVAGE, read, records, reference_file, verify_bytes};

fn repaired(file: &[u8], options: ReadOptions) -> (Vec<u8>, RepairReport) {
    let source = TraceFile::open(file).unwrap();
    let (sink, report) = repair(&source, options, Cursor::new(Vec::new()), |_| ()).unwrap();
    assert!(report.written.complete, "{:?}", report.written);
    (sink.into_inner(), report)
}

fn events(file: &[u8], options: ReadOptions) -> Vec<u8> {
    let (blocks, _) = read(file, options).unwrap();
    blocks.iter().filter(|block| block.delivered).flat_map(|block| block.events.clone()).collect()
}

#[test]
fn a_repaired_crash_opens_clean_with_every_complete_block() {
    let file = Recipe { close: false, ..Recipe::full() }.write();
    for cut in [file.len(), file.len() - 1, file.len() - 30] {
        let (copy, report) = repaired(&file[..cut], PLAIN);
        assert_eq!(verify_bytes(&copy, PLAIN).unwrap().verdict, FileVerdict::Sound);
        assert_eq!(events(&copy, PLAIN), events(&file[..cut], PLAIN));
        assert_eq!(report.losses.is_empty(), cut == file.len());
        let header = TraceFile::open(&copy).unwrap().header().clone();
        assert!(header.is_closed() && header.duration_ticks > 0 && header.tick_count > 0);
        let (_, outcome) = read(&copy, PLAIN).unwrap();
        assert_eq!(outcome.span_names.get(1), Some("hunt"));
    }
}

#[test]
fn a_repaired_file_keeps_sections_and_the_header() {
    let mut file = Recipe::full().write();
    let (blocks, before) = read(&file, PLAIN).unwrap();
    file[blocks[2].offset as usize + 3] = 0x7F;
    let (copy, report) = repaired(&file, PLAIN);
    assert_eq!(verify_bytes(&copy, PLAIN).unwrap().verdict, FileVerdict::Sound);
    assert_eq!(events(&copy, PLAIN), [records(1, 3), records(2, 1)].concat());
    assert!(report.losses.iter().any(|notice| notice.code == NoticeCode::BadBlockHeader));
    let (_, after) = read(&copy, PLAIN).unwrap();
    assert_eq!(after.sections.cpu_samples, before.sections.cpu_samples);
    assert_eq!(after.sections.source_manifest, before.sections.source_manifest);
    let header = TraceFile::open(&copy).unwrap().header().clone();
    assert_eq!((header.database_name.as_str(), header.tsn_min, header.tsn_max), ("hill", 5, 17));
}

#[test]
fn salvage_copies_what_lies_behind_damage_and_what_does_not_match() {
    let mut file = Recipe { blocks: vec![3, 1, 5, 2], names_before: None, ..Recipe::full() }.write();
    let (blocks, _) = read(&file, PLAIN).unwrap();
    file[blocks[1].offset as usize + 3] = 0x7F;
    file[blocks[3].offset as usize - 1] ^= 1;
    let (copy, _) = repaired(&file, PLAIN);
    assert_eq!(events(&copy, PLAIN), records(1, 3));
    let (copy, report) = repaired(&file, SALVAGE);
    assert_eq!(verify_bytes(&copy, PLAIN).unwrap().verdict, FileVerdict::Sound);
    assert_eq!(events(&copy, PLAIN), events(&file, SALVAGE));
    assert_eq!(report.written.records, 3 + 5 + 2);
    assert!(report.losses.iter().any(|notice| notice.code == NoticeCode::ChecksumBlock));
}

#[test]
fn a_copy_of_a_reference_file_reads_back_equal() {
    for name in ["all-kinds.typhon-trace", "guide-shard.typhon-trace", "anthill.typhon-trace"] {
        let file = reference_file(name);
        let (copy, report) = repaired(&file, PLAIN);
        assert_eq!(report.losses, []);
        let verdict = verify_bytes(&copy, PLAIN).unwrap();
        assert!(verdict.verdict <= FileVerdict::SoundWithNotices, "{:?}", verdict.findings);
        assert_eq!(events(&copy, PLAIN), events(&file, PLAIN));
        let (source, copied) = (TraceFile::open(&file).unwrap(), TraceFile::open(&copy).unwrap());
        let mut header = copied.header().clone();
        header.offsets = source.header().offsets;
        assert_eq!(&header, source.header());
        assert_eq!(copied.tables(), source.tables());
        let contents = |file: &TraceFile<&Vec<u8>>| {
            let mut sections = file.sections().clone();
            sections.places.clear();
            sections
        };
        assert_eq!(contents(&copied), contents(&source));
    }
}

#[test]
fn a_copy_of_a_copy_is_the_same_file() {
    let (copy, _) = repaired(&Recipe::full().write(), PLAIN);
    let (again, _) = repaired(&copy, PLAIN);
    assert!(copy == again, "the second copy differs");
}

#[test]
fn a_dry_run_counts_what_a_repair_writes() {
    let file = reference_file("guide-shard.typhon-trace");
    let (copy, report) = repaired(&file, PLAIN);
    let source = TraceFile::open(&file).unwrap();
    let (_, dry) = repair(&source, PLAIN, CountingSink::default(), |_| ()).unwrap();
    assert_eq!((dry.written.bytes, dry.written.records), (copy.len() as u64, report.written.records));
}

#[test]
fn a_repaired_file_has_each_id_once() {
    let file = Recipe::full().write();
    let (copy, _) = repaired(&file, PLAIN);
    let mut source = TraceFile::open(&file).unwrap().sections().clone();
    let twice = |entry: &SourceLocation, line| SourceLocation { line, ..entry.clone() };
    let manifest = source.source_manifest.as_mut().unwrap();
    manifest.entries = vec![twice(&manifest.entries[0], 7), twice(&manifest.entries[0], 12)];
    let files = source.file_table.as_mut().unwrap();
    files.files.push(files.files[0].clone());
    let cpu = source.cpu_samples.as_mut().unwrap();
    cpu.frames.push(cpu.frames[0].clone());

    let trace = TraceFile::open(&file).unwrap();
    let names = trace.span_names(PLAIN).unwrap();
    let mut doubled = TraceCopy::begin(&trace, &names, Cursor::new(Vec::new())).unwrap();
    let mut reader = trace.stream(PLAIN).unwrap();
    while let Some(block) = reader.next_delivered().unwrap() {
        doubled.block(&block.payload).unwrap();
    }
    let (sink, _) = doubled.finish(source, true);
    assert!(sink.into_inner() == copy, "the later entries are those of the copy without doubles");
}

#[test]
fn b38_a_copy_holds_instants_that_only_look_like_its_checksums() {
    // Without their names the markers of a file are somebody's own instants, with the very ids that a copy chooses.
    let file = Recipe { names_before: None, sections: false, ..Recipe::full() }.write();
    let trace = TraceFile::open(&file).unwrap();
    let tables_end = trace.preamble().tables_end as usize;
    let first_block = trace.scan(PLAIN).unwrap().entries[0].offset as usize;
    let mut nameless = [&file[..tables_end], &file[first_block..]].concat();
    nameless[203] = 0;
    let (copy, report) = repaired(&nameless, PLAIN);
    assert_eq!(verify_bytes(&copy, PLAIN).unwrap().findings, []);
    assert_eq!(events(&copy, PLAIN), events(&nameless, PLAIN));
    assert_eq!(report.written.records, 9 + 3 + 3, "events, a marker in each block, a closing block");

    let (by_stream, _) = read(&copy, PLAIN).unwrap();
    let copied = TraceFile::open(&copy).unwrap();
    let index = copied.scan(PLAIN).unwrap();
    let mut buffer = BlockBuffer::new();
    for (position, block) in by_stream.iter().enumerate() {
        assert_eq!(copied.read_checked(&index, position, &mut buffer).unwrap(), block.verdict);
        assert_eq!(
            buffer.events().flat_map(|record| record.bytes().to_vec()).collect::<Vec<_>>(),
            block.events
        );
    }
}
