//! Locks whose waits end, with their owners and their contention in the trace.
//!
//! | Lock | Bytes | For |
//! |---|---|---|
//! | [`AccessControl`] | 8 | readers and writers, fair to writers; waits are long or many |
//! | [`AccessControlSmall`] | 4 | readers and writers, first come first served by luck; one per object of a large structure |
//! | [`ResourceAccessControl`] | 4 | a thing that is used by many, changed by one meanwhile, and destroyed once |
//!
//! All three are one core (`core.rs`): a 32-bit word, pure rules over it, one way to wait. The rules say for each word
//! and request: take it, wait, or refuse. The core does the rest, and the models in `tests/loom_locks.rs` check it
//! under each set of rules.
//!
//! An acquisition is given a [`WaitContext`](crate::WaitContext): the default one makes it an attempt. It fails with a
//! [`LockError`] and never panics; misuse is an error in every build, since a word that counts wrongly is found much
//! later elsewhere. Guards make misuse impossible to write; the functions without guards are for locks that live in
//! structures no guard can borrow from.

mod core;
mod events;
mod guard;
mod readers_writers;
mod resource;
mod resource_word;
mod word;

pub use events::{Compact, Fair};
pub use guard::{Exclusive, Shared};
pub use readers_writers::{AccessControl, AccessControlSmall, ReadersWriterLock, Variety};
pub use resource::{Accessing, Modifying, ResourceAccessControl};

use crate::context::Stop;
use std::time::Duration;
use thiserror::Error;

/// Why a lock was not acquired or not released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LockError {
    /// The deadline passed first. Nothing has changed.
    #[error("the lock was not free within {} µs", waited.as_micros())]
    TimedOut {
        /// How long the thread has waited; zero for an attempt that does not wait.
        waited: Duration,
    },
    /// The wait was cancelled. Nothing has changed.
    #[error("the wait for the lock was cancelled after {} µs", waited.as_micros())]
    Cancelled {
        /// How long the thread has waited.
        waited: Duration,
    },
    /// What the lock protects has been destroyed.
    #[error("the resource has been destroyed")]
    Destroyed,
    /// Another thread waits to destroy it; should that fail, so that it can be tried again, it was for its deadline.
    #[error("another thread is destroying the resource")]
    DestructionInProgress,
    /// Another holder is being promoted already: to wait for it would be to wait for each other. Release the lock.
    #[error("another holder of the lock is being promoted; release it and acquire it anew")]
    PromotionInProgress,
    /// Others share the lock, and this lock promotes a sole reader only.
    #[error("others share the lock; only its sole reader can be promoted")]
    SharedByOthers,
    /// The calling thread holds the lock exclusively, and the lock cannot be entered twice.
    #[error("the calling thread already holds the lock exclusively")]
    AlreadyOwned,
    /// The lock is not held exclusively by the calling thread.
    #[error("the lock is not held exclusively by the calling thread")]
    NotOwner,
    /// Nobody holds the lock in the way that is to be released or promoted.
    #[error("nobody shares the lock")]
    NotShared,
    /// The lock cannot count more holders.
    #[error("the lock is shared by as many holders as it can count ({limit})")]
    TooManyHolders {
        /// Holders it can count.
        limit: u32,
    },
    /// The lock cannot count more waiters.
    #[error("as many threads wait for the lock as it can count ({limit})")]
    TooManyWaiters {
        /// Waiters it can count.
        limit: u32,
    },
    /// The calling thread holds a set of latches already; it acquires all that it needs at once.
    #[error("the calling thread holds latches already; all must be acquired at once")]
    HoldsLatches,
    /// The table has fewer latches.
    #[error("the table has no such stripe")]
    NoSuchStripe,
    /// The calling thread has no number: 32,766 live threads have one, or the thread is ending.
    #[error("no thread id is free for the calling thread")]
    ThreadIdsExhausted,
}

impl LockError {
    /// How long the thread has waited before it failed; zero if it was refused.
    pub fn waited(&self) -> Duration {
        match self {
            Self::TimedOut { waited } | Self::Cancelled { waited } => *waited,
            _ => Duration::ZERO,
        }
    }

    fn stopped(stop: Stop, waited: Duration) -> Self {
        match stop {
            Stop::Expired => Self::TimedOut { waited },
            Stop::Cancelled => Self::Cancelled { waited },
        }
    }
}
