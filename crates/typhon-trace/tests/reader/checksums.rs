//! Checksum verdicts as readers deliver them (B-38).

use typhon_trace::NoticeCode;
use typhon_trace::reader::{BlockBuffer, TraceFile, Verdict};

use super::fixture::{PLAIN, Recipe, SALVAGE, SeenBlock, names, read};

fn codes(notices: &[typhon_trace::Notice]) -> Vec<NoticeCode> {
    notices.iter().map(|notice| notice.code).collect()
}

/// Changes the last byte of a block's data, which is a literal of the last record: the block still decodes.
fn damage_block(file: &mut [u8], blocks: &[SeenBlock], index: usize) {
    let end = blocks.get(index + 1).map_or(file.len(), |next| next.offset as usize);
    file[end - 1] ^= 0x10;
}

#[test]
fn b38_a_whole_file_is_proven_and_shows_no_markers() {
    let file = Recipe::full().write();
    let (blocks, outcome) = read(&file, PLAIN).unwrap();
    assert_eq!(blocks.len(), 4, "three event blocks and the closing block");
    assert!(blocks.iter().all(|block| block.verdict == Verdict::Sound && block.delivered));
    let events: Vec<u8> = blocks.iter().flat_map(|block| block.events.clone()).collect();
    let written =
        [super::fixture::records(1, 3), super::fixture::records(2, 1), super::fixture::records(3, 5)];
    assert_eq!(events, written.concat());
    assert_eq!((outcome.totals.events, outcome.totals.proven_blocks), (9, 4));
    assert_eq!(outcome.notices, []);
    assert_eq!(outcome.span_names.get(2), Some("dig"));
    assert_eq!(outcome.sections.places.len(), 4);
}

#[test]
fn b38_records_of_a_mismatching_block_come_only_with_salvage() {
    let mut file = Recipe { names_before: None, ..Recipe::full() }.write();
    let (blocks, _) = read(&file, PLAIN).unwrap();
    damage_block(&mut file, &blocks, 1);
    let (after, outcome) = read(&file, PLAIN).unwrap();
    let verdicts: Vec<_> = after.iter().map(|block| (block.verdict, block.delivered)).collect();
    let sound = (Verdict::Sound, true);
    assert_eq!(verdicts, [sound, (Verdict::Mismatch, false), sound, sound]);
    assert_eq!((outcome.totals.events, outcome.totals.withheld_events), (8, 1));
    assert_eq!(codes(&outcome.notices), [NoticeCode::ChecksumBlock]);
    let (salvaged, outcome) = read(&file, SALVAGE).unwrap();
    assert!(salvaged[1].delivered && salvaged[1].verdict == Verdict::Mismatch);
    assert_eq!((outcome.totals.events, outcome.totals.withheld_events), (9, 0));
}

#[test]
fn b38_names_between_blocks_belong_to_the_block_before_them() {
    let mut file = Recipe::full().write();
    let place = file.windows(4).rposition(|window| window == b"hunt").unwrap();
    file[place] = b'H';
    let (blocks, _) = read(&file, PLAIN).unwrap();
    assert_eq!(blocks[0].verdict, Verdict::Mismatch);
    assert!(blocks[1..].iter().all(|block| block.verdict == Verdict::Sound));
}

#[test]
fn b38_the_last_block_of_a_crashed_file_is_unchecked_and_kept() {
    let file = Recipe { close: false, ..Recipe::full() }.write();
    let (blocks, outcome) = read(&file, PLAIN).unwrap();
    let verdicts: Vec<_> = blocks.iter().map(|block| (block.verdict, block.delivered)).collect();
    assert_eq!(verdicts, [(Verdict::Sound, true), (Verdict::Sound, true), (Verdict::Unchecked, true)]);
    let mut found = codes(&outcome.notices);
    found.sort_by_key(|code| code.as_str());
    assert_eq!(found, [NoticeCode::ChecksumUnknown, NoticeCode::NotClosedCleanly]);
}

#[test]
fn b38_a_closed_file_without_its_closing_block_is_reported() {
    let file = Recipe { sections: false, names_before: None, ..Recipe::full() }.write();
    let (blocks, _) = read(&file, PLAIN).unwrap();
    let cut = blocks[3].offset as usize;
    let (_, outcome) = read(&file[..cut], PLAIN).unwrap();
    assert!(codes(&outcome.notices).contains(&NoticeCode::ChecksumMissing));
}

#[test]
fn b38_a_dialect_marker_without_names_is_a_finding() {
    let file = Recipe::full().write();
    let place = file.windows(7).position(|window| window == b".crc32c").unwrap();
    let mut file = file;
    file[place + 1] = b'C';
    let (_, outcome) = read(&file, PLAIN).unwrap();
    assert!(codes(&outcome.notices).contains(&NoticeCode::DialectMismatch));
}

#[test]
fn b38_an_interrupted_close_is_told_from_the_header() {
    let mut file = Recipe::full().write();
    let open = Recipe { close: false, ..Recipe::full() }.write();
    file[..207].copy_from_slice(&open[..207]);
    let (blocks, outcome) = read(&file, PLAIN).unwrap();
    assert!(blocks.iter().all(|block| block.verdict == Verdict::Sound));
    let notice = outcome.notices.iter().find(|notice| notice.code == NoticeCode::ChecksumHeader).unwrap();
    assert!(notice.message.contains("interrupted"), "{}", notice.message);
}

#[test]
fn b38_blocks_after_the_closing_block_are_reported() {
    let file = Recipe { sections: false, names_before: None, ..Recipe::full() }.write();
    let (blocks, _) = read(&file, PLAIN).unwrap();
    let first = &file[blocks[0].offset as usize..blocks[1].offset as usize];
    let longer = [&file[..], first].concat();
    let (_, outcome) = read(&longer, PLAIN).unwrap();
    let found = codes(&outcome.notices);
    assert!(
        found.contains(&NoticeCode::UnknownBytes) && found.contains(&NoticeCode::ChecksumMissing),
        "{found:?}"
    );
}

#[test]
fn b37_reported_losses_are_summed() {
    use typhon_trace::writer::{CloseInfo, TraceWriter, WriterOptions};
    let header = typhon_trace::header::FileHeader::new(1);
    let sink = std::io::Cursor::new(Vec::new());
    let mut writer = TraceWriter::create(sink, header, &Default::default(), WriterOptions::new(9)).unwrap();
    writer.records_dropped(4, 5_000_000_000);
    writer.write_records(&super::fixture::records(1, 3)).unwrap();
    writer.close(&CloseInfo { duration_ticks: 1, ..CloseInfo::default() });
    let file = writer.into_inner().into_inner();
    let (_, outcome) = read(&file, PLAIN).unwrap();
    assert_eq!(outcome.totals.dropped_records, 5_000_000_000);
    let notice = outcome.notices.iter().find(|notice| notice.code == NoticeCode::RecordsDropped).unwrap();
    assert_eq!(notice.count, 5_000_000_000);
}

#[test]
fn b37_losses_of_records_and_of_whole_batches_add_up() {
    use typhon_trace::checksum::{DROPPED_BATCHES_NAME, DROPPED_RECORDS_NAME, named_instant};
    use typhon_trace::trailer::SpanNames;
    use typhon_trace::writer::{CloseInfo, TraceWriter, WriterOptions};
    let header = typhon_trace::header::FileHeader::new(1);
    let sink = std::io::Cursor::new(Vec::new());
    let mut writer = TraceWriter::create(sink, header, &Default::default(), WriterOptions::new(9)).unwrap();
    // The second name comes to be known only between the blocks.
    for (id, name, lost) in [(0, DROPPED_RECORDS_NAME, 5), (1, DROPPED_BATCHES_NAME, 700), (2, "mine", 9_000)]
    {
        let mut names = SpanNames::default();
        names.push(id, name);
        writer.span_names(&names).unwrap();
        writer.write_block(&named_instant(3, 10, id, lost)).unwrap();
    }
    writer.close(&CloseInfo { duration_ticks: 1, ..CloseInfo::default() });
    let file = writer.into_inner().into_inner();
    assert_eq!(read(&file, PLAIN).unwrap().1.totals.dropped_records, 705);
}

#[test]
fn b31_later_names_win_and_come_with_the_index() {
    let file = Recipe::full().write();
    let opened = TraceFile::open(file).unwrap();
    let index = opened.scan(PLAIN).unwrap();
    assert_eq!(index.span_names.get(1), Some("hunt"));
    let mut merged = index.span_names.clone();
    merged.entries.extend(names(&[(1, "rest")]).entries);
    assert_eq!(merged.get(1), Some("rest"));
    let mut buffer = BlockBuffer::new();
    opened.read_block(&index, &index.entries[2], &mut buffer).unwrap();
    assert_eq!(buffer.events().count(), 5);
    assert_eq!(buffer.summary().unwrap().walked_records, 6, "the header's count includes the marker");
}

#[test]
fn findings_about_records_give_their_index_in_the_block_with_markers_counted() {
    use super::fixture::{record, records, verify_bytes};
    use typhon_trace::writer::{CloseInfo, TraceWriter, WriterOptions};
    let header = typhon_trace::header::FileHeader::new(1);
    let sink = std::io::Cursor::new(Vec::new());
    let mut writer = TraceWriter::create(sink, header, &Default::default(), WriterOptions::new(9)).unwrap();
    writer.write_records(&records(1, 3)).unwrap();
    writer.write_records(&record(255, 1_100, &[1])).unwrap();
    writer.close(&CloseInfo { duration_ticks: 1, ..CloseInfo::default() });
    let report = verify_bytes(&writer.into_inner().into_inner(), PLAIN).unwrap();
    let finding = report.findings.iter().find(|finding| finding.code == NoticeCode::UnknownKind).unwrap();
    assert_eq!((finding.block, finding.record), (Some(0), Some(4)));
}
