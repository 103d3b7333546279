//! One tick, from its start to its end, in the order that brief 04 §2.5 gives: the steps that have a meaning without
//! storage.

use super::error::Terminal;
use super::hooks::{HookKind, Hooks};
use super::outcome::{OutcomeReason, TickOutcome};
use super::shared::Shared;
use crate::SystemIndex;
use crate::metronome::{StepClock, TickWait};
use crate::overload::{Overload, QueueGrowth, QueueTotals, TickLoad};
use crate::scheduler::affinity::current_processor;
use crate::scheduler::claim::Epoch;
use crate::scheduler::clocks::Ran;
use crate::scheduler::estimate::Estimates;
use crate::scheduler::execution::Local;
use crate::scheduler::wake::Wake;
use crate::scheduler::worker::{Memory, Worker};
use crate::system::TickInfo;
use crate::telemetry::{SystemTelemetry, TelemetryWriter, TickTelemetry};
use std::sync::atomic::Ordering;
use typhon_profiler::{TickScale, Ticks, emit, span};
use typhon_trace::event::{RuntimePhaseSpan, SkipReason, TickPhase};

/// What runs ticks. Belongs to one thread at a time.
pub(crate) struct Driver {
    memory: Memory<Local>,
    epoch: Epoch,
    number: i64,
    steps: StepClock,
    estimates: Estimates,
    telemetry: TelemetryWriter,
    hooks: Hooks,
    previous_start: Option<Ticks>,
    overload: Overload,
    growth: QueueGrowth,
}

/// When a tick starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TickStart {
    /// Now, on the clock that ticks are timed by.
    pub(crate) now_ns: i64,
    /// By how much that is after the tick's moment.
    pub(crate) late_ns: i64,
    /// Ticks that were skipped before it.
    pub(crate) missed_ticks: u64,
    /// What the tick takes, for overload.
    pub(crate) length: TickLength,
}

/// What counts as the length of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TickLength {
    /// What it took.
    Measured,
    /// So many nanoseconds, whatever it took.
    AsIf(u64),
    /// Nothing: no time passes in the tick, and there is no overload.
    None,
}

impl From<TickWait> for TickStart {
    fn from(wait: TickWait) -> Self {
        let TickWait { target_ns, late_ns, missed_ticks, .. } = wait;
        Self { now_ns: target_ns + late_ns, late_ns, missed_ticks, length: TickLength::Measured }
    }
}

impl Driver {
    pub(crate) fn new(shared: &Shared, telemetry: TelemetryWriter, hooks: Hooks, steps: StepClock) -> Self {
        Self {
            memory: Memory::new(&shared.board, 0, shared.execution.local(0)),
            epoch: Epoch::NONE,
            number: 1,
            steps,
            estimates: Estimates::new(&shared.board.topology),
            telemetry,
            hooks,
            previous_start: None,
            overload: Overload::new(shared.options.base_tick_rate_hz, &shared.options.overload),
            growth: QueueGrowth::new(shared.execution.queues.len()),
        }
    }

    /// Base intervals between this tick and the next.
    pub(crate) fn multiplier(&self) -> u8 {
        self.overload.multiplier()
    }

    /// The next tick as records number it. They count from 0, since the format does; whoever reads them adds one.
    pub(crate) fn recorded_number(&self) -> i64 {
        self.number - 1
    }

    /// Runs a tick.
    ///
    /// # Errors
    /// It was the last one, of which the runtime has ended: aborted, or given up.
    pub(crate) fn tick(&mut self, shared: &Shared, start: TickStart) -> Result<(), Terminal> {
        shared.control.begin_tick();
        let mut recorded = typhon_profiler::tick(self.recorded_number() as u32);
        recorded.set_overload_level(self.overload.level());
        recorded.set_multiplier(self.overload.multiplier());
        let started = Ticks::now();
        self.epoch = self.epoch.next();
        shared.set_epoch(self.epoch);
        shared.execution.queues.iter().for_each(|queue| queue.begin_tick());
        let tick = self.steps.start_tick(self.number, start.now_ns, self.overload.multiplier());
        shared.execution.set_tick(&tick, self.overload.level());
        self.run_first_tick(shared, &tick);
        if !self.dispatch(shared) {
            return Err(given_up(shared));
        }
        let outcome = self.outcome(shared);
        let is_aborted = outcome.is_aborted;
        let failure = outcome.failure.clone().filter(|_| is_aborted);
        shared.publish(outcome);
        self.output(shared, &tick, is_aborted);
        let ended = Ticks::now();
        drop(recorded);
        self.record(shared, &tick, &start, started, ended);
        self.number += 1;
        shared.control.end_tick(self.number);
        failure.map_or(Ok(()), |failure| Err(Terminal::Aborted(failure)))
    }

    /// While they run, whoever wonders why nothing moves can see it.
    fn run_hooks(&mut self, shared: &Shared, kind: HookKind, tick: &TickInfo) {
        shared.set_hook(Some(kind));
        self.hooks.run(kind, tick);
        shared.set_hook(None);
    }

    fn run_first_tick(&mut self, shared: &Shared, tick: &TickInfo) {
        if self.hooks.has(HookKind::FirstTick) {
            self.run_hooks(shared, HookKind::FirstTick, tick);
            self.hooks.forget_first_tick();
        }
    }

    /// Runs all tracks; false if one was given up.
    fn dispatch(&mut self, shared: &Shared) -> bool {
        let _phase = span!(RuntimePhaseSpan { phase: TickPhase::SYSTEM_DISPATCH });
        let board = &shared.board;
        let mut worker = Worker::new(board, &shared.execution, &mut self.memory);
        worker.enter(self.epoch);
        let mut is_open = false;
        for (at, track) in board.topology.tracks().iter().enumerate() {
            if shared.workers == 1 || !shared.execution.pays(self.estimates.gain_ns(at)) {
                worker.run_track_alone(track);
                continue;
            }
            if !is_open {
                call_helpers(shared, self.epoch);
                is_open = true;
            }
            if !worker.run_track(track) {
                // Helpers that do not hang go home.
                board.close();
                return false;
            }
        }
        if is_open {
            board.close();
        }
        true
    }

    fn outcome(&self, shared: &Shared) -> TickOutcome {
        let (mut failed_systems, mut dependent_systems) = (0, 0);
        let systems: &[_] = if shared.board.take_failures() { &shared.board.systems } else { &[] };
        for system in systems {
            match SkipReason(system.outcome()) {
                SkipReason::EXCEPTION => failed_systems += 1,
                SkipReason::DEPENDENCY_FAILED | SkipReason::TICK_ABORTED => dependent_systems += 1,
                _ => {}
            }
        }
        let has_failed = failed_systems > 0;
        TickOutcome {
            tick: self.number,
            reason: if has_failed { OutcomeReason::SystemException } else { OutcomeReason::Success },
            is_aborted: shared.board.has_aborted(),
            failed_systems,
            dependent_systems,
            failure: if has_failed { shared.execution.failures.latest().map(Box::new) } else { None },
        }
    }

    fn output(&mut self, shared: &Shared, tick: &TickInfo, is_aborted: bool) {
        if is_aborted {
            self.run_hooks(shared, HookKind::TickAborted, tick);
        } else if self.hooks.has(HookKind::Output) {
            let _phase = span!(RuntimePhaseSpan { phase: TickPhase::OUTPUT_PHASE });
            self.run_hooks(shared, HookKind::Output, tick);
        }
    }

    /// What is said about the tick after its end, and what follows from it for the next.
    fn record(&mut self, shared: &Shared, info: &TickInfo, start: &TickStart, started: Ticks, ended: Ticks) {
        let (queues, overflow_count) = self.record_queues(shared);
        let scale = TickScale::current();
        let base_ns = 1e9 / f64::from(shared.options.base_tick_rate_hz);
        let actual_ns = match start.length {
            TickLength::AsIf(ns) => ns,
            TickLength::Measured | TickLength::None => scale.ns_between(started, ended),
        };
        shared.numbers.record_tick(actual_ns, start.missed_ticks);
        let base_ratio = (actual_ns as f64 / base_ns) as f32;
        let in_force = self.overload.rung();
        let previous = self.previous_start.replace(started);
        let tick = TickTelemetry {
            tick: self.number,
            target_ms: (base_ns / 1e6) as f32,
            actual_ms: ms(actual_ns),
            overrun_ratio: base_ratio,
            interval_ms: previous.map_or(0.0, |previous| ms(scale.ns_between(previous, started))),
            late_ms: ms(start.late_ns.max(0) as u64),
            active_workers: shared.execution.active_workers(self.epoch),
            active_systems: 0,
            level: in_force.level,
            multiplier: in_force.multiplier,
            queue_depth: queues.depth,
            overflow_count,
            missed_ticks: u32::try_from(start.missed_ticks).unwrap_or(u32::MAX),
        };
        if start.length != TickLength::None {
            let step_ns = base_ns * f64::from(in_force.multiplier);
            let load = TickLoad {
                base_ratio,
                was_skipped: start.missed_ticks > 0,
                was_late: start.late_ns as f64 > step_ns,
                queues_grew: queues.grew,
                queue_depth: queues.depth,
            };
            self.judge(shared, info, load);
        }
        let (estimates, times) = (&mut self.estimates, shared.execution.times.iter());
        let systems = times.zip(&shared.board.systems).enumerate().map(|(system, (times, state))| {
            let skip_reason = SkipReason(state.outcome());
            let is_shared = shared.board.topology.may_be_shared(system);
            system_telemetry(times.ran(is_shared), skip_reason, scale, |ns| estimates.learn(system, ns))
        });
        self.telemetry.record(tick, systems);
        self.learn(shared);
    }

    /// Kind 244 of every queue. Their state, and the events that found no room.
    fn record_queues(&mut self, shared: &Shared) -> (QueueTotals, u32) {
        let mut overflow_count = 0_u32;
        let (execution, recorded_number) = (&shared.execution, self.recorded_number() as u32);
        let was_throttled = |system: &SystemIndex| {
            let outcome = SkipReason(shared.board.systems[system.as_usize()].outcome());
            outcome == SkipReason::THROTTLED || outcome == SkipReason::SHED
        };
        let queues = execution.queues.iter().zip(execution.graph.queues());
        let depths = queues.zip(&shared.numbers.queues).map(|((queue, node), numbers)| {
            let counters = queue.counters();
            numbers.record(&counters);
            overflow_count = overflow_count.saturating_add(counters.overflow);
            emit(|| counters.event(recorded_number, queue.id()));
            (counters.end_depth, !node.consumers.iter().any(was_throttled))
        });
        (self.growth.update(depths), overflow_count)
    }

    /// Goes up or down the ladder.
    fn judge(&mut self, shared: &Shared, info: &TickInfo, load: TickLoad) {
        let change = self.overload.update(load);
        emit(|| self.overload.event(self.recorded_number()));
        let Some(change) = change else { return };
        shared.set_overload(change.to);
        if let Some(event) = change.event() {
            emit(|| event);
        }
        if change.is_critical() {
            self.run_hooks(shared, HookKind::CriticalOverload, info);
        }
    }

    fn learn(&mut self, shared: &Shared) {
        let (topology, paths) = (&shared.board.topology, &shared.execution.paths_ns);
        if self.estimates.tick_is_over(topology, paths, shared.workers as u64) {
            shared.board.set_ranks(self.estimates.ranking());
            shared.execution.forget_wake_cost();
        }
    }

    /// Runs the handlers of an orderly end.
    pub(crate) fn shut_down(&mut self, shared: &Shared, now_ns: i64) {
        if self.hooks.has(HookKind::Shutdown) {
            let tick = self.steps.start_tick(self.number, now_ns, self.overload.multiplier());
            self.run_hooks(shared, HookKind::Shutdown, &tick);
        }
    }
}

fn call_helpers(shared: &Shared, epoch: Epoch) {
    let execution = &shared.execution;
    execution.called_from.store(current_processor().unwrap_or(u32::MAX), Ordering::Relaxed);
    execution.called_at.store(Ticks::now().raw(), Ordering::Relaxed);
    shared.board.open(epoch, if shared.workers == 2 { Wake::One } else { Wake::All });
    execution.call_over_at.store(Ticks::now().raw(), Ordering::Relaxed);
}

fn given_up(shared: &Shared) -> Terminal {
    let tick = shared.control.tick();
    if shared.control.is_broken() {
        // The thread that died has said who it is.
        return shared.terminal().unwrap_or(Terminal::FatalStop);
    }
    Terminal::Stalled { tick, running: shared.running() }
}

/// One system in the tick that has ended; what it took is learnt on the way.
#[inline(always)]
fn system_telemetry(
    ran: Option<Ran>,
    skip_reason: SkipReason,
    scale: TickScale,
    learn: impl FnOnce(u64),
) -> SystemTelemetry {
    let Some(Ran { ready, first_claim, done, work, straggler_gap, workers }) = ran else {
        return SystemTelemetry {
            transition_latency_us: 0.0,
            duration_us: 0.0,
            straggler_gap_us: 0.0,
            workers: 0,
            skip_reason,
        };
    };
    learn(scale.ns(work));
    SystemTelemetry {
        transition_latency_us: us(scale.ns_between(ready, first_claim)),
        duration_us: us(scale.ns_between(first_claim, done)),
        straggler_gap_us: if straggler_gap > 0 { us(scale.ns(straggler_gap)) } else { 0.0 },
        workers: workers as u8,
        skip_reason,
    }
}

fn ms(ns: u64) -> f32 {
    ns as f32 / 1e6
}

fn us(ns: u64) -> f32 {
    ns as f32 / 1e3
}
