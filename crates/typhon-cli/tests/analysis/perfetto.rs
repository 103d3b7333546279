//! `trace export --to perfetto`, read back with the protos that Perfetto publishes.

use crate::common::traces::{FIRST_TICKS, Records, Span, trace, transaction, worker};
use crate::common::{arg, command, recording, repository, typhon};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use typhon_trace::event::TickStart;

/// A Python with the package `perfetto`: the one that `cargo xtask test` sets up, or the system's.
fn python() -> Option<PathBuf> {
    let candidates = [repository().join("target/python/bin/python3"), PathBuf::from("python3")];
    candidates.into_iter().find(|python| {
        let import = ["-c", "import perfetto.protos.perfetto.trace.perfetto_trace_pb2"];
        Command::new(python).args(import).output().is_ok_and(|output| output.status.success())
    })
}

/// Exports `path` and has `perfetto_check.py` compare the result with `dump`; its summary.
fn check(python: &Path, path: &Path) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let export = file("export.perfetto-trace");
    typhon(&["trace", "export", arg(path), "-o", arg(&export), "--to", "perfetto"]).expect(0);
    let dump = typhon(&["trace", "dump", "--format", "jsonl", "--time", "raw", arg(path)]).expect(0);
    std::fs::write(file("records.jsonl"), dump.stdout).unwrap();
    let info = typhon(&["trace", "info", "--json", arg(path)]).expect(0);
    std::fs::write(file("info.json"), info.stdout).unwrap();
    let output = Command::new(python)
        .arg(repository().join("crates/typhon-cli/tests/perfetto_check.py"))
        .args([export, file("records.jsonl"), file("info.json")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Names with quotes and escapes, a slot that changes hands, spans that overlap, touch and have no length.
fn awkward(folder: &Path) -> PathBuf {
    let at = |offset: i64| FIRST_TICKS + offset;
    let payload = transaction(7);
    let mut records = Records::default().instant(&worker("first \"name\"\x1b[0m"), 3, at(0));
    for (id, (start, duration)) in
        [(10, 50), (10, 20), (30, 60), (90, 0), (90, 0), (90, 10), (100, 5)].into_iter().enumerate()
    {
        let span = Span { duration, id: (3 << 56) + id as u64 + 1, site: None, payload: &payload };
        records = records.span(20, 3, at(start), span);
    }
    let named = Span { duration: 7, id: 99, site: None, payload: "späte \u{202e} Zeile\n\0".as_bytes() };
    records = records
        .instant(&worker("second"), 3, at(200))
        .span(246, 3, at(210), named)
        .instant(&TickStart {}, 3, at(205))
        .raw(255, 9, at(220), &[1, 2, 3]);
    trace(&folder.join("awkward.typhon-trace"), &[records])
}

#[test]
fn a_perfetto_export_holds_every_slice_instant_sample_and_arrow() {
    let Some(python) = python() else {
        let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!is_ci, "no Python with the package `perfetto`; `cargo xtask test` installs it");
        eprintln!(
            "skipped a_perfetto_export_holds_every_slice_instant_sample_and_arrow: no Python with `perfetto`"
        );
        return;
    };
    for name in ["anthill.typhon-trace", "guide-shard.typhon-trace", "all-kinds.typhon-trace"] {
        let summary = check(&python, &recording(name));
        assert!(
            summary["slices"].as_u64() > Some(1_000) && summary["arrows"].as_u64() > Some(0),
            "{summary}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let summary = check(&python, &awkward(folder.path()));
    assert_eq!((&summary["slices"], &summary["records"]), (&8.into(), &12.into()), "{summary}");
}

#[test]
fn a_compressed_export_is_the_same_file_in_gzip() {
    let folder = tempfile::tempdir().unwrap();
    let path = recording("guide-shard.typhon-trace");
    let (plain, packed) = (folder.path().join("plain"), folder.path().join("packed"));
    typhon(&["trace", "export", arg(&path), "-o", arg(&plain), "--to", "perfetto"]).expect(0);
    typhon(&["trace", "export", arg(&path), "-o", arg(&packed), "--to", "perfetto", "--compress"]).expect(0);
    let mut unpacked = Vec::new();
    let file = std::fs::File::open(&packed).unwrap();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(file), &mut unpacked).unwrap();
    assert!(unpacked == std::fs::read(&plain).unwrap());
    let again = command().args(["trace", "export", "--to", "perfetto", "-o"]).args([&plain, &path]).output();
    assert_eq!(again.unwrap().status.code(), Some(73), "an existing file is not replaced");
}
