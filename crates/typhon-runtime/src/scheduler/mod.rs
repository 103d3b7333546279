//! Executing a graph on workers: the protocol (who may run what, and when), and nothing about what runs.
//!
//! A system's predecessors count down ([`countdown`]); whoever releases it decides what becomes of it and publishes its
//! chunks ([`claim`], [`ready`]); workers claim chunks ([`worker`]), and the one that finishes the last tells the
//! successors. Nobody dispatches. Helpers sleep in the kernel between the ticks that need them ([`wake`]).
//!
//! Everything here is checked by loom, with mistakes planted to see that they are found (`tests/loom_dispatch.rs`).

#[cfg(not(loom))]
pub(crate) mod affinity;
pub(crate) mod board;
pub(crate) mod claim;
#[cfg(not(loom))]
mod claimed;
#[cfg(not(loom))]
pub(crate) mod clocks;
#[cfg(not(loom))]
pub(crate) mod control;
mod countdown;
#[cfg(not(loom))]
pub(crate) mod estimate;
#[cfg(not(loom))]
pub(crate) mod execution;
#[cfg(not(loom))]
pub(crate) mod failure;
#[cfg(not(loom))]
mod gates;
mod idle;
#[cfg(loom)]
pub mod model;
mod ready;
mod sync;
pub(crate) mod topology;
#[cfg(not(loom))]
mod trace;
pub(crate) mod wake;
pub(crate) mod worker;
