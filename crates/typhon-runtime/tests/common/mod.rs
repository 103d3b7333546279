//! Short ways to declare schedules.
#![allow(dead_code, reason = "every test file uses a part of it")]

use typhon_runtime::graph::Graph;
use typhon_runtime::schedule::{
    BuiltSchedule, Callback, DagBuilder, Schedule, ScheduleBuildError, ScheduleFault as Fault,
    ScheduleOptions, SystemBuilder,
};

/// A component.
pub(crate) struct Position;
/// Another one.
pub(crate) struct Velocity;

/// What the schedule says of `Position`.
pub(crate) fn position() -> typhon_runtime::schedule::Subject {
    typhon_runtime::schedule::Subject::Component(std::any::type_name::<Position>().to_owned())
}

/// A callback system that does nothing.
pub(crate) fn system<'s>(dag: DagBuilder<'s>, name: &str) -> SystemBuilder<'s, Callback> {
    dag.callback_system(name, |_| {})
}

/// The DAG "Sim" of the public track, with the phases "A", "B" and "C".
pub(crate) fn sim(schedule: &Schedule) -> DagBuilder<'_> {
    schedule.public_track().declare_dag("Sim").phases(["A", "B", "C"])
}

pub(crate) fn build(declare: impl FnOnce(&Schedule)) -> Result<BuiltSchedule, ScheduleBuildError> {
    build_with(ScheduleOptions::default(), declare)
}

pub(crate) fn build_with(
    options: ScheduleOptions,
    declare: impl FnOnce(&Schedule),
) -> Result<BuiltSchedule, ScheduleBuildError> {
    let schedule = Schedule::new();
    declare(&schedule);
    schedule.build(&options)
}

/// Every edge as `from -> to (reasons)`.
pub(crate) fn edges(graph: &Graph) -> Vec<String> {
    let name = |index| &graph.system(index).name;
    let edges = graph.edges().iter();
    edges.map(|edge| format!("{} -> {} ({})", name(edge.from), name(edge.to), edge.reasons)).collect()
}

pub(crate) fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// Declares a schedule; the argument says whether it is mended.
pub(crate) type Declare = fn(&Schedule, bool);

/// Each rule, declarations that break it, and the faults that they get.
pub(crate) fn expect_all(cases: Vec<(&str, Declare, Vec<Fault>)>) {
    for (rule, declare, faults) in cases {
        let error = build(|schedule| declare(schedule, false)).expect_err(rule);
        assert_eq!(error.faults(), faults, "{rule}");
        let text = error.to_string();
        for fault in &faults {
            assert!(
                !fault.fix().is_empty() && text.contains(&fault.to_string()) && text.contains(&fault.fix()),
                "{text}"
            );
        }
        build(|schedule| declare(schedule, true)).unwrap_or_else(|error| panic!("{rule}, mended: {error}"));
    }
}

/// An owned text.
pub(crate) fn s(text: &str) -> String {
    text.to_owned()
}

/// The first text if it is mended, the second otherwise.
pub(crate) fn pick<T>(mended: bool, good: T, bad: T) -> T {
    if mended { good } else { bad }
}
