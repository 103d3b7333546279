//! The schedule of the colony builds, and orders what has to be ordered.

use std::time::Duration;

use anthill::Colony;
use typhon_runtime::schedule::{Schedule, ScheduleOptions};

#[test]
fn the_schedule_has_no_faults_and_no_warnings() {
    let schedule = Schedule::new();
    let colony = Colony::new(1_000, 1);
    colony.declare(&schedule);
    colony.declare_storm(&schedule, Duration::from_millis(16));
    let built = schedule.build(&ScheduleOptions::default()).expect("it builds");
    assert!(built.warnings.is_empty(), "{:?}", built.warnings);
    let name =
        |index: typhon_runtime::SystemIndex| built.graph.systems()[usize::from(index.get())].name.clone();
    let edges: Vec<_> = built
        .graph
        .edges()
        .iter()
        .map(|edge| (name(edge.from).to_string(), name(edge.to).to_string()))
        .collect();
    println!("{edges:#?}");
}
