//! Threads that wait for positions to become durable, and when the next group is complete.
//!
//! Threads that wait for the same group form a cohort, and sleep on one word: when the group is durable, one call to the
//! system wakes them all. Waking them one by one takes the system longer, and the first that run get in the way of whoever
//! wakes the others.

use crate::sync::{AtomicU32, Fault, Mutex, Ordering, lock, planted};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use typhon_sync::Deadline;
use typhon_sync::wait::{self, WaitEnd};

/// Bit of a cohort's word: its group is durable, it is in no list any more.
const SERVED: u32 = 1;
/// What a call to write adds to a cohort's word.
const CALL: u32 = 2;

/// Waiting threads by cohort.
#[derive(Debug)]
pub(crate) struct Waiters {
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    /// The oldest first.
    cohorts: VecDeque<Cohort>,
    /// Threads that are expected to wait again: those that the last group served, and those that came too late for it.
    crowd: usize,
    /// How long whoever is back first waits for the others at most.
    gather: Duration,
    /// A group is being written. Whoever writes it calls somebody when it is done.
    is_writing: bool,
    /// Words of cohorts that are served and sleep still.
    asleep: Vec<Arc<AtomicU32>>,
}

#[derive(Debug)]
struct Cohort {
    /// Changed with the list locked.
    word: Arc<AtomicU32>,
    waiting: usize,
    /// One of them wakes by itself, soon, and writes then.
    has_alarm: bool,
    /// The least position that somebody waits for, or did.
    lowest: u64,
    /// A group was begun since: whoever comes now is too late for it.
    is_closed: bool,
}

/// A place among the waiters.
#[derive(Debug)]
pub(crate) struct Ticket {
    word: Arc<AtomicU32>,
    /// The word when the place was taken.
    seen: u32,
    /// How long to wait for others.
    gather: Option<Duration>,
}

/// Why a thread does not wait any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// A group is durable, nearly always the one it waited for. Its place is gone.
    Served,
    /// It was called to write next.
    Called,
    /// The deadline has passed, or the time for the others to come.
    Expired,
}

impl Ticket {
    /// Waits until the thread's turn, the deadline, or the end of the time for others to come.
    pub(crate) fn park(&self, deadline: Deadline) -> Turn {
        let deadline = self.gather.map_or(deadline, |gather| Deadline::from_timeout(gather).min(deadline));
        loop {
            let end = wait::wait(&self.word, self.seen, deadline);
            match self.word.load(Ordering::Acquire) {
                word if word & SERVED != 0 => return Turn::Served,
                word if word != self.seen => return Turn::Called,
                _ if end == WaitEnd::Expired => return Turn::Expired,
                _ => {}
            }
        }
    }

    /// Does the thread write when its time has passed?
    pub(crate) fn has_alarm(&self) -> bool {
        self.gather.is_some()
    }
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Self { list: Mutex::new(List::default()) }
    }

    /// Registers the calling thread. Look again at what it waits for before parking.
    pub(crate) fn register(&self, position: u64) -> Ticket {
        lock(&self.list).add(position, None)
    }

    /// Threads that one group served come back at about the same time. A group that leaves without some of them makes
    /// those wait for two syncs; so the last one writes, and until then the first one waits a little. Who comes while a
    /// group is written waits for its end, and then for the others. `None`: nobody else is expected.
    pub(crate) fn arrive(&self, position: u64) -> Option<Ticket> {
        let mut list = lock(&self.list);
        if list.is_writing {
            return Some(list.add(position, None));
        }
        if list.waiting() + 1 >= list.crowd {
            return None;
        }
        let gather = (!list.has_alarm()).then_some(list.gather);
        Some(list.add(position, gather))
    }

    /// Gives a place back, whatever its turn. `true`: the thread may have been called to write, and if it does not,
    /// somebody else must be.
    pub(crate) fn leave(&self, ticket: &Ticket) -> bool {
        let mut list = lock(&self.list);
        let Some(index) = list.cohorts.iter().position(|cohort| Arc::ptr_eq(&cohort.word, &ticket.word))
        else {
            return false;
        };
        let cohort = &mut list.cohorts[index];
        cohort.waiting -= 1;
        cohort.has_alarm &= !ticket.has_alarm();
        if cohort.waiting == 0 {
            list.cohorts.remove(index);
        }
        ticket.has_alarm() || ticket.word.load(Ordering::Relaxed) != ticket.seen
    }

    /// A group is begun: whoever waits from now on belongs to the next one. [`Waiters::release`] ends it.
    pub(crate) fn begin_group(&self) {
        let mut list = lock(&self.list);
        list.is_writing = true;
        if let Some(last) = list.cohorts.back_mut() {
            last.is_closed = true;
        }
    }

    /// An alarm goes off while a group is written that its thread came in time for: `true`, and the thread is to sleep
    /// on. If the group is without its frame, whoever writes calls somebody. Where the thread took a new place instead,
    /// it would be late for every group from then on.
    pub(crate) fn disarm(&self, ticket: &mut Ticket) -> bool {
        let mut list = lock(&self.list);
        let is_writing = list.is_writing;
        let cohort = list.cohorts.iter_mut().find(|cohort| Arc::ptr_eq(&cohort.word, &ticket.word));
        let Some(cohort) = cohort.filter(|cohort| is_writing && cohort.is_closed && ticket.has_alarm())
        else {
            return false;
        };
        cohort.has_alarm = false;
        ticket.gather = None;
        true
    }

    /// Serves everybody who waits for a position up to `durable`. They and the calling thread are expected back within
    /// the time `gather`. Who sleeps is woken by [`Waiters::wake_served`]: after the writer is free, as the first who
    /// are awake take the processor from whoever wakes the others.
    pub(crate) fn release(&self, durable: u64, gather: Duration) {
        let mut list = lock(&self.list);
        let list = &mut *list;
        (list.crowd, list.gather, list.is_writing) = (list.waiting() + 1, gather, false);
        list.cohorts.retain_mut(|cohort| {
            let is_served = cohort.lowest <= durable;
            if is_served && planted(Fault::WakeBeforeMark) {
                wait::wake_all(&cohort.word);
            }
            if is_served {
                cohort.word.fetch_or(SERVED, Ordering::Release);
                list.asleep.push(Arc::clone(&cohort.word));
            }
            !is_served
        });
    }

    /// Wakes whoever is served and sleeps.
    pub(crate) fn wake_served(&self) {
        let asleep = std::mem::take(&mut lock(&self.list).asleep);
        if !planted(Fault::WakeBeforeMark) {
            asleep.iter().for_each(|word| wait::wake_all(word));
        }
    }

    /// Wakes the one who has waited longest, to write for all, unless somebody will without.
    pub(crate) fn call(&self) {
        let list = lock(&self.list);
        let Some(first) = list.cohorts.front().filter(|_| !list.has_alarm()) else { return };
        first.word.fetch_add(CALL, Ordering::Release);
        let word = Arc::clone(&first.word);
        drop(list);
        wait::wake_one(&word);
    }

    /// A step that every other step of the list may come before or after.
    #[cfg(loom)]
    pub(crate) fn look(&self) {
        drop(lock(&self.list));
    }

    /// Threads that came in time for the group that is being written, if they sleep without an alarm.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn in_time(&self) -> usize {
        let list = lock(&self.list);
        let closed = list.cohorts.iter().filter(|cohort| cohort.is_closed && !cohort.has_alarm);
        closed.map(|cohort| cohort.waiting).sum()
    }

    /// Threads that wait.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.list).waiting()
    }

    /// Words on which threads sleep that are served.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn asleep(&self) -> usize {
        lock(&self.list).asleep.len()
    }

    /// Serves and wakes everybody.
    pub(crate) fn wake_all(&self) {
        self.release(u64::MAX, Duration::ZERO);
        self.wake_served();
    }
}

impl List {
    fn waiting(&self) -> usize {
        self.cohorts.iter().map(|cohort| cohort.waiting).sum()
    }

    fn has_alarm(&self) -> bool {
        self.cohorts.iter().any(|cohort| cohort.has_alarm)
    }

    fn add(&mut self, position: u64, gather: Option<Duration>) -> Ticket {
        if self.cohorts.back().is_none_or(|last| last.is_closed) {
            let word = Arc::new(AtomicU32::new(0));
            self.cohorts.push_back(Cohort {
                word,
                waiting: 0,
                has_alarm: false,
                lowest: position,
                is_closed: false,
            });
        }
        let last = self.cohorts.back_mut().expect("there is one");
        last.waiting += 1;
        last.has_alarm |= gather.is_some();
        last.lowest = last.lowest.min(position);
        Ticket { word: Arc::clone(&last.word), seen: last.word.load(Ordering::Relaxed), gather }
    }
}
