//! What must be known before a log can be read, and a file that keeps it.
//!
//! An engine keeps its [`Anchor`] in its own meta page. A log on its own keeps it in the file `anchor`: two slots,
//! written in turn, each with a generation and a checksum (`docs/log-format.md`, section 5). The newest right slot
//! counts; the other one is what a torn write may destroy.

use crate::error::LogError;
use crate::format::{FORMAT_VERSION, POSITION_ALIGNMENT, StoreId};
use crate::sync::{Fault, planted};
use crate::{Lsn, Tsn};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use typhon_store::{Access, Buffer, File, Io, Open, read_exact_at, write_all_at};

/// Where recovery begins, and above which numbers everything new lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// The database.
    pub store: StoreId,
    /// The open whose blocks count; 0 before the first.
    pub open_epoch: u32,
    /// Segments with lower numbers are of the past.
    pub log_floor: u64,
    /// Everything up to here is in what the log protects; recovery begins behind it.
    pub base: Lsn,
    /// Every number below may have been given.
    pub next_tsn: Tsn,
}

impl Anchor {
    /// Of a log into which nothing was written yet.
    pub const fn new(store: StoreId) -> Self {
        Self { store, open_epoch: 0, log_floor: 1, base: Lsn::START, next_tsn: Tsn(1) }
    }
}

/// Bytes of a slot.
const SLOT_BYTES: usize = 4096;
const MAGIC: [u8; 4] = *b"TYAN";
const STATE_AT: usize = 64;
const CRC_AT: usize = SLOT_BYTES - 4;
/// Bytes that the owner of a log may keep in its anchor.
pub const STATE_BYTES_MAX: usize = 2048;

/// A slot's content.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Slot {
    generation: u64,
    anchor: Anchor,
    state: Vec<u8>,
}

impl Slot {
    fn encode(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[8..24].copy_from_slice(&self.anchor.store.0);
        bytes[24..32].copy_from_slice(&self.generation.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.anchor.log_floor.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.anchor.base.0.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.anchor.next_tsn.0.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.anchor.open_epoch.to_le_bytes());
        bytes[60..64].copy_from_slice(&(self.state.len() as u32).to_le_bytes());
        bytes[STATE_AT..STATE_AT + self.state.len()].copy_from_slice(&self.state);
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    }

    /// A slot whose checksum is right, or the version that it was written by.
    fn decode(bytes: &[u8]) -> Option<Result<Self, u32>> {
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if bytes[..4] != MAGIC || crc32c::crc32c(&bytes[..CRC_AT]) != u32_at(CRC_AT) {
            return None;
        }
        if u32_at(4) != FORMAT_VERSION {
            return Some(Err(u32_at(4)));
        }
        let mut store = [0; 16];
        store.copy_from_slice(&bytes[8..24]);
        let state = bytes.get(STATE_AT..STATE_AT + u32_at(60) as usize)?.to_vec();
        if !u64_at(40).is_multiple_of(POSITION_ALIGNMENT) {
            return None;
        }
        let anchor = Anchor {
            store: StoreId(store),
            open_epoch: u32_at(56),
            log_floor: u64_at(32),
            base: Lsn(u64_at(40)),
            next_tsn: Tsn(u64_at(48)),
        };
        Some(Ok(Self { generation: u64_at(24), anchor, state }))
    }
}

/// Is there room for so much state?
pub(crate) fn fits(state: &[u8]) -> Result<(), LogError> {
    let (bytes, limit) = (state.len(), STATE_BYTES_MAX);
    if bytes > limit { Err(LogError::UserBytes { bytes, limit }) } else { Ok(()) }
}

/// The file `anchor`, open.
#[derive(Debug)]
pub(crate) struct AnchorFile {
    file: Arc<dyn File>,
    path: PathBuf,
    current: Slot,
    /// Which of the two slots that is.
    index: usize,
    /// A write or sync has failed: what the file holds is not known any more.
    has_failed: bool,
}

impl AnchorFile {
    pub(crate) fn path(directory: &Path) -> PathBuf {
        directory.join("anchor")
    }

    /// Creates the file, durable with its name.
    pub(crate) fn create(
        io: &dyn Io,
        directory: &Path,
        store: StoreId,
        state: &[u8],
    ) -> Result<(), LogError> {
        let (path, new) = (Self::path(directory), directory.join("anchor.new"));
        match io.remove(&new) {
            // What an interrupted creation left must be gone for good, or a crash may give *it* the name of the anchor.
            Ok(()) => io.sync_dir(directory).map_err(LogError::storage("sync", directory))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(LogError::storage("remove", &new)(error)),
        }
        let file = io.open(&new, Open::cached(Access::Create)).map_err(LogError::storage("create", &new))?;
        let mut bytes = Buffer::zeroed(2 * SLOT_BYTES);
        let slot = Slot { generation: 1, anchor: Anchor::new(store), state: state.to_vec() };
        slot.encode(&mut bytes[..SLOT_BYTES]);
        write_all_at(&*file, &bytes, 0, false).map_err(LogError::storage("write", &new))?;
        file.sync_data().map_err(LogError::storage("sync", &new))?;
        io.rename(&new, &path).map_err(LogError::storage("rename", &new))?;
        io.sync_dir(directory).map_err(LogError::storage("sync", directory))
    }

    /// Opens the file. What it says is durable when this returns.
    pub(crate) fn open(io: &dyn Io, directory: &Path) -> Result<Self, LogError> {
        let path = Self::path(directory);
        let file = io.open(&path, Open::cached(Access::Write)).map_err(LogError::storage("open", &path))?;
        if !planted(Fault::TrustCache) {
            // A dead process may have left in the cache what is not on the disk.
            file.sync_data().map_err(LogError::storage("sync", &path))?;
            file.drop_cache().map_err(LogError::storage("read", &path))?;
            io.sync_dir(directory).map_err(LogError::storage("sync", directory))?;
        }
        let (index, current) = Self::newest(&*file, &path)?;
        Ok(Self { file, path, current, index, has_failed: false })
    }

    /// What the file says, without making sure of it: for looking at a log that somebody else may have open.
    pub(crate) fn peek(io: &dyn Io, directory: &Path) -> Result<(Anchor, u64, usize), LogError> {
        let path = Self::path(directory);
        let file = io.open(&path, Open::cached(Access::Read)).map_err(LogError::storage("open", &path))?;
        let (_, slot) = Self::newest(&*file, &path)?;
        Ok((slot.anchor, slot.generation, slot.state.len()))
    }

    /// The right slot with the highest generation, and which of the two it is.
    fn newest(file: &dyn File, path: &Path) -> Result<(usize, Slot), LogError> {
        let mut bytes = Buffer::zeroed(2 * SLOT_BYTES);
        let is_long = file.length().map_err(LogError::storage("read", path))? >= 2 * SLOT_BYTES as u64;
        if !is_long {
            return Err(LogError::AnchorDamaged { path: path.to_owned(), reason: "the file is too short" });
        }
        read_exact_at(file, &mut bytes, 0).map_err(LogError::storage("read", path))?;
        let slots = bytes.chunks_exact(SLOT_BYTES).map(Slot::decode).enumerate();
        let mut newest: Option<(usize, Slot)> = None;
        for (index, slot) in slots {
            match slot {
                Some(Err(found)) => {
                    return Err(LogError::Version { path: path.to_owned(), found, expected: FORMAT_VERSION });
                }
                Some(Ok(slot))
                    if newest.as_ref().is_none_or(|(_, other)| slot.generation > other.generation) =>
                {
                    newest = Some((index, slot));
                }
                _ => {}
            }
        }
        newest.ok_or_else(|| {
            let path = path.to_owned();
            if bytes[..4] == MAGIC || bytes[..4] == [0; 4] {
                LogError::AnchorDamaged { path, reason: "both slots are damaged" }
            } else {
                LogError::Foreign { path }
            }
        })
    }

    pub(crate) fn anchor(&self) -> &Anchor {
        &self.current.anchor
    }

    pub(crate) fn state(&self) -> &[u8] {
        &self.current.state
    }

    /// Replaces what the file says; durable when this returns. After an error the file is not written any more.
    pub(crate) fn store(&mut self, anchor: Anchor, state: &[u8]) -> Result<(), LogError> {
        fits(state)?;
        if self.has_failed {
            let reason = "an earlier write failed: close the log and open it again";
            return Err(LogError::AnchorDamaged { path: self.path.clone(), reason });
        }
        let next = Slot { generation: self.current.generation + 1, anchor, state: state.to_vec() };
        let index = if planted(Fault::AnchorInPlace) { self.index } else { 1 - self.index };
        let mut bytes = Buffer::zeroed(SLOT_BYTES);
        next.encode(&mut bytes);
        self.has_failed = true;
        let at = (index * SLOT_BYTES) as u64;
        write_all_at(&*self.file, &bytes, at, false).map_err(LogError::storage("write", &self.path))?;
        self.file.sync_data().map_err(LogError::storage("sync", &self.path))?;
        (self.current, self.index, self.has_failed) = (next, index, false);
        Ok(())
    }
}
