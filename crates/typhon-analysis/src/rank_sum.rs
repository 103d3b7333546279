//! Are two sets of durations different? The Wilcoxon–Mann–Whitney rank-sum test (brief 11 §2.4, Compare).
//!
//! It asks whether a value of one set tends to be larger than one of the other and assumes nothing about the shape of the
//! distribution, which for durations is never normal. Ties share their mean rank; the normal approximation is used, with
//! tie and continuity correction, so each set should hold at least 20 values.

/// Outcome of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankSum {
    /// Two-sided p-value: the chance of a difference at least this large when both sets come from one distribution.
    pub p: f64,
    /// Chance that a random value of `b` is larger than one of `a`, ties counting half; 0.5 = no difference.
    pub superiority: f64,
}

/// Compares two sets given as (value, count) in ascending order of value. `None` when one is empty.
pub fn rank_sum(a: &[(u64, u64)], b: &[(u64, u64)]) -> Option<RankSum> {
    let total = |set: &[(u64, u64)]| set.iter().map(|(_, count)| *count as f64).sum::<f64>();
    let (n_a, n_b) = (total(a), total(b));
    if n_a == 0.0 || n_b == 0.0 {
        return None;
    }
    let (mut below, mut wins_of_b, mut ties) = (0.0, 0.0, 0.0);
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let Some(value) = [a.peek(), b.peek()].into_iter().flatten().map(|(value, _)| *value).min() {
        let take = |set: &mut std::iter::Peekable<std::slice::Iter<'_, (u64, u64)>>| {
            set.next_if(|(v, _)| *v == value).map_or(0.0, |(_, count)| *count as f64)
        };
        let (in_a, in_b) = (take(&mut a), take(&mut b));
        wins_of_b += in_b * (below + in_a / 2.0);
        below += in_a;
        let tied = in_a + in_b;
        ties += tied * tied * tied - tied;
    }
    let n = n_a + n_b;
    let mean = n_a * n_b / 2.0;
    let variance = n_a * n_b / 12.0 * (n + 1.0 - ties / (n * (n - 1.0)));
    let p = if variance > 0.0 {
        let z = ((wins_of_b - mean).abs() - 0.5).max(0.0) / variance.sqrt();
        libm::erfc(z / std::f64::consts::SQRT_2)
    } else {
        1.0
    };
    Some(RankSum { p, superiority: wins_of_b / (n_a * n_b) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(values: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
        let mut values: Vec<u64> = values.into_iter().collect();
        values.sort_unstable();
        values.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect()
    }

    #[test]
    fn equal_sets_do_not_differ() {
        let a = set(0..100);
        let outcome = rank_sum(&a, &a).unwrap();
        assert_eq!((outcome.p, outcome.superiority), (1.0, 0.5));
        assert_eq!(rank_sum(&set([7; 50]), &set([7; 60])).unwrap().p, 1.0);
        assert_eq!(rank_sum(&a, &[]), None);
    }

    /// Values from the textbook formula: U = 4.5 of 100, σ² with one tie group of 2.
    #[test]
    fn agrees_with_a_hand_calculation() {
        let a = set([1, 2, 3, 4, 5, 6, 7, 8, 9, 15]);
        let b = set([10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
        let outcome = rank_sum(&a, &b).unwrap();
        let variance = 100.0 / 12.0 * (21.0 - 6.0 / (20.0 * 19.0));
        let z = ((94.5f64 - 50.0) - 0.5) / f64::sqrt(variance);
        assert!((outcome.superiority - 0.945).abs() < 1e-12, "{outcome:?}");
        assert!((outcome.p - libm::erfc(z / 2f64.sqrt())).abs() < 1e-15 && outcome.p < 0.001, "{outcome:?}");
    }

    #[test]
    fn p_values_of_equal_distributions_are_spread_evenly() {
        let mut state = 0x2545_f491_4f6c_dd1du64;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % 1_000
        };
        let below = (0..1_000)
            .filter(|_| {
                let a = set((0..40).map(|_| next()));
                let b = set((0..40).map(|_| next()));
                rank_sum(&a, &b).unwrap().p < 0.05
            })
            .count();
        assert!((20..=80).contains(&below), "{below} of 1,000 below 0.05");
    }
}
