//! One thread's place to wait: a permit that others give.
#![forbid(unsafe_code)]

use super::{WaitEnd, wait, wake_one};
use crate::Deadline;
use crate::atomic::{AtomicU32, Ordering};
use crate::fault::{Fault, planted, unless};

/// Nobody waits and no permit is there.
const EMPTY: u32 = 0;
/// A permit is there.
const PERMIT: u32 = 1;
/// The thread waits, or is about to. One below [`EMPTY`], as that is one below [`PERMIT`]: one subtraction takes a permit
/// or announces the wait.
const WAITING: u32 = u32::MAX;

/// Where one thread waits until another gives it a permit. There is at most one permit at a time, however often it is
/// given, so that any number of uncontended rounds leaves nothing behind; a permit given before the wait ends it at
/// once. What the giver did before is seen by the thread that takes the permit.
///
/// ```
/// use typhon_sync::{Deadline, wait::{Parker, WaitEnd}};
///
/// let parker = Parker::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| parker.unpark());
///     assert_eq!(parker.park(Deadline::INFINITE), WaitEnd::Woken);
/// });
/// assert_eq!(parker.park(Deadline::EXPIRED), WaitEnd::Expired);
/// ```
#[derive(Debug)]
pub struct Parker {
    state: AtomicU32,
}

impl Parker {
    /// A parker without a permit.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { state: AtomicU32::new(EMPTY) }
    }

    /// A parker without a permit.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { state: AtomicU32::new(EMPTY) }
    }

    /// Waits for a permit and takes it. Only the parker's own thread may do so. `Woken` means that a permit was taken,
    /// never less; a permit that is there is taken even if the deadline is past.
    pub fn park(&self, deadline: Deadline) -> WaitEnd {
        if self.state.fetch_sub(1, unless(Fault::ParkRelaxed, Ordering::Acquire)) == PERMIT {
            return WaitEnd::Woken;
        }
        loop {
            let end = wait(&self.state, WAITING, deadline);
            if self.state.load(Ordering::Relaxed) == PERMIT || end == WaitEnd::Expired {
                let taken = self.state.swap(EMPTY, unless(Fault::ParkRelaxed, Ordering::Acquire));
                return if taken == PERMIT { WaitEnd::Woken } else { WaitEnd::Expired };
            }
        }
    }

    /// Gives a permit; wakes the thread if it waits.
    pub fn unpark(&self) {
        let was = self.state.swap(PERMIT, unless(Fault::UnparkRelaxed, Ordering::Release));
        if was == WAITING && !planted(Fault::UnparkSilent) {
            wake_one(&self.state);
        }
    }
}

impl Default for Parker {
    fn default() -> Self {
        Self::new()
    }
}
