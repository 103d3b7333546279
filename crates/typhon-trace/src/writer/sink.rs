//! Where a trace goes.

use std::fs::File;
use std::io::{self, Cursor, Seek, SeekFrom, Write};

use crate::TraceError;

/// A place that a trace can be written to. The writer patches the header at the end, and cuts off what a failed write
/// has left behind.
pub trait TraceSink: Write + Seek {
    /// Makes the file exactly `len` bytes long, which is never more than it is; the position is set afterwards.
    ///
    /// # Errors
    /// Those of the operating system.
    fn cut(&mut self, len: u64) -> io::Result<()>;

    /// Returns when everything written is on stable storage.
    ///
    /// # Errors
    /// Those of the operating system.
    fn sync(&mut self) -> io::Result<()>;
}

impl TraceSink for File {
    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

/// A trace in memory.
impl TraceSink for Cursor<Vec<u8>> {
    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.get_mut().truncate(usize::try_from(len).unwrap_or(usize::MAX));
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A sink that keeps only whole parts.
#[derive(Debug)]
pub(super) struct Output<S> {
    sink: S,
    /// End of the last whole part.
    end: u64,
    /// A failed write may have left bytes beyond `end`.
    torn: bool,
}

impl<S: TraceSink> Output<S> {
    /// Whatever the sink holds is cut off before the first write.
    pub(super) fn new(sink: S) -> Self {
        Self { sink, end: 0, torn: true }
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn into_sink(self) -> S {
        self.sink
    }

    /// Appends all parts or none of them. When a write fails, the file is cut back to where it was; if not even that
    /// works, it is tried again before the next write, and a reader sees a cut file.
    pub(super) fn append(&mut self, parts: &[&[u8]]) -> Result<(), TraceError> {
        self.mend()?;
        if let Err(source) = parts.iter().try_for_each(|part| self.sink.write_all(part)) {
            self.torn = true;
            // If the cut fails too, `torn` stays set and the next write begins with it.
            let _retried_later = self.mend();
            return Err(self.failure("write", source));
        }
        self.end += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        Ok(())
    }

    /// Overwrites bytes inside the file with one write.
    pub(super) fn patch(&mut self, offset: u64, bytes: &[u8]) -> Result<(), TraceError> {
        debug_assert!(offset + bytes.len() as u64 <= self.end);
        let patched = self.sink.seek(SeekFrom::Start(offset)).and_then(|_| self.sink.write_all(bytes));
        let back = self.sink.seek(SeekFrom::Start(self.end));
        patched.and(back.map(drop)).map_err(|source| TraceError::Io { action: "patch", offset, source })
    }

    pub(super) fn flush(&mut self) -> Result<(), TraceError> {
        self.sink.flush().map_err(|source| self.failure("flush", source))
    }

    pub(super) fn sync(&mut self) -> Result<(), TraceError> {
        self.sink.sync().map_err(|source| self.failure("sync", source))
    }

    fn mend(&mut self) -> Result<(), TraceError> {
        if self.torn {
            let cut = self.sink.cut(self.end).and_then(|()| self.sink.seek(SeekFrom::Start(self.end)));
            cut.map_err(|source| self.failure("cut back", source))?;
            self.torn = false;
        }
        Ok(())
    }

    fn failure(&self, action: &'static str, source: io::Error) -> TraceError {
        TraceError::Io { action, offset: self.end, source }
    }
}
