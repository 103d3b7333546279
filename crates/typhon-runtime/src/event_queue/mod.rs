//! Typed events that systems pass to each other.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::QueueId;

/// What happens to events that a full queue has no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FullPolicy {
    /// They are dropped and counted; a push is an error once its chunk alone has filled the queue.
    #[default]
    Error,
    /// They are dropped and counted, silently.
    DropNewest,
    /// The queue grows, up to this many events, a power of two; then as [`Error`](Self::Error).
    Grow(u32),
}

/// How a queue behaves. `1024.into()` is a queue of 1,024 events with the default for everything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueOptions {
    /// Events that it can hold, a power of two. Default 1,024.
    pub capacity: u32,
    /// What happens when it is full.
    pub full: FullPolicy,
    /// Do events that nobody has read yet stay for the next tick? Otherwise each tick starts with an empty queue.
    pub carry_over: bool,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self { capacity: 1024, full: FullPolicy::default(), carry_over: false }
    }
}

impl From<u32> for QueueOptions {
    fn from(capacity: u32) -> Self {
        Self { capacity, ..Self::default() }
    }
}

impl QueueOptions {
    /// The same queue with another answer to being full.
    pub fn full(self, full: FullPolicy) -> Self {
        Self { full, ..self }
    }

    /// The same queue, keeping what was not read for the next tick.
    pub fn carry_over(self) -> Self {
        Self { carry_over: true, ..self }
    }
}

/// A queue of events of type `T`: declared once, cloned into the closures of the systems that use it.
pub struct Queue<T> {
    id: QueueId,
    storage: Arc<Storage<T>>,
}

/// Where the events of one queue are.
struct Storage<T> {
    _events: PhantomData<fn(T) -> T>,
}

impl<T: Send + 'static> Queue<T> {
    /// An empty queue, for the builder of a schedule.
    pub(crate) fn new(id: QueueId, _options: QueueOptions) -> Self {
        Self { id, storage: Arc::new(Storage { _events: PhantomData }) }
    }

    /// The same queue without its type, for what drives all queues alike.
    pub(crate) fn erased(&self) -> Arc<dyn Any + Send + Sync> {
        self.storage.clone()
    }
}

impl<T> Queue<T> {
    /// Its number in the schedule and in traces.
    pub fn id(&self) -> QueueId {
        self.id
    }
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self { id: self.id, storage: Arc::clone(&self.storage) }
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Queue").field(&self.id).finish()
    }
}
