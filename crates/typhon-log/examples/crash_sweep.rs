//! Crashes logs on a simulated disk until told to stop, and prints the seed and the story of any world that goes
//! wrong.
//!
//! `cargo run --release -p typhon-log --example crash_sweep -- [--seed N] [--crashes N] [--threads N]`

#[path = "../tests/common/mod.rs"]
mod common;

use common::{How, random_world};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Worlds between two looks at the clock.
const REPORT_EVERY: u64 = 50_000;

const HELP: &str = "\
Crashes logs on a simulated disk, and prints the seed and the story of any world that goes wrong.

Usage: crash_sweep [--seed N] [--crashes N] [--threads N]

  --seed N     Seed of the first world [default: 0]
  --crashes N  Crashes before it ends well [default: 1000000]
  --threads N  Threads that crash worlds [default: 1]";

/// Seed, crashes and threads; `None` if help was asked for.
fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<(u64, u64, u64)>, String> {
    let (mut seed, mut crashes, mut threads) = (0, 1_000_000, 1);
    while let Some(name) = arguments.next() {
        let option = match name.as_str() {
            "--seed" => &mut seed,
            "--crashes" => &mut crashes,
            "--threads" => &mut threads,
            "--help" | "-h" => return Ok(None),
            _ => return Err(format!("unknown argument {name}; see --help")),
        };
        let value = arguments.next().and_then(|value| value.parse().ok());
        *option = value.ok_or_else(|| format!("{name} needs a number; see --help"))?;
    }
    Ok(Some((seed, crashes, threads.max(1))))
}

fn main() -> ExitCode {
    let (seed, wanted, threads) = match parse(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    println!("seed {seed}, {wanted} crashes, {threads} threads");
    let (next, crashes, is_wrong) = (AtomicU64::new(seed), AtomicU64::new(0), AtomicBool::new(false));
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while crashes.load(Ordering::Relaxed) < wanted && !is_wrong.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    match random_world(seed, How::default()) {
                        Ok(count) => crashes.fetch_add(count, Ordering::Relaxed),
                        Err((violation, story)) => {
                            is_wrong.store(true, Ordering::Relaxed);
                            println!("seed {seed}: {violation:?}\n{}", story.join("\n"));
                            0
                        }
                    };
                    if seed % REPORT_EVERY == 0 {
                        let seconds = start.elapsed().as_secs();
                        println!("at seed {seed}: {} crashes, {seconds} s", crashes.load(Ordering::Relaxed));
                    }
                }
            });
        }
    });
    let (worlds, crashes) = (next.into_inner() - seed, crashes.into_inner());
    println!("{worlds} worlds from seed {seed}, {crashes} crashes, {:?}", start.elapsed());
    if is_wrong.into_inner() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
