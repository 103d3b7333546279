//! How long work may wait, handed down from where the work began.
#![forbid(unsafe_code)]

use crate::Deadline;
use crate::cancel::CancelToken;
use crate::clock::monotonic_ns;
use std::cell::Cell;
use std::time::Duration;
use thiserror::Error;

/// How soon, at the latest, a waiter notices that its token was cancelled.
pub const CANCEL_LATENCY: Duration = Duration::from_millis(1);

/// Why work should not wait any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Stop {
    /// Its deadline has passed.
    #[error("the deadline has passed")]
    Expired,
    /// Its token was cancelled.
    #[error("the work was cancelled")]
    Cancelled,
}

/// A deadline and, if the work can be cancelled, its token; 16 bytes, handed down by reference.
///
/// The default is past: an acquisition with it is an attempt that never waits. [`WaitContext::INFINITE`] waits for ever
/// and reads no clock (brief 05 B-2).
///
/// ```
/// use std::time::Duration;
/// use typhon_sync::{CancelToken, WaitContext, context::Stop};
///
/// let token = CancelToken::new();
/// let context = WaitContext::with_timeout(Duration::from_secs(5)).cancelled_by(&token);
/// assert_eq!(context.should_stop(), None);
/// token.cancel();
/// assert_eq!(context.should_stop(), Some(Stop::Cancelled));
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct WaitContext<'a> {
    deadline: Deadline,
    cancel: Option<&'a CancelToken>,
}

impl WaitContext<'static> {
    /// Waits for ever, and reads no clock.
    pub const INFINITE: Self = Self { deadline: Deadline::INFINITE, cancel: None };
    /// Never waits.
    pub const NO_WAIT: Self = Self { deadline: Deadline::EXPIRED, cancel: None };

    /// Waits until a moment.
    pub const fn until(deadline: Deadline) -> Self {
        Self { deadline, cancel: None }
    }

    /// Waits for `timeout` from now on. Call it once, where the work begins.
    pub fn with_timeout(timeout: Duration) -> Self {
        Self::until(Deadline::from_timeout(timeout))
    }
}

impl<'a> WaitContext<'a> {
    /// The same, stopped by a token as well.
    pub fn cancelled_by<'b>(self, token: &'b CancelToken) -> WaitContext<'b> {
        WaitContext { deadline: self.deadline, cancel: Some(token) }
    }

    /// The same, until the earlier of its deadline and this one.
    pub fn bounded_by(self, deadline: Deadline) -> Self {
        Self { deadline: self.deadline.min(deadline), ..self }
    }

    /// The deadline.
    pub const fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Waits for ever and cannot be cancelled.
    pub(crate) const fn is_unbounded(&self) -> bool {
        self.deadline.is_infinite() && self.cancel.is_none()
    }

    /// Why to stop now, if there is a reason. Asked once per round of a wait.
    pub fn should_stop(&self) -> Option<Stop> {
        if self.cancel.is_some_and(CancelToken::is_cancelled) {
            Some(Stop::Cancelled)
        } else if self.deadline.is_expired() {
            Some(Stop::Expired)
        } else {
            None
        }
    }

    /// How long a thread may block before it asks again.
    pub(crate) fn block_until(&self) -> Deadline {
        match self.cancel {
            Some(_) => self.deadline.min(Deadline::after(monotonic_ns(), CANCEL_LATENCY)),
            None => self.deadline,
        }
    }
}

/// What one unit of work may wait for: its deadline and token, its number, and whether it may be stopped just now.
///
/// While a [`Holdoff`] lives, [`UnitOfWorkContext::check_cancelled`] says nothing: take one before a change that must not
/// stop half-way. The deadline runs on, and the first check afterwards sees it (brief 05 B-4).
#[derive(Debug)]
pub struct UnitOfWorkContext {
    deadline: Deadline,
    cancel: Option<CancelToken>,
    id: u16,
    holdoffs: Cell<u32>,
}

impl UnitOfWorkContext {
    /// The context of the unit of work with this number.
    pub fn new(id: u16, deadline: Deadline, cancel: Option<CancelToken>) -> Self {
        Self { deadline, cancel, id, holdoffs: Cell::new(0) }
    }

    /// Number of the unit of work.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// What its waits are given.
    pub fn wait_context(&self) -> WaitContext<'_> {
        WaitContext { deadline: self.deadline, cancel: self.cancel.as_ref() }
    }

    /// Fails once the unit of work should stop, unless a holdoff lives.
    ///
    /// # Errors
    /// The reason to stop.
    pub fn check_cancelled(&self) -> Result<(), Stop> {
        if self.holdoffs.get() > 0 {
            return Ok(());
        }
        self.wait_context().should_stop().map_or(Ok(()), Err)
    }

    /// Keeps checks silent until the guard is dropped. Nests.
    pub fn hold_off(&self) -> Holdoff<'_> {
        self.holdoffs.set(self.holdoffs.get() + 1);
        Holdoff { holdoffs: &self.holdoffs }
    }
}

/// Keeps the checks of a unit of work silent while it lives.
#[must_use = "checks are silent only while the guard lives"]
#[derive(Debug)]
pub struct Holdoff<'a> {
    holdoffs: &'a Cell<u32>,
}

impl Drop for Holdoff<'_> {
    fn drop(&mut self) {
        self.holdoffs.set(self.holdoffs.get() - 1);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn b2_sixteen_bytes_and_no_wait_unless_said() {
        assert_eq!(size_of::<WaitContext<'_>>(), 16);
        assert_eq!(WaitContext::default().should_stop(), Some(Stop::Expired));
        assert_eq!(WaitContext::NO_WAIT.should_stop(), Some(Stop::Expired));
        assert_eq!(WaitContext::INFINITE.should_stop(), None);
        assert_eq!(WaitContext::INFINITE.block_until(), Deadline::INFINITE);
    }

    #[test]
    fn b2_token_and_deadline_stop_together() {
        let token = CancelToken::new();
        let context = WaitContext::INFINITE.cancelled_by(&token);
        assert_eq!(context.should_stop(), None);
        assert!(!context.block_until().is_infinite());
        token.clone().cancel();
        assert_eq!(context.should_stop(), Some(Stop::Cancelled));
        assert_eq!(context.bounded_by(Deadline::EXPIRED).should_stop(), Some(Stop::Cancelled));
    }

    #[test]
    fn b3_a_nested_bound_only_shortens() {
        let context = WaitContext::until(Deadline::at_ns(10));
        assert_eq!(context.bounded_by(Deadline::at_ns(20)).deadline(), Deadline::at_ns(10));
        assert_eq!(context.bounded_by(Deadline::at_ns(5)).deadline(), Deadline::at_ns(5));
    }

    #[test]
    fn b4_holdoff_keeps_checks_silent_and_the_first_check_after_it_sees_the_deadline() {
        let work = UnitOfWorkContext::new(7, Deadline::EXPIRED, None);
        assert_eq!((work.id(), work.check_cancelled()), (7, Err(Stop::Expired)));
        let outer = work.hold_off();
        let inner = work.hold_off();
        assert_eq!(work.check_cancelled(), Ok(()));
        drop(inner);
        assert_eq!(work.check_cancelled(), Ok(()));
        drop(outer);
        assert_eq!(work.check_cancelled(), Err(Stop::Expired));
    }

    #[test]
    fn b4_holdoff_ends_when_a_panic_unwinds() {
        let work = UnitOfWorkContext::new(1, Deadline::INFINITE, Some(CancelToken::new()));
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _holdoff = work.hold_off();
            panic!("planned");
        }));
        assert!(unwound.is_err());
        work.cancel.as_ref().unwrap().cancel();
        assert_eq!(work.check_cancelled(), Err(Stop::Cancelled));
    }
}
