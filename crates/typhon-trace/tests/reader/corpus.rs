//! The recordings in `corpus/` open with exactly the blocks, counts and metadata that the reference engine's own
//! reader reports for them in the `.meta.json.gz` beside each.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::Value;
use typhon_trace::header::FileHeader;
use typhon_trace::reader::{BlockBuffer, EndReason, ReadOptions, Sections, StreamReader, TraceFile, Verdict};
use typhon_trace::tables::Tables;
use typhon_trace::{NoticeCode, Severity};

/// Every trace below `corpus/` with its expected values.
fn corpus() -> Vec<(PathBuf, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let mut pending = vec![root];
    let mut found = Vec::new();
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder).expect("the corpus folder is part of the repository") {
            let path = entry.unwrap().path();
            let meta = path.with_extension("meta.json.gz");
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|it| it == "typhon-trace") && meta.exists() {
                let meta = flate2::read::GzDecoder::new(File::open(meta).unwrap());
                found.push((path, serde_json::from_reader(meta).unwrap()));
            }
        }
    }
    assert!(found.len() >= 2, "the corpus holds reference recordings");
    found
}

#[derive(Default, PartialEq, Debug)]
struct Seen {
    blocks: Vec<(u64, u64, u64)>,
    counts: BTreeMap<u8, u64>,
    records: u64,
}

impl Seen {
    fn add(&mut self, buffer: &BlockBuffer) {
        let summary = buffer.summary().unwrap();
        assert_eq!((&summary.data_fault, &summary.record_fault, summary.short_spans), (&None, &None, 0));
        let entry = summary.entry;
        self.blocks.push((entry.offset, summary.events.into(), entry.header.uncompressed_bytes.into()));
        for record in buffer.events() {
            *self.counts.entry(record.kind()).or_default() += 1;
            self.records += 1;
        }
    }

    fn expected(meta: &Value) -> Self {
        let number = |value: &Value| value.as_u64().unwrap();
        let block = |it: &Value| (number(&it["offset"]), number(&it["records"]), number(&it["bytes"]));
        let counts = meta["countsByKind"].as_object().unwrap();
        Self {
            blocks: meta["blocks"].as_array().unwrap().iter().map(block).collect(),
            counts: counts.iter().map(|(kind, count)| (kind.parse().unwrap(), number(count))).collect(),
            records: number(&meta["recordCount"]),
        }
    }
}

#[test]
fn corpus_files_stream_with_the_expected_blocks_and_counts() {
    for (path, meta) in corpus() {
        let mut reader =
            StreamReader::from_reader(File::open(&path).unwrap(), ReadOptions::default()).unwrap();
        check_header(&reader.preamble().header, &meta["header"]);
        check_tables(&reader.preamble().tables, &meta);
        let mut seen = Seen::default();
        while let Some(block) = reader.next_block().unwrap() {
            assert!(block.delivered && block.verdict == Verdict::Unchecked);
            seen.add(&block.payload);
        }
        let outcome = reader.finish().unwrap();
        assert_eq!(seen, Seen::expected(&meta), "{}", path.display());
        assert_eq!(outcome.end_of_blocks.offset, meta["endOfBlocksOffset"].as_u64().unwrap());
        assert_eq!(outcome.file_bytes, path.metadata().unwrap().len());
        assert_eq!(outcome.totals.events, seen.records);
        let worst = outcome.notices.iter().map(|notice| notice.severity()).max();
        assert_eq!(worst, Some(Severity::Info), "{}: {:?}", path.display(), outcome.notices);
        assert!(outcome.notices.iter().any(|notice| notice.code == NoticeCode::NoChecksums));
        check_sections(&outcome.sections, &meta);
    }
}

#[test]
fn corpus_files_open_for_random_access_with_the_expected_blocks_and_counts() {
    for (path, meta) in corpus() {
        let file = TraceFile::open(File::open(&path).unwrap()).unwrap();
        check_header(file.header(), &meta["header"]);
        check_sections(file.sections(), &meta);
        let index = file.scan(ReadOptions::default()).unwrap();
        let mut seen = Seen::default();
        let mut buffer = BlockBuffer::new();
        for entry in &index.entries {
            file.read_block(&index, entry, &mut buffer).unwrap();
            seen.add(&buffer);
        }
        assert_eq!(seen, Seen::expected(&meta), "{}", path.display());
        assert_eq!(index.stated_records(), seen.records);
        assert!(matches!(index.end_of_blocks.reason, EndReason::Section | EndReason::EndOfFile));
    }
}

fn check_header(header: &FileHeader, meta: &Value) {
    let number = |name: &str| meta[name].as_i64().unwrap_or_else(|| panic!("{name}"));
    assert_eq!(header.timestamp_frequency, number("timestampFrequency"));
    assert_eq!(i64::from(header.system_count), number("systemCount"));
    assert_eq!(header.created_utc_ticks, number("createdUtcTicks"));
    assert_eq!(header.offsets.file_table, number("fileTableOffset"));
    assert_eq!(header.offsets.source_location_manifest, number("sourceLocationManifestOffset"));
    assert_eq!(header.offsets.query_source_string_table, number("querySourceStringTableOffset"));
    assert_eq!(header.offsets.cpu_sample_section, number("cpuSampleSectionOffset"));
    assert_eq!(header.database_id.to_string(), meta["databaseId"].as_str().unwrap());
    assert_eq!(header.database_name, meta["databaseName"].as_str().unwrap());
    assert_eq!((header.tsn_min, header.tsn_max), (number("tsnMin"), number("tsnMax")));
    assert_eq!(header.duration_ticks, number("durationTicks"));
    assert_eq!(i64::from(header.tick_count), number("tickCount"));
    assert_eq!(header.schema_fingerprint, meta["schemaFingerprint"].as_u64().unwrap());
}

fn check_tables(tables: &Tables, meta: &Value) {
    let length = |name: &str| meta[name].as_array().map_or(0, Vec::len);
    let names = |name: &str| -> Vec<&str> {
        let entries = meta[name].as_array().unwrap();
        entries.iter().map(|entry| entry["name"].as_str().unwrap()).collect()
    };
    let systems: Vec<_> = tables.systems.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(systems, names("systems"));
    let archetypes: Vec<_> = tables.archetypes.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(archetypes, names("archetypes"));
    assert_eq!(tables.resource_graph.len(), length("resourceGraph"));
    assert_eq!(tables.component_definitions.len(), length("componentDefinitions"));
}

fn check_sections(sections: &Sections, meta: &Value) {
    let samples = sections.cpu_samples.as_ref().map_or(0, |it| it.samples.len());
    assert_eq!(samples, meta["cpuSamples"]["samples"].as_array().map_or(0, Vec::len));
    let places = sections.source_manifest.as_ref().map_or(0, |it| it.entries.len());
    assert_eq!(places, meta["sourceLocations"]["entries"].as_array().map_or(0, Vec::len));
    let texts = sections.query_strings.as_ref().map_or(0, |it| it.texts.len());
    assert_eq!(texts, meta["querySourceStrings"].as_array().map_or(0, Vec::len));
}
