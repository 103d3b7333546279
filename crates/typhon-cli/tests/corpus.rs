//! Recordings of the reference engine give exactly the values that its own reader gave.

mod common;

use common::{arg, read_packed, recordings, typhon};
use serde_json::Value;
use std::path::Path;

/// Our line in the form of the expected files: no derived members.
fn reduced(mut ours: Value) -> Value {
    let line = ours.as_object_mut().expect("an object");
    for derived in ["thread", "event"] {
        line.remove(derived).expect("every line has it");
    }
    if line.get("traceId").is_some_and(Value::is_null) {
        line.remove("traceId");
    }
    if let Some(site) = line.get_mut("site") {
        *site = site["id"].take();
    }
    remove_value_names(&mut line["fields"]);
    ours
}

/// Drops `xName` where `x` stands beside it, at every depth.
fn remove_value_names(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let names: Vec<String> = members.keys().map(|name| format!("{name}Name")).collect();
            names.iter().for_each(|name| drop(members.remove(name)));
            members.values_mut().for_each(remove_value_names);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_value_names),
        _ => {}
    }
}

fn expected(line: &str) -> (Value, String) {
    let mut value: Value = serde_json::from_str(line).expect("an expected record");
    let record = value.as_object_mut().expect("an object");
    let block = record.remove("block").expect("a block");
    for place in ["i", "offset", "size"] {
        record.remove(place);
    }
    (value, block.to_string())
}

#[track_caller]
fn assert_same_records(dumped: &str, expected_lines: &str, name: &Path) {
    let mut expected_lines = expected_lines.lines();
    let mut previous = (String::new(), 0);
    for (index, line) in dumped.lines().enumerate() {
        let ours: Value = serde_json::from_str(line).unwrap_or_else(|err| panic!("{err}: {line}"));
        let event = ours["event"].as_str().expect("an event id").to_owned();
        let (theirs, block) = expected(expected_lines.next().expect("as many records as expected"));
        assert_eq!(reduced(ours), theirs, "{} record {index}", name.display());
        let ordinal = if previous.0 == block { previous.1 + 1 } else { 0 };
        assert_eq!(event, format!("{block}.{ordinal}"), "{} record {index}", name.display());
        previous = (block, ordinal);
    }
    assert_eq!(expected_lines.next(), None, "{}: records are missing", name.display());
}

#[test]
fn dump_equals_the_expected_records_in_every_field() {
    for (recording, stem) in recordings("typhon-trace") {
        let run = typhon(&["trace", "dump", arg(&recording), "--format", "jsonl", "--time", "raw"]).expect(0);
        assert_eq!(run.stderr, "");
        assert_same_records(&run.stdout, &read_packed(&stem, "expected.jsonl").expect("checked"), &recording);
    }
}

#[test]
fn dump_of_standard_input_is_the_same_but_for_source_locations() {
    for (recording, stem) in recordings("typhon-trace") {
        let bytes = std::fs::read(&recording).expect("readable");
        let run =
            common::typhon_with_stdin(&["trace", "dump", "-", "--json", "--time", "raw"], &bytes).expect(0);
        assert_same_records(&run.stdout, &read_packed(&stem, "expected.jsonl").expect("checked"), &recording);
    }
}

/// A client that concatenates the payloads of Init (1) and Block (2) frames has a readable trace without trailers.
#[test]
fn the_live_stream_is_a_trace_without_its_frames() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (recording, stem) in recordings("bin") {
        let mut stream = &std::fs::read(&recording).expect("readable")[..];
        let mut trace = Vec::new();
        while let Some((head, rest)) = stream.split_first_chunk::<5>() {
            let length = i32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
            if matches!(head[0], 1 | 2) {
                trace.extend_from_slice(&rest[..length]);
            }
            stream = &rest[length..];
        }
        let path = folder.path().join("live.typhon-trace");
        std::fs::write(&path, trace).expect("a temporary folder");
        let run = typhon(&["trace", "dump", arg(&path), "--json", "--time", "raw"]).expect(0);
        assert_same_records(&run.stdout, &read_packed(&stem, "expected.jsonl").expect("checked"), &recording);
        let info = typhon(&["trace", "info", arg(&path), "--json"]).expect(0).json();
        assert_same_metadata(&info, &read_packed(&stem, "meta.json").expect("beside it"), &recording);
    }
}

#[test]
fn info_equals_the_expected_metadata() {
    for (recording, stem) in recordings("typhon-trace") {
        let info = typhon(&["trace", "info", arg(&recording), "--json"]).expect(0).json();
        common::schema::check(&info, "info.json");
        assert_same_metadata(&info, &read_packed(&stem, "meta.json").expect("beside it"), &recording);
    }
}

fn assert_same_metadata(info: &Value, meta: &str, name: &Path) {
    let meta: Value = serde_json::from_str(meta).expect("metadata");
    for table in [
        "header",
        "systems",
        "archetypes",
        "componentTypes",
        "tracks",
        "dags",
        "componentDefinitions",
        "archetypeDefinitions",
        "indexCatalog",
        "runtimeConfig",
        "eventQueues",
        "resourceGraph",
    ] {
        assert_same_value(&info[table], &meta[table], &format!("{} {table}", name.display()));
    }
    let counts = &info["counts"];
    assert_eq!(counts["records"], meta["recordCount"]);
    assert_eq!(counts["ticks"], meta["tickCount"]);
    assert_eq!(counts["blocks"].as_u64(), meta["blocks"].as_array().map(|blocks| blocks.len() as u64));
    let expected_kinds = meta["countsByKind"].as_object().expect("an object");
    let kinds = counts["perKind"].as_object().expect("an object");
    assert_eq!(kinds.len(), expected_kinds.len());
    for (id, count) in expected_kinds {
        let kind = typhon_trace::registry::kind(id.parse().expect("an id")).expect("a known kind");
        assert_eq!(&kinds[kind.name], count, "{} {}", name.display(), kind.name);
    }
}

/// Equal, with 60 and 60.0 the same.
fn assert_same_value(ours: &Value, theirs: &Value, at: &str) {
    match (ours, theirs) {
        (Value::Number(a), Value::Number(b)) => {
            assert!(a == b || a.as_f64() == b.as_f64(), "{at}: {a} is not {b}");
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{at}");
            a.iter()
                .zip(b)
                .enumerate()
                .for_each(|(i, (a, b))| assert_same_value(a, b, &format!("{at}[{i}]")));
        }
        (Value::Object(a), Value::Object(b)) => {
            assert_eq!(a.keys().collect::<std::collections::BTreeSet<_>>(), b.keys().collect(), "{at}");
            a.iter().for_each(|(key, a)| assert_same_value(a, &b[key], &format!("{at}.{key}")));
        }
        (a, b) => assert_eq!(a, b, "{at}"),
    }
}

#[test]
fn a_repaired_or_exported_copy_of_a_reference_file_holds_the_same_records() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (index, (recording, stem)) in recordings("typhon-trace").iter().enumerate() {
        let expected_lines = read_packed(stem, "expected.jsonl").expect("checked");
        for command in [vec!["repair"], vec!["export", "--to", "trace"]] {
            let copy = folder.path().join(format!("{index}-{}.typhon-trace", command[0]));
            let mut args = vec!["trace"];
            args.extend(&command);
            args.extend([arg(recording), "-o", arg(&copy)]);
            typhon(&args).expect(0);
            assert_eq!(typhon(&["trace", "verify", arg(&copy)]).code.map(|code| code <= 1), Some(true));
            let dumped =
                typhon(&["trace", "dump", arg(&copy), "--json", "--time", "raw"]).expect(0).json_lines();
            let theirs = expected_lines.lines().map(|line| expected(line).0);
            assert!(dumped.into_iter().map(reduced).eq(theirs), "{} {}", recording.display(), command[0]);
        }
    }
}
