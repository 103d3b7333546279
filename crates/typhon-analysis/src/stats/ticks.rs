//! How long ticks were, and which were the longest.

use crate::quantile::Durations;

/// Ticks listed as the longest ones.
pub const WORST_TICKS: usize = 5;

/// Durations of ticks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TickFigures {
    /// Ticks with a duration.
    pub count: u64,
    /// Percentiles and the longest, ns; `None` without ticks.
    pub p50_p95_p99_max_ns: Option<[u64; 4]>,
    /// Shown number and ns of the longest ones, the longest first; equal ones in order of time.
    pub worst: Vec<(i64, u64)>,
}

impl FromIterator<(i64, u64)> for TickFigures {
    /// From shown numbers and durations in ns, in order of time.
    fn from_iter<I: IntoIterator<Item = (i64, u64)>>(ticks: I) -> Self {
        let (mut durations, mut worst) = (Durations::default(), Vec::<(i64, u64)>::new());
        for (number, ns) in ticks {
            durations.push(ns);
            let place = worst.partition_point(|(_, other)| *other >= ns);
            if place < WORST_TICKS {
                worst.insert(place, (number, ns));
                worst.truncate(WORST_TICKS);
            }
        }
        let percentiles = durations.percentiles([50.0, 95.0, 99.0, 100.0]);
        Self {
            count: durations.count(),
            p50_p95_p99_max_ns: percentiles.map(|of| of.map(|percentile| percentile.value)),
            worst,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_come_first_and_equal_ones_in_order_of_time() {
        let figures: TickFigures =
            [(1, 5), (2, 9), (3, 5), (4, 7), (5, 5), (6, 5), (7, 1)].into_iter().collect();
        assert_eq!(figures.worst, [(2, 9), (4, 7), (1, 5), (3, 5), (5, 5)]);
        assert_eq!((figures.count, figures.p50_p95_p99_max_ns), (7, Some([5, 9, 9, 9])));
    }

    #[test]
    fn without_ticks_there_are_no_percentiles() {
        assert_eq!(TickFigures::from_iter([]), TickFigures::default());
    }
}
