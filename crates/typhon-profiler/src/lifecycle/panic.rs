//! What a panic does to a recording.
#![forbid(unsafe_code)]

use super::HOOK_BUDGET;
use crate::{session, thread};

/// Adds to what happens at a panic, after everything that happens already. Not possible while the calling thread
/// panics; false then.
pub(super) fn watch() -> bool {
    if std::thread::panicking() {
        return false;
    }
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        previous(info);
        save();
    }));
    true
}

/// Where a panic ends the process at once, the recording is finished. Where it unwinds, the program may go on, and if
/// it does not, the exit handler finishes; but a panic of the main thread often has others in its wake that end the
/// process at once, so that what was recorded goes to the file now.
fn save() {
    if is_ours() {
        return;
    }
    if cfg!(panic = "abort") {
        session::stop_within(HOOK_BUDGET);
    } else if thread::is_main() {
        session::flush(HOOK_BUDGET);
    }
}

/// A thread that the end of a session waits for must not wait for it.
fn is_ours() -> bool {
    let thread = std::thread::current();
    thread.name().is_some_and(|name| {
        ["Typhon.Profiler", "Typhon.Export-", "Typhon.Gc"].iter().any(|ours| name.starts_with(ours))
    })
}
