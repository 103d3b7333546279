//! What the graph knows of tracks, DAGs, systems and queues.

use std::any::{TypeId, type_name};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use crate::event_queue::QueueOptions;
use crate::schedule::Priority;
use crate::{DagIndex, PhaseIndex, QueueId, SystemIndex, TrackIndex};

/// One track.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TrackNode {
    /// Name.
    pub name: String,
    /// Free words.
    pub tags: Vec<String>,
    /// Does it belong to the engine itself? Such tracks do not count as the user's, and no user failure aborts them.
    pub is_engine: bool,
    /// Its DAGs, as a range of [`DagIndex`].
    pub dags: Range<u16>,
}

/// One DAG.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DagNode {
    /// Name, unique in its track.
    pub name: String,
    /// Its track.
    pub track: TrackIndex,
    /// Phases in order, at least one.
    pub phases: Vec<String>,
    /// Its systems, as a range of [`SystemIndex`].
    pub systems: Range<u16>,
}

/// One event queue.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct QueueNode {
    /// Name, unique in the schedule.
    pub name: String,
    /// The DAG that it belongs to.
    pub dag: DagIndex,
    /// Capacity and behaviour.
    pub options: QueueOptions,
    /// Type of its events.
    pub event_type_name: &'static str,
    /// Systems that push, by index.
    pub producers: Vec<SystemIndex>,
    /// Systems that read or drain, by index.
    pub consumers: Vec<SystemIndex>,
}

/// How a system runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SystemKind {
    /// Once per tick, on one worker.
    Callback,
    /// In chunks on several workers, with a context for each chunk.
    Chunked,
    /// In chunks on several workers, each told its number and nothing else.
    Pipeline,
}

/// One system.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SystemNode {
    /// Name, unique in the schedule.
    pub name: String,
    /// Its DAG.
    pub dag: DagIndex,
    /// Its phase within the DAG.
    pub phase: PhaseIndex,
    /// How it runs.
    pub kind: SystemKind,
    /// How much it matters under overload.
    pub priority: Priority,
    /// Runs on one of this many ticks, at least 1.
    pub tick_divisor: u32,
    /// The same under overload, at least 1.
    pub throttled_tick_divisor: u32,
    /// May it be left out under overload? Only with [`Priority::Low`].
    pub can_shed: bool,
    /// Declared number of chunks, at least 1; 1 for a callback.
    pub chunk_count: u32,
    /// Can its own code leave it out of a tick, by `run_if`, `should_run` or `prepare`?
    pub is_gated: bool,
    /// Is it the only system of its phase, and does it run alone in its DAG?
    pub is_exclusive: bool,
    /// Components that it touches, in the order of declaration, without repetitions.
    pub components: Vec<ComponentUse>,
    /// Resources that it touches, likewise.
    pub resources: Vec<ResourceUse>,
    /// Queues that it touches.
    pub queues: SystemQueues,
    /// Systems that it was told to follow, in the order of declaration.
    pub explicit_after: Vec<SystemIndex>,
    /// Systems that it was told to precede, likewise.
    pub explicit_before: Vec<SystemIndex>,
}

impl SystemNode {
    /// Is it left out under overload?
    pub fn is_sheddable(&self) -> bool {
        self.can_shed && self.priority == Priority::Low
    }

    /// Runs on one of this many ticks under overload, unless it [is left out](Self::is_sheddable).
    pub fn overload_tick_divisor(&self) -> u32 {
        match self.priority {
            Priority::Critical | Priority::High => self.tick_divisor,
            Priority::Normal | Priority::Low => self.tick_divisor.max(self.throttled_tick_divisor),
        }
    }

    /// Does it say what it touches?
    pub fn declares_access(&self) -> bool {
        let queues = &self.queues;
        let uses_queues = !queues.writes.is_empty() || queues.consumed().next().is_some();
        uses_queues || !self.components.is_empty() || !self.resources.is_empty()
    }
}

/// The queues of one system, each list sorted, no queue in both of the last two.
#[derive(Debug, Clone, Default)]
pub struct SystemQueues {
    /// Queues that it pushes to.
    pub writes: Vec<QueueId>,
    /// Queues that it reads, leaving the events to others.
    pub reads: Vec<QueueId>,
    /// Queues that it empties, whether or not it also reads them.
    pub drains: Vec<QueueId>,
}

impl SystemQueues {
    /// May it push to this queue?
    pub fn may_write(&self, queue: QueueId) -> bool {
        self.writes.binary_search(&queue).is_ok()
    }

    /// May it read this queue?
    pub fn may_read(&self, queue: QueueId) -> bool {
        self.reads.binary_search(&queue).is_ok() || self.may_drain(queue)
    }

    /// May it empty this queue?
    pub fn may_drain(&self, queue: QueueId) -> bool {
        self.drains.binary_search(&queue).is_ok()
    }

    /// Queues whose events it waits for, read and drained.
    pub fn consumed(&self) -> impl Iterator<Item = QueueId> {
        self.reads.iter().chain(&self.drains).copied()
    }
}

/// A type of component: a Rust type, or a name for schedules that are made from data. The two are never equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Component {
    type_id: Option<TypeId>,
    name: Cow<'static, str>,
}

impl Component {
    /// The component that a Rust type is.
    pub fn of<T: 'static>() -> Self {
        Self { type_id: Some(TypeId::of::<T>()), name: Cow::Borrowed(type_name::<T>()) }
    }

    /// The component of this name.
    pub fn named(name: impl Into<Cow<'static, str>>) -> Self {
        Self { type_id: None, name: name.into() }
    }

    /// Path of the type, or the name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// How a system touches a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ComponentAccess {
    /// Reads; a writer in the same phase has to be ordered by hand.
    Read,
    /// Reads what this tick's writers wrote.
    ReadFresh,
    /// Reads what was there before this phase's writers.
    ReadSnapshot,
    /// Reads beside its main input; ordered like [`ReadFresh`](Self::ReadFresh).
    AdditionalRead,
    /// Writes.
    Write,
    /// Writes now and then, outside its own input; says so to tools, orders nothing.
    SideWrite,
}

/// How a system touches a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceAccess {
    /// Reads.
    Read,
    /// Writes.
    Write,
}

/// A component and how a system touches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentUse {
    /// Which.
    pub component: Component,
    /// How.
    pub access: ComponentAccess,
}

/// A resource and how a system touches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceUse {
    /// Name.
    pub resource: String,
    /// How.
    pub access: ResourceAccess,
}
