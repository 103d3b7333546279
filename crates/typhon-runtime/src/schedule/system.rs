//! Declaring one system: when it runs, what it touches, whom it follows.

use std::marker::PhantomData;

use super::dag::owns;
use super::draft::SystemDraft;
use super::{Priority, Schedule, ScheduleFault};
use crate::QueueId;
use crate::event_queue::Queue;
use crate::graph::{Component, ComponentAccess, ComponentUse, ResourceAccess, ResourceUse};
use crate::system::{AmbientContext, ChunkedBody, Chunks, IntoOutcome, SystemBody, TickInfo};

/// Marks the builder of a callback system.
#[derive(Debug)]
pub enum Callback {}
/// Marks the builder of a chunked system.
#[derive(Debug)]
pub enum Chunked {}
/// Marks the builder of a chunked system with a context.
#[derive(Debug)]
pub struct ChunkedWith<C>(PhantomData<C>);
/// Marks the builder of a pipeline.
#[derive(Debug)]
pub enum Pipeline {}

/// Systems that get a context when they run, and so can use event queues. A pipeline gets none:
///
/// ```compile_fail
/// # use typhon_runtime::schedule::Schedule;
/// let schedule = Schedule::new();
/// let sim = schedule.public_track().declare_dag("Sim");
/// let queue = sim.event_queue::<u32>("Hits", 64);
/// sim.pipeline_system("Fill", 4, |_, _| {}).writes_events(&queue);
/// ```
pub trait HasContext: sealed::Sealed {}
impl HasContext for Callback {}
impl HasContext for Chunked {}
impl<C> HasContext for ChunkedWith<C> {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Callback {}
    impl Sealed for super::Chunked {}
    impl<C> Sealed for super::ChunkedWith<C> {}
}

/// A system of a schedule that is being declared. `K` says which calls make sense for it.
pub struct SystemBuilder<'s, K> {
    schedule: &'s Schedule,
    system: usize,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for SystemBuilder<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for SystemBuilder<'_, K> {}

impl<'s, K> SystemBuilder<'s, K> {
    pub(super) fn new(schedule: &'s Schedule, system: usize) -> Self {
        Self { schedule, system, kind: PhantomData }
    }

    fn edit(self, change: impl FnOnce(&mut SystemDraft)) -> Self {
        change(&mut self.schedule.edit().systems[self.system]);
        self
    }

    /// Its phase; the default phase of the DAG unless this says otherwise.
    pub fn phase(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.edit(|system| system.phase = Some(name))
    }

    /// How much it matters under overload.
    pub fn priority(self, priority: Priority) -> Self {
        self.edit(|system| system.priority = priority)
    }

    /// It runs on one of `divisor` ticks, at least 1.
    pub fn tick_divisor(self, divisor: u32) -> Self {
        self.edit(|system| system.tick_divisor = divisor)
    }

    /// Under overload it runs on one of `divisor` ticks, at least 1, unless its own divisor is larger.
    pub fn throttled_tick_divisor(self, divisor: u32) -> Self {
        self.edit(|system| system.throttled_tick_divisor = divisor)
    }

    /// Under overload it may be left out. Only with [`Priority::Low`].
    pub fn can_shed(self) -> Self {
        self.edit(|system| system.can_shed = true)
    }

    /// It runs only in ticks for which `gate` says so. Several gates all have to agree.
    pub fn run_if<F, R>(self, mut gate: F) -> Self
    where
        F: FnMut(&TickInfo) -> R + Send + 'static,
        R: IntoOutcome<bool>,
    {
        self.edit(|system| system.gates.push(Box::new(move |tick| gate(tick).into_outcome())))
    }

    /// It has its phase to itself, and runs alone in its DAG: after everything of earlier phases and before everything
    /// of later ones.
    pub fn exclusive_phase(self) -> Self {
        self.edit(|system| system.is_exclusive = true)
    }

    /// It waits for another system of its DAG.
    pub fn after(self, system: impl Into<String>) -> Self {
        self.after_all([system])
    }

    /// It waits for other systems of its DAG.
    pub fn after_all<T: Into<String>>(self, systems: impl IntoIterator<Item = T>) -> Self {
        let mut systems: Vec<String> = systems.into_iter().map(Into::into).collect();
        self.edit(|own| own.after.append(&mut systems))
    }

    /// Another system of its DAG waits for it.
    pub fn before(self, system: impl Into<String>) -> Self {
        let system = system.into();
        self.edit(|own| own.before.push(system))
    }

    /// It reads components of type `T`. If another system of its phase writes them, `after` or `before` has to say
    /// which goes first; or use one of the two more exact declarations.
    pub fn reads<T: 'static>(self) -> Self {
        self.component(ComponentAccess::Read, Component::of::<T>())
    }

    /// It reads components of type `T` after the systems of its phase that write them.
    pub fn reads_fresh<T: 'static>(self) -> Self {
        self.component(ComponentAccess::ReadFresh, Component::of::<T>())
    }

    /// It reads components of type `T` before the systems of its phase that write them. Of writers in earlier phases it
    /// sees this tick's values.
    pub fn reads_snapshot<T: 'static>(self) -> Self {
        self.component(ComponentAccess::ReadSnapshot, Component::of::<T>())
    }

    /// It reads components of type `T` beside its main input; ordered like [`reads_fresh`](Self::reads_fresh).
    pub fn additional_reads<T: 'static>(self) -> Self {
        self.component(ComponentAccess::AdditionalRead, Component::of::<T>())
    }

    /// It writes components of type `T`. Two writers in one phase have to be ordered with `after` or `before`.
    pub fn writes<T: 'static>(self) -> Self {
        self.component(ComponentAccess::Write, Component::of::<T>())
    }

    /// It writes components of type `T` now and then, outside its own input. Tools show it; it orders nothing.
    pub fn side_writes<T: 'static>(self) -> Self {
        self.component(ComponentAccess::SideWrite, Component::of::<T>())
    }

    /// It touches a component that may be known by name alone: the general form of the six calls above, for schedules
    /// that are made from data.
    pub fn component(self, access: ComponentAccess, component: Component) -> Self {
        self.edit(|system| system.components.push(ComponentUse { component, access }))
    }

    /// It reads a resource, anything that systems share and that has a name. In one phase, writers go first.
    pub fn reads_resource(self, name: impl Into<String>) -> Self {
        self.resource(ResourceAccess::Read, name.into())
    }

    /// It writes a resource. Two writers in one phase have to be ordered with `after` or `before`.
    pub fn writes_resource(self, name: impl Into<String>) -> Self {
        self.resource(ResourceAccess::Write, name.into())
    }

    fn resource(self, access: ResourceAccess, resource: String) -> Self {
        self.edit(|system| system.resources.push(ResourceUse { resource, access }))
    }

    fn queue<T: Send + Sync + 'static>(
        self,
        queue: &Queue<T>,
        list: impl FnOnce(&mut SystemDraft) -> &mut Vec<QueueId>,
    ) -> Self {
        let mut draft = self.schedule.edit();
        if owns(&draft.queues, queue) {
            list(&mut draft.systems[self.system]).push(queue.id());
        } else {
            let system = draft.systems[self.system].name.clone();
            draft.faults.push(ScheduleFault::ForeignQueue { system });
        }
        self
    }
}

impl<K: HasContext> SystemBuilder<'_, K> {
    /// It pushes events to a queue of its DAG, and so runs before the systems that consume them.
    pub fn writes_events<T: Send + Sync + 'static>(self, queue: &Queue<T>) -> Self {
        self.queue(queue, |system| &mut system.queue_writes)
    }

    /// It reads the events of a queue of its DAG and leaves them to others. It runs after the systems that push them,
    /// and is skipped in ticks without any.
    pub fn reads_events<T: Send + Sync + 'static>(self, queue: &Queue<T>) -> Self {
        self.queue(queue, |system| &mut system.queue_reads)
    }
}

impl SystemBuilder<'_, Callback> {
    /// It takes the events out of a queue of its DAG. Otherwise as [`reads_events`](SystemBuilder::reads_events); and
    /// it has to be ordered with the other consumers of its phase. Systems that run in chunks cannot:
    ///
    /// ```compile_fail
    /// # use typhon_runtime::schedule::Schedule;
    /// let schedule = Schedule::new();
    /// let sim = schedule.public_track().declare_dag("Sim");
    /// let queue = sim.event_queue::<u32>("Hits", 64);
    /// sim.chunked_system("Count", 4, |_| {}).drains_events(&queue);
    /// ```
    pub fn drains_events<T: Send + Sync + 'static>(self, queue: &Queue<T>) -> Self {
        self.queue(queue, |system| &mut system.queue_drains)
    }
}

impl<C: Send + Sync + 'static> SystemBuilder<'_, ChunkedWith<C>> {
    /// Asks the context whether the system runs in this tick, once and before any chunk. The last call counts.
    pub fn should_run<F, R>(self, ask: F) -> Self
    where
        F: Fn(&C) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool>,
    {
        self.hook(|body, context| {
            body.should_run = Some(Box::new(move || ask(context.get()?).into_outcome()));
        })
    }

    /// Asks the context how many chunks there are in this tick, once and before any chunk. The last call counts.
    pub fn prepare<F, R>(self, ask: F) -> Self
    where
        F: Fn(&C) -> R + Send + Sync + 'static,
        R: IntoOutcome<Chunks>,
    {
        self.hook(|body, context| {
            body.prepare = Some(Box::new(move || ask(context.get()?).into_outcome()));
        })
    }

    fn hook(self, set: impl FnOnce(&mut ChunkedBody, AmbientContext)) -> Self {
        self.edit(|system| {
            if let SystemBody::Chunked(body) = &mut system.body
                && let Some(context) = body.context.clone()
            {
                set(body, context);
            }
        })
    }
}
