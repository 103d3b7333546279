//! A wake that is lost on purpose: the helper comes back by itself, says so in the trace, and is counted.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use super::Runtime;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use typhon_engine::Engine;
use typhon_engine::options::WorkerCount;
use typhon_profiler::Ticks;
use typhon_profiler::export::{Exporter, MemoryExporter};
use typhon_profiler::session::{self, SessionOptions};
use typhon_trace::event::SchedulerWorkerBetweenTickView;

/// Longer than a helper sleeps without looking.
const PATIENCE: Duration = Duration::from_secs(10);

/// Calls the helper without waking it, until it has come back by itself in between. A call that falls into the moment
/// between two of its sleeps is seen by it in time, and no wake is lost.
fn lose_a_wake(runtime: &Runtime) {
    let begun = Instant::now();
    while runtime.lost_wakes() == 0 {
        assert!(begun.elapsed() < PATIENCE, "the helper does not come back");
        runtime.shared.board.calls.0.advance_silently();
        runtime.shared.execution.call_over_at.store(Ticks::now().raw(), Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(120));
    }
}

#[test]
fn b35_a_lost_wake_is_counted_and_told_apart_from_a_shutdown() {
    let (exporter, trace) = MemoryExporter::new();
    let exporters: Vec<Box<dyn Exporter>> = vec![Box::new(exporter)];
    let options = SessionOptions { mask: [152].into_iter().collect(), exporters, ..Default::default() };
    session::start(options).unwrap();
    let engine =
        Engine::builder().runtime(|runtime| runtime.worker_count = WorkerCount::Fixed(2)).build().unwrap();
    let runtime = Runtime::create(&engine, |schedule| {
        schedule.public_track().declare_dag("Sim").callback_system("Tick", |_| {});
    })
    .unwrap();
    runtime.step(Duration::ZERO).unwrap();
    lose_a_wake(&runtime);
    let lost = runtime.lost_wakes();
    runtime.shutdown().unwrap();
    session::stop().unwrap();
    let mut sleeps = Vec::new();
    trace.for_each(|record| {
        let sleep = SchedulerWorkerBetweenTickView::new(record);
        sleeps.extend(sleep.and_then(|sleep| sleep.wake_reason()).map(|reason| (record.slot(), reason.0)));
    });
    // Helpers of other tests are in the recording as well; they lose no wakes.
    let ours = sleeps.iter().find(|(_, reason)| *reason == 2).map(|(slot, _)| *slot);
    let mut reasons: Vec<_> =
        sleeps.into_iter().filter(|(slot, _)| Some(*slot) == ours).map(|(_, reason)| reason).collect();
    assert_eq!(reasons.pop(), Some(1), "the shutdown ends the last sleep");
    // Another helper may have had the slot, and its shutdown, before.
    let reasons = reasons.rsplit(|reason| *reason == 1).next().unwrap_or_default();
    assert_eq!(reasons.iter().filter(|&&reason| reason == 2).count() as u64, lost, "{reasons:?}");
    assert!(reasons.iter().all(|&reason| reason == 0 || reason == 2), "{reasons:?}");
}
