//! The schedule as a graph: immutable, with every edge explained.

mod build;
mod dot;
mod edge;
mod node;
mod tables;

use std::ops::Range;

pub(crate) use build::{Cycle, Nodes};
pub use edge::{Edge, Reason, Reasons};
pub use node::{
    Component, ComponentAccess, ComponentUse, DagNode, QueueNode, ResourceAccess, ResourceUse, SystemKind,
    SystemNode, SystemQueues, TrackNode,
};

use crate::{DagIndex, QueueId, SystemIndex, TrackIndex};

/// A validated schedule. Systems are numbered DAG by DAG, within a DAG as they were declared.
#[derive(Debug)]
pub struct Graph {
    tracks: Vec<TrackNode>,
    dags: Vec<DagNode>,
    systems: Vec<SystemNode>,
    queues: Vec<QueueNode>,
    /// Sorted by (from, to): the edges of one system are neighbours.
    edges: Vec<Edge>,
    /// Ends of all edges, in their order: the second half of a compressed sparse row.
    successors: Vec<SystemIndex>,
    /// Where the successors of each system begin, and one more entry for the end.
    successor_starts: Vec<u32>,
    /// Beginnings of all edges, ordered by (to, from).
    predecessors: Vec<SystemIndex>,
    predecessor_starts: Vec<u32>,
    /// One valid serial order, DAG by DAG.
    topological_order: Vec<SystemIndex>,
}

impl Graph {
    /// All tracks, in the order in which they run.
    pub fn tracks(&self) -> &[TrackNode] {
        &self.tracks
    }

    /// All DAGs, in the order of their tracks.
    pub fn dags(&self) -> &[DagNode] {
        &self.dags
    }

    /// All systems, by index.
    pub fn systems(&self) -> &[SystemNode] {
        &self.systems
    }

    /// All event queues, by id.
    pub fn queues(&self) -> &[QueueNode] {
        &self.queues
    }

    /// All edges, sorted by where they begin and then by where they end. No pair of systems has two.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// One track.
    pub fn track(&self, index: TrackIndex) -> &TrackNode {
        &self.tracks[index.as_usize()]
    }

    /// One DAG.
    pub fn dag(&self, index: DagIndex) -> &DagNode {
        &self.dags[index.as_usize()]
    }

    /// One system.
    pub fn system(&self, index: SystemIndex) -> &SystemNode {
        &self.systems[index.as_usize()]
    }

    /// One event queue.
    pub fn queue(&self, id: QueueId) -> &QueueNode {
        &self.queues[id.as_usize()]
    }

    /// The system of this name.
    pub fn find_system(&self, name: &str) -> Option<SystemIndex> {
        let at = self.systems.iter().position(|system| system.name == name)?;
        Some(SystemIndex::new(at as u16))
    }

    /// Every system after all of its predecessors: DAG by DAG, first come first served among those that are ready.
    pub fn topological_order(&self) -> &[SystemIndex] {
        &self.topological_order
    }

    /// The part of [`topological_order`](Self::topological_order) that belongs to one DAG.
    pub fn topological_order_of(&self, dag: DagIndex) -> &[SystemIndex] {
        let Range { start, end } = self.dag(dag).systems;
        &self.topological_order[start as usize..end as usize]
    }

    /// Systems that wait for this one, by index.
    pub fn successors(&self, system: SystemIndex) -> &[SystemIndex] {
        &self.successors[row(&self.successor_starts, system)]
    }

    /// Systems that this one waits for, by index.
    pub fn predecessors(&self, system: SystemIndex) -> &[SystemIndex] {
        &self.predecessors[row(&self.predecessor_starts, system)]
    }

    /// How many systems this one waits for.
    pub fn predecessor_count(&self, system: SystemIndex) -> u16 {
        self.predecessors(system).len() as u16
    }

    /// The edges that begin at this system.
    pub fn edges_from(&self, system: SystemIndex) -> &[Edge] {
        &self.edges[row(&self.successor_starts, system)]
    }
}

fn row(starts: &[u32], system: SystemIndex) -> Range<usize> {
    starts[system.as_usize()] as usize..starts[system.as_usize() + 1] as usize
}
