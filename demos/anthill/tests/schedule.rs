//! The schedule of the colony: it builds without a doubt, and any number of workers makes the same world of it as one
//! system after the other.

mod support;

use std::time::Duration;

use anthill::{Colony, Report};
use typhon::prelude::*;
use typhon::schedule::{Schedule, ScheduleOptions};

const ANTS: u32 = 10_000;
const TICKS: u32 = 130;
const SEED: u64 = 7;

fn hash_with_workers(workers: u8) -> Result<u64, Box<dyn std::error::Error>> {
    let engine = Engine::builder()
        .runtime(|runtime| {
            runtime.worker_count = WorkerCount::Fixed(workers);
            runtime.time_step = TimeStep::Fixed;
        })
        .build()?;
    let colony = Colony::new(ANTS, SEED);
    let runtime = Runtime::create(&engine, |schedule| colony.declare(schedule))?;
    for tick in 1..=TICKS {
        let outcome = runtime.step(Duration::from_millis(16) * tick)?;
        assert_eq!(outcome.failed_systems, 0, "tick {tick}");
    }
    runtime.shutdown()?;
    let Report { tally, told, .. } = colony.report();
    let happened = (tally.picked_up, tally.delivered, tally.died);
    assert_eq!((told.picked_up, told.delivered, told.died), happened, "no event is lost");
    Ok(colony.world().hash())
}

#[test]
fn the_world_is_the_same_for_any_number_of_workers_and_without_a_runtime() {
    let plain = Colony::new(ANTS, SEED);
    (1..=i64::from(TICKS)).for_each(|tick| support::tick(plain.world(), tick));
    let expected = plain.world().hash();
    assert!(
        plain.world().tally.borrow().picked_up > 0,
        "ants have to meet something for this to prove anything"
    );
    for workers in [1, 2, 4] {
        assert_eq!(hash_with_workers(workers).expect("it runs"), expected, "{workers} workers");
    }
}

#[test]
fn the_schedule_has_no_faults_and_no_warnings() {
    let schedule = Schedule::new();
    let colony = Colony::new(1_000, 1);
    colony.declare(&schedule);
    colony.declare_storm(&schedule, Duration::from_millis(16));
    let built = schedule.build(&ScheduleOptions { require_access_declarations: true }).expect("it builds");
    assert!(built.warnings.is_empty(), "{:?}", built.warnings);
    let name = |system| built.graph.system(system).name.as_str();
    let is_ordered = |from: &str, to: &str| {
        built.graph.edges().iter().any(|edge| (name(edge.from), name(edge.to)) == (from, to))
    };
    // Clearing the counts of the last tick goes on beside steering; walking waits for steering.
    assert!(is_ordered("AntSteer", "AntWalk"));
    assert!(!is_ordered("TrafficClear", "AntSteer") && !is_ordered("TrafficClear", "AntWalk"));
}
