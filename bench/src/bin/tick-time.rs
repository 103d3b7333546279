//! How ticks keep time, how fast a sleeping worker is at work, and what a second worker is worth.
//!
//! `cargo run --release --bin tick-time [seconds per jitter run, default 15]`

use bench::processor_time;
use bench::ticking::Ticking;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use typhon_engine::Engine;
use typhon_engine::options::WorkerCount;
use typhon_profiler::{TickScale, Ticks};
use typhon_runtime::Runtime;

fn main() {
    let seconds = std::env::args().nth(1).map_or(15, |text| text.parse().expect("a number of seconds"));
    scaling();
    wake_to_run();
    jitter("idle", seconds, false);
    jitter("other core loaded", seconds, true);
}

/// Works for so many microseconds of processor time on an undisturbed core.
fn work(us: u64) {
    static ROUNDS_PER_US: OnceLock<u64> = OnceLock::new();
    let spin = |rounds: u64| {
        for at in 0..rounds {
            black_box(at.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        }
    };
    let per_us = *ROUNDS_PER_US.get_or_init(|| {
        let fastest = (0..20).map(|_| time(|| spin(1_000_000))).min().unwrap_or_default();
        (1_000_000.0 / us_of(fastest)) as u64
    });
    spin(us * per_us);
}

fn scaling() {
    println!("one worker and two, median of 400 ticks in turn; helpers are called when that pays");
    for (systems, us) in [(2, 1), (8, 2), (8, 10), (8, 50), (8, 200), (64, 5), (64, 50)] {
        compare(&format!("{systems} systems of {us} µs"), |workers| {
            Ticking::new(workers, false, |schedule| {
                let dag = schedule.public_track().declare_dag("Bench");
                for at in 0..systems {
                    let _ = dag.callback_system(format!("S{at}"), move |_| work(us));
                }
            })
        });
    }
    for chunks in [2, 16] {
        compare(&format!("1 system, {chunks} chunks of {} µs", 800 / chunks), |workers| {
            Ticking::new(workers, false, |schedule| {
                let dag = schedule.public_track().declare_dag("Bench");
                let _ = dag.chunked_system("S", chunks, move |_| work(u64::from(800 / chunks)));
            })
        });
    }
    compare("a chain of 8 systems of 50 µs", |workers| {
        Ticking::new(workers, false, |schedule| {
            let dag = schedule.public_track().declare_dag("Bench");
            for at in 0_u32..8 {
                let before = at.checked_sub(1).map(|before| format!("S{before}"));
                let _ = dag.callback_system(format!("S{at}"), |_| work(50)).after_all(before);
            }
        })
    });
    println!();
}

fn compare(label: &str, ticking: impl Fn(u8) -> Ticking) {
    let (one, two) = (ticking(1), ticking(2));
    let (mut of_one, mut of_two) = (Vec::new(), Vec::new());
    for _ in 0..400 {
        of_one.push(time(|| one.step()));
        of_two.push(time(|| two.step()));
    }
    let (of_one, of_two) = (quantile(&mut of_one, 0.5), quantile(&mut of_two, 0.5));
    println!(
        "  {label:<32} {:>8.1} µs  {:>8.1} µs  speed-up {:>5.2}",
        us_of(of_one),
        us_of(of_two),
        ratio(of_one, of_two)
    );
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// From the start of a tick to the first chunk that the helper runs, which has slept before.
fn wake_to_run() {
    let helper_ran = Arc::new(AtomicU64::new(0));
    let ran = Arc::clone(&helper_ran);
    let ticking = Ticking::new(2, true, move |schedule| {
        let dag = schedule.public_track().declare_dag("Bench");
        let _ = dag.chunked_system("S", 200, move |ctx| {
            if ctx.worker.get() == 1 {
                _ = ran.compare_exchange(0, Ticks::now().raw(), Ordering::Relaxed, Ordering::Relaxed);
            }
            work(2);
        });
    });
    let scale = TickScale::current();
    let mut delays = Vec::new();
    for _ in 0..1_000 {
        std::thread::sleep(Duration::from_millis(2));
        helper_ran.store(0, Ordering::Relaxed);
        let start = Ticks::now();
        ticking.step();
        let ran = helper_ran.load(Ordering::Relaxed);
        if ran != 0 {
            delays.push(Duration::from_nanos(scale.ns_between(start, Ticks::from_raw(ran))));
        }
    }
    println!("from the start of a tick to the first chunk on the helper, which has slept for 2 ms");
    let missed = 1_000 - delays.len();
    let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|part| us_of(quantile(&mut delays, part)));
    println!(
        "  p50 {p50:.1} µs  p99 {p99:.1} µs  p99.9 {p999:.1} µs  ({missed} of 1000 ticks were over before)"
    );
    println!("  lost wakes: {}\n", ticking.runtime.lost_wakes());
}

/// By how much ticks at 60 Hz start late, with two workers and a hundred empty systems.
fn jitter(label: &str, seconds: u64, is_loaded: bool) {
    let stop = Arc::new(AtomicBool::new(false));
    let load = is_loaded.then(|| {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                work(10);
            }
        })
    });
    let engine = Engine::builder().runtime(|runtime| {
        runtime.worker_count = WorkerCount::Fixed(2);
        runtime.telemetry_ring_capacity = 1 << 14;
    });
    let engine = engine.build().expect("the options are in order");
    let runtime = Runtime::create(&engine, |schedule| {
        let dag = schedule.public_track().declare_dag("Bench");
        for at in 0..100 {
            let _ = dag.callback_system(format!("S{at}"), |_| {});
        }
    });
    let runtime = runtime.expect("the schedule is in order");
    runtime.start().expect("it starts");
    std::thread::sleep(Duration::from_secs(1));
    let (begin, cpu_before) = (Instant::now(), processor_time());
    std::thread::sleep(Duration::from_secs(seconds));
    let (elapsed, cpu) = (begin.elapsed(), processor_time() - cpu_before);
    runtime.shutdown().expect("it ends");
    stop.store(true, Ordering::Relaxed);
    let was_loaded = load.map(|load| load.join()).is_some();
    let ticks = runtime.telemetry().window().expect("there were ticks");
    let late = ticks.filter_map(|tick| runtime.telemetry().tick(tick).ok());
    let mut late: Vec<_> = late.map(|tick| Duration::from_secs_f64(f64::from(tick.late_ms) / 1e3)).collect();
    let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|part| us_of(quantile(&mut late, part)));
    println!("60 Hz for {seconds} s, 100 empty systems, 2 workers, {label}");
    println!("  start of {} ticks late by: p50 {p50:.1} µs  p99 {p99:.1} µs  p99.9 {p999:.1} µs", late.len());
    let metrics = runtime.timer_metrics();
    println!("  missed ticks {}, lost wakes {}", metrics.missed_ticks, runtime.lost_wakes());
    if !was_loaded {
        let percent = 100.0 * cpu.as_secs_f64() / elapsed.as_secs_f64();
        println!("  processor time of the whole process: {percent:.2} % of one core");
    }
    println!();
}

fn quantile(times: &mut [Duration], part: f64) -> Duration {
    times.sort_unstable();
    times.get(((times.len() as f64 - 1.0) * part).round() as usize).copied().unwrap_or_default()
}

fn us_of(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn ratio(one: Duration, two: Duration) -> f64 {
    one.as_secs_f64() / two.as_secs_f64()
}
