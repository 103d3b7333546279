//! Sources, precedence, options and values (brief 02 §5.1, §5.2).
#![allow(clippy::unwrap_used)]

mod settings;

use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;
use settings::{NO_FAULTS, codes, environment, file, lines, profiler};
use typhon_profiler::config::{
    FaultCode, GcTarget, OPTIONS, Overrides, ProfilerOptions, Resolved, Settings, TracePath, ValueType,
    resolve,
};

// --- nothing configured -----------------------------------------------------------------------------------------

#[test]
fn nothing_configured_is_everything_off_without_a_word() {
    for resolved in [resolve(&Settings::default()), environment(&[]), file("{}"), profiler("{}")] {
        assert_eq!(resolved.options, ProfilerOptions::default());
        assert!(!resolved.options.enabled);
        assert!(resolved.mask().is_empty());
        assert_eq!(lines(&resolved), NO_FAULTS);
    }
    assert!(Settings::default().is_empty());
}

#[test]
fn foreign_settings_are_nobodys_business() {
    let text = r#"{ "Logging": { "Level": "Info" }, "Typhon": { "Engine": { "Pages": 5 }, "Telemetry": { "Old": 1 } } }"#;
    let settings = Settings::builder()
        .environment([("PATH", "/bin"), ("TYPHON_CACHE_DIR", "/tmp"), ("TYPHON__ENGINE__PAGES", "5")])
        .file_text("typhon.telemetry.json", text);
    assert_eq!(lines(&resolve(&settings.build())), NO_FAULTS);
}

// --- precedence (I-8) -------------------------------------------------------------------------------------------

/// Values of `Trace`, a flag and a number in every source at once; `strongest` names the first source that has them.
fn all_sources(strongest: usize) -> Resolved {
    let trace = |name: &str| format!("{name}.typhon-trace");
    let mut settings = Settings::builder();
    if strongest == 0 {
        settings = settings.overrides(
            Overrides::new()
                .trace(&trace("host"))
                .set("Profiler:LiveWaitMs", 1)
                .set("Profiler:Live", 9001)
                .gate("Storage", true),
        );
    }
    if strongest <= 1 {
        settings =
            settings.arguments(["--trace", "argument.typhon-trace", "--live-wait", "2", "--live", "9002"]);
    }
    if strongest <= 2 {
        settings = settings.environment([
            ("TYPHON__PROFILER__TRACE", "environment.typhon-trace"),
            ("TYPHON__PROFILER__LIVEWAITMS", "3"),
            ("TYPHON__PROFILER__LIVE", "9003"),
            ("TYPHON__PROFILER__STORAGE__ENABLED", if strongest == 2 { "true" } else { "false" }),
        ]);
    }
    let json = |name: &str, number: u32, on: bool| {
        format!(
            r#"{{"Typhon": {{"Profiler": {{"Trace": "{}", "LiveWaitMs": {number}, "Live": {},
                "Storage": {{"Enabled": {on}}}}}}}}}"#,
            trace(name),
            9000 + number,
        )
    };
    if strongest <= 3 {
        settings = settings.file_text("here/typhon.telemetry.json", json("here", 4, strongest == 3));
    }
    if strongest <= 4 {
        settings = settings.file_text("beside/typhon.telemetry.json", json("beside", 5, strongest == 4));
    }
    resolve(&settings.build())
}

#[test]
fn i8_each_source_beats_all_weaker_ones() {
    for (rank, name) in ["host", "argument", "environment", "here", "beside"].into_iter().enumerate() {
        let resolved = all_sources(rank);
        let number = rank as u64 + 1;
        assert_eq!(
            resolved.options.trace,
            TracePath::Explicit(format!("{name}.typhon-trace").into()),
            "{name}"
        );
        assert_eq!(resolved.options.live.wait, Duration::from_millis(number), "{name}");
        assert_eq!(resolved.options.live.port, Some(9000 + number as u16), "{name}");
        // The command line has no option for gates.
        if name != "argument" {
            assert!(resolved.mask().contains(170), "{name}");
        }
    }
    let defaults = all_sources(5);
    assert_eq!(defaults.options, ProfilerOptions::default());
}

#[test]
fn i8_files_are_merged_key_by_key() {
    let settings = Settings::builder()
        .file_text("a.json", r#"{"Typhon": {"Profiler": {"Enabled": true, "Gauges": {"IntervalMs": 7}}}}"#)
        .file_text("b.json", r#"{"Typhon": {"Profiler": {"Gauges": {"Enabled": true, "IntervalMs": 9}}}}"#)
        .build();
    assert_eq!(settings.files(), [PathBuf::from("a.json"), PathBuf::from("b.json")]);
    let resolved = resolve(&settings);
    assert!(resolved.mask().contains(76));
    assert_eq!(resolved.options.gauges_interval, Duration::from_millis(7));
}

#[test]
fn i8_the_file_in_the_working_directory_beats_the_one_beside_the_executable() {
    // The order in which a process adds its files; the reference documents this order and does the opposite.
    let here = tempfile::tempdir().unwrap();
    let path = here.path().join("typhon.telemetry.json");
    std::fs::write(&path, r#"{"Typhon": {"Profiler": {"ExporterQueueDepth": 3}}}"#).unwrap();
    let settings = Settings::builder()
        .file(&path)
        .file_text("beside.json", r#"{"Typhon": {"Profiler": {"ExporterQueueDepth": 4}}}"#)
        .file(here.path().join("missing.json"))
        .build();
    assert_eq!(settings.files().len(), 2, "a missing file is not read");
    assert_eq!(resolve(&settings).options.exporter_queue_batches, 3);
}

// --- master (brief 02 §5.2) -------------------------------------------------------------------------------------

#[test]
fn i8_master_follows_an_explicit_destination_unless_it_is_set_itself() {
    for (section, on) in [
        (r#"{}"#, false),
        (r#"{"Enabled": true}"#, true),
        (r#"{"Trace": "x.typhon-trace"}"#, true),
        (r#"{"Trace": "none"}"#, false),
        (r#"{"Trace": "NONE"}"#, false),
        (r#"{"Trace": "  "}"#, false),
        (r#"{"Trace": true}"#, false),
        (r#"{"Trace": 5}"#, false),
        (r#"{"Trace": "./5"}"#, true),
        (r#"{"Live": 9100}"#, true),
        (r#"{"Live": true}"#, true),
        (r#"{"Live": "on"}"#, true),
        (r#"{"Live": false}"#, false),
        (r#"{"Live": "off"}"#, false),
        (r#"{"Live": "sometimes"}"#, false),
        (r#"{"Live": 0}"#, false),
        (r#"{"Live": 70000}"#, false),
        (r#"{"Enabled": false, "Trace": "x.typhon-trace"}"#, false),
        (r#"{"Enabled": false, "Live": 9100}"#, false),
        (r#"{"Enabled": true, "Trace": "none"}"#, true),
        (r#"{"Enabled": "wrong", "Trace": "x.typhon-trace"}"#, true),
    ] {
        assert_eq!(profiler(section).options.enabled, on, "{section}");
        assert_eq!(!profiler(section).mask().is_empty(), on, "{section}");
    }
}

#[test]
fn telemetry_false_kills_everything_and_true_does_nothing() {
    let with = |telemetry: &str| {
        file(&format!(
            r#"{{"Typhon": {{"Telemetry": {{"Enabled": {telemetry}}},
                "Profiler": {{"Enabled": true, "Trace": "x", "Gauges": {{"Enabled": true}}}}}}}}"#
        ))
    };
    assert!(!with("false").options.enabled);
    assert!(with("false").mask().is_empty());
    assert!(with("true").mask().contains(76));
    assert!(!file(r#"{"Typhon": {"Telemetry": {"Enabled": true}}}"#).options.enabled);
}

// --- options ----------------------------------------------------------------------------------------------------

#[test]
fn live_accepts_ports_and_booleans_only() {
    let port = |value: &str| profiler(&format!(r#"{{"Live": {value}}}"#)).options.live.port;
    assert_eq!(port("1"), Some(1));
    assert_eq!(port("\"65535\""), Some(65535));
    assert_eq!(port("true"), Some(9100));
    assert_eq!(port("\"ON\""), Some(9100));
    assert_eq!(port("false"), None);
    let wrong = profiler(r#"{"Live": "enabled"}"#);
    assert_eq!(
        lines(&wrong),
        ["typhon.telemetry.json: Typhon:Profiler:Live: \"enabled\" is not a port; \
             write a port from 1 to 65535, true (9100) or false; there is no live stream"]
    );
    let settings = Settings::builder()
        .environment([("TYPHON__PROFILER__LIVE", "99999")])
        .file_text("f", r#"{"Typhon": {"Profiler": {"Live": 9100}}}"#);
    assert_eq!(
        resolve(&settings.build()).options.live.port,
        None,
        "a bad port is no port, not the file's port"
    );
}

#[test]
fn b33_none_of_an_operator_cannot_be_lifted_by_the_program() {
    let host = || Overrides::new().enabled(true).trace("mine.typhon-trace");
    let settings =
        Settings::builder().overrides(host()).environment([("TYPHON__PROFILER__TRACE", "NONE")]).build();
    let resolved = resolve(&settings);
    assert_eq!(resolved.options.trace, TracePath::None);
    assert!(resolved.options.enabled, "collection runs");
    assert_eq!(
        lines(&resolved),
        ["program: Typhon:Profiler:Trace: environment TYPHON__PROFILER__TRACE says Trace = none, \
             which the program cannot override; remove it there to get a capture file"]
    );
    // A stronger source of the operator can: that is precedence, not an override.
    let settings = Settings::builder()
        .overrides(host())
        .arguments(["--trace", "asked.typhon-trace"])
        .environment([("TYPHON__PROFILER__TRACE", "none")])
        .build();
    assert_eq!(resolve(&settings).options.trace, TracePath::Explicit("mine.typhon-trace".into()));
    // A blank one asks for the automatic path again.
    let settings = Settings::builder()
        .environment([("TYPHON__PROFILER__TRACE", "")])
        .file_text("f", r#"{"Typhon": {"Profiler": {"Trace": "x.typhon-trace"}}}"#)
        .build();
    assert_eq!(resolve(&settings).options.trace, TracePath::Automatic);
}

#[test]
fn every_option_of_the_table_reaches_the_typed_options() {
    for info in OPTIONS {
        let value = match info.value {
            ValueType::Flag { default } => (!default.unwrap_or(false)).to_string(),
            ValueType::Integer { default, min, .. } => {
                (if default == min { min + 1 } else { min }).to_string()
            }
            ValueType::PowerOfTwo { min, .. } => min.to_string(),
            ValueType::TracePath => "x.typhon-trace".to_owned(),
            ValueType::LivePort => "9200".to_owned(),
            ValueType::Address { .. } => "::1".to_owned(),
            ValueType::Text => "secret".to_owned(),
            ValueType::GcTarget => "4711".to_owned(),
            // These have no field of their own: the first is about gates, the others do nothing.
            ValueType::Kinds | ValueType::Obsolete | ValueType::Reserved => continue,
        };
        let settings = Settings::builder().overrides(Overrides::new().enabled(true).set(info.key, &value));
        let resolved = resolve(&settings.build());
        let mut reference = ProfilerOptions::default();
        reference.enabled = info.key != "Profiler:Enabled";
        assert_ne!(resolved.options, reference, "{} = {value} changes nothing", info.key);
        let allowed = |code: &FaultCode| *code == FaultCode::NotAvailable;
        assert!(codes(&resolved).iter().all(allowed), "{:?}", lines(&resolved));
    }
}

#[test]
fn defaults_are_those_of_the_briefs() {
    let options = ProfilerOptions::default();
    assert_eq!(options.live.bind.to_string(), "127.0.0.1");
    assert_eq!(options.consumer_cadence, Duration::from_millis(1));
    assert_eq!(options.exporter_queue_batches, 64);
    assert_eq!(options.buffer_budget_bytes, 160 << 20);
    assert_eq!(options.gauges_interval, Duration::from_secs(1));
    assert_eq!(options.page_completion_threshold, Duration::from_millis(1));
    assert_eq!(options.cpu_sampling.samples_max, 3_000_000);
    assert_eq!(options.cpu_sampling.frequency_hz, 997);
    assert_eq!(options.gc_tracing.target, GcTarget::OwnProcess);
    assert_eq!(options.gc_tracing.buffer_mib, 16);
    assert_eq!(options.gc_tracing.queue_capacity, 1_024);
    assert_eq!(options.gc_tracing.connect_timeout, Duration::from_secs(2));
    assert_eq!(options.gc_tracing.order_delay, Duration::from_millis(250));
    assert!(!options.checks.enabled && !options.checks.declared_access);
}

#[test]
fn numbers_out_of_range_are_the_default_and_one_line_each() {
    for info in OPTIONS {
        let (min, max) = match info.value {
            ValueType::Integer { min, max, .. } | ValueType::PowerOfTwo { min, max, .. } => (min, max),
            _ => continue,
        };
        let below = if min == 0 { "-1".to_owned() } else { (min - 1).to_string() };
        for value in [below, (max + 1).to_string(), "99999999999999999999999".to_owned()] {
            let resolved =
                resolve(&Settings::builder().overrides(Overrides::new().set(info.key, &value)).build());
            assert_eq!(codes(&resolved), [FaultCode::OutOfRange], "{} = {value}", info.key);
            assert_eq!(resolved.options, ProfilerOptions::default(), "{} = {value}", info.key);
        }
        for value in [min, max] {
            let resolved =
                resolve(&Settings::builder().overrides(Overrides::new().set(info.key, value)).build());
            assert_eq!(lines(&resolved), NO_FAULTS, "{} = {value}", info.key);
        }
    }
}

#[test]
fn gc_targets() {
    let target = |text: &str| {
        let resolved = profiler(&format!(r#"{{"GcTracing": {{"Target": "{text}"}}}}"#));
        (resolved.options.gc_tracing.target.clone(), codes(&resolved))
    };
    assert_eq!(target("SELF"), (GcTarget::OwnProcess, vec![]));
    assert_eq!(target("12"), (GcTarget::Process(12), vec![]));
    assert_eq!(target("listen:/run/gc.sock"), (GcTarget::Listen("/run/gc.sock".into()), vec![]));
    assert_eq!(target("listen:"), (GcTarget::OwnProcess, vec![FaultCode::InvalidValue]));
    assert_eq!(target("0"), (GcTarget::OwnProcess, vec![FaultCode::OutOfRange]));
}

#[test]
fn the_live_token_is_not_logged() {
    let resolved = profiler(r#"{"LiveToken": "hush"}"#);
    assert_eq!(resolved.options.live.token.0, "hush");
    assert!(!format!("{:?}", resolved.options).contains("hush"));
}

// --- values -----------------------------------------------------------------------------------------------------

#[test]
fn booleans_in_every_spelling() {
    for (text, on) in [
        ("true", true),
        ("True", true),
        ("TRUE", true),
        ("1", true),
        ("on", true),
        (" On ", true),
        ("false", false),
        ("FALSE", false),
        ("0", false),
        ("oFF", false),
    ] {
        let resolved = environment(&[("TYPHON__PROFILER__ENABLED", text)]);
        assert_eq!(resolved.options.enabled, on, "{text}");
        assert_eq!(lines(&resolved), NO_FAULTS, "{text}");
    }
}

#[test]
fn an_invalid_value_counts_as_absent_and_is_one_line() {
    for value in ["yes", "2", "", "truee", "nein\n"] {
        let settings = Settings::builder()
            .environment([("TYPHON__PROFILER__ENABLED", value)])
            .file_text("f", r#"{"Typhon": {"Profiler": {"Enabled": true}}}"#);
        let resolved = resolve(&settings.build());
        assert!(resolved.options.enabled, "the file's value counts");
        assert_eq!(codes(&resolved), [FaultCode::InvalidValue]);
        assert_eq!(lines(&resolved)[0].lines().count(), 1);
    }
    let line = lines(&environment(&[("TYPHON__PROFILER__SCHEDULER__ENABLED", "maybe")]));
    assert_eq!(
        line,
        ["environment TYPHON__PROFILER__SCHEDULER__ENABLED: \"maybe\" is not a valid value; \
             write true or false (also 1, 0, on, off); it counts as absent"]
    );
}

#[test]
fn all_faults_are_reported_at_once() {
    let resolved = profiler(
        r#"{ "Enabled": "ja", "Trce": "x", "BufferBudgetMiB": 0, "LiveBind": "everywhere", "SpilloverBufferCount": 8,
             "Kinds": { "Suppress": ["TickStrat", 300, 11, "Instant"] } }"#,
    );
    let mut codes = codes(&resolved);
    codes.sort_by_key(|code| format!("{code:?}"));
    use FaultCode::*;
    assert_eq!(
        codes,
        [
            InvalidValue,
            InvalidValue,
            InvalidValue,
            InvalidValue,
            InvalidValue,
            Obsolete,
            OutOfRange,
            UnknownKey
        ]
    );
    assert!(lines(&resolved).iter().any(|line| line.ends_with("did you mean TickStart?")));
}

#[test]
fn keys_match_in_any_case_in_every_source() {
    let settings = Settings::builder()
        .environment([("typhon__Profiler__ENABLED", "1")])
        .file_text("f", r#"{"TYPHON": {"profiler": {"gauges": {"ENABLED": true, "intervalMS": 5}}}}"#)
        .overrides(Overrides::new().set("pROFILER:bufferBUDGETmib", 3));
    let resolved = resolve(&settings.build());
    assert!(resolved.mask().contains(76));
    assert_eq!(resolved.options.gauges_interval, Duration::from_millis(5));
    assert_eq!(resolved.options.buffer_budget_bytes, 3 << 20);
    assert_eq!(lines(&resolved), NO_FAULTS);
}

#[test]
fn the_same_key_twice_is_a_fault_and_the_last_one_counts() {
    let resolved = profiler(r#"{"Gauges": {"IntervalMs": 5}, "gauges": {"intervalms": 6}}"#);
    assert_eq!(codes(&resolved), [FaultCode::DuplicateKey]);
    assert_eq!(resolved.options.gauges_interval, Duration::from_millis(6));
}

#[test]
fn lists_of_kinds_as_array_text_and_variables() {
    let suppressed = |resolved: Resolved| {
        assert_eq!(lines(&resolved), NO_FAULTS);
        [0, 1, 4].map(|kind| !resolved.mask().contains(kind))
    };
    let with = |list: &str| profiler(&format!(r#"{{"Enabled": true, "Kinds": {{"Suppress": {list}}}}}"#));
    assert_eq!(suppressed(with(r#"["TickStart", 1]"#)), [true, true, false]);
    assert_eq!(suppressed(with(r#""tickstart, 4""#)), [true, false, true]);
    assert_eq!(suppressed(with("[]")), [false, false, false]);
    assert_eq!(suppressed(with("4")), [false, false, true]);
    let variables = |list: &[(&'static str, &'static str)]| {
        let on = [("TYPHON__PROFILER__ENABLED", "1")];
        environment(&[&on, list].concat())
    };
    assert_eq!(suppressed(variables(&[("TYPHON__PROFILER__KINDS__SUPPRESS", "0,1")])), [true, true, false]);
    assert_eq!(
        suppressed(variables(&[
            ("TYPHON__PROFILER__KINDS__SUPPRESS__0", "4"),
            ("TYPHON__PROFILER__KINDS__SUPPRESS__1", "TickEnd")
        ])),
        [false, true, true]
    );
    // The strongest source gives the whole list; blank empties it.
    let settings = Settings::builder()
        .environment([("TYPHON__PROFILER__KINDS__SUPPRESS", "")])
        .file_text("f", r#"{"Typhon": {"Profiler": {"Enabled": true, "Kinds": {"Suppress": [0, 1, 4]}}}}"#);
    assert_eq!(suppressed(resolve(&settings.build())), [false, false, false]);
}

// --- properties -------------------------------------------------------------------------------------------------

/// Keys of options and gates, plus some that do not exist.
fn some_key() -> impl Strategy<Value = String> {
    let gates = typhon_profiler::gates::GateTree::get().nodes().iter().map(|node| node.key());
    let options = OPTIONS.iter().map(|info| format!("Typhon:{}", info.key));
    let unknown = ["Typhon:Profiler:Nonsense", "Typhon:Profiler", "Other"].map(str::to_owned);
    proptest::sample::select(gates.chain(options).chain(unknown).collect::<Vec<_>>())
}

fn some_value() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(vec![
            "true", "false", "1", "0", "on", "off", "none", "", "64", "50,186", "x"
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ]
}

fn as_variables(pairs: &[(String, String)]) -> Vec<(String, String)> {
    let name = |key: &str| key.replace(':', "__").to_uppercase();
    pairs
        .iter()
        .filter(|(_, value)| !value.contains('\0'))
        .map(|(key, value)| (name(key), value.clone()))
        .collect()
}

fn as_json(pairs: &[(String, String)]) -> String {
    let object: serde_json::Map<String, serde_json::Value> =
        pairs.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
    serde_json::Value::Object(object).to_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn resolving_any_settings_gives_an_answer_and_single_line_faults(
        file in proptest::collection::vec((some_key(), some_value()), 0..12),
        variables in proptest::collection::vec((some_key(), some_value()), 0..12),
    ) {
        let settings =
            Settings::builder().file_text("f", as_json(&file)).environment(as_variables(&variables)).build();
        let resolved = resolve(&settings);
        for line in lines(&resolved) {
            prop_assert!(!line.chars().any(char::is_control), "{:?}", line);
        }
        if !resolved.options.enabled {
            prop_assert!(resolved.mask().is_empty());
        }
        prop_assert_eq!(resolve(&settings).gates, resolved.gates, "pure");
    }

    #[test]
    fn i8_a_file_cannot_change_what_the_environment_says(
        value in proptest::sample::select(vec!["true", "false", "1", "0", "on", "off"]),
        other in some_value(),
        node in 1..typhon_profiler::gates::GateTree::get().nodes().len(),
    ) {
        let key = typhon_profiler::gates::GateTree::get().nodes()[node].key();
        let variables = as_variables(&[(key.clone(), value.to_owned())]);
        let with = |files: &[(String, String)]| {
            resolve(&Settings::builder().environment(variables.clone()).file_text("f", as_json(files)).build())
        };
        let alone = with(&[]);
        let both = with(&[(key, other)]);
        prop_assert_eq!(
            alone.gates.own(node).map(|(on, _)| on),
            both.gates.own(node).map(|(on, _)| on)
        );
    }

    #[test]
    fn the_same_pairs_mean_the_same_in_json_and_environment(
        pairs in proptest::collection::btree_map(some_key(), some_value(), 0..12),
    ) {
        let pairs: Vec<(String, String)> = pairs.into_iter().filter(|(_, value)| !value.contains('\0')).collect();
        let json = resolve(&Settings::builder().file_text("f", as_json(&pairs)).build());
        let variables = resolve(&Settings::builder().environment(as_variables(&pairs)).build());
        prop_assert_eq!(json.options, variables.options);
        prop_assert_eq!(json.gates.mask(), variables.gates.mask());
    }

    #[test]
    fn any_file_gives_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = resolve(&Settings::builder().file_text("f", bytes).build());
    }
}
