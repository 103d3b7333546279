//! The calling thread's slots: found in two loads, given back when the thread ends.
//!
//! The only unsafe code here is the use of the last slot that was found.
#![allow(unsafe_code)]

use super::{Caller, NoSlot, Slot, Slots};
use crate::fault::has_model_failed;
use std::cell::{Cell, RefCell};
use std::ptr::{from_ref, null};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A slot of the calling thread among those of one use, which it keeps alive.
struct Claim {
    slots: Arc<Slots>,
    slot: *const Slot,
}

/// The slots and the one of them that the thread used last.
type Last = (*const Slots, *const Slot);

impl Claim {
    fn slot(&self) -> &Slot {
        // SAFETY: the slot is in a block of `slots`, which neither moves nor ends before `slots`.
        unsafe { &*self.slot }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if has_model_failed() {
            return;
        }
        // Before the slots can end, and others come to lie at their address.
        let _ = LAST.try_with(|last| last.set((null(), null())));
        self.slot().free(&self.slots);
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

/// The calling thread's slot among these.
#[inline(always)]
pub(crate) fn slot(slots: &Arc<Slots>) -> Result<&Slot, NoSlot> {
    let (all, slot) = LAST.with(Cell::get);
    if std::ptr::eq(all, Arc::as_ptr(slots)) {
        // SAFETY: a claim of this thread holds these slots, or `LAST` would be empty; so the slot is in one of their blocks,
        // which neither move nor end before `slots`, from which the result borrows.
        return Ok(unsafe { &*slot });
    }
    find_or_claim(slots)
}

#[cold]
#[inline(never)]
fn find_or_claim(slots: &Arc<Slots>) -> Result<&Slot, NoSlot> {
    let slot = CLAIMS.try_with(|claims| {
        let known =
            claims.borrow().iter().find(|claim| Arc::ptr_eq(&claim.slots, slots)).map(|claim| claim.slot);
        match known {
            Some(slot) => Ok(slot),
            None => claim(slots, &mut claims.borrow_mut()),
        }
    });
    let slot = slot.map_err(|_| NoSlot::ThreadEnds)??;
    LAST.with(|last| last.set((Arc::as_ptr(slots), slot)));
    // SAFETY: as in `slot`; the claim is in the list now.
    Ok(unsafe { &*slot })
}

fn claim(slots: &Arc<Slots>, claims: &mut Vec<Claim>) -> Result<*const Slot, NoSlot> {
    claims.retain(|claim| !claim.slots.is_over.load(Ordering::Relaxed));
    let id = crate::owner::current_id();
    if id == 0 {
        return Err(NoSlot::ThreadEnds);
    }
    let slot = from_ref(slots.claim(Caller { id, os_id: os_id() })?);
    claims.push(Claim { slots: Arc::clone(slots), slot });
    Ok(slot)
}

#[cfg(not(loom))]
use typhon_profiler::thread::os_id;

#[cfg(loom)]
fn os_id() -> u32 {
    u32::from(crate::owner::current_id())
}
