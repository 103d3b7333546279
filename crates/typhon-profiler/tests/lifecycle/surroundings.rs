//! Processes whose surroundings are against them: a full disk, no more threads, no `/proc`, another working directory.

use super::child::{MARKS, work};
use super::{Home, Life, TRACE};
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use typhon_profiler::gauges::{self, GaugeValue, Readings};
use typhon_profiler::{init, mark, name, session, shutdown, thread, tick};

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("b21_a_file_on_a_full_file_system_is_readable_and_the_loss_exact", full_file_system),
    ("b21_a_full_standard_error_costs_no_count", standard_error_is_full),
    ("b35_a_start_on_a_full_file_system_is_one_line_and_leaves_nothing", start_on_a_full_file_system),
    ("b11_threads_live_where_proc_is_not_mounted", threads_live_without_proc),
    ("b27_a_thread_that_cannot_be_started_is_one_line", no_thread_at_all),
    ("b27_no_thread_for_the_consumer_leaves_nothing", no_thread_for_the_consumer),
    ("b27_no_threads_for_the_rest_is_one_line_each", no_threads_for_the_rest),
    ("b28_a_program_that_changes_its_directory_records_to_where_it_began", another_working_directory),
    ("b10_a_forked_child_does_not_wait_for_locks_of_its_parent", forked_while_names_are_made),
    ("b26_a_source_of_gauges_that_panics_costs_its_own_values_only", source_that_panics),
];

pub(crate) fn play(role: &str) {
    match role {
        "fill" => fill(),
        "threads-live" => threads_live(),
        "one-thread" => with_threads(1),
        "two-threads" => with_threads(2),
        "elsewhere" => elsewhere(),
        "fork-beside-names" => fork_beside_names(),
        "broken-source" => broken_source(),
        _ => panic!("no role {role}"),
    }
}

/// Runs a child after commands of a shell have mounted something that only the child sees, and commands after it.
/// `None` where that is not allowed; with `CI=true` it has to be.
fn run_mounted(home: &Home, role: &str, mounts: &str, after: &str) -> Option<Life> {
    let script = format!("{mounts} && echo mounted && {{ \"$0\"; code=$?; {after}; exit $code; }}");
    let command = home.command(role, &[("TYPHON__PROFILER__TRACE", "disk/run.typhon-trace")]);
    for privileges in [&[][..], &["--user", "--map-root-user"]] {
        let mut unshare = std::process::Command::new("unshare");
        unshare.arg("--mount").args(privileges).args(["sh", "-c", &script]).arg(command.get_program());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => unshare.env(name, value),
                None => unshare.env_remove(name),
            };
        }
        let Ok(output) = unshare.current_dir(home.path("")).output() else { break };
        let mut life = Life::of(output);
        if life.said.first().is_some_and(|line| line == "mounted") {
            life.said.remove(0);
            return Some(life);
        }
    }
    println!("skipped: this system lets nobody mount anything, not even for itself");
    assert!(!std::env::var("CI").is_ok_and(|ci| ci == "true"), "with CI=true, nothing is skipped");
    None
}

/// A home with a folder that a small file system goes over, and what mounts it.
fn with_small_disk(bytes: u32) -> (Home, String) {
    let home = Home::new();
    std::fs::create_dir(home.path("disk")).unwrap();
    (home, format!("mount -t tmpfs -o size={bytes} tmpfs disk"))
}

/// Keeps what is on the small file system, which goes away with the child.
const KEEP: &str = "cp -r disk kept";

/// Records far more than a small file system holds and says how much, and how much of it was lost.
fn fill() {
    let step = name("step").unwrap();
    let mut emitted = 0;
    for _ in 0..20 {
        for _ in 0..10_000 {
            // Not in an order that compresses well.
            mark(step, i32::wrapping_mul(emitted, 0x9E37_79B1_u32 as i32));
            emitted += 1;
        }
        // Time for the consumer, so that the file is the only place where records are lost.
        session::flush(Duration::from_secs(60));
    }
    let report = shutdown().unwrap();
    println!("{emitted} {} {}", report.dropped_records, report.exporters[0].dropped_records);
}

/// What the child made is in the file or counted.
fn assert_exact(home: &Home, file: &str, life: &Life) {
    assert!(life.is_well(), "{:?} {:?}", life.said, life.errors);
    let numbers: Vec<usize> = life.said[0].split(' ').map(|number| number.parse().unwrap()).collect();
    let [emitted, before_the_file, by_the_file] = numbers[..] else { panic!("{:?}", life.said) };
    let recording = home.recording(file);
    let recorded = recording.values.len();
    assert!(recorded > 0 && by_the_file > 0);
    assert_eq!(emitted, recorded + before_the_file + by_the_file);
    let sites = home.path(&format!("{file}.sites"));
    assert_eq!(recording.is_whole, !sites.exists(), "what a file that is not closed lacks is beside it");
    assert!(!home.path(&format!("{file}.sites.new")).exists());
}

fn full_file_system() {
    let (home, mount) = with_small_disk(256 << 10);
    let Some(life) = run_mounted(&home, "fill", &mount, KEEP) else { return };
    assert_exact(&home, "kept/run.typhon-trace", &life);
    assert_eq!(life.errors.len(), 2, "{:?}", life.errors);
    for part in ["disk/run.typhon-trace", "No space left on device", "counted, the program goes on"] {
        assert!(life.errors[1].contains(part), "{part}: {:?}", life.errors);
    }
}

/// As that of a service whose log is on the same disk.
fn standard_error_is_full() {
    let home = Home::new();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = home.command("limited-file", &[("TYPHON__PROFILER__TRACE", TRACE)]);
    let life = Life::of(command.stderr(full).output().unwrap());
    assert_exact(&home, TRACE, &life);
}

fn start_on_a_full_file_system() {
    let (home, mount) = with_small_disk(64 << 10);
    let ballast = "head -c 65536 /dev/zero >disk/ballast";
    let Some(life) = run_mounted(&home, "work", &format!("{mount} && {ballast}"), KEEP) else { return };
    assert!(life.is_well(), "{:?}", life.errors);
    assert_eq!(life.errors.len(), 1, "{:?}", life.errors);
    for part in ["TYPHON__PROFILER__TRACE", "disk/run.typhon-trace", "No space left", "free some space"] {
        assert!(life.errors[0].contains(part), "{part}: {:?}", life.errors);
    }
    let kept: Vec<PathBuf> =
        std::fs::read_dir(home.path("kept")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(kept, [home.path("kept/ballast")]);
}

/// Asks after threads that exist, and one that does not.
fn threads_live() {
    let ended = std::thread::spawn(thread::os_id).join().unwrap();
    // The thread is gone a little after it was joined.
    while !thread::is_gone(ended) {
        std::thread::yield_now();
    }
    assert!(!thread::is_gone(thread::os_id()));
}

fn threads_live_without_proc() {
    let home = Home::new();
    std::fs::create_dir(home.path("empty")).unwrap();
    let Some(life) = run_mounted(&home, "threads-live", "mount --bind empty /proc", "true") else { return };
    assert!(life.is_well(), "{:?}", life.errors);
}

/// A size of stacks that no thread can have.
const NO_THREADS: (&str, &str) = ("RUST_MIN_STACK", "35184372088832");

fn no_thread_at_all() {
    for (trace, of) in [(TRACE, "file"), ("none", "the consumer")] {
        let home = Home::new();
        let environment =
            [("TYPHON__PROFILER__ENABLED", "true"), ("TYPHON__PROFILER__TRACE", trace), NO_THREADS];
        let life = home.run("work", &environment);
        assert!(life.is_well(), "{:?}", life.errors);
        assert_eq!(life.errors.len(), 1, "{:?}", life.errors);
        for part in
            ["typhon-profiler: ", &format!("the thread of {of} could not start"), "nothing is recorded"]
        {
            assert!(life.errors[0].contains(part), "{part}: {:?}", life.errors);
        }
        assert_eq!(home.files(), [""; 0]);
    }
}

/// Lets this process have so many threads besides this one, and works.
fn with_threads(more: libc::rlim_t) {
    let limit = libc::rlimit { rlim_cur: 1 + more, rlim_max: 1 + more };
    // SAFETY: no memory is involved but the limit, a value of its type. It is one of all threads of a user together, and
    // none for the system's own: the process becomes a user that nobody else is, or counts apart from the others.
    let limited = unsafe {
        (libc::setuid(54_321) == 0 || libc::unshare(libc::CLONE_NEWUSER) == 0)
            && libc::setrlimit(libc::RLIMIT_NPROC, &limit) == 0
    };
    println!("{}", if limited { "limited" } else { "unlimited" });
    if limited {
        work(0);
    }
}

/// Runs a child that may have so many threads; `None` where threads cannot be limited.
fn run_limited(home: &Home, role: &str) -> Option<Life> {
    use std::os::unix::fs::PermissionsExt;
    // The child may become another user.
    std::fs::set_permissions(home.path(""), std::fs::Permissions::from_mode(0o777)).unwrap();
    let life = home.record(role);
    assert!(life.is_well(), "{:?}", life.errors);
    if life.said[0] == "limited" {
        return Some(life);
    }
    println!("skipped: the threads of this user cannot be limited");
    assert!(!std::env::var("CI").is_ok_and(|ci| ci == "true"), "with CI=true, nothing is skipped");
    None
}

fn no_thread_for_the_consumer() {
    let home = Home::new();
    let Some(life) = run_limited(&home, "one-thread") else { return };
    assert_eq!(life.errors.len(), 1, "{:?}", life.errors);
    assert!(life.errors[0].contains("the thread of the consumer could not start"), "{:?}", life.errors);
    assert_eq!(home.files(), [""; 0], "the file that was begun is gone");
}

fn no_threads_for_the_rest() {
    let home = Home::new();
    let Some(life) = run_limited(&home, "two-threads") else { return };
    assert_eq!(life.errors.len(), 3, "{:?}", life.errors);
    for part in ["recording ", "termination signals will not close the file", "no gauges without ticks"] {
        assert!(life.errors.iter().any(|line| line.contains(part)), "{part}: {:?}", life.errors);
    }
    let recording = home.recording(TRACE);
    assert!(recording.is_whole);
    assert_eq!(recording.values, (0..MARKS).collect::<Vec<_>>());
}

/// Goes to another directory while it records, and records once more there.
fn elsewhere() {
    work(0);
    std::fs::create_dir("elsewhere").unwrap();
    std::env::set_current_dir("elsewhere").unwrap();
    assert!(shutdown().is_some());
    init();
    work(0);
}

fn another_working_directory() {
    let home = Home::new();
    let life = home.record("elsewhere");
    assert!(life.is_well(), "{:?}", life.errors);
    assert_eq!(home.files(), ["elsewhere", "run-2.typhon-trace", TRACE]);
    assert_eq!(std::fs::read_dir(home.path("elsewhere")).unwrap().count(), 0);
    assert!(home.recording(TRACE).is_whole && home.recording("run-2.typhon-trace").is_whole);
}

/// Makes children while another thread holds the lock of the names nearly always.
fn fork_beside_names() {
    work(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let texts: Vec<String> = (0..1_000).map(|number| format!("{number:0>200}")).collect();
            while !done.load(Ordering::Relaxed) {
                texts.iter().for_each(|text| _ = name(text));
            }
        });
        // SAFETY: the child asks for a name, which is what is tested, and ends.
        let mut children = (0..100).map(|_| match unsafe { libc::fork() } {
            0 => {
                // SAFETY: no memory is involved. Whoever waits for ever is ended by the alarm.
                unsafe { libc::alarm(30) };
                let answer = name("of a child").map(|name| name.value());
                // SAFETY: ends the child.
                unsafe { libc::_exit(if answer == Ok(0) { 0 } else { 1 }) }
            }
            child => super::child::status_of(child),
        });
        let all_answered = children.all(|status| status == 0);
        done.store(true, Ordering::Relaxed);
        assert!(all_answered);
    });
}

fn forked_while_names_are_made() {
    let home = Home::new();
    let life = home.record("fork-beside-names");
    assert!(life.is_well(), "{:?}", life.errors);
}

/// Ticks beside a source that panics, one of them while the program itself panics.
fn broken_source() {
    let _good = gauges::register(|readings: &mut Readings| readings.set(0x8000, GaugeValue::U32Count(1)));
    let _broken = gauges::register(|readings: &mut Readings| {
        readings.set(0x8001, GaugeValue::U32Count(2));
        std::panic::resume_unwind(Box::new("planned"));
    });
    let unwound = std::panic::catch_unwind(|| {
        let _tick = tick(10);
        std::panic::resume_unwind(Box::new("the program's own"));
    });
    assert!(unwound.is_err());
    drop(tick(11));
}

fn source_that_panics() {
    let home = Home::new();
    let environment = [
        ("TYPHON__PROFILER__TRACE", TRACE),
        ("TYPHON__PROFILER__GAUGES__ENABLED", "on"),
        ("TYPHON__PROFILER__GAUGES__INTERVALMS", "3600000"),
    ];
    let life = home.run("broken-source", &environment);
    assert!(life.is_well(), "{:?}", life.errors);
    assert_eq!(life.errors.len(), 2, "{:?}", life.errors);
    assert!(life.errors[1].contains("a source of gauges panicked"), "{:?}", life.errors);
    let recording = home.recording(TRACE);
    let ids: Vec<(u32, Vec<u16>)> = recording
        .snapshots
        .iter()
        .map(|(tick, gauges)| (*tick, gauges.iter().map(|gauge| gauge.id).collect()))
        .collect();
    assert_eq!(ids, [(10, vec![0x8000]), (11, vec![0x8000])]);
}
