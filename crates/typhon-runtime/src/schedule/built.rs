//! What execution gets.

use std::fmt;
use std::sync::Arc;

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
