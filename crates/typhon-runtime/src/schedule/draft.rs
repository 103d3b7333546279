//! What a schedule was told, before anything is checked.

use std::sync::Arc;

use super::{Priority, ScheduleFault};
use crate::QueueId;
use crate::event_queue::ErasedQueue;
use crate::graph::{ComponentUse, ResourceUse, SystemKind};
use crate::system::{RunIf, SystemBody};

/// Everything that was declared, in the order of declaration. Parts name each other by place in these lists.
pub(super) struct Draft {
    pub(super) tracks: Vec<TrackDraft>,
    pub(super) dags: Vec<DagDraft>,
    pub(super) systems: Vec<SystemDraft>,
    pub(super) queues: Vec<QueueDraft>,
    /// Faults that only the call itself can see.
    pub(super) faults: Vec<ScheduleFault>,
}

pub(super) struct TrackDraft {
    pub(super) name: String,
    pub(super) tags: Vec<String>,
    pub(super) is_engine: bool,
}

pub(super) struct DagDraft {
    pub(super) name: String,
    pub(super) track: usize,
    pub(super) phases: Vec<String>,
    pub(super) default_phase: Option<String>,
}

pub(super) struct QueueDraft {
    pub(super) dag: usize,
    pub(super) event_type_name: &'static str,
    pub(super) storage: Arc<dyn ErasedQueue>,
}

pub(super) struct SystemDraft {
    pub(super) name: String,
    pub(super) dag: usize,
    pub(super) body: SystemBody,
    pub(super) kind: SystemKind,
    pub(super) chunk_count: u32,
    pub(super) gates: Vec<Box<RunIf>>,
    pub(super) phase: Option<String>,
    pub(super) priority: Priority,
    pub(super) tick_divisor: u32,
    pub(super) throttled_tick_divisor: u32,
    pub(super) can_shed: bool,
    pub(super) is_exclusive: bool,
    pub(super) after: Vec<String>,
    pub(super) before: Vec<String>,
    pub(super) components: Vec<ComponentUse>,
    pub(super) resources: Vec<ResourceUse>,
    pub(super) queue_writes: Vec<QueueId>,
    pub(super) queue_reads: Vec<QueueId>,
    pub(super) queue_drains: Vec<QueueId>,
}

impl SystemDraft {
    pub(super) fn new(
        name: String,
        dag: usize,
        kind: SystemKind,
        chunk_count: u32,
        body: SystemBody,
    ) -> Self {
        Self {
            name,
            dag,
            body,
            kind,
            chunk_count,
            gates: Vec::new(),
            phase: None,
            priority: Priority::default(),
            tick_divisor: 1,
            throttled_tick_divisor: 1,
            can_shed: false,
            is_exclusive: false,
            after: Vec::new(),
            before: Vec::new(),
            components: Vec::new(),
            resources: Vec::new(),
            queue_writes: Vec::new(),
            queue_reads: Vec::new(),
            queue_drains: Vec::new(),
        }
    }
}
