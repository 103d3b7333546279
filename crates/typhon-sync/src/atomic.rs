//! Atomics of the protocols: the standard ones, or loom's when a protocol is being model-checked.
//!
//! Crates that wait with [`crate::wait`] take their atomics from here, so that their own models can use it too:
//! `RUSTFLAGS="--cfg loom"` switches both.
#![forbid(unsafe_code)]

#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(not(loom))]
pub use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
