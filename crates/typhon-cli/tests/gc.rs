//! `typhon gc`: recorded streams give exactly the expected records, and every way to end leaves a sound file.

mod common;

use common::{Run, arg, read_packed, repository, typhon};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Recorded streams of the repository, without extension.
fn streams() -> Vec<PathBuf> {
    let folder = repository().join("corpus/nettrace");
    let files = std::fs::read_dir(&folder).expect("the folder of recorded streams");
    let paths = files.map(|file| file.expect("a folder entry").path());
    let streams = paths.filter(|path| path.extension().is_some_and(|ending| ending == "nettrace"));
    let stems: Vec<PathBuf> = streams.map(|path| path.with_extension("")).collect();
    assert!(stems.len() >= 6, "{stems:?}");
    stems
}

fn stream(name: &str) -> PathBuf {
    repository().join("corpus/nettrace").join(name).with_extension("nettrace")
}

fn replay(from: &Path, output: &Path) -> Run {
    typhon(&["gc", "-o", arg(output), "--from", arg(from), "--json"])
}

/// The records of a trace, in the form of the expected files.
fn recorded(trace: &Path) -> Vec<Value> {
    let dump = typhon(&["trace", "dump", arg(trace), "--format", "jsonl", "--time", "raw"]).expect(0);
    let mut records: Vec<Value> = dump.json_lines().iter().filter_map(reduced).collect();
    sort(&mut records);
    records
}

fn reduced(line: &Value) -> Option<Value> {
    let fields = &line["fields"];
    Some(match line["id"].as_u64()? {
        7 => json!({
            "kind": 7, "ts": line["ts"], "generation": fields["generation"], "reason": fields["reason"],
            "type": fields["type"], "count": fields["count"],
        }),
        8 => json!({
            "kind": 8, "ts": line["ts"], "generation": fields["generation"], "count": fields["count"],
            "pauseDurationTicks": fields["pauseDurationTicks"], "promotedBytes": fields["promotedBytes"],
            "sizeAfter": [fields["gen0SizeAfter"], fields["gen1SizeAfter"], fields["gen2SizeAfter"],
                fields["lohSizeAfter"], fields["pohSizeAfter"]],
            "totalCommittedBytes": fields["totalCommittedBytes"],
        }),
        75 => {
            assert_eq!((&line["parentSpanId"], &line["traceId"]), (&Value::Null, &Value::Null), "G-5");
            json!({ "kind": 75, "ts": line["ts"], "durationTicks": line["dur"], "reason": fields["reason"] })
        }
        6 | 77 => return None,
        other => panic!("kind {other} in a recording without losses"),
    })
}

fn sort(records: &mut [Value]) {
    records.sort_by_key(|record| (record["ts"].as_u64(), record["kind"].as_u64()));
}

#[track_caller]
fn assert_sound(trace: &Path) {
    let verdict = typhon(&["trace", "verify", arg(trace), "--deep", "--json"]).expect(0).json();
    assert_eq!(verdict["verdict"], "sound");
}

#[test]
fn recorded_streams_become_sound_traces_with_exactly_the_expected_records() {
    let folder = tempfile::tempdir().expect("a folder");
    for stem in streams() {
        let output = folder.path().join("out.typhon-trace");
        let run = replay(&stem.with_extension("nettrace"), &output).expect(0);
        assert_eq!(run.stderr, "");
        assert_sound(&output);
        let expected = read_packed(&stem, "json").expect("expected records");
        let expected: Value = serde_json::from_str(&expected).expect("JSON");
        let mut records = expected["expectedRecords"].as_array().expect("a list").clone();
        for record in &mut records {
            let fields = record.as_object_mut().expect("an object");
            fields.retain(|name, _| !name.ends_with("Known"));
        }
        sort(&mut records);
        assert_eq!(recorded(&output), records, "{}", stem.display());
        assert_eq!(marked(&output), [], "nothing is lost in the recorded streams");
        let info = typhon(&["trace", "info", arg(&output), "--json"]).expect(0).json();
        assert_eq!(info["clock"]["frequency"], expected["trace"]["qpcFrequency"], "the clock is kept");
        check_output(&run, &records);
        // Both are about the same time, also when the recording went on after its last collection.
        let stats = typhon(&["trace", "stats", arg(&output), "--json"]).expect(0).json();
        let conclusion = run.json_lines().pop().expect("a conclusion");
        assert_eq!(stats["gc"]["suspendedShare"], conclusion["gc"]["suspendedShare"], "{}", stem.display());
        std::fs::remove_file(&output).expect("the output is there");
    }
}

/// One object a collection, and one at the end.
fn check_output(run: &Run, records: &[Value]) {
    let mut lines = run.json_lines();
    let conclusion = lines.pop().expect("a conclusion");
    common::schema::check(&conclusion, "gc.json");
    assert_eq!((&conclusion["losses"], &conclusion["dropped"]), (&json!([]), &json!(0)));
    let suspensions = records.iter().filter(|record| record["kind"] == 75).count();
    assert_eq!(conclusion["gc"]["pauses"]["count"], json!(suspensions));
    let ends: Vec<&Value> = records.iter().filter(|record| record["kind"] == 8).collect();
    assert_eq!(lines.len(), ends.len());
    for line in &lines {
        common::schema::check(line, "gc-collection.json");
        let end = ends.iter().find(|end| end["count"] == line["count"]).expect("its record");
        assert_eq!(
            (&line["sizeAfterBytes"], &line["pauseNs"]),
            (&end["sizeAfter"], &end["pauseDurationTicks"])
        );
        // A recording may begin inside a collection, behind its report.
        assert!(line["type"].is_null() || line["sizeBeforeBytes"].as_u64() > Some(0), "{line}");
    }
}

#[test]
fn text_has_a_line_a_collection_and_a_summary() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("out.typhon-trace");
    let run = typhon(&["gc", "-o", arg(&output), "--from", arg(&stream("net8-server"))]).expect(0);
    let lines = run.stdout.lines().filter(|line| line.starts_with('#'));
    let form = regex::Regex::new(
        r"^#\d+ gen[012] (blocking|background|foreground) [\w-]+  pause [\d.]+ (ms|µs|ns)  heap [\d.]+(→| [KM]iB→)[\d.]+ [KM]iB$",
    );
    let form = form.expect("an expression");
    assert_eq!(lines.inspect(|line| assert!(form.is_match(line), "{line}")).count(), 63);
    for part in ["gc      63 collections (gen0 ", "suspended ", "█", "heap    ", "out.typhon-trace  "] {
        assert!(run.stdout.contains(part), "{part} is not in\n{}", run.stdout);
    }
}

/// What a viewer draws is known when the trace is open, without another look at its records: markers, bars, and the
/// stacked sizes with their scale.
#[test]
fn g13_a_viewer_knows_counts_lanes_and_scale_when_the_trace_is_open() {
    use typhon_analysis::index::{LaneKind, Stack};
    use typhon_analysis::session::{Session, SessionOptions, State};
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("out.typhon-trace");
    replay(&stream("net8-server"), &output).expect(0);
    let records = recorded(&output);
    let of_kind = |kind: u64| records.iter().filter(move |record| record["kind"] == kind);
    let count = |kind: u64| of_kind(kind).count() as u64;
    let session = Session::open(&output, SessionOptions::default()).expect("opens");
    assert_eq!(session.wait(), State::Ready);
    let meta = session.meta().expect("ready");
    for kind in [7, 8, 75] {
        assert!(count(kind) > 0 && meta.kinds.contains(&(kind as u8, count(kind))), "{:?}", meta.kinds);
    }
    let lanes = session.lanes().expect("ready");
    let lane = lanes.iter().find(|lane| lane.kind == LaneKind::Gc).expect("a lane of the collector");
    assert_eq!((lane.spans, lane.instants), (count(75), count(7) + count(8)), "bars and markers");
    let sizes = |record: &Value| -> Vec<u64> {
        let sizes = record["sizeAfter"].as_array().expect("a list").iter();
        sizes.map(|size| size.as_u64().expect("a number")).collect()
    };
    let largest = of_kind(8).map(|record| sizes(record).iter().sum::<u64>()).max();
    assert_eq!(meta.stacks.get(&Stack::GcHeap).copied(), largest, "the scale of the stacked sizes");
    for gauge in 0x0110..0x0115 {
        let is_it = |lane: &&typhon_analysis::session::LaneInfo| lane.kind == LaneKind::Gauge { gauge };
        let series = lanes.iter().find(is_it).expect("a series of each generation");
        assert_eq!(series.samples, count(8));
    }
    // The registry's GcEnd has no reason: it is found by the collection's number (B-11).
    let (_, collections) = session.collections(0..usize::MAX).expect("ready");
    let ended = collections.iter().filter(|collection| collection.end_ns.is_some());
    assert!(ended.filter(|collection| collection.reason.is_some()).count() as u64 >= count(8) - 1);
    for start in of_kind(7) {
        let found = collections.iter().find(|it| start["count"] == it.count).expect("each is listed");
        assert_eq!(
            (json!(found.reason), json!(found.gc_type)),
            (start["reason"].clone(), start["type"].clone())
        );
    }
}

/// Losses that are counted in the trace, by name id; 3 is the end of the recording.
fn marked(trace: &Path) -> Vec<(u64, u64)> {
    let dump = typhon(&["trace", "dump", arg(trace), "--format", "jsonl", "--where", "id=6"]).expect(0);
    let marker = |line: &Value| {
        let fields = &line["fields"];
        (fields["nameId"].as_u64().expect("a name"), fields["payload"].as_u64().expect("a number"))
    };
    dump.json_lines().iter().map(marker).filter(|(name_id, _)| *name_id < 3).collect()
}

#[test]
fn a_cut_stream_keeps_what_came_before_and_marks_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cut, output) = (folder.path().join("cut.nettrace"), folder.path().join("out.typhon-trace"));
    let bytes = std::fs::read(stream("net8-server")).expect("a recorded stream");
    let mut half_open = 0;
    for sixteenths in 0..16 {
        // The first one holds nothing but the clock.
        let length = (bytes.len() * sixteenths / 16).max(200);
        std::fs::write(&cut, &bytes[..length]).expect("a copy");
        let run = typhon(&["gc", "-o", arg(&output), "--force", "--from", arg(&cut), "--json"]).expect(0);
        let conclusion = run.json_lines().pop().expect("a conclusion");
        common::schema::check(&conclusion, "gc.json");
        let losses = conclusion["losses"].as_array().expect("a list");
        let count = |code| losses.iter().find(|loss| loss["code"] == code).map(|loss| loss["count"].as_u64());
        assert_eq!(count("broken-off"), Some(Some(1)));
        let mut markers: Vec<(u64, u64)> = Vec::new();
        for (name_id, code) in [(0, "events-lost"), (1, "half-open"), (2, "without-sizes")] {
            markers.extend(count(code).flatten().map(|count| (name_id, count)));
        }
        assert_eq!(marked(&output), markers, "{sixteenths}");
        half_open += markers.iter().filter(|(name_id, _)| *name_id == 1).count();
        assert_sound(&output);
    }
    assert!(half_open > 0, "some cut falls into a suspension");
}

#[test]
fn damage_stops_the_stream_at_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let (bad, output) = (folder.path().join("bad.nettrace"), folder.path().join("out.typhon-trace"));
    let mut bytes = std::fs::read(stream("net8-server")).expect("a recorded stream");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4096].fill(0xFF);
    std::fs::write(&bad, &bytes).expect("a copy");
    let run = replay(&bad, &output).expect(0);
    let conclusion = run.json_lines().pop().expect("a conclusion");
    assert!(conclusion["losses"].to_string().contains("everything before is kept"), "{conclusion}");
    assert_sound(&output);
}

#[test]
fn what_is_no_stream_is_no_input_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    for content in ["", "Nettrace", "this is something else"] {
        std::fs::write(&input, content).expect("a file");
        let run = replay(&input, &output).expect(65);
        assert!(run.stderr.starts_with("error: this is no recorded event stream"), "{}", run.stderr);
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 1);
    }
    replay(&folder.path().join("missing"), &output).expect(66);
}

#[test]
fn command_lines_are_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("out");
    let output = arg(&output);
    for wrong in [
        &["gc", "-o", output][..],
        &["gc", "--pid", "1"],
        &["gc", "-o", output, "--pid", "1", "--listen", "x"],
        &["gc", "-o", output, "--pid", "x"],
        &["gc", "-o", output, "--pid", "1", "--duration", "soon"],
        &["gc", "-o", output, "--pid", "1", "--duration", "-1s"],
        &["gc", "-o", output, "dotnet", "app.dll"],
        &["gc", "-o", output, "--from", "x", "--duration", "1s"],
    ] {
        typhon(wrong).expect(64);
    }
    let unseparated = typhon(&["gc", "-o", output, "dotnet", "app.dll"]);
    assert!(unseparated.stderr.contains("-- <COMMAND>"), "{}", unseparated.stderr);
    std::fs::write(output, "mine").expect("a file");
    let exists = typhon(&["gc", "-o", output, "--from", arg(&stream("net8-server"))]).expect(73);
    assert!(exists.stderr.contains("--force"), "{}", exists.stderr);
    assert_eq!(std::fs::read(output).expect("the file"), b"mine");
}

#[cfg(unix)]
mod targets {
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::net::UnixStream;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    #[test]
    fn processes_that_cannot_be_watched_are_one_clear_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("out");
        let output = arg(&output);
        let gone = typhon(&["gc", "-o", output, "--pid", "4194304"]).expect(69);
        assert_eq!(gone.stderr, "error: no process 4194304\n");
        let ours = std::process::id().to_string();
        let other = typhon(&["gc", "-o", output, "--pid", &ours]).expect(69);
        assert!(other.stderr.contains("DOTNET_EnableDiagnostics"), "{}", other.stderr);
        assert_eq!(other.stderr.lines().count(), 1, "{}", other.stderr);
        let quick = typhon(&["gc", "-o", output, "--", "true"]).expect(69);
        assert!(quick.stderr.contains("no .NET runtime had connected"), "{}", quick.stderr);
        typhon(&["gc", "-o", output, "--", "/no/such/program"]).expect(66);
        typhon(&["gc", "-o", output, "--listen", "/no/such/folder/socket"]).expect(73);
        let in_use = typhon(&["gc", "-o", output, "--listen", "Cargo.toml"]).expect(73);
        assert!(in_use.stderr.contains("delete it, if no other program waits there"), "{}", in_use.stderr);
        let separator = folder.path().join("a,b");
        let untold = typhon(&["gc", "-o", output, "--listen", arg(&separator)]).expect(73);
        assert!(untold.stderr.contains("a comma or a semicolon"), "{}", untold.stderr);
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0);
    }

    /// A folder for temporary files in which runtimes cannot be told of a socket.
    #[test]
    fn a_command_is_told_of_a_socket_whatever_tmpdir_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("out");
        for name in ["a,b", "a;b", &"long".repeat(30)] {
            let tmpdir = folder.path().join(name);
            std::fs::create_dir(&tmpdir).expect("a folder");
            let mut command = common::command();
            command.args(["gc", "-o", arg(&output), "--", "sh", "-c", "echo $DOTNET_DiagnosticPorts"]);
            let run = command.env("TMPDIR", &tmpdir).output().expect("the binary starts");
            let said = String::from_utf8(run.stderr).expect("UTF-8");
            assert_eq!(run.status.code(), Some(69), "{said}");
            let port = said.lines().next().expect("the port");
            assert!(port.starts_with("/tmp/typhon-gc-") && port.len() < 100, "{said}");
            assert!(!Path::new(port).parent().expect("a folder").exists(), "it is gone with us");
        }
    }

    /// A session that breaks before its clock is stated is no success, and no absence of a runtime either.
    #[test]
    fn a_stream_that_never_begins_is_a_failure_with_its_reason() {
        let folder = tempfile::tempdir().expect("a folder");
        let (socket, output) = (folder.path().join("port"), folder.path().join("out"));
        for (bytes, why) in
            [(&b"nonsense"[..], "no nettrace stream"), (b"Nettrace", "the process was killed")]
        {
            let mut child = spawn(&["gc", "-o", arg(&output), "--listen", arg(&socket)]);
            drop(begin(&socket, bytes));
            let mut said = String::new();
            child.stderr.take().expect("piped").read_to_string(&mut said).expect("UTF-8");
            assert_eq!(child.wait().expect("it ends").code(), Some(69), "{said}");
            assert!(said.contains("error: nothing was recorded") && said.contains(why), "{said}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0);
    }

    #[test]
    fn a_command_whose_runtime_does_not_come_is_waited_for_with_a_word() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("out");
        let mut child = spawn(&["gc", "-o", arg(&output), "--", "sleep", "60"]);
        let mut said = BufReader::new(child.stderr.take().expect("piped")).lines();
        let said = said.next().expect("a word").expect("UTF-8");
        assert!(said.contains("must be a .NET program"), "{said}");
        interrupt(&child);
        assert_eq!(child.wait().expect("it ends").code(), Some(130));
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0);
    }

    /// Ctrl+C reaches the command as well.
    #[test]
    fn ctrl_c_that_ends_the_command_too_is_no_failure() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("out");
        let script = "echo ready >&2; kill -INT $PPID; sleep 0.05; exit 3";
        let run = typhon(&["gc", "-o", arg(&output), "--", "sh", "-c", script]).expect(130);
        assert!(!run.stderr.contains("error"), "{}", run.stderr);
    }

    /// Where a path leads does not depend on the folder in which the process is started.
    #[test]
    fn the_port_to_be_named_is_absolute() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = common::command();
        command.args(["gc", "-o", "out", "--listen", "port"]).current_dir(folder.path());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the binary starts");
        let mut said = BufReader::new(child.stderr.take().expect("piped")).lines();
        let said = said.next().expect("that it waits").expect("UTF-8");
        interrupt(&child);
        child.wait().expect("it ends");
        let port = folder.path().canonicalize().expect("the folder").join("port");
        assert!(said.contains(&format!("DOTNET_DiagnosticPorts={}", port.display())), "{said}");
    }

    /// The runtime's side of a connection on a reverse port: introduction, one request.
    fn connect(socket: &Path) -> (UnixStream, [u8; 2]) {
        let mut stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                // The command is still starting.
                Err(_) => std::thread::yield_now(),
            }
        };
        let introduction = [&b"ADVR_V1\0"[..], &[7; 16], &4711u64.to_le_bytes(), &[0; 2]].concat();
        stream.write_all(&introduction).expect("the other side listens");
        let mut header = [0; 20];
        stream.read_exact(&mut header).expect("a request");
        let size = u16::from_le_bytes([header[14], header[15]]);
        let mut payload = vec![0; usize::from(size) - header.len()];
        stream.read_exact(&mut payload).expect("a request");
        (stream, [header[16], header[17]])
    }

    fn answer(stream: &mut UnixStream, payload: &[u8]) {
        let size = (20 + payload.len()) as u16;
        let message = [&b"DOTNET_IPC_V1\0"[..], &size.to_le_bytes(), &[0xFF, 0, 0, 0], payload].concat();
        stream.write_all(&message).expect("the other side reads");
    }

    /// A runtime that sends `bytes`, the last one only when it is told to stop.
    fn serve(socket: &Path, bytes: &[u8]) {
        let (last, most) = bytes.split_last().expect("a stream");
        let stream = begin(socket, most);
        stop(socket, stream, &[*last]);
    }

    /// Is told to stop, and sends the rest only then.
    fn stop(socket: &Path, mut stream: UnixStream, rest: &[u8]) {
        let (mut control, command) = connect(socket);
        assert_eq!(command, [2, 1], "StopTracing");
        stream.write_all(rest).expect("the other side reads");
        answer(&mut control, &1u64.to_le_bytes());
        drop(stream);
    }

    /// Starts a session, waits to be let go on, and sends `bytes`.
    fn begin(socket: &Path, bytes: &[u8]) -> UnixStream {
        let (mut stream, command) = connect(socket);
        assert_eq!(command, [2, 4], "CollectTracing3");
        answer(&mut stream, &1u64.to_le_bytes());
        let (mut control, command) = connect(socket);
        assert_eq!(command, [4, 1], "ResumeRuntime");
        answer(&mut control, &0u32.to_le_bytes());
        stream.write_all(bytes).expect("the other side reads");
        stream
    }

    fn spawn(arguments: &[&str]) -> Child {
        let mut command = common::command();
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the binary starts")
    }

    fn interrupt(child: &Child) {
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(sent.expect("kill exists").success());
    }

    #[test]
    fn ctrl_c_stops_the_session_and_leaves_a_whole_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let (socket, output) = (folder.path().join("port"), folder.path().join("out"));
        let bytes = std::fs::read(stream("net8-workstation-concurrent")).expect("a recorded stream");
        let mut child = spawn(&["gc", "-o", arg(&output), "--json", "--listen", arg(&socket)]);
        let runtime = std::thread::spawn(move || serve(&socket, &bytes));
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        lines.next().expect("a collection").expect("UTF-8");
        interrupt(&child);
        let rest: Vec<String> = lines.map(|line| line.expect("UTF-8")).collect();
        assert_eq!(child.wait().expect("it ends").code(), Some(130));
        runtime.join().expect("the runtime saw a proper end");
        let conclusion: Value = serde_json::from_str(rest.last().expect("a conclusion")).expect("JSON");
        common::schema::check(&conclusion, "gc.json");
        assert_eq!(conclusion["losses"], json!([]));
        assert_sound(&output);
        // Another clock than the host's, so times moved; lengths and sizes did not.
        let without_times = |records: Vec<Value>| -> Vec<Value> {
            let strip = |mut record: Value| {
                record.as_object_mut().expect("an object").remove("ts");
                record
            };
            records.into_iter().map(strip).collect()
        };
        let replayed = folder.path().join("replayed");
        replay(&stream("net8-workstation-concurrent"), &replayed).expect(0);
        assert_eq!(without_times(recorded(&output)), without_times(recorded(&replayed)));
    }

    /// Runs the command until it ends by itself.
    fn watch(output: &Path, socket: &Path, more: &[&str]) -> (Option<i32>, Value) {
        let arguments = [&["gc", "-o", arg(output), "--json", "--listen", arg(socket)], more].concat();
        let ended = spawn(&arguments).wait_with_output().expect("it ends");
        let lines = String::from_utf8(ended.stdout).expect("UTF-8");
        let conclusion = serde_json::from_str(lines.lines().last().expect("a conclusion")).expect("JSON");
        common::schema::check(&conclusion, "gc.json");
        (ended.status.code(), conclusion)
    }

    #[test]
    fn a_duration_ends_the_session_properly() {
        let folder = tempfile::tempdir().expect("a folder");
        let (socket, output) = (folder.path().join("port"), folder.path().join("out"));
        let bytes = std::fs::read(stream("net8-server")).expect("a recorded stream");
        let for_runtime = socket.clone();
        let runtime = std::thread::spawn(move || serve(&for_runtime, &bytes));
        let (code, conclusion) = watch(&output, &socket, &["--duration", "50ms"]);
        runtime.join().expect("the runtime saw a proper end");
        assert_eq!((code, &conclusion["losses"]), (Some(0), &json!([])));
        assert_eq!(recorded(&output).iter().filter(|record| record["kind"] == 8).count(), 63);
        assert_sound(&output);
    }

    #[test]
    fn a_killed_process_leaves_what_it_had_sent() {
        let folder = tempfile::tempdir().expect("a folder");
        let (socket, output) = (folder.path().join("port"), folder.path().join("out"));
        let bytes = std::fs::read(stream("net8-server")).expect("a recorded stream");
        let for_runtime = socket.clone();
        let runtime = std::thread::spawn(move || drop(begin(&for_runtime, &bytes[..bytes.len() / 2])));
        let (code, conclusion) = watch(&output, &socket, &[]);
        runtime.join().expect("the runtime was served");
        assert_eq!(code, Some(0));
        let losses = conclusion["losses"].as_array().expect("a list");
        assert!(losses.iter().any(|loss| loss["code"] == "broken-off"), "{losses:?}");
        assert!(recorded(&output).len() > 20);
        assert_sound(&output);
    }

    /// A file that cannot grow stands for a disk that is full.
    #[test]
    fn a_full_disk_leaves_what_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let (socket, output) = (folder.path().join("port"), folder.path().join("out"));
        let bytes = std::fs::read(stream("net8-server")).expect("a recorded stream");
        let mut command = Command::new("sh");
        let program = common::command();
        command.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh"]).arg(program.get_program());
        command.args(["gc", "-o", arg(&output), "--json", "--listen", arg(&socket)]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("a shell");
        let runtime = std::thread::spawn(move || drop(begin(&socket, &bytes)));
        let ended = child.wait_with_output().expect("it ends");
        runtime.join().expect("the runtime was served");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(74), "{said}");
        assert!(said.contains("what was written before is kept"), "{said}");
        typhon(&["trace", "repair", arg(&output), "-o", arg(&folder.path().join("repaired"))]).expect(0);
    }

    /// Waits until a recording has something on the disk; gives its size.
    fn flushed_bytes(output: &Path) -> u64 {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut sizes = Vec::new();
        while sizes.len() < 2 {
            assert!(Instant::now() < deadline, "nothing is written: {sizes:?}");
            let bytes = std::fs::metadata(output).map_or(0, |data| data.len());
            if sizes.last().map_or(bytes > 0, |last| bytes > *last) {
                sizes.push(bytes);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        sizes[1]
    }

    /// A recording that was not completed opens, and has what was flushed.
    fn assert_opens(output: &Path) {
        let info = typhon(&["trace", "info", "--json", arg(output)]).expect(0).json();
        assert_eq!(info["file"]["closed"], false);
        assert!(recorded(output).iter().filter(|record| record["kind"] == 8).count() > 5, "{info}");
        let stats = typhon(&["trace", "stats", arg(output)]).expect(0);
        assert!(stats.stdout.contains("collections (gen0"), "{}", stats.stdout);
    }

    /// The disk is full from some moment on: no file can grow beyond what this one has.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_disk_that_fills_up_leaves_a_file_that_opens() {
        let folder = tempfile::tempdir().expect("a folder");
        let (socket, output) = (folder.path().join("port"), folder.path().join("out"));
        let bytes = std::fs::read(stream("net8-server")).expect("a recorded stream");
        let (first, second) = bytes.split_at(bytes.len() / 2);
        let child = spawn(&["gc", "-o", arg(&output), "--json", "--listen", arg(&socket)]);
        let mut stream = begin(&socket, first);
        let limit = format!("--fsize={}", flushed_bytes(&output));
        let limited = Command::new("prlimit").args(["--pid", &child.id().to_string(), &limit]).status();
        assert!(limited.expect("prlimit runs").success());
        stream.write_all(second).expect("the other side reads");
        let ended = child.wait_with_output().expect("it ends");
        drop(stream);
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(74), "{said}");
        assert!(said.contains("what was written before is kept"), "{said}");
        assert_opens(&output);
        typhon(&["trace", "repair", arg(&output), "-o", arg(&folder.path().join("repaired"))]).expect(0);
    }

    #[test]
    fn a_folder_that_vanishes_costs_a_line_and_not_the_recording() {
        let place = tempfile::tempdir().expect("a folder");
        let (socket, folder, temporary) =
            (place.path().join("port"), place.path().join("folder"), place.path().join("temporary"));
        for folder in [&folder, &temporary] {
            std::fs::create_dir(folder).expect("a folder");
        }
        let output = folder.join("out");
        let bytes = std::fs::read(stream("net8-server")).expect("a recorded stream");
        let (last, most) = bytes.split_last().expect("a stream");
        let mut command = common::command();
        command.args(["gc", "-o", arg(&output), "--listen", arg(&socket)]).env("TMPDIR", &temporary);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let stream = begin(&socket, most);
        flushed_bytes(&output);
        std::fs::remove_dir_all(&folder).expect("it can be removed");
        interrupt(&child);
        stop(&socket, stream, &[*last]);
        let ended = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(74), "{said}");
        assert!(said.contains("error: the output was deleted while it was written"), "{said}");
        let copies: Vec<_> = std::fs::read_dir(&temporary).expect("the folder").flatten().collect();
        let [copy] = &copies[..] else { panic!("one copy: {copies:?}") };
        assert!(said.contains(&format!("what was recorded is in {}", copy.path().display())), "{said}");
        assert_sound(&copy.path());
        assert_eq!(recorded(&copy.path()).iter().filter(|record| record["kind"] == 8).count(), 63);
    }

    #[test]
    fn a_recorder_that_is_killed_leaves_what_it_had() {
        let folder = tempfile::tempdir().expect("a folder");
        let (socket, output) = (folder.path().join("port"), folder.path().join("out"));
        let bytes = std::fs::read(stream("net8-server")).expect("a recorded stream");
        let mut child = spawn(&["gc", "-o", arg(&output), "--json", "--listen", arg(&socket)]);
        let stream = begin(&socket, &bytes[..bytes.len() / 2]);
        flushed_bytes(&output);
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        drop(stream);
        // Whoever writes into the folder next tidies up, but not this.
        replay(&super::stream("net8-server"), &folder.path().join("next")).expect(0);
        assert_opens(&output);
    }

    #[test]
    fn ctrl_c_before_any_runtime_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let (socket, output) = (folder.path().join("port"), folder.path().join("out"));
        let mut child = spawn(&["gc", "-o", arg(&output), "--listen", arg(&socket)]);
        let mut said = BufReader::new(child.stderr.take().expect("piped")).lines();
        said.next().expect("that it waits").expect("UTF-8");
        interrupt(&child);
        assert_eq!(child.wait().expect("it ends").code(), Some(130));
        assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0);
    }
}
