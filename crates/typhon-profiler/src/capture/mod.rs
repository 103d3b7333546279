//! The capture protocol: slots, chunks and the consumer's side of them.
//!
//! ```text
//!  thread ── Producer ── Owner ──▶ Slot: chunk ─next─▶ chunk ─next─▶ chunk ──▶ SlotReader ── consumer
//!                                         ▲                                       │
//!                                         └────────── spare cell, Pool ◀──────────┘
//! ```
//!
//! Nothing here knows the real clock, the thread-locals or the exporters, so that `tests/loom_*.rs` can check the
//! protocol itself, with faults planted to show that the models would find them.

pub(crate) mod chunk;
mod exclusive;
mod open_spans;
pub(crate) mod pool;
pub(crate) mod producer;
pub(crate) mod slot;
pub(crate) mod thread_info;

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use pool::Pool;
use slot::{Owner, Slot};
use thread_info::ThreadLabel;

/// Threads that can own a slot at the same time. 0xFF means "no slot" in CPU samples.
pub(crate) const PRODUCER_SLOTS: usize = 254;
/// The slot of the consumer's own records.
pub(crate) const CONSUMER_SLOT: u8 = 254;

/// Everything that producers and the consumer share.
pub(crate) struct Capture {
    slots: Box<[Slot]>,
    pool: Pool,
    /// Slots with a lower index may have had an owner. Raised after a claim, before the slot is Active.
    slots_used: AtomicU32,
    /// Records lost because their thread had no slot, had given it up, or was inside another record.
    no_slot_drops: AtomicU64,
    /// Changes whenever a slot or chunk became free; never 0.
    freed: AtomicU32,
}

impl Capture {
    /// A capture without memory; see [`Pool::set_limit`].
    pub(crate) fn new(slots: usize, max_chunks: u32) -> Self {
        assert!(slots <= PRODUCER_SLOTS);
        Self {
            slots: (0..slots).map(|index| Slot::new(index as u8)).collect(),
            pool: Pool::new(max_chunks),
            slots_used: AtomicU32::new(0),
            no_slot_drops: AtomicU64::new(0),
            freed: AtomicU32::new(1),
        }
    }

    /// The chunks.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The slots that may have had an owner.
    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots[..self.slots_used.load(Ordering::Acquire) as usize]
    }

    /// All slots, used or not.
    pub(crate) fn all_slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Claims the lowest free slot for a thread. `None` without a free slot or without memory for its first record.
    fn claim(&self, label: ThreadLabel, ticks: u64) -> Option<Owner<'_>> {
        let (index, slot) = self.slots.iter().enumerate().find(|(_, slot)| slot.begin_claim())?;
        self.slots_used.fetch_max(index as u32 + 1, Ordering::AcqRel);
        Owner::complete_claim(slot, &self.pool, index as u8, label, ticks)
    }

    /// See the field.
    pub(crate) fn freed(&self) -> u32 {
        self.freed.load(Ordering::Relaxed)
    }

    /// Lets threads without a slot try again.
    pub(crate) fn note_freed(&self) {
        let next = self.freed.load(Ordering::Relaxed).wrapping_add(1);
        self.freed.store(next.max(1), Ordering::Release);
    }

    /// Counts a record whose thread had no slot to write it to.
    pub(crate) fn count_no_slot(&self) {
        self.no_slot_drops.fetch_add(1, Ordering::Relaxed);
    }

    /// Records lost for want of a slot, since the process started.
    pub(crate) fn no_slot_drops(&self) -> u64 {
        self.no_slot_drops.load(Ordering::Relaxed)
    }
}
