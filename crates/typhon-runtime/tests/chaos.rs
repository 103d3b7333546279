//! Shutting down at any moment.
//!
//! `RUNS=100000 cargo test -p typhon-runtime --release --test chaos` for a long run.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod worlds;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use typhon_engine::Engine;
use typhon_engine::options::WorkerCount;
use typhon_runtime::Runtime;
use worlds::Random;

/// Every place at which a run may be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// By another thread, after so many rounds of spinning.
    Outside(u64),
    /// By a system, in this tick.
    Inside(i64),
    /// By nobody: the runtime is dropped.
    Dropped,
}

fn run(seed: u64) {
    let mut random = Random(seed);
    let workers = 1 + random.below(4) as u8;
    let end = match random.below(5) {
        0 => End::Dropped,
        1 => End::Inside(1 + random.below(4) as i64),
        _ => End::Outside(random.below(30_000)),
    };
    let is_fatal = random.percent(30);
    let (inside, completed) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let own: Arc<OnceLock<Runtime>> = Arc::default();
    let engine = Engine::builder().runtime(|runtime| {
        runtime.worker_count = WorkerCount::Fixed(workers);
        runtime.base_tick_rate_hz = 1000;
        runtime.telemetry_ring_capacity = 2;
    });
    // A runtime that its own system kept alive would never be dropped.
    let (stopped, begun, ended) = (Arc::downgrade(&own), Arc::clone(&inside), Arc::clone(&completed));
    let runtime = Runtime::create(&engine.build().unwrap(), |schedule| {
        let dag = schedule.public_track().declare_dag("Sim");
        dag.callback_system("Begins", move |ctx| {
            begun.fetch_add(1, Ordering::Relaxed);
            if end == End::Inside(ctx.tick_number()) {
                let own = stopped.upgrade();
                own.iter().filter_map(|own| own.get()).for_each(|runtime| runtime.shutdown().unwrap());
            }
        });
        dag.chunked_system("Chunks", 5, |_| std::hint::spin_loop()).after("Begins");
        dag.callback_system("Ends", move |_| _ = ended.fetch_add(1, Ordering::Relaxed)).after("Chunks");
    });
    let runtime = runtime.unwrap();
    runtime.always_call_helpers(random.percent(70));
    assert!(own.set(runtime).is_ok());
    let runtime = own.get().unwrap();
    runtime.start().unwrap();
    match end {
        End::Outside(rounds) => {
            (0..rounds).for_each(|_| std::hint::spin_loop());
            if is_fatal { runtime.fatal_stop().unwrap() } else { runtime.shutdown().unwrap() }
        }
        End::Inside(tick) => {
            while runtime.current_tick() <= tick {
                std::thread::yield_now();
            }
            runtime.shutdown().unwrap();
            assert_eq!(runtime.current_tick(), tick + 1, "seed {seed}");
        }
        End::Dropped => {}
    }
    if end != End::Dropped {
        let ticks = runtime.current_tick() as u32 - 1;
        assert_eq!(inside.load(Ordering::Relaxed), ticks, "seed {seed}: every tick that began was finished");
        assert_eq!(runtime.lost_wakes(), 0, "seed {seed}");
    }
    drop(own);
    let (completed, inside) = (completed.load(Ordering::Relaxed), inside.load(Ordering::Relaxed));
    assert_eq!(completed, inside, "seed {seed}, {end:?}");
}

#[test]
fn trap6_shutdown_at_any_instant_finishes_the_tick_and_ends_all_threads() {
    let runs = std::env::var("RUNS").map_or(300, |text| text.parse().unwrap());
    for seed in 1..=runs {
        run(seed);
    }
}
