//! The locks of readers and writers.
#![forbid(unsafe_code)]

use super::LockError;
use super::core::Core;
use super::events::{Compact, Fair, Nature};
use super::guard::{Exclusive, Shared};
use super::word::{self, ReadersWriters, ToOwn, ToPromote, ToShare, demoted, without_owner, without_reader};
use crate::context::WaitContext;
use crate::owner::Owner;

/// A lock of eight bytes for readers and writers (brief 05 B-8). Promoter goes before writer goes before readers: while
/// a writer or promoter waits, no reader joins, also when others read already. Writers block apart and are woken one at a
/// time.
///
/// A thread that shares the lock and acquires it again while a writer waits, waits for itself until its deadline.
///
/// ```
/// use typhon_sync::{WaitContext, lock::AccessControl};
///
/// static LOCK: AccessControl = AccessControl::new();
/// let reading = LOCK.shared(&WaitContext::INFINITE)?;
/// let writing = reading.promote(&WaitContext::INFINITE).map_err(|(_, error)| error)?;
/// assert!(LOCK.try_shared().is_err());
/// drop(writing);
/// # Ok::<(), typhon_sync::lock::LockError>(())
/// ```
pub type AccessControl = ReadersWriterLock<Fair>;

/// A lock of four bytes for readers and writers, first come first served by luck: readers can keep a writer out for as
/// long as they overlap (brief 05 B-9). Only a sole reader is promoted; nobody waits to become one.
pub type AccessControlSmall = ReadersWriterLock<Compact>;

/// What a lock of readers and writers can be: [`Fair`] or [`Compact`].
#[expect(private_bounds, reason = "nobody else implements it")]
pub trait Variety: Nature {}

impl Variety for Fair {}
impl Variety for Compact {}

/// A lock for many readers or one writer; [`AccessControl`] or [`AccessControlSmall`].
///
/// The functions that return guards are the ones to use. `enter_*` and `exit_*` are for locks that live where no guard
/// can borrow from; they check in every build that the caller holds what it gives up.
#[derive(Debug)]
pub struct ReadersWriterLock<V: Variety> {
    words: V::Words,
}

impl<V: Variety> ReadersWriterLock<V> {
    /// Readers that a lock can count: 32,767.
    pub const MAX_READERS: u32 = word::MAX_READERS;
    /// Writers that can wait for an [`AccessControl`]: 2,047. An [`AccessControlSmall`] does not count them.
    pub const MAX_WAITING_WRITERS: u32 = word::MAX_WAITING_WRITERS;

    /// A free lock.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { words: V::FREE }
    }

    /// A free lock.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { words: V::free() }
    }

    #[inline(always)]
    fn core(&self) -> Core<'_, ReadersWriters> {
        let (state, writer_wakes) = V::words(&self.words);
        Core::new(state, writer_wakes)
    }

    /// Shares the lock until the guard is dropped.
    ///
    /// # Errors
    /// As [`ReadersWriterLock::enter_shared`].
    #[inline]
    pub fn shared(&self, context: &WaitContext<'_>) -> Result<Shared<'_, V>, LockError> {
        self.enter_shared(context)?;
        Ok(Shared::new(self))
    }

    /// Shares the lock if that is possible without waiting.
    ///
    /// # Errors
    /// As [`ReadersWriterLock::enter_shared`].
    #[inline]
    pub fn try_shared(&self) -> Result<Shared<'_, V>, LockError> {
        self.shared(&WaitContext::NO_WAIT)
    }

    /// Holds the lock alone until the guard is dropped.
    ///
    /// # Errors
    /// As [`ReadersWriterLock::enter_exclusive`].
    #[inline]
    pub fn exclusive(&self, context: &WaitContext<'_>) -> Result<Exclusive<'_, V>, LockError> {
        self.enter_exclusive(context)?;
        Ok(Exclusive::new(self))
    }

    /// Holds the lock alone if that is possible without waiting.
    ///
    /// # Errors
    /// As [`ReadersWriterLock::enter_exclusive`].
    #[inline]
    pub fn try_exclusive(&self) -> Result<Exclusive<'_, V>, LockError> {
        self.exclusive(&WaitContext::NO_WAIT)
    }

    /// Shares the lock until [`ReadersWriterLock::exit_shared`].
    ///
    /// # Errors
    /// [`LockError::TimedOut`], [`LockError::Cancelled`]; [`LockError::AlreadyOwned`] if the calling thread holds the
    /// lock alone; [`LockError::TooManyHolders`].
    #[inline]
    pub fn enter_shared(&self, context: &WaitContext<'_>) -> Result<(), LockError> {
        let acquired = self.core().acquire(&ToShare(V::default()), context)?;
        V::shared(acquired);
        Ok(())
    }

    /// Ends a share of the lock.
    ///
    /// # Errors
    /// [`LockError::NotShared`] if nobody shares the lock. Readers are counted, not known: another one's share cannot be
    /// told from the caller's.
    #[inline]
    pub fn exit_shared(&self) -> Result<(), LockError> {
        let at = V::share_ends();
        self.core().release(without_reader)?;
        V::share_ended(at);
        Ok(())
    }

    /// Holds the lock alone until [`ReadersWriterLock::exit_exclusive`].
    ///
    /// # Errors
    /// [`LockError::TimedOut`], [`LockError::Cancelled`]; [`LockError::AlreadyOwned`] if the calling thread holds the
    /// lock alone already; [`LockError::TooManyWaiters`]; [`LockError::ThreadIdsExhausted`].
    #[inline]
    pub fn enter_exclusive(&self, context: &WaitContext<'_>) -> Result<(), LockError> {
        let acquired = self.core().acquire(&ToOwn(V::default(), Owner::current()?), context)?;
        V::owned(acquired);
        Ok(())
    }

    /// Ends holding the lock alone.
    ///
    /// # Errors
    /// [`LockError::NotOwner`] if the calling thread does not hold it alone.
    #[inline]
    pub fn exit_exclusive(&self) -> Result<(), LockError> {
        let caller = Owner::current()?;
        let at = V::ownership_ends();
        self.core().release(|word| without_owner(word, caller))?;
        V::ownership_ended(at);
        Ok(())
    }

    /// Makes the caller's share exclusive, in place: no writer comes between. [`AccessControl`] waits until the other
    /// readers have left, and lets no new one in; [`AccessControlSmall`] does not wait.
    ///
    /// # Errors
    /// [`LockError::NotShared`]; [`LockError::PromotionInProgress`] if another reader waits to be promoted: the two would
    /// wait for each other; [`LockError::SharedByOthers`] ([`AccessControlSmall`]); [`LockError::TimedOut`],
    /// [`LockError::Cancelled`] ([`AccessControl`]). The share is kept in each case.
    pub fn promote(&self, context: &WaitContext<'_>) -> Result<(), LockError> {
        let acquired = self.core().acquire(&ToPromote(V::default(), Owner::current()?), context)?;
        V::promoted(acquired);
        Ok(())
    }

    /// Makes exclusive holding a share, in place: no writer comes between.
    ///
    /// # Errors
    /// [`LockError::NotOwner`] if the calling thread does not hold the lock alone.
    pub fn demote(&self) -> Result<(), LockError> {
        let caller = Owner::current()?;
        let at = V::demotes();
        self.core().release(|word| demoted(word, caller))?;
        V::demoted(at);
        Ok(())
    }

    /// Has a thread waited for the lock since it was made or [`ReadersWriterLock::reset_contended`] was called?
    pub fn was_contended(&self) -> bool {
        self.core().was_contended()
    }

    /// Forgets that a thread has waited.
    pub fn reset_contended(&self) {
        self.core().reset_contended();
    }

    /// Number of readers at this moment.
    pub fn readers(&self) -> u32 {
        word::readers(self.core().word())
    }

    /// Number of writers that wait at this moment; always 0 for an [`AccessControlSmall`].
    pub fn waiting_writers(&self) -> u32 {
        word::waiting_writers(self.core().word())
    }

    /// Id of the thread that holds the lock alone at this moment, as in the trace.
    pub fn owner(&self) -> Option<u16> {
        word::owner(self.core().word())
    }
}

impl<V: Variety> Default for ReadersWriterLock<V> {
    fn default() -> Self {
        Self::new()
    }
}
