//! The state of a tick in flight, system by system: for people who wonder why it does not end.

use super::hooks::HookKind;
use super::shared::Shared;
use crate::scheduler::failure::SystemFailure;
use crate::{SkipReason, SystemIndex};
use std::fmt;

/// What a system is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemStage {
    /// Predecessors are not through.
    Waiting,
    /// It may run, and no worker has taken a chunk of it.
    Ready,
    /// A worker runs it.
    Running,
    /// It is through.
    Completed,
}

/// One system in the tick in flight, or in the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemDiagnostic {
    /// Name.
    pub name: String,
    /// What it is doing.
    pub stage: SystemStage,
    /// Number of its predecessors.
    pub predecessors: u16,
    /// Names of those that are not through.
    pub stuck_predecessors: Vec<String>,
    /// Chunks that nobody has claimed, and chunks that are not finished; `None` when they are not known: before it is
    /// ready, and on a worker that is alone.
    pub chunks: Option<(u32, u32)>,
    /// Why it did not run, or that it failed; [`SkipReason::NOT_SKIPPED`] for none of it.
    pub skip_reason: SkipReason,
    /// Its last failure in any tick.
    pub last_failure: Option<SystemFailure>,
}

/// The state of a runtime. Read while it runs, so that its parts may be from different moments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Number of the tick in flight, or of the next one.
    pub tick: i64,
    /// Is a tick in flight?
    pub is_in_tick: bool,
    /// What each worker runs.
    pub workers: Vec<Option<String>>,
    /// The hooks that the driver runs, as `on_output`.
    pub hook: Option<&'static str>,
    /// All systems, by index.
    pub systems: Vec<SystemDiagnostic>,
}

impl Diagnostic {
    pub(crate) fn of(shared: &Shared) -> Self {
        let name = |system: u16| shared.execution.graph.system(SystemIndex::new(system)).name.clone();
        let running: Vec<_> = shared.board.workers.iter().map(|worker| worker.running()).collect();
        let systems = 0..shared.board.systems.len() as u16;
        Self {
            tick: shared.control.tick(),
            is_in_tick: shared.control.is_in_tick(),
            hook: shared.hook().map(HookKind::name),
            systems: systems.map(|system| SystemDiagnostic::of(shared, system, &running)).collect(),
            workers: running.into_iter().map(|system| system.map(name)).collect(),
        }
    }
}

impl SystemDiagnostic {
    fn of(shared: &Shared, system: u16, running: &[Option<u16>]) -> Self {
        let (graph, epoch) = (&shared.execution.graph, shared.epoch());
        let index = SystemIndex::new(system);
        let state = |system: SystemIndex| &shared.board.systems[system.as_usize()];
        let own = state(index);
        let stage = match () {
            () if own.is_completed(epoch) => SystemStage::Completed,
            () if running.contains(&Some(system)) => SystemStage::Running,
            () if own.is_released(epoch) => SystemStage::Ready,
            () => SystemStage::Waiting,
        };
        let is_stuck = |system: &&SystemIndex| !state(**system).is_completed(epoch);
        let stuck = graph.predecessors(index).iter().filter(is_stuck);
        let chunks = own.claims.open_chunks(epoch);
        let has_result = own.is_released(epoch) || own.is_completed(epoch);
        Self {
            name: graph.system(index).name.clone(),
            stage,
            predecessors: graph.predecessor_count(index),
            stuck_predecessors: stuck.map(|&system| graph.system(system).name.clone()).collect(),
            chunks: chunks.filter(|_| stage != SystemStage::Completed),
            skip_reason: if has_result { SkipReason(own.outcome()) } else { SkipReason::NOT_SKIPPED },
            last_failure: shared.execution.failures.of(index.as_usize()),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_in_tick { "in flight" } else { "next" };
        let completed = self.systems.iter().filter(|system| system.stage == SystemStage::Completed).count();
        write!(
            f,
            "tick {} is {state}; {completed} of {} systems are through",
            self.tick,
            self.systems.len()
        )?;
        for (worker, system) in self.workers.iter().enumerate() {
            if let Some(system) = system {
                write!(f, "\n  worker {worker} runs \"{system}\"")?;
            }
        }
        if let Some(hook) = self.hook {
            write!(f, "\n  {hook} runs")?;
        }
        let open = self.systems.iter().filter(|system| system.stage != SystemStage::Completed);
        open.take(MAX_LINES).try_for_each(|system| write!(f, "\n  {system}"))?;
        let more = (self.systems.len() - completed).saturating_sub(MAX_LINES);
        if more > 0 {
            write!(f, "\n  … and {more} more")?;
        }
        Ok(())
    }
}

/// Systems that a text names one by one.
const MAX_LINES: usize = 20;

impl fmt::Display for SystemDiagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            SystemStage::Waiting => "waits",
            SystemStage::Ready => "is ready",
            SystemStage::Running => "runs",
            SystemStage::Completed => "is through",
        };
        write!(f, "\"{}\" {stage}", self.name)?;
        if !self.stuck_predecessors.is_empty() {
            write!(f, " for {}", self.stuck_predecessors.join(", "))?;
        }
        if let Some((unclaimed, remaining)) = self.chunks {
            write!(f, ", {unclaimed} chunks unclaimed, {remaining} not finished")?;
        }
        if let Some(failure) = &self.last_failure {
            write!(f, "; last failure: {failure}")?;
        }
        Ok(())
    }
}
