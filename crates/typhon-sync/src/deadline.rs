//! A moment after which nobody waits any longer.
#![forbid(unsafe_code)]

use crate::clock::monotonic_ns;
use std::time::Duration;

/// A moment on the monotonic clock, in nanoseconds; eight bytes. Ordered by time, so that `min` is the earlier of two.
///
/// The default is already past: who forgets to say how long to wait does not wait. A relative timeout is converted
/// once, where the work begins, and the deadline is handed down; so the sum of all waits stays below the timeout, at
/// any depth (brief 05 B-1, B-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(i64);

impl Deadline {
    /// Already past.
    pub const EXPIRED: Self = Self(0);
    /// Never.
    pub const INFINITE: Self = Self(i64::MAX);

    /// The moment `timeout` from now. Zero is already past; what lies beyond the clock's range is never. Reads the
    /// clock, except for zero and [`Duration::MAX`].
    pub fn from_timeout(timeout: Duration) -> Self {
        if timeout.is_zero() {
            Self::EXPIRED
        } else if timeout == Duration::MAX {
            Self::INFINITE
        } else {
            Self::after(monotonic_ns(), timeout)
        }
    }

    /// The moment `timeout` after `now_ns`.
    pub const fn after(now_ns: i64, timeout: Duration) -> Self {
        let timeout_ns = timeout.as_nanos();
        let timeout_ns = if timeout_ns > i64::MAX as u128 { i64::MAX } else { timeout_ns as i64 };
        Self(now_ns.saturating_add(timeout_ns))
    }

    /// The moment at which the monotonic clock shows `ns`.
    pub const fn at_ns(ns: i64) -> Self {
        Self(ns)
    }

    /// What the monotonic clock shows at this moment; `i64::MAX` for never.
    pub const fn as_ns(self) -> i64 {
        self.0
    }

    /// Is this moment never?
    pub const fn is_infinite(self) -> bool {
        self.0 == i64::MAX
    }

    /// Is this moment past? Reads the clock only if there is a doubt.
    pub fn is_expired(self) -> bool {
        self.0 <= 0 || (!self.is_infinite() && self.is_expired_at(monotonic_ns()))
    }

    /// Is this moment past when the clock shows `now_ns`? It is from the very nanosecond on.
    pub const fn is_expired_at(self, now_ns: i64) -> bool {
        now_ns >= self.0 && !self.is_infinite()
    }

    /// What is left of it when the clock shows `now_ns`: zero once past, [`Duration::MAX`] for never.
    pub const fn remaining_at(self, now_ns: i64) -> Duration {
        if self.is_infinite() {
            Duration::MAX
        } else if self.is_expired_at(now_ns) {
            Duration::ZERO
        } else {
            Duration::from_nanos(self.0.abs_diff(now_ns))
        }
    }

    /// What is left of it now.
    pub fn remaining(self) -> Duration {
        if self.is_infinite() { Duration::MAX } else { self.remaining_at(monotonic_ns()) }
    }
}

impl Default for Deadline {
    fn default() -> Self {
        Self::EXPIRED
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn b1_eight_bytes_and_past_unless_said() {
        assert_eq!(size_of::<Deadline>(), 8);
        assert!(Deadline::default().is_expired());
        assert!(Deadline::default().is_expired_at(0));
        assert_eq!(Deadline::INFINITE.as_ns(), i64::MAX);
        assert!(!Deadline::INFINITE.is_expired() && !Deadline::INFINITE.is_expired_at(i64::MAX));
    }

    #[test]
    fn b1_timeouts_become_moments_without_overflow() {
        assert_eq!(Deadline::from_timeout(Duration::ZERO), Deadline::EXPIRED);
        assert_eq!(Deadline::from_timeout(Duration::MAX), Deadline::INFINITE);
        assert_eq!(Deadline::after(5, Duration::from_nanos(7)), Deadline::at_ns(12));
        assert_eq!(Deadline::after(i64::MAX - 1, Duration::from_secs(1)), Deadline::INFINITE);
        assert_eq!(Deadline::after(1, Duration::from_secs(u64::MAX)), Deadline::INFINITE);
        assert!(!Deadline::from_timeout(Duration::from_secs(3_600)).is_expired());
    }

    #[test]
    fn b1_the_nanosecond_itself_is_past() {
        let deadline = Deadline::at_ns(100);
        assert!(!deadline.is_expired_at(99) && deadline.is_expired_at(100) && deadline.is_expired_at(101));
        assert_eq!(deadline.remaining_at(90), Duration::from_nanos(10));
        assert_eq!(deadline.remaining_at(100), Duration::ZERO);
        assert_eq!(Deadline::at_ns(i64::MAX - 1).remaining_at(i64::MIN), Duration::from_nanos(u64::MAX - 1));
        assert_eq!(Deadline::INFINITE.remaining_at(5), Duration::MAX);
    }

    #[test]
    fn b1_the_earlier_of_two_is_the_minimum() {
        let (sooner, later) = (Deadline::at_ns(1), Deadline::at_ns(2));
        assert_eq!(sooner.min(later), sooner);
        assert_eq!(later.min(Deadline::INFINITE), later);
        assert_eq!(later.min(Deadline::EXPIRED), Deadline::EXPIRED);
    }

    #[test]
    fn b3_a_deadline_handed_down_is_not_renewed() {
        fn nested(deadline: Deadline, depth: u32) -> Deadline {
            if depth == 0 { deadline } else { nested(deadline.min(Deadline::INFINITE), depth - 1) }
        }
        let outer = Deadline::after(0, Duration::from_millis(1));
        assert_eq!(nested(outer, 50), outer);
    }
}
