//! What a log records while it works: kinds 80 to 82 and 214 to 221, field by field, and its gauges.
#![allow(clippy::unwrap_used, reason = "these are tests")]

#[path = "../../typhon-sync/tests/common/trace.rs"]
mod trace;

use std::path::Path;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use trace::{Row, recorded};
use typhon_log::{Draft, LogError, Options, Store};
use typhon_profiler::events::{
    DurabilityWalBackpressureView, DurabilityWalBufferView, DurabilityWalFrameView,
    DurabilityWalGroupCommitView, DurabilityWalOsWriteView, DurabilityWalQueueDrainView,
    DurabilityWalQueueView, DurabilityWalSignalView, PerTickSnapshotView, WalFlushView, WalSegmentRotateView,
    WalWaitView,
};
use typhon_profiler::gauges::GaugeValue;
use typhon_profiler::thread;
use typhon_store::sim::SimIo;
use typhon_sync::Deadline;

/// Every kind of the log.
const ALL: [u8; 11] = [80, 81, 82, 214, 215, 216, 217, 218, 219, 220, 221];

/// Tests take turns: a recording holds everything that the process does, and the gauges of every log that is open.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start(io: &SimIo, options: Options) -> Store {
    Store::open(Arc::new(io.process()), Path::new("/db"), options, b"").unwrap().start(b"").unwrap()
}

fn of_kind(rows: &[Row], kind: u8) -> Vec<&[u8]> {
    rows.iter().filter(|row| row.kind == kind).map(|row| &row.payload[..]).collect()
}

fn only(rows: &[Row], kind: u8) -> &[u8] {
    let found = of_kind(rows, kind);
    assert_eq!(found.len(), 1, "kind {kind} in {rows:?}");
    found[0]
}

#[test]
fn k80_k82_k214_to_k216_k218_to_k220_tell_a_durable_append() {
    let _turn = turn();
    let log = start(&SimIo::new(1), Options::small());
    log.commit(&Draft::commit(b"before"), Deadline::INFINITE).unwrap();
    let mut lsn = 0;
    let rows = recorded(&ALL, || {
        for body in [&b"first"[..], b"second of two"] {
            lsn = log.append(&Draft::commit(body), Deadline::EXPIRED).unwrap().lsn.0 as i64;
        }
        log.wait_durable(log.watermarks().appended, Deadline::INFINITE).unwrap();
        // What is durable already is not waited for.
        log.wait_durable(log.watermarks().durable, Deadline::INFINITE).unwrap();
    });
    let frames = Draft::span_of(5) + Draft::span_of(13);
    let flush = WalFlushView::from_payload(only(&rows, 80));
    assert_eq!(flush.batch_byte_count(), Some(frames as i32));
    assert_eq!((flush.frame_count(), flush.high_lsn()), (Some(2), Some(lsn)));
    assert_eq!(WalWaitView::from_payload(only(&rows, 82)).target_lsn(), Some(lsn));

    let drained = of_kind(&rows, 214);
    let drained: Vec<_> = drained.into_iter().map(DurabilityWalQueueDrainView::from_payload).collect();
    assert_eq!((drained[0].bytes_aligned(), drained[0].frame_count()), (Some(frames as i32), Some(2)));
    let write = DurabilityWalOsWriteView::from_payload(only(&rows, 215));
    assert_eq!(
        (write.bytes_aligned(), write.frame_count(), write.high_lsn()),
        (Some(4096), Some(2), Some(lsn))
    );
    assert_eq!(DurabilityWalSignalView::from_payload(only(&rows, 216)).high_lsn(), Some(lsn));
    let buffer = DurabilityWalBufferView::from_payload(only(&rows, 219));
    assert_eq!((buffer.bytes_aligned(), buffer.pad()), (Some(4096), Some(4096 - frames as i32)));

    let decisions: Vec<_> =
        of_kind(&rows, 218).into_iter().map(DurabilityWalQueueView::from_payload).collect();
    let decision =
        |view: &DurabilityWalQueueView<'_>| (view.drain_attempt(), view.data_len(), view.wait_reason());
    assert_eq!(decision(&decisions[0]), (Some(0), Some(frames as i32), Some(0)));

    let frames: Vec<_> = of_kind(&rows, 220).into_iter().map(DurabilityWalFrameView::from_payload).collect();
    assert_eq!(frames.iter().map(|frame| frame.frame_count()).collect::<Vec<_>>(), [Some(0), Some(1)]);
    assert_ne!(frames[0].crc_start(), Some(0), "the checksum of the block before");
    assert_eq!(frames[1].crc_start(), Some(crc32c::crc32c(b"first")));
    for kind in [81, 217, 221] {
        assert!(of_kind(&rows, kind).is_empty(), "{kind}");
    }
}

#[test]
fn the_parts_of_a_flush_lie_inside_it_and_one_after_the_other() {
    let _turn = turn();
    let log = start(&SimIo::new(1), Options::small());
    let rows = recorded(&[80, 214, 215, 216, 219], || {
        log.commit(&Draft::commit(b"one"), Deadline::INFINITE).unwrap();
    });
    // By their starts: the flush, collecting, the copy, the write with its sync, and inside it the waking.
    let kinds: Vec<u8> = rows.iter().map(|row| row.kind).collect();
    assert_eq!(kinds[..5], [80, 214, 219, 215, 216]);
}

#[test]
fn k81_names_the_new_segment() {
    let _turn = turn();
    let log = start(&SimIo::new(1), Options { segment_bytes: 8 << 10, ..Options::small() });
    let rows = recorded(&ALL, || {
        for _ in 0..3 {
            log.commit(&Draft::commit(&[1; 3000]), Deadline::INFINITE).unwrap();
        }
    });
    let named: Vec<_> = of_kind(&rows, 81)
        .into_iter()
        .map(|row| WalSegmentRotateView::from_payload(row).new_segment_index().unwrap())
        .collect();
    assert_eq!(named, [2, 3]);
}

#[test]
fn k221_tells_who_waited_for_space_and_how_long() {
    let _turn = turn();
    let log = start(&SimIo::new(1), Options::small());
    let held = log.reserve(32_000, Deadline::EXPIRED).unwrap();
    let rows = recorded(&ALL, || {
        let timeout = Deadline::from_timeout(Duration::from_millis(2));
        assert!(matches!(log.reserve(2_000, timeout), Err(LogError::BackPressure { .. })));
    });
    drop(held);
    let wait = DurabilityWalBackpressureView::from_payload(only(&rows, 221));
    assert!(wait.wait_us().unwrap() >= 2_000, "{wait:?}");
    assert_eq!(wait.producer_thread(), Some(i32::from(thread::current_id())));
    assert!(wait.retries().unwrap() >= 1);
    let without_a_wait = recorded(&ALL, || drop(log.reserve(2_000, Deadline::EXPIRED).unwrap()));
    assert!(of_kind(&without_a_wait, 221).is_empty());
}

#[test]
fn k217_tells_that_a_group_was_closed_by_its_time() {
    let _turn = turn();
    let options =
        Options { writer_thread: true, group_interval: Duration::from_millis(3), ..Options::small() };
    let log = start(&SimIo::new(1), options);
    let rows = recorded(&ALL, || {
        let appended = log.append(&Draft::commit(b"in a group"), Deadline::EXPIRED).unwrap();
        log.group();
        let deadline = Deadline::from_timeout(Duration::from_secs(60));
        while log.watermarks().durable < appended.lsn {
            assert!(!deadline.is_expired(), "nobody writes the group");
            std::thread::yield_now();
        }
    });
    let group = DurabilityWalGroupCommitView::from_payload(only(&rows, 217));
    assert_eq!((group.trigger_ms(), group.producer_thread()), (Some(3), Some(0)));
    assert!(of_kind(&rows, 82).is_empty(), "nobody waited");
}

#[test]
fn gauges_tell_the_ring_and_what_is_written() {
    let _turn = turn();
    let log = start(&SimIo::new(1), Options::small());
    log.commit(&Draft::commit(b"durable"), Deadline::INFINITE).unwrap();
    let span = Draft::span_of(300);
    let rows = recorded(&[76], || {
        log.append(&Draft::commit(&[1; 300]), Deadline::EXPIRED).unwrap();
        drop(typhon_profiler::tick(1));
    });
    let view = PerTickSnapshotView::from_payload(only(&rows, 76));
    let value = |id: u16| view.gauges().find(|gauge| gauge.id == id).map(|gauge| gauge.value);
    assert_eq!(value(0x0300), Some(GaugeValue::U64Bytes(span)));
    assert_eq!(value(0x0301), Some(GaugeValue::U64Bytes(64 << 10)));
    assert_eq!(value(0x0302), Some(GaugeValue::U32Count(0)));
    assert_eq!(value(0x0303), Some(GaugeValue::U32Count(0)));
    assert_eq!(value(0x0304), Some(GaugeValue::U32Count(1)));
    assert_eq!(value(0x0305), Some(GaugeValue::U32Count(1)));
    assert_eq!(value(0x0306), Some(GaugeValue::U64Bytes(1)));
    drop(log);
    let rows = recorded(&[76], || drop(typhon_profiler::tick(2)));
    assert!(of_kind(&rows, 76).is_empty(), "a closed log has no gauges");
}

#[test]
fn what_is_not_wanted_is_not_recorded() {
    let _turn = turn();
    let log = start(&SimIo::new(1), Options::small());
    let rows = recorded(&[80], || {
        log.commit(&Draft::commit(b"one"), Deadline::INFINITE).unwrap();
    });
    assert_eq!(rows.iter().map(|row| row.kind).collect::<Vec<_>>(), [80]);
}
