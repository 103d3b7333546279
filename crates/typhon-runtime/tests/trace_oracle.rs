//! Every record that the scheduler makes of random schedules, against what must have happened. One process, one session
//! at a time, hence one test.
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod worlds;

use std::collections::HashSet;
use std::time::Duration;
use typhon_profiler::export::MemoryExporter;
use typhon_profiler::session::{self, SessionOptions};
use typhon_runtime::graph::Graph;
use typhon_runtime::{SkipReason, SystemIndex};
use typhon_trace::event::EventView;
use worlds::{Trouble, World};

const TICKS: i64 = 12;
const KINDS: [u8; 16] = [0, 1, 4, 5, 10, 146, 147, 148, 149, 150, 151, 152, 153, 154, 155, 243];

/// One record, with what all kinds have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    slot: u8,
    start_ns: i64,
    end_ns: i64,
    id: u64,
    parent: u64,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    TickStart,
    TickEnd,
    Ready { system: u16, predecessors: u16 },
    Skipped { system: u16, reason: u8, chunks: u16, released: u16 },
    Chunk { system: u16, chunk: u16, total: u16 },
    Started { system: u16 },
    Completed { system: u16, reason: u8, us: u32 },
    Waited { system: u16, us: u32 },
    Alone { system: u16, chunks: u16 },
    Idle { worker: u8, us: u32 },
    Woken { worker: u8, us: u32 },
    Slept { worker: u8, us: u32, reason: u8 },
    Dispensed { system: u16, chunk: i32, worker: u8 },
    Released { from: u16, to: u16, fan_out: u16, left: u16 },
    Told { system: u16, successors: u16, skipped: u16 },
    Phase(u8),
}

fn what(view: EventView<'_>) -> Option<What> {
    Some(match view {
        EventView::TickStart(_) => What::TickStart,
        EventView::TickEnd(_) => What::TickEnd,
        EventView::SystemReady(ready) => {
            What::Ready { system: ready.system_idx()?, predecessors: ready.predecessor_count()? }
        }
        EventView::SystemSkipped(skip) => What::Skipped {
            system: skip.system_idx()?,
            reason: skip.skip_reason()?.0,
            chunks: skip.would_be_chunk_count()?,
            released: skip.successors_unblocked()?,
        },
        EventView::SchedulerChunk(chunk) => {
            assert_eq!(chunk.entities_processed(), Some(0));
            What::Chunk {
                system: chunk.system_idx()?,
                chunk: chunk.chunk_idx()?,
                total: chunk.total_chunks()?,
            }
        }
        EventView::SchedulerSystemStartExecution(start) => What::Started { system: start.sys_idx()? },
        EventView::SchedulerSystemCompletion(done) => {
            What::Completed { system: done.sys_idx()?, reason: done.reason()?.0, us: done.duration_us()? }
        }
        EventView::SchedulerSystemQueueWait(wait) => {
            What::Waited { system: wait.sys_idx()?, us: wait.queue_wait_us()? }
        }
        EventView::SchedulerSystemSingleThreaded(alone) => {
            assert_eq!(alone.is_parallel_query(), Some(0));
            What::Alone { system: alone.sys_idx()?, chunks: alone.chunk_count()? }
        }
        EventView::SchedulerWorkerIdle(idle) => {
            assert!(idle.spin_count()? > 0);
            What::Idle { worker: idle.worker_id()?, us: idle.idle_us()? }
        }
        EventView::SchedulerWorkerWake(wake) => {
            What::Woken { worker: wake.worker_id()?, us: wake.delay_us()? }
        }
        EventView::SchedulerWorkerBetweenTick(sleep) => {
            What::Slept { worker: sleep.worker_id()?, us: sleep.wait_us()?, reason: sleep.wake_reason()?.0 }
        }
        EventView::SchedulerDispense(claim) => What::Dispensed {
            system: claim.sys_idx()?,
            chunk: claim.chunk_idx()?,
            worker: claim.worker_id()?,
        },
        EventView::SchedulerDependencyReady(ready) => What::Released {
            from: ready.from_sys_idx()?,
            to: ready.to_sys_idx()?,
            fan_out: ready.fan_out()?,
            left: ready.pred_remain()?,
        },
        EventView::SchedulerDependencyFanOut(told) => What::Told {
            system: told.completing_sys_idx()?,
            successors: told.succ_count()?,
            skipped: told.skipped_count()?,
        },
        EventView::RuntimePhaseSpan(phase) => What::Phase(phase.phase()?.0),
        _ => return None,
    })
}

/// Records a world; also the skip reasons that telemetry has, tick by tick.
fn record(world: &World, workers: u8) -> (Vec<Row>, Vec<Vec<SkipReason>>) {
    let (exporter, trace) = MemoryExporter::new();
    let exporters: Vec<Box<dyn typhon_profiler::export::Exporter>> = vec![Box::new(exporter)];
    let options = SessionOptions { mask: KINDS.into_iter().collect(), exporters, ..Default::default() };
    session::start(options).unwrap();
    let (runtime, _) = world.runtime(workers, |_| {});
    (0..TICKS).for_each(|tick| drop(runtime.step(Duration::from_millis(tick as u64)).unwrap()));
    runtime.shutdown().unwrap();
    let report = session::stop().unwrap();
    assert_eq!(report.dropped_records, 0);
    let reasons = |tick| {
        let (_, systems) = runtime.telemetry().tick_with_systems(tick).unwrap();
        systems.iter().map(|system| system.skip_reason).collect()
    };
    let mut rows = Vec::new();
    trace.for_each(|record| {
        let start_ns = record.timestamp();
        let span = record.span();
        let end_ns = start_ns + span.map_or(0, |span| span.duration);
        if let Some(what) = EventView::new(record).and_then(what) {
            let (id, parent) = span.map_or((0, 0), |span| (span.span_id, span.parent_span_id));
            rows.push(Row { slot: record.slot(), start_ns, end_ns, id, parent, what });
        }
    });
    (rows, (1..=TICKS).map(reasons).collect())
}

/// What one tick recorded, from its start to the next one's.
struct Tick<'a> {
    rows: Vec<&'a Row>,
    start_ns: i64,
    end_ns: i64,
}

fn split(rows: &[Row]) -> Vec<Tick<'_>> {
    let moments = |what: &What| {
        let found = rows.iter().filter(|row| row.what == *what);
        found.map(|row| row.start_ns).collect::<Vec<_>>()
    };
    let (starts, ends) = (moments(&What::TickStart), moments(&What::TickEnd));
    assert_eq!((starts.len(), ends.len()), (TICKS as usize, TICKS as usize));
    let bounds = starts.iter().zip(starts[1..].iter().chain([&i64::MAX])).zip(&ends);
    let tick = |((&start_ns, &next_ns), &end_ns): ((&i64, &i64), &i64)| {
        let of_tick = |row: &&Row| (start_ns..next_ns).contains(&row.start_ns);
        Tick { rows: rows.iter().filter(of_tick).collect(), start_ns, end_ns }
    };
    bounds.map(tick).collect()
}

impl<'a> Tick<'a> {
    /// The only record of the tick for which `pick` has a value, and that value.
    fn only<T>(&self, name: &str, pick: impl Fn(&What) -> Option<T>) -> (&'a Row, T) {
        let mut all = self.all(pick);
        assert_eq!(all.len(), 1, "{name}");
        all.pop().unwrap()
    }

    fn all<T>(&self, pick: impl Fn(&What) -> Option<T>) -> Vec<(&'a Row, T)> {
        self.rows.iter().filter_map(|row| Some((*row, pick(&row.what)?))).collect()
    }
}

macro_rules! pick {
    ($pattern:pat $(if $guard:expr)? => $value:expr) => {
        |what: &What| match what { $pattern $(if $guard)? => Some($value), _ => None }
    };
}

/// Microseconds between two moments. A trace's clock runs at up to half or twice its rate while it catches up with the
/// system's; a record counts the counter's ticks.
fn about(us: u32, from_ns: i64, to_ns: i64) {
    let (said, exact) = (f64::from(us), (to_ns - from_ns).max(0) as f64 / 1e3);
    let is_about = exact / 2.1 - 2.0 <= said && said <= exact * 2.1 + 2.0;
    assert!(is_about, "{us} µs, but {exact} µs between the moments");
}

fn check_system(tick: &Tick<'_>, world: &World, graph: &Graph, system: u16, reason: SkipReason) {
    let index = SystemIndex::new(system);
    let (ready, predecessors) = tick
        .only("ready", pick!(What::Ready { system: own, predecessors } if *own == system => *predecessors));
    assert_eq!(predecessors, graph.predecessor_count(index));
    let (done, (reason_said, us)) = tick.only(
        "completion",
        pick!(What::Completed { system: own, reason, us } if *own == system => (*reason, *us)),
    );
    assert_eq!(reason_said, reason.0);
    let released = tick
        .all(pick!(What::Released { from, to, fan_out, left } if *to == system => (*from, *fan_out, *left)));
    match released.as_slice() {
        [] => assert_eq!(predecessors, 0),
        [(row, (from, fan_out, 0))] => {
            assert_eq!(row.start_ns, ready.start_ns);
            let from = SystemIndex::new(*from);
            assert!(graph.predecessors(index).contains(&from));
            assert_eq!(usize::from(*fan_out), graph.successors(from).len());
        }
        other => panic!("system {system} released by {other:?}"),
    }
    let ran = [SkipReason::NOT_SKIPPED, SkipReason::EXCEPTION].contains(&reason);
    check_chunks(tick, world, system, reason, ran);
    if ran {
        let (started, ()) = tick.only("start", pick!(What::Started { system: own } if *own == system => ()));
        let (_, waited) = tick.only("wait", pick!(What::Waited { system: own, us } if *own == system => *us));
        about(waited, ready.start_ns, started.start_ns);
        about(us, started.start_ns, done.start_ns);
    } else {
        assert_eq!(us, 0);
        check_skip(tick, world, system, reason);
    }
    check_told(tick, graph, system);
}

fn check_chunks(tick: &Tick<'_>, world: &World, system: u16, reason: SkipReason, ran: bool) {
    let total = world.systems[usize::from(system)].chunks as u16;
    let spans =
        tick.all(pick!(What::Chunk { system: own, chunk, total } if *own == system => (*chunk, *total)));
    let claims = tick
        .all(pick!(What::Dispensed { system: own, chunk, worker } if *own == system => (*chunk, *worker)));
    let mut chunks: Vec<_> = spans.iter().map(|(_, (chunk, _))| *chunk).collect();
    let mut claimed: Vec<_> = claims.iter().map(|(_, (chunk, _))| *chunk as u16).collect();
    chunks.sort_unstable();
    claimed.sort_unstable();
    assert_eq!(chunks, claimed, "what is claimed runs, and nothing else");
    assert!(spans.iter().all(|(_, (_, said))| *said == total));
    let all: Vec<u16> = (0..total).collect();
    match reason {
        SkipReason::NOT_SKIPPED => assert_eq!(chunks, all),
        _ if ran => assert!(!chunks.is_empty() && chunks == all[..chunks.len()]),
        _ => assert!(chunks.is_empty()),
    }
    for (row, _) in spans {
        assert!(tick.start_ns <= row.start_ns && row.end_ns <= tick.end_ns);
    }
}

fn check_skip(tick: &Tick<'_>, world: &World, system: u16, reason: SkipReason) {
    let skip = pick!(What::Skipped { system: own, reason, chunks, released } if *own == system => (*reason, *chunks, *released));
    let (_, (said, chunks, released)) = tick.only("skip", skip);
    let plan = &world.systems[usize::from(system)];
    assert_eq!((said, u32::from(chunks)), (reason.0, plan.chunks));
    let by_it = tick.all(pick!(What::Released { from, .. } if *from == system => ()));
    assert_eq!(usize::from(released), by_it.len());
}

/// Telling the successors: counted right, and nobody runs meanwhile on the same worker.
fn check_told(tick: &Tick<'_>, graph: &Graph, system: u16) {
    let successors = graph.successors(SystemIndex::new(system)).len();
    let told = tick.all(
        pick!(What::Told { system: own, successors, skipped } if *own == system => (*successors, *skipped)),
    );
    let Some((row, (said, skipped))) = told.first() else { return assert_eq!(successors, 0) };
    assert_eq!((told.len(), usize::from(*said)), (1, successors));
    let released = tick.all(pick!(What::Released { from, to, .. } if *from == system => *to));
    let was_skipped =
        |to: u16| !tick.all(pick!(What::Skipped { system: own, .. } if *own == to => ())).is_empty();
    assert_eq!(usize::from(*skipped), released.iter().filter(|(_, to)| was_skipped(*to)).count());
    let inside = |(other, ()): &(&Row, ())| {
        other.slot == row.slot && other.start_ns > row.start_ns && other.start_ns < row.end_ns
    };
    assert!(!tick.all(pick!(What::Chunk { .. } => ())).iter().any(inside), "a system ran inside of telling");
}

/// Records about workers rather than systems.
fn check_workers(rows: &[Row], workers: u8) {
    let mut gone: HashSet<u8> = HashSet::new();
    for row in rows {
        match row.what {
            What::Idle { worker, us } => {
                assert!(worker < workers);
                about(us, row.start_ns, row.end_ns);
            }
            What::Woken { worker, .. } => assert!((1..workers).contains(&worker)),
            What::Slept { worker, us, reason } => {
                assert!((1..workers).contains(&worker), "worker 0 does not sleep between ticks");
                about(us, row.start_ns, row.end_ns);
                assert!(reason < 2, "a wake was lost");
                assert!(!gone.contains(&worker), "worker {worker} slept after the shutdown");
                gone.extend((reason == 1).then_some(worker));
            }
            _ => {}
        }
    }
    let woken = rows.iter().filter(|row| matches!(row.what, What::Woken { .. })).count();
    let slept = rows.iter().filter(|row| matches!(row.what, What::Slept { reason: 0, .. })).count();
    assert!(woken <= slept, "{woken} wakes of {slept} sleeps");
}

/// Spans hang together: chunks of worker 0 lie in the phase, or in the system if that runs alone.
fn check_nesting(tick: &Tick<'_>, workers: u8) {
    let (phase, ()) = tick.only("phase", pick!(What::Phase(0) => ()));
    let alone = tick.all(pick!(What::Alone { system, chunks } => (*system, *chunks)));
    for (row, (system, total)) in tick.all(pick!(What::Chunk { system, total, .. } => (*system, *total))) {
        let outer = alone.iter().find(|(_, (own, _))| *own == system);
        match outer {
            Some((outer, (_, chunks))) => {
                assert_eq!((workers, outer.id, *chunks), (1, row.parent, total));
                assert_eq!(outer.parent, phase.id);
            }
            None if row.slot == phase.slot => assert_eq!(row.parent, phase.id),
            None => assert_eq!(row.parent, 0, "helpers have no phase around them"),
        }
        assert!(phase.start_ns <= row.start_ns && row.end_ns <= phase.end_ns);
    }
    assert_eq!(workers > 1, alone.is_empty());
}

#[test]
fn trap19_records_say_what_happened() {
    for seed in 1..=4 {
        let world = World::random(seed * 77, 60, Trouble { skips: 15, errors: 3, panics: 3 });
        for workers in [1, 2, 3] {
            let (rows, reasons) = record(&world, workers);
            let (runtime, _) = world.runtime(1, |_| {});
            for (tick, reasons) in split(&rows).iter().zip(&reasons) {
                check_nesting(tick, workers);
                for (system, &reason) in (0..).zip(reasons) {
                    check_system(tick, &world, runtime.graph(), system, reason);
                }
            }
            check_workers(&rows, workers);
        }
    }
}
