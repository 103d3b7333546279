//! From trace-clock ticks to nanoseconds.

/// Converts ticks of a trace clock to nanoseconds, exactly and without overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    ticks_per_second: i64,
}

impl Clock {
    /// A clock of `ticks_per_second` (header field TimestampFrequency, > 0; the reader refuses others).
    pub fn new(ticks_per_second: i64) -> Self {
        Self { ticks_per_second: ticks_per_second.max(1) }
    }

    /// Ticks per second.
    pub fn ticks_per_second(self) -> i64 {
        self.ticks_per_second
    }

    /// Nanoseconds of a tick count, rounded towards zero and saturating at the ends of i64.
    #[inline]
    pub fn to_ns(self, ticks: i64) -> i64 {
        const NS_PER_SECOND: i64 = 1_000_000_000;
        if self.ticks_per_second == NS_PER_SECOND {
            return ticks;
        }
        let ns = i128::from(ticks) * i128::from(NS_PER_SECOND) / i128::from(self.ticks_per_second);
        ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    #[test]
    fn nanosecond_clock_is_the_identity() {
        assert_eq!(Clock::new(1_000_000_000).to_ns(i64::MIN), i64::MIN);
        assert_eq!(Clock::new(1_000_000_000).to_ns(-7), -7);
    }

    #[test]
    fn other_clocks_convert_without_overflow() {
        assert_eq!(Clock::new(10_000_000).to_ns(25), 2_500);
        assert_eq!(Clock::new(1_000_000).to_ns(i64::MAX), i64::MAX);
        assert_eq!(Clock::new(3_000_000).to_ns(-1), -333);
    }
}
