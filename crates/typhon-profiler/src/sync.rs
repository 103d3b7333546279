//! Atomics of the capture protocol: the standard ones, or loom's when the protocol is being model-checked.
//!
//! Build with `RUSTFLAGS="--cfg loom"` to check the models in `tests/loom_*.rs`.
#![forbid(unsafe_code)]

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(loom)]
pub(crate) use loom::thread::JoinHandle;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::thread::JoinHandle;

/// What may go to another thread: in models, whose threads are one, everything.
#[cfg(not(loom))]
pub(crate) trait Travels: Send + 'static {}
#[cfg(not(loom))]
impl<T: Send + 'static> Travels for T {}
/// What may go to another thread: in models, whose threads are one, everything.
#[cfg(loom)]
pub(crate) trait Travels: 'static {}
#[cfg(loom)]
impl<T: 'static> Travels for T {}

/// Starts a thread with a name.
#[cfg(not(loom))]
pub(crate) fn spawn<T: Travels>(
    name: &str,
    work: impl FnOnce() -> T + Travels,
) -> std::io::Result<JoinHandle<T>> {
    crate::own_thread::spawn(name, work)
}

/// Starts a thread of a model.
#[cfg(loom)]
pub(crate) fn spawn<T: Travels>(
    _name: &str,
    work: impl FnOnce() -> T + Travels,
) -> std::io::Result<JoinHandle<T>> {
    Ok(loom::thread::spawn(work))
}

/// Waits on `changed` as long as `waits` says so, at most `pause`.
#[cfg(not(loom))]
pub(crate) fn wait_while<'g, T>(
    changed: &Condvar,
    guard: MutexGuard<'g, T>,
    pause: std::time::Duration,
    waits: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'g, T> {
    let result = changed.wait_timeout_while(guard, pause, waits);
    result.unwrap_or_else(std::sync::PoisonError::into_inner).0
}

/// Waits on `changed` if `waits` says so. Loom has no time: a pause is over when somebody notifies without a reason.
#[cfg(loom)]
pub(crate) fn wait_while<'g, T>(
    changed: &Condvar,
    mut guard: MutexGuard<'g, T>,
    _pause: std::time::Duration,
    mut waits: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'g, T> {
    if waits(&mut guard) {
        changed.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner)
    } else {
        guard
    }
}

/// A mistake planted in the protocol, so that a model can show that it would be found (names without `T`/`M` as in
/// the executable model of the protocol).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[cfg_attr(not(loom), allow(unreachable_pub, dead_code, reason = "the models name and plant faults"))]
pub enum Fault {
    /// `committed` is loaded before `next`.
    LoadOrder = 1,
    /// `next` is published by a relaxed store.
    LinkRelaxed,
    /// `committed` is published by a relaxed store.
    CommitRelaxed,
    /// A chunk is recycled as soon as its successor is seen, read or not.
    RecycleEarly,
    /// A recycled chunk keeps its old `committed` and `next`.
    NoReset,
    /// A free chunk is taken by a load and a store instead of one read-modify-write.
    PoolPlain,
    /// A slot is claimed by a load and a store instead of a compare-and-swap.
    ClaimPlain,
    /// A slot is active before its thread id is stored.
    ThreadIdEarly,
    /// A slot is retired before its last record is published.
    RetireEarly,
    /// The slot's state is loaded after its records were read.
    StateLate,
    /// A slot is freed without first reporting its last losses.
    FreeUnmarked,
    /// The drop total is read before the slot is drained.
    TotalFirst,
    /// The consumer subtracts what it reported from the producer's counter.
    CountReset,
    /// The final drain reports no losses.
    LastMark,
    /// Reported totals start from zero in a new session.
    RestartTotal,
    /// Start keeps what the slots hold from before.
    NoDiscard,
    /// Spans begun in an earlier session are published in a later one.
    NoFloor,
    /// An emission after the slot was released is not counted.
    ExitSilent,
    /// An emission inside another one is not counted.
    ReentrySilent,
    /// A loss is counted at the slot's next record only.
    CountLate,
    /// A span's guard keeps its slot and publishes through it after the thread has released it.
    GuardSlot,
    /// A chunk is recycled when everything in it is read, with or without a successor.
    RecycleCur,
    /// Stop leaves the mask as it is.
    MaskOn,
    /// The consumer takes the changes of the mask before it drains.
    NotesFirst,
    /// The consumer is woken for a stop before the stop is wished for.
    WishLate,
    /// The consumer ends without a last drain.
    StopUndrained,
    /// A pass counts for flushes that were wanted after it began.
    TicketLate,
    /// Start looks whether a session runs before it has the lock.
    StartUnchecked,
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
