//! A disk in memory whose syncs take a while, so that others come meanwhile, and on which creating a file may do more.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use typhon_store::sim::SimIo;
use typhon_store::{Access, Entry, File, Io, Lock, Op, Open, Pending};

/// A simulated disk.
#[derive(Debug)]
pub(crate) struct Slow {
    pub(crate) io: SimIo,
    /// What every sync takes.
    pub(crate) sync_time: Duration,
    /// Called before a file is created.
    pub(crate) when_created: fn(),
}

#[derive(Debug)]
struct SlowFile(Arc<dyn File>, Duration);

impl Io for Slow {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        if how.access == Access::Create {
            (self.when_created)();
        }
        Ok(Arc::new(SlowFile(self.io.open(path, how)?, self.sync_time)))
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

impl File for SlowFile {
    fn read_some_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_some_at(bytes, offset)
    }

    fn write_some_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_some_at(bytes, offset)
    }

    fn write_some_durable_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_some_durable_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        // To sleep for no time still takes some.
        if !self.1.is_zero() {
            std::thread::sleep(self.1);
        }
        self.0.sync_data()
    }

    fn set_length(&self, length_bytes: u64) -> io::Result<()> {
        self.0.set_length(length_bytes)
    }

    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn drop_cache(&self) -> io::Result<()> {
        self.0.drop_cache()
    }

    fn is_direct(&self) -> bool {
        self.0.is_direct()
    }
}
