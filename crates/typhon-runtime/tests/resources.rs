//! What the tree of resources says about a runtime.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::sync::{Arc, Mutex};
use std::time::Duration;
use typhon_engine::resources::{
    ExhaustionPolicy, Health, Metric, Mutation, MutationKind, NodeType, ResourceError, Snapshot,
};
use typhon_engine::{Coded, Engine, ErrorCode};
use typhon_runtime::Runtime;
use typhon_runtime::event_queue::{FullPolicy, QueueOptions};

/// A runtime with one queue of four events, into which `pushes` are pushed in every tick. Errors are passed on.
fn runtime(queue_name: &'static str, full: FullPolicy, pushes: u32) -> (Engine, Runtime) {
    let engine = Engine::builder().build().unwrap();
    let runtime = Runtime::create(&engine, |schedule| {
        let sim = schedule.public_track().declare_dag("Sim");
        let queue = sim.event_queue::<u32>(queue_name, QueueOptions::from(4).full(full));
        let (push, read) = (queue.clone(), queue.clone());
        sim.callback_system("Push", move |ctx| (0..pushes).try_for_each(|event| push.push(ctx, event)))
            .writes_events(&queue);
        sim.callback_system("Read", move |ctx| read.read(ctx).map(drop)).reads_events(&queue);
    });
    (engine, runtime.unwrap())
}

/// Path of a node by its name; other tests of the process have nodes of their own.
fn path_of(snapshot: &Snapshot, name: &str) -> Option<String> {
    let end = format!("/{name}");
    snapshot.subtree("Runtime").map(|node| node.path().to_owned()).find(|path| path.ends_with(&end))
}

#[test]
fn b61_a_runtime_and_its_queues_have_nodes_while_they_live() {
    let (engine, runtime) = runtime("Alive", FullPolicy::Error, 3);
    for tick in 1..=10 {
        runtime.step(Duration::from_millis(tick)).unwrap();
    }
    let snapshot = engine.resources().snapshot();
    let path = path_of(&snapshot, "Alive").unwrap();
    let queue = snapshot.node(&path).unwrap();
    assert_eq!(
        queue.metrics(),
        [
            Metric::Capacity { current: 3, max: 4 },
            Metric::Throughput { name: "produced", count: 30 },
            Metric::Throughput { name: "overflow", count: 0 },
        ]
    );
    let parent = snapshot.node(path.strip_suffix("/Alive").unwrap()).unwrap();
    assert_eq!(parent.metrics()[0], Metric::Throughput { name: "ticks", count: 10 });
    drop((runtime, engine));
    let engine = Engine::builder().build().unwrap();
    assert_eq!(path_of(&engine.resources().snapshot(), "Alive"), None);
}

#[test]
fn b61_nodes_go_the_innermost_first_and_the_engine_last() {
    let (engine, runtime) = runtime("Going", FullPolicy::Error, 1);
    let gone = Arc::new(Mutex::new(Vec::new()));
    let (told, mine) = (Arc::clone(&gone), path_of(&engine.resources().snapshot(), "Going").unwrap());
    let _subscription = engine.resources().subscribe(move |change: &Mutation| {
        if change.kind == MutationKind::Removed {
            told.lock().unwrap().push((change.path.clone(), change.node_type));
        }
    });
    // The runtime keeps its engine open.
    drop(engine);
    drop(runtime);
    let gone = gone.lock().unwrap();
    let at = |path: &str| gone.iter().position(|(gone, _)| gone == path).unwrap();
    let (queue, own) = (at(&mine), at(mine.strip_suffix("/Going").unwrap()));
    assert!(queue < own, "{gone:?}");
    // Engines of other tests go too; this thread's went right after its runtime.
    assert!(gone[own..].iter().any(|(_, node_type)| *node_type == NodeType::Engine), "{gone:?}");
}

#[test]
fn b64_systems_are_no_nodes_and_are_told_apart_on_demand() {
    let (engine, runtime) = runtime("Detailed", FullPolicy::Error, 5);
    let registry = engine.resources();
    let snapshot = registry.snapshot();
    let path = path_of(&snapshot, "Detailed").unwrap().strip_suffix("/Detailed").unwrap().to_owned();
    assert_eq!(snapshot.subtree(&path).count(), 2, "the runtime and its queue");
    assert_eq!(registry.debug_properties(&path).unwrap(), [], "no tick has ended");
    runtime.step(Duration::from_millis(1)).unwrap();
    let said = registry.debug_properties(&path).unwrap();
    let expected = [("tick", "1"), ("Push", "Exception"), ("Read", "DependencyFailed")];
    assert_eq!(said, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(registry.debug_properties(&format!("{path}/Detailed")).unwrap(), []);
    drop(runtime);
    let gone = registry.debug_properties(&path).unwrap_err();
    assert!(matches!(gone, ResourceError::UnknownPath { path: said } if said == path));
}

#[test]
fn b67_a_queue_at_its_limit_does_what_its_policy_says() {
    let cases = [
        ("FailsFast", FullPolicy::Error, ExhaustionPolicy::FailFast, 1),
        ("Grows", FullPolicy::Grow(8), ExhaustionPolicy::FailFast, 1),
        ("Degrades", FullPolicy::DropNewest, ExhaustionPolicy::Degrade, 0),
    ];
    for (name, full, policy, failed_systems) in cases {
        let (engine, runtime) = runtime(name, full, 9);
        let outcome = runtime.step(Duration::from_millis(1)).unwrap();
        assert_eq!(outcome.failed_systems, failed_systems, "{name}");
        let snapshot = engine.resources().snapshot();
        let node = snapshot.node(&path_of(&snapshot, name).unwrap()).unwrap();
        assert_eq!(node.exhaustion(), policy);
        // What a failed system pushed is discarded; a queue that drops is full.
        let expected =
            if failed_systems == 0 { (Some(1.0), Health::Unhealthy) } else { (Some(0.0), Health::Healthy) };
        assert_eq!((node.utilization(), node.health()), expected, "{name}");
        if let Some(failure) = outcome.failure {
            assert!(failure.message.contains("is full"), "{failure:?}");
        }
    }
    let full = typhon_runtime::event_queue::QueueError::Full { queue: String::new(), capacity: 4 };
    assert_eq!(full.code(), ErrorCode::EVENT_QUEUE_FULL);
}

#[test]
fn a_queue_whose_name_is_no_name_in_the_tree_has_a_number() {
    let (engine, runtime) = runtime("a/b", FullPolicy::Error, 1);
    assert!(path_of(&engine.resources().snapshot(), "Queue-0").is_some());
    drop(runtime);
}
