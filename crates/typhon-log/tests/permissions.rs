//! Rights that are missing: the file is named, the remedy too, and nothing is changed. Rights do not bind root, so the
//! log is opened by another process as somebody else.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use typhon_log::inspect::Inspection;
use typhon_log::{Draft, Opening, Options, Store};
use typhon_store::{PoolIo, ReadOnly};
use typhon_sync::Deadline;

const DIRECTORY: &str = "TYPHON_TEST_LOG";
/// `nobody`, who owns nothing.
const NOBODY: u32 = 65_534;

fn open(directory: &Path) -> Result<Opening, typhon_log::LogError> {
    Store::open(Arc::new(PoolIo::new()), directory, Options::small(), b"")
}

/// A folder that everybody may look into, with a log.
fn log() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    set_mode(folder.path(), 0o755);
    let directory = folder.path().join("log");
    let log = open(&directory).unwrap().start(b"").unwrap();
    log.commit(&Draft::commit(b"kept"), Deadline::INFINITE).unwrap();
    drop(log);
    (folder, directory)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Everything in a directory.
fn everything(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// The child: opens, and says what came of it.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    match open(&directory).and_then(|opening| opening.start(b"")) {
        Ok(_) => eprintln!("opened"),
        Err(error) => eprintln!("{error}"),
    }
    match Inspection::of_directory(&ReadOnly::new(PoolIo::new(), |_| {}), &directory) {
        Ok(found) => eprintln!("looked: {} problems", found.problems.len()),
        Err(error) => eprintln!("looked: {error}"),
    }
}

/// What somebody without rights is told by opening and by looking.
fn told(folder: &Path, directory: &Path) -> String {
    // Where the program is, nobody may be allowed to go.
    let program = folder.join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    set_mode(&program, 0o755);
    let mut command = Command::new(&program);
    command.args(["child", "--exact", "--nocapture"]).env(DIRECTORY, directory).current_dir("/");
    if fs::metadata("/proc/self").map_or(0, |data| data.uid()) == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = loop {
        // While another test forks, its child holds what was open here: the program just written, for a moment.
        match command.output() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            output => break output.unwrap(),
        }
    };
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_directory_that_may_not_be_written_names_the_lock_and_the_remedy() {
    let (folder, directory) = log();
    let before = everything(&directory);
    let files: Vec<_> = before.iter().map(|(path, _)| path.clone()).collect();
    files.iter().for_each(|path| set_mode(path, 0o444));
    set_mode(&directory, 0o555);
    let text = told(folder.path(), &directory);
    assert!(text.contains("log/lock") && text.contains("ermission denied"), "{text}");
    assert!(text.contains("Run as the owner"), "{text}");
    assert!(text.contains("looked: 0 problems"), "looking takes no right to write: {text}");
    set_mode(&directory, 0o755);
    assert!(everything(&directory) == before);
}

#[test]
fn a_segment_that_may_not_be_written_is_named() {
    let (folder, directory) = log();
    let before = everything(&directory);
    set_mode(&directory, 0o777);
    for (path, _) in &before {
        let is_segment = path.extension().is_some_and(|extension| extension == "wal");
        set_mode(path, if is_segment { 0o444 } else { 0o666 });
    }
    let text = told(folder.path(), &directory);
    assert!(text.contains("0000000000000001.wal") && text.contains("Run as the owner"), "{text}");
    assert!(everything(&directory) == before);
}

#[test]
fn a_directory_that_may_not_be_read_is_named_also_when_it_is_looked_at() {
    let (folder, directory) = log();
    set_mode(&directory, 0o000);
    let text = told(folder.path(), &directory);
    let lines: Vec<_> = text.lines().filter(|line| line.contains("ermission denied")).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines.iter().all(|line| line.contains("/log") && line.contains("Run as the owner")), "{text}");
    set_mode(&directory, 0o755);
    assert_eq!(open(&directory).unwrap().frames().next_frame().unwrap().unwrap().body, b"kept");
}
