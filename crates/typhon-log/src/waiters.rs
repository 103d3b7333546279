//! Threads that wait for positions to become durable, each woken when its own is.

use crate::sync::{AtomicU32, Mutex, Ordering, lock};
use std::collections::BTreeMap;
use std::sync::Arc;
use typhon_sync::Deadline;
use typhon_sync::wait::{Parker, WaitEnd};

/// Waiting threads by position.
#[derive(Debug)]
pub(crate) struct Waiters {
    list: Mutex<List>,
    /// How many there are; a hint.
    count: AtomicU32,
}

#[derive(Debug, Default)]
struct List {
    waiting: BTreeMap<(u64, u64), Arc<Parker>>,
    next_number: u64,
}

/// A place among the waiters.
#[derive(Debug)]
pub(crate) struct Ticket {
    key: (u64, u64),
    parker: Arc<Parker>,
}

impl Ticket {
    /// Waits until somebody takes this place out of the list.
    pub(crate) fn park(&self, deadline: Deadline) -> WaitEnd {
        self.parker.park(deadline)
    }
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Self { list: Mutex::new(List::default()), count: AtomicU32::new(0) }
    }

    /// Registers the calling thread. Look again at what it waits for before parking.
    pub(crate) fn register(&self, position: u64) -> Ticket {
        let parker = Arc::new(Parker::new());
        let mut list = lock(&self.list);
        let key = (position, list.next_number);
        list.next_number += 1;
        list.waiting.insert(key, Arc::clone(&parker));
        self.note(&list);
        Ticket { key, parker }
    }

    /// Gives a place back. `false`: somebody has taken it out before, and woken its thread.
    pub(crate) fn cancel(&self, ticket: &Ticket) -> bool {
        let mut list = lock(&self.list);
        let was_there = list.waiting.remove(&ticket.key).is_some();
        self.note(&list);
        was_there
    }

    /// Wakes everybody who waits for a position up to `durable`; returns how many.
    pub(crate) fn release(&self, durable: u64) -> usize {
        let mut list = lock(&self.list);
        let later = list.waiting.split_off(&(durable + 1, 0));
        let covered = std::mem::replace(&mut list.waiting, later);
        self.note(&list);
        drop(list);
        covered.values().for_each(|parker| parker.unpark());
        covered.len()
    }

    /// Wakes the one whose position comes first, to write for all.
    pub(crate) fn wake_first(&self) {
        let mut list = lock(&self.list);
        let first = list.waiting.pop_first();
        self.note(&list);
        drop(list);
        if let Some((_, parker)) = first {
            parker.unpark();
        }
    }

    /// How many threads wait; may be out of date.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    fn note(&self, list: &List) {
        self.count.store(list.waiting.len() as u32, Ordering::Relaxed);
    }

    /// Wakes everybody.
    pub(crate) fn wake_all(&self) {
        self.release(u64::MAX - 1);
    }
}
