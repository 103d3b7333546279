//! What the system knows of this process and of files.

use crate::contender::Result;
use rustix::fs::{Advice, fadvise};
use std::fs;
use std::path::Path;

/// Bytes that this process had the system write to devices: pages that it made dirty, and direct writes.
pub fn written_bytes() -> Result<u64> {
    field("/proc/self/io", "write_bytes:")
}

/// Memory of this process that is not backed by files, in bytes.
pub fn anonymous_bytes() -> Result<u64> {
    Ok(field("/proc/self/status", "RssAnon:")? << 10)
}

fn field(file: &str, name: &str) -> Result<u64> {
    let text = fs::read_to_string(file)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)).ok_or("the field is missing")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Has the system forget what it caches of the files below a directory, after they are synced.
pub fn drop_caches(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            drop_caches(&path)?;
            continue;
        }
        let file = fs::File::open(&path)?;
        file.sync_data()?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}
