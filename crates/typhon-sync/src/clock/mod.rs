//! Time and waiting behind a seam.
//!
//! What runs on a schedule (timers, the tick's metronome) takes a [`Clock`] and asks nobody else for the time; its tests
//! give it a [`VirtualClock`], on which nothing happens by itself. Locks are not behind the seam: their deadlines are
//! moments of the real clock.

#[cfg(not(loom))]
mod virtual_clock;

use crate::Deadline;
use crate::atomic::AtomicU32;
use crate::wait::{self, WaitEnd};
use std::fmt::Debug;
#[cfg(not(loom))]
pub use virtual_clock::VirtualClock;

/// The monotonic clock, in nanoseconds since a moment that differs from machine to machine; above 0.
pub fn monotonic_ns() -> i64 {
    #[cfg(all(test, not(loom)))]
    READS.set(READS.get() + 1);
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

#[cfg(all(test, not(loom)))]
std::thread_local! {
    /// How often the calling thread has read the clock.
    pub(crate) static READS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// A source of time together with the ways to wait for a moment of it.
pub trait Clock: Debug + Send + Sync {
    /// The time in nanoseconds. Never goes back.
    fn now_ns(&self) -> i64;

    /// Blocks until the time is `target_ns` or later, without using the processor. How much later depends on the
    /// system.
    fn sleep_until_ns(&self, target_ns: i64);

    /// Uses the processor until the time is `target_ns` or later.
    fn spin_until_ns(&self, target_ns: i64);

    /// As [`wait::wait`], with a deadline of this clock. Whoever changes the word wakes with [`Clock::wake_all`] of the
    /// same clock.
    fn wait(&self, word: &AtomicU32, expected: u32, deadline: Deadline) -> WaitEnd;

    /// Wakes all threads that wait for this word on this clock. Change the word first.
    fn wake_all(&self, word: &AtomicU32);
}

/// The monotonic clock of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ns(&self) -> i64 {
        monotonic_ns()
    }

    fn sleep_until_ns(&self, target_ns: i64) {
        while monotonic_ns() < target_ns {
            sleep_once(target_ns);
        }
    }

    fn spin_until_ns(&self, target_ns: i64) {
        while monotonic_ns() < target_ns {
            std::hint::spin_loop();
        }
    }

    fn wait(&self, word: &AtomicU32, expected: u32, deadline: Deadline) -> WaitEnd {
        wait::wait(word, expected, deadline)
    }

    fn wake_all(&self, word: &AtomicU32) {
        wait::wake_all(word);
    }
}

/// The moment is absolute, so that a signal or a delay before the call makes nothing later.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn sleep_once(target_ns: i64) {
    let target =
        rustix::time::Timespec { tv_sec: target_ns / 1_000_000_000, tv_nsec: target_ns % 1_000_000_000 };
    // Ends early by a signal only; the caller looks at the clock and comes again.
    let _ = rustix::thread::clock_nanosleep_absolute(rustix::time::ClockId::Monotonic, &target);
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn sleep_once(target_ns: i64) {
    let remaining_ns = target_ns.saturating_sub(monotonic_ns()).max(0);
    std::thread::sleep(std::time::Duration::from_nanos(remaining_ns.unsigned_abs()));
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn sleep_and_spin_reach_their_moment() {
        let clock = SystemClock;
        for wait in [SystemClock::sleep_until_ns, SystemClock::spin_until_ns] {
            let target_ns = clock.now_ns() + 200_000;
            wait(&clock, target_ns);
            assert!(clock.now_ns() >= target_ns);
            wait(&clock, 0);
        }
    }

    #[test]
    fn virtual_time_passes_only_when_told() {
        let clock = VirtualClock::new(1_000);
        let (woken, word) = (AtomicBool::new(false), AtomicU32::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                clock.sleep_until_ns(2_000);
                woken.store(true, Ordering::SeqCst);
                let deadline = Deadline::at_ns(5_000);
                while word.load(Ordering::SeqCst) == 0 {
                    assert_eq!(clock.wait(&word, 0, deadline), WaitEnd::Woken);
                }
                woken.store(false, Ordering::SeqCst);
                assert_eq!(clock.wait(&word, 1, deadline), WaitEnd::Expired);
                clock.spin_until_ns(6_000);
            });
            clock.await_waiting(1);
            clock.advance_ns(999);
            assert!(!woken.load(Ordering::SeqCst));
            clock.advance_ns(1);
            clock.await_waiting(1);
            assert!(woken.load(Ordering::SeqCst));
            word.store(1, Ordering::SeqCst);
            clock.wake_all(&word);
            while woken.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            clock.await_next_moment_ns(5_000);
            clock.advance_to_ns(5_000);
            clock.await_next_moment_ns(6_000);
            clock.advance_to_ns(6_000);
        });
        assert_eq!(clock.now_ns(), 6_000);
    }
}
