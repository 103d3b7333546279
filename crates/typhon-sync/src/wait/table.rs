//! Condition variables by address, for systems whose own way is not used here.
#![forbid(unsafe_code)]

use super::WaitEnd;
use crate::Deadline;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Words whose addresses fall together share a bucket; their waiters look again more often than they must.
static BUCKETS: [Bucket; 64] = [const { Bucket { lock: Mutex::new(()), changed: Condvar::new() } }; 64];

struct Bucket {
    lock: Mutex<()>,
    changed: Condvar,
}

impl Bucket {
    fn of(word: &AtomicU32) -> &'static Self {
        let address = std::ptr::from_ref(word).addr();
        &BUCKETS[(address >> 2 ^ address >> 8) % BUCKETS.len()]
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn wait(word: &AtomicU32, expected: u32, deadline: Deadline) -> WaitEnd {
    let bucket = Bucket::of(word);
    let guard = bucket.lock();
    // Under the lock that every waker takes after its change: the change is seen here, or the wake comes later.
    if word.load(Ordering::SeqCst) != expected {
        return WaitEnd::Woken;
    }
    if deadline.is_infinite() {
        drop(bucket.changed.wait(guard));
        return WaitEnd::Woken;
    }
    let remaining = deadline.remaining();
    if !remaining.is_zero() {
        drop(bucket.changed.wait_timeout(guard, remaining));
    }
    if deadline.is_expired() { WaitEnd::Expired } else { WaitEnd::Woken }
}

pub(super) fn wake_one(word: &AtomicU32) {
    // Who waits for another word of the bucket could take the wake of one.
    wake_all(word);
}

pub(super) fn wake_all(word: &AtomicU32) {
    let bucket = Bucket::of(word);
    drop(bucket.lock());
    bucket.changed.notify_all();
}
