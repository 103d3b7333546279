//! What the protocol is made of: atomics, a mutex, and the mistakes that tests plant in it.
//!
//! Build with `RUSTFLAGS="--cfg loom"` to check the models in `tests/loom_*.rs`.

#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};
pub(crate) use typhon_sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering, fence};

/// The lock, also after a panic of whoever held it: what it guards is changed in steps that are right on their own.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        #[cfg(not(loom))]
        Err(poisoned) => poisoned.into_inner(),
        #[cfg(loom)]
        Err(_) => panic!("no panic under a lock"),
    }
}

/// The lock, if it is free.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    #[cfg(not(loom))]
    if let Err(std::sync::TryLockError::Poisoned(poisoned)) = mutex.try_lock() {
        return Some(poisoned.into_inner());
    }
    mutex.try_lock().ok()
}

/// A mistake planted in the protocol, so that a model or a crash sweep can show that it would be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(any(loom, feature = "mutants")),
    allow(unreachable_pub, dead_code, reason = "tests name faults")
)]
pub enum Fault {
    /// Acknowledge after the write, before the sync.
    AckBeforeSync,
    /// Acknowledge before the name of a new segment is durable.
    AckBeforeDirSync,
    /// Sync only the newest segment file.
    SyncNewestOnly,
    /// Take a failed sync for done when a second try succeeds.
    RetrySync,
    /// The header of a new segment is not made durable before its blocks are acknowledged.
    HeaderNotDurable,
    /// Open does not move the anchor: no new epoch, base, floor or numbers.
    NoSeal,
    /// Appends are accepted before the new epoch is durable.
    EpochLate,
    /// Blocks and segments of any open are accepted.
    NoEpoch,
    /// Open writes on in the last segment.
    ContinueSegment,
    /// The checksum of a block is not compared.
    ListUnchecked,
    /// The checksum of a frame's body is not compared.
    BodyUnchecked,
    /// The scan goes on behind a gap.
    ScanPastGap,
    /// A fence's end gives effect to every part since the last end.
    OrphanParts,
    /// The anchor keeps the next sequence number of an earlier open.
    StaleNextTsn,
    /// Positions of lost frames are issued again.
    ReusePositions,
    /// Sequence numbers of lost frames are issued again.
    ReuseTsns,
    /// What a dead process left in the cache is taken for durable.
    TrustCache,
    /// Segments are recycled before the new base is durable.
    RecycleEarly,
    /// The anchor is written over the slot in use.
    AnchorInPlace,
    /// The end of the prefix may lie below the base.
    EndBelowBase,
    /// Files without a right header are not looked at for blocks.
    IgnoreHeaderless,
    /// The seal depends on whether a torn tail was seen.
    SealOnlyIfTorn,
    /// Drained bytes of the ring are not zeroed.
    NoZero,
    /// Position and sequence number are taken in two steps.
    TwoAtomics,
    /// The publish word is stored before the body.
    PublishFirst,
    /// The publish word is stored relaxed.
    PublishRelaxed,
    /// Credits return before the bytes are zeroed.
    FreeEarly,
    /// A waiter does not look again after it has registered.
    RegisterBlind,
    /// The one who wrote wakes nobody to write next.
    NoBaton,
    /// The consumer that waits for a frame does not look again.
    AwaitBlind,
    /// Nobody looks whether somebody waits for space.
    SpaceBlind,
    /// Whoever waits for space and found the writer taken is not told that it is free.
    FreedUntold,
    /// Threads that sleep are woken before the word on which they sleep says that they are served.
    WakeBeforeMark,
    /// How much the ring holds is reckoned from what was claimed before and freed after.
    FreedReadLate,
    /// Threads are told that they are served before their position is durable to whoever looks.
    DurableAfterMark,
    /// A group is closed without a fence before its frames are looked for.
    GroupUnfenced,
}

/// Is this fault planted? Always `false`, and no code, outside of tests.
#[cfg(not(any(loom, feature = "mutants")))]
#[inline(always)]
pub(crate) const fn planted(_: Fault) -> bool {
    false
}

#[cfg(any(loom, feature = "mutants"))]
thread_local! {
    /// One bit for each planted fault.
    static PLANTED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

#[cfg(any(loom, feature = "mutants"))]
pub(crate) fn planted(fault: Fault) -> bool {
    PLANTED.get() & (1 << fault as u64) != 0
}

/// Plants these faults, and no others, for the calling thread.
#[cfg(any(loom, feature = "mutants"))]
pub fn plant(faults: &[Fault]) {
    PLANTED.set(faults.iter().fold(0, |planted, fault| planted | 1 << *fault as u64));
}
