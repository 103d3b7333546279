//! The handle that systems hold, and the one that the scheduler holds.

use super::counters::QueueCounters;
use super::error::QueueError;
use super::options::QueueOptions;
use super::outbox::{AnyOutbox, Outbox, UsesQueues};
use super::reading::{Drained, Events};
use super::roles::{BindError, Roles};
use super::shared::Shared;
use crate::{QueueId, SystemIndex};
use std::fmt;
use std::sync::Arc;

/// An event queue of a DAG. Cloning gives another handle to the same queue, for the closures of several systems.
pub struct Queue<T>(Arc<Shared<T>>);

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("id", &self.0.id).field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl<T: Send + Sync + 'static> Queue<T> {
    /// A queue that no schedule uses yet; its id is its place among the schedule's queues.
    pub fn new(id: QueueId, name: impl Into<String>, options: QueueOptions) -> Self {
        Self(Arc::new(Shared::new(id, name.into(), options)))
    }

    /// Number of the queue in its schedule.
    pub fn id(&self) -> QueueId {
        self.0.id
    }

    /// As declared.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Adds an event. Readers see it when all producers have completed, and only if the running system succeeds.
    ///
    /// # Errors
    /// [`QueueError::Full`] once this chunk alone has pushed as many events as the queue holds, unless the queue drops
    /// the newest; [`QueueError::NotAProducer`] without the declaration; [`QueueError::OfAnotherRuntime`].
    #[inline]
    pub fn push(&self, ctx: &impl UsesQueues, event: T) -> Result<(), QueueError> {
        let scope = ctx.queue_scope();
        scope.outboxes.borrow_mut().push(self, scope.system, event)
    }

    /// The events that this system has not passed yet, in order. They stay for other readers; all chunks of the system
    /// see the same ones, and the system has passed them when it succeeds.
    ///
    /// # Errors
    /// [`QueueError::NotAReader`] without the declaration; [`QueueError::OfAnotherRuntime`].
    pub fn read<'a>(&'a self, ctx: &'a impl UsesQueues) -> Result<Events<'a, T>, QueueError> {
        let system = self.reader(ctx)?;
        Events::new(&self.0, system)
    }

    /// Takes all events out, in order. What the iterator has not given when it is dropped is gone too.
    ///
    /// # Errors
    /// [`QueueError::NotADrainer`] without the declaration; [`QueueError::InUse`] while this system holds [`Events`] of
    /// the queue; [`QueueError::OfAnotherRuntime`].
    pub fn drain<'a>(&'a self, ctx: &'a impl UsesQueues) -> Result<Drained<'a, T>, QueueError> {
        let system = self.reader(ctx)?;
        Drained::new(&self.0, system)
    }

    /// The system that runs, if the queue is one of its schedule.
    fn reader(&self, ctx: &impl UsesQueues) -> Result<SystemIndex, QueueError> {
        let scope = ctx.queue_scope();
        if scope.outboxes.borrow_mut().own(self) {
            Ok(scope.system)
        } else {
            Err(QueueError::OfAnotherRuntime { queue: self.name().to_owned() })
        }
    }

    /// The scheduler's handle.
    pub fn erased(&self) -> Arc<dyn ErasedQueue> {
        Arc::clone(&self.0) as Arc<dyn ErasedQueue>
    }

    pub(super) fn shared(&self) -> &Arc<Shared<T>> {
        &self.0
    }
}

/// A queue of any type, as the scheduler sees it. [The module](super) says when what is called.
pub trait ErasedQueue: Send + Sync {
    /// Number of the queue in its schedule.
    fn id(&self) -> QueueId;

    /// As declared.
    fn name(&self) -> &str;

    /// As declared.
    fn options(&self) -> &QueueOptions;

    /// Fixes who uses the queue.
    ///
    /// # Errors
    /// If that was done before: one queue in two schedules.
    fn bind(&self, roles: Roles) -> Result<(), BindError>;

    /// Empties the queue, or drops what all readers have passed if it carries over, and begins to count anew.
    fn begin_tick(&self);

    /// A producer has completed or was skipped: once per producer and tick. The last one merges, so that everything is
    /// there when this returns. Of a system that did not succeed nothing is taken.
    fn producer_done(&self, system: SystemIndex, succeeded: bool);

    /// A reader has completed. It has passed what it read, if it succeeded.
    fn reader_done(&self, system: SystemIndex, succeeded: bool);

    /// Is there nothing that this reader has not passed?
    fn is_empty_for(&self, system: SystemIndex) -> bool;

    /// What happened since [`ErasedQueue::begin_tick`].
    fn counters(&self) -> QueueCounters;

    /// A worker's side of the queue, for [`Outboxes`](super::Outboxes).
    fn outbox(self: Arc<Self>) -> AnyOutbox;
}

impl<T: Send + Sync + 'static> ErasedQueue for Shared<T> {
    fn id(&self) -> QueueId {
        self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn options(&self) -> &QueueOptions {
        &self.options
    }

    fn bind(&self, roles: Roles) -> Result<(), BindError> {
        self.bind(roles)
    }

    fn begin_tick(&self) {
        self.begin_tick();
    }

    fn producer_done(&self, system: SystemIndex, succeeded: bool) {
        self.producer_done(system, succeeded);
    }

    fn reader_done(&self, system: SystemIndex, succeeded: bool) {
        self.store_mut().reader_done(system, succeeded);
    }

    fn is_empty_for(&self, system: SystemIndex) -> bool {
        self.store().is_read_by(system)
    }

    fn counters(&self) -> QueueCounters {
        self.store().counters()
    }

    fn outbox(self: Arc<Self>) -> AnyOutbox {
        AnyOutbox::new(Outbox::new(self))
    }
}
