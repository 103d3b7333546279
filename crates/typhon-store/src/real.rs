//! The disk of the operating system.

use crate::buffer::BLOCK_BYTES;
use crate::io::{Access, Entry, EntryKind, File, Io, Lock, Open, at_path};
use crate::pool::{Op, Pending, Pool};
use rustix::fs::{Advice, OFlags, fadvise};
use rustix::io::ReadWriteFlags;
use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Threads of the pool: enough to keep a device's queue busy while one of them waits for a flush.
const POOL_THREADS: usize = 4;

/// Files of the operating system. Calls block; [`Io::submit`] hands the request to a pool of four threads, which
/// start with the first request.
#[derive(Debug, Default)]
pub struct PoolIo {
    pool: OnceLock<Option<Pool>>,
}

impl PoolIo {
    /// Without threads so far.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Io for PoolIo {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let is_free = if how.access == Access::Create { Ok(()) } else { is_no_other(path) };
        let file = is_free.and_then(|()| open(path, how)).map_err(|error| at_path(path, error))?;
        Ok(Arc::new(file))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = list(directory).map_err(|error| at_path(directory, error))?;
        entries.sort();
        Ok(entries)
    }

    fn create_dir(&self, directory: &Path) -> io::Result<()> {
        match fs::create_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(at_path(directory, io::ErrorKind::NotADirectory.into()))
            }
            result => result.map_err(|error| at_path(directory, error)),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to).map_err(|error| at_path(from, error))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path).map_err(|error| at_path(path, error))
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        let synced = fs::File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| at_path(directory, error))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let open = || fs::OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = is_no_other(path).and_then(|()| open()).map_err(|error| at_path(path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(RealLock(file))),
            Err(fs::TryLockError::WouldBlock) => Err(at_path(path, io::ErrorKind::WouldBlock.into())),
            Err(fs::TryLockError::Error(error)) => Err(at_path(path, error)),
        }
    }

    fn submit(&self, op: Op) -> Pending {
        // Without threads a request is carried out at once: slower, and just as right.
        match self.pool.get_or_init(|| Pool::start(POOL_THREADS).ok()) {
            Some(pool) => pool.submit(op),
            None => Pending::done(op.run()),
        }
    }
}

fn list(directory: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            // It was removed since.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if let Ok(name) = entry.file_name().into_string() {
            entries.push(Entry { name, length_bytes: metadata.len(), kind: kind(metadata.file_type()) });
        }
    }
    Ok(entries)
}

fn kind(found: fs::FileType) -> EntryKind {
    match found {
        found if found.is_file() => EntryKind::File,
        found if found.is_dir() => EntryKind::Directory,
        found if found.is_symlink() => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

/// Refuses what has the name and is no file, before it is opened: a pipe would make the caller wait for somebody at its
/// other end, and a directory can be opened for reading like a file.
fn is_no_other(path: &Path) -> io::Result<()> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(()) };
    let (error, found) = match kind(metadata.file_type()) {
        EntryKind::File => return Ok(()),
        found @ EntryKind::Directory => (io::ErrorKind::IsADirectory, found),
        found => (io::ErrorKind::NotSeekable, found),
    };
    Err(io::Error::new(error, format!("this is a {found}, not a file")))
}

/// Opens past the cache if asked and possible. That a file system cannot do it shows in opening, or only in the first
/// read; so a new file is created without asking for it.
fn open(path: &Path, how: Open) -> io::Result<RealFile> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(how.access != Access::Read);
    let file = options.clone().create_new(how.access == Access::Create).open(path)?;
    if how.direct
        && let Ok(direct) = open_direct(options, path)
    {
        return Ok(direct);
    }
    Ok(RealFile { file, is_direct: false })
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn open_direct(mut options: fs::OpenOptions, path: &Path) -> io::Result<RealFile> {
    let file = options.custom_flags(OFlags::DIRECT.bits() as i32).open(path)?;
    file.read_at(&mut crate::Buffer::zeroed(BLOCK_BYTES), 0)?;
    Ok(RealFile { file, is_direct: true })
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn open_direct(_: fs::OpenOptions, _: &Path) -> io::Result<RealFile> {
    Err(io::ErrorKind::Unsupported.into())
}

#[derive(Debug)]
struct RealLock(#[expect(dead_code, reason = "held for the lock on it")] fs::File);

impl Lock for RealLock {}

#[derive(Debug)]
struct RealFile {
    file: fs::File,
    is_direct: bool,
}

impl File for RealFile {
    fn read_some_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn write_some_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn write_some_durable_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        write_durable(&self.file, bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn set_length(&self, length_bytes: u64) -> io::Result<()> {
        self.file.set_len(length_bytes)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.metadata().map(|metadata| metadata.len())
    }

    fn drop_cache(&self) -> io::Result<()> {
        Ok(fadvise(&self.file, 0, None, Advice::DontNeed)?)
    }

    fn is_direct(&self) -> bool {
        self.is_direct
    }
}

/// One call that writes and flushes, where the system has it.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn write_durable(file: &fs::File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    let parts = [io::IoSlice::new(bytes)];
    Ok(rustix::io::pwritev2(file, &parts, offset, ReadWriteFlags::DSYNC)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn write_durable(file: &fs::File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    let count = file.write_at(bytes, offset)?;
    file.sync_data()?;
    Ok(count)
}
