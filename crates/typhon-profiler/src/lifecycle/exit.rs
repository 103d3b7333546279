//! A call at the normal end of the process, which the standard library does not offer.
#![allow(unsafe_code)]

/// Has `handler` called when `main` returns or `exit` is called. False if there is no room for it.
pub(super) fn at_exit(handler: extern "C" fn()) -> bool {
    // SAFETY: `atexit` takes any function of this type; this one is a function of the program and lives as long as it.
    unsafe { libc::atexit(handler) == 0 }
}
