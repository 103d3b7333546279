//! Sessions against a stand-in runtime on a real Unix socket (I-9): healthy, slow, garbled, dying and silent ones.

#![cfg(unix)]
#![allow(clippy::unwrap_used)] // a panic is a report

mod common;

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;

use common::fake::{
    Behaviour, COLLECT_TRACING, COLLECT_TRACING_2, COLLECT_TRACING_3, FakeRuntime, RESUME_RUNTIME,
    STOP_TRACING, UNKNOWN_COMMAND, advertise, answer, serve_reverse,
};
use common::writer::{Blob, Writer};
use common::{records, stream};
use typhon_clr::ClrError;
use typhon_clr::gc::{GcItem, GcRecord};
use typhon_clr::ipc::{
    Bystanders, Connector, Endpoint, ErrorCode, IpcError, Provider, ReverseListener, ReverseTarget,
    TraceRequest, process_info, resume_runtime,
};
use typhon_clr::session::{GcProgress, GcSession, GcSettings, TraceSession};

/// Long enough for any machine, and never waited for in a test that passes.
const PATIENCE: Duration = Duration::from_secs(30);
/// For what is meant to run out.
const SHORT: Duration = Duration::from_millis(50);

fn settings() -> GcSettings {
    GcSettings { request_timeout: PATIENCE, stop_timeout: PATIENCE, ..GcSettings::default() }
}

fn impatient() -> GcSettings {
    GcSettings { request_timeout: SHORT, stop_timeout: SHORT, ..GcSettings::default() }
}

/// Starting must fail; gives why.
fn failure(behaviour: Behaviour, settings: GcSettings) -> (ClrError, Vec<(u8, u8)>) {
    let runtime = FakeRuntime::start(behaviour);
    let error = GcSession::start(runtime.endpoint(), settings).err().unwrap();
    (error, runtime.finish())
}

#[derive(Default)]
struct Found(Vec<GcRecord>);

impl Found {
    fn sink(&mut self) -> impl FnMut(GcItem<'_>) {
        |item| {
            if let GcItem::Record(record) = item {
                self.0.push(record);
            }
        }
    }
}

#[test]
fn a_session_from_start_to_stop() {
    let bytes = stream("net8-workstation-concurrent");
    let (first, rest) = bytes.split_at(30_001);
    let runtime =
        FakeRuntime::start(Behaviour { stream: first.to_vec(), rest: rest.to_vec(), ..Default::default() });
    let mut session = GcSession::start(runtime.endpoint(), settings()).unwrap();
    let mut found = Found::default();
    while session.report().stream.events < 300 {
        assert_eq!(session.poll(PATIENCE, &mut found.sink()).unwrap(), GcProgress::Running);
    }
    assert!(session.clock().is_some());
    let report = session.stop(&mut found.sink()).unwrap();
    assert!(report.is_complete);
    assert_eq!(report.stream.events, 714);
    let key = |record: &GcRecord| format!("{record:?}");
    let (mut found, mut expected) = (found.0, records([&bytes[..]]));
    found.sort_by_key(key);
    expected.sort_by_key(key);
    assert_eq!(found, expected);
    assert_eq!(runtime.finish(), [COLLECT_TRACING_3, STOP_TRACING]);
}

#[test]
fn b7_the_default_request_is_the_checked_in_one() {
    let runtime = FakeRuntime::start(Behaviour::default());
    drop(GcSession::start(runtime.endpoint(), settings()).unwrap());
    let request = runtime.requests().swap_remove(0);
    assert_eq!(request.len(), 118);
    // Version 3, buffer 16, format 1, neither rundown nor stacks, one provider.
    assert_eq!(request[14..34], [118, 0, 2, 4, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
}

#[test]
fn b8_dropping_a_session_stops_it() {
    let runtime = FakeRuntime::start(Behaviour::default());
    drop(GcSession::start(runtime.endpoint(), settings()).unwrap());
    assert_eq!(runtime.finish(), [COLLECT_TRACING_3, STOP_TRACING]);
}

#[test]
fn stopping_reads_on_while_it_waits_for_the_answer() {
    // More than socket buffers hold: a side that does not read would wait for ever.
    let mut writer = Writer::new();
    for _ in 0..8 {
        writer.block("StackBlock", &vec![0; 1 << 20]);
    }
    let runtime = FakeRuntime::start(Behaviour { rest: writer.end(), ..Default::default() });
    let mut session = GcSession::start(runtime.endpoint(), settings()).unwrap();
    assert!(session.stop(&mut |_| {}).unwrap().is_complete);
}

#[test]
fn a_runtime_that_never_answers_the_stop_command_is_left() {
    let runtime = FakeRuntime::start(Behaviour { ignored: vec![STOP_TRACING], ..Default::default() });
    let mut session =
        GcSession::start(runtime.endpoint(), GcSettings { stop_timeout: SHORT, ..settings() }).unwrap();
    let error = session.stop(&mut |_| {}).unwrap_err();
    assert!(matches!(error, ClrError::Timeout { doing: "stopping the tracing session", .. }), "{error}");
}

#[test]
fn a_stream_without_end_does_not_hold_up_the_stop() {
    for ignored in [vec![STOP_TRACING], Vec::new()] {
        let behaviour = Behaviour { stream: vec![0; 1 << 16], floods: true, ignored, ..Default::default() };
        let runtime = FakeRuntime::start(behaviour);
        let endpoint = runtime.endpoint();
        let mut session =
            TraceSession::start(endpoint, &TraceRequest::new(Provider::gc()), PATIENCE).unwrap();
        let error = session.stop(SHORT, &mut |_| {}).unwrap_err();
        assert!(matches!(error, ClrError::Timeout { .. }), "{error}");
    }
}

#[test]
fn an_unknown_command_falls_back_to_the_older_one() {
    let newest_first = [COLLECT_TRACING_3, COLLECT_TRACING_2, COLLECT_TRACING];
    for known in 0..newest_first.len() {
        let refused = newest_first[..known].iter().map(|command| (*command, UNKNOWN_COMMAND)).collect();
        let runtime =
            FakeRuntime::start(Behaviour { refused, rest: Writer::new().end(), ..Default::default() });
        let mut session = GcSession::start(runtime.endpoint(), settings()).unwrap();
        assert!(session.stop(&mut |_| {}).unwrap().is_complete);
        assert_eq!(runtime.finish(), [&newest_first[..=known], &[STOP_TRACING]].concat());
    }
}

#[test]
fn refusals_are_named() {
    let refused = vec![(COLLECT_TRACING_3, ErrorCode::FAIL.0)];
    let (error, commands) = failure(Behaviour { refused, ..Default::default() }, settings());
    assert!(matches!(error, ClrError::Ipc(IpcError::Refused(ErrorCode::FAIL))));
    assert_eq!(error.to_string(), "the runtime refused: failure (too many sessions?) (0x80004005)");
    assert_eq!(commands, [COLLECT_TRACING_3]);
}

#[test]
fn a_silent_runtime_is_given_up_in_time() {
    let (error, _) =
        failure(Behaviour { ignored: vec![COLLECT_TRACING_3], ..Default::default() }, impatient());
    assert_eq!(error.to_string(), "starting the tracing session: no answer within 50 ms");
}

#[test]
fn an_answer_that_drips_does_not_extend_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let dripping = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // Until the other side has had enough; each byte comes within the limit.
        let pause = std::sync::mpsc::channel::<()>();
        let mut bytes = 0;
        while bytes < 10_000 && stream.write_all(&answer(0, &[0; 60_000])[bytes..=bytes]).is_ok() {
            bytes += 1;
            let _ = pause.1.recv_timeout(Duration::from_millis(5));
        }
        bytes
    });
    let error = GcSession::start(Box::new(Endpoint { process_id: 1, path }), impatient()).err().unwrap();
    assert!(matches!(error, ClrError::Timeout { .. }), "{error}");
    assert!(dripping.join().unwrap() < 10_000, "given up long before the answer was complete");
}

#[test]
fn garbage_answers_are_errors() {
    let ok = answer(0, &42u64.to_le_bytes());
    let with = |place: usize, value: u8| {
        let mut bytes = ok.clone();
        bytes[place] = value;
        bytes
    };
    for (raw, message) in [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "the answer is not of the .NET diagnostics protocol"),
        (with(14, 19), "the answer claims a size of 19 bytes, less than its header has"),
        (with(16, 7), "unexpected answer (command set 0x07, id 0x00)"),
        (with(14, 24), "the answer is shorter than its layout"),
        (with(14, 200), "starting the tracing session: the process closed the connection"),
        (ok[..7].to_vec(), "starting the tracing session: the process closed the connection"),
        (Vec::new(), "starting the tracing session: the process closed the connection"),
    ] {
        let raw_answers = vec![(COLLECT_TRACING_3, raw)];
        let (error, _) = failure(Behaviour { raw_answers, ..Default::default() }, settings());
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn b3_a_target_that_exits_ends_the_session_properly() {
    let stream = stream("net31-workstation");
    let runtime = FakeRuntime::start(Behaviour { stream, dies: true, ..Default::default() });
    let mut session = GcSession::start(runtime.endpoint(), settings()).unwrap();
    let mut found = Found::default();
    while session.poll(PATIENCE, &mut found.sink()).unwrap() == GcProgress::Running {}
    assert_eq!(session.poll(PATIENCE, &mut |_| {}).unwrap(), GcProgress::Ended);
    assert_eq!(found.0.len(), 139);
    assert!(session.stop(&mut |_| {}).unwrap().is_complete);
    assert_eq!(runtime.finish(), [COLLECT_TRACING_3], "there is nothing left to stop");
}

#[test]
fn b3_a_target_that_is_killed_leaves_all_complete_blocks() {
    let whole = stream("net31-workstation");
    for cut in [whole.len() - 1, whole.len() / 2] {
        let runtime =
            FakeRuntime::start(Behaviour { stream: whole[..cut].to_vec(), dies: true, ..Default::default() });
        let mut session = GcSession::start(runtime.endpoint(), settings()).unwrap();
        let mut found = Found::default();
        while session.poll(PATIENCE, &mut found.sink()).unwrap() == GcProgress::Running {}
        assert_eq!(session.poll(PATIENCE, &mut |_| {}).unwrap(), GcProgress::Cut);
        assert_eq!(found.0, records([&whole[..cut]]));
        assert!(!found.0.is_empty());
        assert!(!session.stop(&mut |_| {}).unwrap().is_complete);
    }
}

#[test]
fn b3_a_malformed_stream_stops_the_session() {
    let mut damaged = stream("net8-server");
    let middle = damaged.len() / 2;
    damaged[middle..].fill(0xff);
    let runtime = FakeRuntime::start(Behaviour { stream: damaged, ..Default::default() });
    let mut session = GcSession::start(runtime.endpoint(), settings()).unwrap();
    let error = loop {
        match session.poll(PATIENCE, &mut |_| {}) {
            Ok(progress) => assert_eq!(progress, GcProgress::Running),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ClrError::Stream(_)), "{error}");
    assert_eq!(runtime.finish(), [COLLECT_TRACING_3, STOP_TRACING]);
}

#[test]
fn b4_held_events_are_released_when_the_target_falls_silent() {
    let mut writer = Writer::new();
    writer.metadata(1, 9, 1);
    writer.metadata(2, 3, 1);
    let blob = |metadata_id, sequence, timestamp, payload| Blob {
        metadata_id,
        thread: 7,
        sequence,
        timestamp,
        sorted: false,
        payload,
    };
    let begin = [1u32, 0].map(u32::to_le_bytes).concat();
    writer.events(&[blob(1, 1, 2000, [&begin[..], &[0; 2]].concat()), blob(2, 2, 2500, vec![0; 2])]);
    let runtime = FakeRuntime::start(Behaviour { stream: writer.bytes, ..Default::default() });
    let settings = GcSettings { order_delay: Duration::from_millis(20), ..settings() };
    let mut session = GcSession::start(runtime.endpoint(), settings).unwrap();
    let mut found = Found::default();
    while found.0.is_empty() {
        session.poll(PATIENCE, &mut found.sink()).unwrap();
    }
    assert!(matches!(found.0[..], [GcRecord::Suspension(window)] if window.duration_ticks == 500));
}

#[test]
fn a_stale_socket_is_told_from_a_missing_one_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dotnet-diagnostic-1-2-socket");
    let endpoint = || Box::new(Endpoint { process_id: 1, path: path.clone() });
    let error = GcSession::start(endpoint(), settings()).err().unwrap();
    assert!(matches!(error, ClrError::NoEndpoint { .. }) && error.is_absent(), "{error}");
    drop(UnixListener::bind(&path).unwrap());
    let error = GcSession::start(endpoint(), settings()).err().unwrap();
    assert!(matches!(error, ClrError::StaleEndpoint { .. }) && error.is_absent(), "{error}");
    assert!(path.exists());
}

#[test]
fn a_runtime_whose_queue_is_full_is_given_up_in_time() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let stalled = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    bind(&stalled, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    listen(&stalled, 0).unwrap();
    let _queued = UnixStream::connect(&path).unwrap();
    let error = GcSession::start(Box::new(Endpoint { process_id: 1, path }), impatient()).err().unwrap();
    assert_eq!(error.to_string(), "connecting to the runtime: no answer within 50 ms");
}

#[test]
fn process_information_falls_back_to_older_forms() {
    let text = |text: &str| {
        let units = text.encode_utf16().chain([0]).collect::<Vec<_>>();
        [
            &(units.len() as u32).to_le_bytes()[..],
            &units.into_iter().flat_map(u16::to_le_bytes).collect::<Vec<_>>(),
        ]
        .concat()
    };
    let payload =
        [&4711u64.to_le_bytes()[..], &[7; 16], &text("dotnet a.dll"), &text("Linux"), &text("x64")].concat();
    let raw_answers = vec![((4, 0), answer(0, &payload))];
    let runtime = FakeRuntime::start(Behaviour { raw_answers, ..Default::default() });
    let info = process_info(&mut *runtime.endpoint(), PATIENCE).unwrap();
    assert_eq!(
        (info.process_id, info.command_line.as_str(), info.runtime_version),
        (4711, "dotnet a.dll", None)
    );
    assert_eq!(runtime.finish(), [(4, 8), (4, 4), (4, 0)]);
    // .NET Core 3.1 knows none of them.
    let runtime = FakeRuntime::start(Behaviour::default());
    let error = process_info(&mut *runtime.endpoint(), PATIENCE).unwrap_err();
    assert!(matches!(error, ClrError::Ipc(IpcError::Refused(ErrorCode::UNKNOWN_COMMAND))));
    resume_runtime(&mut *runtime.endpoint(), PATIENCE).unwrap();
}

#[test]
fn reverse_connections_carry_a_session_from_the_start_of_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("port");
    let listener = Arc::new(ReverseListener::bind(&path).unwrap());
    let rest = stream("net10-suspend-start");
    let runtime_path = path.clone();
    let runtime = std::thread::spawn(move || {
        let behaviour = Behaviour { rest, ..Default::default() };
        serve_reverse(behaviour, &runtime_path, [9; 16], 3)
    });
    let incoming = listener.accept(PATIENCE).unwrap().unwrap();
    assert_eq!((incoming.advertise.process_id, incoming.advertise.cookie), (4711, [9; 16]));
    let target = ReverseTarget::new(Arc::clone(&listener), incoming);
    let mut session = GcSession::start(Box::new(target), settings()).unwrap();
    session.resume_runtime().unwrap();
    let mut found = Found::default();
    assert!(session.stop(&mut found.sink()).unwrap().is_complete);
    assert!(session.clock().is_some(), "known although nothing was read before the end");
    let is_first = |record: &GcRecord| matches!(record, GcRecord::Start(start) if start.count == 1);
    assert!(found.0.iter().any(is_first), "the process's very first collection");
    assert_eq!(runtime.join().unwrap(), [COLLECT_TRACING_3, RESUME_RUNTIME, STOP_TRACING]);
    drop((session, listener));
    assert!(!path.exists());
}

#[test]
fn a_reverse_target_keeps_to_its_own_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("port");
    let listener = Arc::new(ReverseListener::bind(&path).unwrap());
    let connect = |bytes: &[u8]| {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(bytes).unwrap();
        stream
    };
    assert!(listener.accept(SHORT).unwrap().is_none());
    let _first = connect(&advertise([1; 16]));
    let mut target = ReverseTarget::new(Arc::clone(&listener), listener.accept(PATIENCE).unwrap().unwrap());
    target.connect(PATIENCE).unwrap();
    let _other = connect(&advertise([2; 16]));
    assert!(matches!(target.connect(SHORT), Err(ClrError::Timeout { .. })));
    let _other = connect(&advertise([2; 16]));
    let _own = connect(&advertise([1; 16]));
    target.connect(PATIENCE).unwrap();
}

#[test]
fn strangers_on_the_reverse_port_are_errors_that_leave_it_usable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("port");
    let listener = ReverseListener::bind(&path).unwrap();
    let _mute = UnixStream::connect(&path).unwrap();
    assert!(matches!(listener.accept(SHORT), Err(ClrError::Timeout { .. })));
    drop(UnixStream::connect(&path).unwrap());
    assert!(matches!(listener.accept(PATIENCE), Err(ClrError::Closed { .. })));
    UnixStream::connect(&path).unwrap().write_all(&[b'x'; 34]).unwrap();
    assert!(matches!(listener.accept(PATIENCE), Err(ClrError::Ipc(IpcError::BadMagic))));
    UnixStream::connect(&path).unwrap().write_all(&advertise([3; 16])).unwrap();
    assert!(listener.accept(PATIENCE).unwrap().is_some());
}

#[test]
fn a_reverse_port_never_takes_over_or_removes_what_others_put_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("port");
    std::fs::write(&path, "precious").unwrap();
    assert!(matches!(ReverseListener::bind(&path), Err(ClrError::Io { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    std::fs::remove_file(&path).unwrap();
    let listener = ReverseListener::bind(&path).unwrap();
    std::fs::rename(&path, folder.path().join("moved")).unwrap();
    std::fs::write(&path, "precious").unwrap();
    drop(listener);
    assert!(path.exists());
}

#[test]
fn a_reverse_port_of_which_no_runtime_can_be_told_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a,b", "a;b"] {
        let refused = ReverseListener::bind(&folder.path().join(name)).unwrap_err();
        assert!(refused.to_string().contains("a comma or a semicolon"), "{refused}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn runtimes_that_are_not_the_target_are_let_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("port");
    let listener = Arc::new(ReverseListener::bind(&path).unwrap());
    let connect = |cookie| {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(&advertise(cookie)).unwrap();
        stream
    };
    let _first = connect([1; 16]);
    let mut target = ReverseTarget::new(Arc::clone(&listener), listener.accept(PATIENCE).unwrap().unwrap());
    target.connect(PATIENCE).unwrap();
    let mut bystanders = Bystanders::new(Arc::clone(&listener), target.advertise());
    bystanders.let_go_on(PATIENCE).unwrap();
    let _own = connect([1; 16]);
    let bystander_path = path.clone();
    let bystander =
        std::thread::spawn(move || serve_reverse(Behaviour::default(), &bystander_path, [2; 16], 1));
    while !bystander.is_finished() {
        bystanders.let_go_on(PATIENCE).unwrap();
    }
    assert_eq!(bystander.join().unwrap(), [RESUME_RUNTIME]);
    // Its next connection is held, not asked again and not closed.
    let mut next = connect([2; 16]);
    bystanders.let_go_on(PATIENCE).unwrap();
    next.set_nonblocking(true).unwrap();
    assert_eq!(next.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    // The target's own connection, taken in meanwhile, is there for its next command.
    target.connect(SHORT).unwrap();
}
