//! A device that takes exactly so long for a sync: real files, and a sleep in place of the flush. It shows what a log
//! adds to the device on a machine whose disk is busy with other things.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use typhon_store::{Entry, File, Io, Lock, Op, Open, Pending, PoolIo};

#[derive(Debug)]
pub struct FixedSyncIo {
    pub io: PoolIo,
    pub sync: Duration,
}

#[derive(Debug)]
struct FixedSyncFile {
    file: Arc<dyn File>,
    sync: Duration,
}

impl Io for FixedSyncIo {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let file = self.io.open(path, how)?;
        Ok(Arc::new(FixedSyncFile { file, sync: self.sync }))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<Entry>> {
        self.io.list(directory)
    }

    fn create_dir(&self, directory: &Path) -> io::Result<()> {
        self.io.create_dir(directory)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.io.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.io.remove(path)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        self.io.sync_dir(directory)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.io.lock(path)
    }

    fn submit(&self, op: Op) -> Pending {
        self.io.submit(op)
    }
}

impl File for FixedSyncFile {
    fn read_some_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_some_at(bytes, offset)
    }

    fn write_some_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_some_at(bytes, offset)
    }

    fn write_some_durable_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let count = self.file.write_some_at(bytes, offset)?;
        std::thread::sleep(self.sync);
        Ok(count)
    }

    fn sync_data(&self) -> io::Result<()> {
        std::thread::sleep(self.sync);
        Ok(())
    }

    fn set_length(&self, length_bytes: u64) -> io::Result<()> {
        self.file.set_length(length_bytes)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn drop_cache(&self) -> io::Result<()> {
        self.file.drop_cache()
    }

    fn is_direct(&self) -> bool {
        self.file.is_direct()
    }
}
