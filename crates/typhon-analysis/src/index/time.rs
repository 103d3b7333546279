//! Trace-clock ticks and the nanoseconds of a session, in both directions.

use crate::clock::Clock;

const NS_PER_SECOND: i128 = 1_000_000_000;

/// The time axis of a session: 0 ns is the earliest start of a record, so every time on it is ≥ 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeBase {
    clock: Clock,
    zero_ticks: i64,
    /// Nanoseconds per tick where that is a whole number, else 0. A division per span would be felt.
    ns_per_tick: i64,
}

impl TimeBase {
    /// An axis that begins at `zero_ticks`.
    pub fn new(clock: Clock, zero_ticks: i64) -> Self {
        let per_second = i128::from(clock.ticks_per_second());
        let ns_per_tick =
            if NS_PER_SECOND % per_second == 0 { (NS_PER_SECOND / per_second) as i64 } else { 0 };
        Self { clock, zero_ticks, ns_per_tick }
    }

    /// The trace clock.
    pub fn clock(self) -> Clock {
        self.clock
    }

    /// The timestamp that is 0 ns.
    pub fn zero_ticks(self) -> i64 {
        self.zero_ticks
    }

    /// Nanoseconds of a timestamp, ≥ 0: moments before the beginning count as the beginning.
    #[inline]
    pub fn ns(self, ticks: i64) -> u64 {
        self.ns_of_duration(ticks.saturating_sub(self.zero_ticks))
    }

    /// Nanoseconds of a number of ticks; 0 for negative ones.
    #[inline]
    pub fn ns_of_duration(self, ticks: i64) -> u64 {
        let ns = match self.ns_per_tick {
            1 => ticks,
            0 => self.clock.to_ns(ticks),
            ns_per_tick => ticks.saturating_mul(ns_per_tick),
        };
        ns.max(0) as u64
    }

    /// Does a timestamp stand for all later ones too, because there are no ticks or no nanoseconds behind it?
    pub(crate) fn is_last(self, ticks: i64) -> bool {
        let since_zero = ticks.saturating_sub(self.zero_ticks);
        [ticks, since_zero].contains(&i64::MAX) || self.ns_of_duration(since_zero) == i64::MAX as u64
    }

    /// A span of so many nanoseconds has no more ticks than this, wherever it begins, if its end is none of the last
    /// ([`TimeBase::is_last`]).
    pub(crate) fn most_ticks(self, ns: u64) -> i64 {
        let per_second = i128::from(self.clock.ticks_per_second());
        // Either end of a span is rounded down on its own.
        let ticks = (i128::from(ns) + 1) * per_second / NS_PER_SECOND + 1;
        ticks.min(i64::MAX.into()) as i64
    }

    /// The first timestamp that is at or after `ns`: `self.ns(t) >= ns` holds exactly from it on.
    #[inline]
    pub fn first_tick_at(self, ns: u64) -> i64 {
        let per_second = i128::from(self.clock.ticks_per_second());
        let ticks = (i128::from(ns) * per_second + (NS_PER_SECOND - 1)) / NS_PER_SECOND;
        (i128::from(self.zero_ticks) + ticks).clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn first_tick_at_is_the_inverse_of_ns(
            frequency in prop::sample::select(vec![1_000_000_000, 10_000_000, 3_000_000, 2_918_400_000i64]),
            zero in -1_000_000i64..1_000_000,
            ns in 0u64..10_000_000_000,
        ) {
            let time = TimeBase::new(Clock::new(frequency), zero);
            let tick = time.first_tick_at(ns);
            prop_assert!(time.ns(tick) >= ns);
            prop_assert!(ns == 0 || time.ns(tick - 1) < ns);
        }

        #[test]
        fn most_ticks_holds_for_every_span(
            frequency in prop::sample::select(vec![1_000_000_000, 10_000_000, 3_000_000, 2_918_400_000i64]),
            start in 0i64..1_000_000,
            length in 0i64..1_000_000_000,
        ) {
            let time = TimeBase::new(Clock::new(frequency), 0);
            prop_assert!(length <= time.most_ticks(time.ns(start + length) - time.ns(start)));
        }
    }

    #[test]
    fn the_whole_range_of_timestamps_has_a_place() {
        let time = TimeBase::new(Clock::new(10_000_000), i64::MIN);
        assert_eq!(time.ns(i64::MIN), 0);
        assert_eq!(time.ns(i64::MAX), i64::MAX as u64);
        assert!(time.first_tick_at(u64::MAX) > i64::MIN);
    }
}
