//! Threads that wait for positions to become durable, each woken when its own is.

use crate::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use typhon_sync::Deadline;
use typhon_sync::wait::{Parker, WaitEnd};

/// Waiting threads by position.
#[derive(Debug)]
pub(crate) struct Waiters {
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    waiting: BTreeMap<Key, Waiting>,
    next_number: u64,
    /// Threads that the last group served, and that are about to be back.
    crowd: usize,
    /// How long whoever is back first waits for the others at most.
    gather: Duration,
}

/// Position and number.
type Key = (u64, u64);

#[derive(Debug)]
struct Waiting {
    parker: Arc<Parker>,
    /// Wakes by itself, soon, and writes then.
    has_alarm: bool,
}

/// A place among the waiters.
#[derive(Debug)]
pub(crate) struct Ticket {
    key: Key,
    parker: Arc<Parker>,
}

impl Ticket {
    /// Waits until somebody takes this place out of the list.
    pub(crate) fn park(&self, deadline: Deadline) -> WaitEnd {
        self.parker.park(deadline)
    }
}

/// What to do for a thread that waits while others are expected.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// Write: nobody else is expected.
    Last,
    /// Wait for the others, but not longer than this, then write.
    First(Ticket, Duration),
    /// Wait: whoever came first, or comes last, writes.
    Between(Ticket),
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Self { list: Mutex::new(List::default()) }
    }

    /// Registers the calling thread. Look again at what it waits for before parking.
    pub(crate) fn register(&self, position: u64) -> Ticket {
        lock(&self.list).add(position, false)
    }

    /// Threads that one group served come back at about the same time. A group that leaves without some of them makes
    /// those wait for two syncs; so the last one writes, and until then the first one waits a little.
    pub(crate) fn arrive(&self, position: u64) -> Arrival {
        let mut list = lock(&self.list);
        if list.waiting.len() + 1 >= list.crowd {
            return Arrival::Last;
        }
        if list.waiting.values().any(|waiting| waiting.has_alarm) {
            return Arrival::Between(list.add(position, false));
        }
        Arrival::First(list.add(position, true), list.gather)
    }

    /// Gives a place back. `false`: somebody has taken it out before, and woken its thread.
    pub(crate) fn cancel(&self, ticket: &Ticket) -> bool {
        lock(&self.list).waiting.remove(&ticket.key).is_some()
    }

    /// Wakes everybody who waits for a position up to `durable`. They and the calling thread are expected back within
    /// the time `gather`.
    pub(crate) fn release(&self, durable: u64, gather: Duration) {
        let mut list = lock(&self.list);
        let later = list.waiting.split_off(&(durable + 1, 0));
        let covered = std::mem::replace(&mut list.waiting, later);
        (list.crowd, list.gather) = (covered.len() + 1, gather);
        drop(list);
        covered.values().for_each(|waiting| waiting.parker.unpark());
    }

    /// Wakes the one whose position comes first, to write for all; but nobody who will do so without.
    pub(crate) fn wake_first(&self) {
        let mut list = lock(&self.list);
        let first = list.waiting.iter().find(|(_, waiting)| !waiting.has_alarm).map(|(key, _)| *key);
        let woken = first.and_then(|key| list.waiting.remove(&key));
        drop(list);
        if let Some(waiting) = woken {
            waiting.parker.unpark();
        }
    }

    /// Wakes everybody.
    pub(crate) fn wake_all(&self) {
        self.release(u64::MAX - 1, Duration::ZERO);
    }
}

impl List {
    fn add(&mut self, position: u64, has_alarm: bool) -> Ticket {
        let key = (position, self.next_number);
        self.next_number += 1;
        let parker = Arc::new(Parker::new());
        self.waiting.insert(key, Waiting { parker: Arc::clone(&parker), has_alarm });
        Ticket { key, parker }
    }
}
