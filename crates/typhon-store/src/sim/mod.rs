//! A disk in memory that loses whatever a real one may lose.
//!
//! A [`SimIo`] is an [`Io`] like any other until the machine stops: at a call chosen beforehand
//! ([`SimIo::crash_at`]), or when the test says so. From then on every call fails, until [`SimIo::kill`] starts a new
//! process on the same machine (the cache of the operating system survives, nothing became durable by it) or
//! [`SimIo::cut_power`] a new machine on the same media. Handles of earlier lives stay dead.
//!
//! What the disk promises is what POSIX promises and no more: sectors of 512 bytes are written whole; bytes are durable
//! after a sync of their file, names after a sync of their directory; anything else survives in any combination.

mod disk;
mod inode;
mod plan;
mod random;

use crate::io::{Access, Entry, File, Io, Lock, Open, at_path};
use crate::pool::{Op, Pending};
use disk::Disk;
pub use plan::{Failure, Faults, Survival};
pub use random::Random;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A simulated disk; clones are the same disk.
#[derive(Debug, Clone)]
pub struct SimIo {
    disk: Arc<Mutex<Disk>>,
    /// The life in which this can be used; none is all of them.
    boot: Option<u32>,
}

impl SimIo {
    /// An empty disk with the directory `/`. All its choices follow from the seed.
    pub fn new(seed: u64) -> Self {
        Self { disk: Arc::new(Mutex::new(Disk::new(seed))), boot: None }
    }

    /// The disk as a process sees it that begins now: when that process has been killed, every call fails, whatever
    /// its remains still try to do.
    pub fn process(&self) -> Self {
        Self { boot: Some(self.disk().boot), ..self.clone() }
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The disk, unless this belongs to a process that is gone.
    fn living(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let disk = self.disk();
        if self.boot.is_none_or(|boot| boot == disk.boot) { Ok(disk) } else { Err(gone()) }
    }

    /// Faults from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.disk().faults = faults;
    }

    /// Calls so far that changed something or made something durable: the places at which a crash makes a difference.
    pub fn calls(&self) -> u64 {
        self.disk().calls
    }

    /// The machine stops instead of carrying out the call with this number (the next one is `calls() + 1`); `None`
    /// takes the order back.
    pub fn crash_at(&self, call: Option<u64>) {
        self.disk().crash_at = call;
    }

    /// The call with this number goes wrong, and the machine runs on; `None` takes the order back.
    pub fn fail_at(&self, call: Option<(u64, Failure)>) {
        self.disk().fail_at = call;
    }

    /// Has the machine stopped?
    pub fn is_down(&self) -> bool {
        self.disk().is_down
    }

    /// `kill -9` and a new process: whatever was written can be read, whatever was not synced can still be lost.
    pub fn kill(&self) {
        self.disk().kill();
    }

    /// The power goes and comes back.
    pub fn cut_power(&self, survival: Survival) {
        self.disk().cut_power(survival);
    }

    /// Flips bits on the media.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn damage(&self, path: &Path, offset: usize, length: usize) -> io::Result<()> {
        self.disk().damage(path, offset, length)
    }
}

impl Io for SimIo {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let mut disk = self.living()?;
        let inode = disk.open(path, how.access).map_err(|error| at_path(path, error))?;
        Ok(Arc::new(SimFile { io: self.clone(), inode, access: how.access, boot: disk.boot }))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<Entry>> {
        self.living()?.list(directory).map_err(|error| at_path(directory, error))
    }

    fn create_dir(&self, directory: &Path) -> io::Result<()> {
        self.living()?.create_dir(directory).map_err(|error| at_path(directory, error))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.living()?.rename(from, to).map_err(|error| at_path(from, error))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.living()?.remove(path).map_err(|error| at_path(path, error))
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        self.living()?.sync_dir(directory).map_err(|error| at_path(directory, error))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let mut disk = self.living()?;
        disk.lock(path).map_err(|error| at_path(path, error))?;
        Ok(Box::new(SimLock { io: self.clone(), path: path.to_owned(), boot: disk.boot }))
    }

    /// Carried out at once: which of the requests in flight survive a crash is decided by the crash.
    fn submit(&self, op: Op) -> Pending {
        Pending::done(op.run())
    }
}

#[derive(Debug)]
struct SimLock {
    io: SimIo,
    path: PathBuf,
    boot: u32,
}

impl Lock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut disk = self.io.disk();
        if disk.boot == self.boot {
            disk.unlock(&self.path);
        }
    }
}

#[derive(Debug)]
struct SimFile {
    io: SimIo,
    inode: usize,
    access: Access,
    boot: u32,
}

impl SimFile {
    /// The disk, unless this handle belongs to a process that is gone.
    fn disk(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let disk = self.io.disk();
        if disk.boot == self.boot { Ok(disk) } else { Err(gone()) }
    }

    fn disk_to_write(&self) -> io::Result<MutexGuard<'_, Disk>> {
        if self.access == Access::Read {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.disk()
    }
}

fn gone() -> io::Error {
    io::Error::other("this process was killed (simulated)")
}

impl File for SimFile {
    fn read_some_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk()?.read(self.inode, bytes, offset as usize)
    }

    fn write_some_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.disk_to_write()?.write(self.inode, bytes, offset as usize, false)
    }

    fn write_some_durable_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.disk_to_write()?.write(self.inode, bytes, offset as usize, true)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk()?.sync_data(self.inode)
    }

    fn set_length(&self, length_bytes: u64) -> io::Result<()> {
        self.disk_to_write()?.set_length(self.inode, length_bytes as usize)
    }

    fn length(&self) -> io::Result<u64> {
        self.disk()?.length(self.inode)
    }

    fn drop_cache(&self) -> io::Result<()> {
        self.disk()?.drop_cache(self.inode)
    }

    fn is_direct(&self) -> bool {
        false
    }
}
