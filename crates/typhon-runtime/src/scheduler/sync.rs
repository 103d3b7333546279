//! Atomics of the dispatch protocol: the standard ones, or loom's when the protocol is being model-checked.
//!
//! Build with `RUSTFLAGS="--cfg loom"` to check the models in `tests/loom_dispatch.rs`.

pub(crate) use typhon_sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// A mistake planted in the protocol, so that a model can show that it would be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[cfg_attr(not(loom), allow(unreachable_pub, reason = "the models name faults from outside"))]
pub enum Fault {
    /// A claim does not look at the tick that a word belongs to.
    ClaimAnyTick = 1,
    /// A claim is a load and a store instead of a compare-and-swap.
    ClaimPlain,
    /// The word is published before the number of chunks.
    WordFirst,
    /// The word is published by a relaxed store.
    PublishRelaxed,
    /// A finished chunk is counted by a relaxed decrement.
    FinishRelaxed,
    /// A drain reads how many chunks are unclaimed and takes them in a second step.
    DrainPlain,
    /// A drain does not count the chunks that it took.
    DrainUncounted,
    /// A finished predecessor is counted by a relaxed decrement.
    ReleaseRelaxed,
    /// A finished predecessor is counted by a load and a store.
    ReleasePlain,
    /// A failure is noted after the decrement.
    FailureLate,
    /// A countdown does not start again for the next tick.
    NoRestart,
    /// Published work wakes nobody.
    PublishSilent,
    /// A sleeper does not look again after it has registered.
    SleepUnchecked,
    /// A sleeper looks by a load, which the thread that wakes may not have seen.
    LookPlain,
    /// The end of a track does not wake who waits for it.
    TrackEndSilent,
    /// The end of a tick does not wake who sleeps inside it.
    TickEndSilent,
    /// A call for help wakes nobody.
    CallSilent,
    /// The stop flag is set after the last call.
    StopLate,
}

/// Is this fault planted? Always `false`, and no code, outside the models.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) const fn planted(_: Fault) -> bool {
    false
}

#[cfg(loom)]
thread_local! {
    /// Loom runs all threads of a model on one thread of the process.
    static PLANTED: std::cell::Cell<Option<Fault>> = const { std::cell::Cell::new(None) };
}

#[cfg(loom)]
pub(crate) fn planted(fault: Fault) -> bool {
    PLANTED.get() == Some(fault)
}

/// Plants a fault, or none, for the models that the calling thread runs.
#[cfg(loom)]
pub fn plant(fault: Option<Fault>) {
    PLANTED.set(fault);
}

/// `Release`, unless the given fault weakens it in a model.
#[inline(always)]
pub(crate) fn release_unless(fault: Fault) -> Ordering {
    if planted(fault) { Ordering::Relaxed } else { Ordering::Release }
}

/// `AcqRel`, unless the given fault weakens it in a model.
#[inline(always)]
pub(crate) fn acq_rel_unless(fault: Fault) -> Ordering {
    if planted(fault) { Ordering::Relaxed } else { Ordering::AcqRel }
}
