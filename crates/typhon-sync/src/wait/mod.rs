//! Waiting for a word to change.
//!
//! [`wait`] blocks only while the word still has the value that the caller saw, and the comparison is one step with
//! going to sleep: whoever changes the word and then wakes cannot be missed. Waits may end without a reason, so callers
//! look again in a loop.
//!
//! On Linux this is the futex. Elsewhere a table of condition variables stands in (`table.rs`), and under loom a model.

#[cfg(all(not(loom), any(target_os = "linux", target_os = "android")))]
mod futex;
#[cfg(loom)]
mod model;
mod parker;
#[cfg(all(not(loom), any(test, not(any(target_os = "linux", target_os = "android")))))]
mod table;

#[cfg(all(not(loom), any(target_os = "linux", target_os = "android")))]
use futex as system;
#[cfg(loom)]
use model as system;
#[cfg(all(not(loom), not(any(target_os = "linux", target_os = "android"))))]
use table as system;

use crate::Deadline;
use crate::atomic::AtomicU32;
pub use parker::Parker;

/// Why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a wait may end because its deadline has passed"]
pub enum WaitEnd {
    /// Somebody woke this thread, the word had another value, or for no reason: look again.
    Woken,
    /// The deadline has passed.
    Expired,
}

/// Blocks while `word` is `expected`, until somebody wakes this thread or the deadline passes. Returns at once when
/// the word has another value, or the deadline is past already. An infinite deadline reads no clock.
pub fn wait(word: &AtomicU32, expected: u32, deadline: Deadline) -> WaitEnd {
    system::wait(word, expected, deadline)
}

/// Wakes one of the threads that wait for this word, if any does. Change the word first.
pub fn wake_one(word: &AtomicU32) {
    system::wake_one(word);
}

/// Wakes all threads that wait for this word. Change the word first.
pub fn wake_all(word: &AtomicU32) {
    system::wake_all(word);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    /// The same questions for every implementation.
    struct System {
        wait: fn(&AtomicU32, u32, Deadline) -> WaitEnd,
        wake_one: fn(&AtomicU32),
        wake_all: fn(&AtomicU32),
    }

    const SYSTEMS: [System; 2] = [
        System { wait, wake_one, wake_all },
        System { wait: table::wait, wake_one: table::wake_one, wake_all: table::wake_all },
    ];

    #[test]
    fn b6_another_value_or_a_past_deadline_does_not_wait() {
        for system in &SYSTEMS {
            let word = AtomicU32::new(7);
            assert_eq!((system.wait)(&word, 8, Deadline::INFINITE), WaitEnd::Woken);
            assert_eq!((system.wait)(&word, 7, Deadline::EXPIRED), WaitEnd::Expired);
            let soon = Deadline::from_timeout(Duration::from_micros(300));
            while (system.wait)(&word, 7, soon) == WaitEnd::Woken {}
            assert!(soon.is_expired());
        }
    }

    #[test]
    fn b6_threads_hand_a_word_to_and_fro() {
        for system in &SYSTEMS {
            let word = AtomicU32::new(0);
            let play = |mine: u32| {
                for round in 0..500 {
                    let turn = 2 * round + mine;
                    loop {
                        let seen = word.load(Ordering::Acquire);
                        if seen == turn {
                            break;
                        }
                        assert_eq!((system.wait)(&word, seen, Deadline::INFINITE), WaitEnd::Woken);
                    }
                    word.store(turn + 1, Ordering::Release);
                    (system.wake_one)(&word);
                }
            };
            std::thread::scope(|scope| {
                scope.spawn(|| play(0));
                scope.spawn(|| play(1));
            });
            assert_eq!(word.into_inner(), 1_000);
        }
    }

    #[test]
    fn b6_everybody_is_woken() {
        for system in &SYSTEMS {
            let (word, ready) = (AtomicU32::new(0), AtomicU32::new(0));
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        ready.fetch_add(1, Ordering::Relaxed);
                        while word.load(Ordering::Acquire) == 0 {
                            let _ = (system.wait)(&word, 0, Deadline::INFINITE);
                        }
                    });
                }
                while ready.load(Ordering::Relaxed) < 4 {
                    std::thread::yield_now();
                }
                word.store(1, Ordering::Release);
                (system.wake_all)(&word);
            });
        }
    }
}
