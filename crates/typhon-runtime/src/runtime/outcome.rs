//! How a tick ended.

use crate::scheduler::failure::SystemFailure;

/// Why a tick is not a success. The numbers are stable; those that belong to storage are not in use yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum OutcomeReason {
    /// Every system ran or was left out for a reason of its own.
    Success = 0,
    /// At least one system failed.
    SystemException = 1,
}

/// What became of one tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TickOutcome {
    /// Number of the tick.
    pub tick: i64,
    /// How it ended.
    pub reason: OutcomeReason,
    /// Was it aborted by the failure? Then output was left out, and it is the last tick of the runtime.
    pub is_aborted: bool,
    /// Systems that failed by themselves.
    pub failed_systems: u32,
    /// Systems that were left out because another one failed, or the tick was aborted.
    pub dependent_systems: u32,
    /// The failure that came last, if there was one.
    pub failure: Option<Box<SystemFailure>>,
}
