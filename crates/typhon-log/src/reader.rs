//! Reads blocks of a file, a window at a time.

use crate::format::{BLOCK_HEADER_BYTES, Block, BlockHeader, Invalid, StoreId};
use std::io;
use std::sync::Arc;
use typhon_store::{BLOCK_BYTES, Buffer, File};

/// Bytes read at once, unless a block is longer.
const WINDOW_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Reader {
    file: Arc<dyn File>,
    length: u64,
    window: Buffer,
    start: u64,
    filled: usize,
}

impl Reader {
    pub(crate) fn new(file: Arc<dyn File>) -> io::Result<Self> {
        let length = file.length()?;
        Ok(Self { file, length, window: Buffer::zeroed(0), start: 0, filled: 0 })
    }

    /// Length of the file.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Bytes from an offset, which is a multiple of 4096; fewer at the end of the file.
    pub(crate) fn bytes(&mut self, offset: u64, length: u64) -> io::Result<&[u8]> {
        let end = offset.saturating_add(length).min(self.length);
        let offset = offset.min(end);
        let is_inside = offset >= self.start && end <= self.start + self.filled as u64;
        if !is_inside {
            self.fill(offset, end)?;
        }
        let from = (offset - self.start) as usize;
        Ok(&self.window[from..from + (end - offset) as usize])
    }

    fn fill(&mut self, offset: u64, end: u64) -> io::Result<()> {
        let until = end.max(offset + WINDOW_BYTES).min(self.length);
        let count = (until - offset) as usize;
        (self.start, self.filled) = (offset, 0);
        // Past the cache only whole units are read, and the end of the file shows in how many bytes come back.
        let window = self.window.at_least(count.next_multiple_of(BLOCK_BYTES));
        while self.filled < count {
            match self.file.read_some_at(&mut window[self.filled..], offset + self.filled as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => self.filled = (self.filled + bytes).min(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The header of a block at an offset.
    pub(crate) fn header_at(&mut self, offset: u64) -> io::Result<Result<BlockHeader, Invalid>> {
        let bytes = self.bytes(offset, BLOCK_HEADER_BYTES as u64)?;
        Ok(BlockHeader::decode(bytes))
    }

    /// The block at an offset, with all its checksums right.
    pub(crate) fn block_at(&mut self, offset: u64, store: StoreId) -> io::Result<Result<Block<'_>, Invalid>> {
        let header = match self.header_at(offset)? {
            Ok(header) => header,
            Err(invalid) => return Ok(Err(invalid)),
        };
        if offset.saturating_add(u64::from(header.length)) > self.length {
            return Ok(Err(Invalid::Length));
        }
        Ok(Block::decode(self.bytes(offset, u64::from(header.length))?, store))
    }
}
