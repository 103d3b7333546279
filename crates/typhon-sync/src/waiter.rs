//! Waiting that gets more patient: spin, then yield, then block.
#![forbid(unsafe_code)]

use crate::atomic::AtomicU32;
use crate::context::WaitContext;
use crate::trace::emit;
use crate::wait::{self, WaitEnd};
use typhon_profiler::events::{AdaptiveWaiterTransitionKind, ConcurrencyAdaptiveWaiterYieldOrSleep};

/// Rounds of spinning. In a model a wait blocks at once: what spinning would show, other schedules show.
const SPINS: u16 = if cfg!(loom) { 0 } else { 10 };
/// Rounds of yielding after them.
const YIELDS: u16 = if cfg!(loom) { 0 } else { 2 };
/// The pause is doubled this often.
const DOUBLINGS: u16 = 6;

/// One wait: a few pauses that grow, two yields, and from then on the thread blocks on a word. It never sleeps for a
/// time it chose itself (brief 05 B-6). The change to yielding and the change to blocking are recorded (kind 112).
#[derive(Debug, Default)]
pub struct AdaptiveWaiter {
    rounds: u16,
    has_blocked: bool,
}

impl AdaptiveWaiter {
    /// A wait that begins.
    pub const fn new() -> Self {
        Self { rounds: 0, has_blocked: false }
    }

    /// Passes a moment without blocking; false once it is time to block.
    pub fn pause(&mut self) -> bool {
        let round = self.rounds;
        if round >= SPINS + YIELDS {
            return false;
        }
        self.rounds += 1;
        if round < SPINS {
            (0..1 << round.min(DOUBLINGS)).for_each(|_| std::hint::spin_loop());
        } else {
            if round == SPINS {
                self.record(AdaptiveWaiterTransitionKind::YIELD);
            }
            yield_now();
        }
        true
    }

    /// Blocks while `word` is `expected`, until a wake or the end of what the context allows.
    pub fn block(&mut self, word: &AtomicU32, expected: u32, context: &WaitContext<'_>) -> WaitEnd {
        if !std::mem::replace(&mut self.has_blocked, true) {
            self.record(AdaptiveWaiterTransitionKind::SLEEP);
        }
        wait::wait(word, expected, context.block_until())
    }

    /// Pauses if it is still early, else blocks: for words whose every change is followed by a wake.
    pub fn wait(&mut self, word: &AtomicU32, expected: u32, context: &WaitContext<'_>) {
        if !self.pause() {
            let _ = self.block(word, expected, context);
        }
    }

    fn record(&self, kind: AdaptiveWaiterTransitionKind) {
        let spin_count_before = self.rounds.min(SPINS);
        emit(|| ConcurrencyAdaptiveWaiterYieldOrSleep { spin_count_before, kind });
    }
}

#[cfg(not(loom))]
use std::thread::yield_now;

#[cfg(loom)]
use loom::thread::yield_now;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Deadline;

    #[test]
    fn b6_spins_then_yields_then_blocks() {
        let mut waiter = AdaptiveWaiter::new();
        assert_eq!((0..100).filter(|_| waiter.pause()).count(), usize::from(SPINS + YIELDS));
        let word = AtomicU32::new(1);
        assert_eq!(waiter.block(&word, 1, &WaitContext::NO_WAIT), WaitEnd::Expired);
        assert_eq!(waiter.block(&word, 0, &WaitContext::until(Deadline::INFINITE)), WaitEnd::Woken);
    }
}
