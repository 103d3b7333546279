//! Collections of a .NET runtime in programs that configure their recording and report the collections themselves.

use super::{Home, TRACE};
use std::io::{BufRead, BufReader};

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("g9_the_gate_is_read_once_for_all_recordings_of_a_process", the_gate_is_read_once),
    ("b5_a_lack_of_slots_is_said_once_and_ends_with_it", a_lack_of_slots_is_said_once),
];

const GATE: &str = "TYPHON__PROFILER__GCTRACING__ENABLED";

fn the_gate_is_read_once() {
    for (first, then, recorded) in [(false, true, 0), (true, false, 1)] {
        let home = Home::new();
        let file = |on: bool| {
            format!(
                r#"{{ "Typhon": {{ "Profiler": {{ "Trace": "{TRACE}", "GcTracing": {{ "Enabled": {on} }} }} }} }}"#
            )
        };
        home.configure(&file(first));
        // Written over the first one by the program, between its two recordings.
        std::fs::write(home.path("then.json"), file(then)).unwrap();
        let life = home.run("changed-gate", &[]);
        assert!(life.is_well(), "{:?}", life.errors);
        let again = home.recording("run-2.typhon-trace");
        assert_eq!((home.recording(TRACE).count(7), again.count(7)), (recorded, recorded), "{first}");
    }
}

fn a_lack_of_slots_is_said_once() {
    let home = Home::new();
    let environment = [
        ("TYPHON__PROFILER__TRACE", TRACE),
        (GATE, "true"),
        ("TYPHON__PROFILER__GCTRACING__QUEUECAPACITY", "16"),
    ];
    let mut child = home.command("crowd", &environment).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let said = |line: &String| line.contains("Typhon.GcIngest has no slot: 254 threads");
    let mut before: Vec<String> = Vec::new();
    while !before.last().is_some_and(said) {
        before.push(errors.next().unwrap_or_else(|| panic!("not said: {before:?}")));
    }
    // The crowd leaves.
    drop(child.stdin.take());
    let after: Vec<String> = errors.collect();
    assert!(child.wait().unwrap().success(), "{before:?} {after:?}");
    assert!(!after.iter().any(said), "said again: {after:?}");
    let recording = home.recording(TRACE);
    assert!(recording.is_whole);
    assert_eq!(recording.count(8), 1, "the one that came after the crowd had left");
}
