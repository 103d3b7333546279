//! Reads blocks of a file from front to back, some of it ahead.

use crate::format::{BLOCK_HEADER_BYTES, Block, BlockHeader, Invalid, SEGMENT_HEADER_BYTES, StoreId};
use std::collections::VecDeque;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;
use typhon_store::{BLOCK_BYTES, Buffer, File, Io, Op, Pending};

/// Bytes of one request; each ends at a multiple of it. What is kept of a log stays where it was read to, so that only blocks
/// at the ends of these are copied. A large page, so that a device takes each as one piece.
const CHUNK_BYTES: u64 = 2 << 20;
/// Requests in flight: the device works while checksums are compared.
const AHEAD: usize = 2;

#[derive(Debug)]
pub(crate) struct Reader {
    /// Who reads ahead, if anybody.
    io: Option<Arc<dyn Io>>,
    file: Arc<dyn File>,
    length: u64,
    /// What was read last, each chunk behind the one before.
    chunks: VecDeque<Chunk>,
    /// Bytes that lie in several of them, in one piece.
    joined: Option<Chunk>,
    /// Where what was read ends.
    end: u64,
    /// Requests for what follows, in order.
    ahead: VecDeque<(usize, Pending)>,
    /// Where the next request begins.
    next: u64,
    /// Buffers that nobody has kept.
    free: Vec<Buffer>,
}

/// Bytes of a file from an offset on.
#[derive(Debug, Clone)]
struct Chunk {
    start: u64,
    bytes: usize,
    buffer: Arc<Buffer>,
}

impl Chunk {
    /// Where bytes of the file are in the buffer, if all of them are.
    fn range(&self, offset: u64, end: u64) -> Option<Range<usize>> {
        let from = offset.checked_sub(self.start)? as usize;
        let to = (end - self.start) as usize;
        (to <= self.bytes).then_some(from..to)
    }
}

/// Bytes that stay when the reader goes on. They hold the chunk that they are in.
#[derive(Debug)]
pub(crate) struct Kept {
    buffer: Arc<Buffer>,
    range: Range<usize>,
}

impl Kept {
    /// What is behind so many of them.
    pub(crate) fn behind(mut self, bytes: usize) -> Self {
        self.range.start += bytes;
        self
    }
}

impl Deref for Kept {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }
}

impl Reader {
    pub(crate) fn new(io: Option<&Arc<dyn Io>>, file: &Arc<dyn File>) -> io::Result<Self> {
        let length = file.length()?;
        Ok(Self {
            io: io.cloned(),
            file: Arc::clone(file),
            length,
            chunks: VecDeque::new(),
            joined: None,
            end: SEGMENT_HEADER_BYTES,
            ahead: VecDeque::new(),
            next: SEGMENT_HEADER_BYTES,
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
        if end <= offset {
            return Ok(&[]);
        }
        let (chunk, range) = self.find(offset, end)?;
        Ok(&chunk.buffer[range])
    }

    /// Bytes as [`Reader::bytes`], to be kept.
    pub(crate) fn keep(&mut self, offset: u64, length: u64) -> io::Result<Kept> {
        let end = offset.saturating_add(length).min(self.length);
        let (chunk, range) = self.find(offset, end.max(offset))?;
        Ok(Kept { buffer: Arc::clone(&chunk.buffer), range })
    }

    fn find(&mut self, offset: u64, end: u64) -> io::Result<(&Chunk, Range<usize>)> {
        let start = self.chunks.front().map_or(self.end, |first| first.start);
        if offset < start || offset > self.end {
            self.begin_at(offset);
        }
        while self.end < end {
            self.forget_before(offset);
            self.take_chunk()?;
        }
        let chunks = self.chunks.iter().chain(&self.joined);
        if chunks.clone().all(|chunk| chunk.range(offset, end).is_none()) {
            self.joined = Some(self.join(offset, end));
        }
        let mut chunks = self.chunks.iter().chain(&self.joined);
        let found = chunks.find_map(|chunk| Some((chunk, chunk.range(offset, end)?)));
        found.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Copies bytes out of all chunks that have some of them.
    fn join(&self, offset: u64, end: u64) -> Chunk {
        let bytes = (end - offset) as usize;
        let mut buffer = Buffer::zeroed(bytes);
        let mut filled = 0;
        for chunk in &self.chunks {
            let at = offset + filled as u64;
            if let Some(from) =
                at.checked_sub(chunk.start).map(|from| from as usize).filter(|from| *from < chunk.bytes)
            {
                let count = (chunk.bytes - from).min(bytes - filled);
                buffer[filled..filled + count].copy_from_slice(&chunk.buffer[from..from + count]);
                filled += count;
            }
        }
        Chunk { start: offset, bytes: filled, buffer: Arc::new(buffer) }
    }

    /// Somewhere else than where what was read ends.
    fn begin_at(&mut self, offset: u64) {
        self.ahead.clear();
        self.chunks.clear();
        (self.end, self.next) = (offset, offset);
    }

    /// Keeps the chunks with something behind `offset`.
    fn forget_before(&mut self, offset: u64) {
        while let Some(first) = self.chunks.pop_front_if(|first| first.start + first.bytes as u64 <= offset) {
            self.free.extend(Arc::into_inner(first.buffer));
        }
    }

    fn take_chunk(&mut self) -> io::Result<()> {
        self.ask_ahead();
        let (bytes, buffer) = match self.ahead.pop_front() {
            Some((bytes, pending)) => {
                let completion = pending.wait();
                if let Err(error) = completion.result {
                    self.begin_at(self.end);
                    return Err(error);
                }
                (bytes, completion.buffer.unwrap_or_else(|| Buffer::zeroed(0)))
            }
            None => self.read_now()?,
        };
        // Before this is checked, and not when the next one is needed: the device would have nothing to do meanwhile.
        self.ask_ahead();
        self.chunks.push_back(Chunk { start: self.end, bytes, buffer: Arc::new(buffer) });
        self.end += bytes as u64;
        Ok(())
    }

    /// Keeps requests in flight, for whole units: past the cache nothing else can be asked for.
    pub(crate) fn ask_ahead(&mut self) {
        let Some(io) = &self.io else { return };
        let end = self.length - self.length % BLOCK_BYTES as u64;
        while self.ahead.len() < AHEAD && self.next < end {
            // Nearly all are of the same length, so that buffers that come back fit the next. The first one, behind the header,
            // is longer: a shorter one would not be in large pages.
            let stop = (self.next + CHUNK_BYTES).next_multiple_of(CHUNK_BYTES).min(end);
            let bytes = (stop - self.next) as usize;
            let buffer = buffer_of(&mut self.free, bytes);
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
        let mut buffer = buffer_of(&mut self.free, bytes.next_multiple_of(BLOCK_BYTES));
        fill(&*self.file, self.next, &mut buffer, bytes)?;
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

/// A buffer of this length, out of those that are free if one is there.
fn buffer_of(free: &mut Vec<Buffer>, bytes: usize) -> Buffer {
    free.pop().filter(|buffer| buffer.len() == bytes).unwrap_or_else(|| Buffer::zeroed(bytes))
}

/// Reads so many bytes, which the file has, into a buffer of whole units.
pub(crate) fn read_up_to(file: &dyn File, offset: u64, count: usize) -> io::Result<Buffer> {
    let mut buffer = Buffer::zeroed(count.next_multiple_of(BLOCK_BYTES));
    fill(file, offset, &mut buffer, count)?;
    Ok(buffer)
}

/// Reads so many bytes, which the file has, and asks for as many as the buffer takes: past the cache the end of the file
/// shows in how many come back.
fn fill(file: &dyn File, offset: u64, buffer: &mut Buffer, count: usize) -> io::Result<()> {
    let mut filled = 0;
    while filled < count {
        match file.read_some_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::path::Path;
    use typhon_store::sim::{Random, SimIo};
    use typhon_store::{Access, Open, write_all_at};

    /// What lies behind the end of a log is most of the reading when the log is short.
    #[test]
    fn while_a_chunk_is_looked_at_others_are_read_into_the_same_few_buffers() {
        let io: Arc<dyn Io> = Arc::new(SimIo::new(1));
        let file = io.open(Path::new("/segment"), Open::direct(Access::Create)).expect("created");
        let length = 8 * CHUNK_BYTES;
        file.set_length(length).expect("space");
        let mut reader = Reader::new(Some(&io), &file).expect("opens");
        let mut buffers = HashSet::new();
        let mut offset = SEGMENT_HEADER_BYTES;
        while offset < length {
            assert_eq!(reader.bytes(offset, 64).expect("readable"), [0; 64]);
            let rest = (length - reader.end).div_ceil(CHUNK_BYTES) as usize;
            assert_eq!(reader.ahead.len(), AHEAD.min(rest), "at {offset}");
            assert!(reader.end.is_multiple_of(CHUNK_BYTES));
            // The first one is longer, behind the header.
            if offset > 2 * CHUNK_BYTES {
                buffers.extend(reader.chunks.iter().map(|chunk| chunk.buffer.as_ptr()));
            }
            offset += SEGMENT_HEADER_BYTES;
        }
        assert!(buffers.len() <= AHEAD + 2, "{}", buffers.len());
    }

    /// A file with another byte at every place, and its bytes.
    fn filled(length: usize) -> (Arc<dyn Io>, Arc<dyn File>, Vec<u8>) {
        let io: Arc<dyn Io> = Arc::new(SimIo::new(1));
        let file = io.open(Path::new("/segment"), Open::direct(Access::Create)).expect("created");
        let mut random = Random::new(length as u64);
        let bytes: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| random.next_u64().to_le_bytes()).collect();
        write_all_at(&*file, &bytes[..length], 0, false).expect("written");
        (io, file, bytes[..length].to_vec())
    }

    /// Buffers are used again while what was read before is kept, and the end of the file lies anywhere in a request.
    #[test]
    fn what_is_read_is_what_the_file_has_wherever_it_is_asked_for_and_as_long_as_it_is_kept() {
        let chunk = CHUNK_BYTES as usize;
        for length in [4097, chunk - 512, chunk + 4096, 4 * chunk, 7 * chunk + 8192 + 100] {
            let (io, file, content) = filled(length);
            for io in [Some(&io), None] {
                let mut reader = Reader::new(io, &file).expect("opens");
                let mut random = Random::new(length as u64);
                let mut kept: Vec<(usize, Kept)> = Vec::new();
                let mut offset = SEGMENT_HEADER_BYTES as usize;
                for step in 0..150 {
                    let count = random.below([100, 5000, 3 * CHUNK_BYTES][step % 3]) as usize;
                    let expected = &content[offset.min(length)..(offset + count).min(length)];
                    if step % 5 == 0 {
                        kept.push((offset, reader.keep(offset as u64, count as u64).expect("readable")));
                        kept.truncate(8);
                    }
                    assert!(reader.bytes(offset as u64, count as u64).expect("readable") == expected);
                    // On by a block, mostly; sometimes somewhere else.
                    let elsewhere = random.below(length as u64) as usize;
                    offset = if step % 17 == 16 { elsewhere } else { offset + count }
                        .next_multiple_of(BLOCK_BYTES);
                    if offset >= length {
                        offset = SEGMENT_HEADER_BYTES as usize;
                    }
                }
                for (offset, kept) in kept {
                    assert!(*kept == content[offset..offset + kept.len()], "{offset} of {length}");
                }
            }
        }
    }

    /// Segments may be as long as 4 GiB.
    #[test]
    fn a_reader_holds_a_few_buffers_however_long_the_file_is() {
        let (io, file, _) = filled(12 * CHUNK_BYTES as usize);
        for io in [Some(&io), None] {
            let mut reader = Reader::new(io, &file).expect("opens");
            for offset in (SEGMENT_HEADER_BYTES..reader.length()).step_by(BLOCK_BYTES) {
                reader.bytes(offset, 64).expect("readable");
                let held = reader.free.len() + reader.chunks.len() + reader.ahead.len();
                assert!(held <= AHEAD + 2, "{held} at {offset}");
            }
        }
    }
}
