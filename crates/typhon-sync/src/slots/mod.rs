//! A line of memory per thread, which its thread alone writes and others look through: what it has pinned, or that it is
//! inside. In blocks that grow and never move; claimed at a thread's first use, given back when it ends, and taken over from
//! threads that ended without running their destructors.

mod local;

pub(crate) use local::slot;

use crate::atomic::{AtomicU32, AtomicU64, Mutex, Ordering, lock};
use crate::fault::{Fault, planted};
use crate::trace::emit;
use std::sync::OnceLock;
use typhon_profiler::events::{ConcurrencyEpochSlotClaim, ConcurrencyEpochSlotReclaim};

/// Slots of the first block; each further block is twice as large.
const FIRST_BLOCK: usize = if cfg!(loom) { 2 } else { 64 };
/// More slots than there are thread ids.
const BLOCKS: usize = 10;
/// Slots that there can be.
const MAX_SLOTS: usize = FIRST_BLOCK * ((1 << BLOCKS) - 1);

/// Why a thread has no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoSlot {
    /// All of them, so many, have owners.
    TooManyThreads(usize),
    /// The thread is ending and has given its slots back, or it has no thread id.
    ThreadEnds,
}

/// One thread's line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Slot {
    /// What the thread shows to others, such as the epoch that it has pinned; 0 for nothing.
    shown: AtomicU64,
    /// Thread id of the owner, 0 when there is none.
    owner: AtomicU32,
    /// The owner's id at the operating system.
    os_id: AtomicU32,
    /// Scopes that end in order. This and what follows is written and read by the owner alone.
    ordered: AtomicU32,
    /// Scopes that end in any order.
    unordered: AtomicU32,
    /// Outermost exits since the owner last advanced the epoch.
    exits: AtomicU32,
    index: u16,
}

impl Slot {
    fn new(index: usize) -> Self {
        Self {
            shown: AtomicU64::new(0),
            owner: AtomicU32::new(0),
            os_id: AtomicU32::new(0),
            ordered: AtomicU32::new(0),
            unordered: AtomicU32::new(0),
            exits: AtomicU32::new(0),
            index: index as u16,
        }
    }

    /// What the calling thread, its owner, shows.
    #[inline(always)]
    pub(crate) fn shown(&self) -> u64 {
        self.shown.load(Ordering::Relaxed)
    }

    /// Shows a value to all who look through the slots from now on: what the thread reads afterwards, it reads after the
    /// value could be seen.
    #[inline(always)]
    pub(crate) fn show(&self, value: u64) {
        if planted(Fault::PinUnfenced) {
            self.shown.store(value, Ordering::Release);
            return;
        }
        // On x86-64 an exchange is a full fence and takes half the time of the fence instruction.
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        {
            self.shown.swap(value, Ordering::SeqCst);
            std::sync::atomic::compiler_fence(Ordering::SeqCst);
        }
        #[cfg(not(all(target_arch = "x86_64", not(loom))))]
        {
            // Release: what was read under an earlier value was read before.
            self.shown.store(value, Ordering::Release);
            crate::atomic::fence(Ordering::SeqCst);
        }
    }

    /// As [`Slot::show`] without the fence: for faults.
    #[inline(always)]
    pub(crate) fn show_unfenced(&self, value: u64) {
        self.shown.store(value, Ordering::Release);
    }

    /// As [`Slot::hide`]; what the thread reads afterwards, it reads after that could be seen.
    #[inline(always)]
    pub(crate) fn hide_fenced(&self, order: Ordering) {
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        {
            let _ = order;
            self.shown.swap(0, Ordering::SeqCst);
            std::sync::atomic::compiler_fence(Ordering::SeqCst);
        }
        #[cfg(not(all(target_arch = "x86_64", not(loom))))]
        {
            self.shown.store(0, order);
            crate::atomic::fence(Ordering::SeqCst);
        }
    }

    /// Shows nothing any more. Release, as a rule: what the thread did, it did before.
    #[inline(always)]
    pub(crate) fn hide(&self, order: Ordering) {
        self.shown.store(0, order);
    }

    /// Scopes that the thread has open.
    #[inline(always)]
    pub(crate) fn depth(&self) -> u32 {
        self.ordered() + self.unordered.load(Ordering::Relaxed)
    }

    /// Scopes that end in order.
    #[inline(always)]
    pub(crate) fn ordered(&self) -> u32 {
        self.ordered.load(Ordering::Relaxed)
    }

    /// One more scope that ends in order; returns how many there are.
    #[inline(always)]
    pub(crate) fn open_ordered(&self) -> u32 {
        add(&self.ordered, 1)
    }

    #[inline(always)]
    pub(crate) fn close_ordered(&self) {
        add(&self.ordered, -1);
    }

    #[inline(always)]
    pub(crate) fn open_unordered(&self) {
        add(&self.unordered, 1);
    }

    #[inline(always)]
    pub(crate) fn close_unordered(&self) {
        add(&self.unordered, -1);
    }

    /// One more outermost exit; returns how many there were since the restart.
    #[inline(always)]
    pub(crate) fn count_exit(&self) -> u32 {
        add(&self.exits, 1)
    }

    #[inline(always)]
    pub(crate) fn restart_exits(&self) {
        self.exits.store(0, Ordering::Relaxed);
    }

    /// As it was before its first owner, its owner apart.
    fn clear(&self) {
        self.ordered.store(0, Ordering::Relaxed);
        self.unordered.store(0, Ordering::Relaxed);
        self.exits.store(0, Ordering::Relaxed);
        self.shown.store(0, Ordering::Release);
    }

    fn set_owner(&self, caller: Caller) {
        self.os_id.store(caller.os_id, Ordering::Relaxed);
        self.owner.store(u32::from(caller.id), Ordering::Release);
    }

    /// Gives the slot back, unless a scope is open: a thread that ends while a guard of it lives (kept by a destructor that
    /// runs later) keeps its slot, which is taken over once the thread is gone.
    pub(crate) fn free(&self, slots: &Slots) {
        if self.depth() > 0 {
            return;
        }
        slots.in_use.fetch_sub(1, Ordering::Relaxed);
        self.owner.store(0, Ordering::Release);
    }
}

/// A counter that one thread writes: no read-modify-write is needed.
#[inline(always)]
fn add(counter: &AtomicU32, change: i32) -> u32 {
    let value = counter.load(Ordering::Relaxed).wrapping_add_signed(change);
    counter.store(value, Ordering::Relaxed);
    value
}

/// Who wants a slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    /// Thread id, not 0.
    pub(crate) id: u16,
    /// The id at the operating system.
    pub(crate) os_id: u32,
}

/// All slots of one use.
#[derive(Debug)]
pub(crate) struct Slots {
    blocks: [OnceLock<Box<[Slot]>>; BLOCKS],
    /// Slots with a lower index may have had an owner. Raised before the slot shows anything.
    used: AtomicU32,
    in_use: AtomicU32,
    /// Held to claim or take over a slot.
    claiming: Mutex<()>,
    /// The process that the ids at the operating system belong to: a fork has others.
    process: u32,
    /// Claims are recorded as those of epoch slots.
    is_recorded: bool,
    /// Nobody uses them any more; threads let go of them when they claim others.
    is_over: std::sync::atomic::AtomicBool,
}

impl Slots {
    /// No slots yet. `is_recorded` if they are slots of epochs (kinds 110 and 111).
    pub(crate) fn new(is_recorded: bool) -> Self {
        Self {
            blocks: [const { OnceLock::new() }; BLOCKS],
            used: AtomicU32::new(0),
            in_use: AtomicU32::new(0),
            claiming: Mutex::new(()),
            process: std::process::id(),
            is_recorded,
            is_over: false.into(),
        }
    }

    /// Says that nobody uses them any more.
    pub(crate) fn end(&self) {
        self.is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    pub(crate) fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed) as usize
    }

    /// What threads show at this moment.
    pub(crate) fn all_shown(&self) -> impl Iterator<Item = u64> {
        self.slots().map(|slot| slot.shown.load(Ordering::Acquire)).filter(|value| *value != 0)
    }

    /// The slots that may have had an owner.
    fn slots(&self) -> impl Iterator<Item = &Slot> {
        let used = self.used.load(Ordering::Acquire) as usize;
        self.blocks.iter().map_while(OnceLock::get).flatten().take(used)
    }

    /// A slot for the calling thread: a free one, one of a dead thread, or a new one.
    pub(crate) fn claim(&self, caller: Caller) -> Result<&Slot, NoSlot> {
        let _claiming = lock(&self.claiming);
        let free = self.slots().find(|slot| slot.owner.load(Ordering::Acquire) == 0);
        let slot = match free.or_else(|| self.take_over(caller)) {
            Some(slot) => slot,
            None => self.new_slot()?,
        };
        slot.set_owner(caller);
        let active = self.in_use.fetch_add(1, Ordering::Relaxed) + 1;
        if self.is_recorded {
            emit(|| ConcurrencyEpochSlotClaim {
                slot_index: slot.index,
                thread_id: caller.id,
                active_count: active.min(u32::from(u16::MAX)) as u16,
            });
        }
        Ok(slot)
    }

    fn new_slot(&self) -> Result<&Slot, NoSlot> {
        let index = self.used.load(Ordering::Relaxed) as usize;
        if index == MAX_SLOTS {
            return Err(NoSlot::TooManyThreads(MAX_SLOTS));
        }
        // Block b begins at FIRST_BLOCK * (2^b - 1).
        let block = (index / FIRST_BLOCK + 1).ilog2() as usize;
        let start = FIRST_BLOCK * ((1 << block) - 1);
        let size = FIRST_BLOCK << block;
        let slots = self.blocks[block].get_or_init(|| (start..start + size).map(Slot::new).collect());
        self.used.store(index as u32 + 1, Ordering::Release);
        Ok(&slots[index - start])
    }

    /// The slot of a thread that has ended without giving it back.
    fn take_over(&self, caller: Caller) -> Option<&Slot> {
        let slot = self.dead().next()?;
        self.bury(slot, caller.id);
        Some(slot)
    }

    /// Gives back the slots of threads that have ended without doing so.
    pub(crate) fn reclaim_dead(&self) -> usize {
        let _claiming = lock(&self.claiming);
        self.dead().map(|slot| self.bury(slot, 0)).count()
    }

    /// In a fork the ids are those of threads of another process: nothing is known then.
    fn dead(&self) -> impl Iterator<Item = &Slot> {
        let is_known = std::process::id() == self.process;
        self.slots().filter(move |slot| {
            is_known && slot.owner.load(Ordering::Acquire) != 0 && is_gone(slot.os_id.load(Ordering::Relaxed))
        })
    }

    fn bury(&self, slot: &Slot, new_owner: u16) {
        let old_owner = slot.owner.load(Ordering::Relaxed) as u16;
        slot.clear();
        slot.owner.store(0, Ordering::Release);
        self.in_use.fetch_sub(1, Ordering::Relaxed);
        if self.is_recorded {
            emit(|| ConcurrencyEpochSlotReclaim { slot_index: slot.index, old_owner, new_owner });
        }
    }
}

#[cfg(not(loom))]
use typhon_profiler::thread::is_gone;

/// Nobody is lost in a model.
#[cfg(loom)]
fn is_gone(_: u32) -> bool {
    false
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn b16_a_slot_is_a_line_and_stays_where_it_is() {
        assert_eq!((size_of::<Slot>(), align_of::<Slot>()), (64, 64));
        let slots = Slots::new(true);
        let caller = Caller { id: 1, os_id: typhon_profiler::thread::os_id() };
        let claimed: Vec<&Slot> = (0..1_000).map(|_| slots.claim(caller).ok()).map(Option::unwrap).collect();
        assert_eq!(slots.in_use(), 1_000);
        let indices: Vec<usize> = claimed.iter().map(|slot| usize::from(slot.index)).collect();
        assert_eq!(indices, (0..1_000).collect::<Vec<_>>());
        assert!(claimed.iter().zip(slots.slots()).all(|(claimed, found)| std::ptr::eq(*claimed, found)));
        claimed[700].free(&slots);
        assert!(std::ptr::eq(slots.claim(caller).unwrap(), claimed[700]));
    }

    #[test]
    fn b16_more_threads_than_slots_is_an_error() {
        let slots = Slots::new(true);
        slots.used.store(MAX_SLOTS as u32, Ordering::Relaxed);
        let caller = Caller { id: 1, os_id: 1 };
        assert_eq!(slots.new_slot().err(), Some(NoSlot::TooManyThreads(65_472)));
        assert!(slots.claim(caller).is_err());
    }

    #[test]
    fn b16_the_slot_and_the_pin_of_a_dead_thread_are_taken_over() {
        let slots = Slots::new(true);
        // No thread has this id: it is a valid one, and above the largest that is given out.
        let dead = slots.claim(Caller { id: 7, os_id: i32::MAX.unsigned_abs() }).unwrap();
        dead.open_ordered();
        dead.show(3);
        assert_eq!(slots.all_shown().collect::<Vec<_>>(), [3]);
        let caller = Caller { id: 8, os_id: typhon_profiler::thread::os_id() };
        let taken = slots.claim(caller).unwrap();
        let expected = if cfg!(target_os = "linux") { 0 } else { 1 };
        assert_eq!(
            (taken.index, taken.depth(), slots.all_shown().count()),
            (expected, 0, usize::from(expected))
        );
        assert_eq!(slots.reclaim_dead(), 0);
    }
}
