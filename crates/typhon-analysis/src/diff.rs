//! What got slower, what got faster, between two recordings (brief 11 §2.4, Compare).
//!
//! Two runs never agree exactly, so a difference counts only when it is both unlikely to be chance (rank-sum test over all
//! single durations) and large enough to matter (relative change of the mean), in the same direction: a mean that one
//! outlier moved does not count.

use crate::rank_sum::rank_sum;
use crate::stats::Row;
use std::collections::BTreeMap;

/// When a difference counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiffOptions {
    /// Smallest relative change of the mean: 0.05 = 5 %.
    pub threshold: f64,
    /// Largest p-value.
    pub max_p: f64,
    /// Spans that each side must have; the test's approximation needs about 20.
    pub min_count: u64,
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self { threshold: 0.05, max_p: 0.01, min_count: 30 }
    }
}

/// One side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// Spans.
    pub count: u64,
    /// Sum of durations, ns.
    pub total_ns: u64,
    /// Mean duration, ns.
    pub mean_ns: f64,
    /// Median duration, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
}

/// How a name changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Not by enough, or it may be chance.
    None,
    /// It takes longer in B.
    Slower,
    /// It takes less time in B.
    Faster,
    /// Only B has it, at least [`DiffOptions::min_count`] times.
    Added,
    /// Only A has it, at least [`DiffOptions::min_count`] times.
    Removed,
    /// One side has too few spans to tell.
    TooFew,
}

impl Change {
    /// Does it count as a difference between the recordings?
    pub fn is_significant(self) -> bool {
        !matches!(self, Self::None | Self::TooFew)
    }
}

/// A name in both recordings.
#[derive(Debug, Clone, PartialEq)]
pub struct DiffRow {
    /// The name.
    pub key: String,
    /// First recording; `None` when it has no such span.
    pub a: Option<Side>,
    /// Second recording.
    pub b: Option<Side>,
    /// Relative change of the mean from A to B.
    pub relative_change: Option<f64>,
    /// p-value of the rank-sum test, where it was made.
    pub p: Option<f64>,
    /// The verdict.
    pub change: Change,
}

impl DiffRow {
    /// Change of the total, ns: what the difference costs.
    pub fn total_change_ns(&self) -> i64 {
        let total =
            |side: &Option<Side>| side.map_or(0, |side| i64::try_from(side.total_ns).unwrap_or(i64::MAX));
        total(&self.b).saturating_sub(total(&self.a))
    }
}

/// Compares rows by their keys; largest change of the total first, rows that differ before those that do not.
pub fn diff(a: &[Row], b: &[Row], options: DiffOptions) -> Vec<DiffRow> {
    let mut pairs: BTreeMap<&str, (Option<&Row>, Option<&Row>)> = BTreeMap::new();
    a.iter().filter(|row| row.spans > 0).for_each(|row| pairs.entry(&row.key).or_default().0 = Some(row));
    b.iter().filter(|row| row.spans > 0).for_each(|row| pairs.entry(&row.key).or_default().1 = Some(row));
    let mut rows: Vec<DiffRow> =
        pairs.into_iter().map(|(key, (a, b))| compare(key.to_owned(), a, b, options)).collect();
    rows.sort_by_key(|row| {
        (!row.change.is_significant(), std::cmp::Reverse(row.total_change_ns().unsigned_abs()))
    });
    rows
}

fn compare(key: String, a: Option<&Row>, b: Option<&Row>, options: DiffOptions) -> DiffRow {
    let row =
        DiffRow { key, a: a.map(side), b: b.map(side), relative_change: None, p: None, change: Change::None };
    let (a, b) = match (a, b) {
        (Some(a), Some(b)) => (a, b),
        (Some(a), None) if a.spans >= options.min_count => return DiffRow { change: Change::Removed, ..row },
        (None, Some(b)) if b.spans >= options.min_count => return DiffRow { change: Change::Added, ..row },
        _ => return DiffRow { change: Change::TooFew, ..row },
    };
    let relative_change = if a.mean_ns() > 0.0 { Some(b.mean_ns() / a.mean_ns() - 1.0) } else { None };
    if a.spans < options.min_count || b.spans < options.min_count {
        return DiffRow { relative_change, change: Change::TooFew, ..row };
    }
    let Some(test) = rank_sum(&a.durations_ns.weighted(), &b.durations_ns.weighted()) else { return row };
    let change = match relative_change {
        _ if test.p >= options.max_p => Change::None,
        // From nothing to something: no percentage, but the test has spoken.
        None if b.mean_ns() > 0.0 => Change::Slower,
        Some(change) if change >= options.threshold && test.superiority > 0.5 => Change::Slower,
        Some(change) if change <= -options.threshold && test.superiority < 0.5 => Change::Faster,
        _ => Change::None,
    };
    DiffRow { relative_change, p: Some(test.p), change, ..row }
}

fn side(row: &Row) -> Side {
    Side {
        count: row.spans,
        total_ns: row.total_ns,
        mean_ns: row.mean_ns(),
        p50_ns: row.p50_p95_p99_ns[0],
        p99_ns: row.p50_p95_p99_ns[2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantile::Durations;

    fn row(key: &str, values: impl IntoIterator<Item = u64>) -> Row {
        let mut durations_ns = Durations::default();
        let (mut total_ns, mut max_ns) = (0, 0);
        for value in values {
            durations_ns.push(value);
            total_ns += value;
            max_ns = max_ns.max(value);
        }
        let spans = durations_ns.count();
        Row {
            key: key.to_owned(),
            count: spans,
            spans,
            total_ns,
            self_ns: total_ns,
            min_ns: 0,
            max_ns,
            sigma_ns: 0.0,
            p50_p95_p99_ns: [0; 3],
            is_approximate: false,
            durations_ns,
        }
    }

    fn change(a: Row, b: Row) -> Change {
        diff(&[a], &[b], DiffOptions::default())[0].change
    }

    #[test]
    fn a_shift_of_all_values_counts_in_both_directions() {
        let slow = || row("Move", (0..100).map(|n| 1_600 + n));
        let fast = || row("Move", (0..100).map(|n| 1_000 + n));
        assert_eq!(change(fast(), slow()), Change::Slower);
        assert_eq!(change(slow(), fast()), Change::Faster);
        assert_eq!(change(fast(), fast()), Change::None);
    }

    #[test]
    fn one_outlier_moves_the_mean_but_is_no_change() {
        let usual = || (0..100).map(|n| 1_000 + n);
        let with_outlier = row("Move", usual().skip(1).chain([100_000]));
        assert_eq!(change(row("Move", usual()), with_outlier), Change::None);
    }

    #[test]
    fn a_certain_but_small_shift_is_no_change() {
        let a = row("Move", (0..2_000).map(|n| 10_000 + n % 10));
        let b = row("Move", (0..2_000).map(|n| 10_100 + n % 10));
        assert_eq!(change(a, b), Change::None);
    }

    #[test]
    fn few_values_prove_nothing() {
        assert_eq!(change(row("Move", [1; 29]), row("Move", [9; 500])), Change::TooFew);
    }

    #[test]
    fn names_of_one_side_are_added_or_removed() {
        let rows =
            diff(&[row("Old", [5; 40])], &[row("New", [5; 40]), row("Rare", [5])], DiffOptions::default());
        let verdicts: Vec<_> = rows.iter().map(|row| (row.key.as_str(), row.change)).collect();
        assert_eq!(verdicts, [("New", Change::Added), ("Old", Change::Removed), ("Rare", Change::TooFew)]);
    }
}
