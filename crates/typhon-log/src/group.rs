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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_the_time_of_its_first_frame_and_the_next_one_its_own() {
        let group = GroupTimer::new();
        assert!(!group.close(i64::MAX - 1), "no group is open");
        assert!(group.join(|| 5), "whoever writes must be told");
        assert!(!group.join(|| 4) && group.due_ns() == 5);
        assert!(!group.close(4) && group.close(5));
        assert!(!group.close(100) && group.due_ns() == NEVER_NS, "it was closed");
        assert!(group.join(|| 7) && group.due_ns() == 7);
    }
}
