//! The two locks of readers and writers: how much memory each has, and what it records (kinds 90 to 100).
#![forbid(unsafe_code)]

use super::core::Acquired;
use super::word::Waiters;
use crate::atomic::AtomicU32;
use crate::owner::current_id;
use crate::trace::{Moment, emit, is_on};
use std::fmt::Debug;
use typhon_profiler::events::{
    AccessControlPromotionVariant, ConcurrencyAccessControlContention,
    ConcurrencyAccessControlExclusiveAcquire, ConcurrencyAccessControlExclusiveRelease,
    ConcurrencyAccessControlPromotion, ConcurrencyAccessControlSharedAcquire,
    ConcurrencyAccessControlSharedRelease, ConcurrencyAccessControlSmallContention,
    ConcurrencyAccessControlSmallExclusiveAcquire, ConcurrencyAccessControlSmallExclusiveRelease,
    ConcurrencyAccessControlSmallSharedAcquire, ConcurrencyAccessControlSmallSharedRelease, Event,
};

/// A lock's memory and voice.
pub(super) trait Nature: Waiters + Copy + Default + Debug {
    /// The words of the lock.
    type Words: Debug;
    /// The words of a free lock.
    #[cfg(not(loom))]
    const FREE: Self::Words;
    /// The words of a free lock.
    #[cfg(loom)]
    fn free() -> Self::Words;
    /// The word with the state, and the count that writers block on if there is one.
    fn words(words: &Self::Words) -> (&AtomicU32, Option<&AtomicU32>);

    /// The lock is shared now.
    fn shared(acquired: Acquired);
    /// The moment before a share ends.
    fn share_ends() -> Moment;
    /// A share has ended.
    fn share_ended(at: Moment);
    /// The lock is held exclusively now.
    fn owned(acquired: Acquired);
    /// The moment before exclusive holding ends.
    fn ownership_ends() -> Moment;
    /// Exclusive holding has ended.
    fn ownership_ended(at: Moment);
    /// A share became exclusive.
    fn promoted(acquired: Acquired);
    /// The moment before exclusive holding becomes a share.
    fn demotes() -> Moment;
    /// Exclusive holding became a share.
    fn demoted(at: Moment);
}

/// [`AccessControl`](super::AccessControl): fair to writers, eight bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fair;

/// [`AccessControlSmall`](super::AccessControlSmall): four bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Compact;

impl Waiters for Fair {
    const IS_FAIR: bool = true;

    fn began_waiting() {
        emit(|| ConcurrencyAccessControlContention {});
    }

    fn is_timed() -> bool {
        is_on(ConcurrencyAccessControlSharedAcquire::KIND)
            || is_on(ConcurrencyAccessControlExclusiveAcquire::KIND)
            || is_on(ConcurrencyAccessControlPromotion::KIND)
    }
}

impl Nature for Fair {
    /// The state, and how often a writer was woken.
    type Words = [AtomicU32; 2];
    #[cfg(not(loom))]
    #[expect(clippy::declare_interior_mutable_const, reason = "each lock begins as a copy of it")]
    const FREE: Self::Words = [const { AtomicU32::new(0) }; 2];

    #[cfg(loom)]
    fn free() -> Self::Words {
        [AtomicU32::new(0), AtomicU32::new(0)]
    }

    #[inline(always)]
    fn words([state, writer_wakes]: &Self::Words) -> (&AtomicU32, Option<&AtomicU32>) {
        (state, Some(writer_wakes))
    }

    #[inline(always)]
    fn shared(acquired: Acquired) {
        emit(|| ConcurrencyAccessControlSharedAcquire {
            thread_id: current_id(),
            had_to_wait: u8::from(acquired.had_to_wait()),
            elapsed_us: acquired.elapsed_us(),
        });
    }

    #[inline(always)]
    fn share_ends() -> Moment {
        Moment::of::<ConcurrencyAccessControlSharedRelease>()
    }

    #[inline(always)]
    fn share_ended(at: Moment) {
        at.record(|| ConcurrencyAccessControlSharedRelease { thread_id: current_id() });
    }

    #[inline(always)]
    fn owned(acquired: Acquired) {
        emit(|| ConcurrencyAccessControlExclusiveAcquire {
            thread_id: current_id(),
            had_to_wait: u8::from(acquired.had_to_wait()),
            elapsed_us: acquired.elapsed_us(),
        });
    }

    #[inline(always)]
    fn ownership_ends() -> Moment {
        Moment::of::<ConcurrencyAccessControlExclusiveRelease>()
    }

    #[inline(always)]
    fn ownership_ended(at: Moment) {
        at.record(|| ConcurrencyAccessControlExclusiveRelease { thread_id: current_id() });
    }

    fn promoted(acquired: Acquired) {
        emit(|| ConcurrencyAccessControlPromotion {
            elapsed_us: acquired.elapsed_us(),
            variant: AccessControlPromotionVariant::PROMOTE,
        });
    }

    fn demotes() -> Moment {
        Moment::of::<ConcurrencyAccessControlPromotion>()
    }

    fn demoted(at: Moment) {
        at.record(|| ConcurrencyAccessControlPromotion {
            elapsed_us: 0,
            variant: AccessControlPromotionVariant::DEMOTE,
        });
    }
}

impl Waiters for Compact {
    const IS_FAIR: bool = false;

    fn began_waiting() {
        emit(|| ConcurrencyAccessControlSmallContention {});
    }

    /// Its events do not tell how long a wait was.
    fn is_timed() -> bool {
        false
    }
}

impl Nature for Compact {
    /// The state.
    type Words = AtomicU32;
    #[cfg(not(loom))]
    #[expect(clippy::declare_interior_mutable_const, reason = "each lock begins as a copy of it")]
    const FREE: Self::Words = AtomicU32::new(0);

    #[cfg(loom)]
    fn free() -> Self::Words {
        AtomicU32::new(0)
    }

    #[inline(always)]
    fn words(state: &Self::Words) -> (&AtomicU32, Option<&AtomicU32>) {
        (state, None)
    }

    #[inline(always)]
    fn shared(_: Acquired) {
        emit(|| ConcurrencyAccessControlSmallSharedAcquire { thread_id: current_id() });
    }

    #[inline(always)]
    fn share_ends() -> Moment {
        Moment::of::<ConcurrencyAccessControlSmallSharedRelease>()
    }

    #[inline(always)]
    fn share_ended(at: Moment) {
        at.record(|| ConcurrencyAccessControlSmallSharedRelease { thread_id: current_id() });
    }

    #[inline(always)]
    fn owned(_: Acquired) {
        emit(|| ConcurrencyAccessControlSmallExclusiveAcquire { thread_id: current_id() });
    }

    #[inline(always)]
    fn ownership_ends() -> Moment {
        Moment::of::<ConcurrencyAccessControlSmallExclusiveRelease>()
    }

    #[inline(always)]
    fn ownership_ended(at: Moment) {
        at.record(|| ConcurrencyAccessControlSmallExclusiveRelease { thread_id: current_id() });
    }

    /// Recorded as an acquisition.
    fn promoted(acquired: Acquired) {
        Self::owned(acquired);
    }

    fn demotes() -> Moment {
        Self::ownership_ends()
    }

    /// Recorded as a release and an acquisition.
    fn demoted(at: Moment) {
        Self::ownership_ended(at);
        Self::shared(Acquired::default());
    }
}
