//! Schedules of the reference engine, declared anew from the system tables of its recordings: the derived order has to
//! be the recorded one.
//!
//! The tables hold what systems access and which systems they wait for, but not what they were told to wait for; the
//! orders that their sources give are listed here.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::path::Path;

use typhon_runtime::event_queue::Queue;
use typhon_runtime::graph::{Component, ComponentAccess, Graph};
use typhon_runtime::schedule::{
    BuiltSchedule, DagBuilder, HasContext, Schedule, ScheduleBuildError, ScheduleFault, ScheduleOptions,
    Subject, SystemBuilder,
};
use typhon_trace::header::HEADER_BYTES;
use typhon_trace::tables::{System, Tables};

type Orders = &'static [(&'static str, &'static str)];

const ANTHILL: Orders = &[
    ("TierAssignment", "AntUpdate"),
    ("AntUpdate", "SpiderUpdate"),
    ("AntStatsAggregator", "PrepareRenderBuffer"),
    ("PrepareRenderBuffer", "FillRenderBuffer"),
    ("PrepareRenderBuffer", "PublishRenderFrame"),
    ("FillRenderBuffer", "PublishRenderFrame"),
    ("HeatmapRgbaPack", "PublishRenderFrame"),
];
const GUIDE: Orders = &[("Move", "Wander"), ("Move", "BoundsSync")];
const FENCE: Orders = &[
    ("FencePrep", "FenceMigrate"),
    ("FenceMigrate", "FenceAabbRefresh"),
    ("FenceAabbRefresh", "FenceFinalize"),
];

#[test]
fn anthill_is_ordered_as_recorded() {
    let tables = recorded("anthill");
    let graph = declare(&tables, &[ANTHILL, FENCE]).unwrap().graph;
    assert_eq!(graph.systems().len(), 20);
    expect_recorded_order(&graph, &tables);
}

#[test]
fn the_guide_is_ordered_as_recorded() {
    let tables = recorded("guide-shard");
    let graph = declare(&tables, &[GUIDE, FENCE]).unwrap().graph;
    assert_eq!(graph.systems().len(), 10);
    expect_recorded_order(&graph, &tables);
    let merged = edge(&graph, "Move", "BoundsSync");
    assert_eq!(merged, "explicit, fresh");
}

#[test]
fn anthill_without_its_orders_has_four_conflicts() {
    let error = declare(&recorded("anthill"), &[FENCE]).unwrap_err();
    let expected = [
        ("PrepareRenderBuffer", "FillRenderBuffer", "RenderBuffers"),
        ("PrepareRenderBuffer", "PublishRenderFrame", "RenderBuffers"),
        ("FillRenderBuffer", "PublishRenderFrame", "RenderBuffers"),
        ("HeatmapRgbaPack", "PublishRenderFrame", "Heatmap"),
    ];
    let conflict = |(first, second, resource): (&str, &str, &str)| ScheduleFault::WriteConflict {
        first: first.to_owned(),
        second: second.to_owned(),
        phase: "Render".to_owned(),
        subjects: vec![Subject::Resource(resource.to_owned())],
    };
    assert_eq!(error.faults(), expected.map(conflict));
}

#[test]
fn the_guide_without_its_orders_has_one_conflict() {
    let error = declare(&recorded("guide-shard"), &[FENCE]).unwrap_err();
    let transform = "Typhon.Samples.Swg.Shard.Transform".to_owned();
    let expected = ScheduleFault::WriteConflict {
        first: "Move".to_owned(),
        second: "Wander".to_owned(),
        phase: "Simulation".to_owned(),
        subjects: vec![Subject::Component(transform)],
    };
    assert_eq!(error.faults(), [expected]);
}

/// What was recorded about the schedule is what a trace of our own says about it, but for what only we know: the
/// explicit orders, and that a pair of systems has one edge.
#[test]
fn b20_trace_tables_are_the_recorded_ones_with_explicit_orders() {
    for (name, orders) in [("anthill", ANTHILL), ("guide-shard", GUIDE)] {
        let recorded = recorded(name);
        let own = declare(&recorded, &[orders, FENCE]).unwrap().graph.trace_tables();
        assert_eq!(own.tracks, recorded.tracks);
        assert_eq!(own.dags, recorded.dags);
        let queue = |queue: &typhon_trace::tables::EventQueue| {
            (queue.queue_index, queue.name.clone(), queue.capacity)
        };
        assert!(own.event_queues.iter().map(queue).eq(recorded.event_queues.iter().map(queue)));
        for (own, recorded) in own.systems.iter().zip(&recorded.systems) {
            let told = |&&(_, to): &&(&str, &str)| to == own.name;
            let after: Vec<_> =
                orders.iter().chain(FENCE).filter(told).map(|(from, _)| (*from).to_owned()).collect();
            let expected = System {
                explicit_after: after,
                predecessors: without_repetitions(&recorded.predecessors),
                successors: without_repetitions(&recorded.successors),
                // A query there, a chunked callback here, until there are queries.
                r#type: own.r#type,
                ..recorded.clone()
            };
            assert_eq!(*own, expected);
        }
        assert_eq!(Tables::read(&mut own.encode().unwrap().bytes.as_slice()).unwrap().tables, own);
    }
}

fn recorded(name: &str) -> Tables {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../corpus/{name}.typhon-trace"));
    let mut file = BufReader::new(File::open(path).unwrap());
    file.seek(SeekFrom::Start(HEADER_BYTES as u64)).unwrap();
    let read = Tables::read(&mut file).unwrap();
    assert!(read.cut.is_none(), "{:?}", read.notices);
    read.tables
}

/// Declares what the tables say, with these orders.
fn declare(tables: &Tables, orders: &[Orders]) -> Result<BuiltSchedule, ScheduleBuildError> {
    let schedule = Schedule::new();
    let mut queues = BTreeMap::new();
    for recorded in &tables.dags {
        let track = match recorded.track_index {
            1 => schedule.public_track(),
            _ => schedule.engine_post_track(),
        };
        let dag = track.declare_dag(&recorded.name).phases(&recorded.phase_names);
        let systems = || tables.systems.iter().filter(|system| i32::from(system.dag_id) == recorded.id);
        for queue in &tables.event_queues {
            if systems().any(|system| system.writes_events.contains(&queue.name)) {
                queues.insert(queue.name.clone(), dag.event_queue::<()>(&queue.name, queue.capacity as u32));
            }
        }
        for system in systems() {
            add_system(dag, system, &queues, orders);
        }
    }
    schedule.build(&ScheduleOptions { require_access_declarations: false })
}

fn add_system(dag: DagBuilder<'_>, system: &System, queues: &BTreeMap<String, Queue<()>>, orders: &[Orders]) {
    if system.is_parallel {
        describe(dag.chunked_system(&system.name, 3, |_| {}), system, queues, orders);
    } else {
        describe(dag.callback_system(&system.name, |_| {}), system, queues, orders);
    }
}

fn describe<K: HasContext>(
    mut builder: SystemBuilder<'_, K>,
    system: &System,
    queues: &BTreeMap<String, Queue<()>>,
    orders: &[Orders],
) {
    builder = builder.phase(&system.phase_name).priority(match system.priority {
        1 => typhon_runtime::Priority::High,
        2 => typhon_runtime::Priority::Normal,
        other => panic!("no recording has priority {other}"),
    });
    assert!(!system.is_exclusive_phase);
    let components = [
        (ComponentAccess::Read, &system.reads),
        (ComponentAccess::ReadFresh, &system.reads_fresh),
        (ComponentAccess::ReadSnapshot, &system.reads_snapshot),
        (ComponentAccess::AdditionalRead, &system.additional_reads),
        (ComponentAccess::Write, &system.writes),
        (ComponentAccess::SideWrite, &system.side_writes),
    ];
    for (access, names) in components {
        for name in names {
            builder = builder.component(access, Component::named(name.clone()));
        }
    }
    for name in &system.reads_resources {
        builder = builder.reads_resource(name);
    }
    for name in &system.writes_resources {
        builder = builder.writes_resource(name);
    }
    for name in &system.writes_events {
        builder = builder.writes_events(&queues[name]);
    }
    for name in &system.reads_events {
        builder = builder.reads_events(&queues[name]);
    }
    let after = orders.iter().copied().flatten().filter(|(_, to)| *to == system.name);
    builder.after_all(after.map(|(from, _)| *from));
}

fn expect_recorded_order(graph: &Graph, tables: &Tables) {
    for recorded in &tables.systems {
        let index = graph.find_system(&recorded.name).unwrap();
        assert_eq!(index.get(), recorded.index, "{}", recorded.name);
        let numbers =
            |systems: &[typhon_runtime::SystemIndex]| systems.iter().map(|s| s.get()).collect::<Vec<_>>();
        let expected = without_repetitions(&recorded.predecessors);
        assert_eq!(numbers(graph.predecessors(index)), expected, "before {}", recorded.name);
        let expected = without_repetitions(&recorded.successors);
        assert_eq!(numbers(graph.successors(index)), expected, "after {}", recorded.name);
    }
}

fn without_repetitions(systems: &[u16]) -> Vec<u16> {
    let mut systems = systems.to_vec();
    systems.sort_unstable();
    systems.dedup();
    systems
}

fn edge(graph: &Graph, from: &str, to: &str) -> String {
    let (from, to) = (graph.find_system(from).unwrap(), graph.find_system(to).unwrap());
    let edge = graph.edges_from(from).iter().find(|edge| edge.to == to).unwrap();
    edge.reasons.to_string()
}
