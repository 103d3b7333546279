//! Faults of the reference that were measured and must not come back: its suppression that did not reach instants, its
//! loss counter that went back, its buffer options that were ignored.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod common;

use common::{mask, start_with, stop, turn};
use typhon_profiler::config::{Overrides, Settings, resolve};
use typhon_profiler::events::{DataMvccChainWalk, SchedulerWorkerWake, SystemReady, TransactionCommit};
use typhon_profiler::session::{self, SessionOptions};
use typhon_profiler::{emit, span};

/// On a thread of its own, so that its buffer holds nothing else.
fn on_a_thread<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    std::thread::spawn(work).join().unwrap()
}

/// Makes so many spans; returns their number.
fn spans(count: u64) -> u64 {
    (0..count as i64).for_each(|tsn| drop(span!(TransactionCommit { tsn, ..Default::default() })));
    count
}

#[test]
fn w10_instants_that_are_suppressed_or_denied_are_not_written() {
    let settings = Settings::builder().overrides(
        Overrides::new()
            .enabled(true)
            .gate("Data", true)
            .gate("Scheduler", true)
            .suppress(["SystemReady", "TransactionCommit"]),
    );
    let resolved = resolve(&settings.build());
    assert!(resolved.faults.is_empty(), "{:?}", resolved.faults);
    let (recorded, _) = common::session(&resolved.mask().iter().collect::<Vec<_>>(), || {
        emit(SystemReady::default);
        emit(DataMvccChainWalk::default);
        emit(SchedulerWorkerWake::default);
        spans(1);
    });
    let kinds: Vec<u8> =
        [4, 20, 151, 178].into_iter().filter(|kind| !recorded.of_kind(*kind).is_empty()).collect();
    assert_eq!(kinds, [151], "4 and 20 are suppressed, 178 is denied by default");
}

#[test]
fn w11_the_count_of_losses_never_goes_back_and_is_in_the_trace() {
    let _turn = turn();
    let before = session::losses().before_exporters();
    let options = || SessionOptions { mask: mask(common::ALL), buffer_budget_bytes: 1, ..Default::default() };
    let running = start_with(options(), Vec::new());
    let mut last = before;
    let mut emitted = 0;
    for _ in 0..20 {
        emitted += on_a_thread(|| spans(5_000));
        let now = session::losses().before_exporters();
        assert!(now >= last, "{now} after {last}");
        last = now;
    }
    let (recorded, report) = stop(running);
    let after = session::losses().before_exporters();
    assert!(after >= last && recorded.losses() > 0);
    assert_eq!(recorded.losses(), after - before, "what the trace says is what the counters say");
    assert_eq!(recorded.losses(), report.dropped_records);
    assert_eq!(recorded.events() + recorded.losses(), emitted);
    let running = start_with(options(), Vec::new());
    assert_eq!(session::losses().before_exporters(), after, "a new session does not reset it");
    stop(running);
}

#[test]
fn w13_each_session_has_the_buffers_that_it_asks_for() {
    let _turn = turn();
    let lost_with = |buffer_budget_bytes| {
        // The consumer sleeps, so that what does not fit is lost.
        let cadence = std::time::Duration::from_secs(5);
        let options =
            SessionOptions { mask: mask(common::ALL), buffer_budget_bytes, cadence, ..Default::default() };
        let running = start_with(options, Vec::new());
        let emitted = on_a_thread(|| spans(10_000));
        let (recorded, _) = stop(running);
        assert_eq!(recorded.events() + recorded.losses(), emitted);
        recorded.losses()
    };
    // 10,000 spans of 48 bytes take 8 chunks.
    assert!(lost_with(4 * 64 * 1024) > 0);
    assert_eq!(lost_with(16 * 64 * 1024), 0);
    assert!(lost_with(4 * 64 * 1024) > 0, "also smaller again");
}
