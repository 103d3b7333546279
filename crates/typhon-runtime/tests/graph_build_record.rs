//! The record of a built graph, in a test program of its own: a process has one recording at a time.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{Position, build, sim, system};
use typhon_profiler::events::{Event, NamedSpan, SchedulerGraphBuild};
use typhon_profiler::export::MemoryExporter;
use typhon_profiler::session::{self, SessionOptions};
use typhon_profiler::{Ticks, emit_span};

#[test]
fn kind_159_tells_the_size_of_the_graph_and_the_time_that_building_took() {
    let before = Ticks::now();
    let built = build(|schedule| {
        let dag = sim(schedule);
        system(dag, "Move").writes::<Position>().before("Draw");
        system(dag, "Draw").reads_fresh::<Position>();
        system(dag, "Log").phase("C").reads::<Position>();
    });
    let (built, after) = (built.unwrap(), Ticks::now());
    let (exporter, trace) = MemoryExporter::new();
    let mask = [SchedulerGraphBuild::KIND, NamedSpan::KIND].into_iter().collect();
    session::start(SessionOptions { mask, exporters: vec![Box::new(exporter)], ..Default::default() })
        .unwrap();
    built.record_build();
    emit_span(before, after, || NamedSpan { name: "around" });
    session::stop().unwrap();

    let (mut around, mut builds) = (Vec::new(), Vec::new());
    trace.for_each(|record| {
        let time = || record.timestamp()..record.timestamp() + record.span().unwrap().duration;
        match record.kind() {
            NamedSpan::KIND => around.push(time()),
            SchedulerGraphBuild::KIND => builds.push((time(), record.payload().unwrap().to_vec())),
            _ => {}
        }
    });
    let event = SchedulerGraphBuild { sys_count: 3, edge_count: 2, topo_len: 3 };
    let mut payload = vec![0; event.payload_bytes()];
    event.encode_payload(&mut payload).unwrap();
    let [(time, recorded)] = &builds[..] else { panic!("{builds:?}") };
    assert_eq!(*recorded, payload);
    let [around] = &around[..] else { panic!("{around:?}") };
    assert!(
        around.start <= time.start && time.start < time.end && time.end <= around.end,
        "{time:?} in {around:?}"
    );
}
