//! The runtime: a schedule, the threads that run it, and its life from creation to shutdown.

mod diagnostic;
mod driver;
mod error;
mod hooks;
#[cfg(test)]
mod lost_wake;
mod outcome;
mod pool;
mod resources;
mod shared;
#[cfg(test)]
mod slow_end;

pub use diagnostic::{Diagnostic, SystemDiagnostic, SystemStage};
pub use error::{ContextError, CreateError, ShutdownError, StartError, Terminal};
pub use outcome::{OutcomeReason, TickOutcome};

use crate::graph::Graph;
use crate::metronome::StepClock;
pub use crate::metronome::TimerMetrics;
use crate::overload::Rung;
use crate::schedule::{BuiltSchedule, Schedule, ScheduleOptions, ScheduleWarning};
use crate::scheduler::board::Board;
use crate::scheduler::control::{Control, Watch};
use crate::scheduler::execution::Execution;
use crate::scheduler::topology::Topology;
use crate::system::{IntoOutcome, TickInfo};
use crate::telemetry::{Telemetry, TelemetryWriter, telemetry_ring};
use driver::{Driver, TickLength, TickStart};
use hooks::{HookKind, Hooks};
use resources::Numbers;
use shared::{Shared, is_among, lock, say};
use std::fmt;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};
use typhon_engine::Engine;
use typhon_engine::options::{EngineOptions, FailurePolicy, RuntimeOptions};
use typhon_engine::resources::Resource;
use typhon_profiler::Program;
use typhon_trace::tables::RuntimeConfig;

/// Time that the hooks of an orderly end have, and then each thread.
const JOIN_WINDOW: Duration = Duration::from_secs(5);

/// Longest pause between two looks at what a shutdown waits for.
const PATIENCE: Duration = Duration::from_millis(5);

/// A schedule that runs, tick by tick.
///
/// It is created once and ends once. In between it either keeps its own time ([`Runtime::start`]) or is stepped by its
/// owner ([`Runtime::step`]). Dropping it shuts it down.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use std::sync::Arc;
/// use std::time::Duration;
/// use typhon_engine::Engine;
/// use typhon_runtime::Runtime;
///
/// let engine = Engine::builder().build()?;
/// let count = Arc::new(AtomicU32::new(0));
/// let counted = Arc::clone(&count);
/// let runtime = Runtime::create(&engine, |schedule| {
///     let sim = schedule.public_track().declare_dag("Sim");
///     sim.callback_system("Count", move |_| {
///         counted.fetch_add(1, Ordering::Relaxed);
///     });
/// })?;
/// runtime.step(Duration::from_millis(16))?;
/// runtime.step(Duration::from_millis(32))?;
/// runtime.shutdown()?;
/// assert_eq!(count.load(Ordering::Relaxed), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Runtime {
    shared: Arc<Shared>,
    warnings: Vec<ScheduleWarning>,
    life: Mutex<Life>,
    join_window: Duration,
    /// Not with the threads, which may let go of what they share a moment after they have ended.
    _nodes: Vec<Resource>,
    /// Kept open by the runtime: the recording ends after its last tick.
    _engine: Engine,
}

/// What a runtime is in the middle of.
enum Life {
    Created { telemetry: TelemetryWriter, hooks: Hooks },
    Stepped(Box<Driver>),
    KeepsTime,
    Ended,
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("systems", &self.graph().systems().len())
            .field("workers", &self.shared.workers)
            .field("tick", &self.current_tick())
            .field("terminal", &self.terminal())
            .finish_non_exhaustive()
    }
}

impl Runtime {
    /// A runtime of what `declare` declares, with the options of the engine. Nothing runs yet.
    ///
    /// # Errors
    /// [`CreateError`], with all faults of the schedule at once.
    pub fn create(engine: &Engine, declare: impl FnOnce(&Schedule)) -> Result<Self, CreateError> {
        Self::create_with(engine, engine.options().runtime.clone(), declare)
    }

    /// As [`Runtime::create`], with options of its own.
    ///
    /// # Errors
    /// [`CreateError`], with all faults of the options or of the schedule at once.
    pub fn create_with(
        engine: &Engine,
        options: RuntimeOptions,
        declare: impl FnOnce(&Schedule),
    ) -> Result<Self, CreateError> {
        let mut all = EngineOptions::default();
        all.runtime = options;
        all.check()?;
        let options = all.runtime;
        let schedule = Schedule::new();
        declare(&schedule);
        let rules = ScheduleOptions { require_access_declarations: options.require_access_declarations };
        let schedule = schedule.build(&rules)?;
        schedule.record_build();
        Ok(Self::of(engine, options, schedule))
    }

    fn of(engine: &Engine, options: RuntimeOptions, mut schedule: BuiltSchedule) -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        let workers = usize::from(options.worker_count.resolve(processors));
        let systems = schedule.graph.systems().len();
        let (writer, telemetry) = telemetry_ring(options.telemetry_ring_capacity as usize, systems);
        let numbers = Numbers::new(&schedule.graph, telemetry.clone());
        let nodes = resources::register(engine, &schedule.graph, &numbers).unwrap_or_else(|error| {
            say(format_args!("the runtime is missing from the tree of resources: {error}"));
            Vec::new()
        });
        describe(engine, &schedule.graph, &options, workers);
        let warnings = std::mem::take(&mut schedule.warnings);
        let topology = topology(&schedule.graph);
        let aborts = options.failure_policy == FailurePolicy::AbortTickAndStop;
        let board = Board::new(topology, workers, aborts);
        let grace = Duration::from_millis(u64::from(options.shutdown_stall_grace_ms));
        let execution = Execution::new(schedule, workers, Arc::new(Control::new(grace)));
        let shared = Shared::new(board, execution, options, workers, telemetry, numbers);
        let life = Life::Created { telemetry: writer, hooks: Hooks::default() };
        let engine = engine.clone();
        Self {
            shared: Arc::new(shared),
            warnings,
            life: Mutex::new(life),
            join_window: JOIN_WINDOW,
            _nodes: nodes,
            _engine: engine,
        }
    }

    /// The graph that it runs.
    pub fn graph(&self) -> &Graph {
        &self.shared.execution.graph
    }

    /// What is legal about the schedule and probably not meant.
    pub fn warnings(&self) -> &[ScheduleWarning] {
        &self.warnings
    }

    /// Workers, the driving thread among them.
    pub fn worker_count(&self) -> usize {
        self.shared.workers
    }

    /// Number of the tick in flight, or of the next one; the first is 1.
    pub fn current_tick(&self) -> i64 {
        self.shared.control.tick()
    }

    /// What became of the last tick that ended.
    pub fn last_tick_outcome(&self) -> Option<TickOutcome> {
        self.shared.last_outcome()
    }

    /// How it ended, if it has.
    pub fn terminal(&self) -> Option<Terminal> {
        self.shared.terminal()
    }

    /// The last ticks in numbers.
    pub fn telemetry(&self) -> &Telemetry {
        &self.shared.telemetry
    }

    /// How well ticks keep their time; empty for a runtime that is stepped.
    pub fn timer_metrics(&self) -> TimerMetrics {
        self.shared.timer()
    }

    /// Times that a worker slept on although it had been called. There is no reason why this should ever be above 0.
    pub fn lost_wakes(&self) -> u64 {
        self.shared.execution.lost_wakes.load(Ordering::Relaxed)
    }

    /// The state of the tick in flight, system by system.
    pub fn dump_diagnostic(&self) -> Diagnostic {
        Diagnostic::of(&self.shared)
    }

    /// Gives the context of a chunked system its value.
    ///
    /// # Errors
    /// [`ContextError`].
    pub fn bind_context<C: Send + Sync + 'static>(
        &self,
        system: &str,
        context: C,
    ) -> Result<(), ContextError> {
        let named = || system.to_owned();
        if self.shared.is_own_thread() || !matches!(*lock(&self.life), Life::Created { .. }) {
            return Err(ContextError::Started { system: named() });
        }
        let found = self.graph().find_system(system).and_then(|index| self.shared.execution.context(index));
        let slot = found.ok_or_else(|| ContextError::NoContext { system: named() })?;
        slot.bind(context).map_err(|source| ContextError::Bind { system: named(), source })
    }

    /// Runs `hook` at the beginning of the first tick, before any system.
    pub fn on_first_tick<R: IntoOutcome<()>>(&self, hook: impl FnMut(&TickInfo) -> R + Send + 'static) {
        self.add_hook(HookKind::FirstTick, hook);
    }

    /// Runs `hook` in every tick after all systems, unless the tick was aborted.
    pub fn on_output<R: IntoOutcome<()>>(&self, hook: impl FnMut(&TickInfo) -> R + Send + 'static) {
        self.add_hook(HookKind::Output, hook);
    }

    /// Runs `hook` instead of output when the tick was aborted: once, since it is the last tick.
    pub fn on_tick_aborted<R: IntoOutcome<()>>(&self, hook: impl FnMut(&TickInfo) -> R + Send + 'static) {
        self.add_hook(HookKind::TickAborted, hook);
    }

    /// Runs `hook` after the last tick of a runtime that is shut down. Not after an abort or [`Runtime::fatal_stop`].
    ///
    /// [`Runtime::shutdown`] waits five seconds for it. One that takes longer goes on, and another call of `shutdown`
    /// waits for it again.
    pub fn on_shutdown<R: IntoOutcome<()>>(&self, hook: impl FnMut(&TickInfo) -> R + Send + 'static) {
        self.add_hook(HookKind::Shutdown, hook);
    }

    /// What is done about overload: the level that is in force, and the base intervals between ticks.
    pub fn overload(&self) -> Rung {
        self.shared.overload()
    }

    /// Runs `hook` after a tick with which overload has reached its last level, once each time it does: all other measures
    /// are taken, and the load is still too high. Nobody is disconnected by the runtime.
    pub fn on_critical_overload<R: IntoOutcome<()>>(
        &self,
        hook: impl FnMut(&TickInfo) -> R + Send + 'static,
    ) {
        self.add_hook(HookKind::CriticalOverload, hook);
    }

    /// Hooks of a runtime that has started are not run any more, so they are said to be late.
    fn add_hook<R: IntoOutcome<()>>(
        &self,
        kind: HookKind,
        hook: impl FnMut(&TickInfo) -> R + Send + 'static,
    ) {
        let late = || say("a hook was registered after the start and will not run; register hooks first");
        if self.shared.is_own_thread() {
            return late();
        }
        match &mut *lock(&self.life) {
            Life::Created { hooks, .. } => hooks.add(kind, hook),
            _ => late(),
        }
    }

    /// Has helpers take part in every tick, also where calling them costs more than they save. For tests and
    /// measurements; results never depend on it.
    pub fn always_call_helpers(&self, always: bool) {
        self.shared.execution.always_helps.store(always, Ordering::Relaxed);
    }

    /// Starts ticks on a thread of the runtime, at the base rate.
    ///
    /// # Errors
    /// [`StartError`]; nothing runs then.
    pub fn start(&self) -> Result<(), StartError> {
        self.not_from_within()?;
        let mut life = lock(&self.life);
        let driver = match std::mem::replace(&mut *life, Life::Ended) {
            Life::Created { telemetry, hooks } => self.begin(&mut life, telemetry, hooks)?,
            other => {
                *life = other;
                return Err(self.why_not_created(&life));
            }
        };
        let started = pool::start_driver(&self.shared, driver);
        *life = Life::KeepsTime;
        if started.is_err() {
            self.shared.control.request_stop(true);
            self.shared.board.stop();
            *life = Life::Ended;
        }
        started
    }

    /// Runs one tick on the calling thread; `now` is the time on a clock of the caller's. The first step starts the
    /// helpers, if there are any.
    ///
    /// # Errors
    /// The runtime has ended, was started to keep its own time, or could not be started.
    pub fn step(&self, now: Duration) -> Result<TickOutcome, StartError> {
        self.step_of(now, TickLength::None)
    }

    /// As [`Runtime::step`], of a tick that is taken to last `took` on the caller's clock. Overload is judged by that;
    /// in a plain step no time passes, and there is none. The caller leaves as many base intervals
    /// before the next step as [`Runtime::overload`] says.
    ///
    /// # Errors
    /// As [`Runtime::step`].
    pub fn step_as_if(&self, now: Duration, took: Duration) -> Result<TickOutcome, StartError> {
        self.step_of(now, TickLength::AsIf(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Who steps has the runtime to itself until the tick is over: a system that waited for that would wait for itself.
    fn not_from_within(&self) -> Result<(), StartError> {
        if self.shared.is_own_thread() { Err(StartError::AlreadyRuns("is in a tick")) } else { Ok(()) }
    }

    fn step_of(&self, now: Duration, length: TickLength) -> Result<TickOutcome, StartError> {
        self.not_from_within()?;
        let mut life = lock(&self.life);
        if let Some(terminal) = self.terminal() {
            return Err(terminal.into());
        }
        if let Life::Created { .. } = *life
            && let Life::Created { telemetry, hooks } = std::mem::replace(&mut *life, Life::Ended)
        {
            let driver = self.begin(&mut life, telemetry, hooks)?;
            *life = Life::Stepped(Box::new(driver));
        }
        let Life::Stepped(driver) = &mut *life else { return Err(self.why_not_created(&life)) };
        let now_ns = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        let entered = self.shared.enter();
        let result = driver.tick(&self.shared, TickStart { now_ns, late_ns: 0, missed_ticks: 0, length });
        drop(entered);
        if let Err(terminal) = result {
            self.shared.end(terminal);
        }
        let outcome = self.last_tick_outcome().filter(|outcome| outcome.tick + 1 == self.current_tick());
        if self.terminal().is_some() || self.shared.control.is_stopping() {
            self.end_stepping(&mut life, now_ns);
        }
        outcome.ok_or_else(|| self.why_not_created(&life))
    }

    /// From created to running: contexts are bound, helpers exist.
    fn begin(&self, life: &mut Life, telemetry: TelemetryWriter, hooks: Hooks) -> Result<Driver, StartError> {
        if let Some(terminal) = self.terminal() {
            return Err(terminal.into());
        }
        let systems = self.shared.execution.unbound_contexts();
        if !systems.is_empty() {
            *life = Life::Created { telemetry, hooks };
            return Err(StartError::UnboundContext { systems });
        }
        if let Err(error) = pool::start_helpers(&self.shared) {
            self.shared.board.stop();
            self.shared.end(Terminal::FatalStop);
            return Err(error);
        }
        let options = &self.shared.options;
        let steps =
            StepClock::new(options.time_step, options.base_tick_rate_hz, options.max_delta_time_seconds);
        Ok(Driver::new(&self.shared, telemetry, hooks, steps))
    }

    fn why_not_created(&self, life: &Life) -> StartError {
        match (self.terminal(), life) {
            (Some(terminal), _) => terminal.into(),
            (None, Life::KeepsTime) => StartError::AlreadyRuns("keeps its own time"),
            (None, Life::Stepped(_)) => StartError::AlreadyRuns("is stepped"),
            (None, Life::Created { .. } | Life::Ended) => Terminal::ShutDown.into(),
        }
    }

    /// Finishes the tick in flight, runs the handlers of [`Runtime::on_shutdown`], and ends all threads. Called by a
    /// system, it returns at once, and the runtime ends after the tick. Does nothing if it has ended.
    ///
    /// # Errors
    /// [`ShutdownError`], if a tick does not end or a thread does not. The runtime is terminal then too.
    pub fn shutdown(&self) -> Result<(), ShutdownError> {
        self.stop(false)
    }

    /// As [`Runtime::shutdown`], without the handlers.
    ///
    /// # Errors
    /// As [`Runtime::shutdown`].
    pub fn fatal_stop(&self) -> Result<(), ShutdownError> {
        self.stop(true)
    }

    fn stop(&self, is_fatal: bool) -> Result<(), ShutdownError> {
        let shared = &self.shared;
        shared.control.request_stop(is_fatal);
        if shared.is_own_thread() {
            return Ok(());
        }
        let result = self.finish();
        shared.end(match &result {
            Err(ShutdownError::Stalled { tick, running, .. }) => {
                Terminal::Stalled { tick: *tick, running: running.clone() }
            }
            _ if shared.control.is_fatal() => Terminal::FatalStop,
            _ => Terminal::ShutDown,
        });
        result
    }

    fn finish(&self) -> Result<(), ShutdownError> {
        // Whoever steps has the runtime until the tick ends, which it may never do.
        let mut life = self.await_unless_stalled(|| match self.life.try_lock() {
            Ok(life) => Some(life),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        })?;
        if let Life::Stepped(_) = &*life {
            self.end_stepping(&mut life, 0);
        }
        *life = Life::Ended;
        self.await_unless_stalled(|| (!self.shared.threads.is_alive(pool::DRIVER)).then_some(()))?;
        self.await_threads()
    }

    fn end_stepping(&self, life: &mut Life, now_ns: i64) {
        if let Life::Stepped(mut driver) = std::mem::replace(life, Life::Ended) {
            let is_orderly = !self.shared.control.is_fatal() && self.terminal().is_none();
            if is_orderly {
                let _entered = self.shared.enter();
                driver.shut_down(&self.shared, now_ns);
            }
            self.shared.board.stop();
            self.shared.end(if is_orderly { Terminal::ShutDown } else { Terminal::FatalStop });
        }
    }

    /// Waits for something that follows the last tick. Gives up when nothing has moved in the tick for a while.
    fn await_unless_stalled<T>(&self, ready: impl Fn() -> Option<T>) -> Result<T, ShutdownError> {
        let shared = &self.shared;
        let grace = shared.control.grace();
        let (mut watch, mut hook_since) = (Watch::default(), None);
        loop {
            if let Some(ready) = ready() {
                return Ok(ready);
            }
            if !shared.control.is_in_tick() {
                watch.forget();
                if shared.hook() == Some(HookKind::Shutdown) {
                    let waited = hook_since.get_or_insert_with(Instant::now).elapsed();
                    if waited >= self.join_window {
                        return Err(ShutdownError::Hook { waited_ms: waited.as_millis() as u64 });
                    }
                }
            }
            let idle = watch.look(shared.board.progress());
            if idle >= grace {
                let (tick, running) = (shared.control.tick(), shared.running());
                return Err(ShutdownError::Stalled { tick, running, waited_ms: idle.as_millis() as u64 });
            }
            if shared.threads.is_alive(pool::DRIVER) {
                shared.threads.wait(PATIENCE, |alive| !is_among(pool::DRIVER, alive));
            } else {
                // Whoever steps is no thread of ours, and says nothing when it is done.
                std::thread::sleep(PATIENCE);
            }
        }
    }

    fn await_threads(&self) -> Result<(), ShutdownError> {
        let deadline = Instant::now() + self.join_window;
        loop {
            let threads = self.shared.threads.alive();
            let left = deadline.saturating_duration_since(Instant::now());
            if threads.is_empty() {
                return Ok(());
            }
            if left.is_zero() {
                return Err(ShutdownError::Threads { threads });
            }
            self.shared.threads.wait(left, <[String]>::is_empty);
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let result = self.stop(false);
        // What hangs may still come to its end.
        let result = result.or_else(|_| self.await_threads());
        if let Err(error) = result {
            say(format_args!("dropped while it runs: {error}"));
        }
    }
}

fn describe(engine: &Engine, graph: &Graph, options: &RuntimeOptions, workers: usize) {
    let mut tables = graph.trace_tables();
    tables.runtime_config = Some(RuntimeConfig {
        base_tick_rate: options.base_tick_rate_hz as i32,
        worker_count: workers as i32,
        telemetry_ring_capacity: options.telemetry_ring_capacity as i32,
        parallel_query_min_chunk_size: 0,
    });
    tables.resource_graph = engine.resources().trace_table();
    typhon_profiler::describe(Program::new(tables));
}

fn topology(graph: &Graph) -> Topology {
    let order: Vec<u16> = graph.topological_order().iter().map(|system| system.get()).collect();
    let track = |track: &crate::graph::TrackNode| -> Range<usize> {
        let mut dags = track.dags.clone().map(|dag| &graph.dags()[usize::from(dag)].systems);
        let start = dags.clone().next().map_or(0, |systems| systems.start);
        let end = dags.next_back().map_or(start, |systems| systems.end);
        usize::from(start)..usize::from(end)
    };
    let node = |system: u16| graph.system(crate::SystemIndex::new(system));
    let is_exempt = |system| graph.track(graph.dag(node(system).dag).track).is_engine;
    let may_be_shared = |system| node(system).kind != crate::graph::SystemKind::Callback;
    let successors = |system| {
        graph.successors(crate::SystemIndex::new(system)).iter().map(|system| system.get()).collect()
    };
    Topology::new(order, graph.tracks().iter().map(track), successors, is_exempt, may_be_shared)
}
