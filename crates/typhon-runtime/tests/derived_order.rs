//! Random schedules against a second derivation, written the slow and literal way: every pair of systems, every rule.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use proptest::prelude::*;
use typhon_runtime::event_queue::QueueOptions;
use typhon_runtime::graph::{Component, ComponentAccess as Access, Graph, Reason};
use typhon_runtime::schedule::{
    BuiltSchedule, Schedule, ScheduleBuildError, ScheduleFault as Fault, ScheduleOptions,
};

const PHASES: [&str; 3] = ["A", "B", "C"];

/// A system that was declared: everything by number, names are made of them.
#[derive(Debug, Clone)]
struct Declared {
    dag: usize,
    phase: usize,
    is_exclusive: bool,
    components: Vec<(usize, Access)>,
    /// Resource, written?
    resources: Vec<(usize, bool)>,
    /// Queue of its DAG, 0 or 1, and what is done with it.
    queues: Vec<(usize, QueueUse)>,
    /// Systems that it follows, by place; ignored if of another DAG or the same system.
    after: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueueUse {
    Push,
    Read,
    Drain,
}

/// What is wrong with two systems. For `Read`, the first reads and the second writes; for `Early`, the first consumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wrong {
    Write,
    Read,
    Drain,
    Mutual,
    Early,
    Backward,
    Shared,
    Dags,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    edges: BTreeSet<(usize, usize, Reason)>,
    wrong: BTreeSet<(usize, usize, Wrong)>,
}

fn name(system: usize) -> String {
    format!("S{system}")
}

fn place(name: &str) -> usize {
    name[1..].parse().unwrap()
}

fn declare(systems: &[Declared]) -> Result<BuiltSchedule, ScheduleBuildError> {
    let schedule = Schedule::new();
    let track = schedule.public_track();
    let dags = [track.declare_dag("First").phases(PHASES), track.declare_dag("Second").phases(PHASES)];
    // The second queue of each DAG carries over.
    let queues: Vec<_> = dags
        .iter()
        .enumerate()
        .map(|(at, dag)| {
            let options = QueueOptions::from(8);
            let plain = dag.event_queue::<u8>(format!("{at}/plain"), options);
            [plain, dag.event_queue::<u8>(format!("{at}/carried"), options.carry_over())]
        })
        .collect();
    for (at, system) in systems.iter().enumerate() {
        let mut builder = dags[system.dag].callback_system(name(at), |_| {}).phase(PHASES[system.phase]);
        if system.is_exclusive {
            builder = builder.exclusive_phase();
        }
        for &(component, access) in &system.components {
            builder = builder.component(access, Component::named(format!("C{component}")));
        }
        for &(resource, is_written) in &system.resources {
            let resource = format!("R{resource}");
            builder =
                if is_written { builder.writes_resource(resource) } else { builder.reads_resource(resource) };
        }
        for &(queue, used) in &system.queues {
            let queue = &queues[system.dag][queue];
            builder = match used {
                QueueUse::Push => builder.writes_events(queue),
                QueueUse::Read => builder.reads_events(queue),
                QueueUse::Drain => builder.drains_events(queue),
            };
        }
        builder.after_all(explicit(systems, at).into_iter().map(name));
    }
    schedule.build(&ScheduleOptions::default())
}

/// The systems that this one is told to follow.
fn explicit(systems: &[Declared], at: usize) -> BTreeSet<usize> {
    let is_meant =
        |&&other: &&usize| other != at && other < systems.len() && systems[other].dag == systems[at].dag;
    systems[at].after.iter().filter(is_meant).copied().collect()
}

/// Is there a way along explicit orders?
fn reachable(systems: &[Declared]) -> Vec<Vec<bool>> {
    let count = systems.len();
    let mut ways = vec![vec![false; count]; count];
    let orders = (0..count).flat_map(|at| explicit(systems, at).into_iter().map(move |before| (before, at)));
    orders.for_each(|(before, at)| ways[before][at] = true);
    for by in 0..count {
        for from in 0..count {
            for to in 0..count {
                ways[from][to] |= ways[from][by] && ways[by][to];
            }
        }
    }
    ways
}

/// The rules, one after the other, on every ordered pair.
fn oracle(systems: &[Declared]) -> Outcome {
    let mut outcome = Outcome::default();
    let ways = reachable(systems);
    for a in 0..systems.len() {
        for b in (0..systems.len()).filter(|&b| b != a) {
            let (x, y) = (&systems[a], &systems[b]);
            if x.dag != y.dag {
                if a < b && share_written(x, y) {
                    outcome.wrong.insert((a, b, Wrong::Dags));
                }
                continue;
            }
            if explicit(systems, b).contains(&a) {
                if x.phase > y.phase {
                    outcome.wrong.insert((a, b, Wrong::Backward));
                } else {
                    outcome.edges.insert((a, b, Reason::Explicit));
                }
            }
            let is_ordered = ways[a][b] || ways[b][a];
            match x.phase.cmp(&y.phase) {
                std::cmp::Ordering::Less => across_phases(&mut outcome, (a, x), (b, y)),
                std::cmp::Ordering::Equal => in_one_phase(&mut outcome, (a, x), (b, y), is_ordered),
                std::cmp::Ordering::Greater => {}
            }
        }
    }
    outcome
}

fn has(system: &Declared, component: usize, access: Access) -> bool {
    system.components.contains(&(component, access))
}

fn reads(system: &Declared, component: usize) -> bool {
    [Access::Read, Access::ReadFresh, Access::ReadSnapshot, Access::AdditionalRead]
        .iter()
        .any(|&access| has(system, component, access))
}

fn touches(system: &Declared, component: usize) -> bool {
    reads(system, component) || has(system, component, Access::Write)
}

fn resource(system: &Declared, resource: usize, is_written: bool) -> bool {
    system.resources.contains(&(resource, is_written))
}

fn queue(system: &Declared, queue: usize, used: QueueUse) -> bool {
    system.queues.contains(&(queue, used))
}

fn consumes(system: &Declared, which: usize) -> bool {
    queue(system, which, QueueUse::Read) || queue(system, which, QueueUse::Drain)
}

fn share_written(x: &Declared, y: &Declared) -> bool {
    let component =
        |c| touches(x, c) && touches(y, c) && (has(x, c, Access::Write) || has(y, c, Access::Write));
    let used = |system: &Declared, r| resource(system, r, true) || resource(system, r, false);
    let resources = |r| used(x, r) && used(y, r) && (resource(x, r, true) || resource(y, r, true));
    (0..3).any(component) || (0..3).any(resources)
}

fn across_phases(outcome: &mut Outcome, (a, x): (usize, &Declared), (b, y): (usize, &Declared)) {
    let drained = |q| {
        consumes(x, q) && consumes(y, q) && (queue(x, q, QueueUse::Drain) || queue(y, q, QueueUse::Drain))
    };
    let events = |q| queue(x, q, QueueUse::Push) && consumes(y, q);
    if share_written(x, y) || (0..2).any(events) || (0..2).any(drained) {
        outcome.edges.insert((a, b, Reason::CrossPhase));
    }
    if consumes(x, 0) && queue(y, 0, QueueUse::Push) {
        outcome.wrong.insert((a, b, Wrong::Early));
    }
    if consumes(x, 1) && queue(y, 1, QueueUse::Push) {
        outcome.edges.insert((a, b, Reason::Event));
    }
    if x.is_exclusive || y.is_exclusive {
        outcome.edges.insert((a, b, Reason::Exclusive));
    }
}

fn in_one_phase(
    outcome: &mut Outcome,
    (a, x): (usize, &Declared),
    (b, y): (usize, &Declared),
    is_ordered: bool,
) {
    if x.is_exclusive {
        outcome.wrong.insert((a, a, Wrong::Shared));
    }
    for c in 0..3 {
        match (has(x, c, Access::Write), has(y, c, Access::Write)) {
            (true, true) if a < b && !is_ordered => {
                outcome.wrong.insert((a, b, Wrong::Write));
            }
            (true, false) if reads(y, c) => {
                let is_fresh = has(y, c, Access::ReadFresh) || has(y, c, Access::AdditionalRead);
                let is_snapshot = has(y, c, Access::ReadSnapshot);
                if is_fresh {
                    outcome.edges.insert((a, b, Reason::Fresh));
                }
                if is_snapshot {
                    outcome.edges.insert((b, a, Reason::Snapshot));
                }
                if !is_fresh && !is_snapshot && !is_ordered {
                    outcome.wrong.insert((b, a, Wrong::Read));
                }
            }
            _ => {}
        }
    }
    for r in 0..3 {
        match (resource(x, r, true), resource(y, r, true)) {
            (true, true) if a < b && !is_ordered => {
                outcome.wrong.insert((a, b, Wrong::Write));
            }
            (true, false) if resource(y, r, false) => {
                outcome.edges.insert((a, b, Reason::Resource));
            }
            _ => {}
        }
    }
    for q in 0..2 {
        let forth = queue(x, q, QueueUse::Push) && consumes(y, q);
        let back = queue(y, q, QueueUse::Push) && consumes(x, q);
        let drained = queue(x, q, QueueUse::Drain) || queue(y, q, QueueUse::Drain);
        if forth && back && a < b {
            outcome.wrong.insert((a, b, Wrong::Mutual));
        } else if forth && !back {
            outcome.edges.insert((a, b, Reason::Event));
        } else if !forth && !back && drained && consumes(x, q) && consumes(y, q) && a < b && !is_ordered {
            outcome.wrong.insert((a, b, Wrong::Drain));
        }
    }
}

/// Does no order satisfy all edges?
fn is_cyclic(systems: usize, edges: &BTreeSet<(usize, usize, Reason)>) -> bool {
    let mut left: BTreeSet<usize> = (0..systems).collect();
    while let Some(&free) =
        left.iter().find(|&&to| !edges.iter().any(|&(from, end, _)| end == to && left.contains(&from)))
    {
        left.remove(&free);
    }
    !left.is_empty()
}

fn of_graph(graph: &Graph) -> BTreeSet<(usize, usize, Reason)> {
    let at = |index| place(&graph.system(index).name);
    let edges = graph.edges().iter();
    edges.flat_map(|edge| edge.reasons.iter().map(|reason| (at(edge.from), at(edge.to), reason))).collect()
}

fn of_faults(faults: &[Fault]) -> BTreeSet<(usize, usize, Wrong)> {
    let pair = |first: &str, second: &str, wrong| Some((place(first), place(second), wrong));
    let wrong = |fault: &Fault| match fault {
        Fault::WriteConflict { first, second, .. } => pair(first, second, Wrong::Write),
        Fault::ReadConflict { reader, writer, .. } => pair(reader, writer, Wrong::Read),
        // Numbers go DAG by DAG, places as declared.
        Fault::DrainConflict { first, second, .. } => pair(first, second, Wrong::Drain),
        Fault::MutualEvents { first, second, .. } => pair(first, second, Wrong::Mutual),
        Fault::EarlyConsumer { consumer, producer, .. } => pair(consumer, producer, Wrong::Early),
        Fault::BackwardOrder { from, to, .. } => pair(from, to, Wrong::Backward),
        Fault::PhaseNotExclusive { system, .. } => pair(system, system, Wrong::Shared),
        Fault::TrackConflict { first, second, .. } => {
            let (first, second) = (place(first), place(second));
            Some((first.min(second), first.max(second), Wrong::Dags))
        }
        Fault::Cycle { .. } => None,
        other => panic!("not to be expected here: {other}"),
    };
    faults.iter().filter_map(wrong).collect()
}

fn expect_as_oracle(systems: &[Declared]) -> Result<(), TestCaseError> {
    let expected = oracle(systems);
    let should_build = expected.wrong.is_empty() && !is_cyclic(systems.len(), &expected.edges);
    match declare(systems) {
        Ok(built) => {
            prop_assert!(should_build, "{:?}", expected.wrong);
            prop_assert_eq!(&of_graph(&built.graph), &expected.edges);
            expect_sorted(&built.graph);
            let again = declare(systems).unwrap();
            prop_assert_eq!(built.graph.to_dot(), again.graph.to_dot());
            prop_assert_eq!(built.graph.topological_order(), again.graph.topological_order());
        }
        Err(error) => {
            prop_assert_eq!(of_faults(error.faults()), expected.wrong);
            for fault in error.faults() {
                if let Fault::Cycle { systems, .. } = fault {
                    expect_cycle(systems, &expected.edges);
                }
            }
            let has_cycle = error.faults().iter().any(|fault| matches!(fault, Fault::Cycle { .. }));
            prop_assert_eq!(has_cycle, is_cyclic(systems.len(), &expected.edges));
            prop_assert!(!should_build);
        }
    }
    Ok(())
}

/// Every system once, after all that it waits for; rows and edges agree.
fn expect_sorted(graph: &Graph) {
    let order = graph.topological_order();
    let mut place = vec![usize::MAX; graph.systems().len()];
    order.iter().enumerate().for_each(|(at, index)| place[index.as_usize()] = at);
    assert!(order.len() == place.len() && !place.contains(&usize::MAX));
    for edge in graph.edges() {
        assert!(place[edge.from.as_usize()] < place[edge.to.as_usize()]);
        assert!(graph.successors(edge.from).contains(&edge.to));
        assert!(graph.predecessors(edge.to).contains(&edge.from));
        assert!(graph.edges_from(edge.from).contains(edge));
    }
    let ends: usize = order.iter().map(|&index| graph.successors(index).len()).sum();
    let beginnings: usize = order.iter().map(|&index| usize::from(graph.predecessor_count(index))).sum();
    assert_eq!((ends, beginnings), (graph.edges().len(), graph.edges().len()));
}

fn expect_cycle(systems: &[String], edges: &BTreeSet<(usize, usize, Reason)>) {
    let nexts = systems.iter().skip(1).chain(&systems[..1]);
    for (from, to) in systems.iter().zip(nexts) {
        let is_edge = edges.iter().any(|&(start, end, _)| (start, end) == (place(from), place(to)));
        assert!(is_edge, "no edge {from} -> {to}");
    }
}

fn access() -> impl Strategy<Value = Access> {
    prop_oneof![
        3 => Just(Access::ReadFresh),
        1 => Just(Access::Read),
        2 => Just(Access::ReadSnapshot),
        1 => Just(Access::AdditionalRead),
        2 => Just(Access::Write),
        1 => Just(Access::SideWrite),
    ]
}

fn queue_use() -> impl Strategy<Value = QueueUse> {
    prop_oneof![Just(QueueUse::Push), Just(QueueUse::Read), Just(QueueUse::Drain)]
}

/// `sharing` is how many declarations a system makes at most: many lead to faults, few to schedules that build.
fn system(dags: usize, sharing: usize) -> impl Strategy<Value = Declared> {
    let lists = (
        prop::collection::vec((0..3_usize, access()), 0..=sharing),
        prop::collection::vec((0..3_usize, any::<bool>()), 0..=sharing),
        prop::collection::vec((0..2_usize, queue_use()), 0..=sharing),
        prop::collection::vec(0..12_usize, 0..=sharing),
    );
    let place = (0..dags, 0..3_usize, prop::bool::weighted(0.05));
    (place, lists).prop_map(|((dag, phase, is_exclusive), (components, resources, queues, after))| Declared {
        dag,
        phase,
        is_exclusive,
        components,
        resources,
        queues,
        after,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn few_declarations_give_the_order_of_the_oracle(
        systems in (1..=2_usize).prop_flat_map(|dags| prop::collection::vec(system(dags, 1), 0..6))
    ) {
        expect_as_oracle(&systems)?;
    }

    #[test]
    fn many_declarations_give_the_faults_of_the_oracle(
        systems in (1..=2_usize).prop_flat_map(|dags| prop::collection::vec(system(dags, 3), 0..12))
    ) {
        expect_as_oracle(&systems)?;
    }
}

/// Schedules of the first property must often build, or it would compare nothing.
#[test]
fn the_random_schedules_are_worth_comparing() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let strategy = prop::collection::vec(system(1, 1), 0..6);
    let mut built = 0;
    let mut edges = 0;
    for _ in 0..400 {
        let systems = strategy.new_tree(&mut runner).unwrap().current();
        if let Ok(schedule) = declare(&systems) {
            built += 1;
            edges += schedule.graph.edges().len();
        }
    }
    assert!(built > 100 && edges > 100, "{built} schedules with {edges} edges");
}
