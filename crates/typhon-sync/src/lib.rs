//! Waiting that ends: absolute deadlines, one way to wait for a word to change, and sleep that wakes on time.
//!
//! - [`deadline`]: a moment after which nobody waits any longer.
//! - [`clock`]: time and waiting behind a seam, so that tests run on a clock of their own.
//! - [`wait`]: compare-and-wait on a 32-bit word, and a [`wait::Parker`] on top of it.
//! - [`sleep`]: one routine that sleeps until shortly before a moment and spins the rest.
//! - [`atomic`]: the atomics all of this is made of: the standard ones, or loom's under `--cfg loom`.
//!
//! What it is not: an async runtime; nothing here knows futures.
//!
//! **Invariants**
//! - Nothing waits past its deadline, and a relative timeout becomes a deadline once.
//! - A wake that follows a change of the word is never lost.
#![deny(unsafe_op_in_unsafe_fn, unsafe_code)]

pub mod atomic;
pub mod clock;
pub mod deadline;
#[cfg(not(loom))]
pub mod sleep;
pub mod wait;

pub use deadline::Deadline;
