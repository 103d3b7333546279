//! A clock that a test moves.
#![forbid(unsafe_code)]

use super::Clock;
use crate::Deadline;
use crate::atomic::{AtomicU32, Ordering};
use crate::wait::WaitEnd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A clock on which time passes only when it is told to. Threads that wait for a moment block until the clock is moved
/// there; the test can wait until they do.
#[derive(Debug)]
pub struct VirtualClock {
    state: Mutex<State>,
    /// The time, a word, or the list of those who wait has changed.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    now_ns: i64,
    /// The moments for which threads wait, in no order.
    moments_ns: Vec<i64>,
}

impl State {
    /// Threads for which the time has not come.
    fn waiting(&self) -> impl Iterator<Item = i64> {
        self.moments_ns.iter().copied().filter(|moment_ns| *moment_ns > self.now_ns)
    }
}

impl VirtualClock {
    /// A clock that shows `now_ns`.
    pub const fn new(now_ns: i64) -> Self {
        Self { state: Mutex::new(State { now_ns, moments_ns: Vec::new() }), changed: Condvar::new() }
    }

    /// Moves the time forward.
    pub fn advance_ns(&self, ns: i64) {
        let mut state = self.lock();
        state.now_ns += ns.max(0);
        self.changed.notify_all();
    }

    /// Moves the time forward to a moment; does nothing if it is past.
    pub fn advance_to_ns(&self, moment_ns: i64) {
        let mut state = self.lock();
        state.now_ns = state.now_ns.max(moment_ns);
        self.changed.notify_all();
    }

    /// Blocks until this many threads wait for a moment that is still to come.
    pub fn await_waiting(&self, threads: usize) {
        self.block_while(|state| state.waiting().count() < threads);
    }

    /// Blocks until a thread waits, and the nearest moment for which one does is this one.
    pub fn await_next_moment_ns(&self, moment_ns: i64) {
        self.block_while(|state| state.waiting().min() != Some(moment_ns));
    }

    /// The nearest moment for which a thread waits.
    pub fn next_moment_ns(&self) -> Option<i64> {
        self.lock().waiting().min()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn block_while(&self, condition: impl Fn(&State) -> bool) {
        let guard = self.changed.wait_while(self.lock(), |state| condition(state));
        drop(guard.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits for a moment, or until `look` has seen enough.
    fn wait_for(&self, moment_ns: i64, look: impl Fn() -> bool) {
        let mut state = self.lock();
        state.moments_ns.push(moment_ns);
        self.changed.notify_all();
        while state.now_ns < moment_ns && !look() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(place) = state.moments_ns.iter().position(|other_ns| *other_ns == moment_ns) {
            state.moments_ns.swap_remove(place);
        }
        self.changed.notify_all();
    }
}

impl Clock for VirtualClock {
    fn now_ns(&self) -> i64 {
        self.lock().now_ns
    }

    fn sleep_until_ns(&self, target_ns: i64) {
        self.wait_for(target_ns, || false);
    }

    fn spin_until_ns(&self, target_ns: i64) {
        self.wait_for(target_ns, || false);
    }

    /// Infinite waits count as waiting for the last moment there is.
    fn wait(&self, word: &AtomicU32, expected: u32, deadline: Deadline) -> WaitEnd {
        self.wait_for(deadline.as_ns(), || word.load(Ordering::SeqCst) != expected);
        if deadline.is_expired_at(self.now_ns()) { WaitEnd::Expired } else { WaitEnd::Woken }
    }

    fn wake_all(&self, _: &AtomicU32) {
        drop(self.lock());
        self.changed.notify_all();
    }
}
