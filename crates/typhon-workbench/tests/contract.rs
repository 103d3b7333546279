//! `API.md` tells the truth, and what a hostile trace says stays text.

#![allow(clippy::unwrap_used, reason = "a panic is what a test fails with")]

mod common;

use common::Running;
use serde_json::{Value, json};
use std::io::Cursor;
use std::path::Path;
use typhon_trace::header::FileHeader;
use typhon_trace::registry::id;
use typhon_trace::tables::{System, Tables};
use typhon_trace::trailer::{FileEntry, FileTable, SourceLocation, SourceManifest};
use typhon_trace::writer::{CloseInfo, TraceWriter, WriterOptions};

/// The first example of JSON under a heading.
fn example(document: &str, heading: &str) -> Value {
    let section =
        document.split_once(&format!("`{heading}")).unwrap_or_else(|| panic!("no heading {heading}")).1;
    let text = section.split_once("```json\n").expect("an example").1.split_once("\n```").expect("an end").0;
    serde_json::from_str(text).unwrap_or_else(|fault| panic!("{heading}: {fault}"))
}

/// Do two documents have the same members of the same sorts? What is empty or absent on one side fits everything.
fn check_shape(example: &Value, found: &Value, path: &str) {
    match (example, found) {
        (Value::Null, _) | (_, Value::Null) => {}
        // A field of an event can be of any sort.
        _ if path.ends_with("fields[].value") => {}
        (Value::Object(example), Value::Object(found)) => {
            // What these hold is named by the trace, the user or the registry.
            if ["settings", "registry", "summary.collections"].iter().any(|free| path.ends_with(free)) {
                return;
            }
            let names = |of: &serde_json::Map<String, Value>| {
                let mut names: Vec<String> = of.keys().cloned().collect();
                names.sort();
                names
            };
            assert_eq!(names(example), names(found), "{path}");
            example
                .iter()
                .for_each(|(name, value)| check_shape(value, &found[name], &format!("{path}.{name}")));
        }
        (Value::Array(example), Value::Array(found)) => {
            if let (Some(example), Some(found)) = (example.first(), found.first()) {
                check_shape(example, found, &format!("{path}[]"));
            }
        }
        _ => {
            let sort = |value: &Value| match value {
                Value::Bool(_) => "boolean",
                Value::Number(_) => "number",
                Value::String(_) => "text",
                Value::Array(_) => "list",
                _ => "object",
            };
            assert_eq!(sort(example), sort(found), "{path}");
        }
    }
}

#[test]
fn answers_look_as_the_document_says() {
    let server = Running::with(&["anthill.typhon-trace"]);
    let document = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("API.md")).unwrap();
    let top = server.get("/sessions/1/top?count=1000").json();
    // One with spans around it.
    let inner =
        top["spans"].as_array().unwrap().iter().find(|span| span["place"]["row"] == 1).expect("nested spans");
    let event = inner["event"].as_str().unwrap();
    let place = &inner["place"];
    let filter = server.send("POST", "/sessions/1/filters", br#"{"text":"dur>1ms"}"#).json();
    let id = &filter["filterId"];
    server.send(
        "PUT",
        "/sessions/1/bookmarks",
        br#"{"bookmarks":[{"id":"a","fromNs":1,"toNs":2,"event":"1.1","note":""}]}"#,
    );
    for (heading, path) in [
        ("GET /api/v1/health", "/health".to_owned()),
        ("GET /api/v1/kinds", "/kinds".to_owned()),
        ("GET /api/v1/sessions/1`", "/sessions/1".to_owned()),
        ("GET /api/v1/files", "/files".to_owned()),
        ("GET …/meta", "/sessions/1/meta".to_owned()),
        ("GET …/names", "/sessions/1/names?from=256".to_owned()),
        ("GET …/ticks?", "/sessions/1/ticks?count=3".to_owned()),
        ("GET …/ticks/slowest", "/sessions/1/ticks/slowest".to_owned()),
        ("GET …/gauges", "/sessions/1/gauges".to_owned()),
        ("GET …/gc", "/sessions/1/gc".to_owned()),
        ("GET …/notices", "/sessions/1/notices".to_owned()),
        ("GET …/event/11.204` and", format!("/sessions/1/event/{event}")),
        (
            "GET …/event/11.204` and",
            format!("/sessions/1/row/{}/{}/{}", place["lane"], place["row"], place["index"]),
        ),
        ("GET …/event/11.204/children", format!("/sessions/1/event/{event}/children")),
        ("GET …/event/11.204/siblings", format!("/sessions/1/event/{event}/siblings")),
        ("GET …/event/11.204/links", format!("/sessions/1/event/{event}/links")),
        ("GET …/nearest", format!("/sessions/1/nearest?lane={}&row=0&atNs=5", place["lane"])),
        ("GET …/stats", "/sessions/1/stats?by=name".to_owned()),
        ("GET …/histogram", "/sessions/1/histogram?by=name&key=SchedulerWorkerBetweenTick".to_owned()),
        ("GET …/top", "/sessions/1/top".to_owned()),
        ("GET …/search", format!("/sessions/1/search?filter={id}")),
        ("GET …/bookmarks", "/sessions/1/bookmarks".to_owned()),
        ("GET /api/v1/settings", "/settings".to_owned()),
    ] {
        let answer = server.get(&path);
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.head.contains("application/json"), "{path}");
        check_shape(&example(&document, heading), &answer.json(), heading);
    }
    check_shape(&example(&document, "POST …/filters"), &filter, "filters");
    let problem = server.get("/sessions/1/event/9999.1");
    assert!(problem.head.contains("application/problem+json"));
    check_shape(&example(&document, "fromNs`/`toNs`"), &problem.json(), "problem");
}

const SCRIPT: &str = "<script>alert(1)</script>\u{202e}\u{1b}[31m\"'&\0";

/// A record by its payload.
fn record(out: &mut Vec<u8>, kind: u8, at: i64, span: Option<(u64, u16)>, payload: &[u8]) {
    let start = out.len();
    out.extend_from_slice(&[0, 0, kind, 1]);
    out.extend_from_slice(&at.to_le_bytes());
    if let Some((id, site)) = span {
        out.extend_from_slice(&1_000i64.to_le_bytes());
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&0u64.to_le_bytes());
        out.push(2);
        out.extend_from_slice(&site.to_le_bytes());
    }
    out.extend_from_slice(payload);
    let bytes = (out.len() - start) as u16;
    out[start..start + 2].copy_from_slice(&bytes.to_le_bytes());
}

/// Payload of kind 66 with its last four fields.
fn realms(present: i32, runnable: i32, touched: i32, emitted: i32) -> Vec<u8> {
    let mut payload = vec![0; 155 - 16];
    for value in [present, runnable, touched, emitted] {
        payload.extend_from_slice(&value.to_le_bytes());
    }
    payload
}

/// Payload of kind 68.
fn sessions(connected: i32, reported: i32) -> Vec<u8> {
    let mut payload = vec![0; 44];
    payload[..4].copy_from_slice(&connected.to_le_bytes());
    payload[40..].copy_from_slice(&reported.to_le_bytes());
    payload
}

fn hostile_trace(path: &Path, files: &[&str]) {
    let mut tables = Tables::default();
    tables.systems.push(System { index: 0, name: SCRIPT.into(), ..System::default() });
    let header = FileHeader { database_name: "<b>".into(), ..FileHeader::new(639_315_504_000_000_000) };
    let mut writer =
        TraceWriter::create(Cursor::new(Vec::new()), header, &tables, WriterOptions::new(0)).unwrap();
    let mut records = Vec::new();
    for (at, site) in (0i64..).zip(1..=files.len() as u16) {
        record(
            &mut records,
            id::NAMED_SPAN,
            1_000 + at * 5_000,
            Some((site.into(), site)),
            SCRIPT.trim_end_matches('\0').as_bytes(),
        );
    }
    for (at, payload) in [
        (1i64, realms(9, 9, 4, 4)),
        (2, realms(9, 7, 4, 3)),
        (3, realms(70, 70, 70, 64)),
        (4, realms(0, 5, -1, 2)),
    ] {
        record(&mut records, id::SPATIAL_ARCHETYPE_TELEMETRY, 100_000 * at, None, &payload);
    }
    // An older record, which ends before these fields.
    record(&mut records, id::SPATIAL_ARCHETYPE_TELEMETRY, 500_000, None, &[0; 139]);
    for (at, payload) in [(6i64, sessions(300, 256)), (7, sessions(280, 256)), (8, sessions(20, 20))] {
        record(&mut records, id::SUBSCRIPTIONS_SERVER_TELEMETRY, 100_000 * at, None, &payload);
    }
    writer.copy_records(&records).unwrap();
    let entries = files.iter().zip(1u16..);
    let table = FileTable {
        files: entries.clone().map(|(path, id)| FileEntry { file_id: id, path: (*path).into() }).collect(),
    };
    let places =
        entries.map(|(_, id)| SourceLocation { id, file_id: id, line: 1, kind: 0, method: SCRIPT.into() });
    let manifest = SourceManifest { entries: places.collect() };
    let info =
        CloseInfo { stop_timestamp: 1_000_000, sources: Some((table, manifest)), ..CloseInfo::default() };
    assert!(writer.close(&info).complete);
    std::fs::write(path, writer.into_inner().into_inner()).unwrap();
}

#[test]
fn what_a_hostile_trace_says_stays_text() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("good.rs"), "one\ntwo\n").unwrap();
    let files = [
        "../../etc/passwd",
        "/etc/passwd",
        "good.rs",
        "../../../../../../etc/passwd",
        "hostile.typhon-trace\0",
        "http://attacker.example/x",
    ];
    hostile_trace(&folder.path().join("hostile.typhon-trace"), &files);
    let server = Running::at(folder, &["hostile.typhon-trace"]);
    for path in [
        "/sessions/1/meta",
        "/sessions/1/names",
        "/sessions/1/stats?by=name",
        "/sessions/1/top",
        "/sessions/1/notices",
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{path}");
        let head = answer.head.to_lowercase();
        assert!(head.contains("content-type: application/json") && head.contains("nosniff"), "{path}");
    }
    let names = server.get("/sessions/1/names?from=256").json();
    assert_eq!(names["texts"][0], SCRIPT.trim_end_matches('\0'), "as it is, for text nodes");
    // Only the one file below the source root can be seen, whatever the trace names.
    for (site, file) in (1..).zip(files) {
        let answer = server.get(&format!("/sessions/1/source?site={site}"));
        if file == "good.rs" {
            assert_eq!(answer.json()["lines"], json!(["one", "two"]));
        } else {
            assert_eq!((answer.status, &answer.json()["code"]), (404, &json!("unknown")), "{file}");
            assert!(!String::from_utf8_lossy(&answer.body).contains("root:"));
        }
    }
    let span = server.get("/sessions/1/top?count=10").json();
    for span in span["spans"].as_array().unwrap() {
        let event = server.get(&format!("/sessions/1/event/{}", span["event"].as_str().unwrap())).json();
        assert_eq!(event["site"]["hasSource"], event["site"]["file"] == "good.rs");
    }
}

#[test]
fn b5_row_sets_that_the_engine_cut_are_told() {
    let folder = tempfile::tempdir().unwrap();
    hostile_trace(&folder.path().join("hostile.typhon-trace"), &["a.rs"]);
    let server = Running::at(folder, &["hostile.typhon-trace"]);
    let capped = server.get("/sessions/1/notices").json()["capped"].clone();
    // The worst case of each, where it was, and in how many records members are missing.
    let first = 1_000;
    let at = |ticks: i64| ticks - first;
    assert_eq!(
        capped,
        json!([
            { "what": "ratesRealms", "kind": 66, "shown": 64, "total": 70, "atNs": at(300_000), "times": 2 },
            { "what": "runnableRealms", "kind": 66, "shown": 7, "total": 9, "atNs": at(200_000), "times": 1 },
            { "what": "reportedSessions", "kind": 68, "shown": 256, "total": 300, "atNs": at(600_000), "times": 2 },
        ])
    );
    assert_eq!(server.get("/sessions/1/meta").json()["totals"]["capped"], 5);
}
