//! Tickets for those who write, and a window in which nobody does.
//!
//! A ticket is a flag on a line of its thread: taking one shows the flag, fences, and looks at the gate; closing closes the
//! gate, fences, and looks at the flags. One of the two sees the other. So tickets cost no shared write, and closing
//! costs a look at every thread.
#![forbid(unsafe_code)]

use crate::atomic::{AtomicU32, Ordering, fence};
use crate::context::{Stop, WaitContext};
use crate::fault::{Fault, has_model_failed, planted, unless};
use crate::owner;
use crate::slots::{self, NoSlot, Slot, Slots};
use crate::wait::wake_all;
use crate::waiter::AdaptiveWaiter;
use std::marker::PhantomData;
use std::sync::Arc;
use thiserror::Error;

/// What a thread with a ticket shows.
const TICKET: u64 = 1;
/// The gate's word when it is open; otherwise the id of the thread that closed it.
const OPEN: u32 = 0;

/// Why a gate was not passed or closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum GateError {
    /// The wait was given up.
    #[error("the gate was not passed: {0}")]
    Stopped(#[from] Stop),
    /// The calling thread has closed the gate; what it does needs no ticket.
    #[error("the calling thread has closed the gate itself")]
    InsideWindow,
    /// The calling thread has a ticket and would wait for itself.
    #[error("the calling thread holds a ticket; it cannot close the gate")]
    HoldsTicket,
    /// The calling thread cannot be known to the gate.
    #[error("the calling thread is ending, or too many threads use the gate")]
    NoSlot,
}

impl From<NoSlot> for GateError {
    fn from(_: NoSlot) -> Self {
        Self::NoSlot
    }
}

/// Lets any number of threads write, each with a ticket, or nobody but the one that has closed it.
///
/// ```
/// use typhon_sync::{WaitContext, gate::QuiesceGate};
///
/// let gate = QuiesceGate::new();
/// let ticket = gate.enter(&WaitContext::INFINITE)?;
/// let nested = gate.enter(&WaitContext::INFINITE)?;
/// drop((nested, ticket));
/// let window = gate.exclusive(&WaitContext::INFINITE)?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| assert!(gate.enter(&WaitContext::NO_WAIT).is_err()));
/// });
/// # drop(window);
/// # Ok::<(), typhon_sync::gate::GateError>(())
/// ```
#[derive(Debug)]
pub struct QuiesceGate {
    /// [`OPEN`], or who has closed it.
    closed_by: AtomicU32,
    /// Tickets given back while the gate was closed.
    returns: AtomicU32,
    slots: Arc<Slots>,
}

impl QuiesceGate {
    /// An open gate.
    pub fn new() -> Self {
        let (closed_by, returns) = (AtomicU32::new(OPEN), AtomicU32::new(0));
        Self { closed_by, returns, slots: Arc::new(Slots::new(false)) }
    }

    /// A ticket, until it is dropped; nests. Waits while the gate is closed, unless the thread has a ticket already.
    ///
    /// # Errors
    /// [`GateError::Stopped`], [`GateError::InsideWindow`], [`GateError::NoSlot`].
    #[inline]
    pub fn enter(&self, context: &WaitContext<'_>) -> Result<WriteTicket<'_>, GateError> {
        let slot = slots::slot(&self.slots)?;
        if slot.depth() == 0 && !self.show(slot) {
            self.enter_slowly(slot, context)?;
        }
        slot.open_unordered();
        Ok(WriteTicket { gate: self, slot, not_send: PhantomData })
    }

    /// Shows a ticket; true if the gate is open, and then whoever closes it sees the ticket.
    #[inline(always)]
    fn show(&self, slot: &Slot) -> bool {
        if planted(Fault::TicketUnfenced) {
            slot.show_unfenced(TICKET);
        } else {
            slot.show(TICKET);
        }
        self.closed_by.load(Ordering::Acquire) == OPEN
    }

    #[cold]
    fn enter_slowly(&self, slot: &Slot, context: &WaitContext<'_>) -> Result<(), GateError> {
        let mut waiter = AdaptiveWaiter::new();
        loop {
            self.give_back(slot);
            let closed_by = self.closed_by.load(Ordering::Relaxed);
            if closed_by == u32::from(owner::current_id()) {
                return Err(GateError::InsideWindow);
            }
            if closed_by != OPEN {
                if let Some(stop) = context.should_stop() {
                    return Err(stop.into());
                }
                waiter.wait(&self.closed_by, closed_by, context);
            }
            if self.show(slot) {
                return Ok(());
            }
        }
    }

    /// Shows no ticket any more, and tells who waits for that.
    #[inline(always)]
    fn give_back(&self, slot: &Slot) {
        slot.hide_fenced(unless(Fault::TicketRelaxed, Ordering::Release));
        if self.closed_by.load(Ordering::Relaxed) != OPEN && !planted(Fault::TicketSilent) {
            self.returns.fetch_add(1, Ordering::Release);
            wake_all(&self.returns);
        }
    }

    /// Closes the gate and waits until nobody has a ticket; opens it when the window is dropped. One thread at a time: the
    /// next waits for the gate to open.
    ///
    /// # Errors
    /// [`GateError::Stopped`], after which the gate is open; [`GateError::HoldsTicket`], [`GateError::InsideWindow`],
    /// [`GateError::NoSlot`].
    pub fn exclusive(&self, context: &WaitContext<'_>) -> Result<Window<'_>, GateError> {
        if slots::slot(&self.slots)?.depth() > 0 {
            return Err(GateError::HoldsTicket);
        }
        self.close(context)?;
        // From here on dropping it opens the gate.
        let window = Window { gate: self, not_send: PhantomData };
        if !planted(Fault::CloseUnfenced) {
            fence(Ordering::SeqCst);
        }
        let mut waiter = AdaptiveWaiter::new();
        loop {
            let returns = self.returns.load(Ordering::Acquire);
            if self.slots.all_shown().next().is_none() || planted(Fault::CloseEarly) {
                return Ok(window);
            }
            if let Some(stop) = context.should_stop() {
                return Err(stop.into());
            }
            waiter.wait(&self.returns, returns, context);
        }
    }

    fn close(&self, context: &WaitContext<'_>) -> Result<(), GateError> {
        let me = u32::from(owner::current_id());
        let mut waiter = AdaptiveWaiter::new();
        loop {
            match self.closed_by.compare_exchange(OPEN, me, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(closed_by) if closed_by == me => return Err(GateError::InsideWindow),
                Err(closed_by) => {
                    if let Some(stop) = context.should_stop() {
                        return Err(stop.into());
                    }
                    waiter.wait(&self.closed_by, closed_by, context);
                }
            }
        }
    }

    /// Has a thread closed the gate, or does one wait to?
    pub fn is_closed(&self) -> bool {
        self.closed_by.load(Ordering::Relaxed) != OPEN
    }
}

impl Default for QuiesceGate {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for QuiesceGate {
    fn drop(&mut self) {
        self.slots.end();
    }
}

/// The proof that the gate is open to a thread. Stays on its thread.
#[must_use = "the ticket is given back when it is dropped"]
#[derive(Debug)]
pub struct WriteTicket<'g> {
    gate: &'g QuiesceGate,
    slot: &'g Slot,
    not_send: PhantomData<*mut ()>,
}

impl Drop for WriteTicket<'_> {
    #[inline]
    fn drop(&mut self) {
        self.slot.close_unordered();
        if self.slot.depth() == 0 {
            self.gate.give_back(self.slot);
        }
    }
}

/// The proof that nobody has a ticket. Stays on its thread.
#[must_use = "the gate opens when the window is dropped"]
#[derive(Debug)]
pub struct Window<'g> {
    gate: &'g QuiesceGate,
    not_send: PhantomData<*mut ()>,
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        if has_model_failed() {
            return;
        }
        self.gate.closed_by.store(OPEN, unless(Fault::OpenRelaxed, Ordering::Release));
        if !planted(Fault::OpenSilent) {
            wake_all(&self.gate.closed_by);
        }
    }
}
