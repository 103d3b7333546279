//! Emitted = recorded + reported lost, to the record, whatever happens to threads, memory and exporters.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod common;

use common::{Recorded, mask, start_with, stop, turn};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use typhon_profiler::events::{CheckpointCollect, SystemReady, TransactionCommit};
use typhon_profiler::export::{
    Batch, ExportError, Exporter, MemoryExporter, MemoryTrace, SessionEnd, SessionStart,
};
use typhon_profiler::session::{self, SessionOptions};
use typhon_profiler::{emit, span};

/// Makes `spans` spans with an instant in each; returns the records made.
fn work(spans: u64) -> u64 {
    for tsn in 0..spans as i64 {
        let _span = span!(TransactionCommit { tsn, ..Default::default() });
        emit(SystemReady::default);
    }
    spans * 2
}

fn options(budget_bytes: u64) -> SessionOptions {
    SessionOptions { mask: mask(common::ALL), buffer_budget_bytes: budget_bytes, ..Default::default() }
}

#[test]
fn i4_ten_thousand_short_threads() {
    let _turn = turn();
    let running = start_with(options(8 << 20), Vec::new());
    let emitted = AtomicU64::new(0);
    for _ in 0..250 {
        std::thread::scope(|scope| {
            for _ in 0..40 {
                scope.spawn(|| emitted.fetch_add(work(3), Ordering::Relaxed));
            }
        });
    }
    let (recorded, report) = stop(running);
    assert_eq!(recorded.events() + recorded.losses(), emitted.into_inner());
    assert_eq!(report.records, recorded.events());
    let ids: Vec<u64> = recorded.spans().iter().map(|span| span.id).collect();
    let distinct: std::collections::HashSet<u64> = ids.iter().copied().collect();
    assert_eq!(distinct.len(), ids.len());
    let mut orphans = 0;
    recorded.each_with_thread(|row, thread| orphans += u64::from(row.kind == 20 && thread.is_none()));
    assert_eq!(orphans, 0);
}

#[test]
fn b11_three_hundred_threads_at_once() {
    let _turn = turn();
    let running = start_with(options(160 << 20), Vec::new());
    let (emitted, everyone) = (AtomicU64::new(0), Barrier::new(300));
    std::thread::scope(|scope| {
        for _ in 0..300 {
            scope.spawn(|| {
                let first = work(1);
                // Nobody ends before everybody has begun, so that 46 threads at least find no slot.
                everyone.wait();
                emitted.fetch_add(first + work(50), Ordering::Relaxed);
            });
        }
    });
    let (recorded, report) = stop(running);
    assert_eq!(recorded.events() + recorded.losses(), emitted.into_inner());
    assert!(report.no_slot_drops >= 46 * 2);
    let slots: std::collections::HashSet<u8> = recorded.rows.iter().map(|row| row.slot).collect();
    assert!(slots.len() <= 255 && !slots.contains(&255));

    // All slots are free again, and the next threads get them.
    let running = start_with(options(160 << 20), Vec::new());
    let (emitted, everyone) = (AtomicU64::new(0), Barrier::new(200));
    std::thread::scope(|scope| {
        for _ in 0..200 {
            scope.spawn(|| {
                emitted.fetch_add(work(1), Ordering::Relaxed);
                everyone.wait();
            });
        }
    });
    let (recorded, _) = stop(running);
    assert_eq!((recorded.events(), recorded.losses()), (emitted.into_inner(), 0));
}

#[test]
fn b15_tiny_budget_loses_and_says_so() {
    let _turn = turn();
    let running = start_with(options(1), Vec::new());
    let emitted = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| emitted.fetch_add(work(20_000), Ordering::Relaxed));
        }
    });
    let (recorded, report) = stop(running);
    assert_eq!(recorded.events() + recorded.losses(), emitted.into_inner());
    assert!(recorded.losses() > 0);
    assert_eq!(report.dropped_records, recorded.losses());
    let mut orphans = 0;
    recorded.each_with_thread(|row, thread| orphans += u64::from(row.kind == 20 && thread.is_none()));
    assert_eq!(orphans, 0, "B-13: without room for its name a thread has no slot");
}

/// Says what it was told to, batch by batch.
struct Scripted {
    answers: Receiver<Answer>,
    inner: MemoryExporter,
}

enum Answer {
    Take,
    Fail,
    Panic,
    Full,
}

fn scripted() -> (Scripted, MemoryTrace, Sender<Answer>) {
    let ((inner, trace), (sender, answers)) = (MemoryExporter::new(), channel());
    (Scripted { answers, inner }, trace, sender)
}

impl Exporter for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn init(&mut self, start: &SessionStart) -> Result<(), ExportError> {
        self.inner.init(start)
    }

    /// Waits for an answer; takes everything once nobody gives answers any more.
    fn process(&mut self, batch: &Batch) -> Result<(), ExportError> {
        match self.answers.recv() {
            Ok(Answer::Take) | Err(_) => self.inner.process(batch),
            Ok(Answer::Fail) => Err(ExportError::new("planned")),
            Ok(Answer::Panic) => std::panic::resume_unwind(Box::new("planned")),
            Ok(Answer::Full) => Err(ExportError { storage_full: true, ..ExportError::new("planned") }),
        }
    }

    fn close(&mut self, end: &SessionEnd) -> Result<(), ExportError> {
        self.inner.close(end)
    }
}

#[test]
fn b20_stalled_exporter_loses_batches_and_the_others_nothing() {
    let _turn = turn();
    let (exporter, slow, answers) = scripted();
    let running =
        start_with(SessionOptions { queue_depth: 2, ..options(160 << 20) }, vec![Box::new(exporter)]);
    let mut emitted = 0;
    // More batches than one in hand and two in the queue, while nobody answers.
    for _ in 0..8 {
        emitted += std::thread::spawn(|| work(6_000)).join().unwrap();
        assert!(wait_for(&running.trace, emitted));
    }
    drop(answers);
    let (recorded, report) = stop(running);
    let slow = Recorded::of(&slow);
    assert_eq!((recorded.events(), recorded.losses()), (emitted, 0));
    assert!(slow.losses() > 0);
    assert_eq!(slow.events() + slow.losses(), emitted);
    assert_eq!(report.exporters[1].dropped_records, slow.losses());
    assert_eq!(report.exporters[1].unreported_records, 0);
    let mut orphans = 0;
    slow.each_with_thread(|row, thread| orphans += u64::from(row.kind == 20 && thread.is_none()));
    assert_eq!(orphans, 0, "threads are named even if the batch that named them was lost");
}

/// Waits until the memory exporter has this many records and losses.
fn wait_for(trace: &MemoryTrace, events: u64) -> bool {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while std::time::Instant::now() < deadline {
        let recorded = Recorded::of(trace);
        if recorded.events() + recorded.losses() >= events {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

#[test]
fn b21_failures_and_panics_are_counted_and_reported_in_the_stream() {
    let _turn = turn();
    let (exporter, faulty, answers) = scripted();
    let running = start_with(options(160 << 20), vec![Box::new(exporter)]);
    let mut emitted = 0;
    for round in 0..9 {
        let answer = [Answer::Take, Answer::Fail, Answer::Panic];
        answers.send(answer.into_iter().nth(round % 3).unwrap()).unwrap();
        emitted += std::thread::spawn(|| work(100)).join().unwrap();
        assert!(wait_for(&running.trace, emitted));
    }
    drop(answers);
    let (recorded, report) = stop(running);
    let faulty = Recorded::of(&faulty);
    assert_eq!((recorded.events(), recorded.losses()), (emitted, 0));
    assert!(faulty.losses() > 0);
    assert_eq!(faulty.events() + faulty.losses(), emitted);
    assert!(!report.exporters[1].detached);
    assert!(report.exporters[1].error.as_deref().unwrap().contains("planned"));
}

#[test]
fn b21_full_destination_detaches_and_the_loss_is_told_at_the_end() {
    let _turn = turn();
    let (exporter, full, answers) = scripted();
    let running = start_with(options(160 << 20), vec![Box::new(exporter)]);
    answers.send(Answer::Full).unwrap();
    drop(answers);
    let mut emitted = 0;
    for _ in 0..3 {
        emitted += std::thread::spawn(|| work(100)).join().unwrap();
        assert!(wait_for(&running.trace, emitted));
    }
    let (_, report) = stop(running);
    let full = Recorded::of(&full);
    assert!(report.exporters[1].detached);
    assert_eq!((full.events(), full.losses()), (0, emitted));
    assert_eq!(report.exporters[1].dropped_records, emitted);
}

#[test]
fn b17_a_flood_does_not_starve_the_others() {
    let _turn = turn();
    let running = start_with(options(160 << 20), Vec::new());
    let (quiet_done, stop_flood) = (AtomicU64::new(0), Arc::new(AtomicU64::new(0)));
    let trace = running.trace.clone();
    std::thread::scope(|scope| {
        let flood_stop = Arc::clone(&stop_flood);
        scope.spawn(move || {
            while flood_stop.load(Ordering::Relaxed) == 0 {
                work(1_000);
            }
        });
        scope.spawn(|| {
            for _ in 0..10 {
                drop(span!(CheckpointCollect::default()));
                quiet_done.fetch_add(1, Ordering::Relaxed);
            }
        });
        // The quiet thread's spans arrive while the flood goes on.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let mut seen = 0;
        while seen < 10 && std::time::Instant::now() < deadline {
            seen = 0;
            trace.for_each(|record| seen += u64::from(record.kind() == 84));
            std::thread::yield_now();
        }
        stop_flood.store(1, Ordering::Relaxed);
        assert_eq!(seen, 10);
    });
    stop(running);
}

#[test]
fn b19_stop_ends_although_a_producer_does_not() {
    let _turn = turn();
    let running = start_with(options(8 << 20), Vec::new());
    let go_on = Arc::new(AtomicU64::new(1));
    let producer = {
        let go_on = Arc::clone(&go_on);
        std::thread::spawn(move || {
            while go_on.load(Ordering::Relaxed) == 1 {
                work(100);
            }
        })
    };
    while running.trace.blocks().is_empty() {
        std::thread::yield_now();
    }
    let (recorded, report) = stop(running);
    go_on.store(0, Ordering::Relaxed);
    producer.join().unwrap();
    assert!(recorded.events() > 0);
    assert_eq!(report.dropped_records, recorded.losses());
}

#[test]
fn b17_a_flush_ends_although_threads_are_faster_than_the_consumer() {
    let _turn = turn();
    // Little memory: what waits at the moment of a flush has to be written, however slow this machine is.
    let running = start_with(options(2 << 20), Vec::new());
    let stop_flood = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while stop_flood.load(Ordering::Relaxed) == 0 {
                    work(1_000);
                }
            });
        }
        let flushes = (0..3).map(|_| session::flush(std::time::Duration::from_secs(60)));
        let flushed = flushes.filter(|is_done| *is_done).count();
        stop_flood.store(1, Ordering::Relaxed);
        assert_eq!(flushed, 3);
    });
    stop(running);
}
