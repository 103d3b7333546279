//! A wish to stop that any number of waiters can see.
#![forbid(unsafe_code)]

use crate::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// A flag that goes from "go on" to "stop" once. Clones share it.
///
/// Waiters look at it between waits and are not woken by it: while a wait can be cancelled it is cut into pieces of
/// [`CANCEL_LATENCY`](crate::context::CANCEL_LATENCY), so that a lock needs no list of tokens.
#[derive(Debug, Clone)]
pub struct CancelToken {
    is_cancelled: Arc<AtomicBool>,
}

impl CancelToken {
    /// A token that says "go on".
    pub fn new() -> Self {
        Self { is_cancelled: Arc::new(AtomicBool::new(false)) }
    }

    /// Says "stop"; for good.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
    }

    /// Does it say "stop"?
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }
}

impl Default for CancelToken {
    fn default() -> Self {
        Self::new()
    }
}
