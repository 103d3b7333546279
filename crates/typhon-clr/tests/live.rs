//! Real runtimes: what is read from outside equals what the process counted itself (I-10).
//!
//! `cargo xtask dotnet` installs what these tests need. Without it each reports itself as skipped, and with `CI=true`
//! as failed.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // a panic is a report

use std::cell::Cell;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use typhon_clr::ClrError;
use typhon_clr::endpoint::find;
use typhon_clr::gc::{Collection, GcItem, GcReason, GcRecord, GcType};
use typhon_clr::ipc::{
    BufferMib, Connector, Endpoint, ErrorCode, IpcError, Provider, ReverseListener, ReverseTarget,
    TraceRequest, process_info, resume_runtime,
};
use typhon_clr::session::{GcProgress, GcSession, GcSessionReport, GcSettings, TraceSession};

const PATIENCE: Duration = Duration::from_secs(60);
const ROUNDS: &str = "60";

/// A runtime in `target/dotnet`.
#[derive(Clone, Copy)]
struct Runtime {
    folder: &'static str,
    host: &'static str,
    framework: &'static str,
    /// Prefix of the environment variables that it honours.
    prefix: &'static str,
}

const NET_8: Runtime =
    Runtime { folder: "net8", host: "dnv/net/runtime/.net/dotnet", framework: "8.0.0", prefix: "DOTNET" };
const NET_31: Runtime =
    Runtime { folder: "net31", host: "dotnetcore2/bin/dotnet", framework: "3.1.0", prefix: "COMPlus" };

fn dotnet_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/dotnet")
}

/// One program at a time, so that they do not take each other's processor.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Waits for its turn, or says that the test cannot run.
fn turn(test: &str, runtimes: &[Runtime]) -> Option<MutexGuard<'static, ()>> {
    let all_there = runtimes.iter().all(|&runtime| is_installed(test, runtime));
    all_there.then(|| ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner))
}

fn is_installed(test: &str, runtime: Runtime) -> bool {
    let host = dotnet_dir().join(runtime.folder).join(runtime.host);
    let is_there = host.is_file() && dotnet_dir().join("allocator.exe").is_file();
    let must_be_there = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(is_there || !must_be_there, "{test} needs `cargo xtask dotnet`");
    if !is_there {
        eprintln!("SKIPPED {test}: no .NET runtime, run `cargo xtask dotnet`");
    }
    is_there
}

/// The allocator running under a real runtime.
struct Target {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    folder: tempfile::TempDir,
}

impl Target {
    fn spawn(runtime: Runtime, threads: u32, environment: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("runtimeconfig.json");
        let framework = runtime.framework;
        let text = format!(
            r#"{{"runtimeOptions":{{"framework":{{"name":"Microsoft.NETCore.App","version":"{framework}"}},
            "configProperties":{{"System.Globalization.Invariant":true}}}}}}"#
        );
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(dotnet_dir().join(runtime.folder).join(runtime.host));
        command.args(["exec", "--runtimeconfig"]).arg(config).arg(dotnet_dir().join("allocator.exe"));
        command.args([&threads.to_string(), ROUNDS]);
        // A folder of its own: sockets of killed processes go with it, and every test covers another TMPDIR.
        command.env("TMPDIR", folder.path());
        for (name, value) in environment {
            command.env(format!("{}_{name}", runtime.prefix), value);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, input, lines, folder }
    }

    /// Spawns and waits until the program waits for its start signal; gives its counts so far.
    fn ready(runtime: Runtime, threads: u32, environment: &[(&str, &str)]) -> (Self, Counts) {
        let target = Self::spawn(runtime, threads, environment);
        let counts = target.await_report("ready");
        (target, counts)
    }

    fn id(&self) -> u32 {
        self.child.id()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn go_on(&mut self) {
        writeln!(self.input).unwrap();
    }

    fn await_report(&self, label: &str) -> Counts {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap();
            if let Some(counts) = Counts::parse(&line, label) {
                return counts;
            }
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the program says about itself.
#[derive(Debug, Clone, Copy)]
struct Counts {
    /// `GC.CollectionCount` by generation: collections of this generation or an older one.
    collections: [u64; 3],
    /// `GC.GetTotalPauseDuration`, where it exists.
    pause_ns: Option<u64>,
}

impl Counts {
    fn parse(line: &str, label: &str) -> Option<Self> {
        let numbers =
            line.strip_prefix(label)?.split_whitespace().map(|number| number.parse::<i64>().unwrap());
        let numbers: Vec<i64> = numbers.collect();
        let collections = [numbers[0], numbers[1], numbers[2]].map(|number| number as u64);
        Some(Self { collections, pause_ns: u64::try_from(numbers[3]).ok() })
    }
}

/// What `GC.GetGCMemoryInfo` said about one collection.
#[derive(Debug)]
struct MemoryInfo {
    index: u32,
    generation: u32,
    is_concurrent: bool,
    promoted_bytes: u64,
    committed_bytes: u64,
    size_bytes: [u64; 5],
}

impl MemoryInfo {
    fn parse(line: &str) -> Option<Self> {
        let numbers: Vec<u64> =
            line.strip_prefix("gc ")?.split(' ').map(|number| number.parse().unwrap()).collect();
        Some(Self {
            index: numbers[0] as u32,
            generation: numbers[1] as u32,
            is_concurrent: numbers[2] == 1,
            promoted_bytes: numbers[3],
            committed_bytes: numbers[4],
            size_bytes: numbers[5..].try_into().unwrap(),
        })
    }
}

/// A whole run, seen from both sides.
struct Run {
    records: Vec<GcRecord>,
    report: GcSessionReport,
    before: Counts,
    after: Counts,
    infos: Vec<MemoryInfo>,
}

impl Run {
    fn of(runtime: Runtime, threads: u32, environment: &[(&str, &str)]) -> Self {
        let (mut target, before) = Target::ready(runtime, threads, environment);
        let mut session = GcSession::attach(target.id(), GcSettings::default()).unwrap();
        let (mut records, mut infos) = (Vec::new(), Vec::new());
        let ends = Cell::new(0);
        let mut collect = |item: GcItem<'_>| {
            if let GcItem::Record(record) = item {
                ends.set(ends.get() + u64::from(matches!(record, GcRecord::End(_))));
                records.push(record);
            }
        };
        target.go_on();
        let deadline = Instant::now() + PATIENCE;
        let after = 'finished: loop {
            assert!(Instant::now() < deadline, "the program does not finish");
            assert_eq!(session.poll(Duration::from_millis(20), &mut collect).unwrap(), GcProgress::Running);
            for line in target.lines.try_iter() {
                infos.extend(MemoryInfo::parse(&line));
                if let Some(counts) = Counts::parse(&line, "done") {
                    break 'finished counts;
                }
            }
        };
        // The thread that restarts the others may write its last event after the program has gone on.
        let collections = after.collections[0] - before.collections[0];
        while ends.get() < collections && Instant::now() < deadline {
            session.poll(Duration::from_millis(20), &mut collect).unwrap();
        }
        let report = session.stop(&mut collect).unwrap();
        target.go_on();
        assert!(target.child.wait().unwrap().success(), "the target is unharmed");
        Self { records, report, before, after, infos }
    }

    fn ends(&self) -> HashMap<u32, Collection> {
        let end =
            |record: &GcRecord| if let GcRecord::End(end) = record { Some((end.count, *end)) } else { None };
        self.records.iter().filter_map(end).collect()
    }

    fn check_counts(&self) {
        assert!(self.report.is_complete);
        assert_eq!((self.report.stream.lost_events, self.report.stream.late_events), (0, 0));
        let ends = self.ends();
        for generation in 0..3 {
            let seen = ends.values().filter(|end| end.generation >= generation).count() as u64;
            let counted =
                self.after.collections[generation as usize] - self.before.collections[generation as usize];
            assert_eq!(seen, counted, "collections of generation {generation}");
        }
        for end in ends.values() {
            assert!(end.start.is_some() && end.pause_ticks > 0, "{end:?}");
            let heap = end.heap.unwrap();
            assert!(heap.promoted_is_complete && heap.size_bytes.iter().sum::<u64>() > 0, "{end:?}");
        }
        assert_eq!(self.report.tracker, Default::default());
    }

    fn check_sizes(&self, is_server: bool) {
        let ends = self.ends();
        assert!(!self.infos.is_empty());
        for info in &self.infos {
            let end = &ends[&info.index];
            let heap = end.heap.unwrap();
            let index = info.index;
            assert_eq!(end.generation, info.generation, "collection {index}");
            // A background collection of server GC is summed up before every heap has filled in its part, if the machine
            // is busy. The per-heap report then lacks survivors of the pinned heap, and the runtime's own figures
            // lack sizes of whole heaps, which the heap statistics have.
            let is_hasty = is_server && info.is_concurrent;
            let lacking_bytes = info.promoted_bytes.checked_sub(heap.promoted_bytes);
            let may_lack_bytes = if is_hasty { heap.size_bytes[4] } else { 0 };
            assert!(lacking_bytes.is_some_and(|bytes| bytes <= may_lack_bytes), "{end:?}, {info:?}");
            // While a background collection ends, the program may allocate; beside those that it asked for it does not.
            let is_quiet = !info.is_concurrent || end.start.unwrap().reason == GcReason::INDUCED_NOT_FORCED;
            if is_hasty {
                let pairs = info.size_bytes.iter().zip(&heap.size_bytes);
                assert!(!is_quiet || pairs.clone().all(|(own, seen)| own <= seen), "{end:?}, {info:?}");
            } else if is_quiet {
                assert_eq!(heap.size_bytes, info.size_bytes, "collection {index}");
            }
            // The runtime reports no committed bytes at the end of a background collection.
            if !info.is_concurrent {
                assert_eq!(end.committed_bytes, Some(info.committed_bytes), "collection {index}");
            }
        }
    }

    /// Difference of pause totals and what is allowed of it, ns.
    fn pause_difference(&self) -> (u64, u64) {
        let paused = |record: &GcRecord| match record {
            // The collector stops its own clock before it lets threads go.
            GcRecord::Suspension(suspension) => {
                suspension.duration_ticks - suspension.time_to_restart_ticks.unwrap()
            }
            _ => 0,
        };
        let seen: u64 = self.records.iter().map(paused).sum();
        let counted = self.after.pause_ns.unwrap() - self.before.pause_ns.unwrap();
        (seen.abs_diff(counted), counted / 20 + 100_000 * self.ends().len() as u64)
    }

    /// What the program asked for: each generation, each kind of objects, and in the background.
    fn check_induced(&self, is_concurrent: bool, has_pinned_heap: bool) {
        for generation in 0..3 {
            let is_it = |record: &GcRecord| {
                matches!(record, GcRecord::Start(start)
                    if start.generation == generation && start.reason == GcReason::INDUCED)
            };
            assert!(self.records.iter().any(is_it), "generation {generation}");
        }
        assert!(self.has(GcType::BLOCKING, Some(GcReason::INDUCED_COMPACTING)));
        assert_eq!(self.has(GcType::BACKGROUND, None), is_concurrent);
        let ends = self.ends();
        let uses_heap = |index: usize| ends.values().any(|end| end.heap.unwrap().size_bytes[index] > 0);
        assert!(uses_heap(3), "large objects");
        assert_eq!(uses_heap(4), has_pinned_heap, "pinned objects");
    }

    fn has(&self, kind: GcType, reason: Option<GcReason>) -> bool {
        self.records.iter().any(|record| {
            matches!(record, GcRecord::Start(start)
                if start.kind == kind && reason.is_none_or(|reason| start.reason == reason))
        })
    }
}

fn check_net8(test: &str, threads: u32, is_server: bool, is_concurrent: bool) {
    let Some(_turn) = turn(test, &[NET_8]) else { return };
    let flag = |on: bool| if on { "1" } else { "0" };
    let environment =
        [("gcServer", flag(is_server)), ("gcConcurrent", flag(is_concurrent)), ("GCHeapCount", "2")];
    // The collector reads its clock a moment before and after its events, and a busy machine can put a time slice of
    // another program in between: one run of a few has to agree. Everything else has to agree in each.
    let mut differences = Vec::new();
    for _ in 0..8 {
        let run = Run::of(NET_8, threads, &environment);
        run.check_counts();
        run.check_sizes(is_server);
        run.check_induced(is_concurrent, true);
        assert_eq!(run.infos.iter().any(|info| info.is_concurrent), is_concurrent);
        let (difference, allowed) = run.pause_difference();
        if difference <= allowed {
            return;
        }
        differences.push((difference, allowed));
    }
    panic!("pause totals (difference, allowed) in ns: {differences:?}");
}

#[test]
fn live_net8_workstation() {
    check_net8("live_net8_workstation", 1, false, false);
}

#[test]
fn live_net8_workstation_concurrent() {
    check_net8("live_net8_workstation_concurrent", 1, false, true);
}

#[test]
fn live_net8_server() {
    check_net8("live_net8_server", 2, true, false);
}

#[test]
fn live_net8_server_concurrent() {
    check_net8("live_net8_server_concurrent", 1, true, true);
}

#[test]
fn live_net31_counts_in_every_mode() {
    let Some(_turn) = turn("live_net31_counts_in_every_mode", &[NET_31]) else { return };
    for (is_server, is_concurrent) in [("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")] {
        let environment = [("gcServer", is_server), ("gcConcurrent", is_concurrent), ("GCHeapCount", "2")];
        let run = Run::of(NET_31, 2, &environment);
        run.check_counts();
        assert!(run.ends().values().all(|end| end.committed_bytes.is_none()));
        run.check_induced(is_concurrent == "1", false);
    }
}

#[test]
fn live_process_information() {
    let Some(_turn) = turn("live_process_information", &[NET_8, NET_31]) else { return };
    let (target, _) = Target::ready(NET_8, 1, &[]);
    let mut endpoint = find(target.id()).unwrap();
    assert!(endpoint.path.starts_with(target.folder.path()), "in the target's own TMPDIR");
    let info = process_info(&mut endpoint, PATIENCE).unwrap();
    assert_eq!(info.process_id, u64::from(target.id()));
    assert!(info.command_line.contains("allocator.exe"), "{info:?}");
    assert_eq!(info.entry_assembly.as_deref(), Some("allocator"));
    assert!(info.runtime_version.as_ref().unwrap().starts_with("8.0"), "{info:?}");
    resume_runtime(&mut endpoint, PATIENCE).unwrap();
    let (target, _) = Target::ready(NET_31, 1, &[]);
    let error = process_info(&mut find(target.id()).unwrap(), PATIENCE).unwrap_err();
    assert!(matches!(error, ClrError::Ipc(IpcError::Refused(ErrorCode::UNKNOWN_COMMAND))));
}

#[test]
fn live_reverse_port_sees_the_very_first_collection() {
    let Some(_turn) = turn("live_reverse_port_sees_the_very_first_collection", &[NET_8]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("port");
    let listener = Arc::new(ReverseListener::bind(&path).unwrap());
    let mut target = Target::spawn(NET_8, 1, &[("DiagnosticPorts", path.to_str().unwrap())]);
    let incoming = listener.accept(PATIENCE).unwrap().unwrap();
    assert_eq!(incoming.advertise.process_id, u64::from(target.id()));
    let connector = Box::new(ReverseTarget::new(listener, incoming));
    let mut session = GcSession::start(connector, GcSettings::default()).unwrap();
    session.resume_runtime().unwrap();
    target.await_report("ready");
    target.go_on();
    let mut first = None;
    while first.is_none() {
        session
            .poll(PATIENCE, &mut |item| {
                if let GcItem::Record(GcRecord::Start(start)) = item {
                    first.get_or_insert(start.count);
                }
            })
            .unwrap();
    }
    assert_eq!(first, Some(1));
    session.stop(&mut |_| {}).unwrap();
}

#[test]
fn live_diagnostics_turned_off() {
    if !is_installed("live_diagnostics_turned_off", NET_8)
        || !is_installed("live_diagnostics_turned_off", NET_31)
    {
        return;
    }
    for runtime in [NET_8, NET_31] {
        let (target, _) = Target::ready(runtime, 1, &[("EnableDiagnostics", "0")]);
        let error = GcSession::attach(target.id(), GcSettings::default()).err().unwrap();
        assert!(matches!(error, ClrError::NoEndpoint { .. }), "{error}");
    }
}

#[test]
fn live_a_killed_target_leaves_what_it_sent_and_a_stale_socket() {
    let Some(_turn) = turn("live_a_killed_target_leaves_what_it_sent_and_a_stale_socket", &[NET_8]) else {
        return;
    };
    let (mut target, _) = Target::ready(NET_8, 1, &[]);
    let mut endpoint = find(target.id()).unwrap();
    let mut session = GcSession::attach(target.id(), GcSettings::default()).unwrap();
    target.go_on();
    let mut ends = 0;
    let mut count = |item: GcItem<'_>| ends += u32::from(matches!(item, GcItem::Record(GcRecord::End(_))));
    while session.report().stream.gc_events < 100 {
        session.poll(PATIENCE, &mut count).unwrap();
    }
    target.signal(Signal::KILL);
    while session.poll(PATIENCE, &mut count).unwrap() == GcProgress::Running {}
    assert_eq!(session.poll(PATIENCE, &mut count).unwrap(), GcProgress::Cut);
    assert!(!session.stop(&mut count).unwrap().is_complete);
    assert!(ends > 0);
    target.child.wait().unwrap();
    assert!(matches!(endpoint.connect(PATIENCE), Err(ClrError::StaleEndpoint { .. })));
}

#[test]
fn live_a_target_that_exits_ends_its_stream() {
    let Some(_turn) = turn("live_a_target_that_exits_ends_its_stream", &[NET_8, NET_31]) else { return };
    for runtime in [NET_8, NET_31] {
        let (mut target, _) = Target::ready(runtime, 1, &[]);
        let mut session = GcSession::attach(target.id(), GcSettings::default()).unwrap();
        target.go_on();
        target.go_on();
        while session.poll(PATIENCE, &mut |_| {}).unwrap() == GcProgress::Running {}
        assert_eq!(session.poll(PATIENCE, &mut |_| {}).unwrap(), GcProgress::Ended);
    }
}

#[test]
fn live_sixty_four_sessions_and_no_more() {
    let Some(_turn) = turn("live_sixty_four_sessions_and_no_more", &[NET_8]) else { return };
    let (mut target, before) = Target::ready(NET_8, 1, &[]);
    let start = || {
        let endpoint: Box<Endpoint> = Box::new(find(target.id()).unwrap());
        TraceSession::start(endpoint, &TraceRequest::gc(BufferMib::new(1).unwrap()), PATIENCE)
    };
    let sessions: Vec<TraceSession> = (0..64).map(|_| start().unwrap()).collect();
    let error = start().err().unwrap();
    assert!(matches!(error, ClrError::Ipc(IpcError::Refused(ErrorCode::FAIL))), "{error}");
    for mut session in sessions {
        session.stop(PATIENCE, &mut |_| {}).unwrap();
    }
    target.go_on();
    assert!(target.await_report("done").collections[0] > before.collections[0], "the target works on");
}

#[test]
fn live_attaching_and_detaching_leaves_the_target_as_it_was() {
    let test = "live_attaching_and_detaching_leaves_the_target_as_it_was";
    let Some(_turn) = turn(test, &[NET_8, NET_31]) else { return };
    let cycles = std::env::var("TYPHON_CLR_CYCLES").map_or(50, |cycles| cycles.parse().unwrap());
    for runtime in [NET_8, NET_31] {
        let (mut target, before) = Target::ready(runtime, 1, &[]);
        let open_descriptors = || std::fs::read_dir(format!("/proc/{}/fd", target.id())).unwrap().count();
        let cycle = || {
            let mut session = GcSession::attach(target.id(), GcSettings::default()).unwrap();
            assert!(session.stop(&mut |_| {}).unwrap().is_complete);
        };
        cycle();
        let at_first = open_descriptors();
        (0..cycles).for_each(|_| cycle());
        // The runtime closes its side on a thread of its own, and opens a few things once, when it gets to it.
        const OPENED_ONCE: usize = 3;
        let deadline = Instant::now() + PATIENCE;
        while open_descriptors() > at_first + OPENED_ONCE {
            assert!(Instant::now() < deadline, "{at_first} descriptors became {}", open_descriptors());
            std::thread::yield_now();
        }
        target.go_on();
        assert!(target.await_report("done").collections[0] > before.collections[0], "the target works on");
    }
}

#[test]
fn live_a_reader_that_stalls_does_not_stall_the_target() {
    let Some(_turn) = turn("live_a_reader_that_stalls_does_not_stall_the_target", &[NET_8]) else { return };
    let (mut target, before) = Target::ready(NET_8, 2, &[("gcServer", "1"), ("GCHeapCount", "2")]);
    // Everything the runtime has to say, into the smallest buffer.
    let verbose = Provider::new(typhon_clr::gc::RUNTIME_PROVIDER, u64::MAX, 5, "").unwrap();
    let mut request = TraceRequest::new(verbose);
    request.buffer = BufferMib::new(1).unwrap();
    let mut session =
        GcSession::attach(target.id(), GcSettings { request, ..GcSettings::default() }).unwrap();
    target.go_on();
    let after = target.await_report("done");
    let mut ends = 0;
    let mut count = |item: GcItem<'_>| ends += u64::from(matches!(item, GcItem::Record(GcRecord::End(_))));
    session.poll(PATIENCE, &mut count).unwrap();
    let report = session.stop(&mut count).unwrap();
    assert!(report.is_complete);
    let collections = after.collections[0] - before.collections[0];
    assert!(report.stream.lost_events > 0, "the buffer was meant to overflow");
    assert!(ends <= collections, "{ends} of {collections}");
}

#[test]
fn live_a_target_that_stands_still_is_given_up_in_time() {
    let Some(_turn) = turn("live_a_target_that_stands_still_is_given_up_in_time", &[NET_8]) else { return };
    let (mut target, _) = Target::ready(NET_8, 1, &[]);
    target.signal(Signal::STOP);
    let settings = GcSettings { request_timeout: Duration::from_millis(100), ..GcSettings::default() };
    let error = GcSession::attach(target.id(), settings).err().unwrap();
    assert!(matches!(error, ClrError::Timeout { .. }), "{error}");
    target.signal(Signal::CONT);
    target.go_on();
    target.await_report("done");
}
