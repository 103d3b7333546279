//! Tick loop of declared systems: what a system reads and writes is declared, the order follows, and every microsecond
//! is visible in a trace.
//!
//! A program declares a schedule once. **Tracks** are ordered stages. Each holds **DAGs**, named graphs that know nothing
//! of each other. A DAG holds **systems**, and **phases** that its systems belong to. A system names the components,
//! resources and event queues that it touches; the runtime derives which systems have to wait for which, refuses
//! schedules whose outcome would depend on chance, and says for every edge why it is there.
//!
//! Layers, data flowing downwards:
//!
//! 1. [`schedule`]: the builder. It only records; nothing is checked before everything is known.
//! 2. [`graph`]: the immutable result, with the reasons of every edge. Inspect it, draw it, or put it into a trace.
//! 3. Execution: consumes a [`BuiltSchedule`](schedule::BuiltSchedule), the graph together with the bodies of its
//!    systems. [`system`] holds what bodies are and what they see when they run, [`event_queue`] the events that they
//!    pass to each other.
//!
//! What it is not: it stores nothing and knows no database. Entities, queries and transactions arrive with the engine.
//!
//! **Invariants**
//! - A schedule that was built has no cycle, and no two systems that may run at the same time have conflicting access.
//! - The same declarations in the same order give the same graph, down to the number of every system.
//! - All faults of a schedule are reported at once, each with the systems, the subject and what to write instead.
#![deny(unsafe_op_in_unsafe_fn, unsafe_code)]

#[cfg(not(loom))]
pub mod event_queue;
#[cfg(not(loom))]
pub mod graph;
#[cfg(not(loom))]
mod ids;
#[cfg(not(loom))]
pub mod metronome;
#[cfg(not(loom))]
pub mod overload;
#[cfg(not(loom))]
pub mod runtime;
#[cfg(not(loom))]
pub mod schedule;
mod scheduler;
#[cfg(not(loom))]
pub mod system;
pub mod telemetry;

#[cfg(not(loom))]
pub use ids::{DagIndex, PhaseIndex, QueueId, SystemIndex, TrackIndex, WorkerId};
#[cfg(not(loom))]
pub use runtime::Runtime;
#[cfg(not(loom))]
pub use schedule::Priority;
#[cfg(not(loom))]
pub use scheduler::failure::{FailureKind, SystemFailure};
#[cfg(loom)]
pub use scheduler::model;
/// What the registry of events says about skipped systems and the phases of a tick.
pub use typhon_trace::event::{SkipReason, TickPhase};
