//! Gates, deny-list and run-time changes (brief 02 §5.3 to §5.6, §11.1).
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use typhon_profiler::config::{FaultCode, Overrides, Resolved, Settings, resolve};
use typhon_profiler::gates::{GateError, GateTree, Gates, KindMask, KindState, MaskChange, Rule};
use typhon_trace::registry::{KINDS, Status};

/// Resolves gates written as `path = value`, with the master on.
fn with(values: &[(&str, bool)]) -> Resolved {
    let set = |overrides: Overrides, (path, on): &(&str, bool)| overrides.gate(path, *on);
    resolved(values.iter().fold(Overrides::new().enabled(true), set))
}

fn resolved(overrides: Overrides) -> Resolved {
    resolve(&Settings::builder().overrides(overrides).build())
}

fn is_on(resolved: &Resolved, path: &str) -> bool {
    resolved.gates.is_on(GateTree::get().find(path).unwrap())
}

fn kinds_on(resolved: &Resolved, kinds: impl IntoIterator<Item = u8>) -> Vec<u8> {
    kinds.into_iter().filter(|&kind| resolved.mask().contains(kind)).collect()
}

// --- resolution -------------------------------------------------------------------------------------------------

#[test]
fn i7_all_combinations_of_a_first_level_gate_and_one_below() {
    use Option::None as Absent;
    for (parent, child, parent_on, child_on) in [
        (Absent, Absent, false, false),
        (Absent, Some(true), false, false),
        (Absent, Some(false), false, false),
        (Some(false), Absent, false, false),
        (Some(false), Some(true), false, false),
        (Some(false), Some(false), false, false),
        (Some(true), Absent, true, true),
        (Some(true), Some(true), true, true),
        (Some(true), Some(false), true, false),
    ] {
        let mut values = Vec::new();
        values.extend(parent.map(|on| ("Scheduler", on)));
        values.extend(child.map(|on| ("Scheduler:Worker", on)));
        let resolved = with(&values);
        assert_eq!(is_on(&resolved, "Scheduler"), parent_on, "{values:?}");
        assert_eq!(is_on(&resolved, "Scheduler:Worker"), child_on, "{values:?}");
        assert_eq!(is_on(&resolved, "Scheduler:Worker:Idle"), child_on, "{values:?}");
        assert_eq!(resolved.mask().contains(150), child_on, "{values:?}");
    }
}

#[test]
fn i6_every_kind_is_off_without_the_master_and_behind_its_own_closed_gate() {
    let tree = GateTree::get();
    let all = |value: bool| {
        let nodes = tree.nodes().iter().filter(|node| !node.path.is_empty());
        nodes.fold(Overrides::new(), |overrides, node| overrides.gate(node.path, value))
    };
    assert!(resolved(all(true).enabled(false)).mask().is_empty());
    let everything = all(true).unsuppress(KINDS.iter().map(|info| info.id));
    let open = resolved(everything.clone().enabled(true));
    for info in KINDS {
        let live = info.status == Status::Live;
        assert_eq!(open.mask().contains(info.id), live, "{} with everything on", info.name);
        let gate = &tree.nodes()[tree.of_kind(info.id).unwrap()];
        if !gate.path.is_empty() {
            let closed = resolved(everything.clone().gate(gate.path, false).enabled(true));
            assert!(!closed.mask().contains(info.id), "{} behind its closed gate", info.name);
        }
    }
}

#[test]
fn the_master_alone_records_its_own_kinds_and_those_on_by_default() {
    let master = with(&[]);
    let expected: Vec<u8> = (0..=6)
        .chain([10])
        .chain(20..=23)
        .chain(30..=36)
        .chain(40..=43)
        .chain([60, 77])
        .chain(80..=89)
        .chain([243, 245, 246])
        .collect();
    assert_eq!(master.mask().iter().collect::<Vec<_>>(), expected);
}

#[test]
fn raw_gates_ask_the_master_and_their_own_key_only() {
    const RAW: &str = "Scheduler:ArchetypeTouches";
    assert!(with(&[]).mask().contains(245));
    assert!(with(&[("Scheduler", false)]).mask().contains(245));
    assert!(!with(&[(RAW, false)]).mask().contains(245));
    assert!(!resolved(Overrides::new().gate(RAW, true)).mask().contains(245));
    // Also written without `:Enabled` (brief 01 §5).
    let short = |on: bool| Overrides::new().enabled(true).set("Profiler:Scheduler:ArchetypeTouches", on);
    assert!(!resolved(short(false)).mask().contains(245));
    assert!(resolved(short(false).gate(RAW, true)).mask().contains(245), "the full key wins");
    assert!(resolved(short(false)).faults.is_empty());
    // The key of their group counts for nobody.
    let group = with(&[("Scheduler:Gauges", false)]);
    assert!(is_on(&group, "Scheduler:Gauges:StragglerGap"));
}

#[test]
fn kind_60_is_off_only_by_an_explicit_false_on_its_path() {
    const EXECUTE: &str = "Spatial:ClusterMigration:Execute";
    assert!(with(&[]).mask().contains(60));
    for path in ["Spatial", "Spatial:ClusterMigration", EXECUTE] {
        let resolved = with(&[(path, false)]);
        assert!(!resolved.mask().contains(60), "{path}");
        assert!(matches!(resolved.gates.kind(60), Some(KindState::GateOff(gate)) if
            GateTree::get().nodes()[gate].path == path));
    }
    assert!(with(&[("Spatial:RTree", false)]).mask().contains(60));
    assert!(!is_on(&with(&[]), EXECUTE), "the gate itself resolves like any other");
    assert!(!resolved(Overrides::new().enabled(false)).mask().contains(60));
}

#[test]
fn the_leaf_named_enabled_reads_a_boolean_or_an_object() {
    const LEAF: &str = "ECS:Query:Constraint:Enabled";
    let file = |constraint: &str| {
        let text = format!(
            r#"{{"Typhon": {{"Profiler": {{"Enabled": true,
                "ECS": {{"Enabled": true, "Query": {{"Constraint": {constraint}}}}}}}}}}}"#
        );
        let resolved = resolve(&Settings::builder().file_text("f", text).build());
        assert!(resolved.faults.is_empty(), "{:?}", resolved.faults);
        (is_on(&resolved, "ECS:Query:Constraint"), is_on(&resolved, LEAF), resolved.mask().contains(202))
    };
    assert_eq!(file("{}"), (true, true, true));
    assert_eq!(file(r#"{"Enabled": true}"#), (true, true, true));
    assert_eq!(file(r#"{"Enabled": false}"#), (false, false, false));
    assert_eq!(file(r#"{"Enabled": {"Enabled": false}}"#), (true, false, false));
    let both = Overrides::new()
        .enabled(true)
        .gate("ECS", true)
        .set("Profiler:ECS:Query:Constraint:Enabled", true)
        .set("Profiler:ECS:Query:Constraint:Enabled:Enabled", false);
    assert!(is_on(&resolved(both.clone()), "ECS:Query:Constraint"));
    assert!(!is_on(&resolved(both), LEAF), "the leaf's own key wins");
}

#[test]
fn grouping_gates_have_keys_that_count() {
    let resolved = with(&[("ECS", true), ("ECS:View:Registry", false)]);
    assert_eq!(kinds_on(&resolved, [209, 211, 212]), [209]);
}

// --- deny-list (brief 02 §5.5) ----------------------------------------------------------------------------------

const BY_NAME_ONLY: [u8; 13] = [50, 174, 178, 180, 186, 194, 195, 196, 200, 207, 208, 220, 228];

fn everything_open() -> Overrides {
    let first_level = GateTree::get().nodes().iter().filter(|node| node.rule == Rule::Root);
    first_level.fold(Overrides::new().enabled(true), |overrides, node| overrides.gate(node.path, true))
}

#[test]
fn denied_kinds_stay_off_behind_an_open_gate_until_they_are_named() {
    let open = resolved(everything_open());
    let held_back: Vec<u8> = KINDS
        .iter()
        .filter(|info| info.status == Status::Live && !open.mask().contains(info.id))
        .map(|info| info.id)
        .collect();
    let mut expected = BY_NAME_ONLY.to_vec();
    expected.extend(51..=59);
    expected.sort_unstable();
    assert_eq!(held_back, expected);
    assert!(open.mask().contains(206), "never suppressed by default");
    for kind in BY_NAME_ONLY {
        let gate = GateTree::get().nodes()[GateTree::get().of_kind(kind).unwrap()].path;
        assert!(!resolved(everything_open().gate(gate, true)).mask().contains(kind), "{kind} by its gate");
        assert!(resolved(everything_open().unsuppress([kind])).mask().contains(kind), "{kind} by name");
    }
}

#[test]
fn page_cache_kinds_are_lifted_by_their_own_gate_and_not_by_its_parent() {
    assert_eq!(kinds_on(&with(&[("Storage", true)]), 50..=59), [0u8; 0]);
    let opened = with(&[("Storage", true), ("Storage:PageCache", true)]);
    assert_eq!(kinds_on(&opened, 50..=59), (51..=59).collect::<Vec<_>>());
    assert_eq!(kinds_on(&with(&[("Storage:PageCache", true)]), 50..=59), [0u8; 0], "the parent is off");
}

#[test]
fn a_completion_needs_its_kick_off() {
    for (kickoff, completion) in [(51, 56), (52, 57), (54, 58)] {
        let open = || everything_open().gate("Storage:PageCache", true);
        let without = resolved(open().suppress([kickoff]));
        assert_eq!(kinds_on(&without, [kickoff, completion]), [0u8; 0]);
        assert_eq!(without.gates.kind(completion), Some(KindState::KickoffOff(kickoff)));
        assert_eq!(kinds_on(&resolved(open().suppress([completion])), [kickoff, completion]), [kickoff]);
    }
    let alone = resolved(everything_open().unsuppress([56]));
    assert!(!alone.mask().contains(56), "naming the completion does not name its kick-off");
}

#[test]
fn suppression_holds_for_both_shapes_and_beats_its_exception() {
    let instant_and_span = [4, 32];
    let resolved = resolved(Overrides::new().enabled(true).suppress(instant_and_span).unsuppress([4]));
    assert_eq!(kinds_on(&resolved, instant_and_span), [0u8; 0]);
    assert_eq!(resolved.gates.kind(4), Some(KindState::Suppressed));
    assert_eq!(resolved.faults.len(), 1);
    assert_eq!(resolved.faults[0].code, FaultCode::NoEffect);
}

#[test]
fn naming_a_kind_behind_a_closed_gate_says_which_gate() {
    let resolved = resolved(
        Overrides::new().enabled(true).gate("Data", true).gate("Data:Index", false).unsuppress([180]),
    );
    assert!(!resolved.mask().contains(180));
    assert_eq!(
        resolved.faults[0].to_string(),
        "program: Typhon:Profiler:Kinds:Unsuppress: 180 DataIndexBTreeSearch stays off because its gate \
         Typhon:Profiler:Data:Index is off; set Typhon:Profiler:Data:Index:Enabled = true"
    );
}

// --- properties -------------------------------------------------------------------------------------------------

type Values = BTreeMap<usize, bool>;

fn some_values() -> impl Strategy<Value = Values> {
    let nodes = GateTree::get().nodes().len();
    // Mostly true: random subtrees would otherwise nearly always be closed.
    proptest::collection::btree_map(1..nodes, proptest::bool::weighted(0.8), 0..40)
}

fn of(values: &Values, master: bool) -> Resolved {
    let nodes = GateTree::get().nodes();
    let set = |overrides: Overrides, (&node, &on): (&usize, &bool)| overrides.gate(nodes[node].path, on);
    resolved(values.iter().fold(Overrides::new().enabled(master), set))
}

/// The rule of brief 02 §5.3, word by word.
fn naive(values: &Values, node: usize) -> bool {
    let tree = GateTree::get().nodes();
    match tree[node].rule {
        Rule::Master => true,
        Rule::Raw => values.get(&node) != Some(&false),
        Rule::Root => values.get(&node) == Some(&true),
        Rule::Inherited => naive(values, tree[node].parent) && values.get(&node) != Some(&false),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn i7_gates_follow_the_rule(values in some_values()) {
        let resolved = of(&values, true);
        for node in 0..GateTree::get().nodes().len() {
            let path = GateTree::get().nodes()[node].path;
            prop_assert_eq!(resolved.gates.is_on(node), naive(&values, node), "{}", path);
        }
    }

    #[test]
    fn closing_a_gate_never_turns_a_kind_on(values in some_values(), node in 1..GateTree::get().nodes().len()) {
        let before = of(&values, true).mask();
        let mut values = values;
        values.insert(node, false);
        prop_assert!(of(&values, true).mask().minus(before).is_empty());
    }

    #[test]
    fn opening_a_gate_never_turns_a_kind_off(values in some_values(), node in 1..GateTree::get().nodes().len()) {
        let before = of(&values, true).mask();
        let mut values = values;
        values.insert(node, true);
        prop_assert!(before.minus(of(&values, true).mask()).is_empty());
    }

    #[test]
    fn without_the_master_nothing_is_on(values in some_values()) {
        let resolved = of(&values, false);
        prop_assert!(resolved.mask().is_empty());
        prop_assert!((0..GateTree::get().nodes().len()).all(|node| !resolved.gates.is_on(node)));
    }

    #[test]
    fn switching_at_run_time_ends_where_the_configuration_would(
        before in some_values(), changes in proptest::collection::vec((1..GateTree::get().nodes().len(), any::<bool>()), 0..12),
    ) {
        let gates = Gates::new(&of(&before, true), |_| {});
        let mut after = before;
        for (node, on) in changes {
            gates.set(GateTree::get().nodes()[node].path, on).unwrap();
            after.insert(node, on);
        }
        prop_assert_eq!(gates.mask(), of(&after, true).mask());
    }
}

// --- run-time changes -------------------------------------------------------------------------------------------

/// Gates that write down every change they publish.
fn recording(resolved: &Resolved) -> (Gates, Arc<Mutex<Vec<MaskChange>>>) {
    let changes = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&changes);
    (Gates::new(resolved, move |change| sink.lock().unwrap().push(*change)), changes)
}

fn mask(kinds: impl IntoIterator<Item = u8>) -> KindMask {
    kinds.into_iter().collect()
}

#[test]
fn b36_every_change_of_the_mask_is_published_once_with_its_kinds() {
    let start = with(&[]);
    let (gates, changes) = recording(&start);
    let change = gates.set("Scheduler:Worker", true).unwrap();
    assert_eq!(change.mask, start.mask(), "the gate above is off");
    assert!(changes.lock().unwrap().is_empty(), "a change without effect is none");

    let change = gates.set("scheduler", true).unwrap();
    assert_eq!(change.turned_on, mask((146..=160).chain([241, 242, 244])));
    assert!(change.turned_off.is_empty());
    let change = gates.set("Typhon:Profiler:Scheduler:Worker", false).unwrap();
    assert_eq!(change.turned_off, mask(150..=152));
    assert_eq!(gates.mask(), change.mask);
    gates.set("Profiler", false).unwrap();
    assert!(gates.mask().is_empty());

    let changes = changes.lock().unwrap();
    assert_eq!(changes.len(), 3);
    let mut replayed = start.mask();
    for change in changes.iter() {
        assert!(change.turned_on.iter().all(|kind| !replayed.contains(kind)));
        change.turned_on.iter().for_each(|kind| replayed.insert(kind));
        assert!(change.turned_off.iter().all(|kind| replayed.contains(kind)));
        change.turned_off.iter().for_each(|kind| replayed.remove(kind));
        assert_eq!(replayed, change.mask);
    }
}

#[test]
fn kinds_are_switched_by_name_and_number() {
    let (gates, _) = recording(&with(&[("Data", true)]));
    assert_eq!(gates.set("DataIndexBTreeSearch", true).unwrap().turned_on, mask([180]));
    assert_eq!(gates.set("180", false).unwrap().turned_off, mask([180]));
    assert_eq!(gates.kind(180), Some(KindState::SwitchedOff));
    // Opening the gate again does not bring back a kind that was switched off by name.
    gates.set("Data", false).unwrap();
    gates.set("Data", true).unwrap();
    assert!(!gates.mask().contains(180));
    assert_eq!(gates.set_kind(180, true).turned_on, mask([180]));
    assert!(matches!(gates.kind(117), Some(KindState::GateOff(_))));
    assert!(
        gates.set("SpatialQueryAabb", true).unwrap().turned_on.is_empty(),
        "a kind does not open its gate"
    );
}

#[test]
fn opening_a_gate_at_run_time_lifts_its_suppression() {
    let (gates, _) = recording(&with(&[("Storage", true)]));
    assert_eq!(gates.set("Storage:PageCache", true).unwrap().turned_on, mask(51..=59));
}

#[test]
fn unknown_names_are_an_error_with_the_nearest_name() {
    let (gates, changes) = recording(&with(&[]));
    let error = gates.set("Scheduler:Worke", true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no gate and no kind named \"Scheduler:Worke\"; did you mean Scheduler:Worker?"
    );
    assert!(matches!(gates.set("11", true), Err(GateError::Unknown { suggestion: None, .. })));
    assert!(changes.lock().unwrap().is_empty());
}

#[test]
fn changes_of_many_threads_are_published_in_the_order_they_happen() {
    let start = with(&[("Concurrency", true)]);
    let (gates, changes) = recording(&start);
    std::thread::scope(|scope| {
        for kind in 90..=116u8 {
            let gates = &gates;
            scope.spawn(move || {
                gates.set_kind(kind, false);
                gates.set_kind(kind, true);
            });
        }
    });
    let changes = changes.lock().unwrap();
    assert_eq!(changes.len(), 54);
    let mut before = start.mask();
    for change in changes.iter() {
        assert_eq!(change.mask.minus(before), change.turned_on);
        assert_eq!(before.minus(change.mask), change.turned_off);
        before = change.mask;
    }
    assert_eq!(gates.mask(), start.mask());
}

// --- in words ---------------------------------------------------------------------------------------------------

#[test]
fn the_summary_names_files_gates_suppressed_kinds_output_and_buffers() {
    let text = r#"{"Typhon": {"Profiler": {"Trace": "run.typhon-trace", "Storage": {"Enabled": true},
        "Gauges": {"Enabled": true}, "Scheduler": {"Enabled": false}}}}"#;
    let resolved = resolve(&Settings::builder().file_text("t.json", text).build());
    let summary = resolved.summary("tsc, 2.4 GHz");
    for line in [
        "files              t.json",
        "master             on (t.json)",
        "CpuSampling        off",
        "Gauges             on (t.json): 1 of 1 kinds",
        "Scheduler          off (t.json): 1 of 19 kinds",
        "Storage            on (t.json): 7 of 17 kinds",
        "output             file run.typhon-trace",
        "buffers            160 MiB capture, 64 batches per exporter",
        "clock              tsc, 2.4 GHz",
    ] {
        assert!(summary.lines().any(|found| found == line), "no line {line:?} in\n{summary}");
    }
    let suppressed = summary.lines().find(|line| line.starts_with("suppressed")).unwrap();
    assert!(suppressed.contains("50 PageCacheFetch, 51 PageCacheDiskRead"), "{suppressed}");
    assert!(!suppressed.contains("180"), "its gate is off: {suppressed}");
    assert_eq!(
        resolved.headline(),
        format!("profiler on: {} kinds, file run.typhon-trace", resolved.mask().len())
    );
}

#[test]
fn the_explanation_covers_every_gate_and_every_kind_with_a_reason() {
    let resolved = resolved(
        Overrides::new().enabled(true).gate("Data", true).gate("Scheduler:Worker", true).suppress([173]),
    );
    let text = resolved.explain();
    for info in KINDS {
        let label = format!(" {:>3} {} ", info.id, info.name);
        assert!(text.contains(&label), "{label}");
    }
    for node in GateTree::get().nodes().iter().skip(1) {
        let label = format!("{}{} ", "  ".repeat(node.depth()), node.name());
        assert!(text.lines().any(|line| line.starts_with(&label)), "{label}");
    }
    let line = |start: &str| text.lines().find(|line| line.trim_start().starts_with(start)).unwrap();
    assert!(line("180 ").ends_with("off: very frequent; name it in Typhon:Profiler:Kinds:Unsuppress"));
    assert!(line("173 ").ends_with("off: named in Typhon:Profiler:Kinds:Suppress"));
    assert!(line("150 ").ends_with("off: Typhon:Profiler:Scheduler:Enabled is not true"));
    assert!(line("138 ").ends_with("never recorded, only read from old files"));
    assert!(line("Worker ").ends_with("off (its own value is true, but a gate above is off)"));
}
