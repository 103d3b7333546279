//! What a running system is told. Execution fills these; systems only read them.

use std::cell::RefCell;
use std::ops::Deref;

use crate::event_queue::{Outboxes, QueueScope, UsesQueues};
use crate::graph::SystemNode;
use crate::{SystemIndex, WorkerId};

/// One tick, as systems and gates see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TickInfo {
    /// Number of the tick, from 1, one more for every tick that ran: the number by which messages and tools name it.
    pub number: i64,
    /// Seconds that this tick moves the world on: one of the two below, as the runtime's time step says.
    pub delta_seconds: f64,
    /// Seconds since the previous tick started, 0 for the first tick.
    pub measured_delta_seconds: f64,
    /// One tick of the base rate, seconds.
    pub fixed_delta_seconds: f64,
}

/// One run of a system, or of one chunk of it.
#[derive(Debug, Clone, Copy)]
pub struct Invocation<'a> {
    /// The tick that it belongs to.
    pub tick: &'a TickInfo,
    /// Which system runs.
    pub system: SystemIndex,
    /// What the schedule says about it: name, declared queues and so on.
    pub node: &'a SystemNode,
    /// The worker that runs it.
    pub worker: WorkerId,
    /// Where its events go until it has succeeded: those of the worker.
    pub outboxes: &'a RefCell<Outboxes>,
    /// Number of the chunk, 0 unless there are several.
    pub chunk: u32,
    /// Chunks that the system has in this tick, at least 1.
    pub chunk_count: u32,
}

impl Invocation<'_> {
    /// Number of the tick; see [`TickInfo::number`].
    pub fn tick_number(&self) -> i64 {
        self.tick.number
    }

    /// Seconds that this tick moves the world on; see [`TickInfo::delta_seconds`].
    pub fn delta_seconds(&self) -> f64 {
        self.tick.delta_seconds
    }
}

/// What a callback system sees.
#[derive(Debug)]
pub struct SystemCtx<'a> {
    invocation: Invocation<'a>,
}

impl<'a> SystemCtx<'a> {
    /// The context of one run.
    pub fn new(invocation: Invocation<'a>) -> Self {
        Self { invocation }
    }
}

impl<'a> Deref for SystemCtx<'a> {
    type Target = Invocation<'a>;

    fn deref(&self) -> &Invocation<'a> {
        &self.invocation
    }
}

/// What one chunk of a chunked system sees.
#[derive(Debug)]
pub struct ChunkCtx<'a> {
    invocation: Invocation<'a>,
}

impl<'a> ChunkCtx<'a> {
    /// The context of one chunk.
    pub fn new(invocation: Invocation<'a>) -> Self {
        Self { invocation }
    }
}

impl<'a> Deref for ChunkCtx<'a> {
    type Target = Invocation<'a>;

    fn deref(&self) -> &Invocation<'a> {
        &self.invocation
    }
}

impl UsesQueues for Invocation<'_> {
    fn queue_scope(&self) -> QueueScope<'_> {
        QueueScope { outboxes: self.outboxes, system: self.system }
    }
}

impl UsesQueues for SystemCtx<'_> {
    fn queue_scope(&self) -> QueueScope<'_> {
        self.invocation.queue_scope()
    }
}

impl UsesQueues for ChunkCtx<'_> {
    fn queue_scope(&self) -> QueueScope<'_> {
        self.invocation.queue_scope()
    }
}
