//! Real-time worlds: the tick loop, done once and right, and visible down to the microsecond.
//!
//! You say what each piece of work touches; the order follows, what does not conflict runs at the same time, and ticks
//! start on a grid that does not drift. This crate is the one to depend on: it passes on what programs need from
//! the crates below it and adds nothing of its own.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use std::time::Duration;
//! use typhon::prelude::*;
//!
//! struct Landed {
//!     speed: f64,
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let engine = Engine::builder().runtime(|runtime| runtime.base_tick_rate_hz = 50).build()?;
//!     let hardest = Arc::new(Mutex::new(0.0f64));
//!     let seen = Arc::clone(&hardest);
//!
//!     let runtime = Runtime::create(&engine, |schedule| {
//!         let sim = schedule.public_track().declare_dag("Sim");
//!         let landings = sim.event_queue::<Landed>("Landings", 64);
//!
//!         let (mut height, mut speed) = (10.0, 0.0);
//!         let landed = landings.clone();
//!         sim.callback_system("Fall", move |ctx| -> SystemResult {
//!             speed += 9.81 * ctx.delta_seconds();
//!             height -= speed * ctx.delta_seconds();
//!             if height <= 0.0 {
//!                 landed.push(ctx, Landed { speed })?;
//!                 (height, speed) = (10.0, 0.0);
//!             }
//!             Ok(())
//!         })
//!         .writes_resource("Ball")
//!         .writes_events(&landings);
//!
//!         // Runs after "Fall", and only in ticks in which something landed.
//!         let reported = landings.clone();
//!         sim.callback_system("Report", move |ctx| -> SystemResult {
//!             for landing in &reported.read(ctx)? {
//!                 let mut hardest = seen.lock().map_err(|_| "poisoned")?;
//!                 *hardest = hardest.max(landing.speed);
//!             }
//!             Ok(())
//!         })
//!         .reads_events(&landings);
//!     })?;
//!
//!     // Step by step here, as a test does it; `runtime.start()` keeps the time by itself.
//!     for tick in 1..=200 {
//!         runtime.step(Duration::from_millis(20 * tick))?;
//!     }
//!     runtime.shutdown()?;
//!     assert!(*hardest.lock().unwrap() > 13.0);
//!     Ok(())
//! }
//! ```
//!
//! To see where the time goes, run any such program with `TYPHON__PROFILER__TRACE=run.typhon-trace`: it writes that
//! file, which the command `typhon trace` reads. No code is needed for it. With `TYPHON__PROFILER__SCHEDULER__ENABLED=true`
//! it also tells of queues, workers and overload.
#![forbid(unsafe_code)]

pub use typhon_engine::{Coded, Engine, EngineBuilder, ErrorCode, InvalidOptions, options, resources};
/// Spans, instants and gauges of the program's own, and the life of its recording.
pub use typhon_profiler as profiler;
pub use typhon_runtime::{
    FailureKind, Priority, Runtime, SkipReason, SystemFailure, SystemIndex, TickPhase, WorkerId, event_queue,
    graph, overload, runtime, schedule, system, telemetry,
};

/// What most programs name.
pub mod prelude {
    pub use typhon_engine::options::{FailurePolicy, TimeStep, WorkerCount};
    pub use typhon_engine::{Coded, Engine, ErrorCode};
    pub use typhon_profiler::span;
    pub use typhon_runtime::event_queue::{FullPolicy, Queue, QueueOptions};
    pub use typhon_runtime::schedule::phase;
    pub use typhon_runtime::system::{ChunkCtx, Chunks, SystemCtx, SystemResult, TickInfo};
    pub use typhon_runtime::{Priority, Runtime};
}

/// Runs the examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/systems-and-schedules.md")]
struct Guide;

/// Runs the first programs of the repository's front page.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct FrontPage;
