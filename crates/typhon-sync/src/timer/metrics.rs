//! How well timers keep their time.
#![forbid(unsafe_code)]

/// Weight of the newest error in the mean.
const WEIGHT: f64 = 0.01;
/// A callback that takes longer than this holds up the other timers of its thread.
pub(super) const SLOW_NS: i64 = 100_000;

/// All timers of a service together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ServiceMetrics {
    /// Callbacks that were run.
    pub ticks: u64,
    /// Intervals that were skipped.
    pub missed: u64,
    /// How late the last callback began, in µs.
    pub last_error_us: f64,
    /// How late callbacks begin, in µs: a mean in which the newest has a weight of 0.01.
    pub mean_error_us: f64,
    /// How late the latest callback began, in µs.
    pub max_error_us: f64,
}

/// One timer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimerMetrics {
    /// Runs of its callback.
    pub invocations: u64,
    /// Intervals that were skipped.
    pub missed: u64,
    /// How long the last run took, in ns.
    pub last_ns: i64,
    /// How long the longest run took, in ns.
    pub max_ns: i64,
    /// Runs of more than 100 µs.
    pub slow: u64,
    /// Runs that ended in a panic.
    pub panics: u64,
}

impl ServiceMetrics {
    pub(super) fn tick(&mut self, late_ns: i64, missed: u64) {
        let error_us = late_ns as f64 / 1_000.0;
        self.mean_error_us = if self.ticks == 0 {
            error_us
        } else {
            self.mean_error_us + WEIGHT * (error_us - self.mean_error_us)
        };
        self.ticks += 1;
        self.missed += missed;
        self.last_error_us = error_us;
        self.max_error_us = self.max_error_us.max(error_us);
    }
}

impl TimerMetrics {
    pub(super) fn run(&mut self, took_ns: i64, missed: u64, has_panicked: bool) {
        self.invocations += 1;
        self.missed += missed;
        self.last_ns = took_ns;
        self.max_ns = self.max_ns.max(took_ns);
        self.slow += u64::from(took_ns > SLOW_NS);
        self.panics += u64::from(has_panicked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b26_errors_have_a_last_a_slow_mean_and_a_maximum() {
        let mut metrics = ServiceMetrics::default();
        metrics.tick(10_000, 0);
        assert_eq!((metrics.mean_error_us, metrics.max_error_us), (10.0, 10.0));
        metrics.tick(110_000, 2);
        metrics.tick(11_000, 0);
        assert_eq!((metrics.ticks, metrics.missed), (3, 2));
        assert_eq!((metrics.last_error_us, metrics.max_error_us), (11.0, 110.0));
        assert!((metrics.mean_error_us - 11.0).abs() < 1e-9);
    }
}
