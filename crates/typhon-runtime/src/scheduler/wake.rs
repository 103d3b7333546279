//! Sleeping until something happens, without missing it and without a system call while nobody sleeps.
//!
//! The thing that happens is a write by a read-modify-write to some word (the *cause*). A sleeper registers, looks at
//! the cause once more, by a read-modify-write too, and sleeps only then. Both write the same word, so one comes first:
//! either the sleeper sees the cause, or the other thread sees the sleeper and wakes it. No fence is needed.

use super::sync::{AtomicU32, Ordering};
use typhon_sync::Deadline;
use typhon_sync::wait::{WaitEnd, wait, wake_all, wake_one};

/// Where threads sleep.
#[derive(Debug, Default)]
pub(crate) struct WakeWord {
    /// Counts what happened.
    count: AtomicU32,
    /// Threads that sleep or are about to.
    sleepers: AtomicU32,
}

/// How many sleepers something concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wake {
    One,
    All,
}

impl WakeWord {
    /// The count now.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }

    /// Something happened whose cause is this very count.
    pub(crate) fn advance(&self, whom: Wake) {
        self.count.fetch_add(1, Ordering::AcqRel);
        if self.has_sleepers() {
            self.wake(whom);
        }
    }

    /// As [`Self::advance`], with the mistake that wakes nobody.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn advance_silently(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    /// Something happened, and its cause is written: wakes sleepers if there are any.
    #[inline(always)]
    pub(crate) fn notify(&self, whom: Wake) {
        if self.has_sleepers() {
            self.count.fetch_add(1, Ordering::AcqRel);
            self.wake(whom);
        }
    }

    /// Does anybody sleep?
    #[inline(always)]
    pub(crate) fn has_sleepers(&self) -> bool {
        self.sleepers.load(Ordering::Acquire) != 0
    }

    #[cold]
    fn wake(&self, whom: Wake) {
        match whom {
            Wake::One => wake_one(&self.count),
            Wake::All => wake_all(&self.count),
        }
    }

    /// Registers the calling thread: what happens from here on ends its sleep, or is seen by looking at the cause.
    pub(crate) fn register(&self) -> Sleeper<'_> {
        self.sleepers.fetch_add(1, Ordering::AcqRel);
        Sleeper(self)
    }
}

/// A registered sleeper.
#[derive(Debug)]
#[must_use = "a sleeper that does not leave is woken for ever"]
pub(crate) struct Sleeper<'a>(&'a WakeWord);

impl Sleeper<'_> {
    /// The count, to be taken before looking at the cause. Where the count is the cause, this is the look.
    pub(crate) fn count(&self) -> u32 {
        self.0.count.fetch_add(0, Ordering::AcqRel)
    }

    /// Sleeps while the count is still this one, until somebody wakes or the deadline passes.
    pub(crate) fn sleep(&self, count: u32, deadline: Deadline) -> WaitEnd {
        wait(&self.0.count, count, deadline)
    }

    /// Ends the registration. Not done by dropping: a model that has found a mistake drops what it has, and then nothing
    /// may touch an atomic.
    pub(crate) fn leave(self) {
        self.0.sleepers.fetch_sub(1, Ordering::AcqRel);
    }
}
