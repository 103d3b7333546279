//! How well ticks keep their time.

/// Weight of the latest tick in the average error.
const AVERAGE_WEIGHT: f64 = 0.01;

/// How many ticks there were and how far from their moments they started (brief 04 B-29).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TimerMetrics {
    /// Ticks that started.
    pub ticks: u64,
    /// Ticks that were skipped because there was too much to catch up.
    pub missed_ticks: u64,
    /// By how much the latest tick started after its moment, in microseconds.
    pub last_error_us: f64,
    /// The same on exponential average, of which the latest tick is a hundredth.
    pub average_error_us: f64,
    /// The largest one so far.
    pub max_error_us: f64,
}

impl TimerMetrics {
    pub(super) fn record(&mut self, late_ns: i64, missed_ticks: u64) {
        let error_us = late_ns.max(0) as f64 / 1_000.0;
        let is_first = self.ticks == 0;
        self.ticks += 1;
        self.missed_ticks += missed_ticks;
        self.last_error_us = error_us;
        self.max_error_us = self.max_error_us.max(error_us);
        let average = self.average_error_us + AVERAGE_WEIGHT * (error_us - self.average_error_us);
        self.average_error_us = if is_first { error_us } else { average };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b29_errors_are_kept_as_last_average_and_largest() {
        let mut metrics = TimerMetrics::default();
        metrics.record(100_000, 0);
        assert_eq!(metrics.average_error_us, 100.0);
        metrics.record(300_000, 7);
        metrics.record(200_000, 1);
        assert_eq!((metrics.ticks, metrics.missed_ticks), (3, 8));
        assert_eq!((metrics.last_error_us, metrics.max_error_us), (200.0, 300.0));
        assert!((metrics.average_error_us - 102.98).abs() < 1e-9, "{}", metrics.average_error_us);
    }
}
