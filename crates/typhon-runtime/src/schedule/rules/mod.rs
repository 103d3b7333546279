//! From access to order: derives the edges of a schedule, and finds what no edge can settle.
//!
//! Pairs of systems that touch the same thing are looked at one by one, and each rule either adds an edge or asks for an
//! order that only the user can give.

mod data;
mod explicit;
mod queues;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use super::{ScheduleFault, Subject};
use crate::SystemIndex;
use crate::graph::{Edge, Nodes, Reason, SystemNode, TrackNode};

use explicit::ExplicitOrder;

/// Edges, not yet merged, and faults.
pub(super) struct Derived {
    pub(super) edges: Vec<Edge>,
    pub(super) faults: Vec<ScheduleFault>,
}

/// Applies every rule to the whole schedule.
pub(super) fn derive(nodes: &Nodes) -> Derived {
    let mut derivation = Derivation {
        nodes,
        order: ExplicitOrder::new(&nodes.systems),
        edges: Vec::new(),
        faults: Vec::new(),
        conflicts: BTreeMap::new(),
    };
    derivation.explicit_edges();
    for track in &nodes.tracks {
        derivation.shared_data(track);
    }
    derivation.events();
    derivation.exclusive_phases();
    derivation.report_conflicts();
    Derived { edges: derivation.edges, faults: derivation.faults }
}

struct Derivation<'n> {
    nodes: &'n Nodes,
    order: ExplicitOrder,
    edges: Vec<Edge>,
    faults: Vec<ScheduleFault>,
    conflicts: BTreeMap<(SystemIndex, SystemIndex, Conflict), Vec<Subject>>,
}

/// Why two systems cannot be left as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Conflict {
    /// Both write, in one phase.
    Write,
    /// The first reads and the second writes, in one phase.
    Read,
    /// Both consume events, in one phase, and at least one takes them.
    Drain,
    /// They belong to two DAGs of one track.
    Track,
}

impl<'n> Derivation<'n> {
    fn system(&self, index: SystemIndex) -> &'n SystemNode {
        &self.nodes.systems[index.as_usize()]
    }

    fn name(&self, index: SystemIndex) -> String {
        self.system(index).name.clone()
    }

    fn phase_name(&self, index: SystemIndex) -> String {
        let system = self.system(index);
        self.nodes.dags[system.dag.as_usize()].phases[system.phase.as_usize()].clone()
    }

    fn edge(&mut self, from: SystemIndex, to: SystemIndex, reason: Reason) {
        self.edges.push(Edge { from, to, reasons: reason.into() });
    }

    /// The two systems need an explicit order; without one, they are in conflict about the subject.
    fn needs_order(
        &mut self,
        first: SystemIndex,
        second: SystemIndex,
        conflict: Conflict,
        subject: &Subject,
    ) {
        if !self.order.is_given(first, second) {
            self.conflict(first, second, conflict, subject);
        }
    }

    fn conflict(&mut self, first: SystemIndex, second: SystemIndex, conflict: Conflict, subject: &Subject) {
        self.conflicts.entry((first, second, conflict)).or_default().push(subject.clone());
    }

    /// Orders that the user gave: they stay as they are, and never go against the phases.
    fn explicit_edges(&mut self) {
        for (from, to) in self.order.edges() {
            if self.system(from).phase > self.system(to).phase {
                self.faults.push(ScheduleFault::BackwardOrder {
                    from: self.name(from),
                    to: self.name(to),
                    phases: [self.phase_name(from), self.phase_name(to)],
                });
            } else {
                self.edge(from, to, Reason::Explicit);
            }
        }
    }

    /// Systems that run alone in their DAG.
    fn exclusive_phases(&mut self) {
        let nodes = self.nodes;
        for (at, system) in nodes.systems.iter().enumerate().filter(|(_, system)| system.is_exclusive) {
            let exclusive = SystemIndex::new(at as u16);
            let mut others = Vec::new();
            let dag = &nodes.dags[system.dag.as_usize()];
            for other in indices(dag.systems.clone()).filter(|&other| other != exclusive) {
                match self.system(other).phase.cmp(&system.phase) {
                    Ordering::Less => self.edge(other, exclusive, Reason::Exclusive),
                    Ordering::Greater => self.edge(exclusive, other, Reason::Exclusive),
                    Ordering::Equal => others.push(self.name(other)),
                }
            }
            if !others.is_empty() {
                let (system, phase) = (system.name.clone(), self.phase_name(exclusive));
                self.faults.push(ScheduleFault::PhaseNotExclusive { system, phase, others });
            }
        }
    }

    /// One fault for each pair of systems and kind of conflict, with everything that it is about.
    fn report_conflicts(&mut self) {
        for ((first, second, conflict), subjects) in std::mem::take(&mut self.conflicts) {
            let (a, b, phase) = (self.name(first), self.name(second), self.phase_name(first));
            self.faults.push(match conflict {
                Conflict::Write => ScheduleFault::WriteConflict { first: a, second: b, phase, subjects },
                Conflict::Read => ScheduleFault::ReadConflict { reader: a, writer: b, phase, subjects },
                Conflict::Drain => ScheduleFault::DrainConflict { first: a, second: b, phase, subjects },
                Conflict::Track => {
                    let dag = |index: SystemIndex| &self.nodes.dags[self.system(index).dag.as_usize()];
                    let dags = [dag(first).name.clone(), dag(second).name.clone()];
                    let track = self.nodes.tracks[dag(first).track.as_usize()].name.clone();
                    ScheduleFault::TrackConflict { track, first: a, second: b, dags, subjects }
                }
            });
        }
    }
}

/// The systems of a range.
fn indices(range: Range<u16>) -> impl Iterator<Item = SystemIndex> {
    range.map(SystemIndex::new)
}

/// The systems of a track, which are neighbours.
fn systems_of(track: &TrackNode, nodes: &Nodes) -> impl Iterator<Item = SystemIndex> {
    let dags = &nodes.dags[usize::from(track.dags.start)..usize::from(track.dags.end)];
    let start = dags.first().map_or(0, |dag| dag.systems.start);
    indices(start..dags.last().map_or(0, |dag| dag.systems.end))
}
