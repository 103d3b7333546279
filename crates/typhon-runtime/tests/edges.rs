//! What order follows from which declarations, and why.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{Position, Velocity, build, edges, sim, strings, system};
use typhon_runtime::event_queue::QueueOptions;
use typhon_runtime::graph::Component;
use typhon_runtime::graph::ComponentAccess::{Read, Write};
use typhon_runtime::schedule::{DagBuilder, Schedule, ScheduleWarning, phase};
use typhon_runtime::{
    DagIndex, PhaseIndex, Priority, QueueId, SkipReason, SystemIndex, TickPhase, TrackIndex,
};

/// A rule, declarations, and the edges that follow.
type Case<'c> = (&'c str, fn(DagBuilder<'_>), &'c [&'c str]);

fn expect_all(cases: &[Case<'_>]) {
    for (rule, declare, expected) in cases {
        let built =
            build(|schedule| declare(sim(schedule))).unwrap_or_else(|error| panic!("{rule}: {error}"));
        assert_eq!(edges(&built.graph), strings(expected), "{rule}");
    }
}

#[test]
fn b10_to_b15_order_within_a_phase() {
    expect_all(&[
        (
            "B-10, B-18: explicit orders stay, each once",
            |dag| {
                system(dag, "First").writes::<Position>().before("Second");
                system(dag, "Second").writes::<Position>().after("First").after_all(["First", "First"]);
            },
            &["First -> Second (explicit)"],
        ),
        (
            "B-11, trap 15: a system is never at odds with itself",
            |dag| {
                system(dag, "Move").reads::<Position>().writes::<Position>().reads_fresh::<Position>();
                system(dag, "Log").reads_resource("Grid").writes_resource("Grid");
            },
            &[],
        ),
        (
            "B-11: readers alone are not ordered",
            |dag| {
                system(dag, "Draw").reads::<Position>();
                system(dag, "Log").reads_fresh::<Position>().reads_snapshot::<Position>();
            },
            &[],
        ),
        (
            "B-12: fresh readers after the writer, snapshot readers before it",
            |dag| {
                system(dag, "Draw").reads_fresh::<Position>();
                system(dag, "Move").writes::<Position>();
                system(dag, "Log").reads_snapshot::<Position>();
            },
            &["Move -> Draw (fresh)", "Log -> Move (snapshot)"],
        ),
        (
            "B-12: the more exact of two declarations counts",
            |dag| {
                system(dag, "Draw").reads::<Position>().reads_fresh::<Position>();
                system(dag, "Move").writes::<Position>();
            },
            &["Move -> Draw (fresh)"],
        ),
        (
            "B-13: events and resources",
            |dag| {
                let queue = dag.event_queue::<u8>("Hits", 8);
                system(dag, "Count").drains_events(&queue).reads_resource("Grid");
                system(dag, "Move").writes_events(&queue).writes_resource("Grid");
                dag.chunked_system("Fight", 4, |_| {}).writes_events(&queue);
            },
            &["Move -> Count (event, resource)", "Fight -> Count (event)"],
        ),
        (
            "B-13: two that write are ordered by hand alone, whatever else they declare",
            |dag| {
                system(dag, "First").writes_resource("Grid").reads_resource("Grid").reads_fresh::<Position>();
                system(dag, "Second").writes_resource("Grid").reads_resource("Grid").before("First");
            },
            &["Second -> First (explicit)"],
        ),
        (
            "B-13: a relay consumes before the end of the chain does",
            |dag| {
                let queue = dag.event_queue::<u8>("Hits", 8);
                system(dag, "End").reads_events(&queue);
                system(dag, "Relay").reads_events(&queue).writes_events(&queue);
                system(dag, "Move").writes_events(&queue);
            },
            &["Relay -> End (event)", "Move -> End (event)", "Move -> Relay (event)"],
        ),
        (
            "B-15, trap 15: additional reads order like fresh ones, side writes not at all",
            |dag| {
                system(dag, "Draw").additional_reads::<Position>();
                system(dag, "Move").writes::<Position>().side_writes::<Velocity>();
                system(dag, "Steer").writes::<Velocity>();
                system(dag, "Log").reads::<Position>().after("Move").side_writes::<Position>();
            },
            &["Move -> Draw (fresh)", "Move -> Log (explicit)"],
        ),
        (
            "components by name are components, and none of the Rust types",
            |dag| {
                let position = || Component::named(std::any::type_name::<Position>());
                system(dag, "Move").writes::<Position>();
                system(dag, "Draw").component(Read, position());
                system(dag, "Carry").component(Write, position()).after("Draw");
            },
            &["Draw -> Carry (explicit)"],
        ),
    ]);
}

#[test]
fn order_across_phases() {
    expect_all(&[
        (
            "a writer and every kind of access, either way round",
            |dag| {
                system(dag, "Move").writes::<Position>().reads::<Velocity>();
                system(dag, "Draw").phase("B").reads::<Position>();
                system(dag, "Log").phase("C").reads_snapshot::<Position>();
                system(dag, "Steer").phase("B").writes::<Velocity>();
                system(dag, "Teleport").phase("C").writes::<Position>();
            },
            &[
                "Move -> Draw (cross-phase)",
                "Move -> Log (cross-phase)",
                "Move -> Steer (cross-phase)",
                "Move -> Teleport (cross-phase)",
                "Draw -> Teleport (cross-phase)",
                "Log -> Teleport (snapshot)",
            ],
        ),
        (
            "no conflict, no order",
            |dag| {
                system(dag, "Move").reads::<Position>().side_writes::<Velocity>().reads_resource("Grid");
                system(dag, "Draw").phase("B").reads::<Position>().reads::<Velocity>().reads_resource("Grid");
            },
            &[],
        ),
        (
            "resources and events",
            |dag| {
                let queue = dag.event_queue::<u8>("Hits", 8);
                system(dag, "Count").phase("B").reads_events(&queue).writes_resource("Grid");
                system(dag, "Move").writes_events(&queue).reads_resource("Grid");
                system(dag, "Clear").phase("C").drains_events(&queue);
            },
            &["Count -> Clear (cross-phase)", "Move -> Count (cross-phase)", "Move -> Clear (cross-phase)"],
        ),
        (
            "B-45: with carry-over, an early consumer before the producer",
            |dag| {
                let queue = dag.event_queue::<u8>("Hits", QueueOptions::from(8).carry_over());
                system(dag, "Count").reads_events(&queue).run_if(|_| false);
                system(dag, "Move").phase("B").writes_events(&queue);
                system(dag, "Log").phase("B").reads_events(&queue);
            },
            &["Count -> Move (event)", "Move -> Log (event)"],
        ),
        (
            "B-14: an exclusive system runs alone",
            |dag| {
                system(dag, "Move");
                system(dag, "Load").phase("B").exclusive_phase();
                system(dag, "Draw").phase("C");
            },
            &["Move -> Load (exclusive)", "Load -> Draw (exclusive)"],
        ),
        (
            "B-20: an edge has every reason that there is for it",
            |dag| {
                let queue = dag.event_queue::<u8>("Hits", 8);
                system(dag, "Move").writes::<Position>().writes_resource("Grid").writes_events(&queue);
                let draw = system(dag, "Draw").reads_fresh::<Position>().reads_resource("Grid").after("Move");
                draw.reads_events(&queue);
                system(dag, "End").phase("C").exclusive_phase().reads::<Position>().after("Move");
            },
            &[
                "Move -> Draw (explicit, fresh, event, resource)",
                "Move -> End (explicit, cross-phase, exclusive)",
                "Draw -> End (exclusive)",
            ],
        ),
    ]);
}

#[test]
fn trap12_orders_add_up_and_one_declaration_of_events_gives_edge_and_wiring() {
    let built = build(|schedule| {
        let dag = sim(schedule);
        let queue = dag.event_queue::<u8>("Hits", 8);
        system(dag, "First").writes_events(&queue);
        system(dag, "Second");
        system(dag, "Third").after("First").after("Second").reads_events(&queue).reads_events(&queue);
    });
    let graph = built.unwrap().graph;
    assert_eq!(edges(&graph), ["First -> Third (explicit, event)", "Second -> Third (explicit)"]);
    let (queue, third) = (QueueId::new(0), SystemIndex::new(2));
    assert!(graph.system(third).queues.may_read(queue) && !graph.system(third).queues.may_drain(queue));
    assert_eq!(graph.system(third).queues.consumed().count(), 1);
    assert_eq!(graph.queue(queue).producers, [SystemIndex::new(0)]);
    assert_eq!(graph.queue(queue).consumers, [third]);
    assert_eq!(graph.predecessor_count(third), 2);
}

#[test]
fn b19_systems_are_numbered_by_track_and_dag_and_sorted_first_come_first_served() {
    let built = build(|schedule| {
        let late = schedule.declare_track("Late", &["slow"]).declare_dag("Late");
        let fence = schedule.engine_post_track().declare_dag("Fence");
        let other = schedule.public_track();
        let (a, b) = (other.declare_dag("A"), other.declare_dag("B"));
        system(fence, "Fence");
        system(late, "Late");
        system(b, "B1");
        system(a, "A1").after("A4");
        system(a, "A2").before("A1");
        system(b, "B2").before("B1");
        system(a, "A3");
        system(a, "A4");
        system(a, "A5").after("A2");
        system(schedule.engine_pre_track().declare_dag("Load"), "Load");
    });
    let graph = built.unwrap().graph;
    let names = |systems: &mut dyn Iterator<Item = SystemIndex>| -> Vec<&str> {
        systems.map(|index| graph.system(index).name.as_str()).collect()
    };
    let numbered = names(&mut (0..graph.systems().len()).map(|at| SystemIndex::new(at as u16)));
    assert_eq!(numbered, ["Load", "A1", "A2", "A3", "A4", "A5", "B1", "B2", "Late", "Fence"]);
    let order = names(&mut graph.topological_order().iter().copied());
    assert_eq!(order, ["Load", "A2", "A3", "A4", "A5", "A1", "B2", "B1", "Late", "Fence"]);
    let tracks: Vec<_> =
        graph.tracks().iter().map(|track| (track.name.as_str(), track.dags.clone())).collect();
    assert_eq!(tracks, [("Engine-Pre", 0..1), ("Public", 1..3), ("Late", 3..4), ("Engine-Post", 4..5)]);
    assert_eq!(graph.dag(DagIndex::new(3)).track, TrackIndex::new(2));
    let of_b = names(&mut graph.topological_order_of(DagIndex::new(2)).iter().copied());
    assert_eq!(of_b, ["B2", "B1"]);
    assert_eq!(graph.track(TrackIndex::new(2)).tags, ["slow"]);
    assert!(graph.tracks().iter().map(|track| track.is_engine).eq([true, false, false, true]));
}

#[test]
fn b2_phases_default_to_the_first_or_the_chosen_one_or_the_only_one() {
    let built = build(|schedule| {
        let track = schedule.public_track();
        system(track.declare_dag("None"), "Implicit");
        let dag = track.declare_dag("Two").phases([phase::INPUT]).phases([phase::OUTPUT]);
        system(dag, "First");
        let dag =
            track.declare_dag("Chosen").phases([phase::INPUT, phase::OUTPUT]).default_phase(phase::OUTPUT);
        system(dag, "Second");
        system(dag, "Third").phase(phase::INPUT);
    });
    let graph = built.unwrap().graph;
    let phases: Vec<_> = graph.systems().iter().map(|system| system.phase).collect();
    assert_eq!(phases, [0, 0, 1, 0].map(PhaseIndex::new));
    assert_eq!(graph.dags()[0].phases, [phase::DEFAULT]);
    assert_eq!(graph.dags()[1].phases, ["Input", "Output"]);
}

#[test]
fn compound_systems_leave_nothing_behind_but_their_members() {
    let built = build(|schedule| {
        sim(schedule).compound_system(|dag| {
            system(dag, "Move").writes::<Position>();
            system(dag, "Draw").reads_fresh::<Position>();
        });
    });
    let graph = built.unwrap().graph;
    assert_eq!(graph.systems().len(), 2);
    assert_eq!(edges(&graph), ["Move -> Draw (fresh)"]);
}

#[test]
fn b17_warnings() {
    let built = build(|schedule| {
        let dag = sim(schedule);
        let (lost, dry) = (dag.event_queue::<u8>("Lost", 8), dag.event_queue::<u8>("Dry", 8));
        dag.event_queue::<u8>("Unused", 8);
        system(dag, "Move").writes_events(&lost).can_shed();
        system(dag, "Count").reads_events(&dry).can_shed().priority(Priority::Low);
        system(dag, "Log");
        system(dag, "Load");
        system(schedule.engine_pre_track().declare_dag("Pre"), "Prepare");
    });
    let expected = [
        ScheduleWarning::ShedWithoutLowPriority { system: "Move".to_owned() },
        ScheduleWarning::NoConsumer { queue: "Lost".to_owned() },
        ScheduleWarning::NoProducer { queue: "Dry".to_owned() },
        ScheduleWarning::NoDeclarations { systems: strings(&["Log", "Load"]) },
    ];
    assert_eq!(built.unwrap().warnings, expected);
}

#[test]
fn b20_the_picture_shows_boxes_and_reasons() {
    let schedule = Schedule::new();
    let dag = sim(&schedule);
    system(dag, "Move \"all\"").writes::<Position>();
    system(dag, "Draw").reads_fresh::<Position>().after("Move \"all\"");
    let expected = r#"digraph schedule {
  rankdir=LR;
  node [shape=box];
  subgraph cluster_0 {
    label="Public / Sim";
    s0 [label="Move \"all\"\nA"];
    s1 [label="Draw\nA"];
  }
  s0 -> s1 [label="explicit, fresh"];
}
"#;
    assert_eq!(schedule.build(&Default::default()).unwrap().graph.to_dot(), expected);
}

/// Numbers that recordings hold: a change here breaks tools that read them.
#[test]
fn stable_numbers_are_the_golden_ones() {
    use typhon_runtime::graph::{Reason, SystemKind};
    let mut text = String::new();
    let mut add = |line: String| text.push_str(&(line + "\n"));
    for priority in [Priority::Critical, Priority::High, Priority::Normal, Priority::Low] {
        add(format!("Priority {priority:?} {}", priority as u8));
    }
    for kind in [SystemKind::Callback, SystemKind::Chunked, SystemKind::Pipeline] {
        add(format!("SystemKind {kind:?} {}", kind.trace_number()));
    }
    for reason in Reason::ALL {
        add(format!("Reason {} {}", reason.name(), reason as u8));
    }
    let named = |name: Option<&'static str>| name.map(str::to_owned);
    let skips = (0..=u8::MAX).filter_map(|value| named(SkipReason(value).name()).map(|name| (value, name)));
    skips.for_each(|(value, name)| add(format!("SkipReason {name} {value}")));
    let phases = (0..=u8::MAX).filter_map(|value| named(TickPhase(value).name()).map(|name| (value, name)));
    phases.for_each(|(value, name)| add(format!("TickPhase {name} {value}")));
    add(format!("ScheduleBuildError {}", typhon_engine::ErrorCode::SCHEDULE_BUILD.get()));
    assert_eq!(text, include_str!("golden/numbers.txt"));
}
