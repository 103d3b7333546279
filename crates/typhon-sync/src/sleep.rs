//! Sleep that wakes on time: until shortly before a moment at the system's hands, the rest by spinning.
//!
//! How long before is learned: the lead is the 99th percentile of how late the system's wakes were lately, within
//! 50 to 150 µs (brief 04 B-25). Sleeping is cheap and late, spinning is exact and dear; on a two-core virtual machine
//! this costs a tenth of sleeping and yielding by turns.
#![forbid(unsafe_code)]

use crate::Deadline;
use crate::atomic::{AtomicU32, Ordering};
use crate::clock::Clock;
use crate::wait::WaitEnd;

/// The lead stays within these bounds, in nanoseconds: below the lower one spinning costs nothing that matters, and what
/// is later than the upper one is an accident that spinning should not pay for every time.
const LEAD_NS: std::ops::RangeInclusive<i64> = 50_000..=150_000;
/// Wakes that are remembered; the slowest one of a hundred is above the 99th percentile.
const REMEMBERED: usize = 128;
/// Wakes after which the lead is taken anew.
const PERIOD: usize = 32;

/// What a sleep went through, and how well it kept its time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slept {
    /// It waited at the system's hands.
    pub slept: bool,
    /// It spun.
    pub spun: bool,
    /// It was woken before its moment; only [`PreciseSleep::sleep_until_or_woken`] is.
    pub woken: bool,
    /// Nanoseconds by which the sleep ended after its moment; negative when it was woken before.
    pub late_ns: i64,
}

/// Sleeps of one thread, which learns from each how early it must wake for the next.
///
/// ```
/// use typhon_sync::{clock::{Clock, SystemClock}, sleep::PreciseSleep};
///
/// let mut sleep = PreciseSleep::new();
/// let target_ns = SystemClock.now_ns() + 300_000;
/// let slept = sleep.sleep_until(&SystemClock, target_ns);
/// assert!(slept.late_ns >= 0 && SystemClock.now_ns() >= target_ns);
/// ```
#[derive(Debug)]
pub struct PreciseSleep {
    lead_ns: i64,
    /// How late the last wakes were, in nanoseconds, in a ring.
    lateness_ns: [i64; REMEMBERED],
    /// Wakes seen.
    wakes: usize,
    is_slack_set: bool,
}

impl PreciseSleep {
    /// A sleeper that has learned nothing yet and leads by 150 µs until it has.
    pub const fn new() -> Self {
        Self { lead_ns: *LEAD_NS.end(), lateness_ns: [0; REMEMBERED], wakes: 0, is_slack_set: false }
    }

    /// How long before the moment it leaves the system's hands, in nanoseconds.
    pub const fn lead_ns(&self) -> i64 {
        self.lead_ns
    }

    /// Sleeps until the clock shows `target_ns`; returns at once if it does already. The first sleep of a thread asks
    /// Linux to be woken without the usual 50 µs of slack.
    pub fn sleep_until(&mut self, clock: &dyn Clock, target_ns: i64) -> Slept {
        self.run(clock, target_ns, |until_ns| {
            clock.sleep_until_ns(until_ns);
            false
        })
    }

    /// As [`PreciseSleep::sleep_until`], but ends early once `word` is no longer `expected`: whoever changes it wakes
    /// with [`Clock::wake_all`]. It is not looked at while spinning.
    pub fn sleep_until_or_woken(
        &mut self,
        clock: &dyn Clock,
        target_ns: i64,
        word: &AtomicU32,
        expected: u32,
    ) -> Slept {
        self.run(clock, target_ns, |until_ns| {
            loop {
                let end = clock.wait(word, expected, Deadline::at_ns(until_ns));
                if word.load(Ordering::Acquire) != expected {
                    return true;
                }
                if end == WaitEnd::Expired {
                    return false;
                }
            }
        })
    }

    /// `block` waits until a moment at the system's hands and says whether it was woken before.
    fn run(&mut self, clock: &dyn Clock, target_ns: i64, block: impl FnOnce(i64) -> bool) -> Slept {
        let mut slept = Slept::default();
        let mut now_ns = clock.now_ns();
        let until_ns = target_ns.saturating_sub(self.lead_ns);
        if now_ns < until_ns {
            self.set_slack();
            slept.slept = true;
            slept.woken = block(until_ns);
            now_ns = clock.now_ns();
            if !slept.woken {
                self.learn(now_ns - until_ns);
            }
        }
        if now_ns < target_ns && !slept.woken {
            slept.spun = true;
            clock.spin_until_ns(target_ns);
            now_ns = clock.now_ns();
        }
        slept.late_ns = now_ns - target_ns;
        slept
    }

    fn learn(&mut self, late_ns: i64) {
        self.lateness_ns[self.wakes % REMEMBERED] = late_ns;
        self.wakes += 1;
        if self.wakes >= REMEMBERED && self.wakes.is_multiple_of(PERIOD) {
            let mut sorted_ns = self.lateness_ns;
            sorted_ns.sort_unstable();
            let p99_ns = sorted_ns[REMEMBERED * 99 / 100];
            self.lead_ns = p99_ns.clamp(*LEAD_NS.start(), *LEAD_NS.end());
        }
    }

    fn set_slack(&mut self) {
        if !std::mem::replace(&mut self.is_slack_set, true) {
            set_least_timer_slack();
        }
    }
}

impl Default for PreciseSleep {
    fn default() -> Self {
        Self::new()
    }
}

/// Where the kernel refuses, sleeps are late by its slack, and the lead makes up for it.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn set_least_timer_slack() {
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn set_least_timer_slack() {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{SystemClock, VirtualClock};

    fn taught(lateness_ns: impl IntoIterator<Item = i64>) -> PreciseSleep {
        let mut sleep = PreciseSleep::new();
        lateness_ns.into_iter().for_each(|late_ns| sleep.learn(late_ns));
        sleep
    }

    #[test]
    fn r25_lead_is_the_99th_percentile_of_lateness_within_bounds() {
        assert_eq!(taught([]).lead_ns(), 150_000);
        assert_eq!(taught([70_000; 127]).lead_ns(), 150_000);
        assert_eq!(taught([70_000; 128]).lead_ns(), 70_000);
        assert_eq!(taught([3_000; 128]).lead_ns(), 50_000);
        assert_eq!(taught([9_000_000; 128]).lead_ns(), 150_000);
        // One outlier of 128 is below the percentile, two are not.
        let with_outliers = |count| taught((0..128).map(move |n| if n < count { 140_000 } else { 60_000 }));
        assert_eq!((with_outliers(1).lead_ns(), with_outliers(2).lead_ns()), (60_000, 140_000));
    }

    #[test]
    fn r25_lead_follows_what_happens_now() {
        let mut sleep = taught([140_000; 128]);
        (0..128).for_each(|_| sleep.learn(60_000));
        assert_eq!(sleep.lead_ns(), 60_000);
    }

    #[test]
    fn r25_sleeps_to_the_lead_then_spins_to_the_moment() {
        let clock = VirtualClock::new(1_000_000);
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| PreciseSleep::new().sleep_until(&clock, 2_000_000));
            clock.await_next_moment_ns(1_850_000);
            clock.advance_to_ns(1_900_000);
            clock.await_next_moment_ns(2_000_000);
            clock.advance_to_ns(2_000_003);
            let slept = thread.join().unwrap();
            assert_eq!(slept, Slept { slept: true, spun: true, woken: false, late_ns: 3 });
        });
    }

    #[test]
    fn r25_near_moments_are_spun_for_and_past_ones_return() {
        let clock = VirtualClock::new(1_000_000);
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| PreciseSleep::new().sleep_until(&clock, 1_100_000));
            clock.await_next_moment_ns(1_100_000);
            clock.advance_to_ns(1_100_000);
            assert_eq!(thread.join().unwrap(), Slept { spun: true, ..Slept::default() });
        });
        let late = PreciseSleep::new().sleep_until(&clock, 1_000_000);
        assert_eq!(late, Slept { late_ns: 100_000, ..Slept::default() });
    }

    #[test]
    fn r25_a_sleeper_can_be_woken() {
        let clock = VirtualClock::new(0);
        let word = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let thread =
                scope.spawn(|| PreciseSleep::new().sleep_until_or_woken(&clock, 10_000_000, &word, 0));
            clock.await_waiting(1);
            word.store(1, Ordering::Release);
            clock.wake_all(&word);
            let slept = thread.join().unwrap();
            assert!(slept.woken && slept.slept && !slept.spun && slept.late_ns < 0);
        });
    }

    #[test]
    fn r25_real_sleeps_end_after_their_moment() {
        let (mut sleep, clock) = (PreciseSleep::new(), SystemClock);
        for ahead_ns in [0, 20_000, 400_000] {
            let target_ns = clock.now_ns() + ahead_ns;
            assert!(sleep.sleep_until(&clock, target_ns).late_ns >= 0);
            assert!(clock.now_ns() >= target_ns);
        }
    }
}
