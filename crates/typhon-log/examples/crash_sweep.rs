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

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str, default: u64| {
        let value = arguments.iter().skip_while(|argument| *argument != name).nth(1);
        value.and_then(|value| value.parse().ok()).unwrap_or(default)
    };
    let (seed, wanted, threads) =
        (option("--seed", 0), option("--crashes", 1_000_000), option("--threads", 1));
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
