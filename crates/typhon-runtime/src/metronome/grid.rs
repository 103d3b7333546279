//! The moments at which ticks are due.

const NS_PER_SECOND: i128 = 1_000_000_000;

/// Moments that are whole numbers of base intervals after a start.
///
/// The interval is the fraction 1 s / rate and is never rounded: only the moment that it leads to is. At 60 Hz an
/// interval rounded to a nanosecond would be off by 1.7 ms after a day.
#[derive(Debug, Clone)]
pub struct Grid {
    start_ns: i64,
    rate_hz: u32,
    max_catch_up_steps: u32,
    /// Base intervals between the start and the latest target.
    position: i128,
}

/// The next moment at which a tick is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The moment, on the clock of the start.
    pub at_ns: i64,
    /// Base intervals since the previous target, skipped ones included.
    pub intervals: u64,
    /// Ticks that were skipped because there was too much to catch up.
    pub missed_ticks: u64,
}

impl Grid {
    /// A grid of `rate_hz` moments per second, at least 1, that begins one interval after `start_ns`.
    pub fn new(start_ns: i64, rate_hz: u32, max_catch_up_steps: u32) -> Self {
        Self { start_ns, rate_hz: rate_hz.max(1), max_catch_up_steps, position: 0 }
    }

    /// Base interval, rounded down to a nanosecond.
    pub fn interval_ns(&self) -> i64 {
        (NS_PER_SECOND / i128::from(self.rate_hz)) as i64
    }

    /// The target after the latest one, `multiplier` base intervals (a step) later. If that is more than the allowed
    /// number of steps before `now_ns`, the fewest steps are skipped that leave no more than that to catch up.
    /// The first target is one base interval after the start, whatever the multiplier.
    pub fn advance(&mut self, now_ns: i64, multiplier: u8) -> Target {
        let step = i128::from(multiplier.max(1));
        let next = self.position + if self.position == 0 { 1 } else { step };
        // In units of 1 ns / rate, in which every moment of the grid is a whole number.
        let elapsed = i128::from(now_ns - self.start_ns) * i128::from(self.rate_hz);
        let allowed = (next + i128::from(self.max_catch_up_steps) * step) * NS_PER_SECOND;
        let per_step = step * NS_PER_SECOND;
        let missed = (elapsed - allowed + per_step - 1).max(0) / per_step;
        let position = next + missed * step;
        let intervals = (position - self.position) as u64;
        self.position = position;
        Target { at_ns: self.moment_ns(), intervals, missed_ticks: missed as u64 }
    }

    fn moment_ns(&self) -> i64 {
        self.start_ns + (self.position * NS_PER_SECOND / i128::from(self.rate_hz)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn b24_sixty_hertz_does_not_drift_in_a_day() {
        let mut grid = Grid::new(77, 60, 4);
        let mut at_ns = 77;
        for tick in 1..=60 * 86_400_i64 {
            at_ns = grid.advance(at_ns, 1).at_ns;
            if tick % 60 == 0 {
                assert_eq!(at_ns, 77 + tick / 60 * SECOND);
            }
        }
        assert_ne!(86_400 * 60 * grid.interval_ns(), 86_400 * SECOND, "whole intervals would have drifted");
    }

    #[test]
    fn b27_the_first_target_is_one_interval_after_the_start() {
        let first = Grid::new(5 * SECOND, 10, 4).advance(5 * SECOND, 6);
        assert_eq!(first, Target { at_ns: 5 * SECOND + SECOND / 10, intervals: 1, missed_ticks: 0 });
    }

    #[test]
    fn b27_up_to_four_late_ticks_run_at_once_and_on_the_grid() {
        let mut grid = Grid::new(0, 10, 4);
        grid.advance(0, 1);
        // 0.6 s: the target at 0.2 s is exactly four steps late.
        let targets: Vec<_> = (0..5).map(|_| grid.advance(SECOND * 6 / 10, 1)).collect();
        assert!(targets.iter().all(|target| target.missed_ticks == 0 && target.intervals == 1));
        assert_eq!(targets.last().unwrap().at_ns, SECOND * 6 / 10);
    }

    #[test]
    fn trap18_after_a_suspend_four_steps_are_caught_up_and_the_rest_is_counted() {
        let mut grid = Grid::new(0, 60, 4);
        grid.advance(0, 1);
        let now_ns = 3600 * SECOND;
        let target = grid.advance(now_ns, 1);
        assert_eq!(target.at_ns, (3600 * 60 - 4) * SECOND / 60);
        assert_eq!(target.intervals, target.missed_ticks + 1);
        assert_eq!(target.missed_ticks, 3600 * 60 - 4 - 2);
        let late = (0..).map(|_| grid.advance(now_ns, 1)).take_while(|target| target.at_ns <= now_ns).count();
        assert_eq!(late, 4, "then the grid is ahead again");
    }

    #[test]
    fn b27_steps_grow_with_the_multiplier() {
        let mut grid = Grid::new(0, 60, 4);
        grid.advance(0, 1);
        assert_eq!(grid.advance(0, 3), Target { at_ns: SECOND * 4 / 60, intervals: 3, missed_ticks: 0 });
        // The target at 7/60 would be 9 steps of 3 late: five steps are skipped.
        let target = grid.advance(SECOND * 34 / 60, 3);
        assert_eq!((target.missed_ticks, target.intervals), (5, 18));
    }

    proptest! {
        #[test]
        fn b27_the_fewest_steps_are_skipped_that_leave_four(
            rate_hz in 1u32..=1000,
            steps in prop::collection::vec((0..20 * SECOND, 1u8..=6), 1..50),
        ) {
            let mut grid = Grid::new(123, rate_hz, 4);
            let (mut now_ns, mut position, mut last_ns) = (123, 0u64, 123);
            for (elapsed_ns, multiplier) in steps {
                now_ns += elapsed_ns;
                let target = grid.advance(now_ns, multiplier);
                position += target.intervals;
                let on_grid = i128::from(position) * NS_PER_SECOND / i128::from(rate_hz);
                prop_assert_eq!(i128::from(target.at_ns - 123), on_grid);
                prop_assert!(target.at_ns > last_ns);
                last_ns = target.at_ns;
                // Exact lateness, in units of 1 ns / rate.
                let late = i128::from(now_ns - 123) * i128::from(rate_hz) - i128::from(position) * NS_PER_SECOND;
                let step = i128::from(multiplier) * NS_PER_SECOND;
                prop_assert!(late <= 4 * step);
                if target.missed_ticks > 0 {
                    prop_assert!(late + step > 4 * step, "one step less would have left too much");
                }
            }
        }
    }
}
