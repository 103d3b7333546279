//! Making the graph of nodes and edges: merging, sorting, finding cycles.

use std::collections::VecDeque;

use super::{DagNode, Edge, Graph, QueueNode, Reasons, SystemNode, TrackNode};
use crate::SystemIndex;

/// Everything of a graph but its edges. Systems are neighbours if their DAGs are the same, and DAGs if their tracks are.
#[derive(Debug)]
pub(crate) struct Nodes {
    pub(crate) tracks: Vec<TrackNode>,
    pub(crate) dags: Vec<DagNode>,
    pub(crate) systems: Vec<SystemNode>,
    pub(crate) queues: Vec<QueueNode>,
}

/// Systems that wait for each other in a circle: each with the reasons why the next one waits for it.
#[derive(Debug)]
pub(crate) struct Cycle {
    pub(crate) steps: Vec<(String, Reasons)>,
}

impl Graph {
    /// The graph of these nodes, equal edges merged.
    ///
    /// # Errors
    /// One cycle for every DAG that has any.
    pub(crate) fn new(nodes: Nodes, edges: Vec<Edge>) -> Result<Self, Vec<Cycle>> {
        let Nodes { tracks, dags, systems, queues } = nodes;
        let edges = merge(edges);
        let successors = edges.iter().map(|edge| edge.to).collect();
        let successor_starts = starts(systems.len(), edges.iter().map(|edge| edge.from));
        let mut turned: Vec<(SystemIndex, SystemIndex)> =
            edges.iter().map(|edge| (edge.to, edge.from)).collect();
        turned.sort_unstable();
        let predecessor_starts = starts(systems.len(), turned.iter().map(|&(to, _)| to));
        let predecessors = turned.into_iter().map(|(_, from)| from).collect();
        let mut graph = Self {
            tracks,
            dags,
            systems,
            queues,
            edges,
            successors,
            successor_starts,
            predecessors,
            predecessor_starts,
            topological_order: Vec::new(),
        };
        graph.topological_order = graph.sort()?;
        Ok(graph)
    }

    /// Kahn's algorithm, DAG by DAG: systems come in the order in which they become ready, the first in the order of
    /// their declaration.
    fn sort(&self) -> Result<Vec<SystemIndex>, Vec<Cycle>> {
        let mut waits_for: Vec<u16> = self.indices().map(|system| self.predecessor_count(system)).collect();
        let mut order = Vec::with_capacity(self.systems.len());
        let mut cycles = Vec::new();
        for dag in &self.dags {
            let own = || dag.systems.clone().map(SystemIndex::new);
            let mut ready: VecDeque<_> = own().filter(|system| waits_for[system.as_usize()] == 0).collect();
            while let Some(system) = ready.pop_front() {
                order.push(system);
                for &next in self.successors(system) {
                    waits_for[next.as_usize()] -= 1;
                    if waits_for[next.as_usize()] == 0 {
                        ready.push_back(next);
                    }
                }
            }
            if let Some(stuck) = own().find(|system| waits_for[system.as_usize()] > 0) {
                cycles.push(self.cycle_before(stuck, &waits_for));
            }
        }
        if cycles.is_empty() { Ok(order) } else { Err(cycles) }
    }

    /// Walks back from a system that never becomes ready, always to one that it waits for, until the walk meets itself.
    fn cycle_before(&self, stuck: SystemIndex, waits_for: &[u16]) -> Cycle {
        let mut walk = vec![stuck];
        loop {
            let last = walk[walk.len() - 1];
            let is_stuck = |system: &&SystemIndex| waits_for[system.as_usize()] > 0;
            let Some(&before) = self.predecessors(last).iter().find(is_stuck) else {
                unreachable!("a system that waits has a predecessor that waits");
            };
            if let Some(start) = walk.iter().position(|&system| system == before) {
                walk.drain(..start);
                break;
            }
            walk.push(before);
        }
        walk.reverse();
        let nexts = walk[1..].iter().chain(&walk[..1]);
        let steps = walk.iter().zip(nexts).map(|(&from, &to)| {
            let edge = self.edges_from(from).iter().find(|edge| edge.to == to);
            (self.system(from).name.clone(), edge.map_or_else(Reasons::default, |edge| edge.reasons))
        });
        Cycle { steps: steps.collect() }
    }

    fn indices(&self) -> impl Iterator<Item = SystemIndex> {
        (0..self.systems.len()).map(|at| SystemIndex::new(at as u16))
    }
}

/// One edge for each pair of systems, with the reasons of all.
fn merge(mut edges: Vec<Edge>) -> Vec<Edge> {
    edges.sort_by_key(|edge| (edge.from, edge.to));
    edges.dedup_by(|next, kept| {
        let is_same = (next.from, next.to) == (kept.from, kept.to);
        if is_same {
            kept.reasons = kept.reasons.union(next.reasons);
        }
        is_same
    });
    edges
}

/// Where the entries of each of `rows` rows begin, in a list that is sorted by row.
fn starts(rows: usize, row_of_entry: impl Iterator<Item = SystemIndex>) -> Vec<u32> {
    let mut starts = vec![0; rows + 1];
    for row in row_of_entry {
        starts[row.as_usize() + 1] += 1;
    }
    for row in 0..rows {
        starts[row + 1] += starts[row];
    }
    starts
}
