//! What the workers record, in one place.

use super::idle::BACKSTOP;
use super::worker::{Awakening, Chunk, Told};
use crate::WorkerId;
use typhon_profiler::{Span, TickScale, Ticks, emit, emit_at, emit_span, is_on, span};
use typhon_sync::wait::WaitEnd;
use typhon_trace::event::{
    Event, SchedulerDependencyFanOut, SchedulerDependencyReady, SchedulerDispense,
    SchedulerOverloadSystemShed, SchedulerSystemCompletion, SchedulerSystemQueueWait,
    SchedulerSystemSingleThreaded, SchedulerSystemStartExecution, SchedulerWorkerBetweenTick,
    SchedulerWorkerIdle, SchedulerWorkerWake, SkipReason, SystemReady, SystemSkipped, WorkerWakeReason,
};

/// Nanoseconds as whole microseconds.
pub(super) fn us(ns: u64) -> u32 {
    u32::try_from(ns / 1_000).unwrap_or(u32::MAX)
}

/// Kind 154.
#[inline(always)]
pub(super) fn dependency_ready(at: Ticks, from: u16, to: u16, fan_out: impl FnOnce() -> u16) {
    emit_at(at, || SchedulerDependencyReady {
        from_sys_idx: from,
        to_sys_idx: to,
        fan_out: fan_out(),
        pred_remain: 0,
    });
}

/// Kind 4.
#[inline(always)]
pub(super) fn ready(at: Ticks, system: u16, predecessors: u16) {
    emit_at(at, || SystemReady { system_idx: system, predecessor_count: predecessors });
}

/// Kind 157.
#[inline(always)]
pub(super) fn left_out(event: impl FnOnce() -> Option<SchedulerOverloadSystemShed>) {
    if is_on(SchedulerOverloadSystemShed::KIND)
        && let Some(event) = event()
    {
        emit(|| event);
    }
}

/// Kind 153.
#[inline(always)]
pub(super) fn dispensed(at: Ticks, chunk: Chunk, worker: WorkerId) {
    emit_at(at, || SchedulerDispense {
        sys_idx: chunk.system,
        chunk_idx: chunk.chunk as i32,
        worker_id: worker.get(),
    });
}

/// Kind 149, until the guard is dropped. There are no parallel queries yet.
#[inline(always)]
pub(super) fn alone(system: u16, chunks: u32) -> Span<SchedulerSystemSingleThreaded> {
    span!(SchedulerSystemSingleThreaded { sys_idx: system, is_parallel_query: 0, chunk_count: chunks as u16 })
}

/// Kinds 146 and 148.
#[inline(always)]
pub(super) fn first_claim(at: Ticks, system: u16, wait_ns: impl FnOnce() -> u64) {
    emit_at(at, || SchedulerSystemStartExecution { sys_idx: system });
    emit_at(at, || SchedulerSystemQueueWait { sys_idx: system, queue_wait_us: us(wait_ns()) });
}

/// Kind 147.
#[inline(always)]
pub(super) fn completed(at: Ticks, system: u16, outcome: u8, duration_ns: impl FnOnce() -> u64) {
    emit_at(at, || SchedulerSystemCompletion {
        sys_idx: system,
        reason: SkipReason(outcome),
        duration_us: us(duration_ns()),
    });
}

/// Kind 5.
pub(super) fn skipped(at: Ticks, system: u16, chunks: u16, told: Told) {
    emit_at(at, || SystemSkipped {
        system_idx: system,
        skip_reason: SkipReason(told.outcome),
        would_be_chunk_count: chunks,
        successors_unblocked: told.released,
    });
}

/// Kind 155. A system without successors tells nobody.
#[inline(always)]
pub(super) fn fan_out(start: Ticks, system: u16, told: Told) {
    if told.successors > 0 && typhon_profiler::is_on(155) {
        emit_span(start, Ticks::now(), || SchedulerDependencyFanOut {
            completing_sys_idx: system,
            succ_count: told.successors,
            skipped_count: told.skipped,
        });
    }
}

/// Kind 150.
pub(super) fn idle(since: Ticks, worker: WorkerId, looks: u32, scale: TickScale) {
    if typhon_profiler::is_on(150) {
        let now = Ticks::now();
        emit_span(since, now, || SchedulerWorkerIdle {
            worker_id: worker.get(),
            spin_count: u16::try_from(looks).unwrap_or(u16::MAX),
            idle_us: us(scale.ns_between(since, now)),
        });
    }
}

impl Awakening {
    /// Did the sleeper miss a call? Only if the call was over, wake and all, when the sleeper's time ran out by itself.
    pub(super) fn is_lost(self, call_over: Ticks, slept_from: Ticks, now: Ticks, scale: TickScale) -> bool {
        let latest_ns = BACKSTOP.as_nanos() as u64;
        self.end == WaitEnd::Expired
            && self.is_called
            && call_over > slept_from
            && call_over < now
            && scale.ns_between(slept_from, call_over) < latest_ns
    }
}

/// Kind 152.
pub(super) fn between_ticks(
    from: Ticks,
    to: Ticks,
    worker: WorkerId,
    awakening: Awakening,
    was_lost: bool,
    scale: TickScale,
) {
    let wake_reason = match awakening {
        Awakening { is_stopped: true, .. } => WorkerWakeReason::SHUTDOWN,
        _ if was_lost => WorkerWakeReason(2),
        _ => WorkerWakeReason(0),
    };
    emit_span(from, to, || SchedulerWorkerBetweenTick {
        worker_id: worker.get(),
        wait_us: us(scale.ns_between(from, to)),
        wake_reason,
    });
}

/// Kind 151.
pub(super) fn woken(at: Ticks, worker: WorkerId, delay_ns: u64) {
    emit_at(at, || SchedulerWorkerWake { worker_id: worker.get(), delay_us: us(delay_ns) });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn b35_a_wake_is_lost_only_if_the_call_was_over_while_the_sleeper_slept_on() {
        let start = Ticks::now();
        std::thread::sleep(Duration::from_millis(2));
        let (end, scale) = (Ticks::now(), TickScale::current());
        let ticks_per_ms = (end.raw() - start.raw()) as f64 * 1e6 / scale.ns_between(start, end) as f64;
        let at = |ms: f64| Ticks::from_raw(start.raw() + (ms * ticks_per_ms) as u64);
        let (slept_from, now) = (at(100.0), at(151.0));
        let called = Awakening { end: WaitEnd::Expired, is_called: true, is_stopped: false };
        let is_lost = |awakening: Awakening, call_ms| awakening.is_lost(at(call_ms), slept_from, now, scale);
        assert!(is_lost(called, 120.0));
        assert!(!is_lost(Awakening { end: WaitEnd::Woken, ..called }, 120.0), "it was woken");
        assert!(!is_lost(Awakening { is_called: false, ..called }, 120.0), "nobody called");
        assert!(!is_lost(called, 99.0), "that call was before it slept");
        assert!(!is_lost(called, 152.0), "that call is not over yet");
        assert!(!is_lost(called, 150.5), "its time was over before the call was");
    }
}
