//! How recordings begin, and what happens when they cannot.

use super::child::MARKS;
use super::{Home, TRACE};

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("b26_first_record_starts_what_a_file_configures", first_record_starts_what_a_file_configures),
    ("b26_nothing_configured_leaves_no_trace_of_the_profiler", nothing_configured_leaves_no_trace),
    ("b26_without_a_record_there_is_no_file", without_a_record_there_is_no_file),
    ("b28_start_stop_start_gives_two_recordings", start_stop_start_gives_two_recordings),
    ("b28_settings_after_the_first_record_are_named", settings_after_the_first_record_are_named),
    ("b33_overrides_arguments_and_gates_decide", overrides_arguments_and_gates_decide),
    ("b33_default_destination_is_below_the_database", default_destination_is_below_the_database),
    ("b33_no_file_on_purpose", no_file_on_purpose),
    ("b31_no_output_is_one_line", no_output_is_one_line),
    ("b34_a_file_in_use_is_not_replaced", a_file_in_use_is_not_replaced),
    ("b35_every_mistake_is_one_line_and_the_program_goes_on", every_mistake_is_one_line),
];

fn values(firsts: &[i32]) -> Vec<i32> {
    firsts.iter().flat_map(|first| *first..first + MARKS).collect()
}

fn first_record_starts_what_a_file_configures() {
    let home = Home::new();
    home.configure(r#"{ "Typhon": { "Profiler": { "Trace": "run.typhon-trace", } } } // on"#);
    let life = home.run("work", &[]);
    assert!(life.is_well());
    assert_eq!(life.errors.len(), 1, "{:?}", life.errors);
    assert!(life.errors[0].starts_with("typhon-profiler: recording "), "{}", life.errors[0]);
    assert!(life.errors[0].ends_with(" kinds to run.typhon-trace"), "{}", life.errors[0]);
    let recording = home.recording(TRACE);
    assert!(recording.is_whole);
    assert_eq!(
        (recording.values.clone(), recording.count(20)),
        (values(&[0]), 1),
        "from the very first record"
    );
    assert_eq!(home.files(), [TRACE, "typhon.telemetry.json"], "the list of sites is inside a closed file");
}

fn nothing_configured_leaves_no_trace() {
    for (role, said) in [("work", vec!["done"]), ("init", vec!["Off", "done"])] {
        let home = Home::new();
        let life = home.run(role, &[]);
        assert!(life.is_well());
        assert_eq!(
            (life.said, life.errors, home.files()),
            (said.into_iter().map(str::to_owned).collect(), vec![], vec![])
        );
    }
}

fn without_a_record_there_is_no_file() {
    let home = Home::new();
    let life = home.record("nothing");
    assert!(life.is_well());
    assert_eq!((life.errors, home.files()), (vec![], vec![]));
}

fn start_stop_start_gives_two_recordings() {
    let home = Home::new();
    let life = home.record("restart");
    assert!(life.is_well(), "{:?}", life.errors);
    assert_eq!(home.files(), ["run-2.typhon-trace", TRACE]);
    let (first, second) = (home.recording(TRACE), home.recording("run-2.typhon-trace"));
    assert!(first.is_whole && second.is_whole);
    assert_eq!((first.values, second.values), (values(&[0]), values(&[2_000])));
}

fn settings_after_the_first_record_are_named() {
    let home = Home::new();
    let life = home.record("late-settings");
    assert!(life.is_well(), "{:?}", life.errors);
    assert_eq!(life.errors.len(), 2, "{:?}", life.errors);
    assert!(life.errors[1].contains("has no effect; start it first thing in main"), "{:?}", life.errors);
    assert_eq!(home.files(), [TRACE]);
}

fn overrides_arguments_and_gates_decide() {
    let home = Home::new();
    let life = home.record("overrides");
    assert!(life.is_well(), "{:?}", life.errors);
    assert_eq!(home.files(), ["own.typhon-trace"]);
    let recording = home.recording("own.typhon-trace");
    assert_eq!((recording.workers, recording.count(9), recording.count(20)), (3, 2, 2));
    assert_eq!(recording.values, values(&[0, 1_000]));
}

fn default_destination_is_below_the_database() {
    let home = Home::new();
    std::fs::create_dir(home.path("profilings")).unwrap();
    std::fs::write(home.path("profilings/retention.json"), r#"{ "budgetBytes": 1, "keepLatest": 0 }"#)
        .unwrap();
    for _ in 0..2 {
        assert!(home.run("database", &[]).is_well());
    }
    let recordings = std::fs::read_dir(home.path("profilings")).unwrap().map(|entry| entry.unwrap().path());
    let recordings: Vec<_> =
        recordings.filter(|path| path.extension().is_some_and(|e| e == "typhon-trace")).collect();
    assert_eq!(recordings.len(), 1, "the budget leaves no room for the first one");
    assert_eq!(super::Recording::read(&recordings[0]).values, values(&[0]));
}

fn no_file_on_purpose() {
    let home = Home::new();
    let life = home.run("init", &[("TYPHON__PROFILER__TRACE", "None"), ("TYPHON__PROFILER__ENABLED", "1")]);
    assert!(life.is_well());
    assert_eq!(life.said[0], "Recording");
    assert_eq!(life.errors.len(), 1, "{:?}", life.errors);
    assert!(life.errors[0].ends_with(" kinds, to no file (Trace = none)"), "{:?}", life.errors);
    assert_eq!(home.files(), [""; 0]);
}

fn no_output_is_one_line() {
    let home = Home::new();
    let life = home.run("work", &[("TYPHON__PROFILER__ENABLED", "true")]);
    assert!(life.is_well());
    assert_eq!(life.errors.len(), 1, "{:?}", life.errors);
    assert!(life.errors[0].contains("TYPHON__PROFILER__TRACE"), "{:?}", life.errors);
    assert_eq!(home.files(), [""; 0]);
}

fn a_file_in_use_is_not_replaced() {
    let home = Home::new();
    std::fs::write(home.path(TRACE), "in use").unwrap();
    let file = std::fs::File::open(home.path(TRACE)).unwrap();
    file.lock_shared().unwrap();
    let life = home.record("work");
    assert!(life.is_well());
    assert_eq!(life.errors.len(), 1, "{:?}", life.errors);
    assert!(life.errors[0].contains("in use"), "{:?}", life.errors);
    assert_eq!(std::fs::read(home.path(TRACE)).unwrap(), b"in use");
}

/// What is configured, and what the one line about it has to name.
fn every_mistake_is_one_line() {
    const KEY: &str = "TYPHON__PROFILER__TRACE";
    let mistakes: &[(&str, &str, &[&str])] = &[
        ("TYPHON__PROFILER__TRCAE", "run.typhon-trace", &["TYPHON__PROFILER__TRCAE", "did you mean"]),
        ("TYPHON__PROFILER__ENABLED", "maybe", &["TYPHON__PROFILER__ENABLED", "\"maybe\"", "true or false"]),
        (KEY, "missing/run.typhon-trace", &[KEY, "missing/run.typhon-trace", "existing directory"]),
        (KEY, "true", &[KEY, "\"true\"", "write a file path"]),
        (KEY, ".", &[KEY, "it is a directory", "name a file"]),
        (KEY, "/dev/null", &[KEY, "it is not a regular file", "name a file"]),
        // Nothing can be created here, whoever asks.
        (KEY, "/proc/run.typhon-trace", &[KEY, "/proc/run.typhon-trace", "directory you may write to"]),
    ];
    for &(key, value, parts) in mistakes {
        let home = Home::new();
        let life = home.run("work", &[(key, value)]);
        assert!(life.is_well(), "{key}={value}: {:?}", life.errors);
        assert_eq!(life.errors.len(), 1, "{key}={value}: {:?}", life.errors);
        parts.iter().for_each(|part| assert!(life.errors[0].contains(part), "{part}: {:?}", life.errors));
        assert_eq!(home.files(), [""; 0], "{key}={value}");
    }
    for (text, parts) in [
        (r#"{ "Typhon": { "Profiler": { "#, ["typhon.telemetry.json", "line 1", "ignored"]),
        (
            r#"{ "Typhon": { "Profiler": { "Live": "port" } } }"#,
            ["typhon.telemetry.json", "Live", "port from 1"],
        ),
    ] {
        let home = Home::new();
        home.configure(text);
        let life = home.run("work", &[]);
        assert!(life.is_well(), "{text}");
        assert_eq!(life.errors.len(), 1, "{text}: {:?}", life.errors);
        parts.iter().for_each(|part| assert!(life.errors[0].contains(part), "{part}: {:?}", life.errors));
        assert_eq!(home.files(), ["typhon.telemetry.json"], "{text}");
    }
}
