//! The lock of a resource that is used, changed and destroyed.
#![forbid(unsafe_code)]

use super::LockError;
use super::core::{Acquired, Core};
use super::resource_word::{
    self as word, Resource, ToAccess, ToDestroy, ToModify, ToPromote, without_accessor, without_modifier,
};
use crate::atomic::AtomicU32;
use crate::context::WaitContext;
use crate::owner::Owner;
use crate::trace::emit;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use typhon_profiler::events::{
    ConcurrencyResourceAccessing, ConcurrencyResourceDestroy, ConcurrencyResourceModify,
    ConcurrencyResourceModifyPromotion,
};

/// A lock of four bytes for a resource with three uses (brief 05 B-10):
///
/// - **access**, by many at a time;
/// - **modify**, by one at a time, beside those who access: for changes that add and never move, such as growing a chain;
/// - **destroy**, once and for good: waits until nobody uses it, and from then on every entry fails at once.
///
/// While somebody waits to modify, new accesses wait behind. An accessor can be promoted to modify: that waits until it
/// is the only one, so that nobody is left who saw the resource before. While somebody waits to destroy, all entries wait;
/// if its deadline passes first, the resource lives on.
///
/// Who accesses already and enters again, or has a second access when it is promoted, may wait for itself until its
/// deadline.
///
/// ```
/// use typhon_sync::{WaitContext, lock::{LockError, ResourceAccessControl}};
///
/// let lock = ResourceAccessControl::new();
/// let using = lock.access(&WaitContext::INFINITE)?;
/// drop(lock.modify(&WaitContext::INFINITE)?);
/// drop(using);
/// lock.destroy(&WaitContext::INFINITE)?;
/// assert_eq!(lock.access(&WaitContext::INFINITE).err(), Some(LockError::Destroyed));
/// # Ok::<(), LockError>(())
/// ```
#[derive(Debug)]
pub struct ResourceAccessControl {
    state: AtomicU32,
}

impl ResourceAccessControl {
    /// Accessors that can be counted: 511.
    pub const MAX_ACCESSORS: u32 = word::MAX_ACCESSORS;

    /// The lock of a resource that nobody uses.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self { state: AtomicU32::new(0) }
    }

    /// The lock of a resource that nobody uses.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self { state: AtomicU32::new(0) }
    }

    #[inline(always)]
    fn core(&self) -> Core<'_, Resource> {
        Core::new(&self.state, None)
    }

    /// Uses the resource until the guard is dropped.
    ///
    /// # Errors
    /// As [`ResourceAccessControl::enter_accessing`].
    #[inline]
    pub fn access(&self, context: &WaitContext<'_>) -> Result<Accessing<'_>, LockError> {
        self.enter_accessing(context)?;
        Ok(Accessing { lock: self, not_send: PhantomData })
    }

    /// Changes the resource until the guard is dropped.
    ///
    /// # Errors
    /// As [`ResourceAccessControl::enter_modify`].
    #[inline]
    pub fn modify(&self, context: &WaitContext<'_>) -> Result<Modifying<'_>, LockError> {
        self.enter_modify(context)?;
        Ok(Modifying { lock: self, not_send: PhantomData })
    }

    /// Uses the resource until [`ResourceAccessControl::exit_accessing`].
    ///
    /// # Errors
    /// [`LockError::Destroyed`], [`LockError::TimedOut`], [`LockError::Cancelled`], [`LockError::TooManyHolders`].
    #[inline]
    pub fn enter_accessing(&self, context: &WaitContext<'_>) -> Result<(), LockError> {
        let result = self.core().acquire(&ToAccess, context);
        emit(|| {
            let accessing = |acquired: &Acquired| word::accessors(acquired.word()).min(255) as u8;
            ConcurrencyResourceAccessing {
                success: u8::from(result.is_ok()),
                accessing_count: result.as_ref().map_or(0, accessing),
                elapsed_us: elapsed_us(&result),
            }
        });
        result.map(drop)
    }

    /// Ends a use of the resource.
    ///
    /// # Errors
    /// [`LockError::NotShared`] if nobody uses it. Accessors are counted, not known.
    #[inline]
    pub fn exit_accessing(&self) -> Result<(), LockError> {
        self.core().release(without_accessor).map(drop)
    }

    /// Changes the resource until [`ResourceAccessControl::exit_modify`].
    ///
    /// # Errors
    /// [`LockError::Destroyed`], [`LockError::TimedOut`], [`LockError::Cancelled`]; [`LockError::AlreadyOwned`] if the
    /// calling thread is changing it already; [`LockError::ThreadIdsExhausted`].
    #[inline]
    pub fn enter_modify(&self, context: &WaitContext<'_>) -> Result<(), LockError> {
        let caller = Owner::current()?;
        let result = self.core().acquire(&ToModify::new(caller), context);
        record_modify(caller, &result);
        result.map(drop)
    }

    /// Ends changing the resource.
    ///
    /// # Errors
    /// [`LockError::NotOwner`] if the calling thread is not changing it.
    #[inline]
    pub fn exit_modify(&self) -> Result<(), LockError> {
        let caller = Owner::current()?;
        self.core().release(|word| without_modifier(word, caller)).map(drop)
    }

    /// Turns the caller's access into changing, once nobody else accesses or changes the resource.
    ///
    /// # Errors
    /// [`LockError::NotShared`] if nobody accesses it; [`LockError::PromotionInProgress`] if another accessor waits to be
    /// promoted: the two would wait for each other; [`LockError::AlreadyOwned`], [`LockError::TimedOut`],
    /// [`LockError::Cancelled`], [`LockError::ThreadIdsExhausted`]. The access is kept in each case.
    pub fn promote(&self, context: &WaitContext<'_>) -> Result<(), LockError> {
        let caller = Owner::current()?;
        let request = ToPromote::new(caller);
        let result = self.core().acquire(&request, context);
        if request.has_waited.get() {
            emit(|| ConcurrencyResourceModifyPromotion { elapsed_us: elapsed_us(&result) });
        }
        if result.is_ok() {
            record_modify(caller, &result);
        }
        result.map(drop)
    }

    /// Destroys the resource: waits until nobody accesses or changes it, and lets nobody in again. What it protected
    /// belongs to the caller from then on.
    ///
    /// # Errors
    /// [`LockError::Destroyed`], [`LockError::DestructionInProgress`]; [`LockError::AlreadyOwned`] if the calling thread
    /// is changing it; [`LockError::TimedOut`], [`LockError::Cancelled`], after which the resource lives on;
    /// [`LockError::ThreadIdsExhausted`].
    pub fn destroy(&self, context: &WaitContext<'_>) -> Result<(), LockError> {
        let result = self.core().acquire(&ToDestroy::new(Owner::current()?), context);
        emit(|| ConcurrencyResourceDestroy {
            success: u8::from(result.is_ok()),
            elapsed_us: elapsed_us(&result),
        });
        result.map(drop)
    }

    /// Has the resource been destroyed?
    pub fn is_destroyed(&self) -> bool {
        word::is_destroyed(self.core().word())
    }

    /// Is a thread changing the resource at this moment?
    pub fn is_modified(&self) -> bool {
        word::is_modified(self.core().word())
    }

    /// Number of accessors at this moment.
    pub fn accessors(&self) -> u32 {
        word::accessors(self.core().word())
    }

    /// Has a thread waited for the lock since it was made or [`ResourceAccessControl::reset_contended`] was called?
    pub fn was_contended(&self) -> bool {
        self.core().was_contended()
    }

    /// Forgets that a thread has waited.
    pub fn reset_contended(&self) {
        self.core().reset_contended();
    }
}

impl Default for ResourceAccessControl {
    fn default() -> Self {
        Self::new()
    }
}

fn elapsed_us(result: &Result<Acquired, LockError>) -> u16 {
    match result {
        Ok(acquired) => acquired.elapsed_us(),
        Err(error) => u16::try_from(error.waited().as_micros()).unwrap_or(u16::MAX),
    }
}

fn record_modify(caller: Owner, result: &Result<Acquired, LockError>) {
    emit(|| ConcurrencyResourceModify {
        success: u8::from(result.is_ok()),
        thread_id: caller.id(),
        elapsed_us: elapsed_us(result),
    });
}

/// A use of a resource. Stays on its thread.
#[must_use = "the use ends when the guard is dropped"]
#[derive(Debug)]
pub struct Accessing<'a> {
    lock: &'a ResourceAccessControl,
    not_send: PhantomData<*mut ()>,
}

/// A change of a resource. Stays on its thread, which is the owner.
#[must_use = "the change ends when the guard is dropped"]
#[derive(Debug)]
pub struct Modifying<'a> {
    lock: &'a ResourceAccessControl,
    not_send: PhantomData<*mut ()>,
}

impl<'a> Accessing<'a> {
    /// Turns the access into changing, once nobody else uses the resource; gives it back when that fails.
    ///
    /// # Errors
    /// As [`ResourceAccessControl::promote`].
    pub fn promote(self, context: &WaitContext<'_>) -> Result<Modifying<'a>, (Self, LockError)> {
        match self.lock.promote(context) {
            Ok(()) => Ok(Modifying { lock: ManuallyDrop::new(self).lock, not_send: PhantomData }),
            Err(error) => Err((self, error)),
        }
    }
}

impl Drop for Accessing<'_> {
    #[inline]
    fn drop(&mut self) {
        let exit = self.lock.exit_accessing();
        debug_assert_eq!(exit, Ok(()), "the use was ended behind the guard's back");
    }
}

impl Drop for Modifying<'_> {
    #[inline]
    fn drop(&mut self) {
        let exit = self.lock.exit_modify();
        debug_assert_eq!(exit, Ok(()), "the change was ended behind the guard's back");
    }
}
