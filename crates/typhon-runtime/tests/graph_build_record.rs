//! The record of a built graph, in a test program of its own: a process has one recording at a time.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{Position, build, sim, system};
use typhon_profiler::events::{Event, SchedulerGraphBuild};
use typhon_profiler::export::MemoryExporter;
use typhon_profiler::session::{self, SessionOptions};

#[test]
fn kind_159_tells_the_size_of_the_graph_and_the_time_that_building_took() {
    let built = build(|schedule| {
        let dag = sim(schedule);
        system(dag, "Move").writes::<Position>().before("Draw");
        system(dag, "Draw").reads_fresh::<Position>();
        system(dag, "Log").phase("C").reads::<Position>();
    });
    let built = built.unwrap();
    let (exporter, trace) = MemoryExporter::new();
    let mask = [SchedulerGraphBuild::KIND].into_iter().collect();
    session::start(SessionOptions { mask, exporters: vec![Box::new(exporter)], ..Default::default() })
        .unwrap();
    built.record_build();
    session::stop().unwrap();

    let mut records = Vec::new();
    trace.for_each(|record| {
        if record.kind() == SchedulerGraphBuild::KIND {
            let span = record.span().unwrap();
            records.push((record.timestamp(), span.duration, record.payload().unwrap().to_vec()));
        }
    });
    let event = SchedulerGraphBuild { sys_count: 3, edge_count: 2, topo_len: 3 };
    let mut payload = vec![0; event.payload_bytes()];
    event.encode_payload(&mut payload).unwrap();
    let start = built.build_time.start.raw() as i64;
    assert_eq!(records, [(start, built.build_time.end.raw() as i64 - start, payload)]);
}
