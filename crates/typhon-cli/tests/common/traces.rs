//! Small traces written for a test.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use typhon_trace::event::{
    Gauge, GaugeValue, InstantEvent, PerTickSnapshot, ThreadInfo, ThreadKind, TickStart,
};
use typhon_trace::header::FileHeader;
use typhon_trace::tables::{System, Tables};
use typhon_trace::trailer::{FileEntry, FileTable, SourceLocation, SourceManifest};
use typhon_trace::writer::{CloseInfo, TraceWriter, WriterOptions};

/// 2026-11-29T12:00:00Z in 100 ns units since 0001-01-01.
pub(crate) const CREATED_UTC_TICKS: i64 = 639_315_504_000_000_000;
/// Timestamp of the first record.
pub(crate) const FIRST_TICKS: i64 = 1_000_000_000;

/// Builds records one after the other.
#[derive(Default)]
pub(crate) struct Records(pub(crate) Vec<u8>);

impl Records {
    pub(crate) fn instant(mut self, event: &impl InstantEvent, slot: u8, timestamp: i64) -> Self {
        let start = self.0.len();
        self.0.resize(start + event.record_bytes(), 0);
        event.encode(slot, timestamp, &mut self.0[start..]).expect("room was asked for");
        self
    }

    /// A top-level span by its payload bytes.
    pub(crate) fn span(mut self, kind: u8, slot: u8, start: i64, span: Span<'_>) -> Self {
        let size = 37 + if span.site.is_some() { 2 } else { 0 } + span.payload.len();
        self.0.extend_from_slice(&(size as u16).to_le_bytes());
        self.0.extend_from_slice(&[kind, slot]);
        self.0.extend_from_slice(&start.to_le_bytes());
        self.0.extend_from_slice(&span.duration.to_le_bytes());
        self.0.extend_from_slice(&span.id.to_le_bytes());
        self.0.extend_from_slice(&0_u64.to_le_bytes());
        self.0.push(if span.site.is_some() { 2 } else { 0 });
        self.0.extend(span.site.iter().flat_map(|site| site.to_le_bytes()));
        self.0.extend_from_slice(span.payload);
        self
    }

    /// Any instant by its payload bytes.
    pub(crate) fn raw(mut self, kind: u8, slot: u8, timestamp: i64, payload: &[u8]) -> Self {
        self.0.extend_from_slice(&((12 + payload.len()) as u16).to_le_bytes());
        self.0.extend_from_slice(&[kind, slot]);
        self.0.extend_from_slice(&timestamp.to_le_bytes());
        self.0.extend_from_slice(payload);
        self
    }
}

/// What a span has besides kind, slot and start.
pub(crate) struct Span<'a> {
    pub(crate) duration: i64,
    pub(crate) id: u64,
    pub(crate) site: Option<u16>,
    pub(crate) payload: &'a [u8],
}

/// A closed file with these blocks.
pub(crate) fn trace(path: &Path, blocks: &[Records]) -> PathBuf {
    write(path, blocks, &Tables::default(), None)
}

pub(crate) fn write(
    path: &Path,
    blocks: &[Records],
    tables: &Tables,
    sources: Option<(FileTable, SourceManifest)>,
) -> PathBuf {
    let header = FileHeader {
        database_name: "test".into(),
        base_tick_rate: 60.0,
        ..FileHeader::new(CREATED_UTC_TICKS)
    };
    let mut writer =
        TraceWriter::create(Cursor::new(Vec::new()), header, tables, WriterOptions::new(0)).expect("memory");
    for block in blocks {
        writer.copy_records(&block.0).expect("legal records");
        writer.flush().expect("memory");
    }
    let info = CloseInfo {
        stop_timestamp: FIRST_TICKS + 10_000_000,
        duration_ticks: 10_000_000,
        tsn_max: 1,
        sources,
        ..CloseInfo::default()
    };
    let report = writer.close(&info);
    assert!(report.complete, "{report:?}");
    std::fs::write(path, writer.into_inner().into_inner()).expect("a temporary folder");
    path.to_owned()
}

/// Three blocks: a named worker, three ticks at 0, 1 and 2 ms with a 1.5 ms span over the first border, capacities in
/// the first tick.
pub(crate) fn small(folder: &Path) -> PathBuf {
    let at = |offset: i64| FIRST_TICKS + offset;
    let payload = transaction(4242);
    let commit = Span { duration: 1_500_000, id: 0x0100_0000_0000_0001, site: Some(1), payload: &payload };
    let insert = Span { duration: 50_000, id: 2, site: None, payload: &[] };
    let gauges = [
        Gauge { id: 0x0200, value: GaugeValue::U32Count(512) },
        Gauge { id: 0x0201, value: GaugeValue::U32Count(7) },
    ];
    let blocks = [
        Records::default().instant(&worker("Worker-1"), 1, at(0)).instant(&TickStart {}, 1, at(0)).instant(
            &PerTickSnapshot { tick_number: 0, gauges: &gauges },
            1,
            at(100),
        ),
        Records::default().instant(&TickStart {}, 1, at(1_000_000)).span(20, 1, at(500_000), commit),
        Records::default().instant(&TickStart {}, 1, at(2_000_000)).span(40, 1, at(2_100_000), insert),
    ];
    let tables = Tables {
        systems: vec![System { index: 0, name: "Move".into(), ..System::default() }],
        ..Tables::default()
    };
    let files = FileTable { files: vec![FileEntry { file_id: 0, path: "src/sim.rs".into() }] };
    let location = SourceLocation { id: 1, file_id: 0, line: 76, kind: 0, method: "execute".into() };
    let sources = Some((files, SourceManifest { entries: vec![location] }));
    write(&folder.join("small.typhon-trace"), &blocks, &tables, sources)
}

pub(crate) fn worker(name: &str) -> ThreadInfo<'_> {
    ThreadInfo { managed_thread_id: 1, name, thread_kind: ThreadKind::WORKER }
}

/// Payload of TransactionCommit with the optional field componentCount = 3.
pub(crate) fn transaction(tsn: i64) -> Vec<u8> {
    let mut payload = tsn.to_le_bytes().to_vec();
    payload.push(1);
    payload.extend_from_slice(&3_i32.to_le_bytes());
    payload
}
