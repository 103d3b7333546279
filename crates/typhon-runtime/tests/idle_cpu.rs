//! Between ticks a runtime sleeps. One test, since the processor time is that of the process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};
use typhon_engine::Engine;
use typhon_engine::options::WorkerCount;
use typhon_runtime::Runtime;

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn trap24_b35_idle_workers_and_timers_take_no_processor_time() {
    let engine = Engine::builder().runtime(|runtime| {
        runtime.worker_count = WorkerCount::Fixed(4);
        runtime.base_tick_rate_hz = 10;
    });
    let runtime = Runtime::create(&engine.build().unwrap(), |schedule| {
        let sim = schedule.public_track().declare_dag("Sim");
        sim.chunked_system("Chunks", 8, |_| {});
        sim.callback_system("Follows", |_| {}).after("Chunks");
    })
    .unwrap();
    runtime.always_call_helpers(true);
    runtime.start().unwrap();
    // What starting takes does not count.
    while runtime.current_tick() < 3 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let (began, before) = (Instant::now(), processor_time());
    while runtime.current_tick() < 13 {
        std::thread::sleep(Duration::from_millis(50));
    }
    let (took, worked) = (began.elapsed(), processor_time() - before);
    runtime.shutdown().unwrap();
    assert!(worked < took / 10, "{worked:?} of processor time in {took:?}");
}
