//! A disk that is full: appends stop with a reason and a remedy, what was acknowledged is there, and when there is space
//! again the log goes on.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use typhon_log::{Draft, LogError, Options, Store};
use typhon_store::PoolIo;
use typhon_sync::Deadline;

const DIRECTORY: &str = "TYPHON_TEST_LOG";
/// Set for a process that has file systems of its own.
const ALONE: &str = "TYPHON_TEST_MOUNTS_ALONE";

fn options() -> Options {
    Options { segment_bytes: 128 << 10, ..Options::small() }
}

fn open(directory: &Path) -> Store {
    Store::open(Arc::new(PoolIo::new()), directory, options(), b"").unwrap().start(b"").unwrap()
}

/// Appends until there is no room, and says how often that went well.
fn fill(log: &Store) -> (u64, LogError) {
    for number in 0_u64.. {
        let mut body = vec![0; 4_000];
        body[..8].copy_from_slice(&number.to_le_bytes());
        if let Err(error) = log.commit(&Draft::commit(&body), Deadline::INFINITE) {
            return (number, error);
        }
    }
    unreachable!("the numbers do not end")
}

/// The numbers that a log holds, which begin at 0 and have no gap.
fn count(directory: &Path) -> u64 {
    let opening = Store::open(Arc::new(PoolIo::new()), directory, options(), b"").unwrap();
    let mut frames = opening.frames();
    let mut count = 0;
    while let Some(frame) = frames.next_frame().unwrap() {
        assert_eq!(frame.body[..8], u64::to_le_bytes(count));
        count += 1;
    }
    count
}

/// A file system of a few megabytes, unmounted when it is dropped.
struct Small {
    folder: tempfile::TempDir,
}

impl Small {
    /// In a file if the system can do that, else in memory; `None` if it mounts nothing for us.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let (image, point) = (folder.path().join("image"), folder.path().join("mnt"));
        fs::create_dir(&point).unwrap();
        File::create(&image).unwrap().set_len(4 << 20).unwrap();
        let (image, point) = (image.to_str().unwrap(), point.to_str().unwrap());
        let on_a_device = || {
            succeeds("mkfs.ext4", &["-q", "-O", "^has_journal", image])
                && succeeds("mount", &["-o", "loop", image, point])
        };
        let in_memory = || succeeds("mount", &["-t", "tmpfs", "-o", "size=2m", "tmpfs", point]);
        if on_a_device() {
            println!("a file system in a file");
        } else if in_memory() {
            println!("a file system in memory");
        } else {
            return None;
        }
        Some(Self { folder })
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("mnt")
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        assert!(succeeds("umount", &[self.path().to_str().unwrap()]) || std::thread::panicking());
    }
}

/// Runs a test with the path of a small file system: one that this process mounts, or else the same test in a process that
/// has a namespace of its own, in which it may. Where neither is allowed the test is skipped, but not with `CI=true`.
fn on_a_small_file_system(name: &str, test: impl FnOnce(&Path)) {
    if let Some(small) = Small::mount() {
        return test(&small.path());
    }
    let namespace = ["--user", "--map-root-user", "--mount"];
    if std::env::var_os(ALONE).is_none() && succeeds("unshare", &[&namespace[..], &["true"]].concat()) {
        let mut again = Command::new("unshare");
        again.args(namespace).arg(std::env::current_exe().unwrap()).args([name, "--exact", "--nocapture"]);
        let output = again.env(ALONE, "true").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        print!("{text}");
        assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
        return;
    }
    let may_skip = std::env::var_os(ALONE).is_none() && std::env::var_os("CI").is_none_or(|ci| ci != "true");
    assert!(may_skip, "nothing can be mounted here, with `mount` or `unshare`");
    println!("skipped: nothing can be mounted here; the limit on files stands for a full disk");
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[test]
fn a_full_file_system_loses_nothing_and_goes_on_when_there_is_space() {
    on_a_small_file_system("a_full_file_system_loses_nothing_and_goes_on_when_there_is_space", goes_on);
}

fn goes_on(small: &Path) {
    let (directory, ballast) = (small.join("log"), small.join("ballast"));
    fs::write(&ballast, vec![1; 600 << 10]).unwrap();
    let log = open(&directory);
    let (acknowledged, error) = fill(&log);
    assert!(acknowledged > 20, "{acknowledged}");
    let LogError::Full { .. } = error else { panic!("{error}") };
    let path = format!("{}/", directory.display());
    assert!(error.to_string().contains("free some space") && error.to_string().contains(&path), "{error}");
    assert!(log.failure().is_none());
    assert_eq!(log.append(&Draft::commit(b"x"), Deadline::INFINITE).unwrap_err().code(), Some(2004));

    // Space comes back: the same log goes on, with what had been appended and not acknowledged.
    fs::remove_file(&ballast).unwrap();
    log.wait_durable(log.watermarks().appended, Deadline::INFINITE).unwrap();
    let mut body = vec![0; 100];
    body[..8].copy_from_slice(&(acknowledged + 1).to_le_bytes());
    log.commit(&Draft::commit(&body), Deadline::INFINITE).unwrap();
    drop(log);
    assert_eq!(count(&directory), acknowledged + 2);
}

#[test]
fn a_file_system_that_is_full_at_the_open_says_so_and_keeps_everything() {
    on_a_small_file_system("a_file_system_that_is_full_at_the_open_says_so_and_keeps_everything", is_refused);
}

fn is_refused(small: &Path) {
    let (directory, ballast) = (small.join("log"), small.join("ballast"));
    fs::write(&ballast, vec![1; 600 << 10]).unwrap();
    let (acknowledged, _) = fill(&open(&directory));
    // An open seals the past with a new segment, for which there is no room.
    let opening = Store::open(Arc::new(PoolIo::new()), &directory, options(), b"").unwrap();
    let error = opening.start(b"").unwrap_err();
    assert!(
        matches!(error, LogError::Full { .. }) && error.to_string().contains("free some space"),
        "{error}"
    );
    assert!(count(&directory) >= acknowledged);
    fs::remove_file(&ballast).unwrap();
    drop(open(&directory));
}

fn tiny() -> Options {
    Options { segment_bytes: 8 << 10, ..Options::small() }
}

/// The child: its parent has set a limit on files that segments keep to, but not the one that a large frame gets.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let log = Store::open(Arc::new(PoolIo::new()), &directory, tiny(), b"").unwrap().start(b"").unwrap();
    for number in 0_u64..20 {
        log.commit(&Draft::commit(&number.to_le_bytes()), Deadline::INFINITE).unwrap();
    }
    let error = log.commit(&Draft::commit(&[0; 30_000]), Deadline::INFINITE).unwrap_err();
    assert!(matches!(error, LogError::Full { .. }), "{error}");
    assert!(error.to_string().contains("raise the limit on the size of files"), "{error}");
}

#[test]
fn a_limit_on_files_is_no_room_either() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("log");
    // In units of 512 or 1024 bytes, by the shell.
    let limited = "trap '' XFSZ; ulimit -f 24; exec \"$0\" child --exact --nocapture";
    let mut child = Command::new("sh");
    child.args(["-c", limited]).arg(std::env::current_exe().unwrap()).env(DIRECTORY, &directory);
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(count(&directory), 20);
}
