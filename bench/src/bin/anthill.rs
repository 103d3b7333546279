//! What recording costs the demo world: ticks of the ant colony without a recording, with the kinds that are on by default,
//! and with every kind, in turn on the same colony, into a file.
//!
//! `anthill [ANTS] [WORKERS]`. Each round has some ticks of each; their order changes from round to round, since a colony
//! does more as it grows. The cost is the median over rounds of the time with a recording by the time without: of the
//! clock's time, and of the processor time of the whole process, which other work on the machine hardly changes.

use anthill::Colony;
use bench::processor_time;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};
use typhon::prelude::*;
use typhon::profiler::export::{Exporter, FileExporter};
use typhon::profiler::gates::KindMask;
use typhon::profiler::session::{self, SessionOptions};

const ROUNDS: usize = 60;
/// Ticks of each kind in a round.
const TICKS: u32 = 10;
/// Before anything is measured: ants have found food by then.
const SETTLING_TICKS: u32 = 300;

/// A way to run: its name, and what it records.
struct Way {
    name: &'static str,
    mask: Option<KindMask>,
    /// Time of a tick in each round, seconds: on the clock, and of all processors.
    rounds: Vec<f64>,
    processor: Vec<f64>,
    records: u64,
    lost: u64,
    bytes: u64,
}

impl Way {
    fn new(name: &'static str, mask: Option<KindMask>) -> Self {
        Self { name, mask, rounds: Vec::new(), processor: Vec::new(), records: 0, lost: 0, bytes: 0 }
    }

    fn run(&mut self, world: &mut Stepped, path: &Path) -> Result<(), Box<dyn Error>> {
        if let Some(mask) = self.mask {
            let exporters: Vec<Box<dyn Exporter>> = vec![Box::new(FileExporter::new(path))];
            session::start(SessionOptions { mask, exporters, ..SessionOptions::default() })?;
        }
        // The first ticks after a change warm caches again, and register threads.
        world.run(2)?;
        let before = processor_time();
        let took = world.run(TICKS)?;
        let worked = processor_time() - before;
        self.processor.push(worked.as_secs_f64() / f64::from(TICKS));
        self.rounds.push(took.as_secs_f64() / f64::from(TICKS));
        if let Some(report) = session::stop() {
            self.records += report.records;
            self.lost += report.dropped_records;
            self.bytes += std::fs::metadata(path)?.len();
        }
        Ok(())
    }
}

struct Stepped {
    runtime: Runtime,
    tick: u32,
}

impl Stepped {
    fn new(colony: &Colony, workers: u8) -> Result<Self, Box<dyn Error>> {
        let engine = Engine::builder()
            .runtime(|runtime| runtime.worker_count = WorkerCount::Fixed(workers))
            .build()?;
        Ok(Self { runtime: Runtime::create(&engine, |schedule| colony.declare(schedule))?, tick: 0 })
    }

    fn run(&mut self, ticks: u32) -> Result<Duration, Box<dyn Error>> {
        let start = Instant::now();
        for _ in 0..ticks {
            self.tick += 1;
            self.runtime.step(Duration::from_nanos(16_666_667) * self.tick)?;
        }
        Ok(start.elapsed())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let ants = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let workers = arguments.next().map_or(Ok(2), |text| text.parse())?;
    let path = std::env::temp_dir().join(format!("bench-anthill-{}.typhon-trace", std::process::id()));
    let colony = Colony::new(ants, 1);
    let mut world = Stepped::new(&colony, workers)?;
    world.run(SETTLING_TICKS)?;
    let mut ways = [
        Way::new("no recording", None),
        Way::new("default kinds", Some(bench::recording::default_mask())),
        Way::new("every kind", Some((0..=255).collect())),
    ];
    for round in 0..ROUNDS {
        for turn in 0..ways.len() {
            let at = (turn + round) % ways.len();
            ways[at].run(&mut world, &path)?;
        }
    }
    std::fs::remove_file(&path)?;
    println!("{ants} ants, {workers} workers, {ROUNDS} rounds of {TICKS} ticks each way\n");
    let (base, base_processor) = (ways[0].rounds.clone(), ways[0].processor.clone());
    let ticks = (ROUNDS as u32 * (TICKS + 2)) as f64;
    for way in &ways {
        let cost = |with: &[f64], without: &[f64]| {
            (median(with.iter().zip(without).map(|(with, without)| with / without)) - 1.0) * 1e2
        };
        println!(
            "{:<14} median tick {:>8.3} ms  fastest {:>8.3} ms  cost {:>+6.2} %  processor {:>8.3} ms  cost {:>+6.2} %  {:>7.0} records and {:>6.1} KiB a tick, {} lost",
            way.name,
            median(way.rounds.iter().copied()) * 1e3,
            way.rounds.iter().copied().fold(f64::INFINITY, f64::min) * 1e3,
            cost(&way.rounds, &base),
            median(way.processor.iter().copied()) * 1e3,
            cost(&way.processor, &base_processor),
            way.records as f64 / ticks,
            way.bytes as f64 / ticks / 1024.0,
            way.lost,
        );
    }
    println!("world hash {:016x} after {} ticks", colony.world().hash(), world.tick);
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
