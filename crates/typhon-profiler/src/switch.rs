//! Switching kinds while a session runs: every change is noted for the trace before threads can see it.
#![forbid(unsafe_code)]

use crate::drain::KindChange;
use crate::gates::KindMask;
use crate::mask::EffectiveMask;
use crate::sync::{Fault, Mutex, MutexGuard, planted};
use std::sync::PoisonError;

/// Whether a session runs, and the changes of its mask that the consumer has not marked yet. The lock serialises
/// changes.
pub(crate) struct Switch(Mutex<State>);

struct State {
    armed: bool,
    changes: Vec<KindChange>,
}

impl Switch {
    /// No session runs.
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(State { armed: false, changes: Vec::new() }))
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State { armed: false, changes: Vec::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session begins: these kinds are recorded from now on.
    pub(crate) fn arm(&self, mask: &EffectiveMask, kinds: KindMask) {
        let mut state = self.lock();
        state.armed = true;
        state.changes.clear();
        mask.store(kinds);
    }

    /// A session ends: nothing is recorded any more.
    pub(crate) fn disarm(&self, mask: &EffectiveMask) {
        let mut state = self.lock();
        state.armed = false;
        if !planted(Fault::MaskOn) {
            mask.store(KindMask::EMPTY);
        }
    }

    /// Ends the state in which every kind counts as recorded until somebody asks.
    #[cfg(not(loom))]
    pub(crate) fn clear_unless_armed(&self, mask: &EffectiveMask) {
        let state = self.lock();
        if !state.armed {
            mask.store(KindMask::EMPTY);
        }
    }

    /// Records exactly these kinds from now on; `false`, and nothing changed, when no session runs.
    pub(crate) fn set(&self, mask: &EffectiveMask, kinds: KindMask, ticks: u64) -> bool {
        let mut state = self.lock();
        if !state.armed {
            return false;
        }
        let before = mask.load();
        let notes = |which: KindMask, on| which.iter().map(move |kind| KindChange { kind, on, ticks });
        state.changes.extend(notes(kinds.minus(before), true));
        state.changes.extend(notes(before.minus(kinds), false));
        // Under the lock, so that the consumer, having found a record of a kind, waits for the note about it.
        mask.store(kinds);
        true
    }

    /// The changes since the last call. The consumer takes them after it has drained, so that it has the change that
    /// any record it found depends on.
    pub(crate) fn take_changes(&self) -> Vec<KindChange> {
        std::mem::take(&mut self.lock().changes)
    }
}
