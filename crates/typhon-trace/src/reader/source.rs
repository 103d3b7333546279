//! Where the bytes come from: a pipe read once from front to back, or a file with positioned reads.
//!
//! Both look the same to the parser, a window of bytes at an absolute offset, so that streams and files share one
//! parse path and give the same result.

use std::fs::File;
use std::io::{self, Read};

use crate::TraceError;

/// Bytes requested from the operating system at a time when a file is read from front to back.
pub(crate) const SEQUENTIAL_READ_BYTES: usize = 256 * 1024;
/// Bytes requested at a time when only block headers are read and the data between them is skipped.
pub(crate) const SCATTERED_READ_BYTES: usize = 4 * 1024;

/// Positioned reads that many threads can issue at once. Implemented for files and byte slices; there is no memory
/// map, since a file that shrinks underneath one kills the process.
pub trait ReadAt {
    /// Reads into `buffer` from an absolute offset; 0 means end of file, fewer bytes than asked are legal.
    ///
    /// # Errors
    /// Whatever the operating system reports.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Size in bytes at this moment; a file that is still being recorded grows.
    ///
    /// # Errors
    /// Whatever the operating system reports.
    fn size(&self) -> io::Result<u64>;
}

impl ReadAt for File {
    #[cfg(unix)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, buffer, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        let count = buffer.len().min(self.len() - start);
        buffer[..count].copy_from_slice(&self[start..start + count]);
        Ok(count)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.as_slice().read_at(buffer, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

impl<A: ReadAt + ?Sized> ReadAt for &A {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        (**self).read_at(buffer, offset)
    }

    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }
}

/// A window over the bytes of a trace, addressed by absolute offset.
pub trait Source {
    /// Up to `count` bytes from `offset`; fewer only at the end of the input. `offset` must not lie before a released
    /// position.
    ///
    /// # Errors
    /// [`TraceError::Io`] when reading fails.
    fn peek(&mut self, offset: u64, count: usize) -> Result<&[u8], TraceError>;

    /// Does the input reach at least `offset + count`? A file answers without reading.
    ///
    /// # Errors
    /// [`TraceError::Io`] when reading fails.
    fn reaches(&mut self, offset: u64, count: usize) -> Result<bool, TraceError>;

    /// Number of bytes from `offset` to the end of the input. A pipe is read to its end for that, and everything in it
    /// is released.
    ///
    /// # Errors
    /// [`TraceError::Io`] when reading fails.
    fn bytes_from(&mut self, offset: u64) -> Result<u64, TraceError>;

    /// Promises that bytes before `offset` are not asked for again.
    fn release(&mut self, offset: u64);
}

/// Bytes held in memory with the file offset of the first one.
#[derive(Debug, Default)]
struct Window {
    /// Zeroed once; only the first `held` bytes mean anything.
    storage: Vec<u8>,
    held: usize,
    base: u64,
}

impl Window {
    fn end(&self) -> u64 {
        self.base + self.held as u64
    }

    /// The held bytes from `offset` on, at most `count`.
    fn slice(&self, offset: u64, count: usize) -> &[u8] {
        debug_assert!(
            offset >= self.base,
            "offset {offset} was released, the window begins at {}",
            self.base
        );
        let start = offset.saturating_sub(self.base).min(self.held as u64) as usize;
        let end = start.saturating_add(count).min(self.held);
        &self.storage[start..end]
    }

    /// Appends what one call of `read` delivers into room for `room` bytes; returns the number of bytes.
    fn fill(
        &mut self,
        room: usize,
        mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
    ) -> Result<usize, TraceError> {
        if self.storage.len() < self.held + room {
            let mut larger = vec![0; (self.held + room).max(self.storage.len() * 2)];
            larger[..self.held].copy_from_slice(&self.storage[..self.held]);
            self.storage = larger;
        }
        let offset = self.end();
        loop {
            match read(&mut self.storage[self.held..self.held + room], offset) {
                Ok(count) => {
                    self.held += count.min(room);
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(TraceError::Io { action: "read", offset, source }),
            }
        }
    }

    /// Moves the start of the window forward, when that pays for the copy.
    fn drop_before(&mut self, offset: u64) {
        let dead = offset.saturating_sub(self.base).min(self.held as u64) as usize;
        if dead > 0 && dead >= self.held / 2 {
            self.storage.copy_within(dead..self.held, 0);
            self.held -= dead;
            self.base += dead as u64;
        }
    }

    /// Empties the window and moves it.
    fn restart(&mut self, base: u64) {
        self.held = 0;
        self.base = base;
    }
}

/// A source that is read once, from front to back: standard input, a socket, a decompressor.
#[derive(Debug)]
pub struct PipeSource<R> {
    input: R,
    window: Window,
    released: u64,
    at_end: bool,
}

impl<R: Read> PipeSource<R> {
    /// Wraps a reader positioned at the first byte of the trace.
    pub fn new(input: R) -> Self {
        Self { input, window: Window::default(), released: 0, at_end: false }
    }
}

impl<R: Read> Source for PipeSource<R> {
    fn peek(&mut self, offset: u64, count: usize) -> Result<&[u8], TraceError> {
        let wanted = offset.saturating_add(count as u64);
        while self.window.end() < wanted && !self.at_end {
            // Memory grows with the bytes that arrive, never with what a damaged size field announces.
            let input = &mut self.input;
            let read = self.window.fill(SEQUENTIAL_READ_BYTES, |buffer, _| input.read(buffer))?;
            self.at_end = read == 0;
            self.window.drop_before(self.released);
        }
        Ok(self.window.slice(offset, count))
    }

    fn reaches(&mut self, offset: u64, count: usize) -> Result<bool, TraceError> {
        Ok(self.peek(offset, count)?.len() == count)
    }

    fn bytes_from(&mut self, offset: u64) -> Result<u64, TraceError> {
        let held_from = offset.max(self.window.base);
        Ok(held_from - offset + SourceReader::new(self, held_from).drain()?)
    }

    fn release(&mut self, offset: u64) {
        self.released = self.released.max(offset);
    }
}

/// A source with positioned reads; skipped bytes are never read.
#[derive(Debug)]
pub struct FileSource<A> {
    data: A,
    size: u64,
    read_bytes: usize,
    window: Window,
}

impl<A: ReadAt> FileSource<A> {
    /// For reading everything from front to back. `size` fixes where the file ends while it may still grow.
    pub fn sequential(data: A, size: u64) -> Self {
        Self { data, size, read_bytes: SEQUENTIAL_READ_BYTES, window: Window::default() }
    }

    /// For reading headers and skipping the data between them.
    pub fn scattered(data: A, size: u64) -> Self {
        Self { data, size, read_bytes: SCATTERED_READ_BYTES, window: Window::default() }
    }
}

impl<A: ReadAt> Source for FileSource<A> {
    fn peek(&mut self, offset: u64, count: usize) -> Result<&[u8], TraceError> {
        if offset < self.window.base || offset > self.window.end() {
            self.window.restart(offset);
        }
        let wanted = offset.saturating_add(count as u64).min(self.size);
        while self.window.end() < wanted {
            self.window.drop_before(offset);
            let missing = wanted - self.window.end();
            let to_end = self.size - self.window.end();
            let room = missing.max(self.read_bytes as u64).min(to_end) as usize;
            let data = &self.data;
            let read = self.window.fill(room, |buffer, at| data.read_at(buffer, at))?;
            if read == 0 {
                // The file shrank since its size was taken.
                self.size = self.window.end();
                break;
            }
        }
        let end = self.size.saturating_sub(offset).min(count as u64) as usize;
        Ok(self.window.slice(offset, end))
    }

    fn reaches(&mut self, offset: u64, count: usize) -> Result<bool, TraceError> {
        Ok(offset.checked_add(count as u64).is_some_and(|end| end <= self.size))
    }

    fn bytes_from(&mut self, offset: u64) -> Result<u64, TraceError> {
        Ok(self.size.saturating_sub(offset))
    }

    fn release(&mut self, _offset: u64) {}
}

/// Reads a source as a stream from a position on, summing up a CRC-32C of what went through.
#[derive(Debug)]
pub(crate) struct SourceReader<'a, S> {
    source: &'a mut S,
    position: u64,
    crc: u32,
    /// Keep what was read, for another look at it.
    hold: bool,
    error: Option<TraceError>,
}

impl<'a, S: Source> SourceReader<'a, S> {
    pub(crate) fn new(source: &'a mut S, position: u64) -> Self {
        Self { source, position, crc: 0, hold: false, error: None }
    }

    /// Does not release what it reads.
    pub(crate) fn holding(source: &'a mut S, position: u64) -> Self {
        Self { hold: true, ..Self::new(source, position) }
    }

    /// Offset of the next byte.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// CRC-32C of all bytes read so far.
    pub(crate) fn crc(&self) -> u32 {
        self.crc
    }

    /// Turns the result of a decoder that read from here into one that names the file offset of a failure.
    pub(crate) fn finish<T>(mut self, result: io::Result<T>) -> Result<T, TraceError> {
        self.checked(result)
    }

    /// As [`Self::finish`], to go on reading.
    pub(crate) fn checked<T>(&mut self, result: io::Result<T>) -> Result<T, TraceError> {
        let offset = self.position;
        result
            .map_err(|source| self.error.take().unwrap_or(TraceError::Io { action: "read", offset, source }))
    }

    /// Bytes ahead without taking them.
    pub(crate) fn peek(&mut self, count: usize) -> Result<&[u8], TraceError> {
        self.source.peek(self.position, count)
    }

    /// Reads to the end of the input; returns the number of bytes.
    pub(crate) fn drain(&mut self) -> Result<u64, TraceError> {
        let start = self.position;
        loop {
            let bytes = self.source.peek(self.position, SEQUENTIAL_READ_BYTES)?;
            if bytes.is_empty() {
                return Ok(self.position - start);
            }
            self.crc = crc32c::crc32c_append(self.crc, bytes);
            self.position += bytes.len() as u64;
            self.source.release(self.position);
        }
    }
}

impl<S: Source> Read for SourceReader<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(SEQUENTIAL_READ_BYTES);
        match self.source.peek(self.position, count) {
            Ok(bytes) => {
                let count = bytes.len();
                buffer[..count].copy_from_slice(bytes);
                self.crc = crc32c::crc32c_append(self.crc, bytes);
                self.position += count as u64;
                if !self.hold {
                    self.source.release(self.position);
                }
                Ok(count)
            }
            Err(error) => {
                let message = error.to_string();
                self.error = Some(error);
                Err(io::Error::other(message))
            }
        }
    }
}
