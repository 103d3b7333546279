//! The producers' clock and its way to the trace clock.
//!
//! Producers store raw ticks: of the time stamp counter where it is invariant and the kernel itself trusts it, else
//! of the OS clock. The consumer converts ticks to nanoseconds when it drains, so that the file's clock is 1 GHz
//! everywhere and starts near 0 when the profiler's clock is first used (brief 02 §11.5).

mod map;
#[cfg(target_arch = "x86_64")]
mod tsc;

pub(crate) use map::{ClockMap, Reading};

use crate::mask::GATE;
use rustix::time::{ClockId, clock_gettime};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A moment, in ticks of the producers' clock. Cheap to take, comparable in one process, meaningless elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(u64);

/// Nonsense must not overflow what is computed from it: ten years.
const FARTHEST_NS: i64 = 10 * 365 * 86_400 * 1_000_000_000;

impl Ticks {
    /// This moment: one read of the counter.
    #[inline(always)]
    pub fn now() -> Self {
        #[cfg(target_arch = "x86_64")]
        if GATE.reads_counter() {
            return Self(tsc::read());
        }
        Self(slow_now())
    }

    /// The moment at which `CLOCK_MONOTONIC` had this value, in nanoseconds; for events that other sources time. A trace
    /// has no time before the profiler was first used: what is earlier counts as that moment. What is more than ten
    /// years ahead counts as ten.
    pub fn from_monotonic_ns(ns: u64) -> Self {
        let clock = Clock::get();
        let since_base = i64::try_from(ns).unwrap_or(i64::MAX).saturating_sub(clock.base_ns);
        let ticks = clock.ticks_at(since_base.clamp(0, FARTHEST_NS));
        Self(ticks.max(clock.first.ticks))
    }

    /// The raw counter value.
    #[inline(always)]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// A moment from a raw counter value.
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }
}

/// How long ticks are, as last measured against the OS clock; to be taken anew now and then. Without the corrections by
/// which a trace's clock catches up with that of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickScale {
    /// Nanoseconds per tick, times 2^48.
    rate: u64,
}

impl TickScale {
    /// As it is now.
    pub fn current() -> Self {
        Self { rate: Clock::get().rate.load(Ordering::Relaxed) }
    }

    /// Nanoseconds from one moment to a later one; 0 if it is not later.
    #[inline(always)]
    pub fn ns_between(self, from: Ticks, to: Ticks) -> u64 {
        self.ns(to.0.saturating_sub(from.0))
    }

    /// So many ticks in nanoseconds.
    #[inline(always)]
    pub fn ns(self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.rate)) >> map::SLOPE_BITS) as u64
    }
}

/// Ticks without the counter: before the first use, without an invariant counter, and after it was seen to go back.
#[cold]
#[inline(never)]
fn slow_now() -> u64 {
    let clock = Clock::get();
    #[cfg(target_arch = "x86_64")]
    if GATE.reads_counter() {
        return tsc::read();
    }
    clock.ticks_at(monotonic_ns() - clock.base_ns)
}

/// Trace-clock nanoseconds at the moment at which `CLOCK_MONOTONIC` had this value, for moments in payloads.
pub fn trace_clock_ns(monotonic_ns: i64) -> i64 {
    monotonic_ns - Clock::get().base_ns
}

fn monotonic_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// The process's clock.
pub(crate) struct Clock {
    /// `CLOCK_MONOTONIC` when the trace clock was 0.
    base_ns: i64,
    /// Producers count ticks that are not nanoseconds.
    counts_ticks: bool,
    first: Reading,
    /// Nanoseconds per tick, times 2^48.
    rate: AtomicU64,
    /// The line by which OS time becomes ticks, guarded by a version that is odd during a change.
    version: AtomicU64,
    line: [AtomicU64; 3],
}

impl Clock {
    /// The clock, started at the first call.
    pub(crate) fn get() -> &'static Self {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        CLOCK.get_or_init(|| {
            let counts_ticks = counter_is_trustworthy();
            let clock = Self {
                base_ns: monotonic_ns(),
                counts_ticks,
                first: Reading { ticks: 0, ns: 0 },
                rate: AtomicU64::new(1 << map::SLOPE_BITS),
                version: AtomicU64::new(0),
                line: [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(1 << 48)],
            };
            let clock = Self { first: clock.read(), ..clock };
            if counts_ticks {
                std::thread::sleep(Duration::from_millis(1));
                clock.publish(&clock.map());
            }
            GATE.reads_counter.store(u8::from(counts_ticks), Ordering::Relaxed);
            clock
        })
    }

    /// `"TSC"` or `"CLOCK_MONOTONIC"`.
    pub(crate) fn source(&self) -> &'static str {
        if GATE.reads_counter() { "TSC" } else { "CLOCK_MONOTONIC" }
    }

    /// A map for the consumer. Its readings follow with [`Clock::follow`].
    pub(crate) fn map(&self) -> ClockMap {
        if self.counts_ticks { ClockMap::new(self.first, self.read()) } else { ClockMap::identity() }
    }

    /// Takes a reading into the map.
    pub(crate) fn follow(&self, map: &mut ClockMap) {
        if self.counts_ticks {
            map.follow(self.read());
            self.publish(map);
        }
    }

    /// Lets producers read the OS clock from now on, in ticks as before: the counter was seen to go back.
    /// True at the first call of a process that used it.
    pub(crate) fn distrust_counter(&self) -> bool {
        GATE.reads_counter.swap(0, Ordering::Relaxed) != 0
    }

    /// Counter and OS clock together: the narrowest of 32 attempts.
    fn read(&self) -> Reading {
        #[cfg(target_arch = "x86_64")]
        if self.counts_ticks {
            let attempts = (0..32).map(|_| {
                let (before, ns, after) = (tsc::read(), monotonic_ns(), tsc::read());
                (
                    after.saturating_sub(before),
                    Reading { ticks: before + after.saturating_sub(before) / 2, ns: ns - self.base_ns },
                )
            });
            if let Some((_, reading)) = attempts.min_by_key(|(width, _)| *width) {
                return reading;
            }
        }
        let ns = monotonic_ns() - self.base_ns;
        Reading { ticks: ns as u64, ns }
    }

    fn publish(&self, map: &ClockMap) {
        let knot = map.last();
        self.rate.store(map.rate(), Ordering::Relaxed);
        self.version.fetch_add(1, Ordering::AcqRel);
        for (word, value) in self.line.iter().zip([knot.at.ticks, knot.at.ns as u64, knot.slope]) {
            word.store(value, Ordering::Release);
        }
        self.version.fetch_add(1, Ordering::Release);
    }

    fn ticks_at(&self, ns: i64) -> u64 {
        loop {
            let version = self.version.load(Ordering::Acquire);
            let [ticks, at_ns, slope] = [0, 1, 2].map(|word: usize| self.line[word].load(Ordering::Acquire));
            if version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version {
                return map::Knot { at: Reading { ticks, ns: at_ns as i64 }, slope }.to_ticks(ns);
            }
            std::hint::spin_loop();
        }
    }
}

/// Is the time stamp counter invariant, and does the kernel keep its own time by it?
fn counter_is_trustworthy() -> bool {
    #[cfg(target_arch = "x86_64")]
    if tsc::is_invariant() {
        const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        return std::fs::read_to_string(CLOCK_SOURCE).is_ok_and(|source| source.trim() == "tsc");
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_map_to_the_os_clock() {
        let clock = Clock::get();
        let mut map = clock.map();
        clock.follow(&mut map);
        for _ in 0..100 {
            let before = monotonic_ns() - clock.base_ns;
            let ns = map.to_ns(Ticks::now().raw());
            let after = monotonic_ns() - clock.base_ns;
            // Half a millisecond: the thread may be interrupted between the readings, the map itself is far closer.
            assert!((before - 500_000..after + 500_000).contains(&ns), "{before} {ns} {after}");
        }
    }

    #[test]
    fn intervals_have_the_length_of_the_os_clock() {
        let scale = TickScale::current();
        let (from, from_ns) = (Ticks::now(), monotonic_ns());
        std::thread::sleep(Duration::from_millis(2));
        let (to, to_ns) = (Ticks::now(), monotonic_ns());
        let (ns, os_ns) = (scale.ns_between(from, to) as i64, to_ns - from_ns);
        // The thread may be interrupted between the readings.
        assert!((ns - os_ns).abs() < 500_000, "{ns} {os_ns}");
        assert_eq!(scale.ns_between(to, from), 0);
    }

    #[test]
    fn moments_of_the_os_clock_fall_between_their_neighbours() {
        let clock = Clock::get();
        let ns = monotonic_ns();
        let ticks = Ticks::from_monotonic_ns(ns as u64);
        let back = clock.map().to_ns(ticks.raw()) + clock.base_ns;
        assert!((back - ns).abs() < 500_000, "{back} {ns}");
    }
}
