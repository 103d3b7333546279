//! Ctrl+C and termination: nothing half-written stays behind, and the exit code names the signal.
//!
//! A command that records asks for a first signal to be kept ([`keep_first`]), finishes its file and ends by itself. A
//! second signal ends it as any other command.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Temporary files that exist at this moment. Global, since a signal reaches the process and no single command.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Whether the first signal is only kept.
static KEEPS_FIRST: AtomicBool = AtomicBool::new(false);
/// The signal that was kept, 0 before.
static KEPT: AtomicI32 = AtomicI32::new(0);

/// From now on the first signal ends nothing: the command looks for it with [`received`].
pub(crate) fn keep_first() {
    KEEPS_FIRST.store(true, Ordering::Relaxed);
}

/// The signal that was kept.
pub(crate) fn received() -> Option<u8> {
    let signal = KEPT.load(Ordering::Relaxed);
    (signal != 0).then_some(signal as u8)
}

/// Forgets the signal that was kept: what it asked for is done, and another one is looked for.
pub(crate) fn forget() {
    KEPT.store(0, Ordering::Relaxed);
}

/// Is this signal the first one, and wanted by the command?
#[cfg(unix)]
fn keeps(signal: i32) -> bool {
    KEEPS_FIRST.load(Ordering::Relaxed)
        && KEPT.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

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

/// From now on, SIGINT, SIGTERM and SIGHUP remove temporary files and end the process with 128 + signal, unless the
/// parent had them ignored (`nohup`, background jobs). A write beyond the limit on file sizes fails like one to a full
/// disk, instead of killing the process by SIGXFSZ.
#[cfg(unix)]
pub(crate) fn install() -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    let ignored = ignored();
    let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0);
    let mut signals = signal_hook::iterator::Signals::new(wanted.chain([SIGXFSZ]))?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let ends = |signal: &i32| *signal != SIGXFSZ && !keeps(*signal);
        if let Some(signal) = signals.forever().find(ends) {
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

/// The signals that this process was started with as ignored; bit n - 1 for signal n. Only Linux tells without a system
/// call that safe code cannot make; elsewhere none are.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Other systems end the process by themselves.
#[cfg(not(unix))]
pub(crate) fn install() -> std::io::Result<()> {
    Ok(())
}
