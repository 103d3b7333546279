//! The tree as snapshots see it: flat, in preorder, never changed.

use super::health::Thresholds;
use super::kinds::{ExhaustionPolicy, NodeType};
use super::metrics::MetricSource;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

/// All nodes; a node and everything below it is a range.
#[derive(Default)]
pub(super) struct Shape {
    pub(super) nodes: Vec<ShapeNode>,
    pub(super) by_path: HashMap<Arc<str>, usize>,
}

pub(super) struct ShapeNode {
    pub(super) path: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) node_type: NodeType,
    pub(super) exhaustion: ExhaustionPolicy,
    pub(super) thresholds: Thresholds,
    pub(super) created_at: SystemTime,
    pub(super) parent: Option<usize>,
    /// One past the last node below it.
    pub(super) end: usize,
    /// Nodes that it waits for.
    pub(super) waits_for: Vec<usize>,
    pub(super) source: Option<Arc<dyn MetricSource>>,
}

impl Shape {
    /// The node at a path and everything below it.
    pub(super) fn subtree(&self, path: &str) -> Option<Range<usize>> {
        let at = *self.by_path.get(path)?;
        Some(at..self.nodes[at].end)
    }
}
