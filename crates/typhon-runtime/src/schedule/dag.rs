//! Declaring the phases, queues and systems of a DAG.

use std::any::type_name;
use std::sync::Arc;

use super::draft::{QueueDraft, SystemDraft};
use super::{Callback, Chunked, ChunkedWith, Pipeline, Schedule, ScheduleFault, SystemBuilder};
use crate::QueueId;
use crate::event_queue::{Queue, QueueOptions};
use crate::graph::SystemKind;
use crate::system::{AmbientContext, ChunkCtx, ChunkedBody, IntoOutcome, SystemBody, SystemCtx};

/// A DAG of a schedule that is being declared.
#[derive(Clone, Copy)]
pub struct DagBuilder<'s> {
    schedule: &'s Schedule,
    dag: usize,
}

impl<'s> DagBuilder<'s> {
    pub(super) fn new(schedule: &'s Schedule, dag: usize) -> Self {
        Self { schedule, dag }
    }

    /// Adds phases, in order; their names must be new in this DAG, and not empty. A DAG that never calls this has one
    /// phase named `Default`. A phase is a contract about order and not a barrier: systems of different phases wait
    /// for each other only where their access conflicts.
    pub fn phases<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Self {
        let mut names: Vec<String> = names.into_iter().map(Into::into).collect();
        let mut draft = self.schedule.edit();
        if names.is_empty() {
            let dag = draft.dags[self.dag].name.clone();
            draft.faults.push(ScheduleFault::NoPhases { dag });
        }
        draft.dags[self.dag].phases.append(&mut names);
        self
    }

    /// The phase of systems that do not name theirs; the first phase unless this says otherwise.
    pub fn default_phase(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.schedule.edit().dags[self.dag].default_phase = Some(name);
        self
    }

    /// A queue of events of type `T`. The name must be new in the schedule. `options` is a capacity, a power of two, or
    /// full [`QueueOptions`]. Clone the handle into the closures of the systems that use it, and let each of those
    /// systems declare its use.
    pub fn event_queue<T: Send + Sync + 'static>(
        self,
        name: impl Into<String>,
        options: impl Into<QueueOptions>,
    ) -> Queue<T> {
        let (name, options) = (name.into(), options.into());
        let mut draft = self.schedule.edit();
        // A schedule with more queues than ids is refused as a whole, so that the last id is never used.
        let id = QueueId::new(u16::try_from(draft.queues.len()).unwrap_or(u16::MAX));
        let queue = Queue::new(id, name, options);
        let (event_type_name, storage) = (type_name::<T>(), queue.erased());
        draft.queues.push(QueueDraft { dag: self.dag, event_type_name, storage });
        queue
    }

    /// A system that runs once per tick, on one worker. The name must be new in the schedule.
    pub fn callback_system<F, R>(self, name: impl Into<String>, mut run: F) -> SystemBuilder<'s, Callback>
    where
        F: FnMut(&mut SystemCtx<'_>) -> R + Send + 'static,
        R: IntoOutcome<()>,
    {
        let body = SystemBody::Callback(Box::new(move |ctx| run(ctx).into_outcome()));
        self.add(name.into(), SystemKind::Callback, 1, body)
    }

    /// A system that runs in `chunks` parts, 1 to 65,535, on as many workers as are free. The name must be new in the
    /// schedule.
    pub fn chunked_system<F, R>(
        self,
        name: impl Into<String>,
        chunks: u32,
        run: F,
    ) -> SystemBuilder<'s, Chunked>
    where
        F: Fn(&ChunkCtx<'_>) -> R + Send + Sync + 'static,
        R: IntoOutcome<()>,
    {
        let run = Box::new(move |ctx: &ChunkCtx<'_>| run(ctx).into_outcome());
        let body = ChunkedBody { run, should_run: None, prepare: None, context: None };
        self.add(name.into(), SystemKind::Chunked, chunks, SystemBody::Chunked(body))
    }

    /// A [chunked system](Self::chunked_system) whose chunks share a context of type `C`. The context is bound between
    /// building and starting; a runtime does not start while one is missing.
    pub fn chunked_system_with<C, F, R>(
        self,
        name: impl Into<String>,
        chunks: u32,
        run: F,
    ) -> SystemBuilder<'s, ChunkedWith<C>>
    where
        C: Send + Sync + 'static,
        F: Fn(&C, &ChunkCtx<'_>) -> R + Send + Sync + 'static,
        R: IntoOutcome<()>,
    {
        let context = AmbientContext::of::<C>();
        let bound = context.clone();
        let run = Box::new(move |ctx: &ChunkCtx<'_>| run(bound.get()?, ctx).into_outcome());
        let body = ChunkedBody { run, should_run: None, prepare: None, context: Some(context) };
        self.add(name.into(), SystemKind::Chunked, chunks, SystemBody::Chunked(body))
    }

    /// A system that runs in `chunks` parts, 1 to 65,535, each told its number and how many there are. The name must be
    /// new in the schedule.
    pub fn pipeline_system<F, R>(
        self,
        name: impl Into<String>,
        chunks: u32,
        run: F,
    ) -> SystemBuilder<'s, Pipeline>
    where
        F: Fn(u32, u32) -> R + Send + Sync + 'static,
        R: IntoOutcome<()>,
    {
        let body = SystemBody::Pipeline(Box::new(move |chunk, total| run(chunk, total).into_outcome()));
        self.add(name.into(), SystemKind::Pipeline, chunks, body)
    }

    /// Systems that belong together and are declared by one function. They are ordinary systems of this DAG: nothing of
    /// the group remains, neither a node nor a name nor a boundary for failures.
    pub fn compound_system(self, declare: impl FnOnce(DagBuilder<'s>)) -> Self {
        declare(self);
        self
    }

    fn add<K>(self, name: String, kind: SystemKind, chunks: u32, body: SystemBody) -> SystemBuilder<'s, K> {
        let mut draft = self.schedule.edit();
        draft.systems.push(SystemDraft::new(name, self.dag, kind, chunks, body));
        SystemBuilder::new(self.schedule, draft.systems.len() - 1)
    }
}

/// Does this handle belong to a queue of the schedule?
pub(super) fn owns<T: Send + Sync + 'static>(queues: &[QueueDraft], queue: &Queue<T>) -> bool {
    queues.get(queue.id().as_usize()).is_some_and(|own| Arc::ptr_eq(&own.storage, &queue.erased()))
}
