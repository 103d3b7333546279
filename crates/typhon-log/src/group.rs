//! When the oldest frame of a group must be written.

use crate::sync::{AtomicI64, Fault, Ordering, fence, planted};

/// No group waits for its time.
const NEVER_NS: i64 = i64::MAX;

/// The time of the group that is open, if one is.
#[derive(Debug)]
pub(crate) struct GroupTimer {
    due_ns: AtomicI64,
}

impl GroupTimer {
    pub(crate) fn new() -> Self {
        Self { due_ns: AtomicI64::new(NEVER_NS) }
    }

    /// Everything that the calling thread has appended belongs to the open group, or to one that is opened with this
    /// time. In that case whoever writes must be told.
    pub(crate) fn join(&self, due_ns: impl FnOnce() -> i64) -> bool {
        self.due_ns.load(Ordering::Relaxed) == NEVER_NS
            && self.due_ns.compare_exchange(NEVER_NS, due_ns(), Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The time of the open group; without one, a time that does not come.
    pub(crate) fn due_ns(&self) -> i64 {
        self.due_ns.load(Ordering::Acquire)
    }

    /// Closes the open group if its time has come. Whatever is written from now on has all of its frames.
    pub(crate) fn close(&self, now_ns: i64) -> bool {
        if now_ns < self.due_ns() {
            return false;
        }
        self.due_ns.store(NEVER_NS, Ordering::Release);
        // With the one in `Stream::append`: whoever still saw the old time has published what is written now.
        if !planted(Fault::GroupUnfenced) {
            fence(Ordering::SeqCst);
        }
        true
    }
}
