//! Collections of a .NET runtime in a recording, from the queue on.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod common;

use std::time::Duration;
use typhon_profiler::gc::{
    Collection, CollectionStart, GcReason, GcRecord, GcType, HeapSizes, Ingestion, Loss, LossKind,
    SuspendReason, Suspension,
};
use typhon_profiler::{emit, events, tick};
use typhon_trace::event::{GcEndView, GcStartView, GcSuspensionView, PerTickSnapshotView};

const PATIENCE: Duration = Duration::from_secs(60);

fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn start(timestamp: u64, count: u32) -> GcRecord {
    let (reason, kind) = (GcReason(300), GcType::BACKGROUND);
    GcRecord::Start(CollectionStart { timestamp, count, generation: 2, reason, kind })
}

fn end(timestamp: u64, count: u32) -> GcRecord {
    let heap = HeapSizes {
        size_bytes: [1, 2, 3, 4, 5],
        promoted_bytes: 6,
        promoted_is_complete: true,
        size_before_bytes: None,
    };
    GcRecord::End(Collection {
        timestamp,
        count,
        generation: 1,
        start: None,
        pause_ticks: 77,
        heap: Some(heap),
        committed_bytes: Some(8),
    })
}

fn suspension(timestamp: u64, duration_ticks: u64) -> GcRecord {
    GcRecord::Suspension(Suspension {
        timestamp,
        duration_ticks,
        time_to_suspend_ticks: None,
        time_to_restart_ticks: None,
        reason: SuspendReason::GC_PREPARATION,
        capture_thread: 1,
    })
}

#[test]
fn g11_what_is_queued_is_recorded_at_its_own_time_on_its_own_slot() {
    let at = monotonic_ns();
    let (recorded, _) = common::session(common::ALL, || {
        let (input, ingestion) = Ingestion::start(16).unwrap();
        let kind = LossKind::HalfOpenSuspension;
        let loss = GcRecord::Loss(Loss { timestamp: at, capture_thread: 1, kind, count: 3 });
        for record in [start(at + 1_000, 9), end(at + 500_000, 9), suspension(at + 2_000, 250_000), loss] {
            assert!(input.push(record));
        }
        drop(input);
        assert!(ingestion.finish(PATIENCE));
        emit(events::TickStart::default);
    });
    let one = |kind| {
        let [row] = &recorded.of_kind(kind)[..] else { panic!("one record of kind {kind}") };
        row.clone()
    };
    let (start, end, suspension) = (one(7), one(8), one(75));
    let view = GcStartView::from_payload(&start.payload);
    assert_eq!((view.generation(), view.count()), (Some(2), Some(9)));
    assert_eq!(view.reason().map(|reason| reason.0), Some(u8::MAX), "a byte cannot hold 300");
    let view = GcEndView::from_payload(&end.payload);
    assert_eq!((view.generation(), view.count(), view.promoted_bytes()), (Some(1), Some(9), Some(6)));
    assert_eq!((view.pause_duration_ticks(), view.total_committed_bytes()), (Some(77), Some(8)));
    assert_eq!((view.gen0_size_after(), view.poh_size_after()), (Some(1), Some(5)));
    let view = GcSuspensionView::from_payload(&suspension.payload);
    assert_eq!(view.reason().map(|reason| reason.0), Some(6));
    assert_eq!((suspension.parent, suspension.trace_id), (0, None), "G-5");
    assert_eq!(recorded.markers("typhon.gc_half_open"), [3]);
    // Converted to counter ticks and back, over half a millisecond.
    let near = |found: i64, expected: i64| assert!((found - expected).abs() < 1_000, "{found}, {expected}");
    near(end.start - start.start, 499_000);
    near(suspension.start - start.start, 1_000);
    near(suspension.duration, 250_000);
    recorded.each_with_thread(|row, thread| {
        if matches!(row.kind, 7 | 8 | 75) {
            assert_eq!(thread, Some("Typhon.GcIngest"), "G-2");
        }
    });
}

/// What a damaged stream or a careless caller can send.
#[test]
fn times_that_cannot_be_are_brought_into_the_recording() {
    let (recorded, _) = common::session(common::ALL, || {
        let (input, ingestion) = Ingestion::start(16).unwrap();
        for time in [0, 1, u64::MAX / 2, u64::MAX] {
            for record in [start(time, 1), end(time, 1), suspension(time, u64::MAX), suspension(time, 0)] {
                assert!(input.push(record));
            }
        }
        drop(input);
        assert!(ingestion.finish(PATIENCE));
    });
    assert_eq!([7, 8, 75].map(|kind| recorded.of_kind(kind).len()), [4, 4, 8]);
    let is_in_range = |row: &common::Row| row.start >= 0 && row.duration >= 0;
    assert_eq!(recorded.rows.iter().find(|row| !is_in_range(row)), None);
}

#[test]
fn b5_a_full_queue_drops_the_newest_and_says_how_many() {
    const OFFERED: usize = 10_000;
    let (recorded, outcome) = common::session(common::ALL, || {
        let (input, ingestion) = Ingestion::start(1).unwrap();
        let at = monotonic_ns();
        let accepted = (0..OFFERED).filter(|count| input.push(start(at, *count as u32))).count();
        drop(input);
        assert!(ingestion.finish(PATIENCE));
        accepted
    });
    let dropped: i32 = recorded.markers("typhon.gc_queue_dropped").iter().sum();
    assert_eq!(recorded.of_kind(7).len(), outcome.result);
    assert_eq!(dropped as usize, OFFERED - outcome.result);
    assert!(dropped > 0, "one place cannot hold them");
}

/// Context switches that the ingestion thread asked for so far; `None` before it has its name.
#[cfg(target_os = "linux")]
fn wake_ups() -> Option<u64> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let status = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("status")).ok();
    let status = tasks.filter_map(status).find(|status| status.starts_with("Name:\tTyphon.GcIngest"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

/// A thread that never wakes up costs nothing, however busy the machine is.
#[cfg(target_os = "linux")]
#[test]
fn g7_the_ingestion_thread_sleeps_while_nothing_happens() {
    let (_, outcome) = common::session(common::ALL, || {
        let (input, ingestion) = Ingestion::start(16).unwrap();
        assert!(input.push(start(monotonic_ns(), 1)));
        // It has taken that one and waits for the next as soon as it does not switch any more.
        let is_quiet = || {
            let before = wake_ups();
            std::thread::sleep(Duration::from_millis(100));
            before.is_some() && wake_ups() == before
        };
        let is_quiet = (0..100).any(|_| is_quiet());
        drop(input);
        assert!(ingestion.finish(PATIENCE));
        is_quiet
    });
    assert!(outcome.result, "it wakes up again and again");
}

#[test]
fn g10_the_last_collection_feeds_the_gauges_while_it_is_traced() {
    let (recorded, _) = common::session(common::ALL, || {
        let (input, ingestion) = Ingestion::start(16).unwrap();
        drop(tick(1));
        input.push(end(monotonic_ns(), 1));
        drop(input);
        assert!(ingestion.finish(PATIENCE));
        drop(tick(2));
        drop(ingestion);
        drop(tick(3));
    });
    let ids = |tick: u32| -> Vec<u16> {
        let rows = recorded.of_kind(76);
        let mut ids = Vec::new();
        for row in &rows {
            let view = PerTickSnapshotView::from_payload(&row.payload);
            if view.tick_number() == Some(tick) {
                ids.extend(view.gauges().map(|gauge| gauge.id).filter(|id| (0x0110..0x0200).contains(id)));
            }
        }
        ids
    };
    assert_eq!(ids(2), [0x0110, 0x0111, 0x0112, 0x0113, 0x0114, 0x0115]);
    assert_eq!((ids(1), ids(3)), (vec![], vec![]));
}

/// A program with more threads than slots: what the ingestion thread cannot record is counted, and it goes on as soon as
/// a slot is free.
#[test]
fn b5_collections_without_a_slot_are_counted_and_the_next_ones_recorded() {
    use std::sync::Barrier;
    const CROWD: usize = 300;
    let (recorded, outcome) = common::session(common::ALL, || {
        let (input, ingestion) = Ingestion::start(16).unwrap();
        let at = monotonic_ns();
        let (all_there, may_leave) = (Barrier::new(CROWD + 1), Barrier::new(CROWD + 1));
        std::thread::scope(|scope| {
            for _ in 0..CROWD {
                scope.spawn(|| {
                    emit(events::TickStart::default);
                    all_there.wait();
                    may_leave.wait();
                });
            }
            all_there.wait();
            input.push(start(at, 1));
            // With room for one more than the queue holds, the first has been taken out, and so tried.
            while (0..17).any(|count| !input.push(start(at, 100 + count))) {
                std::thread::yield_now();
            }
            may_leave.wait();
        });
        // The consumer frees the slots of threads that have ended.
        assert!(typhon_profiler::session::flush(PATIENCE));
        while !input.push(start(at, 2)) {
            std::thread::yield_now();
        }
        drop(input);
        assert!(ingestion.finish(PATIENCE));
    });
    let counts: Vec<u32> = recorded
        .of_kind(7)
        .iter()
        .map(|row| GcStartView::from_payload(&row.payload).count().unwrap())
        .collect();
    assert!(!counts.contains(&1) && counts.contains(&2), "{counts:?}");
    assert!(outcome.report.no_slot_drops > 0 && recorded.losses() > 0);
}
