//! How fast counters rise.

use super::metrics::Metric;
use super::snapshot::{NodeView, Snapshot};

/// A counter of a node per second.
#[derive(Debug, Clone, PartialEq)]
pub struct Rate<'s> {
    /// The node.
    pub path: &'s str,
    /// The counter: its name, or `read_ops`, `write_ops`, `read_bytes`, `write_bytes`.
    pub name: &'static str,
    /// By how much it rose, per second.
    pub per_second: f64,
}

impl Snapshot {
    /// How fast the counters rose since an earlier snapshot, which is the caller's own: what others read changes nothing.
    /// Counters that fell were reset and are left out; so are new nodes. Without any time between there are no rates.
    pub fn rates_since(&self, earlier: &Self) -> Vec<Rate<'_>> {
        let seconds = self.taken_at().saturating_duration_since(earlier.taken_at()).as_secs_f64();
        if seconds == 0.0 {
            return Vec::new();
        }
        let pairs = self.nodes().filter_map(|node| Some((node, earlier.node(node.path())?)));
        let rate = |(path, name, now, before): (_, _, u64, u64)| {
            let rise = now.checked_sub(before)?;
            Some(Rate { path, name, per_second: rise as f64 / seconds })
        };
        pairs.flat_map(|(node, before)| counters(node, before)).filter_map(rate).collect()
    }
}

/// The counters of a node with what they were.
fn counters<'s>(node: NodeView<'s>, before: NodeView<'_>) -> Vec<(&'s str, &'static str, u64, u64)> {
    let before: Vec<_> = before.metrics().iter().flat_map(values).collect();
    let now = node.metrics().iter().flat_map(values);
    let with_before = now.filter_map(|(name, value)| {
        let (_, was) = before.iter().find(|(other, _)| *other == name)?;
        Some((node.path(), name, value, *was))
    });
    with_before.collect()
}

/// The counters in a metric.
fn values(metric: &Metric) -> Vec<(&'static str, u64)> {
    match *metric {
        Metric::Throughput { name, count } => vec![(name, count)],
        Metric::DiskIo { read_ops, write_ops, read_bytes, write_bytes } => vec![
            ("read_ops", read_ops),
            ("write_ops", write_ops),
            ("read_bytes", read_bytes),
            ("write_bytes", write_bytes),
        ],
        Metric::Memory { .. } | Metric::Capacity { .. } | Metric::Duration { .. } => Vec::new(),
    }
}
