//! Every rule that a schedule can break: the fault that it gets, and that the schedule builds once it is mended.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{Position, Velocity, build, build_with, expect_all, pick, position, s, sim, strings, system};
use typhon_runtime::event_queue::QueueOptions;
use typhon_runtime::schedule::{Schedule, ScheduleFault as Fault, ScheduleOptions, Subject};

#[test]
fn b2_tracks_dags_and_phases() {
    expect_all(vec![
        (
            "an empty track name",
            |schedule, mended| {
                schedule.declare_track(pick(mended, "Physics", ""), &["fast"]);
            },
            vec![Fault::EmptyName { place: s("a track") }],
        ),
        (
            "two tracks of one name",
            |schedule, mended| {
                schedule.declare_track("Physics", &[]);
                schedule.declare_track(pick(mended, "Sound", "Physics"), &[]);
            },
            vec![Fault::DuplicateTrack { track: s("Physics") }],
        ),
        (
            "the name of a track that every schedule has",
            |schedule, mended| {
                schedule.declare_track(pick(mended, "Private", "Public"), &[]);
            },
            vec![Fault::DuplicateTrack { track: s("Public") }],
        ),
        (
            "a track name of the engine's",
            |schedule, mended| {
                schedule.declare_track(pick(mended, "Late", "Engine-Late"), &[]);
            },
            vec![Fault::ReservedTrackName { track: s("Engine-Late") }],
        ),
        (
            "the engine's tag",
            |schedule, mended| {
                schedule.declare_track("Late", &["a", pick(mended, "motor", "engine")]);
            },
            vec![Fault::ReservedTag { track: s("Late") }],
        ),
        (
            "two DAGs of one name in one track; in two tracks it is fine",
            |schedule, mended| {
                let late = schedule.declare_track("Late", &[]);
                schedule.public_track().declare_dag("Sim");
                pick(mended, late, schedule.public_track()).declare_dag("Sim");
            },
            vec![Fault::DuplicateDag { track: s("Public"), dag: s("Sim") }],
        ),
        (
            "a DAG without a name",
            |schedule, mended| {
                schedule.public_track().declare_dag(pick(mended, "Sim", ""));
            },
            vec![Fault::EmptyName { place: s("a DAG of track \"Public\"") }],
        ),
        (
            "no phases",
            |schedule, mended| {
                let phases = pick(mended, &["A"][..], &[]);
                schedule.public_track().declare_dag("Sim").phases(phases.iter().copied());
            },
            vec![Fault::NoPhases { dag: s("Sim") }],
        ),
        (
            "two phases of one name, over several calls, and one without",
            |schedule, mended| {
                let dag = schedule.public_track().declare_dag("Sim").phases(["A", "B"]);
                if !mended {
                    dag.phases(["A", ""]);
                }
            },
            vec![
                Fault::DuplicatePhase { dag: s("Sim"), phase: s("A") },
                Fault::EmptyName { place: s("a phase of DAG \"Sim\"") },
            ],
        ),
        (
            "a default phase that is none",
            |schedule, mended| {
                sim(schedule).default_phase(pick(mended, "B", "D"));
            },
            vec![Fault::UnknownDefaultPhase {
                dag: s("Sim"),
                phase: s("D"),
                known: strings(&["A", "B", "C"]),
            }],
        ),
        (
            "a phase that is none",
            |schedule, mended| {
                system(sim(schedule), "Move").phase(pick(mended, "C", "c"));
            },
            vec![Fault::UnknownPhase {
                system: s("Move"),
                dag: s("Sim"),
                phase: s("c"),
                known: strings(&["A", "B", "C"]),
            }],
        ),
    ]);
}

#[test]
fn b3_names_of_systems_and_explicit_orders() {
    expect_all(vec![
        (
            "two systems of one name",
            |schedule, mended| {
                system(sim(schedule), "Move");
                let other = schedule.declare_track("Late", &[]).declare_dag("Other");
                system(other, pick(mended, "Stop", "Move"));
            },
            vec![Fault::DuplicateSystem { system: s("Move"), dags: [s("Sim"), s("Other")] }],
        ),
        (
            "a system without a name",
            |schedule, mended| {
                system(sim(schedule), pick(mended, "Move", ""));
            },
            vec![Fault::EmptyName { place: s("a system of DAG \"Sim\"") }],
        ),
        (
            "orders with systems that do not exist",
            |schedule, mended| {
                let dag = sim(schedule);
                system(dag, "Move").after(pick(mended, "Steer", "steers"));
                system(dag, "Steer").before(pick(mended, "Move", "Collide"));
            },
            vec![
                Fault::UnknownSystem {
                    system: s("Move"),
                    call: "after",
                    named: s("steers"),
                    similar: Some(s("Steer")),
                },
                Fault::UnknownSystem {
                    system: s("Steer"),
                    call: "before",
                    named: s("Collide"),
                    similar: None,
                },
            ],
        ),
        (
            "an order with a system of another DAG",
            |schedule, mended| {
                let (dag, other) = (sim(schedule), schedule.public_track().declare_dag("Other"));
                system(dag, "Move");
                system(pick(mended, dag, other), "Stop").after_all(["Move"]);
            },
            vec![Fault::SystemOfOtherDag {
                system: s("Stop"),
                dag: s("Other"),
                named: s("Move"),
                other_dag: s("Sim"),
            }],
        ),
        (
            "an order with itself",
            |schedule, mended| {
                let moves = system(sim(schedule), "Move");
                if !mended {
                    moves.before("Move");
                }
            },
            vec![Fault::OrderedWithItself { system: s("Move") }],
        ),
    ]);
}

#[test]
fn b5_b6_attributes() {
    expect_all(vec![
        (
            "divisors of 0",
            |schedule, mended| {
                let divisor = pick(mended, 1, 0);
                system(sim(schedule), "Move").tick_divisor(divisor).throttled_tick_divisor(divisor);
            },
            vec![
                Fault::ZeroDivisor { system: s("Move"), call: "tick_divisor" },
                Fault::ZeroDivisor { system: s("Move"), call: "throttled_tick_divisor" },
            ],
        ),
        (
            "numbers of chunks that are none",
            |schedule, mended| {
                sim(schedule).chunked_system("None", pick(mended, 1, 0), |_| {});
                sim_of(schedule, "Other").pipeline_system("Many", pick(mended, 65_535, 65_536), |_, _| {});
            },
            vec![
                Fault::ChunkCount { system: s("None"), chunks: 0 },
                Fault::ChunkCount { system: s("Many"), chunks: 65_536 },
            ],
        ),
    ]);
}

fn sim_of<'s>(schedule: &'s Schedule, name: &str) -> typhon_runtime::schedule::DagBuilder<'s> {
    schedule.public_track().declare_dag(name)
}

#[test]
fn b10_to_b14_conflicts_in_one_phase() {
    expect_all(vec![
        (
            "B-10: two writers; an order by way of a third settles it",
            |schedule, mended| {
                let dag = sim(schedule);
                system(dag, "First").writes::<Position>();
                system(dag, "Second").writes::<Position>().writes_resource("Grid");
                system(dag, "Third")
                    .writes_resource("Grid")
                    .after_all(pick(mended, &["Second"][..], &[]).to_vec());
                if mended {
                    system(dag, "Between").after("First").before("Second");
                }
            },
            vec![
                Fault::WriteConflict {
                    first: s("First"),
                    second: s("Second"),
                    phase: s("A"),
                    subjects: vec![position()],
                },
                Fault::WriteConflict {
                    first: s("Second"),
                    second: s("Third"),
                    phase: s("A"),
                    subjects: vec![Subject::Resource(s("Grid"))],
                },
            ],
        ),
        (
            "B-10: one fault for a pair, whatever it disagrees about",
            |schedule, mended| {
                let dag = sim(schedule);
                system(dag, "First").writes::<Position>().writes_resource("Grid");
                let second = system(dag, "Second").writes_resource("Grid").writes::<Position>();
                if mended {
                    second.before("First");
                }
            },
            vec![Fault::WriteConflict {
                first: s("First"),
                second: s("Second"),
                phase: s("A"),
                subjects: vec![position(), Subject::Resource(s("Grid"))],
            }],
        ),
        (
            "B-11: a plain reader beside a writer",
            |schedule, mended| {
                let dag = sim(schedule);
                system(dag, "Move").writes::<Position>();
                let draws = system(dag, "Draw").reads::<Position>();
                if mended {
                    draws.after("Move");
                }
            },
            vec![Fault::ReadConflict {
                reader: s("Draw"),
                writer: s("Move"),
                phase: s("A"),
                subjects: vec![position()],
            }],
        ),
        (
            "B-13: two that both push to and consume one queue",
            |schedule, mended| {
                let dag = sim(schedule);
                let queue = dag.event_queue::<u8>("Hits", 8);
                system(dag, "First").writes_events(&queue).reads_events(&queue);
                let second = system(dag, "Second").writes_events(&queue);
                if !mended {
                    second.reads_events(&queue);
                }
            },
            vec![Fault::MutualEvents {
                first: s("First"),
                second: s("Second"),
                phase: s("A"),
                queue: s("Hits"),
            }],
        ),
        (
            "B-14: an exclusive phase that is shared",
            |schedule, mended| {
                let dag = sim(schedule);
                system(dag, "Load").exclusive_phase();
                system(dag, "Move").phase(pick(mended, "B", "A"));
                system(dag, "Draw").phase(pick(mended, "B", "A"));
            },
            vec![Fault::PhaseNotExclusive {
                system: s("Load"),
                phase: s("A"),
                others: strings(&["Move", "Draw"]),
            }],
        ),
    ]);
}

#[test]
fn b13_dags_of_one_track_touch_nothing_together() {
    expect_all(vec![
        (
            "components, resources, and both",
            |schedule, mended| {
                let (dag, other) = (sim(schedule), schedule.public_track().declare_dag("Other"));
                system(dag, "Move").writes::<Position>().reads_resource("Grid").reads::<Velocity>();
                let other = pick(mended, schedule.declare_track("Late", &[]).declare_dag("Last"), other);
                system(other, "Draw")
                    .reads_snapshot::<Position>()
                    .reads::<Velocity>()
                    .side_writes::<Velocity>();
                system(other, "Log").writes_resource("Grid").reads_fresh::<Position>();
            },
            vec![
                Fault::TrackConflict {
                    track: s("Public"),
                    first: s("Move"),
                    second: s("Draw"),
                    dags: [s("Sim"), s("Other")],
                    subjects: vec![position()],
                },
                Fault::TrackConflict {
                    track: s("Public"),
                    first: s("Move"),
                    second: s("Log"),
                    dags: [s("Sim"), s("Other")],
                    subjects: vec![position(), Subject::Resource(s("Grid"))],
                },
            ],
        ),
        (
            "a queue of another DAG",
            |schedule, mended| {
                let (dag, other) = (sim(schedule), schedule.public_track().declare_dag("Other"));
                let queue = dag.event_queue::<u8>("Hits", 8);
                system(pick(mended, dag, other), "Count").reads_events(&queue);
            },
            vec![Fault::QueueOfOtherDag {
                system: s("Count"),
                dag: s("Other"),
                queue: s("Hits"),
                queue_dag: s("Sim"),
            }],
        ),
    ]);
}

#[test]
fn b16_nothing_goes_against_the_phases() {
    expect_all(vec![
        (
            "an explicit order",
            |schedule, mended| {
                let dag = sim(schedule);
                system(dag, "Late").phase("B").before(pick(mended, "Last", "Early"));
                system(dag, "Early");
                system(dag, "Last").phase("C");
            },
            vec![Fault::BackwardOrder { from: s("Late"), to: s("Early"), phases: [s("B"), s("A")] }],
        ),
        (
            "trap 14: events that would be gone",
            |schedule, mended| {
                let dag = sim(schedule);
                let options = QueueOptions::from(8);
                let queue = dag.event_queue::<u8>("Hits", pick(mended, options.carry_over(), options));
                system(dag, "Count").reads_events(&queue);
                system(dag, "Move").phase("B").writes_events(&queue);
            },
            vec![Fault::EarlyConsumer { queue: s("Hits"), consumer: s("Count"), producer: s("Move") }],
        ),
    ]);
}

#[test]
fn b17_declarations_can_be_required() {
    let declare = |schedule: &Schedule| {
        system(sim(schedule), "Move").writes::<Position>();
        system(schedule.public_track().declare_dag("Other"), "Log");
        system(schedule.engine_post_track().declare_dag("Fence"), "Prepare");
    };
    let options = ScheduleOptions { require_access_declarations: true };
    let error = build_with(options, declare).unwrap_err();
    assert_eq!(error.faults(), [Fault::NoDeclarations { systems: strings(&["Log"]) }]);
    assert!(build(declare).is_ok());
}

#[test]
fn b19_a_cycle_is_listed_in_order_one_for_each_dag() {
    let error = build(|schedule| {
        let dag = sim(schedule);
        system(dag, "Outside").before("Collide");
        system(dag, "Draw").reads_fresh::<Position>().before("Steer");
        system(dag, "Move").writes::<Position>().after("Collide");
        system(dag, "Collide").after("Steer");
        system(dag, "Steer");
        let other = schedule.public_track().declare_dag("Other");
        system(other, "Ping").after("Pong");
        system(other, "Pong").after("Ping");
    });
    let error = error.unwrap_err();
    let cycle = |systems: &[&str], reasons: &[&str]| Fault::Cycle {
        systems: strings(systems),
        reasons: strings(reasons),
    };
    let first = cycle(&["Steer", "Collide", "Move", "Draw"], &["explicit", "explicit", "fresh", "explicit"]);
    assert_eq!(error.faults(), [first, cycle(&["Pong", "Ping"], &["explicit", "explicit"])]);
    let text = "\"Steer\" -(explicit)-> \"Collide\" -(explicit)-> \"Move\" -(fresh)-> \"Draw\" -(explicit)-> \"Steer\"";
    assert!(error.to_string().contains(text), "{error}");
}

#[test]
fn b19_more_systems_or_queues_than_numbers() {
    let error = build(|schedule| {
        let dag = sim(schedule);
        for _ in 0..65_535 {
            dag.callback_system("Same", |_| {});
        }
        for _ in 0..65_536 {
            dag.event_queue::<u8>("Same", 1);
        }
    });
    let expected = [
        Fault::TooMany { what: "systems", count: 65_535, limit: 65_534 },
        Fault::TooMany { what: "event queues", count: 65_536, limit: 65_535 },
    ];
    assert_eq!(error.unwrap_err().faults(), expected);
}

#[test]
fn b19_as_many_systems_as_there_are_numbers() {
    let built = build(|schedule| {
        let dag = sim(schedule);
        for number in 0..65_534 {
            dag.callback_system(number.to_string(), |_| {});
        }
    });
    assert_eq!(built.unwrap().graph.topological_order().len(), 65_534);
}

#[test]
fn b4_all_faults_at_once() {
    let error = build(|schedule| {
        schedule.declare_track("", &["engine"]);
        let dag = sim(schedule);
        system(dag, "Move").writes::<Position>().after("Nobody").phase("Z").tick_divisor(0);
        system(dag, "Draw").writes::<Position>();
        system(dag, "Load").phase("B").after("Save");
        system(dag, "Save").phase("B").after("Load");
        dag.event_queue::<u8>("Hits", 0);
    });
    let error = error.unwrap_err();
    let kinds: Vec<String> = error.faults().iter().map(|fault| first_word(&format!("{fault:?}"))).collect();
    let expected = [
        "EmptyName",
        "ReservedTag",
        "ZeroDivisor",
        "UnknownPhase",
        "UnknownSystem",
        "QueueOptions",
        "WriteConflict",
        "Cycle",
    ];
    assert_eq!(kinds, expected);
    assert!(
        error.to_string().starts_with("the schedule has 8 faults\n1. a track has an empty name\n   fix: "),
        "{error}"
    );
}

fn first_word(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric()).collect()
}
