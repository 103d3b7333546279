//! Running a program: wall time, processor time, peak memory.

use std::error::Error;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::peak_memory_bytes;

/// How often the memory of the running program is read.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(5);

/// What a run took.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// From start to end.
    pub time: Duration,
    /// Spent on all processors, to 10 ms; it says more than `time` while other programs run. `None` where the system
    /// does not tell.
    pub processor_time: Option<Duration>,
    /// Largest resident set, as the system said shortly before the end.
    pub peak_memory_bytes: Option<u64>,
}

/// Runs a program with its output thrown away.
pub fn run(program: &Path, arguments: &[&str], file: &Path) -> Result<Run, Box<dyn Error>> {
    let (before, start) = (children_time(), Instant::now());
    let mut child = Command::new(program)
        .args(arguments)
        .arg(file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{}: {error}; cargo build --release -p typhon-cli", program.display()))?;
    let peak_memory_bytes = watch(&mut child)?;
    let time = start.elapsed();
    let status = child.wait()?;
    if !status.success() {
        return Err(format!("{}: {status}", arguments.join(" ")).into());
    }
    let processor_time = before.zip(children_time()).map(|(before, after)| after.saturating_sub(before));
    Ok(Run { time, processor_time, peak_memory_bytes })
}

/// Runs it three times: the shortest times and the largest memory.
pub fn best_of_three(program: &Path, arguments: &[&str], file: &Path) -> Result<Run, Box<dyn Error>> {
    let mut best = run(program, arguments, file)?;
    for _ in 0..2 {
        let next = run(program, arguments, file)?;
        best.time = best.time.min(next.time);
        best.processor_time = best.processor_time.min(next.processor_time);
        best.peak_memory_bytes = best.peak_memory_bytes.max(next.peak_memory_bytes);
    }
    Ok(best)
}

fn watch(child: &mut Child) -> Result<Option<u64>, Box<dyn Error>> {
    let process = child.id().to_string();
    let mut peak = None;
    while child.try_wait()?.is_none() {
        peak = peak_memory_bytes(&process).or(peak);
        thread::sleep(SAMPLE_INTERVAL);
    }
    Ok(peak)
}

/// Processor time of all children that have ended: fields 16 and 17 of the process's own state, in hundredths.
fn children_time() -> Option<Duration> {
    let state = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in brackets, may hold blanks.
    let fields: Vec<&str> = state.rsplit_once(')')?.1.split_whitespace().collect();
    let hundredths = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(Duration::from_millis(10 * (hundredths(13)? + hundredths(14)?)))
}
