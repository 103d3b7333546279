//! The cache directory keeps to its size.

use std::fs;
use std::path::{Path, PathBuf};

/// Removes the indexes of a cache directory that have not been written for the longest time, until the rest fits.
/// Failing to is no failure: the next one tries again.
pub(crate) fn remove_oldest(folder: &Path, limit_bytes: u64, newest: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let is_index = |path: &Path| path.extension().is_some_and(|of| of == "typhon-index") && path != newest;
    let mut files: Vec<(std::time::SystemTime, u64, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let data = fs::metadata(&path).ok().filter(|_| is_index(&path))?;
            Some((data.modified().ok()?, data.len(), path))
        })
        .collect();
    files.sort();
    let newest_bytes = fs::metadata(newest).map_or(0, |data| data.len());
    let mut total = files.iter().fold(newest_bytes, |sum, (_, bytes, _)| sum.saturating_add(*bytes));
    for (_, bytes, path) in files {
        if total <= limit_bytes {
            break;
        }
        if fs::remove_file(path).is_ok() {
            total = total.saturating_sub(bytes);
        }
    }
}
