//! A pool of threads that works off a queue: each job is a span on the worker it ran on, and the length of the queue is
//! a gauge, read every ten milliseconds.
//!
//! ```sh
//! TYPHON__PROFILER__GAUGES__ENABLED=true TYPHON__PROFILER__GAUGES__INTERVALMS=10 \
//!     cargo run --release -p typhon-profiler --example thread_pool -- --trace pool.typhon-trace
//! cargo run -p typhon-cli -- trace stats pool.typhon-trace
//! ```

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use typhon_profiler::events::NamedSpan;
use typhon_profiler::gauges::{self, GaugeValue, Readings};
use typhon_profiler::thread::{ThreadKind, set_current_kind};
use typhon_profiler::{Init, span};

/// Ids from 0x8000 are the program's own.
const QUEUE_LENGTH: u16 = 0x8000;

static QUEUED: AtomicU32 = AtomicU32::new(0);

fn main() -> std::io::Result<()> {
    // The command line is the program's own, so that the profiler sees it only if it is told.
    Init::new().arguments(std::env::args_os().skip(1)).start();
    let _queue = gauges::register(|readings: &mut Readings| {
        readings.set(QUEUE_LENGTH, GaugeValue::U32Count(QUEUED.load(Ordering::Relaxed)));
    });
    let (sender, receiver) = mpsc::channel::<u32>();
    let receiver = Mutex::new(receiver);
    let sum = std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for worker in 0..4 {
            let thread = std::thread::Builder::new().name(format!("worker {worker}"));
            workers.push(thread.spawn_scoped(scope, || work(&receiver))?);
        }
        feed(sender);
        Ok::<_, std::io::Error>(
            workers.into_iter().filter_map(|worker| worker.join().ok()).fold(0, u64::wrapping_add),
        )
    })?;
    println!("sum of all jobs: {sum:016x}");
    Ok(())
}

/// Queues jobs of different lengths.
fn feed(sender: mpsc::Sender<u32>) {
    let _feeding = span!(NamedSpan { name: "feed" });
    for job in 0..2_000 {
        QUEUED.fetch_add(1, Ordering::Relaxed);
        if sender.send(job % 50 * 2_000).is_err() {
            return;
        }
    }
}

fn work(receiver: &Mutex<mpsc::Receiver<u32>>) -> u64 {
    set_current_kind(ThreadKind::Pool);
    let mut sum: u64 = 0;
    loop {
        let job = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(rounds) = job else { return sum };
        QUEUED.fetch_sub(1, Ordering::Relaxed);
        let _job = span!(NamedSpan { name: "job" });
        sum =
            (0..rounds).fold(sum, |sum, round| (sum ^ u64::from(round)).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    }
}
