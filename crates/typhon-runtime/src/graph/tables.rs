//! The graph as metadata of a trace.

use typhon_trace::tables::{Dag, EventQueue, System, Tables, Track};

use super::{ComponentAccess, Graph, ResourceAccess, SystemKind, SystemNode};
use crate::{QueueId, SystemIndex};

/// `tierFilter` of a system that runs for all simulation tiers.
const ALL_TIERS: u8 = 0b1111;

impl SystemKind {
    /// `type` in the system table of a trace: 0 pipeline, 2 callback, in chunks or not.
    pub const fn trace_number(self) -> u8 {
        match self {
            Self::Pipeline => 0,
            Self::Callback | Self::Chunked => 2,
        }
    }
}

impl Graph {
    /// The tables of a trace that describe a schedule: systems, tracks, DAGs and event queues (format spec, "Metadata
    /// tables" 1, 4, 5 and 10). The others are empty.
    pub fn trace_tables(&self) -> Tables {
        let systems = (0..self.systems.len()).map(|at| self.system_entry(SystemIndex::new(at as u16)));
        let tracks = (0..).zip(&self.tracks).map(|(order_index, track)| Track {
            name: track.name.clone(),
            order_index,
            tags: track.tags.clone(),
        });
        let dags = (0..).zip(&self.dags).map(|(id, dag)| Dag {
            id,
            name: dag.name.clone(),
            track_index: i32::from(dag.track.get()),
            phase_names: dag.phases.clone(),
        });
        let event_queues = (0..).zip(&self.queues).map(|(queue_index, queue)| EventQueue {
            queue_index,
            name: queue.name.clone(),
            capacity: i32::try_from(queue.options.capacity).unwrap_or(i32::MAX),
            event_type_name: queue.event_type_name.to_owned(),
        });
        Tables {
            systems: systems.collect(),
            tracks: tracks.collect(),
            dags: dags.collect(),
            event_queues: event_queues.collect(),
            ..Tables::default()
        }
    }

    fn system_entry(&self, index: SystemIndex) -> System {
        let node = self.system(index);
        let numbers = |systems: &[SystemIndex]| systems.iter().map(|system| system.get()).collect();
        let names =
            |systems: &[SystemIndex]| systems.iter().map(|&at| self.system(at).name.clone()).collect();
        System {
            index: index.get(),
            name: node.name.clone(),
            r#type: node.kind.trace_number(),
            priority: node.priority as u8,
            is_parallel: node.kind != SystemKind::Callback,
            tier_filter: ALL_TIERS,
            predecessors: numbers(self.predecessors(index)),
            successors: numbers(self.successors(index)),
            phase_name: self.dag(node.dag).phases[node.phase.as_usize()].clone(),
            is_exclusive_phase: node.is_exclusive,
            reads: components(node, ComponentAccess::Read),
            reads_fresh: components(node, ComponentAccess::ReadFresh),
            reads_snapshot: components(node, ComponentAccess::ReadSnapshot),
            additional_reads: components(node, ComponentAccess::AdditionalRead),
            writes: components(node, ComponentAccess::Write),
            side_writes: components(node, ComponentAccess::SideWrite),
            writes_events: self.queue_names(node.queues.writes.iter().copied()),
            reads_events: self.queue_names(node.queues.consumed()),
            writes_resources: resources(node, ResourceAccess::Write),
            reads_resources: resources(node, ResourceAccess::Read),
            explicit_after: names(&node.explicit_after),
            explicit_before: names(&node.explicit_before),
            dag_id: node.dag.get(),
        }
    }

    fn queue_names(&self, queues: impl Iterator<Item = QueueId>) -> Vec<String> {
        queues.map(|id| self.queue(id).name.clone()).collect()
    }
}

fn components(node: &SystemNode, access: ComponentAccess) -> Vec<String> {
    let uses = node.components.iter().filter(|used| used.access == access);
    uses.map(|used| used.component.name().to_owned()).collect()
}

fn resources(node: &SystemNode, access: ResourceAccess) -> Vec<String> {
    let uses = node.resources.iter().filter(|used| used.access == access);
    uses.map(|used| used.resource.clone()).collect()
}
