//! Medians and percentiles.

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

pub fn minimum(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The value that so many thousandths do not exceed.
pub fn percentile(values: &[u64], per_mille: usize) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let index = (sorted.len() * per_mille / 1000).min(sorted.len().saturating_sub(1));
    sorted.get(index).copied().unwrap_or(0)
}
