//! What loom knows as waiting for a word: condition variables by address, created as they are needed.
//!
//! There is no clock in a model. An infinite wait ends by a wake and by nothing else, so that a lost wake is a
//! deadlock, which loom reports; any other wait ends at once and without a reason. The condition variables are leaked:
//! after a failure loom's objects cannot be dropped any more.
#![forbid(unsafe_code)]

use super::WaitEnd;
use crate::Deadline;
use crate::atomic::{AtomicU32, Ordering};
use loom::sync::{Condvar, Mutex};
use std::collections::HashMap;

loom::lazy_static! {
    static ref WAITERS: Mutex<HashMap<usize, &'static Condvar>> = Mutex::new(HashMap::new());
}

fn address(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word).addr()
}

pub(super) fn wait(word: &AtomicU32, expected: u32, deadline: Deadline) -> WaitEnd {
    if !deadline.is_infinite() {
        loom::thread::yield_now();
        return if deadline == Deadline::EXPIRED { WaitEnd::Expired } else { WaitEnd::Woken };
    }
    let mut waiters = WAITERS.lock().expect("no panic under the lock");
    // Not an acquire: what the waiter may rely on must come from its own loads.
    if word.load(Ordering::Relaxed) == expected {
        let changed = *waiters.entry(address(word)).or_insert_with(|| Box::leak(Box::new(Condvar::new())));
        drop(changed.wait(waiters));
    }
    WaitEnd::Woken
}

pub(super) fn wake_one(word: &AtomicU32) {
    if let Some(changed) = WAITERS.lock().expect("no panic under the lock").get(&address(word)) {
        changed.notify_one();
    }
}

pub(super) fn wake_all(word: &AtomicU32) {
    if let Some(changed) = WAITERS.lock().expect("no panic under the lock").get(&address(word)) {
        changed.notify_all();
    }
}
