//! Epochs: what a thread may still look at is not used again.
//!
//! A thread pins the epoch before it looks at shared memory without a lock, and unpins it afterwards. Whoever unlinks
//! something notes the epoch ([`EpochManager::retire_epoch`]) and uses the memory again once every pin is of a later one:
//! `min_active_epoch() > noted`. [`RetireList`] keeps such things in order.
//!
//! **The protocol.** Pin: load the global epoch, store it in the thread's slot, fence, load the global epoch again; if it
//! has moved, once more. Scan: load the global epoch, fence, take the minimum over the slots. A pin that a scan does not
//! see was fenced after it, and so holds an epoch that is not below what the scan began with. Hence
//!
//! - **min_active_epoch() never passes a pin**, neither one that exists nor one that comes, and never goes back;
//! - who unlinks, fences and then loads the epoch gets one that is not below that of any thread that saw the link.
//!
//! The epoch advances with every 32nd outermost exit of a thread, so that threads do not all write one line all the time;
//! who waits for memory advances it himself ([`EpochManager::advance`]).
//!
//! Slots lie in blocks that grow and never move. A thread claims a slot with its first pin and gives it back when it
//! ends; that of a thread that ended without running its destructors is taken over.

mod error;
mod retired;

pub use error::EpochError;
pub use retired::RetireList;

use crate::atomic::{AtomicU64, Ordering, fence};
use crate::fault::{Fault, planted, unless};
use crate::slots::{self, Slot, Slots};
use crate::trace::emit;

use std::marker::PhantomData;
use std::sync::Arc;
use typhon_profiler::events::{
    ConcurrencyEpochAdvance, ConcurrencyEpochRefresh, ConcurrencyEpochScopeEnter, ConcurrencyEpochScopeExit,
};

/// Outermost exits of a thread after which it advances the epoch.
const EXITS_PER_ADVANCE: u32 = if cfg!(loom) { 1 } else { 32 };

/// The epoch of one set of things that are shared without locks, and who has pinned it. See the [module](self).
///
/// ```
/// use typhon_sync::epoch::EpochManager;
///
/// let epochs = EpochManager::new();
/// let pin = epochs.pin()?;
/// let retired = epochs.retire_epoch();
/// epochs.advance();
/// assert!(epochs.min_active_epoch() <= retired, "the pin may have seen it");
/// drop(pin);
/// assert!(epochs.min_active_epoch() > retired, "nobody can look at it any more");
/// # Ok::<(), typhon_sync::epoch::EpochError>(())
/// ```
#[derive(Debug)]
pub struct EpochManager {
    global: Global,
    /// Each shows the epoch that its thread has pinned.
    slots: Arc<Slots>,
}

/// On a line of its own: every pin reads it.
#[derive(Debug)]
#[repr(align(64))]
struct Global(AtomicU64);

impl EpochManager {
    /// A manager at epoch 1.
    pub fn new() -> Self {
        Self { global: Global(AtomicU64::new(1)), slots: Arc::new(Slots::new(true)) }
    }

    /// Pins the current epoch for the calling thread until the guard is dropped. Nests: only the outermost pin moves
    /// anything. Guards end in the opposite order of their making; see [`EpochGuard::exit`].
    ///
    /// # Errors
    /// [`EpochError::TooManyThreads`]; [`EpochError::ThreadEnds`].
    #[inline]
    pub fn pin(&self) -> Result<EpochGuard<'_>, EpochError> {
        let slot = self.enter()?;
        Ok(EpochGuard { manager: self, slot, place: slot.open_ordered(), not_send: PhantomData })
    }

    /// As [`EpochManager::pin`], for scopes that end in any order, such as transactions.
    ///
    /// # Errors
    /// As [`EpochManager::pin`].
    #[inline]
    pub fn pin_unordered(&self) -> Result<UnorderedEpochGuard<'_>, EpochError> {
        let slot = self.enter()?;
        slot.open_unordered();
        Ok(UnorderedEpochGuard { manager: self, slot, not_send: PhantomData })
    }

    /// The current epoch, from 1.
    pub fn current_epoch(&self) -> u64 {
        self.global.0.load(Ordering::Acquire)
    }

    /// The oldest epoch that is pinned, or the current one when none is. No thread can see what was retired in an
    /// earlier one. Never goes back. Costs a fence and a look at every slot in use.
    pub fn min_active_epoch(&self) -> u64 {
        let current = self.current_epoch();
        if !planted(Fault::ScanUnfenced) {
            fence(Ordering::SeqCst);
        }
        self.slots.all_shown().fold(current, u64::min)
    }

    /// The epoch in which what the caller has just unlinked retires: it can be used again once
    /// [`EpochManager::min_active_epoch`] is above it.
    pub fn retire_epoch(&self) -> u64 {
        if !planted(Fault::RetireUnfenced) {
            fence(Ordering::SeqCst);
        }
        self.current_epoch()
    }

    /// Advances the epoch, and returns the new one: for who waits for memory and cannot wait for exits.
    pub fn advance(&self) -> u64 {
        let epoch = self.global.0.fetch_add(1, Ordering::AcqRel) + 1;
        emit(|| ConcurrencyEpochAdvance { new_epoch: epoch as u32 });
        epoch
    }

    /// Number of threads that have a slot.
    pub fn threads(&self) -> usize {
        self.slots.in_use()
    }

    /// Gives back the slots, and ends the pins, of threads that have ended without running their destructors; returns
    /// how many. For who finds that the oldest pin does not move. Threads that want a slot do so themselves before new
    /// slots are made.
    pub fn reclaim_dead_slots(&self) -> usize {
        self.slots.reclaim_dead()
    }

    #[inline(always)]
    fn enter(&self) -> Result<&Slot, EpochError> {
        let slot = slots::slot(&self.slots)?;
        let depth = slot.depth();
        if depth == 0 {
            self.pin_slot(slot);
        }
        emit(|| ConcurrencyEpochScopeEnter {
            current_epoch: slot.shown() as u32,
            depth_before: depth.min(255) as u8,
            is_dormant_to_active: u8::from(depth == 0),
        });
        Ok(slot)
    }

    /// Until the epoch has not moved while the pin became visible.
    #[inline(always)]
    fn pin_slot(&self, slot: &Slot) {
        let mut epoch = self.global.0.load(Ordering::Relaxed);
        loop {
            slot.show(epoch);
            let now = self.global.0.load(Ordering::Relaxed);
            if now == epoch || planted(Fault::PinStale) {
                return;
            }
            epoch = now;
        }
    }

    #[inline(always)]
    fn exit(&self, slot: &Slot) {
        let is_outermost = slot.depth() == 0;
        if is_outermost {
            slot.hide(unless(Fault::UnpinRelaxed, Ordering::Release));
            if slot.count_exit() >= EXITS_PER_ADVANCE {
                slot.restart_exits();
                self.advance();
            }
        }
        emit(|| ConcurrencyEpochScopeExit {
            new_epoch: self.current_epoch() as u32,
            is_outermost: u8::from(is_outermost),
        });
    }
}

impl Default for EpochManager {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for EpochManager {
    fn drop(&mut self) {
        self.slots.end();
    }
}

/// A pin of an epoch. Stays on its thread.
///
/// ```compile_fail,E0277
/// let epochs = typhon_sync::epoch::EpochManager::new();
/// let pin = epochs.pin().unwrap();
/// std::thread::scope(|scope| { scope.spawn(move || drop(pin)); });
/// ```
#[must_use = "the pin ends when the guard is dropped"]
#[derive(Debug)]
pub struct EpochGuard<'m> {
    manager: &'m EpochManager,
    slot: &'m Slot,
    /// Ordered pins of the thread when this one was made, itself included.
    place: u32,
    not_send: PhantomData<*mut ()>,
}

impl EpochGuard<'_> {
    /// The epoch that the thread has pinned.
    pub fn epoch(&self) -> u64 {
        self.slot.shown()
    }

    /// Moves the thread's pin to the current epoch, and returns it; there is no moment without a pin. For long work, so
    /// that it does not hold up all memory that retires meanwhile. What was read under the guard before must not be
    /// looked at any more; borrowing from the guard makes the compiler see to that.
    ///
    /// # Errors
    /// [`EpochError::Nested`] if the thread has other pins: they may have been made for what was read before.
    pub fn refresh(&mut self) -> Result<u64, EpochError> {
        if self.slot.depth() != 1 {
            return Err(EpochError::Nested);
        }
        let old_epoch = self.epoch();
        self.manager.pin_slot(self.slot);
        let new_epoch = self.epoch();
        emit(|| ConcurrencyEpochRefresh { old_epoch: old_epoch as u32, new_epoch: new_epoch as u32 });
        Ok(new_epoch)
    }

    /// Ends the pin, and says whether it was its turn. Dropping the guard ends it without a word.
    ///
    /// # Errors
    /// [`EpochError::WrongOrder`] if a guard that was made later is still there. The pin has ended all the same, and the
    /// thread stays pinned by the other.
    pub fn exit(self) -> Result<(), EpochError> {
        if self.slot.ordered() == self.place { Ok(()) } else { Err(EpochError::WrongOrder) }
    }
}

impl Drop for EpochGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.slot.close_ordered();
        self.manager.exit(self.slot);
    }
}

/// A pin of an epoch that may end in any order with others. Stays on its thread.
#[must_use = "the pin ends when the guard is dropped"]
#[derive(Debug)]
pub struct UnorderedEpochGuard<'m> {
    manager: &'m EpochManager,
    slot: &'m Slot,
    not_send: PhantomData<*mut ()>,
}

impl UnorderedEpochGuard<'_> {
    /// The epoch that the thread has pinned.
    pub fn epoch(&self) -> u64 {
        self.slot.shown()
    }
}

impl Drop for UnorderedEpochGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.slot.close_unordered();
        self.manager.exit(self.slot);
    }
}
