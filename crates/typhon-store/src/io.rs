//! The two traits of the seam.

use crate::pool::{Op, Pending};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To read an existing file.
    Read,
    /// To read and write an existing file.
    Write,
    /// To read and write a file that must not exist yet.
    Create,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    /// Reading, writing, creating.
    pub access: Access,
    /// Past the cache of the operating system if the file system can do that, see [`File::is_direct`].
    pub direct: bool,
}

impl Open {
    /// Through the cache.
    pub const fn cached(access: Access) -> Self {
        Self { access, direct: false }
    }

    /// Past the cache, if the file system can do that.
    pub const fn direct(access: Access) -> Self {
        Self { access, direct: true }
    }
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The name, without the directory.
    pub name: String,
    /// Length in bytes.
    pub length_bytes: u64,
    /// What has the name.
    pub kind: EntryKind,
}

/// What a name in a directory stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A file with bytes.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, whatever it leads to.
    Link,
    /// A pipe, a socket or a device.
    Other,
}

impl std::fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Link => "symbolic link",
            Self::Other => "pipe, socket or device",
        })
    }
}

/// Holds a lock file; dropping it releases the lock. The file remains.
pub trait Lock: Send + Sync + fmt::Debug {}

/// Names, directories and locks.
///
/// Errors carry the path. A change of names (creation, renaming, removal) is durable after [`Io::sync_dir`] of the
/// directory.
pub trait Io: Send + Sync + fmt::Debug {
    /// Opens or creates a file.
    ///
    /// # Errors
    /// As the operating system says; `AlreadyExists` for [`Access::Create`] of a name that is taken, `IsADirectory` and
    /// `NotSeekable` for what is no file.
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>>;

    /// Names in a directory that are UTF-8, in order.
    ///
    /// # Errors
    /// As the operating system says.
    fn list(&self, directory: &Path) -> io::Result<Vec<Entry>>;

    /// Creates a directory whose parent exists. A directory that exists is fine.
    ///
    /// # Errors
    /// As the operating system says; `NotADirectory` if something else has the name.
    fn create_dir(&self, directory: &Path) -> io::Result<()>;

    /// Gives a file another name in the same directory, replacing what had it.
    ///
    /// # Errors
    /// As the operating system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file's name.
    ///
    /// # Errors
    /// As the operating system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the changes of names in a directory durable.
    ///
    /// # Errors
    /// As the operating system says. Afterwards nothing is known about them.
    fn sync_dir(&self, directory: &Path) -> io::Result<()>;

    /// Takes the exclusive lock of a lock file, which is created if need be, without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if somebody holds it, in this process or another; otherwise as [`Io::open`].
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>>;

    /// Starts a request; the answer is picked up later. Requests in flight have no order among each other: a sync
    /// covers only writes that were complete when it was submitted.
    fn submit(&self, op: Op) -> Pending;
}

/// An open file: bytes at positions.
pub trait File: Send + Sync + fmt::Debug {
    /// Reads up to `bytes.len()` bytes; 0 at the end of the file.
    ///
    /// # Errors
    /// As the operating system says.
    fn read_some_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes some of the bytes, at least one of a nonempty slice, extending the file if need be.
    ///
    /// # Errors
    /// As the operating system says; a part may have been written.
    fn write_some_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Writes like [`File::write_some_at`], and what was written is durable on return.
    ///
    /// # Errors
    /// As the operating system says; nothing is known about the bytes then.
    fn write_some_durable_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Makes all bytes written before, and the length, durable.
    ///
    /// # Errors
    /// As the operating system says. Afterwards nothing is known about any byte since the last success, and a later
    /// success says nothing about them: systems drop the failed bytes and report success next time.
    fn sync_data(&self) -> io::Result<()>;

    /// Cuts or extends the file to a length; an extension reads as zero.
    ///
    /// # Errors
    /// As the operating system says.
    fn set_length(&self, length_bytes: u64) -> io::Result<()>;

    /// Length in bytes.
    ///
    /// # Errors
    /// As the operating system says.
    fn length(&self) -> io::Result<u64>;

    /// Has the system forget what it caches of the file, so that reading shows what the device holds. Bytes that were
    /// not synced stay.
    ///
    /// # Errors
    /// As the operating system says.
    fn drop_cache(&self) -> io::Result<()>;

    /// Does the file bypass the cache? Then memory, offsets and lengths must be multiples of
    /// [`BLOCK_BYTES`](crate::BLOCK_BYTES).
    fn is_direct(&self) -> bool;
}

/// Reads until the slice is full.
///
/// # Errors
/// `UnexpectedEof` if the file ends before; otherwise as the operating system says.
pub fn read_exact_at(file: &dyn File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = match file.read_some_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        offset += count as u64;
        bytes = &mut bytes[count..];
    }
    Ok(())
}

/// Writes all bytes, however short the single writes are.
///
/// # Errors
/// `WriteZero` if a write makes no progress; otherwise as the operating system says.
pub fn write_all_at(file: &dyn File, bytes: &[u8], offset: u64, durable: bool) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let (rest, at) = (&bytes[done..], offset + done as u64);
        let result =
            if durable { file.write_some_durable_at(rest, at) } else { file.write_some_at(rest, at) };
        match result {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The error with the path in front, and its kind kept.
pub(crate) fn at_path(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), PathError { path: path.to_owned(), error })
}

/// An error of the operating system about a path.
#[derive(Debug)]
struct PathError {
    path: PathBuf,
    error: io::Error,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.error)
    }
}

impl std::error::Error for PathError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
