//! `typhon gc` with a real runtime. `cargo xtask dotnet` installs it; without it the tests report themselves as skipped,
//! and with `CI=true` as failed.
#![cfg(target_os = "linux")]

mod common;

use common::{arg, repository, typhon};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Start and end signal for the allocator.
const GO: &[u8] = b"\n\n";

/// The host and the arguments of the allocator under .NET 8.
fn program(test: &str, folder: &Path) -> Option<Vec<String>> {
    let dotnet = repository().join("target/dotnet");
    let (host, allocator) = (dotnet.join("net8/dnv/net/runtime/.net/dotnet"), dotnet.join("allocator.exe"));
    let is_there = host.is_file() && allocator.is_file();
    let must_be_there = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(is_there || !must_be_there, "{test} needs `cargo xtask dotnet`");
    if !is_there {
        eprintln!("SKIPPED {test}: no .NET runtime, run `cargo xtask dotnet`");
        return None;
    }
    let config = folder.join("runtimeconfig.json");
    let text = r#"{"runtimeOptions":{"framework":{"name":"Microsoft.NETCore.App","version":"8.0.0"},
        "configProperties":{"System.Globalization.Invariant":true}}}"#;
    std::fs::write(&config, text).expect("a file");
    let arguments = [&host, Path::new("exec"), Path::new("--runtimeconfig"), &config, &allocator];
    let arguments = arguments.iter().map(|argument| arg(argument).to_owned());
    Some(arguments.chain(["1".to_owned(), "20".to_owned()]).collect())
}

/// Collections of one object a line, and the conclusion.
fn read(stdout: &str) -> (Vec<Value>, Value) {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|err| panic!("{err}: {line}"));
    let mut lines: Vec<Value> = stdout.lines().map(parse).collect();
    let conclusion = lines.pop().expect("a conclusion");
    common::schema::check(&conclusion, "gc.json");
    lines.iter().for_each(|line| common::schema::check(line, "gc-collection.json"));
    (lines, conclusion)
}

/// `GC.CollectionCount(0)` that the allocator printed after a label.
fn counted(output: &str, label: &str) -> usize {
    let line = output.lines().find_map(|line| line.strip_prefix(label)).expect("a report");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

#[track_caller]
fn assert_sound(trace: &Path) {
    typhon(&["trace", "verify", arg(trace), "--deep"]).expect(0);
}

fn spawn_gc(arguments: &[&str], folder: &Path) -> Child {
    let mut command = common::command();
    command.arg("gc").args(arguments).env("TMPDIR", folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the binary starts")
}

#[test]
fn a_command_is_recorded_from_its_first_collection_to_its_exit() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = program("a_command_is_recorded", folder.path()) else { return };
    let output = folder.path().join("out");
    let mut arguments = vec!["-o", arg(&output), "--json", "--"];
    // The shell hands its environment on, and its exit code tells whose it is.
    arguments.extend(["sh", "-c", "\"$@\"; exit 7", "sh"]);
    arguments.extend(program.iter().map(String::as_str));
    let mut child = spawn_gc(&arguments, folder.path());
    child.stdin.take().expect("piped").write_all(GO).expect("the allocator reads");
    let ended = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(7), "{said}");
    let (collections, conclusion) = read(&String::from_utf8_lossy(&ended.stdout));
    assert_eq!(conclusion["losses"], serde_json::json!([]), "{said}");
    let mut numbers: Vec<u64> = collections.iter().filter_map(|line| line["count"].as_u64()).collect();
    numbers.sort_unstable();
    assert!(numbers.len() >= counted(&said, "done"), "{numbers:?}\n{said}");
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "none is missing");
    assert_sound(&output);
}

#[test]
fn a_running_process_is_recorded_until_ctrl_c_and_lives_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = program("a_running_process_is_recorded", folder.path()) else { return };
    let (host, arguments) = program.split_first().expect("a program");
    let mut target = Command::new(host);
    target.args(arguments).env("TMPDIR", folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut target = target.spawn().expect("the runtime starts");
    let mut said = BufReader::new(target.stdout.take().expect("piped"));
    let mut line = String::new();
    while !line.starts_with("ready") {
        line.clear();
        assert_ne!(said.read_line(&mut line).expect("UTF-8"), 0, "it reports");
    }
    let output: PathBuf = folder.path().join("out");
    let process_id = target.id().to_string();
    let mut gc = spawn_gc(&["-o", arg(&output), "--json", "--pid", &process_id], folder.path());
    let mut noted = BufReader::new(gc.stderr.take().expect("piped")).lines();
    assert!(noted.next().expect("a line").expect("UTF-8").starts_with("recording"), "attached");
    let mut input = target.stdin.take().expect("piped");
    input.write_all(b"\n").expect("the allocator reads");
    let mut seen = BufReader::new(gc.stdout.take().expect("piped"));
    let mut lines = String::new();
    seen.read_line(&mut lines).expect("a collection");
    let sent = Command::new("kill").args(["-INT", &gc.id().to_string()]).status();
    assert!(sent.expect("kill exists").success());
    seen.read_to_string(&mut lines).expect("UTF-8");
    assert_eq!(gc.wait().expect("it ends").code(), Some(130));
    let (collections, conclusion) = read(&lines);
    assert!(!collections.is_empty(), "{lines}");
    // Ctrl+C may come while the process is suspended.
    let losses = conclusion["losses"].as_array().expect("a list");
    assert!(losses.iter().all(|loss| loss["code"] == "half-open"), "{lines}");
    assert_sound(&output);
    input.write_all(b"\n").expect("the allocator reads");
    assert!(target.wait().expect("it ends").success(), "the process is unharmed");
}
