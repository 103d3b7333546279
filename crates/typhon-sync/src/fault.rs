//! Mistakes planted in the protocols, so that a model can show that it would find them.
#![forbid(unsafe_code)]

use crate::atomic::Ordering;

/// A mistake in a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(loom), allow(unreachable_pub, reason = "the models name faults from outside"))]
pub enum Fault {
    /// A lock is taken by a relaxed read-modify-write.
    TakeRelaxed,
    /// A lock is released by a relaxed read-modify-write.
    ReleaseRelaxed,
    /// A lock is released by a load and a store.
    ReleasePlain,
    /// A lock is taken by a load and a store.
    TakePlain,
    /// A thread blocks without saying so in the word.
    BlockUnannounced,
    /// A waiter that gives up wakes nobody who waited because of it.
    GiveUpSilent,
    /// A waiter that gives up stays counted.
    GiveUpCounted,
    /// A writer looks at the wake count after it looked at the lock.
    WakeCountLate,
    /// A writer is woken without a change of the wake count.
    WakeCountStill,
    /// One of those who wait on the lock's own word is woken instead of all.
    WakeOneOfMany,
    /// Readers join although a writer or promoter waits.
    ReaderJoins,
    /// A promoter does not wait for other readers.
    PromoteShared,
    /// A second promoter waits for the first.
    SecondPromoterWaits,
    /// A demotion wakes nobody.
    DemoteSilent,
    /// Destruction does not wait for accessors.
    DestroyEarly,
    /// Accessors enter while a destroyer waits.
    AccessDuringDestroy,
    /// Nobody who waits is told of the destruction.
    DestroySilent,
    /// A permit is taken by a relaxed read-modify-write.
    ParkRelaxed,
    /// A permit is given by a relaxed read-modify-write.
    UnparkRelaxed,
    /// A permit wakes nobody.
    UnparkSilent,
    /// A pin is not fenced from what is read under it.
    PinUnfenced,
    /// A pin keeps an epoch that has passed before anybody could see the pin.
    PinStale,
    /// A pin ends by a relaxed store.
    UnpinRelaxed,
    /// The oldest pin is looked for without a fence.
    ScanUnfenced,
    /// The epoch is read before what retires in it is unlinked.
    RetireUnfenced,
    /// What retires is used again while its own epoch is pinned.
    ReuseEarly,
    /// A ticket is taken without a fence between showing it and looking at the gate.
    TicketUnfenced,
    /// A ticket is given back by a relaxed store.
    TicketRelaxed,
    /// A ticket that is given back tells nobody who waits to close the gate.
    TicketSilent,
    /// Who closes the gate looks for tickets without a fence after closing.
    CloseUnfenced,
    /// Who closes the gate does not wait for tickets.
    CloseEarly,
    /// The gate is opened by a relaxed store.
    OpenRelaxed,
    /// Nobody who waits is told that the gate is open.
    OpenSilent,
    /// A number is filled and the watermark looked at without a fence between.
    FillUnfenced,
    /// A number is filled by a relaxed store.
    FillRelaxed,
    /// The watermark advances by a relaxed read-modify-write.
    AdvanceRelaxed,
    /// The watermark advances over a number that is not filled.
    AdvanceBlind,
    /// Who waits for the watermark is looked for without a fence after it has advanced.
    WaitersUnfenced,
    /// Latches are acquired in the order in which they were asked for.
    LatchesUnsorted,
    /// A set of latches that could not be completed is not released.
    LatchesKept,
}

/// Is this fault planted? Always `false`, and no code, outside the models.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) const fn planted(_: Fault) -> bool {
    false
}

#[cfg(loom)]
std::thread_local! {
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

/// `ordering`, unless the given fault weakens it in a model.
#[inline(always)]
pub(crate) fn unless(fault: Fault, ordering: Ordering) -> Ordering {
    if planted(fault) { Ordering::Relaxed } else { ordering }
}

/// Has the model failed that this is called from? Nothing can be done any more then, and a guard that tries in a destructor
/// would end the process.
#[inline(always)]
pub(crate) fn has_model_failed() -> bool {
    cfg!(loom) && std::thread::panicking()
}
