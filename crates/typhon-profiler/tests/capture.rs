//! What a program records arrives, in order, under the right thread, with the right parents.
//!
//! Sessions are process-wide, so that the tests take turns.

mod common;

use common::{Recorded, session};
use typhon_profiler::events::{CheckpointCycle, SystemReady, TransactionCommit, TransactionRollback};
use typhon_profiler::export::{Batch, ExportError, Exporter, SessionEnd, SessionStart};
use typhon_profiler::session::SessionOptions;
use typhon_profiler::{Ticks, emit, emit_completion, emit_root_span, emit_span, mark, name, span};
use typhon_profiler::{TraceContext, set_trace_context};

#[test]
fn b1_span_is_recorded_with_payload_parent_and_site() {
    let (recorded, report) = session(common::ALL, || {
        let outer = span!(TransactionCommit { tsn: 7, ..Default::default() });
        let mut inner = span!(CheckpointCycle { target_lsn: 9, ..Default::default() });
        inner.set(|event| event.dirty_page_count = Some(3));
        assert!(inner.is_recorded());
        drop(inner);
        let id = outer.id();
        drop(outer);
        id
    });
    let outer_id = report.result;
    let spans = recorded.spans();
    assert_eq!(spans.len(), 2);
    let outer = spans.iter().find(|span| span.kind == 20).unwrap();
    let inner = spans.iter().find(|span| span.kind == 83).unwrap();
    assert_eq!((outer.id, outer.parent), (outer_id, 0));
    assert_eq!(inner.parent, outer.id);
    assert!(outer.start <= inner.start && inner.end() <= outer.end());
    assert_ne!(outer.site, inner.site);
    assert!(outer.site.is_some());
    assert_eq!(inner.payload, [9, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3, 0, 0, 0]);
}

#[test]
fn b7_kind_that_is_off_leaves_no_trace_and_no_open_span() {
    let (recorded, _) = session(&[83], || {
        let mut made = 0;
        let off = span!({
            made += 1;
            TransactionCommit::default()
        });
        assert_eq!((off.id(), made), (0, 0));
        drop(span!(CheckpointCycle::default()));
        drop(off);
        emit(|| -> SystemReady { panic!("the kind is off") });
    });
    let spans = recorded.spans();
    assert_eq!(spans.iter().map(|span| (span.kind, span.parent)).collect::<Vec<_>>(), [(83, 0)]);
}

#[test]
fn b3_externally_timed_spans() {
    let (recorded, report) = session(common::ALL, || {
        let (start, end) = (Ticks::now(), Ticks::now());
        let kickoff = span!(CheckpointCycle::default());
        emit_span(start, end, || TransactionCommit { tsn: 1, ..Default::default() });
        emit_root_span(start, end, || TransactionCommit { tsn: 2, ..Default::default() });
        emit_completion(kickoff.id(), start, end, TransactionRollback::default);
        emit_completion(0, start, end, || TransactionRollback { tsn: 5, ..Default::default() });
        kickoff.id()
    });
    let spans = recorded.spans();
    let find = |kind: u8, tsn: u8| spans.iter().find(|span| span.kind == kind && span.payload[0] == tsn);
    assert_eq!(find(20, 1).unwrap().parent, report.result);
    assert_eq!(find(20, 2).unwrap().parent, 0);
    assert_ne!(find(20, 1).unwrap().id, find(20, 2).unwrap().id);
    assert_eq!((find(21, 0).unwrap().id, find(21, 0).unwrap().parent), (report.result, 0));
    assert!(find(21, 5).is_none());
}

#[test]
fn instants_carry_name_and_value() {
    let frame = name("frame").unwrap();
    let (recorded, _) = session(common::ALL, || {
        mark(frame, -5);
        emit(|| SystemReady { system_idx: 3, ..Default::default() });
    });
    let marks: Vec<_> = recorded.of_kind(6);
    assert_eq!(marks.len(), 1);
    assert_eq!(marks[0].payload[..4], u32::from(frame.value()).to_le_bytes());
    assert_eq!(marks[0].payload[4..], (-5i32).to_le_bytes());
    assert_eq!(recorded.of_kind(4).len(), 1);
}

#[test]
fn b12_every_record_stands_under_its_threads_info() {
    let (recorded, _) = session(common::ALL, || {
        for round in 0..50 {
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    let builder = std::thread::Builder::new().name(format!("t{}", round * 4 + thread));
                    let work = move || {
                        for _ in 0..20 {
                            drop(span!(TransactionCommit {
                                tsn: i64::from(round * 4 + thread),
                                ..Default::default()
                            }));
                        }
                    };
                    builder.spawn_scoped(scope, work).unwrap();
                }
            });
        }
    });
    let mut seen = 0;
    recorded.each_with_thread(|record, thread| {
        if record.kind == 20 {
            let tsn = i64::from_le_bytes(record.payload[..8].try_into().unwrap());
            assert_eq!(thread, Some(format!("t{tsn}").as_str()));
            seen += 1;
        }
    });
    assert_eq!(seen, 50 * 4 * 20);
}

#[test]
fn i5_panic_in_a_span_closes_it() {
    let (recorded, _) = session(common::ALL, || {
        let outer = span!(CheckpointCycle::default());
        let unwound = std::panic::catch_unwind(|| {
            let _inner = span!(TransactionCommit::default());
            std::panic::resume_unwind(Box::new("planned"));
        });
        assert!(unwound.is_err());
        drop(span!(TransactionRollback::default()));
        drop(outer);
    });
    let spans = recorded.spans();
    let outer = spans.iter().find(|span| span.kind == 83).unwrap();
    assert_eq!(spans.iter().filter(|span| span.parent == outer.id).count(), 2);
}

#[test]
fn b7_spans_across_stop_and_start_are_not_of_the_new_session() {
    let _turn = common::turn();
    let exporter = common::start_unlocked(common::ALL);
    let old = span!(CheckpointCycle::default());
    let first = common::stop(exporter).0;
    assert_eq!(first.spans().len(), 0);

    let exporter = common::start_unlocked(common::ALL);
    drop(span!(TransactionCommit::default()));
    drop(old);
    drop(span!(TransactionRollback::default()));
    let (second, report) = common::stop(exporter);
    let spans = second.spans();
    assert_eq!(spans.iter().map(|span| (span.kind, span.parent)).collect::<Vec<_>>(), [(20, 0), (21, 0)]);
    assert_eq!(report.stale_spans, 1);
}

#[test]
fn b36_changes_of_the_mask_are_marked() {
    // Nobody else starts a session before the last line.
    let _turn = common::turn();
    let running = common::start_unlocked(&[20, 83, 77]);
    assert!(typhon_profiler::session::set_mask(common::mask(&[20, 21, 77])));
    drop(span!(TransactionRollback::default()));
    drop(span!(CheckpointCycle::default()));
    assert!(typhon_profiler::session::set_mask(common::mask(&[20, 83, 77])));
    let (recorded, _) = common::stop(running);
    let (on, off) = (recorded.markers("typhon.kind_on"), recorded.markers("typhon.kind_off"));
    assert_eq!((on, off), (vec![21, 83], vec![83, 21]));
    assert_eq!(recorded.spans().iter().map(|span| span.kind).collect::<Vec<_>>(), [21]);
    assert!(!typhon_profiler::session::set_mask(common::mask(&[20])));
}

#[test]
fn i9_start_and_stop_are_idempotent() {
    // Nobody else starts a session before the last line.
    let _turn = common::turn();
    let exporter = common::start_unlocked(common::ALL);
    let (second, trace) = typhon_profiler::export::MemoryExporter::new();
    let options =
        typhon_profiler::session::SessionOptions { exporters: vec![Box::new(second)], ..Default::default() };
    let again = typhon_profiler::session::start(options).unwrap();
    assert_eq!(again, typhon_profiler::session::Started::AlreadyRunning);
    drop(span!(CheckpointCycle::default()));
    let (recorded, _) = common::stop(exporter);
    assert_eq!(recorded.spans().len(), 1);
    assert_eq!(trace.blocks().len(), 0);
    assert!(typhon_profiler::session::stop().is_none());
}

#[test]
fn flush_hands_over_what_was_recorded() {
    // Nobody else starts a session before the last line.
    let _turn = common::turn();
    let exporter = common::start_unlocked(common::ALL);
    drop(span!(CheckpointCycle::default()));
    assert!(typhon_profiler::session::flush(std::time::Duration::from_secs(60)));
    assert_eq!(Recorded::of(&exporter.trace).spans().len(), 1);
    common::stop(exporter);
    assert!(!typhon_profiler::session::flush(std::time::Duration::ZERO));
}

#[test]
fn b6_spans_carry_the_distributed_trace() {
    let context = TraceContext { trace_id: *b"0123456789abcdef", span_id: [1, 2, 3, 4, 5, 6, 7, 8] };
    let (recorded, _) = session(common::ALL, || {
        set_trace_context(Some(context));
        let outer = span!(CheckpointCycle::default());
        drop(span!(TransactionCommit::default()));
        drop(outer);
        set_trace_context(None);
        drop(span!(TransactionRollback::default()));
    });
    let spans = recorded.spans();
    let of = |kind: u8| spans.iter().find(|span| span.kind == kind).unwrap();
    assert_eq!(
        (of(83).trace_id, of(83).parent),
        (Some(context.trace_id), u64::from_le_bytes(context.span_id))
    );
    assert_eq!((of(20).trace_id, of(20).parent), (Some(context.trace_id), of(83).id));
    assert_eq!((of(21).trace_id, of(21).parent), (None, 0));
    assert_eq!(of(20).payload.len(), 9);
}

#[test]
fn b5_span_ids_are_never_given_twice() {
    let mut ids = std::collections::HashSet::new();
    let mut last_of_slot = std::collections::HashMap::new();
    for _ in 0..3 {
        let (recorded, _) = session(common::ALL, || {
            for _ in 0..5 {
                // One after the other, so that they have the same slot.
                std::thread::spawn(|| (0..10).for_each(|_| drop(span!(CheckpointCycle::default()))))
                    .join()
                    .unwrap();
            }
        });
        for span in recorded.spans() {
            assert_eq!(span.id >> 56, u64::from(span.slot));
            assert!(ids.insert(span.id) && span.id != 0);
            let last = last_of_slot.insert(span.slot, span.id);
            assert!(
                last.is_none_or(|last| last < span.id),
                "the counter goes on across threads and sessions"
            );
        }
    }
    assert_eq!(ids.len(), 150);
}

#[test]
fn b8_a_span_may_begin_in_one_function_and_end_in_another() {
    struct Transaction(Option<typhon_profiler::Span<TransactionCommit>>);
    impl Transaction {
        fn on_begin(&mut self) {
            self.0 = Some(span!(TransactionCommit::default()));
        }

        fn on_end(&mut self) {
            self.0.take().unwrap().end_at(Ticks::now());
        }
    }
    let (recorded, _) = session(common::ALL, || {
        let mut transaction = Transaction(None);
        transaction.on_begin();
        drop(span!(CheckpointCycle::default()));
        transaction.on_end();
        drop(span!(TransactionRollback::default()));
    });
    let spans = recorded.spans();
    let of = |kind: u8| spans.iter().find(|span| span.kind == kind).unwrap();
    assert_eq!((of(83).parent, of(20).parent, of(21).parent), (of(20).id, 0, 0));
    assert!(of(20).start <= of(83).start && of(83).end() <= of(20).end());
}

#[test]
fn i3_instants_and_spans_of_a_thread_survive_the_end_of_its_chunks() {
    let (recorded, outcome) = session(common::ALL, || {
        std::thread::spawn(|| {
            // About 40 chunks.
            for system_idx in 0..40_000 {
                let _span = span!(TransactionCommit { tsn: i64::from(system_idx), ..Default::default() });
                emit(|| SystemReady { system_idx, ..Default::default() });
            }
        })
        .join()
        .unwrap();
    });
    assert_eq!((outcome.report.dropped_records, recorded.losses()), (0, 0));
    let instants: Vec<u16> = recorded
        .of_kind(4)
        .iter()
        .map(|row| u16::from_le_bytes(row.payload[..2].try_into().unwrap()))
        .collect();
    assert_eq!(instants, (0..40_000).collect::<Vec<_>>());
    assert_eq!(recorded.of_kind(20).len(), 40_000);
}

/// Does not begin.
enum Refusing {
    Fails,
    Panics,
}

impl Exporter for Refusing {
    fn name(&self) -> &str {
        "refusing"
    }

    fn init(&mut self, _: &SessionStart) -> Result<(), ExportError> {
        match self {
            Self::Fails => Err(ExportError::new("planned")),
            Self::Panics => std::panic::resume_unwind(Box::new("planned")),
        }
    }

    fn process(&mut self, _: &Batch) -> Result<(), ExportError> {
        unreachable!("it did not begin")
    }

    fn close(&mut self, _: &SessionEnd) -> Result<(), ExportError> {
        unreachable!("it did not begin")
    }
}

#[test]
fn i9_a_start_that_fails_leaves_nothing_running() {
    let _turn = common::turn();
    let (first, trace) = typhon_profiler::export::MemoryExporter::new();
    let options = typhon_profiler::session::SessionOptions {
        mask: common::mask(common::ALL),
        exporters: vec![Box::new(first), Box::new(Refusing::Fails)],
        ..Default::default()
    };
    let error = typhon_profiler::session::start(options).unwrap_err();
    assert_eq!(error.to_string(), "exporter refusing could not start: planned");
    assert!(!typhon_profiler::session::is_running() && typhon_profiler::session::stop().is_none());
    assert!(!span!(CheckpointCycle::default()).is_recorded());
    assert_eq!(trace.blocks().len(), 0);

    let running = common::start_unlocked(common::ALL);
    drop(span!(CheckpointCycle::default()));
    assert_eq!(common::stop(running).0.spans().len(), 1);
}

#[test]
fn i9_a_start_that_panics_leaves_the_consumer_as_it_was() {
    let _turn = common::turn();
    // Little memory, which is used again and again: a consumer that does not know how far the last one was would read
    // what others have written there since.
    let start = |exporters: Vec<Box<dyn Exporter>>| {
        let options = SessionOptions { mask: common::mask(common::ALL), exporters, ..Default::default() };
        typhon_profiler::session::start(SessionOptions { buffer_budget_bytes: 1 << 20, ..options })
    };
    let work = || {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|_| emit(SystemReady::default)));
            }
        });
        40_000
    };
    for round in 0..3 {
        let error = start(vec![Box::new(Refusing::Panics)]).unwrap_err();
        assert_eq!(error.to_string(), "exporter refusing could not start: panicked: planned");
        let (exporter, trace) = typhon_profiler::export::MemoryExporter::new();
        assert_eq!(start(vec![Box::new(exporter)]).unwrap(), typhon_profiler::session::Started::New);
        let emitted = work();
        typhon_profiler::session::stop().unwrap();
        let recorded = Recorded::of(&trace);
        assert_eq!(recorded.events() + recorded.losses(), emitted, "round {round}");
    }
}

/// Has a name that no thread can have.
struct OddName;

impl Exporter for OddName {
    fn name(&self) -> &str {
        "odd\0name"
    }

    fn init(&mut self, _: &SessionStart) -> Result<(), ExportError> {
        Ok(())
    }

    fn process(&mut self, _: &Batch) -> Result<(), ExportError> {
        Ok(())
    }

    fn close(&mut self, _: &SessionEnd) -> Result<(), ExportError> {
        Ok(())
    }
}

#[test]
fn i9_an_exporter_may_have_any_name() {
    let _turn = common::turn();
    let exporters: Vec<Box<dyn Exporter>> = vec![Box::new(OddName)];
    typhon_profiler::session::start(SessionOptions { exporters, ..Default::default() }).unwrap();
    let report = typhon_profiler::session::stop().unwrap();
    assert_eq!((report.exporters[0].name.as_str(), report.exporters[0].closed), ("odd\0name", true));
}

#[test]
fn b28_a_tick_does_not_cross_into_the_next_session() {
    let _turn = common::turn();
    let running = common::start_unlocked(common::ALL);
    let tick = typhon_profiler::tick(1);
    let first = common::stop(running).0;
    let running = common::start_unlocked(common::ALL);
    drop(tick);
    drop(typhon_profiler::tick(2));
    let second = common::stop(running).0;
    let spine = |recorded: &Recorded| {
        let kinds = recorded.rows.iter().map(|row| row.kind);
        kinds.filter(|kind| [0, 1].contains(kind)).collect::<Vec<_>>()
    };
    assert_eq!((spine(&first), spine(&second)), (vec![0], vec![0, 1]));
}
