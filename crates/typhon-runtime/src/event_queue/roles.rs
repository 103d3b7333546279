//! Which systems use a queue, known once the schedule is built.

use crate::graph::Graph;
use crate::{QueueId, SystemIndex};

/// A system that pushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Producer {
    /// The system.
    pub system: SystemIndex,
    /// Its place in the topological order, by which events of several producers are ordered.
    pub topological_index: u32,
}

/// The systems that use one queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roles {
    /// Systems that push.
    pub producers: Vec<Producer>,
    /// Systems that read and leave the events to others.
    pub readers: Vec<SystemIndex>,
    /// Systems that take the events out.
    pub drainers: Vec<SystemIndex>,
}

impl Roles {
    /// As the systems of a graph declare them.
    pub fn of(graph: &Graph, queue: QueueId) -> Self {
        let mut roles = Self::default();
        for (topological_index, &system) in (0..).zip(graph.topological_order()) {
            let declared = &graph.system(system).queues;
            if declared.may_write(queue) {
                roles.producers.push(Producer { system, topological_index });
            }
            if declared.may_drain(queue) {
                roles.drainers.push(system);
            } else if declared.may_read(queue) {
                roles.readers.push(system);
            }
        }
        roles
    }
}

/// The queue is in use by another schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the queue already belongs to a schedule")]
pub struct BindError;
