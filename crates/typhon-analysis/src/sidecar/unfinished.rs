//! Sidecars that are being written have names of their own, and a lock for as long as somebody writes. What is not locked
//! was left by a process that was killed: it may be as large as an index and is of no use.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;
use tempfile::NamedTempFile;

const PREFIX: &str = ".typhon-index-";
/// Younger files may not have their lock yet.
const UNLOCKED_FOR: Duration = Duration::from_secs(10);

/// Creates a sidecar under a temporary name in its folder, and removes what others have left there.
///
/// # Errors
/// When the folder cannot be written.
pub(crate) fn create(folder: &Path) -> io::Result<NamedTempFile> {
    remove_left(folder, UNLOCKED_FOR);
    let file = tempfile::Builder::new().prefix(PREFIX).tempfile_in(folder)?;
    // Where files cannot be locked, nobody removes any: see below.
    let _ = file.as_file().try_lock();
    Ok(file)
}

/// Failing to is no failure: the next one tries again.
fn remove_left(folder: &Path, older_than: Duration) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let is_ours = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(PREFIX);
    for entry in entries.flatten().filter(is_ours) {
        let Ok(data) = entry.metadata() else { continue };
        let age = data.modified().ok().and_then(|at| at.elapsed().ok());
        if data.is_file()
            && age.is_some_and(|age| age >= older_than)
            && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok())
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_has_left_goes_and_what_is_being_written_stays() {
        let folder = tempfile::tempdir().expect("made");
        let left = folder.path().join(".typhon-index-abc123");
        fs::write(&left, "part of an index").expect("written");
        fs::create_dir(folder.path().join(".typhon-index-folder")).expect("made");
        let first = create(folder.path()).expect("created");
        assert!(left.exists(), "it may have been created this moment");
        remove_left(folder.path(), Duration::ZERO);
        assert!(!left.exists());
        assert!(first.path().exists());
        assert!(folder.path().join(".typhon-index-folder").exists());
    }
}
