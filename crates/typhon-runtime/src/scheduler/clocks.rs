//! When what happened to the systems of the current tick.

use super::board::Padded;
use std::sync::atomic::{AtomicU64, Ordering};
use typhon_profiler::Ticks;

/// The moments of one system. Written by the workers that it concerns, read by the driver after the tick.
#[derive(Debug, Default)]
pub(crate) struct SystemTimes {
    ready: AtomicU64,
    first_claim: AtomicU64,
    done: AtomicU64,
    /// Only of systems with several chunks.
    shared: Padded<SharedTimes>,
}

#[derive(Debug, Default)]
struct SharedTimes {
    /// All chunks together.
    work: AtomicU64,
    /// First moment at which a worker finished a chunk and found no other.
    first_idle: AtomicU64,
    /// Workers that ran a chunk, a bit for each.
    workers: [AtomicU64; 4],
}

/// What became of a system that ran.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ran {
    pub(crate) ready: Ticks,
    pub(crate) first_claim: Ticks,
    pub(crate) done: Ticks,
    /// All chunks together, ticks.
    pub(crate) work: u64,
    /// From the first worker's last chunk to the last worker's, ticks.
    pub(crate) straggler_gap: u64,
    pub(crate) workers: u32,
}

const RELAXED: Ordering = Ordering::Relaxed;

impl SystemTimes {
    /// The system is released, and may have several chunks.
    #[inline(always)]
    pub(crate) fn set_ready(&self, at: Ticks, is_shared: bool) {
        self.ready.store(at.raw(), RELAXED);
        self.first_claim.store(0, RELAXED);
        if is_shared {
            let shared = &self.shared.0;
            shared.work.store(0, RELAXED);
            shared.first_idle.store(u64::MAX, RELAXED);
            shared.workers.iter().for_each(|workers| workers.store(0, RELAXED));
        }
    }

    #[inline(always)]
    pub(crate) fn ready(&self) -> Ticks {
        Ticks::from_raw(self.ready.load(RELAXED))
    }

    #[inline(always)]
    pub(crate) fn set_first_claim(&self, at: Ticks) {
        self.first_claim.store(at.raw(), RELAXED);
    }

    /// Was a chunk of it claimed in this tick?
    #[inline(always)]
    pub(crate) fn was_claimed(&self) -> bool {
        self.first_claim.load(RELAXED) != 0
    }

    /// A chunk of several was run.
    pub(crate) fn add_chunk(&self, worker: usize, from: Ticks, to: Ticks, is_last_claim: bool) {
        let shared = &self.shared.0;
        shared.work.fetch_add(to.raw().saturating_sub(from.raw()), RELAXED);
        shared.workers[worker / 64].fetch_or(1 << (worker % 64), RELAXED);
        if is_last_claim {
            shared.first_idle.fetch_min(to.raw(), RELAXED);
        }
    }

    #[inline(always)]
    pub(crate) fn set_done(&self, at: Ticks) {
        self.done.store(at.raw(), RELAXED);
    }

    #[inline(always)]
    pub(crate) fn done(&self) -> Ticks {
        Ticks::from_raw(self.done.load(RELAXED))
    }

    /// From the first claim to the end, in ticks; after [`Self::set_done`].
    #[inline(always)]
    pub(crate) fn duration(&self) -> u64 {
        self.done.load(RELAXED).saturating_sub(self.first_claim.load(RELAXED))
    }

    /// What became of it, if a chunk was claimed.
    #[inline(always)]
    pub(crate) fn ran(&self, is_shared: bool) -> Option<Ran> {
        let first_claim = self.first_claim.load(RELAXED);
        if first_claim == 0 {
            return None;
        }
        let done = self.done.load(RELAXED);
        let mut ran = Ran {
            ready: self.ready(),
            first_claim: Ticks::from_raw(first_claim),
            done: Ticks::from_raw(done),
            work: done.saturating_sub(first_claim),
            straggler_gap: 0,
            workers: 1,
        };
        if is_shared {
            let shared = &self.shared.0;
            ran.work = shared.work.load(RELAXED);
            ran.straggler_gap = done.saturating_sub(shared.first_idle.load(RELAXED));
            ran.workers = shared.workers.iter().map(|workers| workers.load(RELAXED).count_ones()).sum();
        }
        Some(ran)
    }
}
