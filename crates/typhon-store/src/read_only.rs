//! Storage for looking at files that somebody else may be writing.

use crate::io::{Access, Entry, File, Io, Lock, Open};
use crate::pool::{Op, Pending};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Another storage with everything that changes it refused (`PermissionDenied`). Files are opened through the cache,
/// whatever was asked: what the writer of a file has written shows there at once.
pub struct ReadOnly<I> {
    inner: I,
    on_read: Arc<dyn Fn(usize) + Send + Sync>,
}

impl<I: Io> ReadOnly<I> {
    /// `on_read` is called with the number of bytes after each read, to show progress.
    pub fn new(inner: I, on_read: impl Fn(usize) + Send + Sync + 'static) -> Self {
        Self { inner, on_read: Arc::new(on_read) }
    }
}

impl<I: fmt::Debug> fmt::Debug for ReadOnly<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadOnly").field("inner", &self.inner).finish_non_exhaustive()
    }
}

fn refused<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "the files were opened to be looked at only"))
}

impl<I: Io> Io for ReadOnly<I> {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        if how.access != Access::Read {
            return refused();
        }
        let inner = self.inner.open(path, Open::cached(Access::Read))?;
        Ok(Arc::new(ReadOnlyFile { inner, on_read: Arc::clone(&self.on_read) }))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<Entry>> {
        self.inner.list(directory)
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn lock(&self, _: &Path) -> io::Result<Box<dyn Lock>> {
        refused()
    }

    fn submit(&self, op: Op) -> Pending {
        Pending::done(op.run())
    }
}

struct ReadOnlyFile {
    inner: Arc<dyn File>,
    on_read: Arc<dyn Fn(usize) + Send + Sync>,
}

impl fmt::Debug for ReadOnlyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadOnlyFile").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl File for ReadOnlyFile {
    fn read_some_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let count = self.inner.read_some_at(bytes, offset)?;
        (self.on_read)(count);
        Ok(count)
    }

    fn write_some_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        refused()
    }

    fn write_some_durable_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        refused()
    }

    fn sync_data(&self) -> io::Result<()> {
        refused()
    }

    fn set_length(&self, _: u64) -> io::Result<()> {
        refused()
    }

    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }

    fn drop_cache(&self) -> io::Result<()> {
        refused()
    }

    fn is_direct(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SimIo;
    use crate::{Buffer, write_all_at};
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn reading_is_counted_and_everything_else_refused() {
        let sim = SimIo::new(1);
        let path = Path::new("/file");
        let file = sim.open(path, Open::cached(Access::Create)).unwrap();
        write_all_at(&*file, b"content", 0, false).unwrap();
        let calls = sim.calls();

        let count = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&count);
        let io = ReadOnly::new(sim.process(), move |bytes| {
            seen.fetch_add(bytes, Ordering::Relaxed);
        });
        for access in [Access::Write, Access::Create] {
            assert_eq!(
                io.open(path, Open::cached(access)).unwrap_err().kind(),
                io::ErrorKind::PermissionDenied
            );
        }
        let file = io.open(path, Open::direct(Access::Read)).unwrap();
        let mut bytes = [0; 7];
        assert_eq!(file.read_some_at(&mut bytes, 0).unwrap(), 7);
        assert_eq!((&bytes, count.load(Ordering::Relaxed), file.length().unwrap()), (b"content", 7, 7));
        let submitted =
            io.submit(Op::Write { file: Arc::clone(&file), buffer: Buffer::zeroed(512), offset: 0 });
        let results = [
            io.create_dir(path),
            io.rename(path, path),
            io.remove(path),
            io.sync_dir(path),
            io.lock(path).map(drop),
            file.write_some_at(b"x", 0).map(drop),
            file.write_some_durable_at(b"x", 0).map(drop),
            file.sync_data(),
            file.set_length(0),
            file.drop_cache(),
            submitted.wait().result,
        ];
        for result in results {
            assert_eq!(result.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
        assert_eq!(sim.calls(), calls, "nothing reached the disk");
    }
}
