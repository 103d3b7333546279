//! The segment files of an open log: the one that is written, those behind it, and how the next one comes to be.

use crate::format::{BLOCK_HEADER_BYTES, SEGMENT_HEADER_BYTES, SegmentHeader, StoreId};
use crate::names::Name;
use crate::options::{Options, SyncMode};
use crate::spares::{Spare, Spares};
use crate::sync::{Fault, planted};
use crate::{LogError, Lsn};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use typhon_profiler::{events::WalSegmentRotate, span};
use typhon_store::{Access, Buffer, File, Io, Open, write_all_at};

/// Where a log lives and what its files belong to.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) io: Arc<dyn Io>,
    pub(crate) directory: PathBuf,
    pub(crate) store: StoreId,
    /// The open whose blocks are written here.
    pub(crate) epoch: u32,
}

impl Place {
    pub(crate) fn path(&self, name: Name) -> PathBuf {
        self.directory.join(name.to_string())
    }
}

/// A segment behind the newest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sealed {
    id: u64,
    end_lsn: u64,
    bytes: u64,
}

/// The segment that blocks are written to.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) id: u64,
    pub(crate) file: Arc<dyn File>,
    pub(crate) path: PathBuf,
    /// Where the next block goes.
    pub(crate) position: u64,
    pub(crate) size_bytes: u64,
}

/// Where segments are made, and how.
#[derive(Debug)]
pub(crate) struct Maker {
    pub(crate) place: Place,
    pub(crate) spares: Arc<Spares>,
    pub(crate) options: Options,
}

impl Maker {
    /// Makes a segment that is durable with its name when this returns, and room for a block of so many bytes of
    /// frames.
    pub(crate) fn make(&self, id: u64, first_lsn: u64, frames_bytes: u64) -> Result<Active, LogError> {
        let size_bytes = self.options.segment_bytes_for(frames_bytes);
        let spare = match self.spares.take(size_bytes) {
            Some(spare) => spare,
            None => self.spares.create(&self.place, size_bytes)?,
        };
        let from = self.place.path(spare.name);
        let open = Open { access: Access::Write, direct: self.options.direct };
        let file = self.place.io.open(&from, open).map_err(LogError::storage("open", &from))?;
        let header = SegmentHeader {
            store: self.place.store,
            id,
            first_lsn,
            schema_epoch: self.options.schema_epoch,
            open_epoch: self.place.epoch,
            size_bytes,
        };
        let mut bytes = Buffer::zeroed(SEGMENT_HEADER_BYTES as usize);
        header.encode(&mut bytes);
        // Durable under the old name first: under the new one the file is a whole segment or not there.
        let written = write_all_at(&*file, &bytes, 0, false);
        let synced = written.and_then(|()| match planted(Fault::HeaderNotDurable) {
            true => Ok(()),
            false => file.sync_data(),
        });
        synced.map_err(LogError::storage("write the header of", &from))?;
        let path = self.place.path(Name::Segment(id));
        self.place.io.rename(&from, &path).map_err(LogError::storage("rename", &from))?;
        if !planted(Fault::AckBeforeDirSync) {
            let directory = &self.place.directory;
            self.place.io.sync_dir(directory).map_err(LogError::storage("sync", directory))?;
        }
        Ok(Active { id, file, path, position: SEGMENT_HEADER_BYTES, size_bytes })
    }
}

#[derive(Debug)]
pub(crate) struct Segments {
    pub(crate) maker: Maker,
    pub(crate) active: Active,
    sealed: VecDeque<Sealed>,
}

impl Segments {
    pub(crate) fn new(maker: Maker, active: Active) -> Self {
        Self { maker, active, sealed: VecDeque::new() }
    }

    /// Bytes of frames for which the active segment has room in one block.
    pub(crate) fn room_bytes(&self) -> u64 {
        let rest = self.active.size_bytes - self.active.position;
        rest.saturating_sub(BLOCK_HEADER_BYTES as u64)
    }

    /// Bytes of all files.
    pub(crate) fn total_bytes(&self) -> u64 {
        let sealed: u64 = self.sealed.iter().map(|segment| segment.bytes).sum();
        self.active.size_bytes + sealed + self.maker.spares.total_bytes()
    }

    /// Goes on in a new segment, with room for a block of so many bytes of frames. Everything before `lsn` is durable.
    pub(crate) fn rotate(&mut self, lsn: u64, frames_bytes: u64) -> Result<(), LogError> {
        let used = self.total_bytes() - self.maker.spares.total_bytes();
        let limit = self.maker.options.max_bytes;
        let more = self.maker.options.segment_bytes_for(frames_bytes);
        if used + more > limit {
            return Err(LogError::Full {
                reason: format!(
                    "segments take {used} of at most {limit} bytes, and the next one needs {more}"
                ),
                remedy: "a checkpoint reclaims them, or raise `max_bytes`",
            });
        }
        let id = self.active.id + 1;
        let _span = span!(WalSegmentRotate { new_segment_index: id.try_into().unwrap_or(i32::MAX) });
        let next = self.maker.make(id, lsn, frames_bytes)?;
        let last = std::mem::replace(&mut self.active, next);
        self.sealed.push_back(Sealed { id: last.id, end_lsn: lsn, bytes: last.size_bytes });
        Ok(())
    }

    /// Writes a block, a multiple of 4096 bytes, behind the last one.
    pub(crate) fn write(&mut self, block: &[u8]) -> Result<(), LogError> {
        let durable = self.maker.options.sync == SyncMode::WriteThrough;
        let active = &mut self.active;
        write_all_at(&*active.file, block, active.position, durable)
            .map_err(LogError::storage("write", &active.path))?;
        active.position += block.len() as u64;
        Ok(())
    }

    /// Makes what was written durable.
    pub(crate) fn sync(&self) -> Result<(), LogError> {
        if self.maker.options.sync == SyncMode::WriteThrough {
            return Ok(());
        }
        let mut result = self.active.file.sync_data();
        if planted(Fault::RetrySync) && result.is_err() {
            result = self.active.file.sync_data();
        }
        result.map_err(LogError::storage("sync", &self.active.path))
    }

    /// Reuses or deletes segments that end at or before `lsn`; the newest one stays, and so does any whose successor
    /// holds nothing durable. Returns how many were given up.
    ///
    /// As many as are given up are kept beside those that are always ready: the time until the next call needs about as
    /// many again, and a file that is made costs as much as filling it. A quieter time keeps fewer.
    pub(crate) fn reclaim(&mut self, lsn: Lsn, durable: u64) -> Result<usize, LogError> {
        let is_covered = |segment: &&Sealed| segment.end_lsn <= lsn.0 && segment.end_lsn < durable;
        let count = self.sealed.iter().take_while(is_covered).count();
        for _ in 0..count {
            if let Some(first) = self.sealed.pop_front() {
                self.give_up(first, count)?;
            }
        }
        Ok(count)
    }

    fn give_up(&self, segment: Sealed, more: usize) -> Result<(), LogError> {
        let spare = Spare { name: Name::Segment(segment.id), bytes: segment.bytes };
        if !self.maker.spares.keep(spare, more) {
            let path = self.maker.place.path(spare.name);
            // If the name comes back after a crash, the next open finds nothing in it that it needs.
            self.maker.place.io.remove(&path).map_err(LogError::storage("remove", &path))?;
        }
        Ok(())
    }
}
