//! Termination signals: the recording is finished before the process ends, with the exit status that it would have had.
//!
//! A handler is installed only for signals whose default action is in force. Should the program install its own later,
//! which typically calls the one before it, the signal is the program's business, and only what was recorded so far is
//! handed to the file.
//!
//! Nothing happens inside the handler but one write to a pipe; a thread reads the other end.
#![allow(unsafe_code)]

use super::HOOK_BUDGET;
use crate::{own_thread, session};
use std::ffi::c_int;
use std::io::{self, PipeReader, Read};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, IntoRawFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

const SIGNALS: [c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// The end of the pipe that handlers write to; never closed once it is open.
static WRITE_END: AtomicI32 = AtomicI32::new(-1);
/// The process whose pipe it is. A forked child inherits the handler and must not speak for its parent.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Watches the termination signals from now on. Called once per process.
pub(super) fn watch() -> io::Result<()> {
    let (read_end, write_end) = io::pipe()?;
    WRITE_END.store(write_end.into_raw_fd(), Ordering::Relaxed);
    OWNER.store(std::process::id(), Ordering::Release);
    own_thread::spawn("Typhon.Signals", move || wait(read_end))?;
    SIGNALS
        .iter()
        .filter(|signal| has_default_action(**signal))
        .try_for_each(|signal| set(*signal, on_signal))
}

/// Handles signals until the process ends.
fn wait(mut read_end: PipeReader) {
    let mut signal = [0];
    while read_end.read_exact(&mut signal).is_ok() {
        let signal = c_int::from(signal[0]);
        // `SA_RESETHAND` put the default back, unless a handler of the program's own called ours.
        if has_default_action(signal) {
            session::stop_within(HOOK_BUDGET);
            end_process(signal);
        }
        session::flush(HOOK_BUDGET);
    }
}

extern "C" fn on_signal(signal: c_int) {
    let write_end: RawFd = WRITE_END.load(Ordering::Relaxed);
    if rustix::process::getpid().as_raw_nonzero().get().unsigned_abs() != OWNER.load(Ordering::Relaxed) {
        end_child(signal);
    } else {
        // SAFETY: the descriptor is open for the rest of the process.
        let write_end = unsafe { BorrowedFd::borrow_raw(write_end) };
        // If the pipe is full, the thread has more than enough signals to act on.
        let _ = rustix::io::write(write_end, &[signal as u8]);
    }
}

/// In a forked child, with `signal` blocked because its handler runs: the child ends when the handler returns, unless
/// the program has a handler of its own.
fn end_child(signal: c_int) {
    if has_default_action(signal) {
        // SAFETY: no memory is involved.
        unsafe { libc::raise(signal) };
    }
}

/// Is the default action of a signal in force?
fn has_default_action(signal: c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: with a null pointer nothing is changed, and the old action is written to memory of its type.
    let failed = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) } != 0;
    // SAFETY: a successful call has written the whole structure.
    !failed && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_DFL
}

fn set(signal: c_int, handler: extern "C" fn(c_int)) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid `sigaction`: no flags, an empty set of signals.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESETHAND | libc::SA_RESTART | libc::SA_ONSTACK;
    // SAFETY: the handler does nothing but read atomics, ask for the process id, and write to a pipe or raise a signal:
    // all of that is allowed in handlers.
    match unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Ends the process by a signal whose default action is in force.
fn end_process(signal: c_int) -> ! {
    // SAFETY: the set is initialised by `sigemptyset` before it is used; the calls concern this thread's signals only.
    unsafe {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), std::ptr::null_mut());
        libc::raise(signal);
        // Only if the program changed the action in this very moment.
        libc::_exit(128 + signal)
    }
}
