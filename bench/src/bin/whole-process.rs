//! The commands as a user runs them: time, rate and peak memory over recordings of growing length.
//!
//! `whole-process [TYPHON] [--mebibytes N]`: TYPHON is the binary to measure, by default the release build of this
//! repository. With a size, one recording of that size is measured instead of three of growing length.

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bench::peak_memory_bytes;
use bench::recording::{Length, Recorded, record};

const COMMANDS: &[&[&str]] = &[
    &["trace", "info"],
    &["trace", "verify"],
    &["trace", "dump", "--format", "text"],
    &["trace", "dump", "--format", "jsonl"],
    &["trace", "dump", "--where", "kind=TransactionCommit dur>1s"],
];

const ROUNDS: usize = 3;
/// How often the memory of the running command is read.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(5);

fn main() -> Result<(), Box<dyn Error>> {
    let (typhon, lengths) = parse_arguments()?;
    let folder = std::env::temp_dir().join(format!("typhon-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let measured = lengths.iter().try_for_each(|length| measure(&typhon, &folder, *length));
    fs::remove_dir_all(&folder)?;
    measured
}

fn parse_arguments() -> Result<(PathBuf, Vec<Length>), Box<dyn Error>> {
    let mut typhon = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/typhon");
    let mut lengths = [100_000, 1_000_000, 10_000_000].map(Length::Records).to_vec();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--mebibytes" {
            let count: u64 = arguments.next().ok_or("--mebibytes needs a number")?.parse()?;
            lengths = vec![Length::FileBytes(count << 20)];
        } else {
            typhon = argument.into();
        }
    }
    Ok((typhon, lengths))
}

fn measure(typhon: &Path, folder: &Path, length: Length) -> Result<(), Box<dyn Error>> {
    let path = folder.join("recording.typhon-trace");
    let (_, recorded) = record(File::create(&path)?, length, 1)?;
    let Recorded { records, file_bytes, record_bytes } = recorded;
    println!(
        "{:.1} M records, file {:.1} MB, records {:.1} MB",
        records as f64 / 1e6,
        file_bytes as f64 / 1e6,
        record_bytes as f64 / 1e6
    );
    for arguments in COMMANDS {
        let runs: Result<Vec<Run>, _> = (0..ROUNDS).map(|_| run(typhon, arguments, &path)).collect();
        let runs = runs?;
        let fastest = runs.iter().map(|run| run.time).min().unwrap_or_default();
        let memory = runs.iter().filter_map(|run| run.peak_memory_bytes).max();
        println!(
            "  {:<62} {:>8.3} s {:>9.2} M records/s {:>8.1} MiB",
            arguments.join(" "),
            fastest.as_secs_f64(),
            records as f64 / 1e6 / fastest.as_secs_f64(),
            memory.map_or(f64::NAN, |bytes| bytes as f64 / f64::from(1 << 20)),
        );
    }
    Ok(())
}

struct Run {
    time: Duration,
    peak_memory_bytes: Option<u64>,
}

/// Runs a command with its output thrown away.
fn run(typhon: &Path, arguments: &[&str], file: &Path) -> Result<Run, Box<dyn Error>> {
    let start = Instant::now();
    let mut child = Command::new(typhon)
        .args(arguments)
        .arg(file)
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| format!("{}: {error}; cargo build --release -p typhon-cli", typhon.display()))?;
    let peak_memory_bytes = watch(&mut child)?;
    let time = start.elapsed();
    let status = child.wait()?;
    if !status.success() {
        return Err(format!("{}: {status}", arguments.join(" ")).into());
    }
    Ok(Run { time, peak_memory_bytes })
}

/// Waits for the end; the peak is what the system said shortly before it.
fn watch(child: &mut Child) -> Result<Option<u64>, Box<dyn Error>> {
    let process = child.id().to_string();
    let mut peak = None;
    while child.try_wait()?.is_none() {
        peak = peak_memory_bytes(&process).or(peak);
        thread::sleep(SAMPLE_INTERVAL);
    }
    Ok(peak)
}
