//! The commands as a user runs them: time, rate and peak memory over recordings of growing length.
//!
//! `whole-process [TYPHON] [--mebibytes N]`: TYPHON is the binary to measure, by default the release build of this
//! repository. With a size, one recording of that size is measured instead of three of growing length.

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bench::process::best_of_three;
use bench::recording::{Length, Recorded, record};

const COMMANDS: &[&[&str]] = &[
    &["trace", "info"],
    &["trace", "verify"],
    &["trace", "dump", "--format", "text"],
    &["trace", "dump", "--format", "jsonl"],
    &["trace", "dump", "--where", "kind=TransactionCommit dur>1s"],
    &["trace", "stats"],
    &["trace", "stats", "--by", "name"],
    &["trace", "stats", "--by", "thread", "--range", "0s..1s"],
];

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
        let run = best_of_three(typhon, arguments, &path)?;
        let millions = records as f64 / 1e6;
        let per_second = |time: Duration| millions / time.as_secs_f64();
        println!(
            "  {:<62} {:>8.3} s {:>8.2} M records/s {:>8.2} M/s per core {:>8.1} MiB",
            arguments.join(" "),
            run.time.as_secs_f64(),
            per_second(run.time),
            run.processor_time.map_or(f64::NAN, per_second),
            run.peak_memory_bytes.map_or(f64::NAN, |bytes| bytes as f64 / f64::from(1 << 20)),
        );
    }
    Ok(())
}
