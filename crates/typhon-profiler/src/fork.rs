//! A forked child must not record: its slots and its files are the parent's.
//!
//! The only unsafe code here is the registration of the handler.
#![allow(unsafe_code)]

use crate::say::say;
use std::sync::atomic::{AtomicBool, Ordering};

static CHILD: AtomicBool = AtomicBool::new(false);

/// Is this process a fork of one that had started the profiler? Asked before any lock: another thread of the parent
/// may have held it.
pub(crate) fn is_child() -> bool {
    CHILD.load(Ordering::Relaxed)
}

/// Makes later forks of this process silent.
pub(crate) fn watch() {
    #[cfg(unix)]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        unsafe extern "C" {
            fn pthread_atfork(
                prepare: Option<unsafe extern "C" fn()>,
                parent: Option<unsafe extern "C" fn()>,
                child: Option<unsafe extern "C" fn()>,
            ) -> std::ffi::c_int;
        }
        ONCE.call_once(|| {
            // SAFETY: the declaration is that of POSIX; the handler only stores to atomics and this thread's state.
            let failed = unsafe { pthread_atfork(None, None, Some(in_child)) } != 0;
            if failed {
                say("a fork of this process may disturb its trace: no memory for a handler");
            }
        });
    }
}

/// Runs in the child before `fork` returns; nothing here locks or allocates.
unsafe extern "C" fn in_child() {
    CHILD.store(true, Ordering::Relaxed);
    crate::mask::GATE.mask.store(crate::gates::KindMask::EMPTY);
    crate::local::producer().abandon();
}
