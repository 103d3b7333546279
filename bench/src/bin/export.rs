//! The same recordings in the formats of other tools: time to write, size, and the least time to load them.
//!
//! `export [TYPHON]`: TYPHON is the binary to measure, by default the release build of this repository. Loading is
//! measured with Python: Perfetto's published protos and the JSON parser of the standard library, which is less than any
//! viewer does; for our own format with `typhon trace stats`, which reads every record and builds a table besides.

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bench::process::{Run, best_of_three, run};
use bench::recording::{Length, record};

const LENGTHS: [u64; 3] = [100_000, 1_000_000, 10_000_000];
/// Longer recordings are not loaded in the other formats, which takes minutes and gigabytes.
const LOADED_RECORDS_MAX: u64 = 1_000_000;

const LOAD_PERFETTO: &str = "import sys\n\
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2\n\
    perfetto_trace_pb2.Trace().ParseFromString(open(sys.argv[1], 'rb').read())";
const LOAD_CHROME: &str = "import json, sys\njson.load(open(sys.argv[1]))";

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let typhon = std::env::args().nth(1).map_or_else(|| root.join("target/release/typhon"), PathBuf::from);
    let python = root.join("target/python/bin/python3");
    let folder = std::env::temp_dir().join(format!("typhon-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let measured = LENGTHS.iter().try_for_each(|records| measure(&typhon, &python, &folder, *records));
    fs::remove_dir_all(&folder)?;
    measured
}

fn measure(typhon: &Path, python: &Path, folder: &Path, records: u64) -> Result<(), Box<dyn Error>> {
    let path = folder.join("recording.typhon-trace");
    let (_, recorded) = record(File::create(&path)?, Length::Records(records), 1)?;
    let records = recorded.records;
    let bytes_each = |bytes: u64| bytes as f64 / records as f64;
    println!("{:.1} M records", records as f64 / 1e6);
    let read = best_of_three(typhon, &["trace", "stats"], &path)?;
    println!(
        "  {:<22} {:>7.1} bytes/record  load {}",
        "typhon",
        bytes_each(recorded.file_bytes),
        told(&read)
    );
    for (target, load, options) in [
        ("perfetto", Some(LOAD_PERFETTO), &[][..]),
        ("perfetto", None, &["--compress"]),
        ("chrome", Some(LOAD_CHROME), &[]),
        ("chrome", None, &["--compress"]),
    ] {
        let output = folder.join("output");
        let output_text = output.to_str().ok_or("a folder whose name is no UTF-8")?;
        let fixed = ["trace", "export", "--force", "--to", target, "-o", output_text];
        let written = run(typhon, &[&fixed, options].concat(), &path)?;
        let load = match load {
            Some(script) if records <= LOADED_RECORDS_MAX * 11 / 10 && python.exists() => {
                told(&best_of_three(python, &["-c", script], &output)?)
            }
            _ => String::from("-"),
        };
        println!(
            "  {:<22} {:>7.1} bytes/record  write {}  {:>5.2} M/s per core  load {load}",
            [target, &options.join(" ")].join(" "),
            bytes_each(fs::metadata(&output)?.len()),
            told(&written),
            written.processor_time.map_or(f64::NAN, |time| records as f64 / 1e6 / time.as_secs_f64()),
        );
    }
    Ok(())
}

fn told(run: &Run) -> String {
    let seconds = |time: Option<Duration>| time.map_or(f64::NAN, |time| time.as_secs_f64());
    let mebibytes = run.peak_memory_bytes.map_or(f64::NAN, |bytes| bytes as f64 / f64::from(1 << 20));
    format!(
        "{:>7.3} s ({:.2} s processor, {mebibytes:.0} MiB)",
        run.time.as_secs_f64(),
        seconds(run.processor_time)
    )
}
