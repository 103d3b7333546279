//! What is said about keys nobody reads and files nobody can read (brief 02 §5.1, §7).
#![allow(clippy::unwrap_used)]

mod settings;

use settings::{NO_FAULTS, codes, environment, file, lines, profiler};
use typhon_profiler::config::{FaultCode, Origin, Settings, TracePath, resolve};

// --- unknown keys -----------------------------------------------------------------------------------------------

#[test]
fn unknown_keys_are_named_with_the_nearest_known_one() {
    let one = |section: &str| {
        let lines = lines(&profiler(section));
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines[0].clone()
    };
    assert_eq!(
        one(r#"{"Enabeld": true}"#),
        "typhon.telemetry.json: Typhon:Profiler:Enabeld: no such key; did you mean Typhon:Profiler:Enabled?"
    );
    assert!(one(r#"{"Scheduler": true}"#).ends_with("did you mean Typhon:Profiler:Scheduler:Enabled?"));
    assert!(
        one(r#"{"Storage": {"PageCach": {"Enabled": true}}}"#)
            .ends_with("did you mean Typhon:Profiler:Storage:PageCache:Enabled?")
    );
    assert!(one(r#"{"Zzz": {"Y": 1}}"#).ends_with("no such key; correct or remove it; it is ignored"));
    let lines = lines(&environment(&[("TYPHON__PROFILER__TRCAE", "x")]));
    assert_eq!(
        lines,
        ["environment TYPHON__PROFILER__TRCAE: no such key; did you mean TYPHON__PROFILER__TRACE?"]
    );
}

#[test]
fn a_misspelt_or_missing_section_is_noticed() {
    let suggestion = |text: &str| {
        let lines = lines(&file(text));
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines[0].rsplit_once("; ").unwrap().1.to_owned()
    };
    assert_eq!(
        suggestion(r#"{"Typhon": {"Profilr": {"Enabled": true}}}"#),
        "did you mean Typhon:Profiler:Enabled?"
    );
    assert_eq!(
        suggestion(r#"{"Typhoon": {"Profiler": {"Scheduler": {"Worker": {"Idle": {"Enabled": true}}}}}}"#),
        "did you mean Typhon:Profiler:Scheduler:Worker:Idle:Enabled?"
    );
    assert_eq!(suggestion(r#"{"Profiler": {"Enabled": true}}"#), "did you mean Typhon:Profiler:Enabled?");
    assert_eq!(
        suggestion(r#"{"Typhon": {"Profielr": {"Whatever": {"Comes": {"Here": 1}}}}}"#),
        "did you mean Typhon:Profiler:Whatever:Comes:Here?"
    );
}

#[test]
fn gates_of_retired_and_removed_kinds_are_known_keys() {
    let resolved = profiler(
        r#"{"Enabled": true, "Spatial": {"Enabled": true, "Maintain": {"Insert": {"Enabled": true}}},
            "Runtime": {"Enabled": true, "Subscription": {"Output": {"Execute": {"Enabled": true}}}}}"#,
    );
    assert_eq!(lines(&resolved), NO_FAULTS);
    for kind in [138, 164] {
        assert!(!resolved.mask().contains(kind), "{kind}");
    }
}

#[test]
fn parts_of_later_versions_are_one_line_each_and_only_when_asked_for() {
    let resolved = profiler(
        r#"{"Enabled": true, "FlightRecorder": {"Seconds": 5, "Deep": {"Er": 1}}, "Kinds": {"Rate": {"TickStart": 2}},
            "Live": 9100, "LiveWaitMs": 5, "GcTracing": {"Enabled": false, "Extra": ["jit"]}}"#,
    );
    let not_available = [FaultCode::NotAvailable; 4];
    assert_eq!(codes(&resolved), not_available, "{:?}", lines(&resolved));
    let off = profiler(r#"{"Enabled": false, "FlightRecorder": {"Seconds": 5}, "Live": 9100}"#);
    assert_eq!(lines(&off), NO_FAULTS);
}

#[test]
fn checks_are_options_of_their_own() {
    let resolved = file(r#"{"Typhon": {"Checks": {"Enabled": true, "DeclaredAccess": "on"}}}"#);
    assert!(resolved.options.checks.enabled && resolved.options.checks.declared_access);
    assert!(!resolved.options.enabled);
}

// --- bad files --------------------------------------------------------------------------------------------------

#[test]
fn a_malformed_file_is_ignored_as_a_whole_and_the_environment_counts() {
    let settings = Settings::builder()
        .environment([("TYPHON__PROFILER__ENABLED", "true")])
        .file_text("bad.json", "{\n \"Typhon\": { \"Profiler\": { \"Trace\": \"x\", \"Gauges\": } }")
        .build();
    assert!(settings.files().is_empty());
    let resolved = resolve(&settings);
    assert!(resolved.options.enabled);
    assert_eq!(resolved.options.trace, TracePath::Automatic);
    let lines = lines(&resolved);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].starts_with("bad.json: line 2 column 52: "), "{lines:?}");
    assert!(lines[0].ends_with("; correct it; the whole file is ignored, the environment still counts"));
}

#[test]
fn files_that_are_no_files_are_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("typhon.telemetry.json");
    std::fs::create_dir(&folder).unwrap();
    let large = directory.path().join("large.json");
    std::fs::write(&large, " ".repeat((1 << 20) + 1)).unwrap();
    let resolved = resolve(&Settings::builder().file(&folder).file(&large).build());
    assert_eq!(codes(&resolved), [FaultCode::UnreadableFile, FaultCode::MalformedFile]);
    assert!(resolved.faults.iter().all(|fault| matches!(fault.origin, Origin::File(_))));
    assert!(lines(&resolved)[1].contains("larger than 1024 KiB"));
}

#[cfg(unix)]
#[test]
fn bytes_that_are_not_utf8_are_one_line() {
    use std::os::unix::ffi::OsStrExt;
    let bad = std::ffi::OsStr::from_bytes(b"x\xff");
    let settings = Settings::builder()
        .environment([("TYPHON__PROFILER__TRACE".into(), bad.to_owned()), (bad.to_owned(), "y".into())])
        .arguments(["--trace".into(), bad.to_owned()])
        .file_text("f", b"{\"Typhon\": \"\xff\"}".as_slice());
    let resolved = resolve(&settings.build());
    assert_eq!(
        codes(&resolved),
        [FaultCode::InvalidValue, FaultCode::InvalidValue, FaultCode::MalformedFile]
    );
}

#[test]
fn very_many_faults_are_cut_short() {
    let keys: Vec<String> = (0..9_000).map(|n| format!("\"Scheduler{n}\": 1")).collect();
    let resolved = profiler(&format!("{{{}}}", keys.join(",")));
    assert_eq!(resolved.faults.len(), 9_000);
    let mut out = Vec::new();
    typhon_profiler::config::print_faults(&resolved.faults, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().count(), 51);
    assert_eq!(text.lines().last(), Some("typhon-profiler: and 8950 more faults in the configuration"));
}

#[test]
fn a_switch_or_a_number_is_no_file() {
    for value in ["true", "\"off\"", "5", "-1.5", "\"0\""] {
        let resolved = profiler(&format!(r#"{{"Trace": {value}}}"#));
        let lines = lines(&resolved);
        assert_eq!(resolved.options.trace, TracePath::Automatic, "{value}");
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("typhon.telemetry.json: Typhon:Profiler:Trace: \""), "{lines:?}");
        assert!(lines[0].contains("is not a valid value; write a file path, none, or nothing"), "{lines:?}");
    }
}
