//! What a tick costs that is recorded into a file: this runtime with its default kinds, bevy_ecs with its feature `trace`
//! and the recorder that bevy itself offers, tracing-chrome. Empty systems, the same graphs, one run.
//!
//! Both give a span for each system. The floor is what `scheduler` measures beside, two reads of the clock and a call:
//! nobody who times every system can be below it.

use bench::graphs::Shape;
use bench::recording::default_mask;
use bench::ticking::{Ticking, per_system};
use std::error::Error;
use std::path::Path;
use tracing_subscriber::prelude::*;
use typhon_profiler::export::{Exporter, FileExporter};
use typhon_profiler::session::{self, SessionOptions};

/// Tracing-chrome writes some 200 bytes of text for each span, and has no limit to what it holds back.
const ROUNDS: usize = 12;

const CASES: [(Shape, usize); 3] = [(Shape::Independent, 100), (Shape::Chain, 1000), (Shape::Fan, 1000)];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir();
    let (ours, theirs) = (folder.join("scheduler-traced.typhon-trace"), folder.join("scheduler-traced.json"));
    println!(
        "recorded into a file, and in brackets not recorded; fastest round / median ratio to the floor\n"
    );
    for (shape, systems) in CASES {
        println!("{systems} systems, {shape:?}");
        for workers in [1, 2] {
            typhon(&ours, shape, systems, workers)?;
        }
    }
    for (shape, systems) in CASES {
        println!("{systems} systems, {shape:?}");
        measure_bevy("(not recorded)", shape, systems);
    }
    // Once there is a subscriber for all threads, it stays.
    let (chrome, guard) = tracing_chrome::ChromeLayerBuilder::new().file(&theirs).build();
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(chrome))?;
    for (shape, systems) in CASES {
        println!("{systems} systems, {shape:?}");
        measure_bevy("recorded", shape, systems);
        guard.flush();
    }
    drop(guard);
    println!("tracing-chrome wrote {} MiB", std::fs::metadata(&theirs)?.len() >> 20);
    for path in [ours, theirs] {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

fn measure_bevy(what: &str, shape: Shape, systems: usize) {
    for (label, mut run) in bench::bevy::schedules(shape, systems) {
        per_system(&format!("{label}, {what}"), systems, ROUNDS, &mut run);
    }
}

fn typhon(path: &Path, shape: Shape, systems: usize, workers: u8) -> Result<(), Box<dyn Error>> {
    let ticking = Ticking::empty(shape, systems, workers, false);
    per_system(&format!("{workers} workers, (not recorded)"), systems, ROUNDS, || ticking.step());
    let exporters: Vec<Box<dyn Exporter>> = vec![Box::new(FileExporter::new(path))];
    session::start(SessionOptions { mask: default_mask(), exporters, ..SessionOptions::default() })?;
    per_system(&format!("{workers} workers, recorded"), systems, ROUNDS, || ticking.step());
    let report = session::stop().ok_or("the session ended")?;
    println!("  {} records, {} lost", report.records, report.dropped_records);
    Ok(())
}
