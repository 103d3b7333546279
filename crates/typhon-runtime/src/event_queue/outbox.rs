//! What a worker has pushed and not handed over yet.

use super::options::FullPolicy;
use super::queue::ErasedQueue;
use super::shared::Shared;
use super::store::drop_all;
use super::{Queue, QueueError};
use crate::{QueueId, SystemIndex};
use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

/// One worker's side of all queues of a schedule. Each worker owns one; nobody else ever looks into it.
#[derive(Default)]
pub struct Outboxes {
    /// By queue id.
    boxes: Vec<AnyOutbox>,
}

impl fmt::Debug for Outboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outboxes").field("queues", &self.boxes.len()).finish()
    }
}

impl Outboxes {
    /// For a worker of the schedule with these queues, in the order of their ids.
    pub fn new(queues: &[Arc<dyn ErasedQueue>]) -> Self {
        Self { boxes: queues.iter().map(|queue| Arc::clone(queue).outbox()).collect() }
    }

    /// The worker is about to run a chunk of a system that pushes into these queues. Clears what a chunk that was
    /// never ended has left.
    pub fn begin_chunk(&mut self, produces: &[QueueId], system: SystemIndex, chunk: u32) {
        for queue in produces {
            self.boxes[queue.as_usize()].0.begin(system, chunk);
        }
    }

    /// The chunk is over; what it pushed goes to the queues if it succeeded.
    pub fn end_chunk(&mut self, produces: &[QueueId], succeeded: bool) {
        for queue in produces {
            self.boxes[queue.as_usize()].0.end(succeeded);
        }
    }

    /// The outbox of this very queue, if it belongs to the schedule of this worker.
    fn of<T: Send + Sync + 'static>(&mut self, queue: &Queue<T>) -> Option<&mut Outbox<T>> {
        let found = self.boxes.get_mut(queue.id().as_usize())?;
        let outbox = found.0.as_any().downcast_mut::<Outbox<T>>()?;
        Arc::ptr_eq(&outbox.queue, queue.shared()).then_some(outbox)
    }

    pub(super) fn push<T: Send + Sync + 'static>(
        &mut self,
        queue: &Queue<T>,
        system: SystemIndex,
        event: T,
    ) -> Result<(), QueueError> {
        match self.of(queue) {
            Some(outbox) => outbox.push(system, event),
            None => Err(QueueError::OfAnotherRuntime { queue: queue.name().to_owned() }),
        }
    }

    pub(super) fn own<T: Send + Sync + 'static>(&mut self, queue: &Queue<T>) -> bool {
        self.of(queue).is_some()
    }
}

/// A running chunk, as queues see it.
#[derive(Debug, Clone, Copy)]
pub struct QueueScope<'a> {
    /// Those of the worker that runs the chunk. No borrow of them outlives a call on a queue.
    pub outboxes: &'a RefCell<Outboxes>,
    /// The running system.
    pub system: SystemIndex,
}

/// The contexts that systems are given.
pub trait UsesQueues {
    /// Who runs here.
    fn queue_scope(&self) -> QueueScope<'_>;
}

/// A worker's side of one queue of any type.
pub struct AnyOutbox(Box<dyn ErasedOutbox>);

impl fmt::Debug for AnyOutbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyOutbox").finish_non_exhaustive()
    }
}

impl AnyOutbox {
    pub(super) fn new<T: Send + Sync + 'static>(outbox: Outbox<T>) -> Self {
        Self(Box::new(outbox))
    }
}

trait ErasedOutbox: Send {
    fn begin(&mut self, system: SystemIndex, chunk: u32);
    fn end(&mut self, succeeded: bool);
    fn as_any(&mut self) -> &mut dyn Any;
}

pub(super) struct Outbox<T> {
    queue: Arc<Shared<T>>,
    /// The running chunk, if its system is a producer.
    running: Option<(SystemIndex, u32)>,
    events: Vec<T>,
    refused: u64,
}

impl<T> Drop for Outbox<T> {
    fn drop(&mut self) {
        drop_all(&mut self.events);
    }
}

impl<T: Send + Sync + 'static> Outbox<T> {
    pub(super) fn new(queue: Arc<Shared<T>>) -> Self {
        Self { queue, running: None, events: Vec::new(), refused: 0 }
    }

    #[inline]
    fn push(&mut self, system: SystemIndex, event: T) -> Result<(), QueueError> {
        if self.running.is_none() {
            return Err(QueueError::NotAProducer { queue: self.queue.name.clone(), system });
        }
        if self.events.len() < self.queue.options.limit() as usize {
            self.events.push(event);
            return Ok(());
        }
        self.refuse()
    }

    #[cold]
    fn refuse(&mut self) -> Result<(), QueueError> {
        self.refused += 1;
        if self.queue.options.full == FullPolicy::DropNewest {
            return Ok(());
        }
        let capacity = self.queue.options.limit();
        Err(QueueError::Full { queue: self.queue.name.clone(), capacity })
    }
}

impl<T: Send + Sync + 'static> ErasedOutbox for Outbox<T> {
    fn begin(&mut self, system: SystemIndex, chunk: u32) {
        drop_all(&mut self.events);
        self.refused = 0;
        self.running = Some((system, chunk));
    }

    fn end(&mut self, succeeded: bool) {
        let Some((system, chunk)) = self.running.take() else { return };
        if !succeeded {
            drop_all(&mut self.events);
        }
        let refused = std::mem::take(&mut self.refused);
        if refused > 0 || !self.events.is_empty() {
            self.queue.hand_over(system, chunk, &mut self.events, refused);
        }
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
