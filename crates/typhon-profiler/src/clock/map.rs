//! From counter ticks to nanoseconds of the trace clock.
#![forbid(unsafe_code)]

/// Fraction bits of a slope.
pub(super) const SLOPE_BITS: u32 = 48;
/// Knots kept before every second old one is left out.
const MAX_KNOTS: usize = 512;
/// A clock that is ahead of the map by more than this is followed by a step; less is slewed.
const STEP_NS: i64 = 1_000_000;
/// Readings closer together than this say more about their own error than about the clock.
const MIN_INTERVAL_NS: i64 = 500_000;
/// The rate is taken over half of this time to all of it, as soon as there is so much.
const BASELINE_NS: i64 = 16_000_000_000;

/// Counter and OS clock at the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Counter.
    pub(crate) ticks: u64,
    /// Trace clock: nanoseconds of the OS clock since the profiler's clock was first used.
    pub(crate) ns: i64,
}

/// Where the line bends: from here on, `slope` nanoseconds per tick.
#[derive(Debug, Clone, Copy)]
pub(super) struct Knot {
    pub(super) at: Reading,
    /// Nanoseconds per tick, times 2^48.
    pub(super) slope: u64,
}

impl Knot {
    fn to_ns(self, ticks: u64) -> i64 {
        let elapsed = i128::from(ticks.wrapping_sub(self.at.ticks) as i64);
        self.at.ns + ((elapsed * i128::from(self.slope)) >> SLOPE_BITS) as i64
    }

    /// The ticks at which the line has this value.
    pub(super) fn to_ticks(self, ns: i64) -> u64 {
        let elapsed = (i128::from(ns - self.at.ns) << SLOPE_BITS) / i128::from(self.slope);
        self.at.ticks.wrapping_add(elapsed as i64 as u64)
    }
}

/// A continuous, increasing, piecewise linear map that follows the OS clock.
///
/// Readings extend the map; what it once said stays. A difference from the OS clock is worked off by the slope of the
/// next piece and never by a step back, so that the order of ticks is the order of nanoseconds.
#[derive(Debug, Clone)]
pub(crate) struct ClockMap {
    knots: Vec<Knot>,
    previous: Reading,
    /// Where the rate is measured from, and where it will be when that is too long ago.
    anchors: [Reading; 2],
    /// Nanoseconds per tick as last measured, times 2^48: without what a slope does to catch up.
    rate: u64,
    largest_residual_ns: u64,
}

impl ClockMap {
    /// A map through two readings, the second later than the first.
    pub(crate) fn new(first: Reading, second: Reading) -> Self {
        let slope = slope(first, second).unwrap_or(1 << SLOPE_BITS);
        Self {
            knots: vec![Knot { at: first, slope }],
            previous: second,
            anchors: [first; 2],
            rate: slope,
            largest_residual_ns: 0,
        }
    }

    /// A map for a counter that already counts trace-clock nanoseconds.
    pub(crate) fn identity() -> Self {
        let zero = Reading { ticks: 0, ns: 0 };
        Self::new(zero, Reading { ticks: 1, ns: 1 })
    }

    /// Trace-clock nanoseconds at a counter value.
    #[inline]
    pub(crate) fn to_ns(&self, ticks: u64) -> i64 {
        let last = self.last();
        if ticks >= last.at.ticks { last.to_ns(ticks) } else { self.to_ns_before(ticks) }
    }

    #[cold]
    fn to_ns_before(&self, ticks: u64) -> i64 {
        let after = self.knots.partition_point(|knot| knot.at.ticks <= ticks);
        self.knots[after.saturating_sub(1)].to_ns(ticks)
    }

    /// Extends the map by a reading taken after all former ones.
    pub(crate) fn follow(&mut self, reading: Reading) {
        if reading.ns - self.previous.ns < MIN_INTERVAL_NS {
            return;
        }
        let Some(rate) = slope(self.anchors[0], reading) else { return };
        self.rate = rate;
        let ns = self.to_ns(reading.ticks);
        let residual = reading.ns - ns;
        self.largest_residual_ns = self.largest_residual_ns.max(residual.unsigned_abs());
        // The next reading is expected after about as long again.
        let interval = reading.ticks.wrapping_sub(self.previous.ticks).max(1);
        let knot = if residual > STEP_NS {
            Knot { at: reading, slope: rate }
        } else {
            // Meet the OS clock one interval from now, at no less than half and no more than twice its rate.
            let correction = (i128::from(residual) << SLOPE_BITS) / i128::from(interval);
            let slope = (i128::from(rate) + correction).clamp(i128::from(rate / 2), i128::from(rate) * 2);
            Knot { at: Reading { ticks: reading.ticks, ns }, slope: slope as u64 }
        };
        self.push(knot);
        self.previous = reading;
        if reading.ns - self.anchors[1].ns >= BASELINE_NS / 2 {
            self.anchors = [self.anchors[1], reading];
        }
    }

    /// Measures residuals afresh.
    pub(crate) fn forget_residual(&mut self) {
        self.largest_residual_ns = 0;
    }

    /// The piece that holds from the last reading on.
    pub(super) fn last(&self) -> Knot {
        self.knots[self.knots.len() - 1]
    }

    /// Nanoseconds per tick as last measured, times 2^48.
    pub(super) fn rate(&self) -> u64 {
        self.rate
    }

    /// Largest difference from the OS clock at a reading.
    pub(crate) fn largest_residual_ns(&self) -> u64 {
        self.largest_residual_ns
    }

    fn push(&mut self, knot: Knot) {
        self.knots.push(knot);
        if self.knots.len() > MAX_KNOTS {
            let old = self.knots.len() - MAX_KNOTS / 4;
            let mut at = 0;
            self.knots.retain(|_| {
                at += 1;
                at > old || at % 2 == 1
            });
            for at in 0..old / 2 {
                let (from, to) = (self.knots[at].at, self.knots[at + 1].at);
                self.knots[at].slope = slope(from, to).unwrap_or(self.knots[at].slope);
            }
        }
    }
}

/// Nanoseconds per tick between two readings, times 2^48; `None` when the counter or the clock did not advance.
fn slope(from: Reading, to: Reading) -> Option<u64> {
    let ticks = to.ticks.checked_sub(from.ticks).filter(|ticks| *ticks > 0)?;
    let ns = u64::try_from(to.ns - from.ns).ok().filter(|ns| *ns > 0)?;
    u64::try_from((u128::from(ns) << SLOPE_BITS) / u128::from(ticks)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TICKS_PER_SECOND: u64 = 2_445_000_000;

    /// A counter of 2.445 GHz and an OS clock that runs `ppm` away from it.
    fn reading(second: f64, ppm: f64, noise_ns: i64) -> Reading {
        Reading {
            ticks: 77_000_000_000 + (second * TICKS_PER_SECOND as f64) as u64,
            ns: (second * 1e9 * (1.0 + ppm / 1e6)) as i64 + noise_ns,
        }
    }

    #[test]
    fn follows_a_drifting_clock_within_a_microsecond() {
        let mut map = ClockMap::new(reading(0.0, 0.0, 0), reading(0.001, 0.0, 40));
        let mut at = 0.002;
        let mut step = 0.001;
        for round in 0..200 {
            let now = reading(at, 30.0, if round % 2 == 0 { 30 } else { -30 });
            if round > 2 {
                assert!((map.to_ns(now.ticks) - now.ns).abs() < 1_000, "round {round}");
            }
            map.follow(now);
            step = f64::min(step * 2.0, 1.0);
            at += step;
        }
    }

    #[test]
    fn steps_forward_but_never_back() {
        let mut map = ClockMap::new(reading(0.0, 0.0, 0), reading(1.0, 0.0, 0));
        let jumped = reading(2.0, 0.0, 5_000_000);
        map.follow(jumped);
        assert_eq!(map.to_ns(jumped.ticks), jumped.ns);
        let back = reading(3.0, 0.0, 0);
        let before = map.to_ns(back.ticks);
        map.follow(back);
        assert_eq!(map.to_ns(back.ticks), before);
        assert!(map.to_ns(back.ticks + 1_000) > before);
    }

    #[test]
    fn inverse_meets_the_line() {
        let mut map = ClockMap::new(reading(0.0, 0.0, 0), reading(1.0, 0.0, 0));
        map.follow(reading(2.0, 10.0, 0));
        map.follow(Reading { ns: map.previous.ns + MIN_INTERVAL_NS - 1, ..reading(2.0, 900.0, 0) });
        assert_eq!(map.knots.len(), 2, "a reading that comes too soon is left out");
        for second in [0.5, 2.0, 2.5, 1_000.0] {
            let ticks = reading(second, 0.0, 0).ticks;
            let there = map.last().to_ns(ticks);
            assert!(map.last().to_ticks(there).abs_diff(ticks) <= 3);
        }
    }

    proptest! {
        /// Whatever the readings, later ticks never map to earlier nanoseconds, also when old knots are thinned out.
        #[test]
        fn order_of_ticks_is_order_of_nanoseconds(
            noise in proptest::collection::vec(-2_000_000i64..2_000_000, 1..1500),
            probes in proptest::collection::vec(0.0f64..2.0, 2..50),
        ) {
            let mut map = ClockMap::new(reading(0.0, 0.0, 0), reading(0.001, 0.0, 0));
            for (index, noise) in noise.iter().enumerate() {
                map.follow(reading(0.002 + index as f64 * 0.001, 0.0, *noise));
            }
            let mut ticks: Vec<u64> = probes.iter().map(|second| reading(*second, 0.0, 0).ticks).collect();
            ticks.extend(map.knots.iter().flat_map(|knot| [knot.at.ticks - 1, knot.at.ticks]));
            ticks.sort_unstable();
            for pair in ticks.windows(2) {
                prop_assert!(map.to_ns(pair[0]) <= map.to_ns(pair[1]));
            }
        }
    }
}
