//! Where output goes when the place is unusual: links, devices, limits, ignored signals.
#![cfg(unix)]

mod common;

use common::{arg, command, recording, typhon};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

const TO_FILE: &[&[&str]] = &[
    &["trace", "repair"],
    &["trace", "export", "--to", "trace"],
    &["trace", "export", "--to", "csv"],
    &["trace", "export", "--to", "perfetto"],
];

fn write_to(command: &[&str], output: &Path, force: bool) -> common::Run {
    let source = recording("guide-shard.typhon-trace");
    let mut args = command.to_vec();
    args.extend([arg(&source), "-o", arg(output)]);
    args.extend(force.then_some("--force"));
    typhon(&args)
}

/// What another program sees in a folder, without the files that it may itself have made there.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn devices_and_pipes_are_never_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo exists").success());
    for output in [&pipe, Path::new("/dev/null")] {
        for command in TO_FILE {
            for force in [false, true] {
                let run = write_to(command, output, force).expect(73);
                assert!(run.stderr.contains("a device or a pipe"), "{}", run.stderr);
            }
        }
        assert!(!output.metadata().expect("still there").is_file());
    }
    assert_eq!(names(folder.path()), ["pipe"]);
}

#[test]
fn a_link_stays_and_what_it_leads_to_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let (target, link) = (folder.path().join("target"), folder.path().join("link"));
    std::fs::write(&target, "old").expect("writable");
    symlink(&target, &link).expect("links can be made");
    for command in TO_FILE {
        write_to(command, &link, false).expect(73);
        write_to(command, &link, true).expect(0);
        assert!(link.is_symlink());
        assert_ne!(std::fs::read(&target).expect("readable"), b"old");
        std::fs::write(&target, "old").expect("writable");
    }
}

#[test]
fn a_name_that_ends_like_a_folder_is_refused_before_the_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = format!("{}/", folder.path().join("out").display());
    let run = write_to(TO_FILE[0], Path::new(&output), false).expect(73);
    assert!(run.stderr.contains("a folder"), "{}", run.stderr);
}

#[test]
fn a_limit_on_file_sizes_is_74_names_the_output_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("out");
    let source = recording("guide-shard.typhon-trace");
    for command in TO_FILE {
        // In units of 512 or 1,024 bytes, depending on the shell; both are too little.
        let script = r#"ulimit -f 20; exec "$0" "$@""#;
        let run = Command::new("sh")
            .args(["-c", script, env!("CARGO_BIN_EXE_typhon")])
            .args(*command)
            .args([arg(&source), "-o", arg(&output)])
            .output()
            .expect("sh exists");
        let stderr = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(74), "{stderr}");
        assert!(stderr.contains(arg(&output)) && !stderr.contains(arg(&source)), "{stderr}");
        assert_eq!(names(folder.path()), [""; 0]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn help_that_cannot_be_written_is_74() {
    let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let status = command().arg("--help").stdout(full).status().expect("the binary starts");
    assert_eq!(status.code(), Some(74));
}

#[test]
fn a_named_pipe_is_refused_without_waiting_for_a_writer() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo exists").success());
    typhon(&["trace", "repair", arg(&pipe), "-o", arg(&folder.path().join("out"))]).expect(64);
}

/// `nohup` and background jobs start a program with signals ignored, and mean it.
#[test]
#[cfg(target_os = "linux")]
fn signals_that_the_parent_ignores_stay_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("out.csv");
    let mut child = Command::new("sh")
        .args(["-c", r#"trap "" HUP INT; exec "$0" "$@""#, env!("CARGO_BIN_EXE_typhon")])
        .args(["trace", "export", "-", "-o", arg(&output), "--to", "csv"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("sh exists");
    let file = std::fs::read(recording("guide-shard.typhon-trace")).expect("readable");
    let mut pipe = child.stdin.take().expect("piped");
    pipe.write_all(&file[..10_000]).expect("the child reads");
    // The temporary file says that handlers, if any, are installed.
    while names(folder.path()).is_empty() {
        assert!(child.try_wait().expect("a child").is_none(), "ended early");
        std::thread::yield_now();
    }
    for signal in ["-HUP", "-INT"] {
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(sent.expect("kill exists").success());
    }
    pipe.write_all(&file[10_000..]).expect("the child still reads");
    drop(pipe);
    assert_eq!(child.wait().expect("a child").code(), Some(0));
    assert_eq!(names(folder.path()), ["out.csv"]);
}

/// What a killed process leaves is removed by the next one in the folder; what somebody still writes is not.
#[test]
fn abandoned_temporary_files_are_removed_by_the_next_output() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str| folder.path().join(name);
    for name in [".typhon-abandoned.tmp", ".typhon-written.tmp", ".typhon-note.txt", "typhon-x.tmp"] {
        std::fs::write(file(name), "half").expect("a folder");
    }
    let written = std::fs::File::options().write(true).open(file(".typhon-written.tmp")).expect("there");
    written.lock().expect("locks");
    write_to(&["trace", "export", "--to", "csv"], &file("out.csv"), false).expect(0);
    let mut left = names(folder.path());
    left.sort();
    assert_eq!(left, [".typhon-note.txt", ".typhon-written.tmp", "out.csv", "typhon-x.tmp"]);
}

/// The lock of a killed process goes with it.
#[test]
#[cfg(unix)]
fn a_killed_export_is_cleaned_up_after() {
    use std::io::Write;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = folder.path().join("out.csv");
    let mut child = command()
        .args(["trace", "export", "-", "-o", arg(&output), "--to", "csv"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the binary starts");
    let mut pipe = child.stdin.take().expect("piped");
    let bytes = std::fs::read(recording("guide-shard.typhon-trace")).expect("readable");
    pipe.write_all(&bytes[..bytes.len() / 3]).expect("the child reads");
    while names(folder.path()).is_empty() {
        assert!(child.try_wait().expect("a child").is_none(), "ended early");
        std::thread::yield_now();
    }
    child.kill().expect("alive");
    child.wait().expect("a child");
    assert_eq!(names(folder.path()).len(), 1);
    write_to(&["trace", "export", "--to", "csv"], &output, false).expect(0);
    assert_eq!(names(folder.path()), ["out.csv"]);
}
