//! Waiting that ends: deadlines, locks with owners and names in the trace, and sleep that wakes on time.
//!
//! | Module | Holds |
//! |---|---|
//! | [`deadline`], [`context`], [`cancel`] | how long work may wait, handed down from where it began |
//! | [`lock`] | three locks with one core, whose waits and owners are in the trace |
//! | [`gate`] | what the threads of a database pass through: tick, latches, window, watermark |
//! | [`epoch`] | what a thread may still look at is not used again |
//! | [`wait`], [`waiter`] | compare-and-wait on a 32-bit word, a parker, and patience that grows |
//! | [`clock`], [`sleep`] | time behind a seam, and sleep that learns how early it must wake |
//! | [`timer`] | callbacks at regular times, and a watchdog for deadlines |
//! | [`panics`] | code of others that panics, down to the last destructor |
//! | [`atomic`] | the atomics all of this is made of: the standard ones, or loom's under `--cfg loom` |
//!
//! What it is not: an async runtime, and not a collection of everything that can be shared between threads. Memory budgets
//! and allocators, maps and bitmaps, and checksums of pages belong to the store; the optimistic latch comes with the index;
//! the metronome of the tick is the runtime's.
//!
//! How it is made: a protocol is a word or two and pure rules over them, apart from clock, thread-locals and trace, so that
//! `tests/loom_*.rs` can run it in every schedule; `src/fault.rs` lists the mistakes that these models must find. Unsafe code
//! is in `src/slots/local.rs` alone. Nothing in here reads a clock on a path that does not wait.
//!
//! **Invariants**
//! - Nothing waits past its deadline, and a relative timeout becomes a deadline once.
//! - A wake that follows a change of the word is never lost.
//! - A lock fails with an error and never panics; misuse is an error in every build.
//! - What is not recorded costs one load and one test; nothing reads the clock for a trace that is off.
#![deny(unsafe_op_in_unsafe_fn, unsafe_code)]

pub mod atomic;
pub mod cancel;
pub mod clock;
pub mod context;
pub mod deadline;
pub mod epoch;
mod fault;
pub mod gate;
pub mod lock;
#[cfg(loom)]
pub mod model {
    //! What the models in `tests/` name: the mistakes they must find.
    pub use crate::fault::{Fault, plant};
}
mod owner;
pub mod panics;
#[cfg(not(loom))]
pub mod sleep;
mod slots;
#[cfg(not(loom))]
pub mod timer;
mod trace;
pub mod wait;
pub mod waiter;

pub use cancel::CancelToken;
pub use context::WaitContext;
pub use deadline::Deadline;
