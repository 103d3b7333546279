//! What the tree of resources says about a runtime.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::time::Duration;
use typhon_engine::resources::{ExhaustionPolicy, Health, Metric, Snapshot};
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
