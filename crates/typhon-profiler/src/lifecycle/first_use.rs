//! The first record of a process starts the profiler, if it is configured.
//!
//! Until then every kind counts as recorded, so that a call site needs no test of its own for "not looked yet": a kind
//! that is off still costs one load and one test.
#![forbid(unsafe_code)]

use crate::mask::GATE;
use crate::{session, thread};
use std::sync::atomic::{AtomicBool, Ordering};

/// Somebody looks at the configuration, or did.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Starts the profiler if that is configured, in the one call that comes first. Is the kind recorded?
///
/// Never waits for another thread that is doing this: what comes meanwhile is from before the session.
#[cold]
#[inline(never)]
pub(crate) fn begin(kind: u8) -> bool {
    if !BEGUN.swap(true, Ordering::AcqRel) {
        session::clear_initial_mask();
        thread::set_initial_main();
        super::init();
    }
    GATE.is_decided() && GATE.mask.contains(kind)
}

/// A session is started some other way; records no longer do it.
pub(crate) fn is_not_awaited() {
    if !BEGUN.swap(true, Ordering::AcqRel) {
        session::clear_initial_mask();
    }
    GATE.is_decided.store(1, Ordering::Release);
}
