//! A trace with more names than a table has rows, large enough that its index is kept in a file.

#![allow(clippy::unwrap_used, reason = "a panic is what a test fails with")]

mod common;

use common::{Running, eventually};
use serde_json::Value;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use typhon_trace::header::FileHeader;
use typhon_trace::registry::id;
use typhon_trace::tables::Tables;
use typhon_trace::writer::{CloseInfo, TraceWriter, WriterOptions};

const TRACE: &str = "names.typhon-trace";
const INDEX: &str = "names.typhon-index";
const NAMES: u64 = 5_000;
/// Rows of a table, as `API.md` says.
const ROWS: u64 = 4_096;
/// Letters of a name: together they are more than 16 MiB, from which on an index has a file.
const NAME_BYTES: usize = 3_600;
const SPAN_HEADER_BYTES: usize = 39;
/// Spans follow each other without touching.
const STEP: i64 = 10_000;

/// A span with a name of its own that no compression makes smaller; the later, the longer it takes.
fn span(at: i64, random: &mut u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&((SPAN_HEADER_BYTES + NAME_BYTES) as u16).to_le_bytes());
    out.extend_from_slice(&[id::NAMED_SPAN, 1]);
    out.extend_from_slice(&(at * STEP).to_le_bytes());
    out.extend_from_slice(&(at + 1).to_le_bytes()); // duration
    out.extend_from_slice(&(at + 1).to_le_bytes()); // span id
    out.extend_from_slice(&0u64.to_le_bytes());
    // With a source location.
    out.push(2);
    out.extend_from_slice(&1u16.to_le_bytes());
    out.extend((0..NAME_BYTES).map(|_| {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b'!' + (*random >> 33) as u8 % 90
    }));
}

fn write(path: &Path) {
    let header = FileHeader::new(639_315_504_000_000_000);
    let (file, options) = (Cursor::new(Vec::new()), WriterOptions::new(0));
    let mut writer = TraceWriter::create(file, header, &Tables::default(), options).unwrap();
    let mut random = 1;
    for at in 0..NAMES as i64 {
        let mut record = Vec::new();
        span(at, &mut random, &mut record);
        writer.copy_records(&record).unwrap();
    }
    let info = CloseInfo { stop_timestamp: NAMES as i64 * STEP, ..CloseInfo::default() };
    assert!(writer.close(&info).complete);
    fs::write(path, writer.into_inner().into_inner()).unwrap();
}

fn sum(rows: &Value, column: &str) -> u64 {
    rows.as_array().unwrap().iter().map(|row| row[column].as_u64().unwrap()).sum()
}

#[test]
fn names_beyond_the_limit_are_summed_up_and_a_damaged_index_is_built_anew() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join(TRACE));
    let server = Running::at(folder, &[TRACE]);

    // More names than rows: the largest are there, and nothing of the rest is lost but its name.
    let stats = server.get("/sessions/1/stats?by=name&top=0").json();
    let (rows, left) = (&stats["rows"], &stats["left"]);
    assert_eq!(rows.as_array().map(Vec::len), Some(ROWS as usize));
    assert_eq!((stats["rowCount"].as_u64(), left["rows"].as_u64()), (Some(NAMES), Some(NAMES - ROWS)));
    let all = NAMES * (NAMES + 1) / 2;
    for (column, sum_of_left) in [("totalNs", left["totalNs"].as_u64()), ("selfNs", left["selfNs"].as_u64())]
    {
        assert_eq!(sum(rows, column) + sum_of_left.unwrap(), all, "{column}");
    }
    assert_eq!(sum(rows, "count") + left["count"].as_u64().unwrap(), NAMES);
    assert_eq!(rows[0]["totalNs"], NAMES, "the largest come first");
    let few = server.get("/sessions/1/stats?by=name&top=3").json();
    assert_eq!((few["rows"].as_array().map(Vec::len), &few["left"]["rows"]), (Some(3), &(NAMES - 3).into()));

    // What is damaged behind the tables of the index is found when it is read.
    let index = server.path(INDEX);
    let mut bytes = eventually("an index", || fs::read(&index).ok());
    bytes[100] ^= 1;
    server.send("DELETE", "/sessions/1", b"");
    fs::write(&index, &bytes).unwrap();
    let open = || server.send("POST", "/sessions", format!(r#"{{"path":"{TRACE}"}}"#).as_bytes()).json();
    let ready = |session: &str| {
        let path = format!("/sessions/{session}");
        eventually("an index", || (server.get(&path).json()["state"]["is"] == "ready").then_some(()));
    };
    assert_eq!(open()["id"], "2");
    ready("2");
    let refused = server.get("/sessions/2/stats?by=name");
    assert_eq!((refused.status, &refused.json()["code"]), (500, &Value::from("index-damaged")));
    let state = server.get("/sessions/2").json()["state"].clone();
    assert_eq!(state["is"], "failed");
    assert!(state["detail"].as_str().unwrap().contains("open the trace again"), "{state}");
    // That is all it takes.
    assert_eq!(open()["id"], "3");
    ready("3");
    assert_eq!(server.get("/sessions/3/stats?by=name&top=0").json()["rows"], *rows);
}
