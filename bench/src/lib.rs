//! What the benches share: alternating measurement, and memory of a process.
//!
//! A time alone says little on a machine that also does other things. Every bench therefore measures a *floor* (the
//! least work anybody could do for the same result) and a *subject* in alternation, in one process, and reports the
//! ratio of the two: of the fastest rounds, and the median over rounds.
#![forbid(unsafe_code)]

#[cfg(feature = "bevy")]
pub mod bevy;
pub mod graphs;
pub mod process;
pub mod recording;
pub mod served;
pub mod ticking;
pub mod world;

use std::time::{Duration, Instant};

/// Times of a floor and of a subject from alternating rounds.
#[derive(Debug, Default)]
pub struct Pair {
    floor: Vec<Duration>,
    subject: Vec<Duration>,
}

impl Pair {
    /// Runs both once to warm up, then `rounds` times in turn, beginning with the floor.
    pub fn measure(rounds: usize, floor: impl FnMut(), subject: impl FnMut()) -> Self {
        Self::measure_with(rounds, || (), floor, subject)
    }

    /// As [`Pair::measure`]; `between` runs after each turn of the subject and counts for neither.
    pub fn measure_with(
        rounds: usize,
        mut between: impl FnMut(),
        mut floor: impl FnMut(),
        mut subject: impl FnMut(),
    ) -> Self {
        floor();
        subject();
        between();
        let mut pair = Self::default();
        for _ in 0..rounds {
            pair.floor.push(time(&mut floor));
            pair.subject.push(time(&mut subject));
            between();
        }
        pair
    }

    /// One line: both times, and the ratio of the minima and the median ratio.
    pub fn report(&self, name: &str, work: f64, unit: &str) -> String {
        let (floor, subject) = (min(&self.floor), min(&self.subject));
        format!(
            "{name:<40} floor {:>9.3} ms  subject {:>9.3} ms  ratio {:>5.2} / {:>5.2}  {:>9.1} {unit}",
            floor.as_secs_f64() * 1e3,
            subject.as_secs_f64() * 1e3,
            self.ratio_of_minima(),
            self.median_ratio(),
            work / subject.as_secs_f64(),
        )
    }

    /// Time of the fastest subject round.
    pub fn fastest_subject(&self) -> Duration {
        min(&self.subject)
    }

    /// Fastest subject round over fastest floor round.
    pub fn ratio_of_minima(&self) -> f64 {
        min(&self.subject).as_secs_f64() / min(&self.floor).as_secs_f64()
    }

    /// Median over rounds of the subject's time by the floor's time of the same round.
    pub fn median_ratio(&self) -> f64 {
        let pairs = self.floor.iter().zip(&self.subject);
        let mut ratios: Vec<f64> =
            pairs.map(|(floor, subject)| subject.as_secs_f64() / floor.as_secs_f64()).collect();
        ratios.sort_by(f64::total_cmp);
        ratios[ratios.len() / 2]
    }
}

fn min(times: &[Duration]) -> Duration {
    times.iter().min().copied().unwrap_or_default()
}

fn time(work: &mut impl FnMut()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Largest resident set so far of a process (a number, or `self`) in bytes; `None` where the system does not say.
pub fn peak_memory_bytes(process: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Processor time that the threads of this process have used, of those that still run; zero where the system does not say.
/// Unlike the clock it hardly depends on what else the machine does.
pub fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let own = text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let of_thread = |entry: std::fs::DirEntry| {
        let text = std::fs::read_to_string(entry.path().join("schedstat")).unwrap_or_default();
        text.split(' ').next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0)
    };
    Duration::from_nanos(threads.map(of_thread).sum::<u64>().max(own))
}
