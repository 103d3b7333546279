//! What the tree of resources says about a runtime: its ticks, and how full its queues are.

use crate::SkipReason;
use crate::event_queue::{FullPolicy, QueueCounters};
use crate::graph::{Graph, QueueNode};
use crate::telemetry::Telemetry;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use typhon_engine::Engine;
use typhon_engine::resources::{
    ExhaustionPolicy, Metric, MetricSink, MetricSource, Node, NodeType, Resource, ResourceError, Subsystem,
};

const RELAXED: Ordering = Ordering::Relaxed;

/// The numbers of a runtime. The driver writes them, once per tick.
#[derive(Debug)]
pub(crate) struct Numbers {
    ticks: AtomicU64,
    missed_ticks: AtomicU64,
    last_us: AtomicU64,
    total_us: AtomicU64,
    max_us: AtomicU64,
    pub(crate) queues: Box<[Arc<QueueNumbers>]>,
    graph: Arc<Graph>,
    telemetry: Telemetry,
}

/// The numbers of one queue.
#[derive(Debug)]
pub(crate) struct QueueNumbers {
    limit: u64,
    /// Most events that were in it at once, in the last tick.
    depth: AtomicU64,
    produced: AtomicU64,
    overflow: AtomicU64,
}

impl Numbers {
    pub(crate) fn record_tick(&self, actual_ns: u64, missed_ticks: u64) {
        let us = actual_ns / 1_000;
        self.ticks.store(self.ticks.load(RELAXED) + 1, RELAXED);
        self.missed_ticks.store(self.missed_ticks.load(RELAXED) + missed_ticks, RELAXED);
        self.last_us.store(us, RELAXED);
        self.total_us.store(self.total_us.load(RELAXED) + us, RELAXED);
        self.max_us.fetch_max(us, RELAXED);
    }
}

impl QueueNumbers {
    fn new(queue: &QueueNode) -> Arc<Self> {
        let zero = || AtomicU64::new(0);
        let limit = u64::from(queue.options.limit());
        Arc::new(Self { limit, depth: zero(), produced: zero(), overflow: zero() })
    }

    pub(crate) fn record(&self, counters: &QueueCounters) {
        self.depth.store(u64::from(counters.peak_depth), RELAXED);
        self.produced.store(self.produced.load(RELAXED) + u64::from(counters.produced), RELAXED);
        self.overflow.store(self.overflow.load(RELAXED) + u64::from(counters.overflow), RELAXED);
    }
}

impl MetricSource for Numbers {
    fn read_metrics(&self, sink: &mut MetricSink<'_>) {
        let ticks = self.ticks.load(RELAXED);
        sink.put(Metric::Throughput { name: "ticks", count: ticks });
        sink.put(Metric::Throughput { name: "missed_ticks", count: self.missed_ticks.load(RELAXED) });
        sink.put(Metric::Duration {
            name: "tick",
            last_us: self.last_us.load(RELAXED),
            average_us: self.total_us.load(RELAXED) / ticks.max(1),
            max_us: self.max_us.load(RELAXED),
        });
    }

    fn reset_peaks(&self) {
        self.max_us.store(0, RELAXED);
    }

    /// What became of every system in the last tick.
    fn debug_properties(&self, say: &mut dyn FnMut(&str, &dyn fmt::Display)) {
        let Ok(latest) = self.telemetry.latest() else { return };
        let Ok((tick, systems)) = self.telemetry.tick_with_systems(latest.tick) else { return };
        say("tick", &tick.tick);
        for (node, system) in self.graph.systems().iter().zip(&systems) {
            match system.skip_reason {
                SkipReason::NOT_SKIPPED => say(&node.name, &format_args!("{:.1} µs", system.duration_us)),
                reason => say(&node.name, &reason),
            }
        }
    }
}

impl MetricSource for QueueNumbers {
    fn read_metrics(&self, sink: &mut MetricSink<'_>) {
        sink.put(Metric::Capacity { current: self.depth.load(RELAXED), max: self.limit });
        sink.put(Metric::Throughput { name: "produced", count: self.produced.load(RELAXED) });
        sink.put(Metric::Throughput { name: "overflow", count: self.overflow.load(RELAXED) });
    }
}

impl Numbers {
    /// Of a runtime with this graph, before its first tick.
    pub(crate) fn new(graph: &Arc<Graph>, telemetry: Telemetry) -> Arc<Self> {
        let zero = || AtomicU64::new(0);
        Arc::new(Self {
            ticks: zero(),
            missed_ticks: zero(),
            last_us: zero(),
            total_us: zero(),
            max_us: zero(),
            queues: graph.queues().iter().map(QueueNumbers::new).collect(),
            graph: Arc::clone(graph),
            telemetry,
        })
    }
}

/// Registers a runtime and its queues.
///
/// # Errors
/// A subscriber of the tree creates the runtime.
pub(crate) fn register(
    engine: &Engine,
    graph: &Graph,
    numbers: &Arc<Numbers>,
) -> Result<Vec<Resource>, ResourceError> {
    let registry = engine.resources();
    let node = Node::new(NodeType::Service).metrics(numbers.clone());
    let mut nodes = vec![registry.register(Subsystem::Runtime, &engine.unique_name("Runtime"), node)?];
    for (id, (queue, numbers)) in graph.queues().iter().zip(&numbers.queues).enumerate() {
        let exhaustion = match queue.options.full {
            FullPolicy::Error | FullPolicy::Grow(_) => ExhaustionPolicy::FailFast,
            FullPolicy::DropNewest => ExhaustionPolicy::Degrade,
        };
        let node = || Node::new(NodeType::Node).exhaustion(exhaustion).metrics(numbers.clone());
        // A name that is none in the tree, as one with a slash.
        let instead = |_| registry.register(&nodes[0], &format!("Queue-{id}"), node());
        let registered = registry.register(&nodes[0], &queue.name, node()).or_else(instead)?;
        nodes.push(registered);
    }
    Ok(nodes)
}
