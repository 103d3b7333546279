//! The mark that a capture file is in use: an advisory lock, shared by everybody who uses it. Retention deletes only
//! files it can lock exclusively.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest wait for others who are beginning or deleting captures in the same folder, and how often it is tried.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(2);

/// Creates or empties a capture file and marks it as in use for as long as the file is open.
///
/// # Errors
/// Those of opening it; [`io::ErrorKind::ResourceBusy`] when somebody uses it already, such as another process with the
/// same configuration. File systems without locks are written to without one.
pub(crate) fn create_in_use(path: &Path) -> io::Result<File> {
    let _turn = Turn::in_folder_of(path);
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    // Locks of Windows would keep this very process from writing; there, an open file cannot be replaced anyway.
    let is_locked = !cfg!(windows) && lock_exclusively(&file)?;
    file.set_len(0)?;
    if is_locked {
        // A lock cannot be weakened in one step. Between the two, only those could come who wait for their turn.
        file.unlock()?;
        file.lock_shared()?;
    }
    Ok(file)
}

/// False where locks are not supported.
fn lock_exclusively(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => {
            Err(io::Error::new(io::ErrorKind::ResourceBusy, "it is in use by another recording or a reader"))
        }
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The turn of one among all that begin or delete captures in a folder, in any process: an exclusive lock on the folder.
/// Without it a capture could be deleted, or begun a second time, while its own lock is being changed.
///
/// Where folders cannot be opened or locked there are no turns; and nobody waits for ever for one.
pub(super) struct Turn {
    /// Gives the turn up when it is closed.
    _folder: Option<File>,
}

impl Turn {
    pub(super) fn in_folder_of(path: &Path) -> Self {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Self::in_folder(folder)
    }

    pub(super) fn in_folder(folder: &Path) -> Self {
        let Ok(folder) = File::open(folder) else { return Self { _folder: None } };
        let deadline = Instant::now() + PATIENCE;
        while let Err(TryLockError::WouldBlock) = folder.try_lock()
            && Instant::now() < deadline
        {
            std::thread::sleep(PAUSE);
        }
        Self { _folder: Some(folder) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    #[cfg(unix)]
    fn b34_a_file_in_use_is_neither_replaced_nor_free_for_deletion() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.typhon-trace");
        std::fs::write(&path, "old").unwrap();
        let first = create_in_use(&path).unwrap();
        assert_eq!(first.metadata().unwrap().len(), 0);
        assert_eq!(create_in_use(&path).unwrap_err().kind(), io::ErrorKind::ResourceBusy);
        let other = File::open(&path).unwrap();
        assert!(other.try_lock_shared().is_ok(), "readers share it");
        other.unlock().unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(first);
        assert!(other.try_lock().is_ok());
    }

    /// While somebody has the turn of a folder, `work` must not be done, and afterwards it must.
    #[cfg(unix)]
    fn waits_for_its_turn(folder: &Path, is_done: impl Fn() -> bool, work: impl FnOnce() + Send) {
        // Nobody waits longer than their patience, which begins later than this.
        let begun = Instant::now();
        let turn = Turn::in_folder(folder);
        std::thread::scope(|scope| {
            scope.spawn(work);
            while begun.elapsed() < PATIENCE / 4 {
                assert!(!is_done() || begun.elapsed() >= PATIENCE, "it did not wait");
                std::thread::yield_now();
            }
            drop(turn);
        });
        assert!(is_done());
    }

    #[test]
    #[cfg(unix)]
    fn b34_who_begins_or_deletes_captures_waits_for_its_turn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.typhon-trace");
        let begin = || drop(create_in_use(&path).unwrap());
        waits_for_its_turn(folder.path(), || path.exists(), begin);
        std::fs::write(&path, "old").unwrap();
        let policy = r#"{"budgetBytes": 1, "keepLatest": 0}"#;
        std::fs::write(folder.path().join(super::super::POLICY_FILE), policy).unwrap();
        let delete = || drop(super::super::prune(folder.path(), &mut Vec::new()));
        waits_for_its_turn(folder.path(), || !path.exists(), delete);
    }

    /// Threads stand in for processes: locks belong to open files.
    #[test]
    #[cfg(target_os = "linux")]
    fn b34_recordings_and_retention_at_once_leave_every_writer_its_own_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.typhon-trace");
        let policy = r#"{"budgetBytes": 1, "keepLatest": 0}"#;
        std::fs::write(folder.path().join(super::super::POLICY_FILE), policy).unwrap();
        let begun = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for writer in 0..3u8 {
                let (path, begun) = (&path, &begun);
                scope.spawn(move || {
                    for _ in 0..200 {
                        let Ok(mut file) = create_in_use(path) else { continue };
                        begun.fetch_add(1, Ordering::Relaxed);
                        file.write_all(&[writer; 64]).unwrap();
                        assert_eq!(std::fs::read(path).unwrap(), [writer; 64]);
                    }
                });
            }
            scope.spawn(|| (0..200).for_each(|_| drop(super::super::prune(folder.path(), &mut Vec::new()))));
        });
        assert!(begun.into_inner() > 0);
    }
}
