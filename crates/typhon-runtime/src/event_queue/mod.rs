//! Typed event queues between the systems of one DAG.
//!
//! Pushing takes no lock: every worker has an [`Outboxes`] of its own, and what one chunk pushed is handed over whole
//! when the chunk ends. When the last producer of a tick has completed, the queue merges those batches by (topological
//! index of the producer, chunk, order of pushing), so that consumers see the same events in the same order whatever
//! the number of workers was. There is no unsafe code here.
//!
//! User code meets [`Queue`]; the scheduler meets [`ErasedQueue`] and [`Outboxes`]:
//!
//! 1. at build: [`ErasedQueue::bind`] with the systems that produce and consume;
//! 2. per tick, before anything runs: [`ErasedQueue::begin_tick`];
//! 3. per chunk: [`Outboxes::begin_chunk`] and [`Outboxes::end_chunk`] around user code;
//! 4. per completed or skipped system: [`ErasedQueue::reader_done`] and [`ErasedQueue::producer_done`], before its
//!    successors are released;
//! 5. after the tick: [`ErasedQueue::counters`].
//!
//! **Invariants**
//! - What consumers see depends on the schedule's declarations and on what systems pushed, never on timing.
//! - A failed system has pushed nothing and has read nothing; what it drained is gone.
//! - depth at the start + produced − consumed = depth at the end; what found no room is counted as overflow.

mod counters;
mod error;
mod options;
mod outbox;
mod queue;
mod reading;
mod roles;
mod shared;
mod store;
#[cfg(test)]
mod tests;

pub use counters::QueueCounters;
pub use error::QueueError;
pub use options::{FullPolicy, QueueOptions};
pub use outbox::{AnyOutbox, Outboxes, QueueScope, UsesQueues};
pub use queue::{ErasedQueue, Queue};
pub use reading::{Drained, Events};
pub use roles::{BindError, Producer, Roles};
