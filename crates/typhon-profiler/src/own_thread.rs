//! Threads of the profiler's own.
//!
//! The only unsafe code here keeps signals from them.
#![allow(unsafe_code)]

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread of the profiler's own, named as far as threads can be.
///
/// It takes no signals. A program may block those that it waits for itself (`sigwait`, `signalfd`) in all threads that
/// it knows of, and would lose them to one that it does not know of.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    // Names of threads end at a zero byte, and must not have one.
    let thread = Builder::new().name(name.replace('\0', "?"));
    #[cfg(unix)]
    let _inherited = unix::Blocked::new();
    thread.spawn(work)
}

#[cfg(unix)]
mod unix {
    use std::ffi::c_int;
    use std::mem::MaybeUninit;

    /// A thread's own faults: their handlers write the last words of a program.
    const FAULTS: [c_int; 7] =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS, libc::SIGABRT];

    /// The calling thread takes no signals, as those that it starts meanwhile, until this is dropped.
    pub(super) struct Blocked {
        /// What was blocked before; `None` if nothing could be changed.
        before: Option<libc::sigset_t>,
    }

    impl Blocked {
        pub(super) fn new() -> Self {
            let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
            // SAFETY: `sigfillset` initialises the set before it is used, and a call that succeeds has written the other.
            unsafe {
                libc::sigfillset(all.as_mut_ptr());
                for fault in FAULTS {
                    libc::sigdelset(all.as_mut_ptr(), fault);
                }
                let changed =
                    libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) == 0;
                Self { before: changed.then(|| before.assume_init()) }
            }
        }
    }

    impl Drop for Blocked {
        fn drop(&mut self) {
            if let Some(before) = &self.before {
                // SAFETY: the set is one that the system gave.
                unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
            }
        }
    }
}
