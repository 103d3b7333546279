//! Whether a thread still exists.
//!
//! The only unsafe code here is the system call that asks. Files below `/proc` would say so too, but where that is not
//! mounted they say that no thread exists, and the memory of live threads would be given to others.
#![allow(unsafe_code)]

/// Does no thread of this process have this id at the operating system? `false` where there is no way to know.
#[cfg(target_os = "linux")]
pub(crate) fn is_gone(os_thread_id: u32) -> bool {
    let (process, thread) = (std::process::id(), os_thread_id);
    // SAFETY: signal 0 is sent to nobody, the call only looks for the thread.
    let failed = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, 0) } != 0;
    failed && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// Does no thread of this process have this id at the operating system? `false` where there is no way to know.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_gone(_: u32) -> bool {
    false
}
