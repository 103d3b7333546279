use crate::nettrace::TraceInfo;

/// How a target's clock relates to ours.
///
/// The runtime reads its clock while it answers the request that starts a session, so that reading lies between our
/// readings before the request and after the answer. If the two clocks may be one (the usual case on one machine: both
/// are `CLOCK_MONOTONIC`), they are taken as one, without error. Otherwise the offset is known up to half the
/// interval, and [`narrow`](Self::narrow) uses that no event arrives before it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockSync {
    ticks_per_second: u64,
    /// Bounds of (our clock − target's clock), ns.
    low_ns: i128,
    high_ns: i128,
}

impl ClockSync {
    /// `before_ns` and `after_ns` are our monotonic clock just before the request and just after its answer.
    pub fn new(before_ns: u64, after_ns: u64, trace: &TraceInfo) -> Self {
        let sync_ns = ticks_to_ns(trace.sync_ticks, trace.ticks_per_second);
        Self {
            ticks_per_second: trace.ticks_per_second,
            low_ns: i128::from(before_ns) - sync_ns,
            high_ns: i128::from(after_ns.max(before_ns)) - sync_ns,
        }
    }

    /// Whether the target's clock is taken to be ours.
    pub fn is_same_clock(&self) -> bool {
        (self.low_ns..=self.high_ns).contains(&0)
    }

    /// What to add to the target's time to get ours, ns. 0 for the same clock.
    pub fn offset_ns(&self) -> i64 {
        let offset = if self.is_same_clock() { 0 } else { self.low_ns.midpoint(self.high_ns) };
        offset.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Largest error of [`offset_ns`](Self::offset_ns), ns. 0 for the same clock.
    pub fn uncertainty_ns(&self) -> u64 {
        if self.is_same_clock() {
            0
        } else {
            u64::try_from((self.high_ns - self.low_ns) / 2).unwrap_or(u64::MAX)
        }
    }

    /// Uses that an event of time `ticks` was seen at `arrival_ns` of our clock. Meant for a session's first batches,
    /// before any time has been converted; a contradiction is ignored.
    pub fn narrow(&mut self, ticks: u64, arrival_ns: u64) {
        let high = i128::from(arrival_ns) - ticks_to_ns(ticks, self.ticks_per_second);
        if high >= self.low_ns {
            self.high_ns = self.high_ns.min(high);
        }
    }

    /// A time of the target on our monotonic clock, ns; 0 if it lies before that clock began.
    pub fn to_host_ns(&self, ticks: u64) -> u64 {
        let ns = ticks_to_ns(ticks, self.ticks_per_second) + i128::from(self.offset_ns());
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }

    /// A time of our monotonic clock in the target's ticks; 0 if it lies before the target's clock began.
    pub fn to_target_ticks(&self, host_ns: u64) -> u64 {
        let ns = (i128::from(host_ns) - i128::from(self.offset_ns())).max(0);
        u64::try_from(ns * i128::from(self.ticks_per_second) / 1_000_000_000).unwrap_or(u64::MAX)
    }

    /// A length in the target's ticks as ns.
    pub fn duration_ns(&self, ticks: u64) -> u64 {
        u64::try_from(ticks_to_ns(ticks, self.ticks_per_second)).unwrap_or(u64::MAX)
    }
}

fn ticks_to_ns(ticks: u64, ticks_per_second: u64) -> i128 {
    i128::from(ticks) * 1_000_000_000 / i128::from(ticks_per_second.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nettrace::UtcTime;

    fn trace(sync_ticks: u64, ticks_per_second: u64) -> TraceInfo {
        let sync_utc = UtcTime {
            year: 0,
            month: 0,
            day_of_week: 0,
            day: 0,
            hour: 0,
            minute: 0,
            second: 0,
            millisecond: 0,
        };
        TraceInfo {
            version: 4,
            min_reader: 4,
            sync_utc,
            sync_ticks,
            ticks_per_second,
            pointer_bytes: 8,
            process_id: 1,
            processors: 1,
            cpu_sampling_period_ns: 0,
        }
    }

    #[test]
    fn b6_one_clock_needs_no_offset() {
        let clock = ClockSync::new(1_000, 45_001_000, &trace(30_000_000, 1_000_000_000));
        assert!(clock.is_same_clock());
        assert_eq!((clock.offset_ns(), clock.uncertainty_ns()), (0, 0));
        assert_eq!((clock.to_host_ns(123), clock.to_target_ticks(123)), (123, 123));
    }

    #[test]
    fn b6_another_clock_is_placed_midway_and_narrowed_by_arrivals() {
        // 10 MHz, target at 5 s when we are somewhere in 1.000..1.040 s.
        let mut clock = ClockSync::new(1_000_000_000, 1_040_000_000, &trace(50_000_000, 10_000_000));
        assert_eq!((clock.offset_ns(), clock.uncertainty_ns()), (-3_980_000_000, 20_000_000));
        assert_eq!(clock.to_host_ns(50_000_010), 1_020_001_000);
        assert_eq!(clock.to_target_ticks(1_020_001_000), 50_000_010);
        // Seen at 1.110 s with the target's time 5.1 s: it cannot be more than 10 ms after `before`.
        clock.narrow(51_000_000, 1_110_000_000);
        assert_eq!((clock.offset_ns(), clock.uncertainty_ns()), (-3_995_000_000, 5_000_000));
        // A contradiction (arrival before the earliest possible time) changes nothing.
        clock.narrow(51_000_000, 0);
        assert_eq!(clock.uncertainty_ns(), 5_000_000);
    }

    #[test]
    fn extreme_values_saturate() {
        let clock = ClockSync::new(0, u64::MAX, &trace(u64::MAX, 1));
        assert_eq!(clock.to_host_ns(0), 0);
        assert_eq!(clock.duration_ns(u64::MAX), u64::MAX);
        let clock = ClockSync::new(u64::MAX, 0, &trace(0, i64::MAX as u64));
        assert_eq!(clock.to_target_ticks(0), 0);
    }
}
