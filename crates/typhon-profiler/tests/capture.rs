//! What a program records arrives, in order, under the right thread, with the right parents.
//!
//! Sessions are process-wide, so that the tests take turns.

mod common;

use common::{Recorded, session};
use typhon_profiler::events::{CheckpointCycle, SystemReady, TransactionCommit, TransactionRollback};
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
