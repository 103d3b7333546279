//! Recorded files: whole, readable and equal to what was recorded; also when the disk is full.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod common;

use common::turn;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::path::Path;
use typhon_profiler::events::{
    CompareOp, Evaluator, Event, Gauge, GaugeValue, NamedSpan, PerTickSnapshot, QueryArgs,
    QueryDefinitionDescribe, QueryDefinitionHead, QueryInstanceKind, TransactionCommit,
};
use typhon_profiler::export::{Batch, ExportError, Exporter, FileExporter, SessionEnd, SessionStart};
use typhon_profiler::session::{self, SessionOptions, SessionReport, Started};
use typhon_profiler::{emit, mark, name, span};
use typhon_trace::NoticeCode;
use typhon_trace::for_each_fixed_event;
use typhon_trace::reader::{
    FileVerdict, ReadOptions, StreamReader, TraceFile, VerifyOptions, VerifyReport, verify,
};
use typhon_trace::registry::{self, Status};
use typhon_trace::writer::TraceSink;

fn record(exporter: impl Exporter + 'static, work: impl FnOnce()) -> SessionReport {
    let exporters: Vec<Box<dyn Exporter>> = vec![Box::new(exporter)];
    let options = SessionOptions { mask: common::mask(common::ALL), exporters, ..Default::default() };
    assert_eq!(session::start(options).unwrap(), Started::New);
    work();
    session::stop().unwrap()
}

fn verified(path: &Path) -> VerifyReport {
    let reader = StreamReader::from_file(File::open(path).unwrap(), ReadOptions::default()).unwrap();
    verify(reader, VerifyOptions { deep: true }, |_| ()).unwrap()
}

/// Payloads by kind, in the order of the file.
fn payloads(path: &Path) -> HashMap<u8, Vec<Vec<u8>>> {
    let mut reader = StreamReader::from_file(File::open(path).unwrap(), ReadOptions::default()).unwrap();
    let mut payloads: HashMap<u8, Vec<Vec<u8>>> = HashMap::new();
    while let Some(block) = reader.next_delivered().unwrap() {
        for record in block.payload.events() {
            payloads.entry(record.kind()).or_default().push(record.payload().unwrap().to_vec());
        }
    }
    payloads
}

/// What was recorded of each kind.
#[derive(Default)]
struct Expected(HashMap<u8, Vec<Vec<u8>>>);

impl Expected {
    fn add<E: Event>(&mut self, event: &E) {
        let mut payload = vec![0xAA; event.payload_bytes()];
        event.encode_payload(&mut payload).unwrap();
        self.0.entry(E::KIND).or_default().push(payload);
    }
}

/// Payloads whose bytes take all values where a mask byte may be, and others between.
fn made_up_payloads() -> impl Iterator<Item = Vec<u8>> {
    (0..=255u8).map(|mask| {
        let mut payload: Vec<u8> = (0..200u8).map(|at| at.wrapping_mul(31).wrapping_add(mask)).collect();
        payload[..64].iter_mut().for_each(|byte| *byte ^= mask.rotate_left(3));
        payload
    })
}

/// Records one event of a type for each made-up payload. `Instant` is recorded through `mark`.
macro_rules! record_all {
    ($($shape:ident $event:ident $view:ident,)*) => {
        fn record_every_kind(expected: &mut Expected) {
            $(record_all!(@one expected $shape $event $view);)*
        }
    };
    (@one $expected:ident instant Instant $view:ident) => {};
    (@one $expected:ident $shape:ident $event:ident $view:ident) => {
        for payload in made_up_payloads() {
            // Every value of the mask byte, which follows the required fields; other bytes as they come.
            let view = typhon_profiler::events::$view::from_payload(&payload);
            if let Some(event) = view.to_event() {
                $expected.add(&event);
                record_all!(@record $shape event);
            }
        }
    };
    (@record instant $event:ident) => { emit(|| $event) };
    (@record span $event:ident) => { drop(span!($event)) };
}
for_each_fixed_event!(record_all);

/// Events with lists of all lengths, more than a record can hold among them.
fn record_lists(expected: &mut Expected, len: usize) {
    let evaluators: Vec<_> =
        (0..len).map(|at| Evaluator { field_idx: at as u16, op: CompareOp(at as u8), reserved: 0 }).collect();
    let field_dependencies: Vec<u16> = (0..len as u32 / 2).map(|at| at as u16).collect();
    let describe = QueryDefinitionDescribe {
        head: QueryDefinitionHead {
            kind: QueryInstanceKind(1),
            local_id: len as u32,
            target_component_type: 3,
            primary_index_field_idx: -1,
            sort_field_idx: 2,
            sort_descending: true,
            definition_source_file_id: 5,
            definition_source_line: 6,
            definition_source_method_id: 7,
        },
        evaluators: &evaluators,
        field_dependencies: &field_dependencies,
    };
    expected.add(&describe);
    emit(|| describe);
    let value = |at: usize| match at % 4 {
        0 => GaugeValue::U32Count(at as u32),
        1 => GaugeValue::U64Bytes(u64::MAX - at as u64),
        2 => GaugeValue::I64Signed(-(at as i64)),
        _ => GaugeValue::U32PercentHundredths(at as u32),
    };
    let gauges: Vec<_> = (0..len).map(|at| Gauge { id: at as u16, value: value(at) }).collect();
    let snapshot = PerTickSnapshot { tick_number: len as u32, gauges: &gauges };
    expected.add(&snapshot);
    emit(|| snapshot);
}

/// All live kinds but those that only the profiler makes: `Instant`, whose payload `mark` fills, and `ThreadInfo`.
#[test]
fn i15_every_kind_reads_back_as_recorded() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kinds.typhon-trace");
    let mut expected = Expected::default();
    let report = record(FileExporter::new(&path), || {
        record_every_kind(&mut expected);
        for text in ["", "a", "Größe", "with\0zero", &"x".repeat(70_000)] {
            expected.add(&NamedSpan { name: text });
            drop(span!(NamedSpan { name: text }));
            let thresholds = vec![7; text.len() % 100];
            expected.add(&QueryArgs { thresholds: &thresholds });
            emit(|| QueryArgs { thresholds: &thresholds });
            record_lists(&mut expected, text.len());
        }
    });
    let recorded = payloads(&path);
    let live = registry::KINDS.iter().filter(|kind| kind.status == Status::Live).map(|kind| kind.id);
    let missing: Vec<u8> = live.filter(|kind| !expected.0.contains_key(kind)).collect();
    assert_eq!(missing, [6, 77]);
    for (kind, payloads) in &expected.0 {
        assert!(recorded.get(kind) == Some(payloads), "kind {kind}");
    }
    let total: usize = expected.0.values().map(Vec::len).sum();
    assert_eq!((report.records, report.dropped_records), (total as u64, 0));
    assert!(report.exporters[0].closed && report.exporters[0].error.is_none(), "{:?}", report.exporters);
}

#[test]
fn b1_setters_change_one_field_each() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("setters.typhon-trace");
    let mut expected = Expected::default();
    expected.add(&TransactionCommit { tsn: 7, component_count: Some(3), conflict_detected: Some(true) });
    record(FileExporter::new(&path), || {
        let mut span = span!(TransactionCommit::default());
        span.set_tsn(7).set_component_count(3).set_conflict_detected(true);
    });
    assert_eq!(payloads(&path).get(&TransactionCommit::KIND), expected.0.get(&TransactionCommit::KIND));
}

#[test]
fn b23_closed_file_is_sound_and_names_its_places() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sound.typhon-trace");
    let sites = folder.path().join("sound.typhon-trace.sites");
    let frame = name("file test frame").unwrap();
    record(FileExporter::new(&path), || {
        assert!(sites.exists(), "the call sites are beside a file that is not closed");
        (0..100).for_each(|value| mark(frame, value));
        drop(span!(TransactionCommit::default()));
    });
    let line = line!() - 2;
    assert!(!sites.exists());
    let report = verified(&path);
    assert_eq!(report.verdict, FileVerdict::Sound, "{:?}", report.findings);

    let file = TraceFile::open(File::open(&path).unwrap()).unwrap();
    assert!(file.header().is_closed());
    let mut reader = StreamReader::from_file(File::open(&path).unwrap(), ReadOptions::default()).unwrap();
    let mut commit_site = None;
    while let Some(block) = reader.next_delivered().unwrap() {
        let commits = block.payload.events().filter(|record| record.kind() == 20);
        commits.for_each(|record| commit_site = record.span().unwrap().site);
    }
    let outcome = reader.finish().unwrap();
    assert!(outcome.span_names.entries.iter().any(|entry| entry.name == "file test frame"));
    let manifest = outcome.sections.source_manifest.as_ref().unwrap();
    let place = manifest.entries.iter().find(|entry| Some(entry.id) == commit_site).unwrap();
    let files = outcome.sections.file_table.as_ref().unwrap();
    assert!(files.path(place.file_id).unwrap().ends_with("tests/file.rs"));
    assert_eq!(place.line, line);
    assert!(place.method.ends_with("b23_closed_file_is_sound_and_names_its_places"), "{}", place.method);
}

/// A file of limited size, in memory.
struct Disk {
    file: Cursor<Vec<u8>>,
    capacity: u64,
    kept: std::sync::Arc<std::sync::Mutex<Vec<u8>>>,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.capacity.saturating_sub(self.file.position()) as usize;
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.write(&bytes[..bytes.len().min(room)])
    }

    fn flush(&mut self) -> io::Result<()> {
        *self.kept.lock().unwrap() = self.file.get_ref().clone();
        Ok(())
    }
}

impl Seek for Disk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl TraceSink for Disk {
    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.file.cut(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.flush()
    }
}

#[test]
fn b21_full_disk_leaves_a_readable_file_and_an_exact_count() {
    let _turn = turn();
    let kept = std::sync::Arc::default();
    let disk = Disk { file: Cursor::default(), capacity: 400_000, kept: std::sync::Arc::clone(&kept) };
    let mut emitted = 0u64;
    let report = record(FileExporter::to_sink(disk), || {
        while !session::flush(std::time::Duration::from_secs(60)) || emitted < 200_000 {
            for tsn in 0..20_000i64 {
                drop(span!(TransactionCommit {
                    tsn: tsn.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64),
                    ..Default::default()
                }));
                emitted += 1;
            }
        }
    });
    let exporter = &report.exporters[0];
    assert!(exporter.detached && exporter.error.is_some());
    let bytes = kept.lock().unwrap().clone();
    let reader = StreamReader::from_reader(&bytes[..], ReadOptions::default()).unwrap();
    let checked = verify(reader, VerifyOptions { deep: true }, |_| ()).unwrap();
    let mut reader = StreamReader::from_reader(&bytes[..], ReadOptions::default()).unwrap();
    let mut commits = 0;
    while let Some(block) = reader.next_delivered().unwrap() {
        commits += block.payload.events().filter(|record| record.kind() == 20).count() as u64;
    }
    assert!(commits > 0);
    assert_eq!(emitted, commits + exporter.dropped_records + report.dropped_records);
    assert!(
        !checked.findings.iter().any(|notice| notice.code == NoticeCode::ChecksumBlock),
        "{:?}",
        checked.findings
    );
}

/// Does not begin.
struct Refusing;

impl Exporter for Refusing {
    fn name(&self) -> &str {
        "refusing"
    }

    fn init(&mut self, _: &SessionStart) -> Result<(), ExportError> {
        Err(ExportError::new("planned"))
    }

    fn process(&mut self, _: &Batch) -> Result<(), ExportError> {
        unreachable!("it did not begin")
    }

    fn close(&mut self, _: &SessionEnd) -> Result<(), ExportError> {
        unreachable!("it did not begin")
    }
}

#[test]
fn b27_a_start_that_fails_leaves_no_file() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("never.typhon-trace");
    let exporters: Vec<Box<dyn Exporter>> = vec![Box::new(FileExporter::new(&path)), Box::new(Refusing)];
    assert!(session::start(SessionOptions { exporters, ..Default::default() }).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
