//! Durable appends: rates and latencies of threads that each wait for what they append.

use crate::contender::{Contender, Result};
use crate::statistics::{median, percentile};
use serde_json::{Value, json};
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// What is appended in one measurement.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub threads: usize,
    /// Records that a thread appends before it waits.
    pub group: usize,
    pub record_bytes: usize,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { threads, group, record_bytes } = self;
        let plural = if *threads == 1 { "" } else { "s" };
        match group {
            1 => write!(f, "{threads} thread{plural}, {record_bytes} B, one wait each"),
            _ => write!(f, "{threads} thread{plural}, {record_bytes} B, one wait for {group}"),
        }
    }
}

/// The cases: few threads and many, single and grouped, two sizes.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for record_bytes in [64, 1024] {
        for group in [1, 16] {
            for threads in [1, 2, 8] {
                cases.push(Case { threads, group, record_bytes });
            }
        }
    }
    cases
}

/// Rates of rounds and latencies of all waits.
#[derive(Debug, Default)]
pub struct Figures {
    /// Records per second, by round.
    rates: Vec<f64>,
    latencies_ns: Vec<u64>,
}

impl Figures {
    /// Lets the threads append for a while.
    pub fn add_round(&mut self, log: &dyn Contender, case: Case, slice: Duration) -> Result<()> {
        let record = vec![0xA5; case.record_bytes];
        let barrier = Barrier::new(case.threads);
        let work = || -> Result<(Instant, Instant, Vec<u64>)> {
            let mut latencies = Vec::with_capacity(1 << 12);
            barrier.wait();
            let start = Instant::now();
            let mut before = start;
            while before - start < slice {
                log.append_durable(&record, case.group)?;
                let now = Instant::now();
                latencies.push((now - before).as_nanos() as u64);
                before = now;
            }
            log.leave()?;
            Ok((start, before, latencies))
        };
        let results: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..case.threads).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
        });
        let results = results.into_iter().collect::<Result<Vec<_>>>()?;
        let start = results.iter().map(|(start, ..)| *start).min().expect("at least one thread");
        let end = results.iter().map(|(_, end, _)| *end).max().expect("at least one thread");
        let waits: usize = results.iter().map(|(.., latencies)| latencies.len()).sum();
        self.rates.push((waits * case.group) as f64 / (end - start).as_secs_f64());
        results.into_iter().for_each(|(.., latencies)| self.latencies_ns.extend(latencies));
        Ok(())
    }

    pub fn rate(&self) -> f64 {
        median(&self.rates)
    }

    pub fn best_rate(&self) -> f64 {
        self.rates.iter().copied().fold(0.0, f64::max)
    }

    /// The rate as part of another's: the median over rounds, and that of the best rounds.
    pub fn relative_to(&self, other: &Self) -> (f64, f64) {
        let ratios: Vec<f64> =
            self.rates.iter().zip(&other.rates).map(|(ours, other)| ours / other).collect();
        (median(&ratios), self.best_rate() / other.best_rate())
    }

    /// The latency that so many thousandths of all waits do not exceed.
    pub fn latency_ns(&self, per_mille: usize) -> u64 {
        percentile(&self.latencies_ns, per_mille)
    }

    pub fn to_json(&self) -> Value {
        json!({
            "records_per_s": self.rate(),
            "best_records_per_s": self.best_rate(),
            "waits": self.latencies_ns.len(),
            "latency_ns": {
                "min": self.latency_ns(0),
                "p10": self.latency_ns(100),
                "p50": self.latency_ns(500),
                "p99": self.latency_ns(990),
                "p999": self.latency_ns(999),
            },
        })
    }
}
