//! Output files appear whole or not at all: written beside their place under a temporary name, renamed at the end.
//!
//! A process that is killed cannot remove its temporary file. So the file is locked while somebody writes it, and whoever
//! writes into the same folder later removes those that nobody holds.

use super::signals;
use crate::failure::{Exit, Failure};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile, TempPath};

/// A file that becomes visible when it is finished.
pub(crate) struct OutputFile {
    file: File,
    // `Option` because finishing takes the path while `drop` still needs to run.
    temporary: Option<TempPath>,
    path: PathBuf,
    overwrite: bool,
}

impl OutputFile {
    /// Refuses to replace an existing file unless `force`, and anything but a file always. `source` is the file being
    /// read, which is never replaced. Of a link, what it leads to is replaced.
    pub(crate) fn create(path: &Path, force: bool, source: Option<&Path>) -> Result<Self, Failure> {
        let cannot = |what: String| Failure::new(Exit::CannotCreate, what).in_file(path);
        if source.is_some_and(|source| is_same_file(source, path)) {
            return Err(cannot("the output is the input".into()).hint("choose another name"));
        }
        if path == Path::new("-") {
            return Err(cannot("the output cannot be standard output".into()).hint(
                "name a file (./- for one of that name); `typhon trace dump` writes to standard output",
            ));
        }
        let is_folder = path.is_dir() || path.to_string_lossy().ends_with(std::path::is_separator);
        if is_folder {
            return Err(cannot("the output is a folder".into()).hint("name a file in it"));
        }
        if path.metadata().is_ok_and(|data| !data.is_file()) {
            return Err(cannot("the output is a device or a pipe".into())
                .hint("name a file; `typhon trace dump` writes to standard output"));
        }
        if !force && path.symlink_metadata().is_ok() {
            return Err(
                cannot("the output exists".into()).hint("choose another name, or replace it with --force")
            );
        }
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        remove_abandoned(folder);
        let (file, temporary) = locked_temporary_in(folder)
            .map_err(|err| {
                Failure::new(Exit::of_creating(&err), "the output cannot be created")
                    .in_file(path)
                    .caused_by(err)
            })?
            .into_parts();
        signals::register(&temporary);
        Ok(Self { file, temporary: Some(temporary), path: target, overwrite: force })
    }

    /// A handle for writing.
    pub(crate) fn writer(&self) -> Result<File, Failure> {
        self.file.try_clone().map_err(|err| {
            Failure::new(Exit::Io, "the output cannot be written").in_file(&self.path).caused_by(err)
        })
    }

    /// Makes the file durable and visible; returns its size in bytes.
    pub(crate) fn finish(mut self) -> Result<u64, Failure> {
        self.complete()
    }

    /// As [`finish`](Self::finish), and there is still something to [`rescue`](Self::rescue) if it fails.
    pub(crate) fn complete(&mut self) -> Result<u64, Failure> {
        let failed =
            |err: std::io::Error, what| Failure::new(Exit::Io, what).in_file(&self.path).caused_by(err);
        let bytes = self.file.metadata().map_err(|err| failed(err, "the output cannot be inspected"))?.len();
        self.file.sync_all().map_err(|err| failed(err, "the output cannot be written"))?;
        self.keep()?;
        Ok(bytes)
    }

    /// Makes the file visible as far as it is written, for what cannot be written a second time.
    pub(crate) fn keep(&mut self) -> Result<(), Failure> {
        let Some(temporary) = self.temporary.take() else { return Ok(()) };
        let name = temporary.to_path_buf();
        let path = self.path.clone();
        let overwrite = self.overwrite;
        signals::settle(&name, || match overwrite {
            true => temporary.persist(&path),
            false => temporary.persist_noclobber(&path),
        })
        .map_err(|err| {
            Failure::new(Exit::CannotCreate, "the output cannot be put in place")
                .in_file(&path)
                .caused_by(err.error)
        })
    }
}

/// What cannot be written a second time may not go with its folder.
#[cfg(unix)]
impl OutputFile {
    /// Has somebody deleted the file, or its folder, since it became visible?
    pub(crate) fn is_deleted(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        self.file.metadata().is_ok_and(|data| data.nlink() == 0)
    }

    /// Copies what was written into a new file in the system's folder for temporary files; gives its name.
    pub(crate) fn rescue(&mut self) -> std::io::Result<PathBuf> {
        use std::io::{Seek, SeekFrom};
        self.file.seek(SeekFrom::Start(0))?;
        let mut copy = Builder::new().prefix("typhon-").suffix(".typhon-trace").tempfile()?;
        std::io::copy(&mut self.file, copy.as_file_mut())?;
        Ok(copy.keep().map_err(|err| err.error)?.1)
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            let name = temporary.to_path_buf();
            signals::settle(&name, || drop(temporary));
        }
    }
}

/// Temporary names begin and end like this.
const TEMPORARY_NAME: [&str; 2] = [".typhon-", ".tmp"];

/// Removes what killed processes left behind. Files that cannot be looked at are somebody else's.
fn remove_abandoned(folder: &Path) {
    let [prefix, suffix] = TEMPORARY_NAME;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|name| name.starts_with(prefix) && name.ends_with(suffix));
        if !is_ours || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let Ok(file) = File::options().write(true).open(entry.path()) else { continue };
        if file.try_lock().is_ok() {
            // Somebody may be quicker.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// A temporary file that [`remove_abandoned`] leaves alone as long as the handle lives.
fn locked_temporary_in(folder: &Path) -> std::io::Result<NamedTempFile> {
    loop {
        let temporary = temporary_in(folder)?;
        match temporary.as_file().try_lock() {
            // Whoever cleans up may have been between us and the lock.
            Ok(()) if temporary.path().exists() => return Ok(temporary),
            Ok(()) | Err(TryLockError::WouldBlock) => {}
            // File systems without locks: nothing can be told apart there, and nothing is removed.
            Err(TryLockError::Error(_)) => return Ok(temporary),
        }
    }
}

/// With the permissions of an ordinary file, not the private ones of a temporary.
fn temporary_in(folder: &Path) -> std::io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    let [prefix, suffix] = TEMPORARY_NAME;
    builder.prefix(prefix).suffix(suffix);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}
