//! Random schedules with skips, errors, panics and chunks, against a straightforward answer, and against each other.
//!
//! The number of seeds and ticks comes from the environment, for long runs:
//! `SEEDS=20 TICKS=10000 cargo test -p typhon-runtime --release --test random_graphs`.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod worlds;

use std::sync::atomic::Ordering;
use std::time::Duration;
use typhon_runtime::{Runtime, SkipReason, SystemIndex};
use worlds::{Deed, Trouble, Watched, World};

const TROUBLE: Trouble = Trouble { skips: 10, errors: 2, panics: 2 };

fn number(name: &str, default: i64) -> i64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

fn seeds() -> impl Iterator<Item = u64> {
    1..=number("SEEDS", 6) as u64
}

fn ticks() -> i64 {
    number("TICKS", 40)
}

fn moment(tick: i64) -> Duration {
    Duration::from_millis(tick as u64 * 10)
}

/// What becomes of every system in a tick, worked out one after the other.
fn expected(world: &World, runtime: &Runtime, tick: i64) -> Vec<SkipReason> {
    let mut reasons: Vec<SkipReason> = Vec::new();
    for (at, plan) in world.systems.iter().enumerate() {
        let predecessors = runtime.graph().predecessors(SystemIndex::new(at as u16));
        let has_failed = |before: &SystemIndex| reasons[before.as_usize()].0 >= SkipReason::EXCEPTION.0;
        reasons.push(match world.deed(at, tick) {
            _ if predecessors.iter().any(has_failed) => SkipReason::DEPENDENCY_FAILED,
            Deed::Skip => SkipReason::SHOULD_RUN_FALSE,
            _ if (tick + at as i64) % i64::from(plan.divisor) != 0 => SkipReason::THROTTLED,
            Deed::Fail | Deed::Panic => SkipReason::EXCEPTION,
            Deed::Run => SkipReason::NOT_SKIPPED,
        });
    }
    reasons
}

fn check_tick(world: &World, runtime: &Runtime, watched: &Watched, tick: i64, context: &str) {
    let (_, systems) = runtime.telemetry().tick_with_systems(tick).unwrap();
    let expected = expected(world, runtime, tick);
    let found: Vec<_> = systems.iter().map(|system| system.skip_reason).collect();
    assert_eq!(found, expected, "{context}");
    for (at, reason) in expected.iter().enumerate() {
        let (runs, chunks) = (watched.runs[at].load(Ordering::Relaxed), world.systems[at].chunks);
        match *reason {
            SkipReason::NOT_SKIPPED => assert_eq!(runs, chunks, "{context}: system {at}"),
            SkipReason::EXCEPTION => {
                assert!((1..=chunks).contains(&runs), "{context}: system {at} ran {runs}")
            }
            _ => assert_eq!(runs, 0, "{context}: system {at}"),
        }
    }
    assert_eq!(watched.overlaps.load(Ordering::Relaxed), 0, "{context}: conflicting systems overlapped");
    for edge in runtime.graph().edges() {
        let ended = watched.ended[edge.from.as_usize()].load(Ordering::SeqCst);
        let began = watched.began[edge.to.as_usize()].load(Ordering::SeqCst);
        assert!(ended < began, "{context}: {} began before {} had ended", edge.to, edge.from);
    }
}

#[test]
fn b31_every_system_completes_once_after_all_of_its_predecessors() {
    for seed in seeds() {
        let world = World::random(seed, 200, TROUBLE);
        for workers in 1..=4 {
            let (runtime, watched) = world.runtime(workers, |_| {});
            for tick in 1..=ticks() {
                watched.begin_tick();
                runtime.step(moment(tick)).unwrap();
                let context = format!("seed {seed}, {workers} workers, tick {tick}");
                check_tick(&world, &runtime, &watched, tick, &context);
            }
            runtime.shutdown().unwrap();
            assert_eq!(runtime.lost_wakes(), 0);
        }
    }
}

/// Hashes of the world after each tick of a runtime that is stepped.
fn stepped(world: &World, workers: u8, helps: bool) -> Vec<u64> {
    let (runtime, watched) = world.runtime(workers, |_| {});
    runtime.always_call_helpers(helps);
    let hash = |tick| {
        runtime.step(moment(tick)).unwrap();
        watched.hash()
    };
    (1..=ticks()).map(hash).collect()
}

/// Ticks and hash of a runtime that keeps its own time, of at least so many ticks.
fn keeping_time(world: &World, workers: u8, ticks: i64) -> (i64, u64) {
    let (runtime, watched) = world.runtime(workers, |_| {});
    runtime.start().unwrap();
    while runtime.current_tick() <= ticks {
        std::thread::sleep(Duration::from_millis(1));
    }
    runtime.shutdown().unwrap();
    (runtime.current_tick() - 1, watched.hash())
}

#[test]
fn trap20_all_ways_of_running_give_the_same_world() {
    for seed in seeds() {
        let world = World::random(seed ^ 0xA5A5, 60, TROUBLE);
        let alone = stepped(&world, 1, false);
        for workers in 2..=4 {
            assert_eq!(stepped(&world, workers, true), alone, "seed {seed}, {workers} workers");
        }
        assert_eq!(stepped(&world, 2, false), alone, "seed {seed}, helpers as they pay");
        for workers in [1, 3] {
            let (ran, hash) = keeping_time(&world, workers, ticks());
            let (runtime, watched) = world.runtime(1, |_| {});
            (1..=ran).for_each(|tick| drop(runtime.step(moment(tick)).unwrap()));
            assert_eq!(hash, watched.hash(), "seed {seed}, {workers} workers, {ran} ticks");
        }
    }
}
