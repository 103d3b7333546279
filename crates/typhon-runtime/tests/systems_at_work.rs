//! What systems see while they run, when consumers of events run at all, and what is said about both afterwards.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;
use typhon_engine::Engine;
use typhon_engine::options::{TimeStep, WorkerCount};
use typhon_runtime::schedule::Schedule;
use typhon_runtime::{Runtime, SkipReason};

/// A runtime whose helpers are called in every tick.
fn runtime(workers: u8, declare: impl FnOnce(&Schedule)) -> Runtime {
    let engine = Engine::builder().runtime(|runtime| {
        runtime.worker_count = WorkerCount::Fixed(workers);
        runtime.base_tick_rate_hz = 10;
        runtime.time_step = TimeStep::Measured;
    });
    let runtime = Runtime::create(&engine.build().unwrap(), declare).unwrap();
    runtime.always_call_helpers(true);
    runtime
}

fn step(runtime: &Runtime, tick: u64) {
    runtime.step(Duration::from_millis(200 * tick)).unwrap();
}

#[test]
fn b9_a_system_sees_its_tick_its_worker_and_its_chunk() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (callback, chunked) = (Arc::clone(&seen), Arc::clone(&seen));
    let runtime = runtime(3, |schedule| {
        let sim = schedule.public_track().declare_dag("Sim");
        sim.callback_system("Once", move |ctx| {
            let steps = (ctx.delta_seconds(), ctx.tick.measured_delta_seconds, ctx.tick.fixed_delta_seconds);
            assert_eq!(steps, if ctx.tick_number() == 1 { (0.0, 0.0, 0.1) } else { (0.2, 0.2, 0.1) });
            assert!(ctx.worker.get() < 3 && ctx.node.name == "Once");
            callback.lock().unwrap().push((ctx.tick_number(), ctx.system.get(), ctx.chunk, ctx.chunk_count));
        });
        sim.chunked_system("Chunks", 3, move |ctx| {
            assert!(ctx.worker.get() < 3 && ctx.node.name == "Chunks");
            chunked.lock().unwrap().push((ctx.tick_number(), ctx.system.get(), ctx.chunk, ctx.chunk_count));
        });
    });
    (1..=2).for_each(|tick| step(&runtime, tick));
    let mut seen = std::mem::take(&mut *seen.lock().unwrap());
    seen.sort_unstable();
    let of_tick = |tick| [(tick, 0, 0, 1), (tick, 1, 0, 3), (tick, 1, 1, 3), (tick, 1, 2, 3)];
    assert_eq!(seen, [of_tick(1), of_tick(2)].concat());
}

#[test]
fn b40_a_consumer_runs_in_ticks_in_which_one_of_its_queues_has_something() {
    let runs = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&runs);
    let runtime = runtime(2, |schedule| {
        let sim = schedule.public_track().declare_dag("Sim");
        let queues = ["Twos", "Threes"].map(|name| sim.event_queue::<i64>(name, 4));
        let pushed = queues.clone();
        sim.callback_system("Produce", move |ctx| {
            for (queue, divisor) in pushed.iter().zip([2, 3]) {
                if ctx.tick_number() % divisor == 0 {
                    queue.push(ctx, ctx.tick_number()).unwrap();
                }
            }
        })
        .writes_events(&queues[0])
        .writes_events(&queues[1]);
        sim.callback_system("Consume", move |ctx| noted.lock().unwrap().push(ctx.tick_number()))
            .reads_events(&queues[0])
            .reads_events(&queues[1]);
        sim.callback_system("Follows", |_| {}).after("Consume");
    });
    (1..=6).for_each(|tick| step(&runtime, tick));
    assert_eq!(*runs.lock().unwrap(), [2, 3, 4, 6]);
    let reasons = |tick| {
        let (_, systems) = runtime.telemetry().tick_with_systems(tick).unwrap();
        systems.iter().map(|system| system.skip_reason).collect::<Vec<_>>()
    };
    let ran = SkipReason::NOT_SKIPPED;
    assert_eq!(reasons(5), [ran, SkipReason::EMPTY_EVENTS, ran], "being left out fails nobody");
    assert_eq!(reasons(6), [ran; 3]);
}

#[test]
fn b57_workers_are_counted_once_however_many_chunks_they_ran() {
    let workers_of = |workers, meets: bool| {
        let barrier = Arc::new(Barrier::new(2));
        let runtime = runtime(workers, |schedule| {
            schedule.public_track().declare_dag("Sim").chunked_system("Chunks", 8, move |ctx| {
                if meets && ctx.chunk < 2 {
                    barrier.wait();
                }
            });
        });
        step(&runtime, 1);
        let (tick, systems) = runtime.telemetry().tick_with_systems(1).unwrap();
        (tick.active_workers, tick.active_systems, systems[0].workers)
    };
    assert_eq!(workers_of(1, false), (1, 1, 1));
    assert_eq!(workers_of(2, true), (2, 1, 2), "two chunks waited for each other");
}

#[test]
fn trap23_everything_that_fails_at_once_has_its_place_from_the_start() {
    const SYSTEMS: usize = 300;
    let runtime = runtime(4, |schedule| {
        let sim = schedule.public_track().declare_dag("Sim");
        for at in 0..SYSTEMS {
            sim.callback_system(format!("S{at}"), move |_| Err::<(), _>(format!("{at} fails")));
        }
    });
    let outcome = runtime.step(Duration::ZERO).unwrap();
    assert_eq!((outcome.failed_systems as usize, outcome.dependent_systems), (SYSTEMS, 0));
    for (at, system) in runtime.dump_diagnostic().systems.iter().enumerate() {
        let failure = system.last_failure.as_ref().unwrap();
        assert_eq!((&failure.system, &failure.message), (&format!("S{at}"), &format!("{at} fails")));
        assert_eq!(failure.to_string(), format!("system \"S{at}\" failed in tick 1, chunk 0: {at} fails"));
    }
}

#[test]
fn the_count_of_failures_is_that_of_the_tick() {
    let runtime = runtime(1, |schedule| {
        let sim = schedule.public_track().declare_dag("Sim");
        sim.callback_system("Odd", |ctx| if ctx.tick_number() % 2 == 1 { Err("odd") } else { Ok(()) });
        sim.callback_system("Follows", |_| {}).after("Odd");
    });
    for tick in 1..=6 {
        let outcome = runtime.step(Duration::from_millis(tick)).unwrap();
        let expected = if tick % 2 == 1 { (1, 1) } else { (0, 0) };
        assert_eq!((outcome.failed_systems, outcome.dependent_systems), expected, "tick {tick}");
        assert_eq!(outcome.failure.is_some(), tick % 2 == 1);
    }
}
