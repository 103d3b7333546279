//! What can go wrong with pins.
#![forbid(unsafe_code)]

use thiserror::Error;

/// Why an epoch was not pinned, refreshed or left in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EpochError {
    /// All slots have owners.
    #[error("{limit} threads have pinned epochs of this manager; no slot is left for another")]
    TooManyThreads {
        /// Threads that can have a slot.
        limit: usize,
    },
    /// The calling thread is ending and has given its slot back, or it has no thread id.
    #[error("the calling thread is ending, or has no thread id; it cannot pin an epoch")]
    ThreadEnds,
    /// The thread has several pins.
    #[error("the thread has pinned the epoch more than once; only a sole pin can be moved")]
    Nested,
    /// A guard that was made later is still there.
    #[error("an epoch guard ended before one that was made later")]
    WrongOrder,
}

impl From<crate::slots::NoSlot> for EpochError {
    fn from(no_slot: crate::slots::NoSlot) -> Self {
        match no_slot {
            crate::slots::NoSlot::TooManyThreads(limit) => Self::TooManyThreads { limit },
            crate::slots::NoSlot::ThreadEnds => Self::ThreadEnds,
        }
    }
}
