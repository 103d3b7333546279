//! How much time a tick moves the world on.

use crate::system::TickInfo;
use typhon_engine::options::TimeStep;

/// Turns the starts of ticks into delta times (brief 04 B-28).
#[derive(Debug, Clone)]
pub struct StepClock {
    time_step: TimeStep,
    fixed_seconds: f64,
    max_delta_seconds: f64,
    previous_start_ns: Option<i64>,
}

impl StepClock {
    /// For ticks of `rate_hz`, at least 1. Measured deltas count up to `max_delta_seconds` or two steps, whichever is
    /// larger.
    pub fn new(time_step: TimeStep, rate_hz: u32, max_delta_seconds: f64) -> Self {
        let fixed_seconds = 1.0 / f64::from(rate_hz.max(1));
        Self { time_step, fixed_seconds, max_delta_seconds, previous_start_ns: None }
    }

    /// Tick `number` starts now, and the next one is due `multiplier` base intervals later. If the moment is before that
    /// of the tick before, no time has passed.
    pub fn start_tick(&mut self, number: i64, now_ns: i64, multiplier: u8) -> TickInfo {
        let elapsed_ns = self
            .previous_start_ns
            .replace(now_ns)
            .map_or(0, |previous_ns| now_ns.saturating_sub(previous_ns).max(0));
        let measured_delta_seconds = elapsed_ns as f64 / 1e9;
        let limit = self.max_delta_seconds.max(2.0 * self.fixed_seconds * f64::from(multiplier));
        let delta_seconds = match self.time_step {
            TimeStep::Measured => measured_delta_seconds.min(limit),
            TimeStep::Fixed => self.fixed_seconds,
        };
        TickInfo { number, delta_seconds, measured_delta_seconds, fixed_delta_seconds: self.fixed_seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP_NS: i64 = 100_000_000;

    /// Delta times of ticks that start at these moments.
    fn deltas(time_step: TimeStep, multiplier: u8, starts_ns: &[i64]) -> Vec<f64> {
        let mut clock = StepClock::new(time_step, 10, 0.25);
        let ticks = starts_ns.iter().zip(0..);
        ticks
            .map(|(&start_ns, number)| clock.start_tick(number, start_ns, multiplier).delta_seconds)
            .collect()
    }

    #[test]
    fn trap16_measured_steps_follow_a_stretched_tick_and_fixed_ones_do_not() {
        let starts = [STEP_NS, 7 * STEP_NS, 13 * STEP_NS];
        assert_eq!(deltas(TimeStep::Measured, 6, &starts), [0.0, 0.6, 0.6]);
        assert_eq!(deltas(TimeStep::Fixed, 6, &starts), [0.1, 0.1, 0.1]);
    }

    #[test]
    fn b28_a_stall_counts_up_to_a_limit_of_at_least_two_steps() {
        let after_an_hour = [0, 3_600_000_000_000];
        assert_eq!(deltas(TimeStep::Measured, 1, &after_an_hour), [0.0, 0.25]);
        assert_eq!(deltas(TimeStep::Measured, 5, &after_an_hour), [0.0, 1.0]);
    }

    #[test]
    fn b28_both_values_are_readable_in_either_mode() {
        for time_step in [TimeStep::Measured, TimeStep::Fixed] {
            let mut clock = StepClock::new(time_step, 10, 0.25);
            clock.start_tick(0, 0, 1);
            let tick = clock.start_tick(1, 3_600_000_000_000, 1);
            assert_eq!((tick.measured_delta_seconds, tick.fixed_delta_seconds), (3600.0, 0.1));
        }
    }
}
