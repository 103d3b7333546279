//! The mark that a capture file is in use: an advisory lock, shared by everybody who uses it. Retention deletes only
//! files it can lock exclusively.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// Creates or empties a capture file and marks it as in use for as long as the file is open.
///
/// # Errors
/// Those of opening it; [`io::ErrorKind::ResourceBusy`] when somebody uses it already, such as another process with the
/// same configuration. File systems without locks are written to without one.
pub(crate) fn create_in_use(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    // Locks of Windows would keep this very process from writing; there, an open file cannot be replaced anyway.
    let is_locked = !cfg!(windows) && lock_exclusively(&file)?;
    file.set_len(0)?;
    if is_locked {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
