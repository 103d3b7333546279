//! Collections of a .NET runtime in a recording, from the runtime's socket on. No runtime needed: a stand-in speaks its
//! protocol and sends what a real one once sent.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod common;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, MutexGuard};
use std::time::Duration;
use tempfile::TempDir;
use typhon_profiler::config::Overrides;
use typhon_profiler::gc::{
    Bridge, BridgeError, Collection, CollectionStart, GcReason, GcType, HeapSizes, SuspendReason,
};
use typhon_profiler::session::SessionReport;
use typhon_profiler::{Init, Status, session, shutdown};
use typhon_trace::event::InstantView;
use typhon_trace::reader::{FileVerdict, ReadOptions, StreamReader, VerifyOptions, verify};

const COLLECT_TRACING_3: [u8; 2] = [2, 4];
const STOP_TRACING: [u8; 2] = [2, 1];
const RESUME_RUNTIME: [u8; 2] = [4, 1];

/// A recording that waits for runtimes at a socket. The configuration of a process holds for all its recordings, so that
/// they share the socket and number their files.
struct Listening {
    socket: PathBuf,
    trace: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Listening {
    fn start() -> Self {
        static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
        static RECORDINGS: AtomicU32 = AtomicU32::new(1);
        let turn = common::turn();
        let (socket, trace) = (FOLDER.path().join("port"), FOLDER.path().join("run.typhon-trace"));
        let overrides = Overrides::new()
            .enabled(true)
            .trace(trace.to_str().unwrap())
            .gate("GcTracing", true)
            .set("Profiler:GcTracing:Target", format!("listen:{}", socket.display()));
        let number = RECORDINGS.fetch_add(1, Ordering::Relaxed);
        let init = if number == 1 { Init::new().overrides(overrides) } else { Init::new() };
        assert_eq!(init.start(), Status::Recording);
        let trace =
            if number == 1 { trace } else { FOLDER.path().join(format!("run-{number}.typhon-trace")) };
        Self { socket, trace, _turn: turn }
    }

    /// Ends the recording while the runtime does its part.
    fn stop_while(&self, end: fn() -> Option<SessionReport>, runtime: impl FnOnce() + Send) -> Recorded {
        std::thread::scope(|scope| {
            scope.spawn(runtime);
            assert!(end().is_some());
        });
        Recorded::read(&self.trace)
    }
}

/// What a file has of it.
#[derive(Debug)]
struct Recorded {
    counts: BTreeMap<u8, usize>,
    sessions_lost: i32,
}

impl Recorded {
    #[track_caller]
    fn read(path: &Path) -> Self {
        let open = || StreamReader::from_file(File::open(path).unwrap(), ReadOptions::default()).unwrap();
        let report = verify(open(), VerifyOptions { deep: true }, |_| ()).unwrap();
        assert_eq!(report.verdict, FileVerdict::Sound, "{:?}", report.findings);
        let mut counts = BTreeMap::new();
        let mut marked: BTreeMap<i32, i32> = BTreeMap::new();
        let mut reader = open();
        while let Some(block) = reader.next_delivered().unwrap() {
            block.payload.events().for_each(|record| {
                *counts.entry(record.kind()).or_default() += 1;
                if record.kind() == 6 {
                    let view = InstantView::from_payload(record.payload().unwrap());
                    *marked.entry(view.name_id().unwrap()).or_default() += view.payload().unwrap();
                }
            });
        }
        let names = &reader.span_names().entries;
        let lost = names.iter().filter(|entry| entry.name == "typhon.gc_session_lost");
        let sessions_lost = lost.filter_map(|entry| marked.get(&i32::from(entry.id))).sum();
        Self { counts, sessions_lost }
    }

    /// Starts, ends and suspensions.
    fn collections(&self) -> [usize; 3] {
        [7, 8, 75].map(|kind| self.counts.get(&kind).copied().unwrap_or(0))
    }
}

/// Collections in [`stream`]: starts, ends, suspensions.
const WHOLE: [usize; 3] = [63, 63, 79];

/// What a runtime sent.
fn stream() -> Vec<u8> {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/nettrace/net8-server.nettrace");
    std::fs::read(recorded).unwrap()
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
            (stream, COLLECT_TRACING_3) => break stream,
            // The target before it was not gone yet, so that it was only let go on.
            (mut control, command) => {
                assert_eq!(command, RESUME_RUNTIME);
                answer(&mut control, &0u32.to_le_bytes());
            }
        }
    };
    answer(&mut stream, &1u64.to_le_bytes());
    let (mut control, command) = connect(socket, cookie);
    assert_eq!(command, RESUME_RUNTIME);
    answer(&mut control, &0u32.to_le_bytes());
    stream.write_all(bytes).unwrap();
    stream
}

/// Is told to stop, and sends the rest only then.
fn stop(socket: &Path, cookie: u8, mut stream: UnixStream, rest: &[u8]) {
    let (mut control, command) = connect(socket, cookie);
    assert_eq!(command, STOP_TRACING);
    // After nonsense nobody may want to hear the rest.
    let _ = stream.write_all(rest);
    answer(&mut control, &1u64.to_le_bytes());
}

/// G-1, G-12, B-3: nothing but configuration; the target is stopped properly, and a killed one is waited for anew.
#[test]
fn g1_a_configured_recording_has_the_collections_of_its_target() {
    let bytes = stream();
    let (last, most) = bytes.split_last().unwrap();
    {
        let listening = Listening::start();
        let socket = &listening.socket;
        let stream = begin(socket, 1, most);
        let recorded = listening.stop_while(shutdown, || stop(socket, 1, stream, &[*last]));
        assert_eq!((recorded.collections(), recorded.sessions_lost), (WHOLE, 0), "{recorded:?}");
        assert!(!socket.exists(), "the port goes with the recording");
    }
    // The next recording of the process: the target is killed, and another one comes.
    let listening = Listening::start();
    let socket = &listening.socket;
    drop(begin(socket, 2, &bytes[..bytes.len() / 2]));
    let stream = begin(socket, 3, most);
    let recorded = listening.stop_while(shutdown, || stop(socket, 3, stream, &[*last]));
    assert!(recorded.collections().iter().zip(WHOLE).all(|(found, whole)| *found > whole), "{recorded:?}");
    assert_eq!(recorded.sessions_lost, 1);
}

#[test]
fn g12_stopping_the_session_itself_ends_that_with_the_runtime_too() {
    let bytes = stream();
    let (last, most) = bytes.split_last().unwrap();
    let listening = Listening::start();
    let socket = &listening.socket;
    let stream = begin(socket, 4, most);
    let recorded = listening.stop_while(session::stop, || stop(socket, 4, stream, &[*last]));
    assert_eq!(recorded.collections(), WHOLE);
    assert!(!socket.exists());
    assert_eq!(Bridge::open().unwrap_err(), BridgeError::NotTraced);
}

/// A stream that becomes nonsense half way.
fn damaged() -> Vec<u8> {
    let mut bytes = stream();
    let middle = bytes.len() / 2;
    bytes[middle..].fill(0xFF);
    bytes
}

#[test]
fn b3_a_malformed_stream_is_stopped_and_tried_once_more() {
    let bytes = stream();
    let (last, most) = bytes.split_last().unwrap();
    let listening = Listening::start();
    let socket = &listening.socket;
    // Now and then is not in a row.
    for _ in 0..2 {
        let stream = begin(socket, 5, &damaged());
        stop(socket, 5, stream, &[]);
        let stream = begin(socket, 5, most);
        drop(stream);
    }
    let stream = begin(socket, 5, most);
    let recorded = listening.stop_while(shutdown, || stop(socket, 5, stream, &[*last]));
    let found = recorded.collections();
    assert!(found.iter().zip(WHOLE).all(|(found, whole)| *found > 3 * whole), "{recorded:?}");
    assert_eq!(recorded.sessions_lost, 4);
}

#[test]
fn b3_a_target_that_sends_only_nonsense_is_given_up() {
    let listening = Listening::start();
    let socket = &listening.socket;
    for _ in 0..2 {
        let stream = begin(socket, 6, &damaged());
        stop(socket, 6, stream, &[]);
    }
    while socket.exists() {
        std::thread::yield_now();
    }
    let recorded = listening.stop_while(shutdown, || ());
    assert_eq!(recorded.sessions_lost, 2);
    assert!(recorded.collections()[0] > 0, "what came before is kept");
}

/// B-10: both ways into the queue, one at a time.
#[test]
fn b10_the_program_takes_over_and_hands_back() {
    let bytes = stream();
    let (last, most) = bytes.split_last().unwrap();
    let listening = Listening::start();
    let socket = &listening.socket;
    let stream = begin(socket, 7, most);
    let bridge = std::thread::scope(|scope| {
        scope.spawn(|| stop(socket, 7, stream, &[*last]));
        Bridge::open().unwrap()
    });
    assert!(bridge.is_open());
    assert_eq!(Bridge::open().unwrap_err(), BridgeError::Busy);
    let now = typhon_clr::session::monotonic_ns();
    let (reason, kind) = (GcReason::INDUCED, GcType::BLOCKING);
    assert!(bridge.suspend_begin(now + 1_000, 1, SuspendReason::GC));
    // Of a sampler, on another thread; and the end of one that nobody saw begin.
    assert!(bridge.suspend_begin(now + 1_100, 2, SuspendReason(0)));
    assert!(bridge.suspend_end(now + 1_200, 3));
    assert!(bridge.start(CollectionStart { timestamp: now + 1_500, count: 1, generation: 0, reason, kind }));
    let heap = HeapSizes {
        size_bytes: [1; 5],
        promoted_bytes: 1,
        promoted_is_complete: true,
        size_before_bytes: None,
    };
    let end = Collection {
        timestamp: now + 1_700,
        count: 1,
        generation: 0,
        start: None,
        pause_ticks: 900,
        heap: Some(heap),
        committed_bytes: None,
    };
    assert!(bridge.end(end));
    assert!(bridge.suspend_end(now + 1_900, 1) && bridge.suspend_end(now + 1_950, 2));
    // Half open, which is counted when the bridge goes.
    assert!(bridge.suspend_begin(now + 2_000, 1, SuspendReason::GC));
    drop(bridge);
    let again = begin(socket, 8, most);
    let recorded = listening.stop_while(shutdown, || stop(socket, 8, again, &[*last]));
    assert_eq!(recorded.collections(), WHOLE.map(|count| 2 * count + 1), "{recorded:?}");
    assert_eq!(recorded.sessions_lost, 0);
}

#[test]
fn b10_a_bridge_ends_with_its_recording() {
    let listening = Listening::start();
    let bridge = Bridge::open().unwrap();
    listening.stop_while(shutdown, || ());
    assert!(!bridge.is_open());
    assert!(!bridge.suspend_begin(1, 1, SuspendReason::GC));
    drop(bridge);
}

/// Whoever connects and is no runtime is no reason to stop waiting for one.
#[test]
fn strangers_at_the_socket_do_not_end_the_wait() {
    let bytes = stream();
    let (last, most) = bytes.split_last().unwrap();
    let listening = Listening::start();
    let socket = &listening.socket;
    let knock = || loop {
        match UnixStream::connect(socket) {
            Ok(stream) => break stream,
            Err(_) => std::thread::yield_now(),
        }
    };
    knock().write_all(&[b'x'; 40]).unwrap();
    drop(knock());
    let stream = begin(socket, 9, most);
    let recorded = listening.stop_while(shutdown, || stop(socket, 9, stream, &[*last]));
    assert_eq!(recorded.collections(), WHOLE);
}

/// Enough to show a leak of one in a cycle.
#[cfg(target_os = "linux")]
#[test]
fn recordings_leave_no_descriptor_and_no_thread() {
    fn mine(entries: &str) -> usize {
        std::fs::read_dir(entries).unwrap().count()
    }
    let threads = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        names.filter(|name| name.starts_with("Typhon.Gc")).count()
    };
    let bytes = stream();
    let (last, most) = bytes.split_last().unwrap();
    let cycle = || {
        let listening = Listening::start();
        let socket = &listening.socket;
        let stream = begin(socket, 10, most);
        listening.stop_while(shutdown, || stop(socket, 10, stream, &[*last]));
        mine("/proc/self/fd")
    };
    let before = cycle();
    assert!((0..10).all(|_| cycle() <= before));
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while threads() > 0 {
        assert!(std::time::Instant::now() < deadline);
        std::thread::yield_now();
    }
}
