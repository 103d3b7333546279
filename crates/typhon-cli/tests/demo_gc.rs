//! `typhon demo --gc`: the collections of a managed program are in the colony's trace, and the program never outlives the
//! demo. `cargo xtask dotnet` installs runtime and compiler; without them the tests that need these report themselves as
//! skipped, and with `CI=true` as failed.
#![cfg(target_os = "linux")]

mod common;

use common::{arg, repository, schema, typhon};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// A file that `cargo xtask dotnet` makes.
fn installed(test: &str, file: &str) -> Option<PathBuf> {
    let path = repository().join("target/dotnet").join(file);
    let must_be_there = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(path.is_file() || !must_be_there, "{test} needs `cargo xtask dotnet`");
    if !path.is_file() {
        eprintln!("SKIPPED {test}: {} is missing, run `cargo xtask dotnet`", path.display());
    }
    path.is_file().then_some(path)
}

/// Folder of the .NET 8 host.
fn net8(test: &str) -> Option<PathBuf> {
    let host = installed(test, "net8/dnv/net/runtime/.net/dotnet")?.canonicalize().expect("it is there");
    Some(host.parent().expect("a folder").to_owned())
}

/// A demo whose temporary files, and so the program that it starts, are in `folder`.
fn demo(folder: &Path, dotnet_root: &Path, more: &[&str]) -> Command {
    let mut command = Command::new("env");
    // Whoever runs the tests may ignore signals, which children inherit.
    command.args([
        "--default-signal",
        env!("CARGO_BIN_EXE_typhon"),
        "demo",
        "--gc",
        "--ants",
        "2000",
        "--json",
    ]);
    command.args(["-o", arg(&folder.join("run.typhon-trace"))]).args(more);
    command.env("TMPDIR", folder).env("DOTNET_ROOT", dotnet_root).env_remove("DOTNET_HOST_PATH");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Processes that run the program in `folder`.
fn programs(folder: &Path) -> Vec<String> {
    let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let processes = std::fs::read_dir("/proc").expect("Linux").flatten();
    let ids =
        processes.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| is_number(name));
    let program = format!("{}/typhon-demo-", arg(folder));
    ids.filter(|id| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.contains(&program) && line.contains("demo-allocator.exe")
    })
    .collect()
}

#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn document(output: &Output) -> Value {
    let document = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|err| panic!("{err}: {}", String::from_utf8_lossy(&output.stderr)));
    schema::check(&document, "demo.json");
    document
}

/// Events of some kinds, in order of time.
fn events(trace: &Path, kinds: &[u64]) -> Vec<Value> {
    let dump = typhon(&["trace", "dump", arg(trace), "--format", "jsonl"]).expect(0);
    let lines = dump.json_lines().into_iter();
    lines.filter(|line| line["id"].as_u64().is_some_and(|id| kinds.contains(&id))).collect()
}

#[test]
fn the_trace_of_the_colony_has_the_collections_of_the_program_beside_it() {
    let Some(root) = net8("the_trace_of_the_colony") else { return };
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().canonicalize().expect("it is there");
    let output = demo(&folder, &root, &["--seconds", "5"]).output().expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!said.contains("--gc:"), "{said}");
    assert_eq!(programs(&folder), Vec::<String>::new());
    let left: Vec<_> = std::fs::read_dir(&folder).expect("the folder").flatten().collect();
    assert_eq!(left.len(), 1, "only the trace: {left:?}");

    let trace = folder.join("run.typhon-trace");
    typhon(&["trace", "verify", "--deep", arg(&trace)]).expect(0);
    let ticks = events(&trace, &[0, 1]);
    let time = |event: &Value| event["ts"].as_i64().expect("a time");
    let run = time(&ticks[0])..=time(&ticks[ticks.len() - 1]);
    let collected = events(&trace, &[7, 8, 75]);
    for kind in [7, 8, 75] {
        let of_kind = collected.iter().filter(|event| event["id"] == kind);
        assert!(of_kind.clone().count() > 0, "kind {kind}: {said}");
        let is_inside = |event: &Value| run.contains(&time(event));
        // The session ends after the last tick.
        assert!(of_kind.clone().filter(|event| is_inside(event)).count() > 0, "{run:?} {collected:?}");
        assert!(of_kind.clone().all(|event| time(event) >= *run.start()), "{run:?} {collected:?}");
    }
    assert!(
        collected.iter().any(|event| event["id"] == 7 && event["fields"]["count"] == 1),
        "the very first"
    );
    let document = document(&output);
    let ends = collected.iter().filter(|event| event["id"] == 8).count() as u64;
    let by_generation = document["gc"]["collections"].as_object().expect("it collected").values();
    assert_eq!(by_generation.filter_map(Value::as_u64).sum::<u64>(), ends);
}

/// The program runs.
fn running(folder: &Path, root: &Path) -> Child {
    let child = demo(folder, root, &["--seconds", "600", "--force"]).spawn().expect("the binary starts");
    wait_until("the program does not start", || !programs(folder).is_empty());
    child
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

#[test]
fn the_program_does_not_outlive_a_demo_that_is_killed() {
    let Some(root) = net8("the_program_does_not_outlive") else { return };
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().canonicalize().expect("it is there");
    // At once, and when collections have been recorded.
    for pause_ms in [0, 20, 100, 1_500] {
        let mut child = running(&folder, &root);
        std::thread::sleep(Duration::from_millis(pause_ms));
        signal(&child, "-KILL");
        child.wait().expect("it ends");
        wait_until("the program is left behind", || programs(&folder).is_empty());
    }
    // The next one tidies up after them.
    let output = demo(&folder, &root, &["--ticks", "30", "--force"]).output().expect("the binary starts");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let left: Vec<_> = std::fs::read_dir(&folder).expect("the folder").flatten().collect();
    assert_eq!(left.len(), 1, "only the trace: {left:?}");
}

#[test]
fn ctrl_c_ends_both_and_completes_the_file() {
    let Some(root) = net8("ctrl_c_ends_both") else { return };
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().canonicalize().expect("it is there");
    let child = running(&folder, &root);
    std::thread::sleep(Duration::from_secs(1));
    signal(&child, "-INT");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(programs(&folder), Vec::<String>::new());
    document(&output);
    typhon(&["trace", "verify", "--deep", arg(&folder.join("run.typhon-trace"))]).expect(0);
}

/// A `dotnet` that does something else.
fn impostor(folder: &Path, script: &str) -> PathBuf {
    let root = folder.join("dotnet-root");
    std::fs::create_dir_all(&root).expect("a folder");
    let host = root.join("dotnet");
    std::fs::write(&host, format!("#!/bin/sh\n{script}\n")).expect("a file");
    std::fs::set_permissions(&host, std::fs::Permissions::from_mode(0o755)).expect("ours");
    root
}

#[test]
fn a_runtime_that_cannot_run_the_program_is_one_line() {
    let place = tempfile::tempdir().expect("a folder");
    let root = impostor(place.path(), "echo You must install .NET >&2; exit 150");
    let output = demo(place.path(), &root, &["--seconds", "2"]).output().expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("--gc: ")).collect();
    let [line] = lines[..] else { panic!("{said}") };
    assert!(
        line.ends_with("ended (exit status: 150): You must install .NET; the demo goes on without"),
        "{line}"
    );
    let document = document(&output);
    assert_eq!((&document["gc"], &document["dropped"]), (&Value::Null, &Value::from(0)));
}

#[test]
fn a_machine_without_a_runtime_is_one_line() {
    let usual = ["/usr/share/dotnet", "/usr/lib/dotnet", "/usr/lib64/dotnet", "/etc/dotnet/install_location"];
    if usual.iter().any(|place| Path::new(place).exists()) {
        // One is installed where it is always looked for.
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let mut command = common::command();
    command.args(["demo", "--gc", "--ants", "2000", "--ticks", "5", "--json"]);
    command.args(["-o", arg(&place.path().join("run.typhon-trace"))]);
    let empty = place.path().join("empty");
    command.env("PATH", &empty).env("HOME", &empty).env_remove("DOTNET_ROOT").env_remove("DOTNET_HOST_PATH");
    let output = command.output().expect("the binary starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(said.matches("--gc: no .NET runtime was found").count(), 1, "{said}");
    assert_eq!(document(&output)["gc"], Value::Null);
}

/// Numbers that a compiler makes up: the time in the header, and the module's own id.
fn made_up(assembly: &[u8]) -> [std::ops::Range<usize>; 2] {
    let number =
        |at: usize| u32::from_le_bytes(assembly[at..at + 4].try_into().expect("four bytes")) as usize;
    let header = number(0x3c);
    let find = |text: &[u8]| {
        assembly.windows(text.len()).position(|window| window == text).expect("it has metadata")
    };
    let (root, name) = (find(b"BSJB"), find(b"#GUID\0"));
    let (offset, size) = (number(name - 8), number(name - 4));
    [header + 8..header + 12, root + offset..root + offset + size]
}

/// `TYPHON_BLESS=1` writes what the compiler makes of the source now.
#[test]
fn the_assembly_in_the_binary_is_what_its_source_compiles_to() {
    let Some(compiled) = installed("the_assembly_in_the_binary", "demo-allocator.exe") else { return };
    let committed = repository().join("crates/typhon-cli/managed/demo-allocator.exe");
    if std::env::var_os("TYPHON_BLESS").is_some() {
        std::fs::copy(&compiled, &committed).expect("it can be written");
    }
    let read = |path: &Path| {
        let mut bytes = std::fs::read(path).expect("an assembly");
        made_up(&bytes).into_iter().for_each(|range| bytes[range].fill(0));
        bytes
    };
    assert!(
        read(&committed) == read(&compiled),
        "allocator.cs has changed, or `cargo xtask dotnet` has not been run since; then TYPHON_BLESS=1"
    );
}
