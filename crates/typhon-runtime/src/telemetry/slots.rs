//! Slots of words, each a sequence lock: one thread writes, any number read, nobody waits.
//!
//! A slot's version names the tick that it holds, so that one look says whether a tick is there: 2 · (tick + 1) is the
//! tick whole, one more is the slot on its way to the next, 0 is nothing. Words are atomics, hence a read that races
//! with a write is no more than wrong, and the version then says so.
#![cfg_attr(not(loom), allow(unreachable_pub, reason = "the model uses it from outside"))]

use typhon_sync::atomic::{AtomicU64, Ordering, fence};

/// Ticks 0, 1, 2, … in a ring of slots of equal size.
#[derive(Debug)]
pub struct Slots {
    slots: Box<[Slot]>,
}

#[derive(Debug)]
struct Slot {
    version: AtomicU64,
    words: Box<[AtomicU64]>,
}

impl Slots {
    /// `count` empty slots, a power of two, of `words` words each.
    pub fn new(count: usize, words: usize) -> Self {
        debug_assert!(count.is_power_of_two());
        let slot =
            |_| Slot { version: AtomicU64::new(0), words: (0..words).map(|_| AtomicU64::new(0)).collect() };
        Self { slots: (0..count).map(slot).collect() }
    }

    /// Number of slots.
    pub fn count(&self) -> usize {
        self.slots.len()
    }

    fn of(&self, tick: u64) -> &Slot {
        &self.slots[tick as usize & (self.slots.len() - 1)]
    }

    /// Writes a tick over the one that is as many ticks older as there are slots; `fill` stores its words. One thread
    /// at a time.
    #[inline]
    pub fn write(&self, tick: u64, fill: impl FnOnce(&[AtomicU64])) {
        let slot = self.of(tick);
        if !planted(Fault::WriteUnannounced) {
            slot.version.store(slot.version.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
        }
        // Who sees a new word sees the odd version, or a later one.
        fence(unless(Fault::AnnounceLate, Ordering::Release));
        fill(&slot.words);
        slot.version.store(whole(tick), unless(Fault::PublishRelaxed, Ordering::Release));
    }

    /// Reads some words of a tick. False, and `into` is of no use, if the tick is not there or was overwritten meanwhile.
    pub fn read(&self, tick: u64, first: usize, into: &mut [u64]) -> bool {
        let slot = self.of(tick);
        if slot.version.load(unless(Fault::LookRelaxed, Ordering::Acquire)) != whole(tick) {
            return false;
        }
        for (value, word) in into.iter_mut().zip(&slot.words[first..]) {
            *value = word.load(Ordering::Relaxed);
        }
        fence(unless(Fault::LookAgainEarly, Ordering::Acquire));
        slot.version.load(Ordering::Relaxed) == whole(tick) || planted(Fault::LookOnce)
    }
}

/// The version of a slot that holds this tick whole.
fn whole(tick: u64) -> u64 {
    2 * (tick + 1)
}

/// A mistake planted in the protocol, so that the model can show that it would be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The version stays as it is while a slot is written.
    WriteUnannounced,
    /// Words may become visible before the odd version.
    AnnounceLate,
    /// The whole tick is published by a relaxed store.
    PublishRelaxed,
    /// The version is first read by a relaxed load.
    LookRelaxed,
    /// The version may be read again before the words are.
    LookAgainEarly,
    /// The version is not compared again.
    LookOnce,
}

/// Is this fault planted? Always `false`, and no code, outside the model.
#[cfg(not(loom))]
#[inline(always)]
const fn planted(_: Fault) -> bool {
    false
}

#[cfg(loom)]
std::thread_local! {
    /// Loom runs all threads of a model on one thread of the process.
    static PLANTED: std::cell::Cell<Option<Fault>> = const { std::cell::Cell::new(None) };
}

#[cfg(loom)]
fn planted(fault: Fault) -> bool {
    PLANTED.get() == Some(fault)
}

/// Plants a fault, or none, for the models that the calling thread runs.
#[cfg(loom)]
pub fn plant(fault: Option<Fault>) {
    PLANTED.set(fault);
}

/// `ordering`, unless the given fault weakens it in the model.
fn unless(fault: Fault, ordering: Ordering) -> Ordering {
    match ordering {
        _ if !planted(fault) => ordering,
        // A fence has no weaker form; this one orders nothing that matters here.
        Ordering::Release if fault == Fault::AnnounceLate => Ordering::Acquire,
        Ordering::Acquire if fault == Fault::LookAgainEarly => Ordering::Release,
        _ => Ordering::Relaxed,
    }
}
