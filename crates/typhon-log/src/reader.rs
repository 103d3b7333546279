//! Reads blocks of a file from front to back, some of it ahead.

use crate::format::{BLOCK_HEADER_BYTES, Block, BlockHeader, Invalid, StoreId};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use typhon_store::{BLOCK_BYTES, Buffer, File, Io, Op, Pending};

/// Bytes of one request.
const CHUNK_BYTES: u64 = 1 << 20;
/// Requests in flight. Enough that the device works while checksums are compared; and a thread that is woken late has
/// more than one to go on with.
const AHEAD: usize = 4;

#[derive(Debug)]
pub(crate) struct Reader {
    /// Who reads ahead, if anybody.
    io: Option<Arc<dyn Io>>,
    file: Arc<dyn File>,
    length: u64,
    /// The bytes from `start` on.
    window: Buffer,
    start: u64,
    filled: usize,
    /// Requests for what follows the window, in order.
    ahead: VecDeque<(usize, Pending)>,
    /// Where the next request begins.
    next: u64,
    /// Buffers of requests that were answered.
    free: Vec<Buffer>,
}

impl Reader {
    pub(crate) fn new(io: Option<&Arc<dyn Io>>, file: &Arc<dyn File>) -> io::Result<Self> {
        let length = file.length()?;
        Ok(Self {
            io: io.cloned(),
            file: Arc::clone(file),
            length,
            window: Buffer::zeroed(0),
            start: 0,
            filled: 0,
            ahead: VecDeque::new(),
            next: 0,
            free: Vec::new(),
        })
    }

    /// Length of the file.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Bytes from an offset, which is a multiple of 4096; fewer at the end of the file.
    pub(crate) fn bytes(&mut self, offset: u64, length: u64) -> io::Result<&[u8]> {
        let end = offset.saturating_add(length).min(self.length);
        let offset = offset.min(end);
        if offset < self.start || offset > self.start + self.filled as u64 {
            self.begin_at(offset);
        }
        if end > self.start + self.filled as u64 {
            self.forget_before(offset);
            while end > self.start + self.filled as u64 {
                self.take_chunk()?;
            }
        }
        let from = (offset - self.start) as usize;
        Ok(&self.window[from..from + (end - offset) as usize])
    }

    /// Somewhere else than where the window ends.
    fn begin_at(&mut self, offset: u64) {
        self.ahead.clear();
        (self.start, self.filled, self.next) = (offset, 0, offset);
    }

    /// Keeps of the window what begins at `offset`.
    fn forget_before(&mut self, offset: u64) {
        let gone = (offset - self.start) as usize;
        self.window[..self.filled].copy_within(gone.., 0);
        (self.start, self.filled) = (offset, self.filled - gone);
    }

    /// Appends the next chunk to the window.
    fn take_chunk(&mut self) -> io::Result<()> {
        self.ask_ahead();
        let (bytes, buffer) = match self.ahead.pop_front() {
            Some((bytes, pending)) => {
                let completion = pending.wait();
                if let Err(error) = completion.result {
                    self.begin_at(self.start);
                    return Err(error);
                }
                (bytes, completion.buffer.unwrap_or_else(|| Buffer::zeroed(0)))
            }
            None => self.read_now()?,
        };
        let until = self.filled + bytes;
        if self.window.len() < until {
            let mut longer = Buffer::zeroed(until.next_power_of_two());
            longer[..self.filled].copy_from_slice(&self.window[..self.filled]);
            self.window = longer;
        }
        self.window[self.filled..until].copy_from_slice(&buffer[..bytes]);
        self.filled = until;
        self.free.push(buffer);
        Ok(())
    }

    /// Keeps requests in flight, for whole units: past the cache nothing else can be asked for.
    fn ask_ahead(&mut self) {
        let Some(io) = &self.io else { return };
        let end = self.length - self.length % BLOCK_BYTES as u64;
        while self.ahead.len() < AHEAD && self.next < end {
            let bytes = (end - self.next).min(CHUNK_BYTES) as usize;
            let mut buffer = self.free.pop().unwrap_or_else(|| Buffer::zeroed(0));
            if buffer.len() != bytes {
                buffer = Buffer::zeroed(bytes);
            }
            let file = Arc::clone(&self.file);
            let pending = io.submit(Op::Read { file, buffer, offset: self.next });
            self.ahead.push_back((bytes, pending));
            self.next += bytes as u64;
        }
    }

    /// The next chunk, if nobody reads ahead; or the bytes behind the last whole unit, which only a file that was cut
    /// off has.
    fn read_now(&mut self) -> io::Result<(usize, Buffer)> {
        let bytes = (self.length - self.next).min(CHUNK_BYTES) as usize;
        let buffer = read_up_to(&*self.file, self.next, bytes)?;
        self.next += bytes as u64;
        Ok((bytes, buffer))
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

/// Reads so many bytes, which the file has, into a buffer of whole units: past the cache the end of the file shows in
/// how many bytes come back.
pub(crate) fn read_up_to(file: &dyn File, offset: u64, count: usize) -> io::Result<Buffer> {
    let mut buffer = Buffer::zeroed(count.next_multiple_of(BLOCK_BYTES));
    let mut filled = 0;
    while filled < count {
        match file.read_some_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(buffer)
}
