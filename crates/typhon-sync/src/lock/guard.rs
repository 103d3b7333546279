//! What is held of a lock of readers and writers, given up when the guard is dropped.
#![forbid(unsafe_code)]

use super::LockError;
use super::readers_writers::{ReadersWriterLock, Variety};
use crate::context::WaitContext;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

/// A share of a lock. Stays on its thread.
///
/// ```compile_fail,E0277
/// let lock = typhon_sync::lock::AccessControl::new();
/// let share = lock.try_shared().unwrap();
/// std::thread::scope(|scope| { scope.spawn(move || drop(share)); });
/// ```
#[must_use = "the share ends when the guard is dropped"]
#[derive(Debug)]
pub struct Shared<'a, V: Variety> {
    lock: &'a ReadersWriterLock<V>,
    not_send: PhantomData<*mut ()>,
}

/// A lock held alone. Stays on its thread, which is the owner.
#[must_use = "the lock is released when the guard is dropped"]
#[derive(Debug)]
pub struct Exclusive<'a, V: Variety> {
    lock: &'a ReadersWriterLock<V>,
    not_send: PhantomData<*mut ()>,
}

impl<'a, V: Variety> Shared<'a, V> {
    pub(super) fn new(lock: &'a ReadersWriterLock<V>) -> Self {
        Self { lock, not_send: PhantomData }
    }

    /// Makes the share exclusive; gives it back when that fails.
    ///
    /// # Errors
    /// As [`ReadersWriterLock::promote`].
    pub fn promote(self, context: &WaitContext<'_>) -> Result<Exclusive<'a, V>, (Self, LockError)> {
        match self.lock.promote(context) {
            Ok(()) => Ok(Exclusive::new(ManuallyDrop::new(self).lock)),
            Err(error) => Err((self, error)),
        }
    }
}

impl<'a, V: Variety> Exclusive<'a, V> {
    pub(super) fn new(lock: &'a ReadersWriterLock<V>) -> Self {
        Self { lock, not_send: PhantomData }
    }

    /// Makes it a share.
    ///
    /// # Errors
    /// [`LockError::NotOwner`] if the lock was released behind the guard's back.
    pub fn demote(self) -> Result<Shared<'a, V>, LockError> {
        let this = ManuallyDrop::new(self);
        this.lock.demote()?;
        Ok(Shared::new(this.lock))
    }
}

impl<V: Variety> Drop for Shared<'_, V> {
    #[inline]
    fn drop(&mut self) {
        let exit = self.lock.exit_shared();
        debug_assert_eq!(exit, Ok(()), "the share was ended behind the guard's back");
    }
}

impl<V: Variety> Drop for Exclusive<'_, V> {
    #[inline]
    fn drop(&mut self) {
        let exit = self.lock.exit_exclusive();
        debug_assert_eq!(exit, Ok(()), "the lock was released behind the guard's back");
    }
}
