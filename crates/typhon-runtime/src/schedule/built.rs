//! What execution gets.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use typhon_profiler::events::SchedulerGraphBuild;
use typhon_profiler::{Ticks, emit_span};

use super::ScheduleWarning;
use crate::event_queue::ErasedQueue;
use crate::graph::Graph;
use crate::system::{RunIf, SystemBody};

/// A validated schedule and the code of its systems. Lists run parallel to those of the graph.
pub struct BuiltSchedule {
    /// Who runs after whom.
    pub graph: Arc<Graph>,
    /// Code, by system.
    pub bodies: Vec<SystemBody>,
    /// Gates, by system: it runs only if all of its gates say so, asked in this order.
    pub gates: Vec<Vec<Box<RunIf>>>,
    /// Queues, by id.
    pub queues: Vec<QueueDeclaration>,
    /// What is legal and probably not meant.
    pub warnings: Vec<ScheduleWarning>,
    /// When it was built.
    pub build_time: Range<Ticks>,
}

impl BuiltSchedule {
    /// Records that the graph was built (kind 159), in the past: a recording describes the schedule in its head, so
    /// that it can only start after building. Counts above 65,535 are recorded as that.
    pub fn record_build(&self) {
        let count = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        emit_span(self.build_time.start, self.build_time.end, || SchedulerGraphBuild {
            sys_count: count(self.graph.systems().len()),
            edge_count: count(self.graph.edges().len()),
            topo_len: count(self.graph.topological_order().len()),
        });
    }
}

impl fmt::Debug for BuiltSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuiltSchedule")
            .field("graph", &self.graph)
            .field("bodies", &self.bodies)
            .finish_non_exhaustive()
    }
}

/// The storage behind a queue of the graph.
pub struct QueueDeclaration {
    /// The same storage that the handles of the queue use.
    pub storage: Arc<dyn ErasedQueue>,
}
