//! Processes that are killed while they record.
//!
//! ```sh
//! TYPHON_TEST_KILLS=200 cargo test -p typhon-profiler --test lifecycle i10
//! ```

use super::{Home, TRACE};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use typhon_profiler::events::TransactionCommit;
use typhon_profiler::{mark, name, span};
use typhon_trace::reader::Sections;

pub(crate) const TESTS: &[(&str, fn())] = &[(
    "i10_a_killed_process_leaves_everything_older_than_a_second",
    a_killed_process_leaves_everything_older_than_a_second,
)];

/// Number of kills, 10 by default.
const KILLS: &str = "TYPHON_TEST_KILLS";
const KILLS_AT_ONCE: u64 = 4;
/// Victims live shorter than this: long enough to be killed while they start, and while they have recorded for a while.
const LIFETIME_MAX_US: u64 = 2_500_000;
/// Where victims say how far they are, beside their trace.
const PROGRESS: &str = "progress";

fn monotonic_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// The victim: records for ever and says when it was how far. It leaves the consumer time to keep up, since batches
/// that wait for a slow disk are counted, not written.
pub(crate) fn record_for_ever() {
    let step = name("step").unwrap();
    for value in 0.. {
        mark(step, value);
        drop(span!(TransactionCommit::default()));
        if value % 100 == 0 {
            println!("{value} {}", monotonic_ns());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn a_killed_process_leaves_everything_older_than_a_second() {
    let kills: u64 = std::env::var(KILLS).ok().map_or(10, |kills| kills.parse().unwrap());
    let (next, meaningful) = (AtomicU64::new(0), AtomicU64::new(0));
    let kill_some = || {
        loop {
            let kill = next.fetch_add(1, Ordering::Relaxed);
            if kill >= kills {
                break;
            }
            // Spread evenly over the range, in an order that looks random.
            let lifetime_us = kill.wrapping_mul(0x9E37_79B9_7F4A_7C15) % LIFETIME_MAX_US;
            meaningful.fetch_add(u64::from(check(kill, lifetime_us)), Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| (0..KILLS_AT_ONCE).for_each(|_| _ = scope.spawn(kill_some)));
    let meaningful = meaningful.into_inner();
    println!("{kills} kills, {meaningful} of them of victims that had recorded for more than a second");
    assert!(meaningful > 0 || kills == 0, "no victim lived long enough");
}

/// Kills a victim at some age and looks at its file. Had it recorded something a second before?
fn check(kill: u64, lifetime_us: u64) -> bool {
    let what = format!("kill {kill} after {lifetime_us} µs");
    let home = Home::new();
    let mut command = home.command("record-for-ever", &[("TYPHON__PROFILER__TRACE", TRACE)]);
    let mut victim = command.stdout(File::create(home.path(PROGRESS)).unwrap()).spawn().unwrap();
    std::thread::sleep(Duration::from_micros(lifetime_us));
    let killed_ns = monotonic_ns();
    victim.kill().unwrap();
    victim.wait().unwrap();

    let progress = std::fs::read_to_string(home.path(PROGRESS)).unwrap();
    let expected = last_before(&progress, killed_ns - 1_000_000_000);
    // A victim may not even have come to the first bytes of its file.
    let has_begun = home.path(TRACE).metadata().is_ok_and(|metadata| metadata.len() > 0);
    if !has_begun {
        assert_eq!(expected, None, "{what}");
        return false;
    }
    let recording = home.recording(TRACE);
    assert!(!recording.is_whole, "{what}: the file says that it was not closed");
    assert!(
        recording.values.last().copied() >= expected,
        "{what}: {:?}",
        (recording.values.last(), expected)
    );
    assert!(recording.values.iter().zip(0..).all(|(value, index)| *value == index), "{what}: a gap");
    let names_its_places = File::open(home.path(&format!("{TRACE}.sites"))).is_ok_and(names_the_victim);
    assert!(names_its_places || recording.values.is_empty(), "{what}: the call sites are beside the file");
    expected.is_some()
}

/// Do the sections beside a trace say where the victim records?
fn names_the_victim(beside: File) -> bool {
    let (sections, notices) = Sections::read_beside(beside).unwrap();
    assert!(notices.is_empty(), "{notices:?}");
    let places = sections.source_manifest.unwrap_or_default().entries;
    places.iter().any(|place| place.method.ends_with("kills::record_for_ever"))
}

/// The last value that a victim had recorded at some time.
fn last_before(progress: &str, time_ns: i64) -> Option<i32> {
    let whole = progress.rsplit_once('\n')?.0;
    let mut said = whole.lines().map(|line| {
        let (value, at_ns) = line.split_once(' ').unwrap();
        (value.parse().unwrap(), at_ns.parse::<i64>().unwrap())
    });
    said.rfind(|(_, at_ns)| *at_ns <= time_ns).map(|(value, _)| value)
}
