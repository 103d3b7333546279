//! Highest rate to a file without a loss: one thread records spans at a given rate for some seconds; the report says
//! what was lost, to the record.
//!
//! `profiler-rate [SECONDS] [MILLIONS PER SECOND]...`

use std::time::{Duration, Instant};
use typhon_profiler::events::CheckpointWrite;
use typhon_profiler::export::FileExporter;
use typhon_profiler::session::{self, SessionOptions};
use typhon_profiler::{Ticks, span};

/// Spans between two looks at the clock.
const BURST: u64 = 1_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments.next().map_or(Ok(10.0), |text| text.parse())?;
    let mut rates = arguments.map(|text| text.parse()).collect::<Result<Vec<f64>, _>>()?;
    if rates.is_empty() {
        rates = vec![2.0, 5.0, 8.0, 12.0];
    }
    let path = std::env::temp_dir().join("profiler-rate.typhon-trace");
    for rate in rates {
        let mask = (0..=255).collect();
        let exporters: Vec<Box<dyn typhon_profiler::export::Exporter>> =
            vec![Box::new(FileExporter::new(&path))];
        session::start(SessionOptions { mask, exporters, ..Default::default() })?;
        let (spans, elapsed) = record(rate * 1e6, Duration::from_secs_f64(seconds));
        let report = session::stop().expect("the session runs");
        let exporter = &report.exporters[0];
        println!(
            "{:>5.2} M spans/s asked, {:>5.2} made, {:>10} lost in memory, {:>10} at the file, {:>5.1} bytes/span, clock residual {} ns",
            rate,
            spans as f64 / elapsed / 1e6,
            report.dropped_records,
            exporter.dropped_records,
            std::fs::metadata(&path)?.len() as f64 / spans as f64,
            report.clock_residual_ns,
        );
        assert_eq!(spans, report.records + report.dropped_records);
    }
    std::fs::remove_file(&path)?;
    Ok(())
}

/// Records at a rate for a time; returns the spans and the seconds they took.
fn record(rate: f64, time: Duration) -> (u64, f64) {
    let start = Instant::now();
    let mut spans = 0;
    loop {
        for _ in 0..BURST {
            drop(span!(CheckpointWrite::default()));
        }
        spans += BURST;
        let elapsed = start.elapsed();
        if elapsed >= time {
            return (spans, elapsed.as_secs_f64());
        }
        while (spans as f64) > rate * start.elapsed().as_secs_f64() {
            std::hint::black_box(Ticks::now());
        }
    }
}
