//! How many predecessors a system still waits for in this tick.
//!
//! Only threads that complete a predecessor touch a countdown, and a tick does not end before all its systems are
//! complete; so a thread that is left over from an earlier tick cannot disturb it, and no tag is needed. Whoever takes
//! it to zero is the last to touch it in this tick and winds it up for the next one: no tick begins with a pass over
//! all systems.

use super::sync::{AtomicU32, Fault, Ordering, acq_rel_unless, planted};

/// Set once a predecessor has failed.
const FAILED: u32 = 1 << 31;

/// What a system that may go now has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Released {
    /// A predecessor failed in this tick.
    pub(crate) predecessor_failed: bool,
}

/// The predecessors that are not through yet.
#[derive(Debug)]
pub(crate) struct Countdown(AtomicU32);

impl Countdown {
    pub(crate) fn new(predecessors: u32) -> Self {
        Self(AtomicU32::new(predecessors))
    }

    /// A predecessor is through. `Some` for the last of them: the caller sees what all of them did.
    #[inline(always)]
    pub(crate) fn release(&self, has_failed: bool, predecessors: u32) -> Option<Released> {
        if has_failed && !planted(Fault::FailureLate) {
            self.0.fetch_or(FAILED, Ordering::Relaxed);
        }
        let before = self.decrement();
        if has_failed && planted(Fault::FailureLate) {
            self.0.fetch_or(FAILED, Ordering::Relaxed);
        }
        self.released(before, predecessors)
    }

    /// As [`Self::release`], while no other thread takes part: no locked instructions.
    #[inline(always)]
    pub(crate) fn release_alone(&self, has_failed: bool, predecessors: u32) -> Option<Released> {
        let before = self.0.load(Ordering::Relaxed) | if has_failed { FAILED } else { 0 };
        self.0.store(before - 1, Ordering::Relaxed);
        self.released(before, predecessors)
    }

    #[inline(always)]
    fn released(&self, before: u32, predecessors: u32) -> Option<Released> {
        if before & !FAILED != 1 {
            return None;
        }
        if !planted(Fault::NoRestart) {
            self.0.store(predecessors, Ordering::Relaxed);
        }
        Some(Released { predecessor_failed: before & FAILED != 0 })
    }

    #[inline(always)]
    fn decrement(&self) -> u32 {
        if planted(Fault::ReleasePlain) {
            let before = self.0.load(Ordering::Acquire);
            self.0.store(before.wrapping_sub(1), Ordering::Release);
            return before;
        }
        self.0.fetch_sub(1, acq_rel_unless(Fault::ReleaseRelaxed))
    }
}
