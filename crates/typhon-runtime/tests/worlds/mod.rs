//! Random schedules whose systems do something that depends on the order in which they run.
#![allow(clippy::unwrap_used, dead_code, reason = "for tests; not every one of them uses all of it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use typhon_engine::Engine;
use typhon_engine::options::{RuntimeOptions, WorkerCount};
use typhon_runtime::Runtime;
use typhon_runtime::schedule::Schedule;

/// A small generator of pseudo-random numbers (SplitMix64).
#[derive(Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// What a system of a random schedule does, tick by tick: a pure function of seed, system and tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Run,
    Skip,
    Fail,
    Panic,
}

/// How often which deed comes, in percent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Trouble {
    pub(crate) skips: u64,
    pub(crate) errors: u64,
    pub(crate) panics: u64,
}

/// One system of a random schedule.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) chunks: u32,
    pub(crate) divisor: u32,
    pub(crate) after: Vec<usize>,
    /// Cells of the world that it writes, and those that it reads.
    pub(crate) writes: Vec<usize>,
    pub(crate) reads: Vec<usize>,
}

/// A schedule to be declared, any number of times.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) systems: Vec<Plan>,
    pub(crate) cells: usize,
    pub(crate) trouble: Trouble,
}

/// What became of a world.
pub(crate) struct Watched {
    pub(crate) cells: Vec<AtomicU64>,
    /// Chunks run, by system.
    pub(crate) runs: Vec<AtomicU32>,
    /// Readers and writers inside, by cell: a writer counts 1000.
    pub(crate) inside: Vec<AtomicI64>,
    pub(crate) overlaps: AtomicU32,
    /// Moments at which each system began and ended in this tick, on one count for all.
    pub(crate) clock: AtomicU64,
    pub(crate) began: Vec<AtomicU64>,
    pub(crate) ended: Vec<AtomicU64>,
}

impl World {
    pub(crate) fn random(seed: u64, max_systems: u64, trouble: Trouble) -> Self {
        let mut random = Random(seed);
        let count = 1 + random.below(max_systems) as usize;
        let cells = 1 + random.below(8) as usize;
        let systems = (0..count).map(|at| Plan::random(&mut random, at, cells)).collect();
        Self { seed, systems, cells, trouble }
    }

    pub(crate) fn deed(&self, system: usize, tick: i64) -> Deed {
        let Trouble { skips, errors, panics } = self.trouble;
        match mix(self.seed ^ mix(system as u64 ^ mix(tick as u64))) % 100 {
            roll if roll < skips => Deed::Skip,
            roll if roll < skips + errors => Deed::Fail,
            roll if roll < skips + errors + panics => Deed::Panic,
            _ => Deed::Run,
        }
    }

    /// Chunk of a system that fails in this tick, if it fails.
    pub(crate) fn failing_chunk(&self, system: usize, tick: i64) -> u32 {
        (mix(self.seed ^ system as u64 ^ (tick as u64) << 32) % u64::from(self.systems[system].chunks)) as u32
    }

    pub(crate) fn watched(&self) -> Arc<Watched> {
        let numbers = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        Arc::new(Watched {
            cells: numbers(self.cells),
            runs: (0..self.systems.len()).map(|_| AtomicU32::new(0)).collect(),
            inside: (0..self.cells).map(|_| AtomicI64::new(0)).collect(),
            overlaps: AtomicU32::new(0),
            clock: AtomicU64::new(1),
            began: numbers(self.systems.len()),
            ended: numbers(self.systems.len()),
        })
    }

    /// Declares the systems: cell `n` is the resource `Cell n`, and each system has a phase of its own, so that those
    /// that touch the same cell are ordered.
    pub(crate) fn declare(&self, schedule: &Schedule, watched: &Arc<Watched>) {
        let dag = schedule.public_track().declare_dag("World");
        dag.phases((0..self.systems.len()).map(|at| format!("Phase {at}")));
        for at in 0..self.systems.len() {
            let (world, seen) = (Arc::new(self.clone()), Arc::clone(watched));
            let gate = Arc::clone(&world);
            let plan = &self.systems[at];
            let ask = move |tick: &typhon_runtime::system::TickInfo| gate.deed(at, tick.number) != Deed::Skip;
            let names = plan.after.iter().map(|other| name(*other));
            macro_rules! finish {
                ($system:expr) => {{
                    let mut system = $system
                        .phase(format!("Phase {at}"))
                        .run_if(ask)
                        .tick_divisor(plan.divisor)
                        .after_all(names);
                    for cell in &plan.writes {
                        system = system.writes_resource(format!("Cell {cell}"));
                    }
                    for cell in &plan.reads {
                        system = system.reads_resource(format!("Cell {cell}"));
                    }
                    let _ = system;
                }};
            }
            if plan.chunks == 1 {
                let run = move |ctx: &mut typhon_runtime::system::SystemCtx<'_>| {
                    seen.run(&world, at, ctx.tick_number(), 0)
                };
                finish!(dag.callback_system(name(at), run));
            } else {
                let run = move |ctx: &typhon_runtime::system::ChunkCtx<'_>| {
                    seen.run(&world, at, ctx.tick_number(), ctx.chunk)
                };
                finish!(dag.chunked_system(name(at), plan.chunks, run));
            }
        }
    }

    /// A runtime of this world on so many workers, with helpers called in every tick if there are any.
    pub(crate) fn runtime(
        &self,
        workers: u8,
        change: impl FnOnce(&mut RuntimeOptions),
    ) -> (Runtime, Arc<Watched>) {
        let engine = Engine::builder()
            .runtime(|runtime| {
                runtime.worker_count = WorkerCount::Fixed(workers);
                runtime.base_tick_rate_hz = 1000;
                change(runtime);
            })
            .build()
            .unwrap();
        let watched = self.watched();
        let runtime = Runtime::create(&engine, |schedule| self.declare(schedule, &watched)).unwrap();
        runtime.always_call_helpers(true);
        (runtime, watched)
    }
}

impl Plan {
    fn random(random: &mut Random, at: usize, cells: usize) -> Self {
        let mut after: Vec<usize> =
            (0..random.below(4)).filter(|_| at > 0).map(|_| random.below(at as u64) as usize).collect();
        let chunks = if random.percent(25) { 2 + random.below(6) as u32 } else { 1 };
        let divisor = if random.percent(15) { 2 + random.below(3) as u32 } else { 1 };
        let (mut writes, mut reads) = (Vec::new(), Vec::new());
        for cell in 0..cells {
            match random.below(12) {
                // Only a system of one chunk writes, so that the order of chunks does not matter.
                0 if chunks == 1 => writes.push(cell),
                1 | 2 => reads.push(cell),
                _ => {}
            }
        }
        after.sort_unstable();
        after.dedup();
        Self { chunks, divisor, after, writes, reads }
    }
}

pub(crate) fn name(system: usize) -> String {
    format!("System {system}")
}

impl Watched {
    /// One chunk: looks at what it reads, changes what it writes, and notices who is inside at the same time.
    fn run(&self, world: &World, system: usize, tick: i64, chunk: u32) -> Result<(), String> {
        let plan = &world.systems[system];
        self.began[system].fetch_min(self.clock.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
        self.runs[system].fetch_add(1, Ordering::Relaxed);
        self.enter(plan, 1);
        let mut hash = mix(system as u64 ^ tick as u64);
        for &cell in &plan.reads {
            hash = mix(hash ^ self.cells[cell].load(Ordering::Relaxed));
        }
        for &cell in &plan.writes {
            let before = self.cells[cell].load(Ordering::Relaxed);
            self.cells[cell].store(mix(hash ^ before), Ordering::Relaxed);
        }
        self.enter(plan, -1);
        self.ended[system].fetch_max(self.clock.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
        match world.deed(system, tick) {
            _ if world.failing_chunk(system, tick) != chunk => Ok(()),
            Deed::Fail => Err("as planned".to_owned()),
            Deed::Panic => std::panic::resume_unwind(Box::new("as planned")),
            Deed::Run | Deed::Skip => Ok(()),
        }
    }

    fn enter(&self, plan: &Plan, sign: i64) {
        for &cell in &plan.writes {
            let before = self.inside[cell].fetch_add(1000 * sign, Ordering::SeqCst);
            self.overlaps.fetch_add(u32::from(sign > 0 && before != 0), Ordering::Relaxed);
        }
        for &cell in &plan.reads {
            let before = self.inside[cell].fetch_add(sign, Ordering::SeqCst);
            self.overlaps.fetch_add(u32::from(sign > 0 && before >= 1000), Ordering::Relaxed);
        }
    }

    /// Forgets the moments of the last tick.
    pub(crate) fn begin_tick(&self) {
        self.began.iter().for_each(|began| began.store(u64::MAX, Ordering::SeqCst));
        self.ended.iter().for_each(|ended| ended.store(0, Ordering::SeqCst));
        self.runs.iter().for_each(|runs| runs.store(0, Ordering::Relaxed));
    }

    pub(crate) fn hash(&self) -> u64 {
        self.cells.iter().fold(0, |hash, cell| mix(hash ^ cell.load(Ordering::Relaxed)))
    }
}
