//! Percentiles of durations in bounded memory (brief 11 B-28).
//!
//! Up to 65,536 values are kept as they are and answer exactly, by nearest rank. Beyond that they go into a
//! logarithmic histogram: 128 buckets per power of two, so a bucket's middle is within 0.4 % of every value in it.

/// Values kept exactly before the histogram takes over.
pub const MAX_EXACT_VALUES: usize = 65_536;

const SUB_BUCKET_BITS: u32 = 7;
const SUB_BUCKETS: u64 = 1 << SUB_BUCKET_BITS;

/// A collection of non-negative durations.
#[derive(Debug, Clone, Default)]
pub struct Durations {
    exact: Vec<u64>,
    /// Counts of the buckets from `first_bucket` on; durations of one name rarely spread over more than a few octaves.
    buckets: Vec<u64>,
    first_bucket: usize,
    count: u64,
}

/// A percentile, and whether it is exact or within 1 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percentile {
    /// The value.
    pub value: u64,
    /// Read from the histogram.
    pub is_approximate: bool,
}

impl Durations {
    /// Adds a value.
    #[inline]
    pub fn push(&mut self, value: u64) {
        self.count += 1;
        if let Some(count) = self.buckets.get_mut(bucket_of(value).wrapping_sub(self.first_bucket)) {
            *count += 1;
        } else if !self.buckets.is_empty() {
            self.add_to_bucket(value, 1);
        } else if self.exact.len() < MAX_EXACT_VALUES {
            self.exact.push(value);
        } else {
            self.spill();
            self.add_to_bucket(value, 1);
        }
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: Self) {
        other.exact.iter().for_each(|value| self.push(*value));
        if !other.buckets.is_empty() {
            self.spill();
            self.count += other.buckets.iter().sum::<u64>();
            other.filled_buckets().for_each(|(middle, count)| self.add_to_bucket(middle, count));
        }
    }

    /// Values kept one by one: what they take in memory is eight bytes each.
    pub fn exact_values(&self) -> usize {
        self.exact.len()
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Do percentiles come from the histogram?
    pub fn is_approximate(&self) -> bool {
        !self.buckets.is_empty()
    }

    /// Nearest-rank percentiles for ranks in 0.0..=100.0, in the order asked for; `None` without values.
    pub fn percentiles<const N: usize>(&mut self, ranks: [f64; N]) -> Option<[Percentile; N]> {
        if self.count == 0 {
            return None;
        }
        self.exact.sort_unstable();
        Some(ranks.map(|rank| {
            let nth = ((rank / 100.0 * self.count as f64).ceil() as u64).clamp(1, self.count);
            match self.exact.get(nth as usize - 1) {
                Some(value) if self.buckets.is_empty() => Percentile { value: *value, is_approximate: false },
                _ => Percentile { value: self.nth_of_buckets(nth), is_approximate: true },
            }
        }))
    }

    /// Counts per power of two: (lower bound inclusive, upper bound exclusive, count), without empty ends.
    /// 0 has a bin of its own.
    pub fn octaves(&self) -> Vec<(u64, u64, u64)> {
        let mut bins = [0u64; 65];
        let octave = |value: u64| (u64::BITS - value.leading_zeros()) as usize;
        self.exact.iter().for_each(|value| bins[octave(*value)] += 1);
        self.filled_buckets().for_each(|(middle, count)| bins[octave(middle)] += count);
        let bounds = |bin: usize| match bin {
            0 => (0, 1),
            64 => (1 << 63, u64::MAX),
            bin => (1u64 << (bin - 1), 1u64 << bin),
        };
        let first = bins.iter().position(|count| *count > 0).unwrap_or(0);
        let last = bins.iter().rposition(|count| *count > 0).map_or(0, |bin| bin + 1);
        (first..last).map(|bin| (bounds(bin).0, bounds(bin).1, bins[bin])).collect()
    }

    /// (value, how often) in ascending order; values of the histogram stand for their bucket.
    pub fn weighted(&self) -> Vec<(u64, u64)> {
        if self.is_approximate() {
            return self.filled_buckets().collect();
        }
        let mut values = self.exact.clone();
        values.sort_unstable();
        values.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect()
    }

    /// Moves the values into the histogram now, to save memory.
    pub fn spill(&mut self) {
        for value in std::mem::take(&mut self.exact) {
            self.add_to_bucket(value, 1);
        }
    }

    fn add_to_bucket(&mut self, value: u64, count: u64) {
        let bucket = bucket_of(value);
        if self.buckets.is_empty() {
            self.first_bucket = bucket;
        }
        if let Some(missing) = self.first_bucket.checked_sub(bucket).filter(|missing| *missing > 0) {
            self.buckets.splice(0..0, std::iter::repeat_n(0, missing));
            self.first_bucket = bucket;
        }
        let index = bucket - self.first_bucket;
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, 0);
        }
        self.buckets[index] += count;
    }

    /// (middle, count) of the buckets with values, in ascending order.
    fn filled_buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let buckets = (self.first_bucket..).zip(&self.buckets).filter(|(_, count)| **count > 0);
        buckets.map(|(bucket, count)| (bucket_middle(bucket), *count))
    }

    fn nth_of_buckets(&self, nth: u64) -> u64 {
        let mut seen = 0;
        let mut buckets = self.filled_buckets();
        let found = buckets.find(|(_, count)| {
            seen += count;
            seen >= nth
        });
        found.map_or(0, |(middle, _)| middle)
    }
}

/// Values below 128 have a bucket each; above, every power of two is divided in 128.
#[inline]
fn bucket_of(value: u64) -> usize {
    if value < SUB_BUCKETS {
        return value as usize;
    }
    let exponent = value.ilog2() - SUB_BUCKET_BITS;
    ((u64::from(exponent) << SUB_BUCKET_BITS) + (value >> exponent)) as usize
}

fn bucket_middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * SUB_BUCKETS {
        return bucket;
    }
    let exponent = (bucket >> SUB_BUCKET_BITS) - 1;
    let low = (bucket - (exponent << SUB_BUCKET_BITS)) << exponent;
    low + ((1 << exponent) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Durations {
        let mut durations = Durations::default();
        values.iter().for_each(|value| durations.push(*value));
        durations
    }

    #[test]
    fn b28_small_sets_are_exact_by_nearest_rank() {
        let [p50, p95, max] = of(&[15, 20, 35, 40, 50]).percentiles([50.0, 95.0, 100.0]).unwrap();
        assert_eq!((p50.value, p95.value, max.value, p50.is_approximate), (35, 50, 50, false));
        assert_eq!(of(&[]).percentiles([50.0]), None);
    }

    #[test]
    fn b28_large_sets_are_within_one_percent() {
        let values: Vec<u64> = (0..200_000u64).map(|n| n * n % 1_000_003 * (1 + n % 977)).collect();
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let mut durations = of(&values);
        for rank in [0.1, 5.0, 50.0, 95.0, 99.0, 99.9, 100.0] {
            let exact = sorted[((rank / 100.0 * 200_000.0f64).ceil() as usize).max(1) - 1] as f64;
            let [got] = durations.percentiles([rank]).unwrap();
            assert!(
                got.is_approximate && (got.value as f64 - exact).abs() <= exact * 0.01,
                "{rank}: {got:?} {exact}"
            );
        }
    }

    #[test]
    fn octaves_count_every_value_once() {
        let bins = of(&[0, 1, 1, 2, 3, 1_000]).octaves();
        assert_eq!(bins.first(), Some(&(0, 1, 1)));
        assert_eq!(bins.last(), Some(&(512, 1_024, 1)));
        assert_eq!(bins.iter().map(|(_, _, count)| count).sum::<u64>(), 6);
    }

    #[test]
    fn spilled_values_are_counted_once_wherever_they_lie() {
        let mut durations = of(&[1 << 40, 3, 3, 900]);
        durations.spill();
        durations.push(0);
        durations.merge(of(&[3, u64::MAX]));
        assert_eq!((durations.count(), durations.exact_values(), durations.is_approximate()), (7, 0, true));
        let values: Vec<(u64, u64)> = durations.weighted();
        assert_eq!(values[..2], [(0, 1), (3, 3)]);
        assert_eq!(values.iter().map(|(_, count)| count).sum::<u64>(), 7);
    }

    proptest! {
        #[test]
        fn a_bucket_holds_values_within_one_percent_of_its_middle(value in any::<u64>(), shift in 0u32..64) {
            let value = value >> shift;
            let middle = bucket_middle(bucket_of(value));
            prop_assert_eq!(bucket_of(middle), bucket_of(value));
            prop_assert!(value.abs_diff(middle) as f64 <= value as f64 * 0.01);
        }

        #[test]
        fn merging_equals_pushing(a in prop::collection::vec(any::<u64>(), 0..50), b in prop::collection::vec(any::<u64>(), 0..50)) {
            let mut merged = of(&a);
            merged.merge(of(&b));
            let both: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(merged.percentiles([1.0, 50.0, 99.0]), of(&both).percentiles([1.0, 50.0, 99.0]));
            prop_assert_eq!(merged.count(), both.len() as u64);
        }
    }
}
