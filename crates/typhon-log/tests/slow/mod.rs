//! A disk in memory whose syncs take a while, so that others come meanwhile.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use typhon_store::sim::SimIo;
use typhon_store::{Entry, File, Io, Lock, Op, Open, Pending};

/// A simulated disk on which every sync takes this long.
#[derive(Debug)]
pub(crate) struct Slow(pub(crate) SimIo, pub(crate) Duration);

#[derive(Debug)]
struct SlowFile(Arc<dyn File>, Duration);

impl Io for Slow {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(SlowFile(self.0.open(path, how)?, self.1)))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<Entry>> {
        self.0.list(directory)
    }

    fn create_dir(&self, directory: &Path) -> io::Result<()> {
        self.0.create_dir(directory)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        self.0.sync_dir(directory)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.0.lock(path)
    }

    fn submit(&self, op: Op) -> Pending {
        self.0.submit(op)
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
