//! The calling thread's slots: found in two loads, given back when the thread ends.
//!
//! The only unsafe code here is the use of the last slot that was found.
#![allow(unsafe_code)]

use super::slots::{Caller, Slot};
use super::{EpochError, Epochs};
use std::cell::{Cell, RefCell};
use std::ptr::{from_ref, null};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A slot of the calling thread in one manager, which it keeps alive.
struct Claim {
    epochs: Arc<Epochs>,
    slot: *const Slot,
}

/// The manager and the slot that the thread used last.
type Last = (*const Epochs, *const Slot);

impl Claim {
    fn slot(&self) -> &Slot {
        // SAFETY: the slot is in a block of `epochs`, which neither moves nor ends before `epochs`.
        unsafe { &*self.slot }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if cfg!(loom) && std::thread::panicking() {
            // Nothing can be done any more in a model that has failed.
            return;
        }
        // Before the manager can end, and another one come to lie at its address.
        let _ = LAST.try_with(|last| last.set((null(), null())));
        self.slot().free(&self.epochs.slots);
    }
}

#[cfg(not(loom))]
std::thread_local! {
    /// Without a destructor, so that a pin costs no check for one.
    static LAST: Cell<Last> = const { Cell::new((null(), null())) };
    static CLAIMS: RefCell<Vec<Claim>> = const { RefCell::new(Vec::new()) };
}

#[cfg(loom)]
loom::thread_local! {
    static LAST: Cell<Last> = Cell::new((null(), null()));
    static CLAIMS: RefCell<Vec<Claim>> = RefCell::new(Vec::new());
}

/// The calling thread's slot in this manager.
#[inline(always)]
pub(super) fn slot(epochs: &Arc<Epochs>) -> Result<&Slot, EpochError> {
    let (manager, slot) = LAST.with(Cell::get);
    if std::ptr::eq(manager, Arc::as_ptr(epochs)) {
        // SAFETY: a claim of this thread holds this manager, or `LAST` would be empty; so the slot is one of its blocks,
        // which neither move nor end before `epochs`, from which the result borrows.
        return Ok(unsafe { &*slot });
    }
    find_or_claim(epochs)
}

#[cold]
#[inline(never)]
fn find_or_claim(epochs: &Arc<Epochs>) -> Result<&Slot, EpochError> {
    let slot = CLAIMS.try_with(|claims| {
        let known =
            claims.borrow().iter().find(|claim| Arc::ptr_eq(&claim.epochs, epochs)).map(|claim| claim.slot);
        match known {
            Some(slot) => Ok(slot),
            None => claim(epochs, &mut claims.borrow_mut()),
        }
    });
    let slot = slot.map_err(|_| EpochError::ThreadEnds)??;
    LAST.with(|last| last.set((Arc::as_ptr(epochs), slot)));
    // SAFETY: as in `slot`; the claim is in the list now.
    Ok(unsafe { &*slot })
}

fn claim(epochs: &Arc<Epochs>, claims: &mut Vec<Claim>) -> Result<*const Slot, EpochError> {
    claims.retain(|claim| !claim.epochs.is_over.load(Ordering::Relaxed));
    let id = crate::owner::current_id();
    if id == 0 {
        return Err(EpochError::ThreadEnds);
    }
    let slot = from_ref(epochs.slots.claim(Caller { id, os_id: os_id() })?);
    claims.push(Claim { epochs: Arc::clone(epochs), slot });
    Ok(slot)
}

#[cfg(not(loom))]
use typhon_profiler::thread::os_id;

#[cfg(loom)]
fn os_id() -> u32 {
    u32::from(crate::owner::current_id())
}
