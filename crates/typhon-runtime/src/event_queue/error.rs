//! What can go wrong when a system uses a queue.

use crate::SystemIndex;
use typhon_engine::{Coded, ErrorCode};

/// Why a queue could not be used; the message says what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// One chunk has pushed as many events as the queue holds.
    #[error(
        "event queue '{queue}' is full: one chunk pushed its {capacity} events; raise the queue's capacity, or \
         declare it DropNewest or Grow"
    )]
    Full {
        /// The queue's name.
        queue: String,
        /// Events that the queue holds.
        capacity: u32,
    },
    /// The system pushes without saying so in its declaration.
    #[error("system {system} pushes into event queue '{queue}' without declaring writes_events")]
    NotAProducer {
        /// The queue's name.
        queue: String,
        /// The running system.
        system: SystemIndex,
    },
    /// The system reads without saying so in its declaration.
    #[error("system {system} reads event queue '{queue}' without declaring reads_events")]
    NotAReader {
        /// The queue's name.
        queue: String,
        /// The running system.
        system: SystemIndex,
    },
    /// The system drains without saying so in its declaration.
    #[error("system {system} drains event queue '{queue}' without declaring drains_events")]
    NotADrainer {
        /// The queue's name.
        queue: String,
        /// The running system.
        system: SystemIndex,
    },
    /// The queue was declared in the schedule of another runtime.
    #[error("event queue '{queue}' belongs to another runtime")]
    OfAnotherRuntime {
        /// The queue's name.
        queue: String,
    },
    /// The system drains a queue while it still holds events that it read from it.
    #[error("event queue '{queue}' is drained while events read from it are in use; drop them first")]
    InUse {
        /// The queue's name.
        queue: String,
    },
}

impl Coded for QueueError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Full { .. } => ErrorCode::EVENT_QUEUE_FULL,
            _ => ErrorCode::INVALID_SYSTEM_ACCESS,
        }
    }
}
