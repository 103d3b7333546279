//! Collections of a .NET runtime in a recording: from the queue on, and from a runtime's socket on. No runtime needed: a
//! stand-in speaks its protocol and sends what a real one once sent.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod common;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use typhon_profiler::config::Overrides;
use typhon_profiler::gc::{
    Collection, CollectionStart, GcReason, GcRecord, GcType, HeapSizes, Ingestion, Loss, LossKind,
    SuspendReason, Suspension,
};
use typhon_profiler::{Init, Status, emit, events, shutdown, tick};
use typhon_trace::event::{GcEndView, GcStartView, GcSuspensionView, PerTickSnapshotView};
use typhon_trace::reader::{FileVerdict, ReadOptions, StreamReader, VerifyOptions, verify};

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

/// The runtime's side of a connection: introduction, one request. Connects until somebody wants something of it, as
/// runtimes do.
fn connect(socket: &Path, cookie: u8) -> (UnixStream, [u8; 2]) {
    loop {
        if let Ok(connected) = try_connect(socket, cookie) {
            return connected;
        }
        std::thread::yield_now();
    }
}

fn try_connect(socket: &Path, cookie: u8) -> io::Result<(UnixStream, [u8; 2])> {
    let mut stream = UnixStream::connect(socket)?;
    let introduction = [&b"ADVR_V1\0"[..], &[cookie; 16], &4711u64.to_le_bytes(), &[0; 2]].concat();
    stream.write_all(&introduction)?;
    let mut header = [0; 20];
    stream.read_exact(&mut header)?;
    let size = u16::from_le_bytes([header[14], header[15]]);
    let mut payload = vec![0; usize::from(size) - header.len()];
    stream.read_exact(&mut payload)?;
    Ok((stream, [header[16], header[17]]))
}

fn answer(stream: &mut UnixStream, payload: &[u8]) {
    let size = (20 + payload.len()) as u16;
    let message = [&b"DOTNET_IPC_V1\0"[..], &size.to_le_bytes(), &[0xFF, 0, 0, 0], payload].concat();
    stream.write_all(&message).unwrap();
}

/// Starts a session, waits to be let go on, and sends `bytes`.
fn begin(socket: &Path, cookie: u8, bytes: &[u8]) -> UnixStream {
    let mut stream = loop {
        match connect(socket, cookie) {
            (stream, [2, 3]) => break stream,
            // The target before it was not gone yet, so that it was only let go on.
            (mut control, command) => {
                assert_eq!(command, [4, 1], "ResumeRuntime");
                answer(&mut control, &0u32.to_le_bytes());
            }
        }
    };
    answer(&mut stream, &1u64.to_le_bytes());
    let (mut control, command) = connect(socket, cookie);
    assert_eq!(command, [4, 1], "ResumeRuntime");
    answer(&mut control, &0u32.to_le_bytes());
    stream.write_all(bytes).unwrap();
    stream
}

/// Is told to stop, and sends the rest only then.
fn stop(socket: &Path, cookie: u8, mut stream: UnixStream, rest: &[u8]) {
    let (mut control, command) = connect(socket, cookie);
    assert_eq!(command, [2, 1], "StopTracing");
    stream.write_all(rest).unwrap();
    answer(&mut control, &1u64.to_le_bytes());
    drop(stream);
}

fn counts(path: &Path) -> BTreeMap<u8, usize> {
    let open = || StreamReader::from_file(File::open(path).unwrap(), ReadOptions::default()).unwrap();
    let report = verify(open(), VerifyOptions { deep: true }, |_| ()).unwrap();
    assert_eq!(report.verdict, FileVerdict::Sound, "{:?}", report.findings);
    let mut counts = BTreeMap::new();
    let mut reader = open();
    while let Some(block) = reader.next_delivered().unwrap() {
        block.payload.events().for_each(|record| *counts.entry(record.kind()).or_default() += 1);
    }
    counts
}

/// G-1, G-12, B-3: nothing but configuration; the target is stopped properly, and a killed one is waited for anew.
#[test]
fn g1_a_configured_recording_has_the_collections_of_its_target() {
    let _turn = common::turn();
    let folder = tempfile::tempdir().unwrap();
    let (socket, trace) = (folder.path().join("port"), folder.path().join("run.typhon-trace"));
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/nettrace/net8-server.nettrace");
    let bytes = std::fs::read(recorded).unwrap();
    let (last, most) = bytes.split_last().unwrap();
    let overrides = Overrides::new()
        .enabled(true)
        .trace(trace.to_str().unwrap())
        .gate("GcTracing", true)
        .set("Profiler:GcTracing:Target", format!("listen:{}", socket.display()));

    assert_eq!(Init::new().overrides(overrides).start(), Status::Recording);
    let stream = begin(&socket, 1, most);
    stop_while(|| stop(&socket, 1, stream, &[*last]));
    let first = counts(&trace);
    assert_eq!([7, 8, 75].map(|kind| first[&kind]), [63, 63, 79], "{first:?}");
    assert!(!socket.exists(), "the port goes with the recording");

    // The next recording of the process: the target is killed, and another one comes.
    assert_eq!(typhon_profiler::init(), Status::Recording);
    drop(begin(&socket, 2, &bytes[..bytes.len() / 2]));
    let stream = begin(&socket, 3, most);
    stop_while(|| stop(&socket, 3, stream, &[*last]));
    let second = counts(&PathBuf::from(trace.to_str().unwrap().replace("run.", "run-2.")));
    assert!(second[&7] > 63 && second[&8] > 63 && second[&75] > 79, "{second:?}");
}

/// Ends the recording while the target does its part.
fn stop_while(target: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        scope.spawn(target);
        assert!(shutdown().is_some());
    });
}
