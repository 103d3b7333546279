//! A program's marks (kind 6) bear their names wherever records are shown.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::traces::{CREATED_UTC_TICKS, FIRST_TICKS, Records};
use common::{arg, typhon};
use std::fs::File;
use std::path::{Path, PathBuf};
use typhon_analysis::index::EventId;
use typhon_analysis::session::{Session, SessionOptions};
use typhon_trace::event::Instant;
use typhon_trace::header::FileHeader;
use typhon_trace::tables::Tables;
use typhon_trace::trailer::{SpanName, SpanNames};
use typhon_trace::writer::{CloseInfo, TraceWriter, WriterOptions};

/// Two blocks with three marks; the name of the second is only told between the blocks, that of the third never.
fn trace(folder: &Path) -> PathBuf {
    let path = folder.join("marks.typhon-trace");
    let file = File::create(&path).unwrap();
    let header = FileHeader::new(CREATED_UTC_TICKS);
    let mut writer = TraceWriter::create(file, header, &Tables::default(), WriterOptions::new(0)).unwrap();
    let mut mark = |name: Option<&str>, id: i32| {
        if let Some(name) = name {
            let entry = SpanName { id: id.try_into().unwrap(), name: name.to_owned() };
            writer.span_names(&SpanNames { entries: vec![entry] }).unwrap();
        }
        let mark = Instant { name_id: id, payload: 5 };
        let records = Records::default().instant(&mark, 1, FIRST_TICKS + i64::from(id) * 1_000);
        writer.copy_records(&records.0).unwrap();
        writer.flush().unwrap();
    };
    mark(Some("level loaded"), 30);
    mark(Some("boss, \"awake\""), 31);
    mark(None, 32);
    let info = CloseInfo { stop_timestamp: FIRST_TICKS + 100_000, ..CloseInfo::default() };
    assert!(writer.close(&info).complete);
    path
}

#[test]
fn dump_shows_and_selects_marks_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path());
    let lines = typhon(&["trace", "dump", "--json", arg(&path)]).expect(0).json_lines();
    let names: Vec<Option<&str>> = lines.iter().map(|line| line["fields"]["nameIdName"].as_str()).collect();
    assert_eq!(names, [Some("level loaded"), Some("boss, \"awake\""), None]);
    lines.iter().for_each(|line| common::schema::check(line, "dump-record.json"));
    let text = typhon(&["trace", "dump", arg(&path)]).expect(0).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].contains(" level loaded  ") && lines[1].contains("nameId=level loaded"), "{text}");
    assert!(lines[3].contains(" Instant  ") && lines[3].contains("nameId=32"), "{text}");
    let csv = typhon(&["trace", "dump", "--format", "csv", arg(&path)]).expect(0).stdout;
    assert!(csv.contains(r#"""nameIdName"":""level loaded"""#), "{csv}");
    for filter in ["name~boss", "name=\"level loaded\""] {
        let found = typhon(&["trace", "dump", "--json", "--where", filter, arg(&path)]).expect(0);
        assert_eq!(found.json_lines().len(), 1, "{filter}: {}", found.stdout);
    }
}

#[test]
fn exports_show_marks_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = trace(folder.path());
    let chrome = folder.path().join("marks.json");
    typhon(&["trace", "export", "--to", "chrome", "-o", arg(&chrome), arg(&path)]).expect(0);
    let chrome = std::fs::read_to_string(chrome).unwrap();
    assert!(chrome.contains("\"level loaded\"") && chrome.contains("\"Instant\""), "{chrome}");
    let part = folder.path().join("part.typhon-trace");
    typhon(&["trace", "export", "--to", "trace", "--where", "name~boss", "-o", arg(&part), arg(&path)])
        .expect(0);
    let left = typhon(&["trace", "dump", "--json", arg(&part)]).expect(0).json_lines();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["fields"]["nameIdName"], "boss, \"awake\"");
}

#[test]
fn an_inspected_mark_bears_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&trace(folder.path()), SessionOptions::default()).unwrap();
    session.wait();
    // Before the first mark of the file stands a checksum of its tables.
    let detail = session.event(EventId { block: 0, record: 1 }).unwrap();
    assert_eq!(detail.name, "level loaded");
    assert_eq!(detail.fields[0].value_name.as_deref(), Some("level loaded"));
}
