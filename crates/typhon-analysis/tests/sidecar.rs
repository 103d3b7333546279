//! The index in a file: equal answers, and nothing that is wrong with it does harm.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};
use typhon_analysis::session::{Cancel, Memory, Session, SessionOptions, SpanOrder, State};
use typhon_analysis::stats::GroupBy;
use typhon_analysis::tile::{
    CONTENT_COUNTERS, CONTENT_INSTANTS, CONTENT_SPANS, CONTENT_TICKS, LaneRows, TILE_STALE, TileRequest,
};

fn corpus(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(name)
}

/// Keeps indexes of any size, and little in memory.
/// Answers are compared, so they must be whole however busy the machine is.
fn unhurried() -> SessionOptions {
    SessionOptions { answer_time: Duration::MAX, ..SessionOptions::default() }
}

fn options() -> SessionOptions {
    SessionOptions { index_min_bytes: 0, memory: Memory::new(0), ..unhurried() }
}

fn open(path: &Path, options: &SessionOptions) -> Session {
    let session = Session::open(path, options.clone()).expect("opens");
    assert_eq!(session.wait_until_idle(), State::Ready, "{:?}", session.remarks());
    session
}

/// Everything that a session says, as far as it does not depend on when it was asked.
fn answers(session: &Session) -> (String, Vec<Vec<u8>>) {
    let meta = session.meta().expect("ready");
    let lanes = session.lanes().expect("ready");
    let cancel = Cancel::new();
    let stats = session.stats(GroupBy::Name, None, 0, &cancel).expect("ready");
    let top = session.top_spans(SpanOrder::Total, None, 0, 20, &cancel).expect("ready");
    let text = format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {lanes:?} {:?} {:?} {:?} {top:?}",
        (meta.zero_ns, meta.end_ns, meta.totals, meta.kinds, meta.tick_p95_ns),
        (meta.notices, meta.losses, meta.stacks, meta.blocks),
        session.names().expect("ready"),
        session.ticks(0..usize::MAX).expect("ready"),
        session.collections(0..usize::MAX).expect("ready"),
        session.survey().expect("ready"),
        stats.rows.iter().map(|row| (&row.key, row.count, row.total_ns, row.self_ns)).collect::<Vec<_>>(),
        stats.gc,
        top.iter().map(|top| session.event(top.span.id).expect("there")).collect::<Vec<_>>(),
    );
    let content = CONTENT_SPANS | CONTENT_INSTANTS | CONTENT_COUNTERS | CONTENT_TICKS;
    let mut tiles = Vec::new();
    for level in [10, 16, 20, 24, 28] {
        for lane in &lanes {
            let lanes = vec![LaneRows { lane: lane.id, first_row: 0, row_count: 255 }];
            let request = TileRequest { level, content, tile_count: 4, lanes, ..TileRequest::default() };
            let keep = |mut tile: typhon_analysis::tile::Tile| {
                tile.flags &= !TILE_STALE;
                if tile.content == typhon_analysis::tile::Content::End {
                    tile.tile = 0;
                }
                let mut bytes = Vec::new();
                tile.encode(&mut bytes);
                tiles.push(bytes);
            };
            session.tiles(&request, &cancel, keep).expect("ready");
        }
    }
    (text, tiles)
}

#[test]
fn inv4_memory_threads_and_sidecar_change_nothing() {
    let folder = tempfile::tempdir().expect("made");
    for name in ["anthill.typhon-trace", "guide-shard.typhon-trace", "all-kinds.typhon-trace"] {
        let trace = folder.path().join(name);
        fs::copy(corpus(name), &trace).expect("copied");
        let plain = open(&trace, &unhurried());
        assert_eq!(plain.index_path(), None);
        let expected = answers(&plain);
        let built = open(&trace, &options());
        let kept = built.index_path().expect("kept");
        assert!(kept.extension().is_some_and(|ending| ending == "typhon-index") && kept.exists());
        assert!(answers(&built) == expected, "{name} built with little memory");
        let written = fs::metadata(&kept).and_then(|data| data.modified()).expect("there");
        let loaded = open(&trace, &options());
        assert!(answers(&loaded) == expected, "{name} from the sidecar");
        assert_eq!(fs::metadata(&kept).and_then(|data| data.modified()).expect("there"), written);
        let left: Vec<_> = fs::read_dir(folder.path()).expect("there").collect();
        assert!(
            left.iter().all(|entry| !entry
                .as_ref()
                .expect("there")
                .file_name()
                .to_string_lossy()
                .starts_with('.'))
        );
    }
}

#[test]
fn f9_a_sidecar_of_another_trace_is_built_anew() {
    let folder = tempfile::tempdir().expect("made");
    let trace = folder.path().join("a.typhon-trace");
    fs::copy(corpus("guide-shard.typhon-trace"), &trace).expect("copied");
    open(&trace, &options());
    fs::copy(corpus("anthill.typhon-trace"), &trace).expect("copied");
    let expected = answers(&open(&corpus("anthill.typhon-trace"), &unhurried()));
    assert!(answers(&open(&trace, &options())) == expected);
}

#[test]
fn f9_damaged_sidecars_are_built_anew_or_refused() {
    let folder = tempfile::tempdir().expect("made");
    let trace = folder.path().join("a.typhon-trace");
    fs::copy(corpus("guide-shard.typhon-trace"), &trace).expect("copied");
    let session = open(&trace, &options());
    let expected = answers(&session);
    let kept = session.index_path().expect("kept");
    let sound = fs::read(&kept).expect("there");
    for step in 0..15 {
        let mut bytes = sound.clone();
        let at = step * bytes.len() / 15;
        match step % 3 {
            0 => bytes[at] ^= 1 << (step % 8),
            1 => bytes.truncate(at),
            _ => bytes[at..(at + 40).min(sound.len())].fill(0xFF),
        }
        fs::write(&kept, &bytes).expect("written");
        let session = open(&trace, &options());
        // What is damaged is noticed when the piece is read: an error, never another answer.
        let (lanes, cancel) = (session.lanes().expect("ready"), Cancel::new());
        let tables = session.stats(GroupBy::Kind, None, 0, &cancel).map(|stats| stats.rows.len());
        if tables.is_ok() && lanes.iter().all(|lane| reads(&session, lane.id)) {
            assert!(answers(&session) == expected, "step {step}");
        }
    }
}

#[test]
fn f9_an_index_that_turns_out_to_be_damaged_is_given_up_and_the_next_one_is_sound() {
    let folder = tempfile::tempdir().expect("made");
    let trace = folder.path().join("a.typhon-trace");
    fs::copy(corpus("anthill.typhon-trace"), &trace).expect("copied");
    let kept = open(&trace, &options()).index_path().expect("kept");
    let mut bytes = fs::read(&kept).expect("there");
    // The first piece begins behind the header.
    bytes[80] ^= 1;
    fs::write(&kept, &bytes).expect("written");
    let session = open(&trace, &options());
    let failed = session.stats(GroupBy::Name, None, 0, &Cancel::new()).expect_err("damaged");
    assert!(failed.is_damaged_index(), "{failed}");
    session.discard_index();
    let State::Failed(why) = session.state() else { panic!("{:?}", session.state()) };
    assert!(why.contains("a.typhon-index") && why.contains("open the trace again"), "{why}");
    assert!(!kept.exists());
    session.discard_index();
    assert_eq!(session.state(), State::Failed(why), "a second request that found it changes nothing");
    let expected = answers(&open(&corpus("anthill.typhon-trace"), &unhurried()));
    assert!(answers(&open(&trace, &options())) == expected);
}

fn reads(session: &Session, lane: u32) -> bool {
    [4, 14, 22, 30].into_iter().all(|level| {
        let lanes = vec![LaneRows { lane, first_row: 0, row_count: 255 }];
        let request = TileRequest { level, content: 31, tile_count: 64, lanes, ..TileRequest::default() };
        session.tiles(&request, &Cancel::new(), |_| {}).is_ok()
    })
}

#[cfg(unix)]
#[test]
fn f9_where_the_folder_cannot_be_written_the_cache_is_used() {
    let folder = tempfile::tempdir().expect("made");
    let (trace, cache) = (folder.path().join("a.typhon-trace"), folder.path().join("cache"));
    fs::copy(corpus("guide-shard.typhon-trace"), &trace).expect("copied");
    // A folder in the place of the sidecar cannot be replaced by a file, not even by root.
    fs::create_dir_all(trace.with_extension("typhon-index").join("x")).expect("made");
    let options = SessionOptions { cache_dir: Some(cache.clone()), ..options() };
    let session = open(&trace, &options);
    assert_eq!(session.remarks().len(), 1, "{:?}", session.remarks());
    let again = open(&trace, &options);
    assert!(answers(&again) == answers(&session));
}

#[test]
fn b3_something_can_be_seen_while_indexing() {
    let options = SessionOptions { preview_pause: Duration::ZERO, ..unhurried() };
    let session = Session::open(&corpus("anthill.typhon-trace"), options).expect("opens");
    let mut generations = 0;
    loop {
        let state = session.state();
        if let Ok(meta) = session.meta() {
            generations = generations.max(meta.generation);
            let lanes = session.lanes().expect("visible");
            assert!(!lanes.is_empty());
        }
        if state == State::Ready {
            break;
        }
        std::thread::yield_now();
    }
    // Every preview is a generation, and so is the end.
    assert!(generations >= 3, "{generations}");
    assert!(session.meta().expect("ready").is_complete);
}

#[test]
fn indexing_can_be_cancelled() {
    let session = Session::open(&corpus("anthill.typhon-trace"), SessionOptions::default()).expect("opens");
    session.cancel();
    assert!(matches!(session.wait(), State::Cancelled | State::Ready));
}

#[cfg(unix)]
#[test]
fn f9_whatever_lies_in_the_place_of_a_sidecar_is_left_alone_or_replaced() {
    let expected = answers(&open(&corpus("guide-shard.typhon-trace"), &unhurried()));
    let folder = tempfile::tempdir().expect("made");
    let elsewhere = folder.path().join("elsewhere");
    fs::write(&elsewhere, "of somebody else").expect("written");
    type Lay<'f> = &'f dyn Fn(&Path);
    let lays: [(&str, Lay<'_>); 5] = [
        ("a link to a file", &|at| std::os::unix::fs::symlink(&elsewhere, at).expect("linked")),
        ("a link to nothing", &|at| std::os::unix::fs::symlink("nothing", at).expect("linked")),
        ("a link to itself", &|at| std::os::unix::fs::symlink(at, at).expect("linked")),
        ("an empty file", &|at| fs::write(at, "").expect("written")),
        ("a named pipe", &|at| {
            let made = std::process::Command::new("mkfifo").arg(at).status();
            assert!(made.is_ok_and(|status| status.success()));
        }),
    ];
    for (what, lay) in lays {
        let trace = folder.path().join(format!("{}.typhon-trace", what.replace(' ', "-")));
        fs::copy(corpus("guide-shard.typhon-trace"), &trace).expect("copied");
        lay(&trace.with_extension("typhon-index"));
        let session = open(&trace, &options());
        assert!(answers(&session) == expected, "{what}");
        assert!(session.index_path().is_some(), "{what}: {:?}", session.remarks());
        assert!(answers(&open(&trace, &options())) == expected, "{what}, again");
    }
    assert_eq!(fs::read_to_string(elsewhere).expect("there"), "of somebody else");
}

#[test]
fn a_session_that_rests_gives_its_memory_back_and_answers_as_before() {
    let folder = tempfile::tempdir().expect("made");
    let trace = folder.path().join("a.typhon-trace");
    fs::copy(corpus("anthill.typhon-trace"), &trace).expect("copied");
    let options = SessionOptions { memory: Memory::new(64 << 20), ..options() };
    let session = open(&trace, &options);
    let filter = session.add_filter("dur>1us", &Cancel::new(), |_| {}).expect("a filter");
    let filtered = |session: &Session| {
        session.matches(filter.id, None, typhon_analysis::session::Direction::Forward, 10).expect("there")
    };
    let (expected, hits) = (answers(&session), filtered(&session));
    assert!(session.rest());
    assert!(!session.rest(), "it rests already");
    assert_eq!(session.state(), State::Ready);
    // Whatever becomes of the name, its index stays.
    fs::remove_file(session.index_path().expect("kept")).expect("removed");
    assert!(answers(&session) == expected);
    assert_eq!(filtered(&session), hits);
    // Without a file there is nothing to rest in.
    let unkept = SessionOptions { index_files: false, ..options };
    assert!(!open(&trace, &unkept).rest());
}

/// Names a trace to a process that a test runs beside itself.
const TRACE: &str = "TYPHON_TEST_TRACE";

/// What of this kind lies in a folder.
fn unfinished(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).expect("there").flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(".typhon-index-")).count()
}

#[test]
fn f9_several_at_once_write_the_same_index_and_one_remains() {
    let folder = tempfile::tempdir().expect("made");
    let trace = folder.path().join("a.typhon-trace");
    fs::copy(corpus("guide-shard.typhon-trace"), &trace).expect("copied");
    let expected = answers(&open(&corpus("guide-shard.typhon-trace"), &unhurried()));
    thread::scope(|scope| {
        for _ in 0..4 {
            // Each with memory of its own, as in processes of their own.
            scope.spawn(|| assert!(answers(&open(&trace, &options())) == expected));
        }
    });
    assert_eq!(unfinished(folder.path()), 0);
    let kept = trace.with_extension("typhon-index");
    let written = fs::metadata(&kept).and_then(|data| data.modified()).expect("there");
    assert!(answers(&open(&trace, &options())) == expected);
    assert_eq!(fs::metadata(&kept).and_then(|data| data.modified()).expect("there"), written);
}

#[test]
fn f9_what_a_killed_process_leaves_does_no_harm() {
    if let Some(trace) = env::var_os(TRACE) {
        open(&PathBuf::from(trace), &options());
        return;
    }
    let folder = tempfile::tempdir().expect("made");
    let trace = folder.path().join("a.typhon-trace");
    fs::copy(corpus("anthill.typhon-trace"), &trace).expect("copied");
    let expected = answers(&open(&corpus("anthill.typhon-trace"), &unhurried()));
    let kept = trace.with_extension("typhon-index");
    let mut killed = 0;
    for round in 0..4 {
        let this = env::current_exe().expect("a program");
        let mut child: Child = Command::new(this)
            .args(["--exact", "f9_what_a_killed_process_leaves_does_no_harm"])
            .env(TRACE, &trace)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let started = Instant::now();
        let left = unfinished(folder.path());
        while unfinished(folder.path()) == left && child.try_wait().expect("a child").is_none() {
            assert!(started.elapsed() < Duration::from_secs(120), "it writes nothing");
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(10 * round));
        child.kill().expect("a child");
        let ended = child.wait().expect("a child");
        killed += u32::from(!ended.success());
        assert!(answers(&open(&trace, &options())) == expected, "round {round}");
        fs::remove_file(&kept).expect("there is an index");
    }
    assert!(killed > 0, "it was never caught while it wrote");
}

#[cfg(unix)]
#[test]
fn f9_on_a_full_disk_the_index_is_kept_in_memory() {
    if let Some(trace) = env::var_os(TRACE) {
        let trace = PathBuf::from(trace);
        let cache = trace.with_file_name("cache");
        let keeping = SessionOptions { index_min_bytes: 0, cache_dir: Some(cache.clone()), ..unhurried() };
        let session = open(&trace, &keeping);
        assert_eq!(session.index_path(), None);
        let remarks = session.remarks();
        assert_eq!(remarks.len(), 2, "{remarks:?}");
        assert!(remarks.iter().all(|remark| remark.contains("kept in")), "{remarks:?}");
        assert!(answers(&session) == answers(&open(&corpus("anthill.typhon-trace"), &unhurried())));
        assert_eq!(unfinished(trace.parent().expect("a folder")) + unfinished(&cache), 0);
        assert!(!trace.with_extension("typhon-index").exists());
        // Where there is not even memory, that is said.
        let session = Session::open(&trace, SessionOptions { memory: Memory::new(0), ..keeping });
        let state = session.expect("opens").wait_until_idle();
        assert!(matches!(&state, State::Failed(reason) if reason.contains("the index")), "{state:?}");
        return;
    }
    let folder = tempfile::tempdir().expect("made");
    let trace = folder.path().join("a.typhon-trace");
    fs::copy(corpus("anthill.typhon-trace"), &trace).expect("copied");
    let this = env::current_exe().expect("a program");
    // No file of this process may become larger than that; whoever tries gets an error, as on a full disk.
    let run = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\""])
        .arg(this)
        .args(["--exact", "f9_on_a_full_disk_the_index_is_kept_in_memory", "--nocapture"])
        .env(TRACE, &trace)
        .output()
        .expect("there is a shell");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(String::from_utf8_lossy(&run.stdout).contains("1 passed"));
}
