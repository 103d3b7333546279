//! Files that are ready to become segments: full length, written once so that the file system allocates nothing
//! later, and marked by a header that says that no block follows.

use crate::error::{LogError, said};
use crate::format::{SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::names::Name;
use crate::segments::Place;
use crate::sync::{Mutex, lock};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use typhon_store::{Access, Buffer, File, Open, write_all_at};

/// Bytes zeroed by one write. Appends go on meanwhile, and each of their syncs waits for the write that the device is busy
/// with: with 1 MiB a disk of 200 MB/s made them 5 to 8 ms long.
const CHUNK_BYTES: u64 = 128 << 10;

/// A file that may be overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spare {
    pub(crate) name: Name,
    pub(crate) bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Spares {
    files: Mutex<Vec<Spare>>,
    /// Number for the next name.
    next_number: AtomicU64,
    segment_bytes: u64,
    /// Kept ready; those that are missing are made.
    wanted: usize,
}

impl Spares {
    pub(crate) fn new(files: Vec<Spare>, next_number: u64, segment_bytes: u64, wanted: usize) -> Self {
        Self { files: Mutex::new(files), next_number: AtomicU64::new(next_number), segment_bytes, wanted }
    }

    /// A file of exactly this length, if there is one.
    pub(crate) fn take(&self, bytes: u64) -> Option<Spare> {
        let mut files = lock(&self.files);
        let index = files.iter().position(|spare| spare.bytes == bytes)?;
        Some(files.swap_remove(index))
    }

    /// Everything, to be sorted out.
    pub(crate) fn take_all(&self) -> Vec<Spare> {
        std::mem::take(&mut lock(&self.files))
    }

    /// Keeps a file that is not needed any more, or says that it should be deleted. Kept are those that are always
    /// ready and `more`.
    pub(crate) fn keep(&self, spare: Spare, more: usize) -> bool {
        let mut files = lock(&self.files);
        let keeps = spare.bytes == self.segment_bytes && files.len() < (self.wanted + more).max(1);
        if keeps {
            files.push(spare);
        }
        keeps
    }

    /// Are there fewer than wanted?
    pub(crate) fn is_short(&self) -> bool {
        lock(&self.files).len() < self.wanted
    }

    /// Is there one of the usual length?
    pub(crate) fn has_one(&self) -> bool {
        lock(&self.files).iter().any(|spare| spare.bytes == self.segment_bytes)
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        lock(&self.files).iter().map(|spare| spare.bytes).sum()
    }

    /// Prepares one more file if there are fewer than wanted; says whether it did.
    pub(crate) fn prepare(&self, place: &Place) -> Result<bool, LogError> {
        let is_short = self.is_short();
        if is_short {
            let spare = self.create(place, self.segment_bytes)?;
            lock(&self.files).push(spare);
        }
        Ok(is_short)
    }

    /// A new file of zeros. If it cannot be completed it is removed again.
    pub(crate) fn create(&self, place: &Place, bytes: u64) -> Result<Spare, LogError> {
        let name = Name::Spare(self.next_number.fetch_add(1, Ordering::Relaxed));
        let path = place.path(name);
        let file = place.io.open(&path, Open::direct(Access::Create));
        let file = file.map_err(|error| no_room(error, "create", &path, bytes))?;
        if let Err(error) = fill(&*file, place, bytes) {
            // It is not needed; if it cannot be removed either, the next open does it.
            let _ = place.io.remove(&path);
            return Err(no_room(error, "fill", &path, bytes));
        }
        Ok(Spare { name, bytes })
    }
}

/// A full disk is not the end of a log: nothing was promised for the file yet.
fn no_room(error: io::Error, doing: &'static str, path: &Path, bytes: u64) -> LogError {
    let remedy = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space on the disk, or open it with smaller segments"
        }
        io::ErrorKind::FileTooLarge => {
            "raise the limit on the size of files, or open it with smaller segments"
        }
        _ => return LogError::storage(doing, path)(error),
    };
    LogError::Full {
        reason: format!("{} takes {bytes} bytes: {}", path.display(), said(path, &error)),
        remedy,
    }
}

fn fill(file: &dyn File, place: &Place, bytes: u64) -> io::Result<()> {
    let mut chunk = Buffer::zeroed(CHUNK_BYTES.min(bytes) as usize);
    let mut at = SEGMENT_HEADER_BYTES;
    while at < bytes {
        let length = (bytes - at).min(chunk.len() as u64) as usize;
        write_all_at(file, &chunk[..length], at, false)?;
        at += length as u64;
    }
    let header = SegmentHeader {
        store: place.store,
        id: 0,
        first_lsn: 0,
        schema_epoch: 0,
        open_epoch: place.epoch,
        size_bytes: bytes,
    };
    header.encode(&mut chunk);
    write_all_at(file, &chunk[..SEGMENT_HEADER_BYTES as usize], 0, false)?;
    file.sync_data()
}
