//! The numbers of all resources at one moment, and what they answer.

use super::health::{Health, utilization};
use super::kinds::{ExhaustionPolicy, NodeType};
use super::metrics::{Metric, MetricSink};
use super::shape::{Shape, ShapeNode};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// From this utilisation on, a node that others wait for is a cause.
const CAUSE: f64 = 0.8;

/// All resources at one moment; never changes.
#[derive(Clone)]
pub struct Snapshot {
    shape: Arc<Shape>,
    metrics: Vec<Metric>,
    /// Where the metrics of each node end.
    ends: Vec<u32>,
    taken_at: Instant,
    taken_at_utc: SystemTime,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.nodes()).finish()
    }
}

/// One node of a snapshot.
#[derive(Clone, Copy)]
pub struct NodeView<'s> {
    node: &'s ShapeNode,
    metrics: &'s [Metric],
}

impl fmt::Debug for NodeView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.path(), self.metrics)
    }
}

impl<'s> NodeView<'s> {
    /// Its path, without the root.
    pub fn path(&self) -> &'s str {
        &self.node.path
    }

    /// What it is.
    pub fn node_type(&self) -> NodeType {
        self.node.node_type
    }

    /// What happens when it is used up.
    pub fn exhaustion(&self) -> ExhaustionPolicy {
        self.node.exhaustion
    }

    /// Its numbers.
    pub fn metrics(&self) -> &'s [Metric] {
        self.metrics
    }

    /// The part of its capacity that is in use, if it has one.
    pub fn utilization(&self) -> Option<f64> {
        utilization(self.metrics)
    }

    /// How it is; a node without capacity is healthy.
    pub fn health(&self) -> Health {
        let judge = |utilization| self.node.thresholds.judge(utilization);
        self.utilization().map_or(Health::Healthy, judge)
    }
}

impl Snapshot {
    pub(super) fn take(shape: Arc<Shape>, taken_at: Instant) -> Self {
        // Few nodes have more than two.
        let mut metrics = Vec::with_capacity(shape.nodes.len() * 2);
        let mut ends = Vec::with_capacity(shape.nodes.len());
        for node in &shape.nodes {
            if let Some(source) = &node.source {
                source.read_metrics(&mut MetricSink::new(&mut metrics));
            }
            ends.push(metrics.len() as u32);
        }
        Self { shape, metrics, ends, taken_at, taken_at_utc: SystemTime::now() }
    }

    /// When it was taken.
    pub fn taken_at(&self) -> Instant {
        self.taken_at
    }

    /// When it was taken, on the clock of the calendar.
    pub fn taken_at_utc(&self) -> SystemTime {
        self.taken_at_utc
    }

    fn view(&self, at: usize) -> NodeView<'_> {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        let metrics = &self.metrics[start as usize..self.ends[at] as usize];
        NodeView { node: &self.shape.nodes[at], metrics }
    }

    fn views(&self, range: Range<usize>) -> impl Iterator<Item = NodeView<'_>> {
        range.map(|at| self.view(at))
    }

    /// All nodes: each before those below it, siblings by name.
    pub fn nodes(&self) -> impl Iterator<Item = NodeView<'_>> {
        self.views(0..self.shape.nodes.len())
    }

    /// One node.
    pub fn node(&self, path: &str) -> Option<NodeView<'_>> {
        self.shape.by_path.get(path).map(|&at| self.view(at))
    }

    /// A node and everything below it; nothing if there is no such node.
    pub fn subtree(&self, path: &str) -> impl Iterator<Item = NodeView<'_>> {
        self.views(self.shape.subtree(path).unwrap_or_default())
    }

    /// Memory in use by a node and everything below it, in bytes.
    pub fn subtree_memory_bytes(&self, path: &str) -> u64 {
        let metrics = self.subtree(path).flat_map(|node| node.metrics());
        let bytes = metrics.filter_map(|metric| match metric {
            Metric::Memory { allocated_bytes, .. } => Some(*allocated_bytes),
            _ => None,
        });
        bytes.sum()
    }

    /// All nodes of a type.
    pub fn by_type(&self, node_type: NodeType) -> impl Iterator<Item = NodeView<'_>> {
        self.nodes().filter(move |node| node.node_type() == node_type)
    }

    /// The node that uses the largest part of its capacity; the first one of several.
    pub fn most_utilized(&self) -> Option<NodeView<'_>> {
        self.utilized_above(f64::NEG_INFINITY).into_iter().next()
    }

    /// Nodes that use more than this part of their capacity, the fullest first.
    pub fn utilized_above(&self, threshold: f64) -> Vec<NodeView<'_>> {
        let used = self.nodes().filter_map(|node| node.utilization().map(|part| (part, node)));
        let mut used: Vec<_> = used.filter(|(part, _)| *part > threshold).collect();
        used.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        used.into_iter().map(|(_, node)| node).collect()
    }

    /// What the trouble of a node goes back to: from node to node that is waited for, the fullest first, as long as
    /// there is one with at least 80 % in use. The node itself if there is none.
    pub fn root_cause(&self, path: &str) -> Option<NodeView<'_>> {
        let mut at = *self.shape.by_path.get(path)?;
        let mut seen = vec![at];
        loop {
            let candidates = self.shape.nodes[at].waits_for.iter().filter(|next| !seen.contains(next));
            let parts = candidates.map(|&next| (self.view(next).utilization().unwrap_or(0.0), next));
            let fullest =
                parts.filter(|(part, _)| *part >= CAUSE).max_by(|one, other| one.0.total_cmp(&other.0));
            let Some((_, next)) = fullest else { return Some(self.view(at)) };
            seen.push(next);
            at = next;
        }
    }

    /// The health of the least healthy node.
    pub fn health(&self) -> Health {
        self.nodes().map(|node| node.health()).max().unwrap_or(Health::Healthy)
    }
}
