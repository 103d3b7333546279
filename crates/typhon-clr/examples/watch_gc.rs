//! Prints the garbage collections of a running .NET process until it exits or Enter is pressed.
//!
//! ```text
//! cargo run -p typhon-clr --example watch_gc -- PID
//! ```

#[cfg(unix)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use typhon_clr::gc::GcItem;
    use typhon_clr::session::{GcProgress, GcSession, GcSettings};

    static STOP: AtomicBool = AtomicBool::new(false);

    let process_id = std::env::args().nth(1).ok_or("usage: watch_gc PID")?.parse()?;
    let mut session = GcSession::attach(process_id, GcSettings::default())?;
    std::thread::spawn(|| {
        // End of input counts as a wish to stop too; only a real line or a closed terminal gets here.
        let _ = std::io::stdin().read_line(&mut String::new());
        STOP.store(true, Ordering::Relaxed);
    });
    let mut ticks_per_ms = 1e6;
    let mut print = |item: GcItem<'_>| match item {
        GcItem::Trace(trace) => ticks_per_ms = trace.ticks_per_second as f64 / 1e3,
        GcItem::Event(..) => {}
        GcItem::Record(record) => print_record(&record, ticks_per_ms),
    };
    let mut progress = GcProgress::Running;
    while progress == GcProgress::Running && !STOP.load(Ordering::Relaxed) {
        progress = session.poll(Duration::from_millis(100), &mut print)?;
    }
    let report = session.stop(&mut print)?;
    eprintln!("{report:?}");
    Ok(())
}

#[cfg(unix)]
fn print_record(record: &typhon_clr::gc::GcRecord, ticks_per_ms: f64) {
    use typhon_clr::gc::GcRecord;

    match record {
        GcRecord::Start(start) => println!(
            "#{} starts: generation {}, {}, because of {}",
            start.count, start.generation, start.kind, start.reason
        ),
        GcRecord::End(end) => {
            let pause_ms = end.pause_ticks as f64 / ticks_per_ms;
            print!("#{} ended: generation {}, paused {pause_ms:.2} ms", end.count, end.generation);
            if let Some(heap) = end.heap {
                let total_kib = heap.size_bytes.iter().sum::<u64>() / 1024;
                print!(", {total_kib} KiB left, {} KiB promoted", heap.promoted_bytes / 1024);
            }
            println!();
        }
        GcRecord::Suspension(suspension) => println!(
            "   threads stood still for {:.2} ms ({})",
            suspension.duration_ticks as f64 / ticks_per_ms,
            suspension.reason
        ),
        GcRecord::Loss(loss) => println!("   lost: {} x {:?}", loss.count, loss.kind),
    }
}

#[cfg(not(unix))]
fn main() {
    eprintln!("sessions need a Unix system");
}
