//! Folders, links, pipes and sockets where a log has files: they are told with the remedy, by opening and by looking, and
//! stay as they are. Ignored, they would end the log when it comes to their name; opened, a pipe would never return.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use typhon_log::inspect::Inspection;
use typhon_log::{Draft, LogError, Opening, Options, Store};
use typhon_store::{PoolIo, ReadOnly};
use typhon_sync::Deadline;

fn open(directory: &Path) -> Result<Opening, LogError> {
    Store::open(Arc::new(PoolIo::new()), directory, Options::small(), b"")
}

fn look(directory: &Path) -> Result<Inspection, LogError> {
    Inspection::of_directory(&ReadOnly::new(PoolIo::new(), |_| {}), directory)
}

/// A closed log with one frame.
fn log(folder: &tempfile::TempDir) -> PathBuf {
    let directory = folder.path().join("log");
    let log = open(&directory).unwrap().start(b"").unwrap();
    log.commit(&Draft::commit(b"kept"), Deadline::INFINITE).unwrap();
    directory
}

const KINDS: [&str; 4] = ["directory", "symbolic link", "pipe", "socket"];

/// Makes something that is no file.
fn make(kind: &str, path: &Path) {
    match kind {
        "directory" => fs::create_dir(path).unwrap(),
        "symbolic link" => symlink("/dev/null", path).unwrap(),
        "pipe" => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
        _ => drop(UnixListener::bind(path).unwrap()),
    }
}

fn remove(path: &Path) {
    if fs::symlink_metadata(path).unwrap().is_dir() {
        fs::remove_dir(path).unwrap();
    } else {
        fs::remove_file(path).unwrap();
    }
}

/// Names, and the bytes of what is a file.
fn everything(directory: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            (entry.path(), entry.file_type().unwrap().is_file().then(|| fs::read(entry.path()).unwrap()))
        })
        .collect();
    found.sort();
    found
}

fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}

#[test]
fn what_has_the_name_of_a_segment_and_is_none_is_refused_and_seen() {
    let folder = tempfile::tempdir().unwrap();
    let directory = log(&folder);
    for name in ["0000000000000002.wal", "0000000000000003.spare", "0000000000000099.wal"] {
        for kind in KINDS {
            let path = directory.join(name);
            make(kind, &path);
            let before = everything(&directory);
            let error = open(&directory).unwrap_err();
            assert!(matches!(error, LogError::NotAFile { .. }) && error.code() == Some(7004), "{error:?}");
            contains(&error.to_string(), &[name, kind, "move it out"]);
            let found = look(&directory).unwrap();
            let [problem] = &found.problems[..] else { panic!("{:?}", found.problems) };
            contains(&problem.to_string(), &[name, kind, "move it out"]);
            assert_eq!(found.frames().next_frame().unwrap().unwrap().body, b"kept");
            assert!(everything(&directory) == before);
            remove(&path);
        }
    }
    assert_eq!(open(&directory).unwrap().frames().next_frame().unwrap().unwrap().body, b"kept");
}

/// Where no log is yet, none is begun.
#[test]
fn no_log_is_begun_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("log");
    fs::create_dir_all(directory.join("0000000000000001.wal")).unwrap();
    let error = open(&directory).unwrap_err();
    contains(&error.to_string(), &["0000000000000001.wal", "directory", "move it out"]);
    let names: Vec<_> = everything(&directory).into_iter().map(|(path, _)| path).collect();
    assert_eq!(names, [directory.join("0000000000000001.wal"), directory.join("lock")]);
}

/// A segment that was moved to another disk and linked: the link is not followed, and not taken for a missing file.
#[test]
fn a_link_to_a_segment_says_how_it_is_mended() {
    let folder = tempfile::tempdir().unwrap();
    let directory = log(&folder);
    let (segment, elsewhere) = (directory.join("0000000000000001.wal"), folder.path().join("elsewhere"));
    fs::rename(&segment, &elsewhere).unwrap();
    symlink(&elsewhere, &segment).unwrap();
    let error = open(&directory).unwrap_err();
    contains(&error.to_string(), &["0000000000000001.wal", "symbolic link", "put the file itself there"]);
    fs::rename(&elsewhere, &segment).unwrap();
    assert_eq!(open(&directory).unwrap().frames().next_frame().unwrap().unwrap().body, b"kept");
}

#[test]
fn an_anchor_and_a_lock_that_are_no_files_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let directory = log(&folder);
    for name in ["anchor", "lock"] {
        let (path, aside) = (directory.join(name), folder.path().join("aside"));
        fs::rename(&path, &aside).unwrap();
        // A link to a file is as good as the file here: neither is ever renamed.
        for kind in KINDS {
            make(kind, &path);
            let before = everything(&directory);
            let error = open(&directory).unwrap_err().to_string();
            contains(&error, &[name, "not a file", "move away what is there"]);
            if name == "anchor" {
                contains(&look(&directory).unwrap_err().to_string(), &[name, "not a file"]);
            } else {
                assert!(look(&directory).unwrap().problems.is_empty(), "looking takes no lock");
            }
            assert!(everything(&directory) == before);
            remove(&path);
        }
        fs::rename(&aside, &path).unwrap();
    }
    open(&directory).unwrap();
}

#[test]
fn a_file_in_place_of_the_directory_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    for kind in &KINDS[2..] {
        let path = folder.path().join(kind);
        make(kind, &path);
        contains(&open(&path).unwrap_err().to_string(), &[kind, "needs a directory"]);
        contains(
            &Inspection::of_segment(&PoolIo::new(), &path).unwrap_err().to_string(),
            &[kind, "not a file"],
        );
    }
    let file = folder.path().join("file");
    fs::write(&file, "mine").unwrap();
    contains(&open(&file).unwrap_err().to_string(), &["file", "needs a directory"]);
    contains(&open(&file.join("log")).unwrap_err().to_string(), &["file/log", "needs a directory"]);
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    let deep = folder.path().join("no/such");
    let text = open(&deep).unwrap_err().to_string();
    contains(&text, &["no/such", "Create the directory above"]);
    assert_eq!(text.matches("no/such").count(), 1, "the path is named once: {text}");
}
