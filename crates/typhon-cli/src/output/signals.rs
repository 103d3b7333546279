//! Ctrl+C and termination: nothing half-written stays behind, and the exit code names the signal.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Temporary files that exist at this moment. Global, since a signal reaches the process and no single command.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Remembers a temporary file for removal on a signal.
pub(crate) fn register(path: &Path) {
    unfinished().push(path.to_owned());
}

/// Runs `finish`, which makes the temporary file permanent or removes it, without a signal coming between.
pub(crate) fn settle<T>(path: &Path, finish: impl FnOnce() -> T) -> T {
    let mut files = unfinished();
    let result = finish();
    files.retain(|other| other != path);
    result
}

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on, SIGINT, SIGTERM and SIGHUP remove temporary files and end the process with 128 + signal.
#[cfg(unix)]
pub(crate) fn install() -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // The guard is kept to the end: no file may become permanent while the process ends.
            let files = unfinished();
            for path in files.iter() {
                // It may be gone already, and there is nobody left to tell.
                let _ = std::fs::remove_file(path);
            }
            std::process::exit(128 + signal);
        }
    })?;
    Ok(())
}

/// Other systems end the process by themselves.
#[cfg(not(unix))]
pub(crate) fn install() -> std::io::Result<()> {
    Ok(())
}
