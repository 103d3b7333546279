//! Traces and who else uses them: source locations beside one that was not closed, and recorders that want its room.

mod common;

use common::{arg, traces, typhon};
use std::path::{Path, PathBuf};
use typhon_trace::header::{FileHeader, FileOffsets, HEADER_BYTES};
use typhon_trace::reader::{ReadOptions, TraceFile};
use typhon_trace::tables::{System, Tables};

/// The recording of [`traces::small`] as a killed recorder leaves it: no closing block, nothing that close writes, and
/// its source locations and late tables beside it.
fn killed(folder: &Path) -> PathBuf {
    let bytes = std::fs::read(traces::small(folder)).expect("just written");
    let trace = TraceFile::open(&bytes[..]).expect("a trace");
    let index = trace.scan(ReadOptions::default()).expect("memory");
    let end = index.entries.last().expect("a closing block").offset;
    let header = FileHeader {
        offsets: FileOffsets::default(),
        tsn_max: 0,
        duration_ticks: 0,
        tick_count: 0,
        ..trace.header().clone()
    };
    let open = [&header.encode()[..], &bytes[HEADER_BYTES..end as usize]].concat();
    let mut beside = Vec::new();
    trace.sections().file_table.as_ref().expect("in the trailer").encode(&mut beside).expect("few");
    trace.sections().source_manifest.as_ref().expect("in the trailer").encode(&mut beside).expect("few");
    let late = System { index: 9, name: "Late".into(), ..System::default() };
    Tables { systems: vec![late], ..Tables::default() }.encode_section(&mut beside).expect("few");
    let path = folder.join("killed.typhon-trace");
    std::fs::write(&path, open).expect("writable");
    std::fs::write(folder.join("killed.typhon-trace.sites"), beside).expect("writable");
    path
}

fn place_of_commit(path: &Path) -> serde_json::Value {
    let rows = typhon(&["trace", "dump", arg(path), "--json", "--kind", "TransactionCommit"]).expect(0);
    rows.json_lines()[0]["site"].clone()
}

#[test]
fn a_trace_that_was_not_closed_names_its_source_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = killed(folder.path());
    assert_eq!(place_of_commit(&path)["line"], 76);
    let info = typhon(&["trace", "info", arg(&path), "--json"]).expect(0).json();
    assert_eq!(info["file"]["closed"], false);
    assert_eq!(info["systems"][0]["name"], "Late");
    std::fs::remove_file(folder.path().join("killed.typhon-trace.sites")).expect("was there");
    assert!(place_of_commit(&path).get("line").is_none());
}

#[test]
fn repair_takes_in_what_stands_beside() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, copy) = (killed(folder.path()), folder.path().join("copy.typhon-trace"));
    typhon(&["trace", "repair", arg(&path), "-o", arg(&copy)]).expect(0);
    let site = place_of_commit(&copy);
    assert_eq!((&site["file"], &site["line"]), (&"src/sim.rs".into(), &76.into()));
    assert_eq!(typhon(&["trace", "verify", arg(&copy), "--json"]).expect(0).json()["verdict"], "sound");
    let info = typhon(&["trace", "info", arg(&copy), "--json"]).expect(0).json();
    assert_eq!((&info["systems"][0]["name"], &info["header"]["systemCount"]), (&"Late".into(), &1.into()));
}

#[test]
fn damage_beside_a_trace_costs_only_the_source_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = killed(folder.path());
    let beside = folder.path().join("killed.typhon-trace.sites");
    for cut in [0, 3, 20] {
        let bytes = std::fs::read(&beside).expect("there");
        std::fs::write(&beside, &bytes[..cut.min(bytes.len())]).expect("writable");
        assert!(place_of_commit(&path).get("line").is_none());
        typhon(&["trace", "info", arg(&path)]).expect(0);
        std::fs::write(&beside, bytes).expect("writable");
    }
}

/// Recorders delete captures that nobody uses, and take an exclusive lock to find out.
#[test]
#[cfg(unix)]
fn b34_a_trace_that_is_being_read_is_in_use() {
    use std::fs::{File, TryLockError};
    use std::process::Stdio;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("read.typhon-trace");
    std::fs::copy(common::recording("guide-shard.typhon-trace"), &path).expect("writable");
    let file = File::open(&path).expect("there");
    file.try_lock().expect("nobody uses it");
    file.unlock().expect("was locked");
    // Nobody reads the output, and it does not fit into a pipe: the reader stays.
    let mut reader = common::command()
        .args(["trace", "dump", arg(&path), "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command runs");
    let in_use = loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => break true,
            Ok(()) => file.unlock().expect("was locked"),
            Err(TryLockError::Error(error)) => panic!("{error}"),
        }
        if reader.try_wait().expect("a child").is_some() {
            break false;
        }
        std::thread::yield_now();
    };
    reader.kill().expect("a child");
    reader.wait().expect("a child");
    assert!(in_use, "the reader ended without having been seen");
    file.try_lock().expect("free again");
}
