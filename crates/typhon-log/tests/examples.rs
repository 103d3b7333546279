//! The examples do what they say, also when they are killed.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use typhon_store::sim::Random;

/// The program of an example, built if it is not there yet.
fn example(name: &str) -> PathBuf {
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "typhon-log", "--example", name]);
    // Where this test itself is: `<target>/<profile>/deps/examples-…`.
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    build.env("CARGO_TARGET_DIR", profile.parent().unwrap());
    if profile.ends_with("release") {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success());
    profile.join("examples").join(name)
}

/// What it prints, and whether it ended by itself, if it is killed after a time.
fn run(program: &Path, arguments: &[&str], kill_after: Option<Duration>) -> (String, bool) {
    let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    if let Some(time) = kill_after {
        std::thread::sleep(time);
        child.kill().unwrap();
    }
    let mut printed = String::new();
    child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    (printed, child.wait().unwrap().success())
}

/// Times from nothing to a little more than a whole run takes.
fn a_time(random: &mut Random) -> Option<Duration> {
    Some(Duration::from_micros(random.below(15_000)))
}

#[test]
fn the_counter_counts_what_it_has_printed() {
    const RUNS: u64 = 40;
    let (program, folder) = (example("counter"), tempfile::tempdir().unwrap());
    let directory = folder.path().join("log");
    let (mut random, mut last) = (Random::new(1), 0);
    for _ in 0..RUNS {
        let (printed, _) = run(&program, &[directory.to_str().unwrap()], a_time(&mut random));
        if let Ok(count) = printed.trim().parse::<u64>() {
            assert!(count > last, "{count} after {last}");
            last = count;
        }
    }
    let (printed, has_ended) = run(&program, &[directory.to_str().unwrap()], None);
    assert!(has_ended);
    let count: u64 = printed.trim().parse().unwrap();
    assert!(last < count && count <= RUNS + 1, "{count} after {last}");
}

#[test]
fn the_event_store_keeps_every_event_that_it_took_in_order() {
    let (program, folder) = (example("event_store"), tempfile::tempdir().unwrap());
    let directory = folder.path().join("store");
    let directory = directory.to_str().unwrap();
    let (mut random, mut taken) = (Random::new(2), Vec::new());
    for number in 0..40 {
        let event = format!("event {number}");
        let (_, is_taken) = run(&program, &[directory, "append", &event], a_time(&mut random));
        if is_taken {
            taken.push(event);
        }
        if number % 10 == 9 {
            // Killed while it moves events from the log to the file.
            run(&program, &[directory, "list"], a_time(&mut random));
        }
    }
    let (listed, has_ended) = run(&program, &[directory, "list"], None);
    assert!(has_ended);
    let listed: Vec<&str> = listed.lines().collect();
    let numbers: Vec<u32> =
        listed.iter().map(|event| event.strip_prefix("event ").unwrap().parse().unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    let missing: Vec<_> = taken.iter().filter(|event| !listed.contains(&event.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_file_of_events_that_lost_some_is_not_filled_with_nothing() {
    let (program, folder) = (example("event_store"), tempfile::tempdir().unwrap());
    let directory = folder.path().to_str().unwrap();
    assert!(run(&program, &[directory, "append", "one"], None).1);
    assert_eq!(run(&program, &[directory, "list"], None), ("one\n".to_owned(), true));
    let events = folder.path().join("events");
    std::fs::write(&events, "o").unwrap();
    let output = Command::new(&program).args([directory, "list"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("restore it"), "{said}");
    assert_eq!(std::fs::read(&events).unwrap(), b"o");
    std::fs::write(&events, "one\n").unwrap();
    assert_eq!(run(&program, &[directory, "list"], None), ("one\n".to_owned(), true));
}

#[test]
fn what_goes_wrong_is_said_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("log");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("anchor"), [b'x'; 8192]).unwrap();
    let (counter, store) = (example("counter"), example("event_store"));
    let folder = folder.path().to_str().unwrap();
    for (program, arguments) in [(counter, vec![directory.to_str().unwrap()]), (store, vec![folder, "list"])]
    {
        let output = Command::new(&program).args(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success());
        assert!(said.contains("anchor is not a file of this log") && said.contains("move it out"), "{said}");
        let usage = Command::new(&program).output().unwrap();
        assert!(String::from_utf8(usage.stderr).unwrap().contains(": usage: "));
    }
}
