//! Runtimes to be measured.

use crate::graphs::Shape;
use std::cell::Cell;
use std::time::Duration;
use typhon_engine::Engine;
use typhon_engine::options::WorkerCount;
use typhon_runtime::Runtime;
use typhon_runtime::schedule::Schedule;

/// A runtime that is stepped by whoever measures it.
pub struct Ticking {
    /// The runtime.
    pub runtime: Runtime,
    tick: Cell<u64>,
}

impl Ticking {
    /// A runtime of this schedule on so many workers; `helps`: helpers take part whether or not it pays.
    pub fn new(workers: u8, helps: bool, declare: impl FnOnce(&Schedule)) -> Self {
        let engine = Engine::builder()
            .runtime(|runtime| runtime.worker_count = WorkerCount::Fixed(workers))
            .build()
            .expect("the options are in order");
        let runtime = Runtime::create(&engine, declare).expect("the schedule is in order");
        runtime.always_call_helpers(helps);
        let ticking = Self { runtime, tick: Cell::new(0) };
        (0..100).for_each(|_| ticking.step());
        ticking
    }

    /// A runtime of systems that do nothing.
    pub fn empty(shape: Shape, systems: usize, workers: u8, helps: bool) -> Self {
        Self::new(workers, helps, |schedule| {
            let dag = schedule.public_track().declare_dag("Bench");
            for at in 0..systems {
                let before = shape.predecessors(at, systems).into_iter().map(|before| format!("S{before}"));
                let _ = dag.callback_system(format!("S{at}"), |_| {}).after_all(before);
            }
        })
    }

    /// Runs a tick. The clock of the world runs at 60 Hz.
    pub fn step(&self) {
        let tick = self.tick.get() + 1;
        self.tick.set(tick);
        self.runtime.step(Duration::from_nanos(tick * 16_666_667)).expect("nothing fails");
    }
}
