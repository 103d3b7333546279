//! Small files to read and to damage.

use std::io::Cursor;
use std::path::Path;

use typhon_trace::TraceError;
use typhon_trace::header::FileHeader;
use typhon_trace::reader::{
    Outcome, ReadOptions, Sequenced, StreamReader, Verdict, VerifyOptions, VerifyReport, verify,
};
use typhon_trace::tables::{Archetype, ComponentType, Tables};
use typhon_trace::trailer::{
    CpuFrame, CpuSample, CpuSamples, CpuStacks, FileEntry, FileTable, QueryStrings, SourceLocation,
    SourceManifest, SpanNames,
};
use typhon_trace::writer::{CloseInfo, TraceWriter, WriterOptions};

pub(crate) const SALVAGE: ReadOptions = ReadOptions { salvage: true };
pub(crate) const PLAIN: ReadOptions = ReadOptions { salvage: false };

/// An instant without payload: TickStart.
pub(crate) fn tick_start(timestamp: i64) -> Vec<u8> {
    record(0, timestamp, &[])
}

pub(crate) fn record(kind: u8, timestamp: i64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&(12 + payload.len() as u16).to_le_bytes());
    bytes.extend_from_slice(&[kind, 3]);
    bytes.extend_from_slice(&timestamp.to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Records with values that do not compress away, so that blocks hold literals and matches.
pub(crate) fn records(seed: i64, count: i64) -> Vec<u8> {
    let one = |n: i64| {
        let payload = (seed * 1_000 + n).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64).to_le_bytes();
        if n == 0 { tick_start(seed * 1_000) } else { record(131, seed * 1_000 + n, &payload) }
    };
    (0..count).flat_map(one).collect()
}

pub(crate) fn names(entries: &[(u16, &str)]) -> SpanNames {
    let mut names = SpanNames::default();
    entries.iter().for_each(|(id, name)| names.push(*id, *name));
    names
}

/// What to put into a file.
pub(crate) struct Recipe {
    /// Events per block.
    pub(crate) blocks: Vec<i64>,
    /// A span name table before this block.
    pub(crate) names_before: Option<usize>,
    pub(crate) sections: bool,
    pub(crate) close: bool,
}

impl Recipe {
    pub(crate) fn full() -> Self {
        Self { blocks: vec![3, 1, 5], names_before: Some(1), sections: true, close: true }
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let tables = Tables {
            archetypes: vec![Archetype { archetype_id: 4, name: "Ant".to_owned(), routing_id: 7 }],
            component_types: vec![ComponentType { component_type_id: 1, name: "Position".to_owned() }],
            ..Tables::default()
        };
        let mut header = FileHeader::new(639_315_870_044_133_855);
        header.database_name = "hill".to_owned();
        header.tsn_min = 5;
        let mut writer =
            TraceWriter::create(Cursor::new(Vec::new()), header, &tables, WriterOptions::new(9)).unwrap();
        for (index, &count) in self.blocks.iter().enumerate() {
            if self.names_before == Some(index) {
                writer.span_names(&names(&[(1, "hunt"), (2, "dig")])).unwrap();
            }
            writer.write_records(&records(index as i64 + 1, count)).unwrap();
            writer.flush().unwrap();
        }
        if self.close {
            let mut info = CloseInfo {
                stop_timestamp: 9_000,
                duration_ticks: 8_000,
                tsn_max: 17,
                ..CloseInfo::default()
            };
            if self.sections {
                add_sections(&mut info);
            }
            let report = writer.close(&info);
            assert!(report.complete, "{report:?}");
        }
        writer.into_inner().into_inner()
    }
}

fn add_sections(info: &mut CloseInfo) {
    let files = FileTable { files: vec![FileEntry { file_id: 1, path: "src/ant.rs".to_owned() }] };
    let place = SourceLocation { id: 1, file_id: 1, line: 12, kind: 0, method: "forage".to_owned() };
    info.sources = Some((files, SourceManifest { entries: vec![place] }));
    let mut stacks = CpuStacks::default();
    stacks.push(&[1]);
    let sample = CpuSample { timestamp: 2_000, slot: 1, sample_type: 0, stack_index: 0 };
    let frame = CpuFrame { frame_id: 1, file_id: 1, line: 3, method: "walk".to_owned() };
    info.cpu_samples = CpuSamples { samples: vec![sample], stacks, frames: vec![frame] };
    info.query_strings = QueryStrings { texts: vec![String::new(), "near".to_owned()] };
}

/// A recording of the reference engine.
pub(crate) fn reference_file(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(name)).unwrap()
}

/// One block as a test sees it.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) struct SeenBlock {
    pub(crate) offset: u64,
    pub(crate) verdict: Verdict,
    pub(crate) delivered: bool,
    /// The events' bytes, one after the other.
    pub(crate) events: Vec<u8>,
}

pub(crate) fn seen(block: &Sequenced<typhon_trace::reader::BlockBuffer>) -> SeenBlock {
    SeenBlock {
        offset: block.summary.entry.offset,
        verdict: block.verdict,
        delivered: block.delivered,
        events: block.payload.events().flat_map(|record| record.bytes().to_vec()).collect(),
    }
}

/// Everything that a stream reader gives.
pub(crate) fn read(file: &[u8], options: ReadOptions) -> Result<(Vec<SeenBlock>, Outcome), TraceError> {
    let mut reader = StreamReader::from_reader(file, options)?;
    let mut blocks = Vec::new();
    while let Some(block) = reader.next_block()? {
        blocks.push(seen(block));
    }
    Ok((blocks, reader.finish()?))
}

pub(crate) fn verify_bytes(file: &[u8], options: ReadOptions) -> Result<VerifyReport, TraceError> {
    verify(StreamReader::from_reader(file, options)?, VerifyOptions { deep: true }, |_| ())
}
