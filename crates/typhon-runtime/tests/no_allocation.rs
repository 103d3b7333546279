//! A tick that is like the ones before it allocates nothing. One test, since the count is that of the process.
#![allow(unsafe_code, reason = "an allocator is unsafe to write")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use typhon_engine::Engine;
use typhon_engine::options::WorkerCount;
use typhon_profiler::session::{self, SessionOptions};
use typhon_runtime::Runtime;

/// Counts what is asked of the system's allocator.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Those of one thread.
    static OWN: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        OWN.set(OWN.get() + 1);
        // SAFETY: the caller keeps the promises of the trait.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the promises of the trait.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of a hundred steady ticks: of all threads, and of the driver alone.
fn allocations(workers: u8) -> (u64, u64) {
    let engine = Engine::builder().runtime(|runtime| runtime.worker_count = WorkerCount::Fixed(workers));
    let runtime = Runtime::create(&engine.build().unwrap(), |schedule| {
        let dag = schedule.public_track().declare_dag("Sim");
        let queue = dag.event_queue::<u64>("Events", 64);
        let (push, read) = (queue.clone(), queue.clone());
        dag.callback_system("Pushes", move |ctx| push.push(ctx, 1)).writes_events(&queue);
        dag.callback_system("Reads", move |ctx| read.read(ctx).map(drop)).reads_events(&queue);
        dag.callback_system("Gated", |_| {}).run_if(|tick| tick.number % 2 == 0);
        dag.callback_system("Seldom", |_| {}).tick_divisor(3);
        dag.chunked_system("Chunks", 8, |_| {}).after("Pushes");
        for at in 0..50 {
            _ = dag.callback_system(format!("S{at}"), |_| {}).after("Chunks");
        }
    });
    let runtime = runtime.unwrap();
    runtime.always_call_helpers(true);
    let mut now = Duration::ZERO;
    let mut run = |ticks| {
        for _ in 0..ticks {
            now += Duration::from_millis(16);
            runtime.step(now).unwrap();
        }
    };
    run(300);
    let (before, own_before) = (ALLOCATIONS.load(Ordering::Relaxed), OWN.get());
    run(100);
    (ALLOCATIONS.load(Ordering::Relaxed) - before, OWN.get() - own_before)
}

#[test]
fn steady_ticks_do_not_allocate() {
    for workers in [1, 2, 3] {
        assert_eq!(allocations(workers), (0, 0), "{workers} workers");
    }
    // Recording allocates on the profiler's threads only.
    session::start(SessionOptions {
        mask: [0, 1, 4, 5, 10, 243].into_iter().collect(),
        ..Default::default()
    })
    .unwrap();
    let (_, own) = allocations(2);
    session::stop().unwrap();
    assert_eq!(own, 0, "while recording");
}
