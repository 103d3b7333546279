//! How processes end, and what becomes of their recordings.

use super::child::MARKS;
use super::recording::Recording;
use super::{Home, TRACE};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("b30_exit_inside_the_program_closes_the_file", exit_inside_the_program_closes_the_file),
    ("b30_panic_of_main_closes_the_file", panic_of_main_closes_the_file),
    ("b30_recording_goes_on_after_a_caught_panic", recording_goes_on_after_a_caught_panic),
    ("b30_termination_signals_close_the_file", termination_signals_close_the_file),
    ("b30_a_signal_of_the_program_s_own_stays_its_own", a_signal_of_the_programs_own_stays_its_own),
    ("b30_a_signal_that_the_program_waits_for_is_not_taken", a_signal_that_the_program_waits_for),
    ("b30_an_ignored_signal_stays_ignored", an_ignored_signal_stays_ignored),
    ("b21_a_file_that_may_not_grow_is_readable_and_the_loss_exact", file_that_may_not_grow),
    ("b10_exit_of_a_forked_child_leaves_the_file_alone", exit_of_a_forked_child_leaves_the_file_alone),
    ("b10_signal_to_a_forked_child_is_not_for_its_parent", signal_to_a_forked_child),
];

/// The file is whole and has exactly these rounds of work.
fn assert_whole(recording: &Recording, rounds: i32) {
    assert!(recording.is_whole);
    assert_eq!(recording.values, (0..rounds * MARKS).collect::<Vec<_>>());
    assert_eq!(recording.count(20), rounds as usize);
}

fn exit_inside_the_program_closes_the_file() {
    let home = Home::new();
    let life = home.record("exit");
    assert_eq!(life.output.status.code(), Some(7));
    assert_whole(&home.recording(TRACE), 1);
}

fn file_that_may_not_grow() {
    let home = Home::new();
    let life = home.record("limited-file");
    assert!(life.is_well(), "{:?}", life.errors);
    let numbers: Vec<usize> = life.said[0].split(' ').map(|number| number.parse().unwrap()).collect();
    let [emitted, before_the_file, by_the_file] = numbers[..] else { panic!("{:?}", life.said) };
    let recording = home.recording(TRACE);
    let recorded = recording.values.len();
    assert!(recorded > 0 && by_the_file > 0);
    assert_eq!(emitted, recorded + before_the_file + by_the_file);
    assert_eq!(life.errors.len(), 2, "{:?}", life.errors);
    for part in [TRACE, "File too large", "counted, the program goes on"] {
        assert!(life.errors[1].contains(part), "{part}: {:?}", life.errors);
    }
}

fn panic_of_main_closes_the_file() {
    let home = Home::new();
    let life = home.record("panic");
    assert_eq!(life.output.status.code(), Some(101));
    assert!(life.errors.iter().any(|line| line.contains("the end")), "the hook from before is called");
    let recording = home.recording(TRACE);
    assert!(recording.is_whole);
    assert_eq!(
        (recording.values.len(), recording.count(20)),
        (MARKS as usize, 2),
        "unwinding closes open spans"
    );
}

fn recording_goes_on_after_a_caught_panic() {
    let home = Home::new();
    let life = home.record("caught-panic");
    assert!(life.is_well());
    assert_whole(&home.recording(TRACE), 2);
}

/// Waits until the child says that it is ready. The reader keeps standard output open.
fn wait_until_ready(child: &mut Child) -> BufReader<std::process::ChildStdout> {
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    output
}

fn send(child: &Child, signal: libc::c_int) {
    // SAFETY: a child of this process that has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, signal) }, 0);
}

fn termination_signals_close_the_file() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let home = Home::new();
        let mut child = home.spawn_recording("wait");
        let _output = wait_until_ready(&mut child);
        send(&child, signal);
        let _input = child.stdin.take();
        assert_eq!(child.wait().unwrap().signal(), Some(signal), "the status is that of the signal");
        assert_whole(&home.recording(TRACE), 1);
    }
}

fn a_signal_of_the_programs_own_stays_its_own() {
    let home = Home::new();
    let mut child = home.spawn_recording("own-handler");
    let _output = wait_until_ready(&mut child);
    send(&child, libc::SIGTERM);
    assert!(child.wait().unwrap().success());
    assert_whole(&home.recording(TRACE), 2);
}

fn a_signal_that_the_program_waits_for() {
    let home = Home::new();
    let mut child = home.spawn_recording("own-wait");
    let _output = wait_until_ready(&mut child);
    send(&child, libc::SIGTERM);
    assert!(child.wait().unwrap().success());
    assert_whole(&home.recording(TRACE), 2);
}

fn an_ignored_signal_stays_ignored() {
    let home = Home::new();
    let mut child = home.spawn_recording("ignored-hangup");
    let _output = wait_until_ready(&mut child);
    send(&child, libc::SIGHUP);
    assert!(child.wait_with_output().unwrap().status.success());
    assert_whole(&home.recording(TRACE), 2);
}

fn exit_of_a_forked_child_leaves_the_file_alone() {
    let home = Home::new();
    assert!(home.record("fork").is_well());
    assert_whole(&home.recording(TRACE), 2);
}

fn signal_to_a_forked_child() {
    let home = Home::new();
    assert!(home.record("forked-and-terminated").is_well());
    assert_whole(&home.recording(TRACE), 2);
}
