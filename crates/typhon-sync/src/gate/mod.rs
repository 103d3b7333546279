//! What a database's threads pass through, in this order: the tick, latches, the gate of those who write, numbers.
//!
//! | Gate | Lets through |
//! |---|---|
//! | [`TickGate`] | one tick or freeze at a time |
//! | [`LatchTable`] | one holder per stripe; all that a thread needs in one acquisition, so that no two wait for each other |
//! | [`QuiesceGate`] | any number of tickets, or nobody but who closed it |
//! | [`SequenceGate`] | nobody waits to pass; a watermark follows the numbers that are filled, without gaps |
//!
//! A thread acquires them in the order of this table and holds none while it waits for a watermark. The first two are
//! locks, so that the trace shows their contention.

mod latches;
mod quiesce;
mod sequence;

pub use latches::{LatchSet, LatchTable};
pub use quiesce::{GateError, QuiesceGate, Window, WriteTicket};
pub use sequence::{SequenceError, SequenceGate};

use crate::context::WaitContext;
use crate::lock::{AccessControl, Exclusive, Fair, LockError};

/// Held by who runs a tick or freezes the world between ticks; never across what waits for a device or the clock.
#[derive(Debug, Default)]
pub struct TickGate {
    lock: AccessControl,
}

/// The proof that a thread has passed the [`TickGate`].
#[must_use = "the gate opens when the token is dropped"]
#[derive(Debug)]
pub struct TickToken<'g> {
    _alone: Exclusive<'g, Fair>,
}

impl TickGate {
    /// An open gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Passes the gate, and closes it until the token is dropped.
    ///
    /// # Errors
    /// Those of [`AccessControl::exclusive`](crate::lock::ReadersWriterLock::exclusive).
    pub fn enter(&self, context: &WaitContext<'_>) -> Result<TickToken<'_>, LockError> {
        Ok(TickToken { _alone: self.lock.exclusive(context)? })
    }
}
