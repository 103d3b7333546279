//! The reference's answers to twenty configurations (`corpus/gates/gates.json`), and the decided differences.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use serde_json::Value;
use typhon_profiler::config::{Resolved, Settings, resolve};
use typhon_profiler::gates::{GateTree, Rule};

const CORPUS: &str = include_str!("../../../corpus/gates/gates.json");

/// Gates newer than the recorded tree.
const NEWER: [&str; 7] = [
    "Durability:Recovery:Fpi",
    "Spatial:ArchetypeTelemetry",
    "Spatial:ClusterRelocation",
    "Spatial:ClusterRepair",
    "Spatial:RealmRates",
    "Spatial:RealmTelemetry",
    "Subscriptions",
];

fn corpus() -> Value {
    serde_json::from_str(CORPUS).unwrap()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

fn is_newer(path: &str) -> bool {
    NEWER.iter().any(|gate| path == *gate || path.starts_with(&format!("{gate}:")))
}

fn configuration(case: &Value) -> Resolved {
    let environment = case["environment"].as_object().unwrap();
    let environment =
        environment.iter().map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
    let mut settings = Settings::builder().environment(environment);
    if !case["file"].is_null() {
        settings = settings.file_text("typhon.telemetry.json", case["file"].to_string());
    }
    resolve(&settings.build())
}

#[test]
fn the_tree_is_the_recorded_one_plus_newer_gates() {
    let corpus = corpus();
    let recorded: BTreeSet<&str> = list(&corpus, "nodes").iter().map(|node| text(node, "path")).collect();
    let tree = GateTree::get();
    for path in &recorded {
        assert!(tree.find(path).is_some(), "{path} is missing");
    }
    // Nodes without kinds of their own that only group others have a key, but no flag in the reference.
    let grouping: Vec<&str> = tree
        .nodes()
        .iter()
        .map(|node| node.path)
        .filter(|path| !recorded.contains(path) && !is_newer(path))
        .collect();
    assert_eq!(
        grouping,
        [
            "ECS:Query:Constraint",
            "ECS:Query:Spatial",
            "ECS:View:DeltaBuffer",
            "ECS:View:DeltaCache",
            "ECS:View:Registry",
            "Runtime:Subscription:Delta",
            "Runtime:Subscription:Transition",
            "Scheduler:Gauges",
        ]
    );
}

#[test]
fn every_recorded_gate_follows_the_recorded_rule() {
    for node in list(&corpus(), "nodes") {
        let tree = GateTree::get();
        let ours = &tree.nodes()[tree.find(text(node, "path")).unwrap()];
        let expected = match text(node, "resolution") {
            "master" => Rule::Master,
            "composite" => Rule::Root,
            "raw" => Rule::Raw,
            "tree" if ours.depth() == 1 => Rule::Root,
            "tree" => Rule::Inherited,
            other => panic!("unknown rule {other}"),
        };
        assert_eq!(ours.rule, expected, "{}", ours.path);
    }
}

#[test]
fn the_twenty_configurations_give_the_reference_answers_except_as_decided() {
    let corpus = corpus();
    assert_eq!(list(&corpus, "cases").len(), 20);
    let tree = GateTree::get();
    for case in list(&corpus, "cases") {
        let name = text(case, "case");
        let mut expected: BTreeSet<&str> =
            list(case, "on").iter().map(|path| path.as_str().unwrap()).collect();
        let resolved = configuration(case);
        // Raw gates ask the master; no recorded case turns one off.
        if !expected.contains("") {
            expected.retain(|path| tree.nodes()[tree.find(path).unwrap()].rule != Rule::Raw);
        }
        // The text `1` is a boolean.
        if name == "environment alone" {
            expected.insert("GcTracing");
        }
        let recorded: Vec<&str> = list(&corpus, "nodes").iter().map(|node| text(node, "path")).collect();
        let actual: BTreeSet<&str> =
            recorded.into_iter().filter(|path| resolved.gates.is_on(tree.find(path).unwrap())).collect();
        assert_eq!(actual, expected, "{name}");
        assert_eq!(resolved.options.enabled, expected.contains(""), "{name}");
    }
}

#[test]
fn nothing_in_the_recorded_configurations_is_misspelt() {
    use typhon_profiler::config::FaultCode;
    for case in list(&corpus(), "cases") {
        let faults = configuration(case).faults;
        let misspelt: Vec<_> = faults.iter().filter(|fault| fault.code != FaultCode::NotAvailable).collect();
        assert!(misspelt.is_empty(), "{}: {misspelt:?}", text(case, "case"));
    }
}
