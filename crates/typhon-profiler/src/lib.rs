//! In-process profiler: records spans, instants and gauges of a running program at a cost low enough to leave on.
//!
//! Three layers, each usable without the ones after it:
//!
//! 1. **Gates** ([`config`]): which kinds are on. Configuration files and the environment resolve into one 256-bit
//!    mask; the mask is all that a call site ever consults.
//! 2. **Capture**: per-thread buffers, clock and span guards. A call site writes one record into memory that
//!    belongs to its thread and publishes it with one store.
//! 3. **Draining**: one consumer thread sorts what the threads published into batches and hands them to exporters.
//!
//! A program needs none of them by name: its first record starts what is configured, and the end of the process
//! finishes the file. [`init`], [`Init`] and [`shutdown`] do so at moments of the program's choosing.
//!
//! What it is not: it does not know the engine, and it never makes a program wait or fail. What cannot be recorded
//! is counted, and the count is in the trace.
//!
//! **Invariants**
//! - emitted = recorded + reported lost, exactly, for every exporter.
//! - Nothing between a call site and its published record allocates, locks, panics or enters the kernel, once the
//!   thread has its slot.
//! - A kind that is off costs one load and one test.
#![deny(unsafe_op_in_unsafe_fn, unsafe_code)]
// They panic where nothing can be printed, as on a full disk; see `say`.
#![deny(clippy::print_stderr, clippy::print_stdout)]

#[cfg(all(not(loom), any(feature = "log", feature = "tracing")))]
pub mod bridge;
#[cfg(all(not(loom), unix, feature = "c-api"))]
pub mod c_api;
mod capture;
mod clock;
pub mod config;
pub mod destination;
mod drain;
#[cfg(not(loom))]
mod event;
#[cfg(not(loom))]
pub mod export;
#[cfg(not(loom))]
mod fork;
pub mod gates;
#[cfg(not(loom))]
pub mod gauges;
#[cfg(all(not(loom), unix, feature = "gc"))]
pub mod gc;
#[cfg(not(loom))]
mod lifecycle;
#[cfg(not(loom))]
mod liveness;
#[cfg(not(loom))]
mod local;
mod mask;
#[cfg(not(loom))]
pub mod memory;
#[cfg(loom)]
pub mod model;
#[cfg(not(loom))]
mod names;
#[cfg(not(loom))]
mod own_thread;
#[cfg(not(loom))]
mod program;
#[cfg(not(loom))]
mod say;
#[cfg(not(loom))]
pub mod session;
#[cfg(not(loom))]
mod site;
mod stage;
mod switch;
mod sync;
#[cfg(not(loom))]
pub mod thread;
#[cfg(not(loom))]
mod tick;

#[cfg(not(loom))]
pub use clock::{TickScale, Ticks, trace_clock_ns};
#[cfg(not(loom))]
pub use event::{
    Span, TraceContext, emit, emit_at, emit_completion, emit_root_span, emit_span, emit_system_span, is_on,
    is_recorded, mark, set_trace_context,
};
#[cfg(not(loom))]
pub use lifecycle::{Init, Status, gates, init, shutdown};
#[cfg(not(loom))]
pub use names::{NameError, NameId, name};
#[cfg(not(loom))]
pub use program::{Program, describe};
#[cfg(not(loom))]
pub use site::{Site, SiteInfo};
#[cfg(not(loom))]
pub use tick::{Tick, tick};
/// The events that can be recorded: one type per kind of the registry.
pub use typhon_trace::event as events;

/// The programs in the README are compiled and run with the tests.
#[cfg(all(doctest, not(loom)))]
#[doc = include_str!("../README.md")]
struct Readme;

/// For the macros of this crate.
#[cfg(not(loom))]
#[doc(hidden)]
pub mod __private {
    pub use crate::site::SITES;
    pub use linkme;
}
