//! Overload through a whole runtime, stepped, with ticks that are taken to last as long as the test says.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use typhon_engine::Engine;
use typhon_runtime::graph::Graph;
use typhon_runtime::overload::{Rung, stagger_offsets};
use typhon_runtime::schedule::Schedule;
use typhon_runtime::{Priority, Runtime, SkipReason};

const INTERVAL: Duration = Duration::from_nanos(16_666_667);

/// A runtime that is stepped along its own grid, with ticks of a given length.
struct Stepped {
    runtime: Runtime,
    now: Duration,
}

impl Stepped {
    fn new(declare: impl FnOnce(&Schedule)) -> Self {
        let engine = Engine::builder().build().unwrap();
        Self { runtime: Runtime::create(&engine, declare).unwrap(), now: Duration::ZERO }
    }

    fn tick(&mut self, intervals: f64) {
        self.now += INTERVAL * u32::from(self.runtime.overload().multiplier);
        self.runtime.step_as_if(self.now, INTERVAL.mul_f64(intervals)).unwrap();
    }

    /// Level and multiplier.
    fn rung(&self) -> (u8, u8) {
        let Rung { level, multiplier } = self.runtime.overload();
        (level.0, multiplier)
    }

    /// Why a system did not run in the last tick.
    fn skip_reason(&self, name: &str) -> SkipReason {
        let telemetry = self.runtime.telemetry();
        let tick = telemetry.latest().unwrap().tick;
        let system = self.runtime.graph().find_system(name).unwrap();
        telemetry.system(tick, system).unwrap().skip_reason
    }

    fn climb_to(&mut self, level: u8) {
        while self.rung().0 < level {
            self.tick(50.0);
        }
    }
}

fn one_of_each(schedule: &Schedule) {
    let sim = schedule.public_track().declare_dag("Sim");
    sim.callback_system("Vital", |_| {}).priority(Priority::Critical).throttled_tick_divisor(4);
    sim.callback_system("Sparse", |_| {}).throttled_tick_divisor(4);
    sim.callback_system("Decoration", |_| {}).priority(Priority::Low).can_shed();
}

#[test]
fn b52_levels_leave_out_what_systems_allow() {
    let mut world = Stepped::new(one_of_each);
    world.tick(0.5);
    for name in ["Vital", "Sparse", "Decoration"] {
        assert_eq!(world.skip_reason(name), SkipReason::NOT_SKIPPED);
    }
    world.climb_to(1);
    let mut sparse_runs = 0;
    for _ in 0..16 {
        world.tick(0.8);
        assert_eq!(world.skip_reason("Vital"), SkipReason::NOT_SKIPPED);
        assert_eq!(world.skip_reason("Decoration"), SkipReason::SHED);
        match world.skip_reason("Sparse") {
            SkipReason::NOT_SKIPPED => sparse_runs += 1,
            reason => assert_eq!(reason, SkipReason::THROTTLED),
        }
    }
    assert_eq!((world.rung(), sparse_runs), ((1, 1), 4));
}

#[test]
fn b51_the_ladder_is_climbed_and_left_again() {
    let mut world = Stepped::new(one_of_each);
    let mut seen = vec![world.rung()];
    let mut watch = |world: &mut Stepped, intervals, ticks| {
        for _ in 0..ticks {
            world.tick(intervals);
            if *seen.last().unwrap() != world.rung() {
                seen.push(world.rung());
            }
        }
    };
    watch(&mut world, 50.0, 40);
    watch(&mut world, 0.1, 200);
    let up = [(0, 1), (1, 1), (2, 1), (3, 2), (3, 3), (3, 4), (3, 6), (4, 6)];
    let expected: Vec<_> = up.into_iter().chain(up.into_iter().rev().skip(1)).collect();
    assert_eq!(seen, expected);
    let last = world.runtime.telemetry().latest().unwrap();
    assert_eq!((last.level.0, last.multiplier), (0, 1), "what was in force during the tick");
}

#[test]
fn b54_critical_overload_calls_once_per_entry() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let called = Arc::clone(&calls);
    let mut world = Stepped::new(one_of_each);
    world.runtime.on_critical_overload(move |tick| called.lock().unwrap().push(tick.number));
    world.climb_to(4);
    (0..20).for_each(|_| world.tick(50.0));
    assert_eq!(*calls.lock().unwrap(), [35], "after the 35th tick");
    (0..20).for_each(|_| world.tick(0.1));
    assert_eq!(world.rung(), (3, 6));
    world.climb_to(4);
    assert_eq!(calls.lock().unwrap().len(), 2);
}

#[test]
fn trap16_a_stretched_tick_measures_its_length_and_a_fixed_step_does_not() {
    for (is_fixed, expected) in [(false, 6.0 / 60.0), (true, 1.0 / 60.0)] {
        let deltas = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&deltas);
        let engine = Engine::builder()
            .runtime(|runtime| {
                if is_fixed {
                    runtime.time_step = typhon_engine::options::TimeStep::Fixed;
                }
            })
            .build()
            .unwrap();
        let runtime = Runtime::create(&engine, |schedule| {
            let sim = schedule.public_track().declare_dag("Sim");
            sim.callback_system("Watch", move |ctx| seen.lock().unwrap().push(ctx.delta_seconds()));
        });
        let mut world = Stepped { runtime: runtime.unwrap(), now: Duration::ZERO };
        world.climb_to(4);
        world.tick(50.0);
        let last = *deltas.lock().unwrap().last().unwrap();
        assert!((last - expected).abs() < 1e-6, "{last} is not {expected}");
    }
}

#[test]
fn plain_steps_know_no_overload() {
    let slow = Stepped::new(|schedule| {
        let sim = schedule.public_track().declare_dag("Sim");
        sim.callback_system("Slow", |_| std::thread::yield_now());
    });
    for tick in 1..50 {
        slow.runtime.step(Duration::from_nanos(tick)).unwrap();
    }
    assert_eq!(slow.rung(), (0, 1));
}

/// A producer that is throttled, its consumer, and a third system in the same position without queues.
fn joined(schedule: &Schedule, consumed: &Arc<AtomicU32>) {
    let sim = schedule.public_track().declare_dag("Sim");
    let queue = sim.event_queue::<u32>("Events", 16);
    sim.callback_system("Other", |_| {}).throttled_tick_divisor(4);
    let (push, read, consumed) = (queue.clone(), queue.clone(), Arc::clone(consumed));
    sim.callback_system("Producer", move |ctx| push.push(ctx, 1))
        .throttled_tick_divisor(4)
        .writes_events(&queue);
    sim.callback_system("Consumer", move |ctx| -> typhon_runtime::system::SystemResult {
        consumed.fetch_add(read.read(ctx)?.len() as u32, Ordering::Relaxed);
        Ok(())
    })
    .throttled_tick_divisor(4)
    .reads_events(&queue);
}

#[test]
fn b52_systems_joined_by_a_queue_keep_step() {
    let consumed = Arc::new(AtomicU32::new(0));
    let mut world = Stepped::new(|schedule| joined(schedule, &consumed));
    let offset = |graph: &Graph, name| stagger_offsets(graph)[graph.find_system(name).unwrap().as_usize()];
    let graph = world.runtime.graph();
    assert_eq!(["Other", "Producer", "Consumer"].map(|name| offset(graph, name)), [0, 1, 1]);
    world.climb_to(1);
    consumed.store(0, Ordering::Relaxed);
    (0..40).for_each(|_| world.tick(0.8));
    assert_eq!(consumed.load(Ordering::Relaxed), 10, "each of ten runs saw its event");
}
