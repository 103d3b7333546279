//! Where the packed bytes of an index are: in memory, or in a file that is read in pieces.

use super::packed::Malformed;
use crate::session::memory::{Held, Pool};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, PoisonError};
use typhon_trace::reader::ReadAt;

/// A piece of a [`Store`], with the checksum of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Piece {
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
    pub(crate) crc: u32,
}

/// Packed bytes that do not change any more.
#[derive(Debug)]
pub(crate) enum Store {
    /// With the memory taken for it.
    Memory {
        bytes: Vec<u8>,
        _held: Held,
    },
    File(Arc<File>),
}

/// Something that pieces can be read from.
pub(crate) trait Pieces {
    /// Reads a piece into `buffer` and checks it.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::InvalidData`] when the bytes are not those that were written.
    fn read(&self, piece: Piece, buffer: &mut Vec<u8>) -> io::Result<()>;
}

impl Pieces for Store {
    fn read(&self, piece: Piece, buffer: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Memory { bytes, .. } => read_exactly(bytes, piece, buffer),
            Self::File(file) => read_exactly(&**file, piece, buffer),
        }
    }
}

fn read_exactly(data: &impl ReadAt, piece: Piece, buffer: &mut Vec<u8>) -> io::Result<()> {
    // A place may be anything; what was written is smaller.
    if piece.bytes > PIECE_BYTES_MAX {
        return Err(damaged());
    }
    buffer.clear();
    buffer.resize(piece.bytes as usize, 0);
    let mut filled = 0;
    while filled < buffer.len() {
        match data.read_at(&mut buffer[filled..], piece.offset.saturating_add(filled as u64)) {
            Ok(0) => return Err(damaged()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if crc_matches(crc32c::crc32c(buffer), piece.crc) { Ok(()) } else { Err(damaged()) }
}

/// Bytes of a piece, at most: five columns of 4,096 values, each with a patch for every value.
const PIECE_BYTES_MAX: u32 = 1 << 20;

/// Does a checksum match? While fuzzing all do, or nothing but checksums would be tested.
pub(crate) fn crc_matches(found: u32, stated: u32) -> bool {
    cfg!(fuzzing) || found == stated
}

/// The index is not what was written.
pub(crate) fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the index is damaged")
}

impl From<Malformed> for io::Error {
    fn from(_: Malformed) -> Self {
        damaged()
    }
}

/// Memory is taken in steps of so much.
const MEMORY_STEP_BYTES: usize = 64 << 10;

/// Takes pieces from several threads.
#[derive(Debug)]
pub(crate) struct StoreWriter {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    target: Target,
    length: u64,
}

#[derive(Debug)]
enum Target {
    /// With the memory taken for it, and how much may be taken in all by everybody.
    Memory(Vec<u8>, Held, usize),
    File(io::BufWriter<Arc<File>>),
}

impl Pieces for StoreWriter {
    fn read(&self, piece: Piece, buffer: &mut Vec<u8>) -> io::Result<()> {
        let mut state = self.lock();
        let length = state.length;
        let file = match &mut state.target {
            Target::Memory(bytes, ..) => return read_exactly(bytes, piece, buffer),
            Target::File(file) => {
                let written = length - file.buffer().len() as u64;
                if piece.offset.saturating_add(piece.bytes.into()) > written {
                    file.flush()?;
                }
                file.get_ref().clone()
            }
        };
        // Other threads go on writing meanwhile.
        drop(state);
        read_exactly(&*file, piece, buffer)
    }
}

fn buffered(file: File) -> io::BufWriter<Arc<File>> {
    io::BufWriter::with_capacity(1 << 20, Arc::new(file))
}

impl StoreWriter {
    /// Keeps everything in memory, for something small that goes soon.
    pub(crate) fn in_memory() -> Self {
        Self::in_memory_of(&Pool::new(usize::MAX), usize::MAX)
    }

    /// Keeps everything in memory of a pool, or in a temporary file once more than `limit` bytes of the pool would be
    /// taken.
    pub(crate) fn in_memory_of(pool: &Pool, limit: usize) -> Self {
        Self {
            state: Mutex::new(State { target: Target::Memory(Vec::new(), pool.held(), limit), length: 0 }),
        }
    }

    /// Writes to a file, from `offset` on.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn to_file(mut file: File, offset: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(offset))?;
        let state = State { target: Target::File(buffered(file)), length: offset };
        Ok(Self { state: Mutex::new(state) })
    }

    /// Adds a piece.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn append(&self, bytes: &[u8]) -> io::Result<Piece> {
        let crc = crc32c::crc32c(bytes);
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let mut state = self.lock();
        if let Target::Memory(kept, held, limit) = &mut state.target
            && kept.len() + bytes.len() > held.bytes()
            && !held.grow(bytes.len().max(MEMORY_STEP_BYTES), *limit)
        {
            let mut file = buffered(tempfile::tempfile()?);
            file.write_all(kept)?;
            state.target = Target::File(file);
        }
        match &mut state.target {
            Target::Memory(kept, ..) => kept.extend_from_slice(bytes),
            Target::File(file) => file.write_all(bytes)?,
        }
        let piece = Piece { offset: state.length, bytes: length, crc };
        state.length += bytes.len() as u64;
        Ok(piece)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // A thread that panicked while it wrote takes the whole index with it when it is joined.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends writing; gives the store and the offset behind the last piece.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn finish(self) -> io::Result<(Store, u64)> {
        let State { target, length } = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let store = match target {
            Target::Memory(mut bytes, mut held, _) => {
                bytes.shrink_to_fit();
                held.shrink_to(bytes.len());
                Store::Memory { bytes, _held: held }
            }
            Target::File(file) => Store::File(file.into_inner().map_err(|error| error.into_error())?),
        };
        Ok((store, length))
    }
}
