//! The calling thread's place in the process's capture.
//!
//! The only unsafe code here is the way out of the thread-local's closure.
#![allow(unsafe_code)]

use crate::capture::producer::{Identity, Producer};
use crate::capture::thread_info::ThreadLabel;
use crate::capture::{Capture, PRODUCER_SLOTS};
use crate::clock::Ticks;
use crate::thread;
use std::sync::OnceLock;

/// Most memory for records that can be asked for: 4 GiB in chunks of 64 KiB.
pub(crate) const MAX_CHUNKS: u32 = 65_536;

/// The process's capture. It has no memory until a session starts.
pub(crate) fn capture() -> &'static Capture {
    static CAPTURE: OnceLock<Capture> = OnceLock::new();
    CAPTURE.get_or_init(|| Capture::new(PRODUCER_SLOTS, MAX_CHUNKS))
}

thread_local! {
    /// Without a destructor, so that a record costs no check for one and can be made at any time.
    static PRODUCER: Producer<'static> = const { Producer::new() };
    /// Gives the slot back when the thread ends.
    static EXIT: Exit = const { Exit };
}

struct Exit;

impl Drop for Exit {
    fn drop(&mut self) {
        PRODUCER.with(Producer::retire);
    }
}

/// The calling thread's producer. The reference cannot leave the thread, since producers are not `Sync`.
#[inline(always)]
pub(crate) fn producer() -> &'static Producer<'static> {
    let producer: *const Producer<'static> = PRODUCER.with(std::ptr::from_ref);
    // SAFETY: a thread-local without a destructor is there until the last instruction of its thread.
    unsafe { &*producer }
}

/// The calling thread, as the claim of a slot needs it.
#[derive(Clone, Copy)]
pub(crate) struct ThisThread;

impl Identity<'static> for ThisThread {
    fn capture(self) -> &'static Capture {
        capture()
    }

    fn label(self) -> Option<ThreadLabel> {
        // The destructor first: without it the slot would never be given back, so that there must be no claim.
        EXIT.try_with(|_| ()).ok()?;
        Some(thread::label())
    }

    fn now_ticks(self) -> u64 {
        Ticks::now().raw()
    }
}
