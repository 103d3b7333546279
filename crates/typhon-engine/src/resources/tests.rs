//! The tree and what snapshots of it answer.

use super::*;
use crate::error::{Coded, ErrorCode};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A source of fixed numbers.
struct Fixed(Vec<Metric>);

impl MetricSource for Fixed {
    fn read_metrics(&self, sink: &mut MetricSink<'_>) {
        self.0.iter().for_each(|metric| sink.put(*metric));
    }
}

fn fixed(metrics: impl Into<Vec<Metric>>) -> Node {
    Node::new(NodeType::Node).metrics(Arc::new(Fixed(metrics.into())))
}

/// A node with this much of 1000 in use.
fn used(per_mille: u64) -> Node {
    fixed([Metric::Capacity { current: per_mille, max: 1000 }])
}

/// A node whose use can be changed.
#[derive(Default)]
struct Gauge {
    current: AtomicU64,
    count: AtomicU64,
}

impl MetricSource for Gauge {
    fn read_metrics(&self, sink: &mut MetricSink<'_>) {
        sink.put(Metric::Capacity { current: self.current.load(Ordering::Relaxed), max: 100 });
        sink.put(Metric::Throughput { name: "calls", count: self.count.load(Ordering::Relaxed) });
    }
}

fn gauge(registry: &Registry, name: &str) -> (Arc<Gauge>, Resource) {
    let gauge = Arc::new(Gauge::default());
    let node = Node::new(NodeType::Node).metrics(gauge.clone());
    let resource = registry.register(Subsystem::Runtime, name, node).unwrap();
    (gauge, resource)
}

fn paths<'s>(nodes: impl IntoIterator<Item = NodeView<'s>>) -> Vec<&'s str> {
    nodes.into_iter().map(|node| node.path()).collect()
}

#[test]
fn b61_subsystems_are_there_from_the_beginning() {
    let snapshot = Registry::new().snapshot();
    let mut expected: Vec<_> = Subsystem::ALL.iter().map(|subsystem| subsystem.path()).collect();
    expected.push("Root");
    let mut found = paths(snapshot.nodes());
    assert_eq!(found[0], "Root");
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn b61_names_are_unique_below_a_parent() {
    let registry = Registry::new();
    let node = || Node::new(NodeType::Service);
    let first = registry.register(Subsystem::Runtime, "Loop", node()).unwrap();
    let duplicate = registry.register(Subsystem::Runtime, "Loop", node()).unwrap_err();
    assert_eq!(duplicate, ResourceError::DuplicateName { path: "Runtime/Loop".to_owned() });
    let _elsewhere = registry.register(Subsystem::Storage, "Loop", node()).unwrap();
    let _below = registry.register(&first, "Loop", node()).unwrap();
    for name in ["", "a/b"] {
        let error = registry.register(Subsystem::Storage, name, node()).unwrap_err();
        assert_eq!(error, ResourceError::InvalidName { name: name.to_owned() });
    }
    drop(first);
    assert!(registry.snapshot().node("Runtime/Loop/Loop").is_none(), "gone with its parent");
    assert!(registry.register(Subsystem::Runtime, "Loop", node()).is_ok());
}

#[test]
fn b61_below_a_removed_node_there_is_no_place() {
    let registry = Registry::new();
    let parent = registry.register(Subsystem::Runtime, "Loop", Node::new(NodeType::Node)).unwrap();
    let child = registry.register(&parent, "Queue", Node::new(NodeType::Node)).unwrap();
    drop(parent);
    let error = registry.register(&child, "Deeper", Node::new(NodeType::Node)).unwrap_err();
    assert_eq!(error, ResourceError::UnknownNode);
    assert_eq!(child.waits_for(Subsystem::Storage), Err(ResourceError::UnknownNode));
}

#[test]
fn b62_numbers_of_types_and_policies_never_change() {
    let types: Vec<_> = NodeType::ALL.iter().map(|kind| (kind.number(), kind.name())).collect();
    let expected = [
        (0, "None"),
        (1, "Node"),
        (10, "Service"),
        (11, "Engine"),
        (20, "TransactionPool"),
        (21, "Transaction"),
        (22, "ChangeSet"),
        (30, "ComponentTable"),
        (31, "Segment"),
        (32, "Index"),
        (33, "Cache"),
        (40, "File"),
        (41, "Memory"),
        (42, "Bitmap"),
        (50, "Schema"),
        (60, "Allocator"),
        (65, "Synchronization"),
        (70, "Wal"),
        (71, "Checkpoint"),
        (72, "Backup"),
    ];
    assert_eq!(types, expected);
    let policies: Vec<_> = ExhaustionPolicy::ALL.iter().map(|kind| (kind.number(), kind.name())).collect();
    assert_eq!(policies, [(0, "None"), (1, "FailFast"), (2, "Wait"), (3, "Evict"), (4, "Degrade")]);
    assert_eq!([Health::Healthy, Health::Degraded, Health::Unhealthy].map(|health| health as u8), [0, 1, 2]);
}

#[test]
fn b63_all_five_kinds_arrive() {
    let metrics = [
        Metric::Memory { allocated_bytes: 1, peak_bytes: 2 },
        Metric::Capacity { current: 3, max: 4 },
        Metric::DiskIo { read_ops: 5, write_ops: 6, read_bytes: 7, write_bytes: 8 },
        Metric::Throughput { name: "a", count: 9 },
        Metric::Throughput { name: "b", count: 10 },
        Metric::Duration { name: "a", last_us: 11, average_us: 12, max_us: 13 },
    ];
    let registry = Registry::new();
    let _node = registry.register(Subsystem::Storage, "Everything", fixed(metrics)).unwrap();
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.node("Storage/Everything").unwrap().metrics(), metrics);
    assert!(snapshot.node("Storage").unwrap().metrics().is_empty());
}

#[test]
fn b63_a_window_of_peaks_begins_everywhere_at_once() {
    struct Peak(AtomicU64);
    impl MetricSource for Peak {
        fn read_metrics(&self, sink: &mut MetricSink<'_>) {
            sink.put(Metric::Memory { allocated_bytes: 1, peak_bytes: self.0.load(Ordering::Relaxed) });
        }
        fn reset_peaks(&self) {
            self.0.store(1, Ordering::Relaxed);
        }
    }
    let registry = Registry::new();
    let node = || Node::new(NodeType::Memory).metrics(Arc::new(Peak(AtomicU64::new(9))));
    let _nodes = ["A", "B"].map(|name| registry.register(Subsystem::Allocation, name, node()).unwrap());
    registry.reset_peaks();
    let snapshot = registry.snapshot();
    let peaks = snapshot.by_type(NodeType::Memory).flat_map(|node| node.metrics());
    assert!(peaks.eq(&[Metric::Memory { allocated_bytes: 1, peak_bytes: 1 }; 2]));
}

#[test]
fn b65_a_snapshot_stays_as_it_was() {
    let registry = Registry::new();
    let (numbers, node) = gauge(&registry, "Loop");
    numbers.current.store(7, Ordering::Relaxed);
    let snapshot = registry.snapshot();
    numbers.current.store(8, Ordering::Relaxed);
    drop(node);
    assert_eq!(snapshot.node("Runtime/Loop").unwrap().utilization(), Some(0.07));
    assert!(registry.snapshot().node("Runtime/Loop").is_none());
}

/// A snapshot as of a moment that the test chooses.
fn snapshot_at(registry: &Registry, at: Instant) -> Snapshot {
    Snapshot::take(registry.shape(), at)
}

#[test]
fn trap22_rates_are_those_of_each_readers_own_snapshots() {
    let registry = Registry::new();
    let (numbers, _node) = gauge(&registry, "Loop");
    let start = Instant::now();
    let at = |seconds| snapshot_at(&registry, start + Duration::from_secs(seconds));
    let slow = at(0);
    numbers.count.store(100, Ordering::Relaxed);
    let quick = at(8);
    numbers.count.store(140, Ordering::Relaxed);
    let now = at(10);
    let rate = |earlier| now.rates_since(earlier);
    let expected = |per_second| vec![Rate { path: "Runtime/Loop", name: "calls", per_second }];
    assert_eq!((rate(&slow), rate(&quick)), (expected(14.0), expected(20.0)));
    assert!(rate(&now).is_empty(), "no time, no rates");
    numbers.count.store(3, Ordering::Relaxed);
    assert!(at(20).rates_since(&now).is_empty(), "it was reset");
}

#[test]
fn b66_questions_are_answered() {
    let registry = Registry::new();
    let memory = |bytes| Metric::Memory { allocated_bytes: bytes, peak_bytes: bytes };
    let _pages = registry.register(Subsystem::Storage, "Pages", fixed([memory(100)])).unwrap();
    let cache = registry.register(Subsystem::Storage, "Cache", fixed([memory(20)])).unwrap();
    let _hot = registry.register(&cache, "Hot", fixed([memory(3)])).unwrap();
    let _log = registry.register(Subsystem::Durability, "Log", used(300)).unwrap();
    let _pool = registry.register(Subsystem::DataEngine, "Pool", used(700)).unwrap();
    let snapshot = registry.snapshot();
    assert_eq!(
        paths(snapshot.subtree("Storage")),
        ["Storage", "Storage/Cache", "Storage/Cache/Hot", "Storage/Pages"]
    );
    assert_eq!(paths(snapshot.subtree("Nothing")), [""; 0]);
    assert_eq!(snapshot.subtree_memory_bytes("Storage"), 123);
    assert_eq!(snapshot.subtree_memory_bytes("Storage/Cache"), 23);
    assert_eq!(snapshot.subtree_memory_bytes("Root"), 123);
    assert_eq!(snapshot.most_utilized().unwrap().path(), "DataEngine/Pool");
    assert_eq!(paths(snapshot.utilized_above(0.2)), ["DataEngine/Pool", "Durability/Log"]);
    assert_eq!(paths(snapshot.utilized_above(0.5)), ["DataEngine/Pool"]);
}

#[test]
fn b66_a_symptom_goes_back_to_the_last_full_node_that_is_waited_for() {
    let registry = Registry::new();
    let node = |name, per_mille| registry.register(Subsystem::DataEngine, name, used(per_mille)).unwrap();
    let (pool, cache, log, disk) =
        (node("Pool", 900), node("Cache", 850), node("Log", 950), node("Disk", 500));
    for (from, to) in [(&pool, &cache), (&pool, &log), (&log, &disk)] {
        from.waits_for(to).unwrap();
    }
    let cause = |path: &str| registry.snapshot().root_cause(path).map(|node| node.path().to_owned());
    assert_eq!(cause("DataEngine/Pool").unwrap(), "DataEngine/Log", "the fuller one; the disk is not full");
    assert_eq!(cause("DataEngine/Cache").unwrap(), "DataEngine/Cache", "nothing else");
    assert_eq!(cause("DataEngine/Nothing"), None);
    log.waits_for(&pool).unwrap();
    assert_eq!(cause("DataEngine/Pool").unwrap(), "DataEngine/Log", "a circle ends");
    drop(log);
    assert_eq!(cause("DataEngine/Pool").unwrap(), "DataEngine/Cache", "what is gone is not waited for");
}

#[test]
fn trap21_the_worst_node_counts_not_the_fullest() {
    let registry = Registry::new();
    let _full = registry.register(Subsystem::Storage, "Cache", used(900)).unwrap();
    let critical = used(820).thresholds(Thresholds::CRITICAL);
    let _log = registry.register(Subsystem::Durability, "Log", critical).unwrap();
    let snapshot = registry.snapshot();
    assert_eq!(snapshot.most_utilized().unwrap().path(), "Storage/Cache");
    assert_eq!(snapshot.node("Storage/Cache").unwrap().health(), Health::Degraded);
    assert_eq!(snapshot.health(), Health::Unhealthy);
    let alerts = Alerts::new().update(&snapshot);
    let severities: Vec<_> = alerts
        .iter()
        .map(|alert| match alert {
            Alert::Raised { severity, symptom, .. } => (symptom.as_str(), *severity),
            Alert::Recovered { .. } => panic!("{alert:?}"),
        })
        .collect();
    assert_eq!(severities, [("Durability/Log", Severity::Critical), ("Storage/Cache", Severity::Warning)]);
}

#[test]
fn b68_thresholds_can_be_set_for_paths_that_exist() {
    let registry = Registry::new();
    let _log = registry.register(Subsystem::Durability, "Log", used(820)).unwrap();
    let health = || registry.snapshot().health();
    assert_eq!(health(), Health::Degraded);
    registry.set_thresholds("Durability/Log", Thresholds { degraded: 0.9, unhealthy: 0.99 }).unwrap();
    assert_eq!(health(), Health::Healthy);
    let unknown = registry.set_thresholds("Durability/Lag", Thresholds::DEFAULT).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no resource Durability/Lag");
    for (degraded, unhealthy) in [(0.9, 0.8), (0.0, 0.5), (0.5, f64::NAN), (0.5, f64::INFINITY)] {
        assert!(registry.set_thresholds("Durability/Log", Thresholds { degraded, unhealthy }).is_err());
    }
}

#[test]
fn b68_alerts_fire_when_it_gets_worse_and_report_recovery() {
    let registry = Registry::new();
    let (pool, pool_node) = gauge(&registry, "Pool");
    let (log, log_node) = gauge(&registry, "Log");
    pool_node.waits_for(&log_node).unwrap();
    let mut alerts = Alerts::new();
    let mut at = |in_pool, in_log| {
        pool.current.store(in_pool, Ordering::Relaxed);
        log.current.store(in_log, Ordering::Relaxed);
        alerts.update(&registry.snapshot())
    };
    let raised = |severity, symptom: &str, root_cause: &str, utilization| Alert::Raised {
        severity,
        symptom: symptom.to_owned(),
        root_cause: root_cause.to_owned(),
        utilization,
    };
    let recovered = |path: &str, from, to| Alert::Recovered { path: path.to_owned(), from, to };
    let (pool, log) = ("Runtime/Pool", "Runtime/Log");
    assert_eq!(at(10, 10), []);
    assert_eq!(
        at(85, 90),
        [raised(Severity::Warning, log, log, 0.90), raised(Severity::Warning, pool, log, 0.85)]
    );
    assert_eq!(at(86, 91), [], "no worse");
    assert_eq!(at(96, 91), [raised(Severity::Critical, pool, log, 0.96)]);
    assert_eq!(
        at(85, 10),
        [
            recovered(log, Health::Degraded, Health::Healthy),
            recovered(pool, Health::Unhealthy, Health::Degraded),
        ]
    );
    assert_eq!(at(96, 10), [raised(Severity::Critical, pool, pool, 0.96)], "worse again");
}

/// The payload of a panic, whose destructor panics too.
struct Spite;

impl Drop for Spite {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new("planted"));
    }
}

#[test]
fn b69_changes_are_told_in_order_and_panics_stay_where_they_are() {
    let registry = Registry::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let _broken = registry.subscribe(|_| std::panic::resume_unwind(Box::new(Spite)));
    let log = Arc::clone(&told);
    let subscription = registry.subscribe(move |mutation| {
        log.lock().unwrap().push((mutation.kind, mutation.path.clone(), mutation.node_type));
    });
    let parent = registry.register(Subsystem::Runtime, "Loop", Node::new(NodeType::Service)).unwrap();
    let _child = registry.register(&parent, "Queue", Node::new(NodeType::Node)).unwrap();
    drop(parent);
    drop(subscription);
    let _unheard = registry.register(Subsystem::Runtime, "Loop", Node::new(NodeType::Service)).unwrap();
    let told = told.lock().unwrap();
    let told: Vec<_> =
        told.iter().map(|(kind, path, node_type)| (*kind, path.as_str(), *node_type)).collect();
    let (added, removed) = (MutationKind::Added, MutationKind::Removed);
    assert_eq!(
        told,
        [
            (added, "Runtime/Loop", NodeType::Service),
            (added, "Runtime/Loop/Queue", NodeType::Node),
            (removed, "Runtime/Loop/Queue", NodeType::Node),
            (removed, "Runtime/Loop", NodeType::Service),
        ]
    );
}

#[test]
fn b69_subscribers_may_look_and_drop_but_not_register() {
    let registry = Registry::new();
    let held = registry.register(Subsystem::Storage, "Held", Node::new(NodeType::Node)).unwrap();
    let held = Mutex::new(Some(held));
    let answers = Arc::new(Mutex::new(Vec::new()));
    let (own, log) = (registry.clone(), Arc::clone(&answers));
    let _subscription = registry.subscribe(move |mutation| {
        let result = own.register(Subsystem::Storage, "New", Node::new(NodeType::Node));
        let is_refused = matches!(result, Err(ResourceError::ReentrantEdit));
        let is_seen = own.snapshot().node(&mutation.path).is_some();
        drop(held.lock().unwrap().take());
        log.lock().unwrap().push((mutation.path.clone(), is_refused, is_seen));
    });
    let _node = registry.register(Subsystem::Runtime, "Loop", Node::new(NodeType::Node)).unwrap();
    let expected = [("Runtime/Loop".to_owned(), true, true), ("Storage/Held".to_owned(), true, false)];
    assert_eq!(*answers.lock().unwrap(), expected);
}

#[test]
fn sources_may_own_nodes() {
    struct Owner(#[allow(dead_code, reason = "dropped with it")] Resource);
    impl MetricSource for Owner {
        fn read_metrics(&self, _: &mut MetricSink<'_>) {}
    }
    let registry = Registry::new();
    let inner = registry.register(Subsystem::Storage, "Inner", Node::new(NodeType::Node)).unwrap();
    let node = Node::new(NodeType::Node).metrics(Arc::new(Owner(inner)));
    let outer = registry.register(Subsystem::Storage, "Outer", node).unwrap();
    drop(outer);
    assert_eq!(paths(registry.snapshot().subtree("Storage")), ["Storage"]);
}

#[test]
fn snapshots_become_json() {
    let registry = Registry::new();
    let numbers = [
        Metric::Capacity { current: 9, max: 10 },
        Metric::Throughput { name: "calls", count: 3 },
        Metric::Throughput { name: "errors", count: 1 },
        Metric::Duration { name: "call", last_us: 1, average_us: 2, max_us: 3 },
    ];
    let node = fixed(numbers).exhaustion(ExhaustionPolicy::FailFast);
    let _node = registry.register(Subsystem::Runtime, "Loop", node).unwrap();
    let json = registry.snapshot().to_json();
    assert_eq!(json["health"], "Degraded");
    let nodes = json["nodes"].as_array().unwrap();
    let found = nodes.iter().find(|node| node["path"] == "Runtime/Loop").unwrap();
    assert_eq!(
        *found,
        serde_json::json!({
            "path": "Runtime/Loop",
            "type": "Node",
            "exhaustionPolicy": "FailFast",
            "health": "Degraded",
            "capacity": { "current": 9, "max": 10 },
            "throughput": [{ "name": "calls", "count": 3 }, { "name": "errors", "count": 1 }],
            "duration": [{ "name": "call", "lastUs": 1, "averageUs": 2, "maxUs": 3 }],
        })
    );
}

#[test]
fn the_trace_table_is_the_tree_in_preorder() {
    let registry = Registry::new();
    let node = Node::new(NodeType::Service).exhaustion(ExhaustionPolicy::Wait);
    let _node = registry.register(Subsystem::Runtime, "Loop", node).unwrap();
    let table = registry.trace_table();
    assert!(table.iter().zip(1..).all(|(node, id)| node.id == id));
    assert!(
        table
            .iter()
            .all(|node| node.parent_id < node.id && node.created_at_utc_ticks > 638_000_000_000_000_000)
    );
    assert_eq!((table[0].name.as_str(), table[0].parent_id), ("Root", -1));
    let found = table.iter().find(|node| node.name == "Loop").unwrap();
    let parent = &table[found.parent_id as usize - 1];
    assert_eq!((parent.name.as_str(), found.r#type, found.exhaustion_policy), ("Runtime", 10, 2));
}

#[test]
fn b67_exhaustion_is_transient_and_says_what_is_used_up() {
    let error = ResourceExhausted {
        path: "DataEngine/Pool".to_owned(),
        node_type: NodeType::TransactionPool,
        current: 1000,
        limit: 1000,
    };
    assert_eq!(error.to_string(), "DataEngine/Pool is used up: 1000 of 1000");
    assert_eq!((error.code(), error.is_transient()), (ErrorCode::RESOURCE_EXHAUSTED, true));
}

/// What is done to the tree, with numbers that pick among what there is.
#[derive(Debug, Clone)]
enum Step {
    Add { parent: usize, name: u8, bytes: u64 },
    Remove(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (any::<usize>(), 0..4u8, 0..1000u64).prop_map(|(parent, name, bytes)| Step::Add { parent, name, bytes }),
        1 => any::<usize>().prop_map(Step::Remove),
    ]
}

proptest! {
    /// The tree against a plain map from paths to bytes.
    #[test]
    fn b65_the_tree_behaves_like_a_map_of_paths(steps in prop::collection::vec(step(), 1..60)) {
        let registry = Registry::new();
        let mut model: BTreeMap<String, u64> = BTreeMap::new();
        let mut held: Vec<(String, Resource)> = Vec::new();
        for step in steps {
            match step {
                Step::Add { parent, name, bytes } => {
                    let name = name.to_string();
                    let at = parent % (held.len() + 1);
                    let (path, id) = match held.get(at) {
                        Some((path, resource)) => (format!("{path}/{name}"), resource.id()),
                        None => (format!("Storage/{name}"), Subsystem::Storage.into()),
                    };
                    let node = fixed([Metric::Memory { allocated_bytes: bytes, peak_bytes: bytes }]);
                    let result = registry.register(id, &name, node);
                    prop_assert_eq!(result.is_ok(), !model.contains_key(&path));
                    if let Ok(resource) = result {
                        model.insert(path.clone(), bytes);
                        held.push((path, resource));
                    }
                }
                Step::Remove(at) if !held.is_empty() => {
                    let (path, resource) = held.swap_remove(at % held.len());
                    drop(resource);
                    let below = format!("{path}/");
                    let is_gone = |other: &str| other == path || other.starts_with(&below);
                    model.retain(|other, _| !is_gone(other));
                    held.retain(|(other, _)| !is_gone(other));
                }
                Step::Remove(_) => {}
            }
            let snapshot = registry.snapshot();
            let mut found = paths(snapshot.subtree("Storage"));
            found.remove(0);
            found.sort_unstable();
            prop_assert!(found.iter().eq(model.keys()));
            for path in model.keys() {
                let below = format!("{path}/");
                let bytes = model.iter().filter(|(other, _)| *other == path || other.starts_with(&below));
                prop_assert_eq!(snapshot.subtree_memory_bytes(path), bytes.map(|(_, bytes)| bytes).sum::<u64>());
            }
        }
    }
}
