//! A copy of a recording of the reference engine: equal records, equal tables and sections, and checksums on top.

use std::fs::{self, File};

use typhon_trace::reader::{ReadOptions, StreamReader};
use typhon_trace::record::RecordWalk;
use typhon_trace::writer::{CloseInfo, TraceWriter, WriterOptions};

use super::support::open;

#[test]
fn b20_a_reference_recording_copies_with_equal_records_and_sections() {
    for name in ["all-kinds", "guide-shard", "anthill"] {
        let path = format!("{}/../../corpus/{name}.typhon-trace", env!("CARGO_MANIFEST_DIR"));
        let mut source = StreamReader::from_file(File::open(&path).unwrap(), ReadOptions::default()).unwrap();
        let (header, tables) = (source.preamble().header.clone(), source.preamble().tables.clone());
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("copy");
        fs::write(&target, vec![0xAA; 2_000_000]).unwrap();
        let sink = File::options().write(true).open(&target).unwrap();
        let mut writer = TraceWriter::create(sink, header.clone(), &tables, WriterOptions::new(0)).unwrap();
        let mut records = Vec::new();
        while let Some(block) = source.next_delivered().unwrap() {
            for record in block.payload.events() {
                writer.copy_records(record.bytes()).unwrap();
                records.extend_from_slice(record.bytes());
            }
        }
        let sections = source.finish().unwrap().sections;
        let info = CloseInfo {
            stop_timestamp: RecordWalk::new(&records).last().unwrap().timestamp(),
            duration_ticks: header.duration_ticks,
            tsn_max: header.tsn_max,
            tick_count: Some(header.tick_count),
            sources: sections.file_table.clone().zip(sections.source_manifest.clone()),
            cpu_samples: sections.cpu_samples.clone().unwrap_or_default(),
            query_strings: sections.query_strings.clone().unwrap_or_default(),
            ..CloseInfo::default()
        };
        assert!(writer.close(&info).complete);

        let file = fs::read(&target).unwrap();
        let copy = open(&file);
        assert!(copy.closing && copy.records() == records, "{name}");
        assert_eq!(copy.tables.tables, tables, "{name}");
        let mut expected = header.clone();
        expected.offsets = copy.header.offsets;
        assert_eq!(
            copy.header, expected,
            "{name}: all but the offsets are as in the source, the dialect too"
        );
        let mut again = StreamReader::from_reader(&file[..], ReadOptions::default()).unwrap();
        while again.next_block().unwrap().is_some() {}
        let outcome = again.finish().unwrap();
        assert_eq!(outcome.notices, [], "{name}: the reader finds nothing wrong, and its checksums right");
        let mut read = outcome.sections;
        read.places = sections.places.clone();
        assert_eq!(read, sections, "{name}");
    }
}
