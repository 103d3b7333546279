//! Who holds a lock: the small number of a live thread.
#![forbid(unsafe_code)]

use crate::lock::LockError;

/// A live thread's number, 1..=32,766, from the registry that the trace's threads are numbered by. It is used again
/// after the thread has ended (brief 05 B-12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner(u16);

impl Owner {
    /// The calling thread.
    #[inline(always)]
    pub(crate) fn current() -> Result<Self, LockError> {
        match current_id() {
            0 => Err(LockError::ThreadIdsExhausted),
            id => Ok(Self(id)),
        }
    }

    #[inline(always)]
    pub(crate) const fn id(self) -> u16 {
        self.0
    }
}

#[cfg(not(loom))]
pub(crate) use typhon_profiler::thread::current_id;

/// In a model threads are numbered as they come.
#[cfg(loom)]
pub(crate) fn current_id() -> u16 {
    loom::lazy_static! {
        static ref NEXT: std::sync::atomic::AtomicU16 = std::sync::atomic::AtomicU16::new(1);
    }
    loom::thread_local! {
        static ID: u16 = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
    ID.with(|id| *id)
}
