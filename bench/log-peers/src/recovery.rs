//! Opening a log that was closed, and reading every record.

use crate::Place;
use crate::arguments::Arguments;
use crate::contender::{Kind, Recovery, Result};
use crate::order::shuffled;
use crate::process::drop_caches;
use crate::statistics::{median, minimum};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;

const RECORD_BYTES: usize = 256;
/// Records of one transaction while a log is filled.
const GROUP: usize = 4096;
const ROUNDS_MAX: usize = 5;

/// A closed log with so many bytes of records.
pub fn fill(kind: &Kind, directory: &Path, bytes: u64) -> Result<()> {
    let log = (kind.create)(directory)?;
    let record = vec![0xA5; RECORD_BYTES];
    for _ in 0..bytes.div_ceil((RECORD_BYTES * GROUP) as u64) {
        log.append_durable(&record, GROUP)?;
    }
    Ok(())
}

/// Seconds of one recovery.
pub fn time(kind: &Kind, directory: &Path, is_cold: bool) -> Result<(f64, Recovery)> {
    if is_cold {
        drop_caches(directory)?;
    }
    let start = Instant::now();
    let found = (kind.recover)(directory)?;
    Ok((start.elapsed().as_secs_f64(), found))
}

pub fn part(arguments: &Arguments, kinds: &[Kind], place: &Place) -> Result<Value> {
    let expected = arguments.recovery_bytes.div_ceil((RECORD_BYTES * GROUP) as u64) * GROUP as u64;
    let directories: Vec<PathBuf> = kinds.iter().map(|kind| place.empty(kind.name)).collect::<Result<_>>()?;
    let mut times: Vec<[Vec<f64>; 2]> = kinds.iter().map(|_| Default::default()).collect();
    let mut bytes: Vec<u64> = vec![0; kinds.len()];
    for (kind, directory) in kinds.iter().zip(&directories) {
        fill(kind, directory, arguments.recovery_bytes)?;
    }
    for round in 0..arguments.rounds.min(ROUNDS_MAX) {
        for index in shuffled(kinds.len(), round) {
            for is_cold in [true, false] {
                let (seconds, found) = time(&kinds[index], &directories[index], is_cold)?;
                if kinds[index].name != "floor" && found.records != expected {
                    let name = kinds[index].name;
                    return Err(format!("{name} recovered {} of {expected} records", found.records).into());
                }
                times[index][usize::from(is_cold)].push(seconds);
                bytes[index] = found.bytes;
            }
        }
    }
    if !arguments.json {
        println!(
            "\nRecovery of {} MiB of records of {RECORD_BYTES} B, GB/s of records",
            arguments.recovery_bytes >> 20
        );
        println!("{:<12} {:>10} {:>10} {:>10} {:>10}", "", "cold", "best", "cached", "best");
    }
    let mut report = Map::new();
    for ((kind, [cached, cold]), bytes) in kinds.iter().zip(&times).zip(&bytes) {
        let rate = |seconds: f64| *bytes as f64 / seconds / 1e9;
        let row = [rate(median(cold)), rate(minimum(cold)), rate(median(cached)), rate(minimum(cached))];
        if !arguments.json {
            let cells = row.map(|value| format!("{value:>10.3}")).join(" ");
            println!("{:<12} {cells}", kind.name);
        }
        report.insert(
            kind.name.into(),
            json!({ "cold_gb_s": row[0], "cold_best_gb_s": row[1], "cached_gb_s": row[2], "cached_best_gb_s": row[3] }),
        );
    }
    Ok(json!({ "record_bytes": RECORD_BYTES, "bytes": arguments.recovery_bytes, "contenders": report }))
}
