//! Memory that belongs to whoever has claimed it.
#![allow(unsafe_code, reason = "the one place where the dispatch protocol stands for a lock")]

use std::cell::UnsafeCell;
#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicBool, Ordering};

/// A value that one thread at a time may change, as the dispatch protocol sees to. Debug builds check that it does.
#[derive(Debug)]
pub(crate) struct Claimed<T> {
    value: UnsafeCell<T>,
    #[cfg(debug_assertions)]
    is_in_use: AtomicBool,
}

// SAFETY: the value is reached through `with` alone, whose callers have it to themselves one after the other, each
// ordered after the one before; so sharing the cell does no more than sending the value.
unsafe impl<T: Send> Sync for Claimed<T> {}

impl<T> Claimed<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            value: UnsafeCell::new(value),
            #[cfg(debug_assertions)]
            is_in_use: AtomicBool::new(false),
        }
    }

    /// Uses the value.
    ///
    /// # Safety
    /// No other call on this cell overlaps with this one, and all earlier ones happen before it. The protocol gives
    /// that to the thread that releases a system, until it publishes the system; to the thread that has claimed the
    /// only chunk of a system, until it completes the chunk; and to the driver between ticks.
    #[inline(always)]
    pub(crate) unsafe fn with<R>(&self, use_value: impl FnOnce(&mut T) -> R) -> R {
        #[cfg(debug_assertions)]
        let _in_use = InUse::begin(&self.is_in_use);
        // SAFETY: the caller has the value to itself.
        use_value(unsafe { &mut *self.value.get() })
    }
}

/// Notices overlapping uses, also where one of them ends by a panic.
#[cfg(debug_assertions)]
struct InUse<'a>(&'a AtomicBool);

#[cfg(debug_assertions)]
impl<'a> InUse<'a> {
    fn begin(flag: &'a AtomicBool) -> Self {
        assert!(!flag.swap(true, Ordering::Relaxed), "two threads have claimed the same thing");
        Self(flag)
    }
}

#[cfg(debug_assertions)]
impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
