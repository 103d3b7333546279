//! What the small parts of a tick cost: events from system to system, the telemetry of a tick, a look at overload, a
//! snapshot of resources. Each beside the plainest thing that does part of it.
//!
//! `cargo run --release --bin tick-parts`

use std::cell::RefCell;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use typhon_engine::options::OverloadOptions;
use typhon_engine::resources::{Metric, MetricSink, MetricSource, Node, NodeType, Registry, Subsystem};
use typhon_runtime::event_queue::{Outboxes, Producer, Queue, QueueScope, Roles, UsesQueues};
use typhon_runtime::overload::{Overload, TickLoad};
use typhon_runtime::telemetry::{SystemTelemetry, TickTelemetry, telemetry_ring};
use typhon_runtime::{QueueId, SkipReason, SystemIndex};
use typhon_trace::event::OverloadLevel;

const ROUNDS: usize = 15;
const EVENTS: u64 = 1024;
const SYSTEMS: usize = 200;
const NODES: usize = 400;
const PRODUCER: SystemIndex = SystemIndex::new(0);
const READER: SystemIndex = SystemIndex::new(1);

/// Nanoseconds per item: the median of some rounds, each of which repeats `run` for a while.
fn measure(name: &str, items: u64, mut run: impl FnMut()) {
    let mut round = || {
        let (start, mut runs) = (Instant::now(), 0u64);
        while start.elapsed().as_millis() < 40 {
            // Looking at the clock costs as much as some of what is measured.
            (0..64).for_each(|_| run());
            runs += 64;
        }
        start.elapsed().as_nanos() as f64 / (runs * items) as f64
    };
    round();
    let mut rounds: Vec<f64> = (0..ROUNDS).map(|_| round()).collect();
    rounds.sort_by(f64::total_cmp);
    println!("{name:<58} {:>9.1} ns", rounds[ROUNDS / 2]);
}

struct Ctx<'a>(&'a RefCell<Outboxes>, SystemIndex);

impl UsesQueues for Ctx<'_> {
    fn queue_scope(&self) -> QueueScope<'_> {
        QueueScope { outboxes: self.0, system: self.1 }
    }
}

fn events() {
    let queue = Queue::<u64>::new(QueueId::new(0), "Events", (EVENTS as u32).into());
    let erased = queue.erased();
    let producers = vec![Producer { system: PRODUCER, topological_index: 0 }];
    erased.bind(Roles { producers, readers: vec![READER], drainers: Vec::new() }).expect("a fresh queue");
    let outboxes = RefCell::new(Outboxes::new(&[queue.erased()]));
    let tick = |events: u64| {
        erased.begin_tick();
        outboxes.borrow_mut().begin_chunk(&[queue.id()], PRODUCER, 0);
        let ctx = Ctx(&outboxes, PRODUCER);
        (0..events).for_each(|event| queue.push(&ctx, event).expect("there is room"));
        outboxes.borrow_mut().end_chunk(&[queue.id()], true);
        erased.producer_done(PRODUCER, true);
        let sum: u64 = queue.read(&Ctx(&outboxes, READER)).expect("a reader").iter().sum();
        erased.reader_done(READER, true);
        black_box((sum, erased.counters()));
    };
    measure("queue: tick without an event", 1, || tick(0));
    measure("queue: push, merge and read an event, 1,024 a tick", EVENTS, || tick(EVENTS));
    let list = Mutex::new(Vec::new());
    measure("floor: the same through a Mutex<Vec>", EVENTS, || {
        (0..EVENTS).for_each(|event| list.lock().expect("not poisoned").push(black_box(event)));
        let mut list = list.lock().expect("not poisoned");
        black_box(list.iter().sum::<u64>());
        list.clear();
    });
    let (sender, receiver) = channel();
    measure("peer: the same through std::sync::mpsc", EVENTS, || {
        (0..EVENTS).for_each(|event| sender.send(black_box(event)).expect("there is a receiver"));
        black_box(receiver.try_iter().sum::<u64>());
    });
}

fn telemetry() {
    let (mut writer, telemetry) = telemetry_ring(1024, SYSTEMS);
    let mut number = 1;
    let system = SystemTelemetry {
        transition_latency_us: 1.0,
        duration_us: 2.0,
        straggler_gap_us: 3.0,
        workers: 1,
        skip_reason: SkipReason::NOT_SKIPPED,
    };
    measure("telemetry: record a tick of 200 systems", 1, || {
        let tick = TickTelemetry {
            tick: number,
            target_ms: 16.7,
            actual_ms: 5.0,
            overrun_ratio: 0.3,
            interval_ms: 16.7,
            late_ms: 0.0,
            active_workers: 2,
            active_systems: 200,
            level: OverloadLevel::NORMAL,
            multiplier: 1,
            queue_depth: 0,
            overflow_count: 0,
            missed_ticks: 0,
        };
        writer.record(tick, (0..SYSTEMS).map(|_| system));
        number += 1;
    });
    measure("telemetry: read the last tick", 1, || _ = black_box(telemetry.latest()));
}

fn overload() {
    let mut overload = Overload::new(60, &OverloadOptions::default());
    let load = TickLoad { base_ratio: 0.5, ..TickLoad::default() };
    measure("overload: judge a tick", 1, || _ = black_box(overload.update(black_box(load))));
}

#[derive(Default)]
struct Numbers([AtomicU64; 4]);

impl MetricSource for Numbers {
    fn read_metrics(&self, sink: &mut MetricSink<'_>) {
        let [current, max, allocated_bytes, peak_bytes] =
            [0, 1, 2, 3].map(|at: usize| self.0[at].load(Ordering::Relaxed));
        sink.put(Metric::Capacity { current, max });
        sink.put(Metric::Memory { allocated_bytes, peak_bytes });
    }
}

fn resources() {
    let registry = Registry::new();
    let sources: Vec<Arc<Numbers>> = (0..NODES).map(|_| Arc::default()).collect();
    let nodes = sources.iter().enumerate().map(|(at, source)| {
        let node = Node::new(NodeType::Segment).metrics(source.clone());
        registry.register(Subsystem::Storage, &format!("Segment-{at}"), node).expect("names differ")
    });
    let _nodes: Vec<_> = nodes.collect();
    measure("resources: snapshot, per node of 400 with two metrics", NODES as u64, || {
        _ = black_box(registry.snapshot());
    });
    measure("floor: the four numbers of each into a Vec", NODES as u64, || {
        let mut numbers = Vec::with_capacity(NODES * 4);
        let each = sources.iter().flat_map(|source| &source.0);
        numbers.extend(each.map(|number| number.load(Ordering::Relaxed)));
        _ = black_box(numbers);
    });
    let snapshot = registry.snapshot();
    measure("resources: health, per node", NODES as u64, || _ = black_box(snapshot.health()));
}

fn main() {
    events();
    telemetry();
    overload();
    resources();
}
