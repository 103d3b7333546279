//! How costs grow: records of 1, 10 and 100 times the size, logs of 1, 10 and 100 times the length, and memory.

use crate::arguments::Arguments;
use crate::contender::{Kind, Result};
use crate::durable::{Case, Figures};
use crate::order::shuffled;
use crate::process::anonymous_bytes;
use crate::statistics::{median, minimum};
use crate::{Place, deferred, recovery};
use serde_json::{Value, json};

const RECORD_BYTES: [usize; 3] = [64, 640, 6400];

pub fn part(arguments: &Arguments, kinds: &[Kind], place: &Place) -> Result<Value> {
    Ok(json!({ "records": records(arguments, kinds, place)?, "logs": logs(arguments, kinds, place)? }))
}

fn records(arguments: &Arguments, kinds: &[Kind], place: &Place) -> Result<Value> {
    if !arguments.json {
        println!("\nGrowth by size of a record, one thread");
        println!(
            "{:<12} {:>8} {:>12} {:>12} {:>14} {:>14}",
            "", "bytes", "least µs", "p50 µs", "deferred ns", "anonymous MiB"
        );
    }
    let mut report = Vec::new();
    for record_bytes in RECORD_BYTES {
        let logs = place.open_all(kinds)?;
        let case = Case { threads: 1, group: 1, record_bytes };
        let record = vec![0xA5; record_bytes];
        let mut figures: Vec<(Figures, Vec<f64>)> = kinds.iter().map(|_| Default::default()).collect();
        for round in 0..arguments.rounds {
            for index in shuffled(logs.len(), round) {
                let (durable, bursts) = &mut figures[index];
                durable.add_round(&*logs[index].1, case, arguments.slice)?;
                bursts.extend(deferred::burst_ns(&*logs[index].1, 1, &record, 500)?);
            }
        }
        let memory = anonymous_bytes()?;
        for ((kind, _), (durable, bursts)) in logs.iter().zip(&figures) {
            let (least, p50) = (durable.latency_ns(0), durable.latency_ns(500));
            if !arguments.json {
                println!(
                    "{:<12} {record_bytes:>8} {:>12.1} {:>12.1} {:>14.0} {:>14.1}",
                    kind.name,
                    least as f64 / 1e3,
                    p50 as f64 / 1e3,
                    median(bursts),
                    memory as f64 / f64::from(1 << 20),
                );
            }
            report.push(json!({
                "contender": kind.name,
                "record_bytes": record_bytes,
                "least_ns": least,
                "p50_ns": p50,
                "deferred_ns": if bursts.is_empty() { Value::Null } else { json!(median(bursts)) },
                "anonymous_bytes_of_all": memory,
            }));
        }
    }
    Ok(Value::Array(report))
}

fn logs(arguments: &Arguments, kinds: &[Kind], place: &Place) -> Result<Value> {
    if !arguments.json {
        println!("\nGrowth by length of the log: recovery without caches");
        println!("{:<12} {:>10} {:>12} {:>10} {:>16}", "", "MiB", "least ms", "GB/s", "anonymous MiB");
    }
    let mut report = Vec::new();
    for part in [100, 10, 1] {
        let bytes = arguments.recovery_bytes / part;
        for kind in kinds {
            let directory = place.empty(kind.name)?;
            recovery::fill(kind, &directory, bytes)?;
            let mut seconds = Vec::new();
            for _ in 0..3 {
                seconds.push(recovery::time(kind, &directory, true)?.0);
            }
            let memory = anonymous_bytes()?;
            let (least, rate) = (minimum(&seconds), bytes as f64 / minimum(&seconds) / 1e9);
            if !arguments.json {
                let mib = f64::from(1 << 20);
                println!(
                    "{:<12} {:>10.1} {:>12.1} {rate:>10.3} {:>16.1}",
                    kind.name,
                    bytes as f64 / mib,
                    least * 1e3,
                    memory as f64 / mib,
                );
            }
            report.push(json!({
                "contender": kind.name,
                "bytes": bytes,
                "least_s": least,
                "gb_s": rate,
                "anonymous_bytes": memory,
            }));
        }
    }
    Ok(Value::Array(report))
}
