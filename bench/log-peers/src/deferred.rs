//! Appends that nobody waits for: what a call costs.

use crate::Place;
use crate::arguments::Arguments;
use crate::contender::{Contender, Kind, Result};
use crate::order::shuffled;
use crate::statistics::{median, minimum};
use serde_json::{Map, Value, json};
use std::sync::Barrier;
use std::time::Instant;

/// Appends of one burst of all threads together; afterwards everything is made durable, which is not timed.
const BURST: usize = 4000;

/// Nanoseconds per append of a burst; `None` if the log has no such append.
pub fn burst_ns(log: &dyn Contender, threads: usize, record: &[u8], burst: usize) -> Result<Option<f64>> {
    let barrier = Barrier::new(threads);
    let work = || -> Result<(bool, f64)> {
        barrier.wait();
        let start = Instant::now();
        for _ in 0..burst / threads {
            if !log.append_deferred(record)? {
                return Ok((false, 0.0));
            }
        }
        Ok((true, start.elapsed().as_nanos() as f64))
    };
    let results: Vec<Result<(bool, f64)>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });
    let mut sum = 0.0;
    for result in results {
        let (is_offered, time) = result?;
        if !is_offered {
            return Ok(None);
        }
        sum += time;
    }
    log.flush()?;
    // What a thread sees of one append.
    Ok(Some(sum / burst as f64))
}

pub fn part(arguments: &Arguments, kinds: &[Kind], place: &Place) -> Result<Value> {
    let mut report = Vec::new();
    for (threads, record_bytes) in [(1, 64), (1, 1024), (2, 64), (2, 1024)] {
        let logs = place.open_all(kinds)?;
        let record = vec![0xA5; record_bytes];
        let mut times: Vec<Vec<f64>> = logs.iter().map(|_| Vec::new()).collect();
        for round in 0..=arguments.rounds {
            for index in shuffled(logs.len(), round) {
                let time = burst_ns(&*logs[index].1, threads, &record, BURST)?;
                times[index].extend(time.filter(|_| round > 0));
            }
        }
        if !arguments.json {
            println!("\nDeferred appends, {threads} thread(s), {record_bytes} B");
            println!(
                "{:<12} {:>12} {:>12} {:>12} {:>16}",
                "", "median ns", "least ns", "ns/byte", "of floor"
            );
        }
        let mut contenders = Map::new();
        for ((kind, _), own) in logs.iter().zip(&times).filter(|(_, own)| !own.is_empty()) {
            let ratio = (median(own) / median(&times[0]), minimum(own) / minimum(&times[0]));
            if !arguments.json {
                println!(
                    "{:<12} {:>12.0} {:>12.0} {:>12.3} {:>9.3}/{:>6.3}",
                    kind.name,
                    median(own),
                    minimum(own),
                    median(own) / record_bytes as f64,
                    ratio.0,
                    ratio.1,
                );
            }
            contenders
                .insert(kind.name.into(), json!({ "median_ns": median(own), "least_ns": minimum(own) }));
        }
        report.push(json!({ "threads": threads, "record_bytes": record_bytes, "contenders": contenders }));
    }
    Ok(Value::Array(report))
}
