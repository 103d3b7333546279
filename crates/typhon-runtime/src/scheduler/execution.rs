//! What the protocol does on behalf of a schedule: asks gates, runs the code of systems, guards both, and says what
//! happened.

use super::affinity::{Allowed, current_processor};
use super::board::Padded;
use super::claim::Epoch;
use super::claimed::Claimed;
use super::clocks::SystemTimes;
use super::control::{Control, Watch};
use super::failure::{FailureKind, Failures, SystemFailure, error_message, panic_message};
use super::gates::{self, GateFault, Gates};
use super::trace;
use super::worker::{Awakening, Chunk, Told, Turn, Verdict, Work};
use crate::event_queue::{ErasedQueue, Outboxes};
use crate::graph::{Graph, SystemKind, SystemNode};
use crate::overload::{Decision, SystemLoad, stagger_offsets};
use crate::schedule::BuiltSchedule;
use crate::system::{
    CallbackFn, ChunkCtx, ChunkedBody, Chunks, Invocation, PipelineFn, RunIf, SystemBody, SystemCtx,
    SystemError, SystemResult, TickInfo,
};
use crate::{QueueId, SystemIndex, WorkerId};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};
use typhon_profiler::{Span, TickScale, Ticks, is_recorded};
use typhon_trace::event::{OverloadLevel, SchedulerChunk, SkipReason};

const RELAXED: Ordering = Ordering::Relaxed;

/// The code of a system, by who may use it at a time.
enum Body {
    /// Whoever has claimed its only chunk.
    Callback(Claimed<Box<CallbackFn>>),
    /// Everybody.
    Chunked(Box<ChunkedBody>),
    Pipeline(Box<PipelineFn>),
}

/// One system as execution needs it.
struct Plan {
    body: Body,
    gates: Claimed<Vec<Box<RunIf>>>,
    /// Has it gates, a divisor or queues to consume?
    is_gated: bool,
    is_shared: bool,
    has_queues: bool,
    declared_chunks: u32,
    load: SystemLoad,
    produces: Box<[QueueId]>,
    consumes: Box<[QueueId]>,
    predecessors: u16,
}

/// A schedule that can be executed.
pub(crate) struct Execution {
    pub(crate) graph: Arc<Graph>,
    plans: Box<[Plan]>,
    pub(crate) queues: Box<[Arc<dyn ErasedQueue>]>,
    pub(crate) times: Box<[SystemTimes]>,
    pub(crate) failures: Failures,
    tick: SharedTick,
    /// Nanoseconds from the start of each system to the end of what follows it, as far as is known.
    pub(crate) paths_ns: Box<[AtomicU32]>,
    /// What it takes to wake somebody, nanoseconds.
    wake_cost_ns: AtomicU32,
    /// Helpers are called whether or not that pays.
    pub(crate) always_helps: AtomicBool,
    /// The processor that helpers were last called from.
    pub(crate) called_from: AtomicU32,
    /// When helpers were last called, and when that call was over.
    pub(crate) called_at: AtomicU64,
    pub(crate) call_over_at: AtomicU64,
    pub(crate) lost_wakes: AtomicU64,
    /// Last tick in which each worker ran a chunk.
    active_in: Box<[Padded<AtomicU64>]>,
    pub(crate) control: Arc<Control>,
}

/// The current tick. Workers copy it when they enter; one that is left over from an earlier tick may copy nonsense, and
/// then has nothing to use it for.
#[derive(Default)]
struct SharedTick {
    number: AtomicI64,
    delta: AtomicU64,
    measured: AtomicU64,
    fixed: AtomicU64,
    level: AtomicU8,
}

impl SharedTick {
    fn set(&self, tick: &TickInfo, level: OverloadLevel) {
        self.level.store(level.0, RELAXED);
        self.number.store(tick.number, RELAXED);
        self.delta.store(tick.delta_seconds.to_bits(), RELAXED);
        self.measured.store(tick.measured_delta_seconds.to_bits(), RELAXED);
        self.fixed.store(tick.fixed_delta_seconds.to_bits(), RELAXED);
    }

    fn get(&self) -> TickInfo {
        TickInfo {
            number: self.number.load(RELAXED),
            delta_seconds: f64::from_bits(self.delta.load(RELAXED)),
            measured_delta_seconds: f64::from_bits(self.measured.load(RELAXED)),
            fixed_delta_seconds: f64::from_bits(self.fixed.load(RELAXED)),
        }
    }

    fn level(&self) -> OverloadLevel {
        OverloadLevel(self.level.load(RELAXED))
    }
}

/// What one worker needs to run systems.
pub(crate) struct Local {
    worker: WorkerId,
    outboxes: RefCell<Outboxes>,
    tick: TickInfo,
    level: OverloadLevel,
    epoch: Epoch,
    is_active: bool,
    /// The latest moment that the worker knows.
    pub(crate) now: Ticks,
    pub(crate) scale: TickScale,
    idle_since: Ticks,
    allowed: Allowed,
    /// Since when nothing moves, as far as the driver has looked.
    watch: Watch,
}

impl Execution {
    /// Takes a schedule apart. `workers` of them will run it.
    pub(crate) fn new(schedule: BuiltSchedule, workers: usize, control: Arc<Control>) -> Self {
        let BuiltSchedule { graph, bodies, gates, queues, .. } = schedule;
        let offsets = stagger_offsets(&graph);
        let parts = bodies.into_iter().zip(gates).zip(offsets);
        let plan = |(at, ((body, gates), offset))| Plan::new(&graph, at, body, gates, offset);
        let systems = graph.systems().len();
        Self {
            plans: (0..).zip(parts).map(plan).collect(),
            queues: queues.into_iter().map(|queue| queue.storage).collect(),
            times: (0..systems).map(|_| SystemTimes::default()).collect(),
            failures: Failures::new(systems),
            tick: SharedTick::default(),
            paths_ns: (0..systems).map(|_| AtomicU32::new(0)).collect(),
            wake_cost_ns: AtomicU32::new(DEFAULT_WAKE_COST_NS),
            always_helps: AtomicBool::new(false),
            called_from: AtomicU32::new(u32::MAX),
            called_at: AtomicU64::new(0),
            call_over_at: AtomicU64::new(0),
            lost_wakes: AtomicU64::new(0),
            active_in: (0..workers).map(|_| Padded::default()).collect(),
            control,
            graph,
        }
    }

    /// A worker's own things, made by its own thread.
    pub(crate) fn local(&self, worker: usize) -> Local {
        Local {
            worker: WorkerId::new(worker as u8),
            outboxes: RefCell::new(Outboxes::new(&self.queues)),
            tick: self.tick.get(),
            level: self.tick.level(),
            epoch: Epoch::NONE,
            is_active: false,
            now: Ticks::now(),
            scale: TickScale::current(),
            idle_since: Ticks::now(),
            allowed: Allowed::of_this_thread(),
            watch: Watch::default(),
        }
    }

    /// Says which tick comes next, and the level of overload in force. Only between ticks.
    pub(crate) fn set_tick(&self, tick: &TickInfo, level: OverloadLevel) {
        self.tick.set(tick, level);
    }

    /// Workers that ran a chunk in this tick.
    pub(crate) fn active_workers(&self, epoch: Epoch) -> u16 {
        let active = self.active_in.iter().filter(|active| active.0.load(RELAXED) == epoch.get());
        active.count() as u16
    }

    /// Is this more than it takes to wake somebody?
    #[inline(always)]
    pub(crate) fn pays(&self, gain_ns: u64) -> bool {
        gain_ns > u64::from(self.wake_cost_ns.load(RELAXED)) || self.always_helps.load(RELAXED)
    }

    /// Names of chunked systems whose context has no value yet.
    pub(crate) fn unbound_contexts(&self) -> Vec<String> {
        let is_unbound = |plan: &Plan| match &plan.body {
            Body::Chunked(body) => body.context.as_ref().is_some_and(|context| !context.is_bound()),
            Body::Callback(_) | Body::Pipeline(_) => false,
        };
        let unbound = self.graph.systems().iter().zip(&self.plans).filter(|(_, plan)| is_unbound(plan));
        unbound.map(|(system, _)| system.name.clone()).collect()
    }

    /// The context of a chunked system.
    pub(crate) fn context(&self, system: SystemIndex) -> Option<&crate::system::AmbientContext> {
        match &self.plans[system.as_usize()].body {
            Body::Chunked(body) => body.context.as_ref(),
            Body::Callback(_) | Body::Pipeline(_) => None,
        }
    }

    fn node(&self, system: u16) -> &SystemNode {
        self.graph.system(SystemIndex::new(system))
    }

    fn note_failure(
        &self,
        local: &Local,
        system: u16,
        chunk: Option<u32>,
        kind: FailureKind,
        message: String,
    ) {
        let name = self.node(system).name.clone();
        let failure = SystemFailure { system: name, tick: local.tick.number, chunk, kind, message };
        self.failures.note(usize::from(system), failure);
    }
}

/// Until something was measured: what a sleeping thread takes to run on an ordinary machine.
const DEFAULT_WAKE_COST_NS: u32 = 20_000;

impl Plan {
    fn new(graph: &Graph, at: u16, body: SystemBody, gates: Vec<Box<RunIf>>, offset: u16) -> Self {
        let node = graph.system(SystemIndex::new(at));
        let hooks = match &body {
            SystemBody::Chunked(body) => body.should_run.is_some() || body.prepare.is_some(),
            SystemBody::Callback(_) | SystemBody::Pipeline(_) => false,
        };
        let consumes: Box<[_]> = node.queues.consumed().collect();
        let load = SystemLoad::of(node, offset);
        Self {
            body: match body {
                SystemBody::Callback(code) => Body::Callback(Claimed::new(code)),
                SystemBody::Chunked(body) => Body::Chunked(Box::new(body)),
                SystemBody::Pipeline(code) => Body::Pipeline(code),
            },
            is_gated: hooks || !gates.is_empty() || load.is_ever_left_out() || !consumes.is_empty(),
            has_queues: !consumes.is_empty() || !node.queues.writes.is_empty(),
            is_shared: node.kind != SystemKind::Callback,
            gates: Claimed::new(gates),
            declared_chunks: node.chunk_count,
            load,
            produces: node.queues.writes.clone().into(),
            consumes,
            predecessors: graph.predecessor_count(SystemIndex::new(at)),
        }
    }

    /// Runs one chunk.
    #[inline(always)]
    #[allow(unsafe_code, reason = "the body belongs to the claim")]
    fn call(&self, invocation: Invocation<'_>) -> SystemResult {
        match &self.body {
            // SAFETY: a callback has one chunk per tick, which this thread has claimed and not completed; the claim is
            // ordered after everything of the ticks before.
            Body::Callback(code) => unsafe { code.with(|code| code(&mut SystemCtx::new(invocation))) },
            Body::Chunked(body) => (body.run)(&ChunkCtx::new(invocation)),
            Body::Pipeline(code) => code(invocation.chunk, invocation.chunk_count),
        }
    }
}

/// The gates of one system in one tick.
struct Asked<'a> {
    execution: &'a Execution,
    plan: &'a Plan,
    tick: &'a TickInfo,
    level: OverloadLevel,
    system: SystemIndex,
}

impl Asked<'_> {
    fn guard<T>(gate: &'static str, ask: impl FnOnce() -> Result<T, SystemError>) -> Result<T, GateFault> {
        match catch_unwind(AssertUnwindSafe(ask)) {
            Ok(answer) => answer.map_err(|error| GateFault { gate, error }),
            Err(payload) => {
                let error = format!("panic: {}", panic_message(payload)).into();
                Err(GateFault { gate, error })
            }
        }
    }

    fn hooks(&self) -> Option<&ChunkedBody> {
        match &self.plan.body {
            Body::Chunked(body) => Some(body),
            Body::Callback(_) | Body::Pipeline(_) => None,
        }
    }
}

impl Gates for Asked<'_> {
    #[allow(unsafe_code, reason = "the gates belong to who releases the system")]
    fn run_if(&mut self) -> Result<bool, GateFault> {
        let all = |gates: &mut Vec<Box<RunIf>>| {
            for gate in gates {
                if !gate(self.tick)? {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        // SAFETY: the last predecessor to be through releases the system, once per tick, and this is its thread; it is
        // ordered after everything of the ticks before.
        unsafe { self.plan.gates.with(|gates| Self::guard("run_if", || all(gates))) }
    }

    fn should_run(&mut self) -> Result<bool, GateFault> {
        let hook = self.hooks().and_then(|hooks| hooks.should_run.as_ref());
        hook.map_or(Ok(true), |hook| Self::guard("should_run", hook))
    }

    fn due(&mut self) -> Decision {
        let decision = self.plan.load.decide(self.level, self.tick.number);
        trace::left_out(|| decision.event(self.system, self.level));
        decision
    }

    fn prepare(&mut self) -> Result<Chunks, GateFault> {
        let hook = self.hooks().and_then(|hooks| hooks.prepare.as_ref());
        hook.map_or(Ok(Chunks::Declared), |hook| Self::guard("prepare", hook))
    }

    fn is_without_events(&mut self) -> bool {
        let queues = &self.execution.queues;
        let consumed = || self.plan.consumes.iter().map(|queue| &queues[queue.as_usize()]);
        !self.plan.consumes.is_empty() && consumed().all(|queue| queue.is_empty_for(self.system))
    }

    fn declared_chunks(&self) -> u32 {
        self.plan.declared_chunks
    }
}

impl Work for Execution {
    type Local = Local;

    fn enter(&self, local: &mut Local, epoch: Epoch) {
        (local.tick, local.level, local.epoch) = (self.tick.get(), self.tick.level(), epoch);
        (local.is_active, local.scale) = (false, TickScale::current());
        let called_from = self.called_from.load(RELAXED);
        if local.worker.get() != 0 && current_processor() == Some(called_from) {
            local.allowed.stay_away_from(called_from);
        }
    }

    fn track_begins(&self, local: &mut Local) {
        local.now = Ticks::now();
    }

    #[inline(always)]
    fn turn(&self, local: &mut Local, system: u16, turn: Turn) -> Verdict {
        let plan = &self.plans[usize::from(system)];
        self.times[usize::from(system)].set_ready(local.now, plan.is_shared);
        if let Some(from) = turn.from {
            let fan_out = || self.graph.successors(SystemIndex::new(from)).len() as u16;
            trace::dependency_ready(local.now, from, system, fan_out);
        }
        trace::ready(local.now, system, plan.predecessors);
        if !plan.is_gated && !turn.is_aborted && !turn.predecessor_failed {
            return Verdict::Run(plan.declared_chunks);
        }
        self.ask_gates(local, system, turn)
    }

    #[inline(always)]
    fn claimed<const ALONE: bool>(&self, local: &mut Local, chunk: Chunk) {
        // Alone, what ended last ended just now, so the clock is read once per system. A trace gets both moments.
        if !ALONE || is_recorded::<SchedulerChunk>() {
            local.now = Ticks::now();
        }
        trace::dispensed(local.now, chunk, local.worker);
        if chunk.chunk == 0 {
            let times = &self.times[usize::from(chunk.system)];
            times.set_first_claim(local.now);
            trace::first_claim(local.now, chunk.system, || local.scale.ns_between(times.ready(), local.now));
        }
    }

    #[inline(always)]
    fn run(&self, local: &mut Local, chunk: Chunk, is_last_claim: bool) -> bool {
        let plan = &self.plans[usize::from(chunk.system)];
        let start = local.now;
        if !local.is_active {
            local.is_active = true;
            self.active_in[usize::from(local.worker.get())].0.store(local.epoch.get(), RELAXED);
        }
        if !plan.produces.is_empty() {
            let system = SystemIndex::new(chunk.system);
            local.outboxes.borrow_mut().begin_chunk(&plan.produces, system, chunk.chunk);
        }
        let span = Span::begin_system(chunk.system, start, || SchedulerChunk {
            system_idx: chunk.system,
            chunk_idx: chunk.chunk as u16,
            total_chunks: chunk.total as u16,
            entities_processed: 0,
        });
        let invocation = Invocation {
            tick: &local.tick,
            system: SystemIndex::new(chunk.system),
            node: self.node(chunk.system),
            worker: local.worker,
            outboxes: &local.outboxes,
            chunk: chunk.chunk,
            chunk_count: chunk.total,
        };
        let result = catch_unwind(AssertUnwindSafe(|| plan.call(invocation)));
        local.now = Ticks::now();
        span.end_at(local.now);
        if plan.is_shared {
            let times = &self.times[usize::from(chunk.system)];
            times.add_chunk(usize::from(local.worker.get()), start, local.now, is_last_claim);
        }
        let succeeded = matches!(result, Ok(Ok(())));
        if !plan.produces.is_empty() {
            local.outboxes.borrow_mut().end_chunk(&plan.produces, succeeded);
        }
        if !succeeded {
            self.chunk_failed(local, chunk, result);
            // What was said about it is nobody's work.
            local.now = Ticks::now();
        }
        succeeded
    }

    #[inline(always)]
    fn alone(&self, system: u16, chunks: u32, run: impl FnOnce()) {
        let _span = trace::alone(system, chunks);
        run();
    }

    #[inline(always)]
    fn completed(&self, local: &mut Local, system: u16, outcome: u8) {
        let plan = &self.plans[usize::from(system)];
        let times = &self.times[usize::from(system)];
        times.set_done(local.now);
        trace::completed(local.now, system, outcome, || {
            if times.was_claimed() { local.scale.ns(times.duration()) } else { 0 }
        });
        if plan.has_queues {
            self.settle_queues(plan, system, outcome == SkipReason::NOT_SKIPPED.0);
            // Merging events takes its time, which is not that of the successors.
            local.now = Ticks::now();
        }
    }

    #[inline(always)]
    fn told(&self, local: &mut Local, system: u16, told: Told) {
        let was_left_out = told.outcome != SkipReason::NOT_SKIPPED.0
            && (told.outcome != SkipReason::EXCEPTION.0 || !self.times[usize::from(system)].was_claimed());
        if was_left_out {
            let chunks = self.plans[usize::from(system)].declared_chunks as u16;
            trace::skipped(local.now, system, chunks, told);
        }
        trace::fan_out(self.times[usize::from(system)].done(), system, told);
    }

    fn idle_begins(&self, local: &mut Local) {
        local.idle_since = Ticks::now();
    }

    fn idle_ends(&self, local: &mut Local, looks: u32) {
        trace::idle(local.idle_since, local.worker, looks, local.scale);
    }

    fn sleep_begins(&self, local: &mut Local) {
        local.idle_since = Ticks::now();
    }

    fn sleep_ends(&self, local: &mut Local, awakening: Awakening) {
        local.scale = TickScale::current();
        self.awake(local, awakening);
    }

    fn gives_up(&self, local: &mut Local, progress: u64) -> bool {
        self.control.gives_up(&mut local.watch, progress)
    }

    #[inline(always)]
    fn is_worth_waking(&self, system: u16) -> bool {
        self.pays(u64::from(self.paths_ns[usize::from(system)].load(RELAXED)))
    }

    #[inline(always)]
    fn is_failure(outcome: u8) -> bool {
        gates::is_failure(outcome)
    }

    const FAILED: u8 = SkipReason::EXCEPTION.0;
    const ABORTED: u8 = SkipReason::TICK_ABORTED.0;
}

impl Execution {
    fn ask_gates(&self, local: &mut Local, system: u16, turn: Turn) -> Verdict {
        let plan = &self.plans[usize::from(system)];
        let (tick, level, index) = (&local.tick, local.level, SystemIndex::new(system));
        let mut asked = Asked { execution: self, plan, tick, level, system: index };
        let (verdict, fault) = gates::decide(turn, &mut asked);
        if verdict == Verdict::Skip(SkipReason::SHOULD_RUN_FALSE.0) {
            trace::left_out(|| plan.load.refusal_event(index, level));
        }
        if let Some(GateFault { gate, error }) = fault {
            self.note_failure(local, system, None, FailureKind::Gate(gate), error_message(error));
        }
        // Gates are user code and may have taken their time.
        local.now = Ticks::now();
        verdict
    }

    #[cold]
    fn chunk_failed(&self, local: &Local, chunk: Chunk, result: std::thread::Result<SystemResult>) {
        let (kind, message) = match result {
            Ok(Ok(())) => return,
            Ok(Err(error)) => (FailureKind::Error, error_message(error)),
            Err(payload) => (FailureKind::Panic, panic_message(payload)),
        };
        self.note_failure(local, chunk.system, Some(chunk.chunk), kind, message);
    }

    fn settle_queues(&self, plan: &Plan, system: u16, succeeded: bool) {
        let system = SystemIndex::new(system);
        for queue in &plan.consumes {
            self.queues[queue.as_usize()].reader_done(system, succeeded);
        }
        for queue in &plan.produces {
            self.queues[queue.as_usize()].producer_done(system, succeeded);
        }
    }

    /// A helper's sleep between ticks is over.
    fn awake(&self, local: &mut Local, awakening: Awakening) {
        let now = Ticks::now();
        let was_lost = awakening.is_lost(
            Ticks::from_raw(self.call_over_at.load(RELAXED)),
            local.idle_since,
            now,
            local.scale,
        );
        if was_lost {
            self.lost_wakes.fetch_add(1, RELAXED);
        }
        trace::between_ticks(local.idle_since, now, local.worker, awakening, was_lost, local.scale);
        if awakening.is_called && !awakening.is_stopped {
            let delay_ns = local.scale.ns_between(Ticks::from_raw(self.called_at.load(RELAXED)), now);
            self.learn_wake_cost(delay_ns);
            trace::woken(now, local.worker, delay_ns);
        }
    }

    /// What was learnt about waking a while ago counts for less.
    pub(crate) fn forget_wake_cost(&self) {
        self.learn_wake_cost(u64::from(DEFAULT_WAKE_COST_NS));
    }

    /// What waking takes is what it took lately, one eighth of it the last time.
    fn learn_wake_cost(&self, delay_ns: u64) {
        let delay = delay_ns.min(MAX_WAKE_COST_NS) as i64;
        let before = i64::from(self.wake_cost_ns.load(RELAXED));
        self.wake_cost_ns.store((before + ((delay - before) >> 3)) as u32, RELAXED);
    }
}

/// A machine on which waking takes longer is busy with something else just now.
const MAX_WAKE_COST_NS: u64 = 200_000;
