//! `docs/trace-format.md` is enough to write a reader from: the one in `docs/examples`, written from it in Python, sees
//! in every file what `typhon trace info` sees.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use typhon_trace::event::{InstantEvent, SpanEvent, SpanFields, TickStart, TransactionCommit};
use typhon_trace::header::FileHeader;
use typhon_trace::registry;
use typhon_trace::tables::{Archetype, Tables};
use typhon_trace::trailer::{QueryStrings, SpanName, SpanNames};
use typhon_trace::writer::{CloseInfo, TraceWriter, WriterOptions};

#[test]
fn the_independent_reader_agrees_on_recordings() {
    if !has_python() {
        return;
    }
    for name in ["all-kinds", "guide-shard", "anthill"] {
        compare(&root().join(format!("corpus/{name}.typhon-trace")));
    }
}

#[test]
fn the_independent_reader_agrees_on_files_written_here() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours.typhon-trace");
    write_trace(&path);
    let seen = compare(&path);
    assert_eq!(seen["notices"], json!([]), "it finds every checksum and each is right");
    assert_eq!(seen["spanNames"]["7"], "phase");

    // And it really checks them.
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_ne!(independent_reader(&path)["notices"], json!([]));
}

/// Compares what both readers say about a file; returns what the independent one says.
fn compare(path: &Path) -> Value {
    let theirs = independent_reader(path);
    let ours = typhon_info(path);
    for (field, value) in theirs["header"].as_object().unwrap() {
        // One side prints whole floats as `60`, the other as `60.0`.
        let same = *value == ours["header"][field] || value.as_f64() == ours["header"][field].as_f64();
        assert!(same, "{field} of {}: {value}, {}", path.display(), ours["header"][field]);
    }
    assert_eq!(theirs["records"], ours["counts"]["records"]);
    assert_eq!(theirs["closed"], ours["file"]["closed"]);
    let per_kind = ours["counts"]["perKind"].as_object().unwrap();
    assert_eq!(theirs["countsByKind"].as_object().unwrap().len(), per_kind.len());
    for (name, count) in per_kind {
        let id = registry::kind_by_name(name).unwrap().id.to_string();
        assert_eq!(theirs["countsByKind"][&id], *count, "{name} of {}", path.display());
    }
    for (table, entries) in theirs["tables"].as_object().unwrap() {
        let expected = match &ours[table] {
            Value::Array(entries) => entries.len() as u64,
            Value::Null => 0,
            _ => 1,
        };
        assert_eq!(entries.as_u64(), Some(expected), "{table} of {}", path.display());
    }
    let sections = ours["sections"].as_array().unwrap();
    let addressed = sections.iter().filter(|section| section["name"] != "SPAN").count();
    assert_eq!(theirs["sections"].as_object().unwrap().len(), addressed);
    theirs
}

/// A closed file with tables, span names, several blocks and a trailer section.
fn write_trace(path: &Path) {
    let archetype = |id: u16| Archetype { archetype_id: id, name: format!("Ä{id}"), routing_id: id + 7 };
    let tables = Tables { archetypes: (1..4).map(archetype).collect(), ..Tables::default() };
    let header = FileHeader::new(639_028_224_000_000_000);
    let file = File::create(path).unwrap();
    let mut writer = TraceWriter::create(file, header, &tables, WriterOptions::new(1)).unwrap();
    let names = SpanNames { entries: vec![SpanName { id: 7, name: "phase".to_owned() }] };
    writer.span_names(&names).unwrap();
    for tick in 0..40 {
        writer.write_records(&tick_records(tick)).unwrap();
        if tick % 4 == 0 {
            writer.flush().unwrap();
        }
    }
    let query_strings = QueryStrings { texts: vec![String::new(), "src/world.rs".to_owned()] };
    let info = CloseInfo { duration_ticks: 1, tsn_max: 99, query_strings, ..CloseInfo::default() };
    assert!(writer.close(&info).complete);
}

fn tick_records(tick: i64) -> Vec<u8> {
    let mut buffer = [0; 256];
    let start = 1_000 + tick * 16;
    let mut size = TickStart::default().encode(1, start, &mut buffer).unwrap();
    let commit = TransactionCommit { tsn: tick, component_count: Some(3), ..TransactionCommit::default() };
    let span = SpanFields { duration: 5, span_id: tick as u64 + 1, site: Some(9), ..SpanFields::default() };
    size += commit.encode(2, start + 1, &span, &mut buffer[size..]).unwrap();
    buffer[..size].to_vec()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Without Python there is nothing to compare with; where CI is set, that is a failure.
fn has_python() -> bool {
    let probe = Command::new("python3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let found = probe.is_ok_and(|status| status.success());
    assert!(found || std::env::var_os("CI").is_none(), "python3 is needed here");
    if !found {
        eprintln!("skipped: no python3 to run docs/examples/read_trace.py with");
    }
    found
}

fn independent_reader(path: &Path) -> Value {
    json_of(Command::new("python3").arg(root().join("docs/examples/read_trace.py")).arg(path).arg("--json"))
}

fn typhon_info(path: &Path) -> Value {
    json_of(Command::new(env!("CARGO_BIN_EXE_typhon")).args(["trace", "info", "--scan", "--json"]).arg(path))
}

fn json_of(command: &mut Command) -> Value {
    let run = command.output().unwrap();
    assert!(run.status.success(), "{command:?}: {}", String::from_utf8_lossy(&run.stderr));
    serde_json::from_slice(&run.stdout).unwrap()
}
