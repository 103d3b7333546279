//! Runtimes to be measured, and what is measured of them.

use crate::Pair;
use crate::graphs::Shape;
use std::cell::Cell;
use std::hint::black_box;
use std::time::Duration;
use typhon_engine::Engine;
use typhon_engine::options::WorkerCount;
use typhon_profiler::Ticks;
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

/// Between two rounds; time for a recorder to put away what was recorded, as there is between the ticks of a world.
const PAUSE: Duration = Duration::from_millis(3);

/// Measures ticks of so many empty systems, beside a floor of as many boxed closures with two reads of the clock around
/// each, and prints what a tick and a system of it take.
pub fn per_system(label: &str, systems: usize, rounds: usize, mut tick: impl FnMut()) {
    let ticks = 20_000 / systems.max(20);
    let mut closures: Vec<Box<dyn FnMut() -> Result<(), ()> + Send>> =
        (0..systems).map(|_| Box::new(|| Ok(())) as _).collect();
    let floor = || {
        for _ in 0..ticks {
            for closure in &mut closures {
                let start = Ticks::now();
                black_box(closure()).expect("it does nothing");
                black_box((start, Ticks::now()));
            }
        }
    };
    let pair =
        Pair::measure_with(rounds, || std::thread::sleep(PAUSE), floor, || (0..ticks).for_each(|_| tick()));
    let us_per_tick = pair.fastest_subject().as_secs_f64() * 1e6 / ticks as f64;
    println!(
        "  {label:<42} tick {us_per_tick:>9.3} µs  per system {:>7.1} ns  ratio {:>6.2} / {:>6.2}",
        us_per_tick * 1e3 / systems as f64,
        pair.ratio_of_minima(),
        pair.median_ratio(),
    );
}
