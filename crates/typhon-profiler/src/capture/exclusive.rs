//! Exclusive access to the state of one thread, safe against signal handlers and allocation hooks.
//!
//! The only unsafe code here is the access through the busy flag.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence};

/// A value that only its own thread uses, one use at a time. A use inside a use, by a signal handler or an allocator
/// hook that records, is refused instead of seeing half-made state.
pub(crate) struct Exclusive<T> {
    busy: AtomicBool,
    value: UnsafeCell<T>,
}

impl<T> Exclusive<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { busy: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Begins a use of the value; `None` when the thread is inside another one. It has to be ended with
    /// [`Use::end`]: one that is dropped, as by a panic, leaves the value refused for good, so that half-made state is
    /// never seen.
    #[inline(always)]
    pub(crate) fn begin(&self) -> Option<Use<'_, T>> {
        if self.busy.load(Ordering::Relaxed) {
            return None;
        }
        self.busy.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        // SAFETY: `Exclusive` is not `Sync`, so only this thread gets here, and the flag, set before and cleared
        // after with compiler fences against a handler on this thread, makes this the only live reference.
        Some(Use { busy: &self.busy, value: unsafe { &mut *self.value.get() } })
    }

    /// Runs `work` on the value; `None` when the thread is inside another use.
    pub(crate) fn enter<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut value = self.begin()?;
        let result = work(&mut value);
        value.end();
        Some(result)
    }
}

/// One use of an [`Exclusive`] value. Not a closure: those are not always compiled into their caller, and then
/// everything that they capture goes through memory.
pub(crate) struct Use<'e, T> {
    busy: &'e AtomicBool,
    value: &'e mut T,
}

impl<T> Use<'_, T> {
    /// Lets the thread use the value again.
    #[inline(always)]
    pub(crate) fn end(self) {
        compiler_fence(Ordering::SeqCst);
        self.busy.store(false, Ordering::Relaxed);
    }
}

impl<T> Deref for Use<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> DerefMut for Use<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b10_use_inside_a_use_is_refused() {
        let cell = Exclusive::new(1);
        let inner = cell.enter(|value| {
            *value += 1;
            cell.enter(|value| *value += 1)
        });
        assert_eq!(inner, Some(None));
        assert_eq!(cell.enter(|value| *value), Some(2));
    }

    #[test]
    fn panic_inside_leaves_the_value_refused() {
        let cell = Exclusive::new(0);
        let unwound =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| cell.enter(|_| panic!("planned"))));
        assert!(unwound.is_err());
        assert_eq!(cell.enter(|value| *value), None);
    }
}
