//! A log on its own: a directory with a lock, an anchor and segments.

use crate::anchor::{self, Anchor, AnchorFile};
use crate::error::{CREATE_DIRECTORY, LogError};
use crate::format::StoreId;
use crate::log::Log;
use crate::names::Name;
use crate::options::Options;
use crate::recover::{Recovered, Replay, Report};
use crate::sync::{Fault, Mutex, lock, planted};
use crate::{Lsn, Tsn};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use typhon_store::{Io, Lock};

/// A log that was opened and waits for its owner to take in what it holds.
#[derive(Debug)]
pub struct Opening {
    recovered: Recovered,
    anchor: AnchorFile,
    lock: Box<dyn Lock>,
}

/// An open log with its directory. All of [`Log`] is reached through it.
#[derive(Debug)]
pub struct Store {
    log: Log,
    anchor: Mutex<AnchorFile>,
    _lock: Box<dyn Lock>,
}

impl Store {
    /// Opens the log in a directory. Without one, and without [`Options::must_exist`], creates both.
    ///
    /// `initial_state` is what [`Opening::state`] says of a new log.
    ///
    /// # Errors
    /// [`LogError::Locked`] if it is open elsewhere, [`LogError::NotALog`] if it must exist and does not,
    /// [`LogError::UserBytes`] for too much state; otherwise as [`Recovered::open`]. An error changes nothing.
    pub fn open(
        io: Arc<dyn Io>,
        directory: &Path,
        options: Options,
        initial_state: &[u8],
    ) -> Result<Opening, LogError> {
        options.validate()?;
        anchor::fits(initial_state)?;
        if options.must_exist {
            has_log(&*io, directory)?;
        }
        create_directory(&*io, directory)?;
        let lock_path = directory.join("lock");
        let lock = io.lock(&lock_path).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => LogError::Locked { path: lock_path.clone() },
            _ => LogError::storage("lock", &lock_path)(error),
        })?;
        let names = io.list(directory).map_err(LogError::storage("read", directory))?;
        // A spare is made when the anchor is durable, like a segment.
        let mut has_segments = false;
        for entry in &names {
            has_segments |= Name::of(directory, entry)?.is_some();
        }
        if !names.iter().any(|entry| entry.name == "anchor") {
            if has_segments {
                return Err(LogError::AnchorMissing { path: AnchorFile::path(directory) });
            }
            AnchorFile::create(&*io, directory, random_id(), initial_state)?;
        }
        let anchor = AnchorFile::open(&*io, directory)?;
        let recovered = Recovered::open(io, directory, *anchor.anchor(), options)?;
        Ok(Opening { recovered, anchor, lock })
    }

    /// Says that everything up to a position, which must be durable, is in `state` or wherever it points to: recovery
    /// begins behind it from now on, and the segments before are reclaimed. Returns how many.
    ///
    /// # Errors
    /// [`LogError::NotDurable`] and [`LogError::Covered`] if the position is not one of this log that is durable and not
    /// covered yet; otherwise the anchor could not be written: the one before still counts, and is not touched again
    /// until the log is reopened.
    pub fn checkpoint(&self, lsn: Lsn, state: &[u8]) -> Result<usize, LogError> {
        let marks = self.log.watermarks();
        if lsn > marks.durable {
            return Err(LogError::NotDurable { lsn, durable: marks.durable });
        }
        let lsn = lsn.of_frame_end();
        let mut file = lock(&self.anchor);
        let last = *file.anchor();
        if lsn < last.base {
            return Err(LogError::Covered { lsn, base: last.base });
        }
        let next_tsn = if planted(Fault::StaleNextTsn) { Tsn(1) } else { marks.next_tsn };
        if planted(Fault::RecycleEarly) {
            self.log.reclaim(lsn)?;
        }
        file.store(Anchor { base: lsn, next_tsn, ..last }, state)?;
        drop(file);
        self.log.reclaim(lsn)
    }

    /// Closes the log, see [`Log::close`], and then the directory.
    ///
    /// # Errors
    /// As [`Log::close`].
    pub fn close(self, deadline: typhon_sync::Deadline) -> Result<crate::Watermarks, LogError> {
        self.log.close(deadline)
    }
}

impl Deref for Store {
    type Target = Log;

    fn deref(&self) -> &Log {
        &self.log
    }
}

impl Opening {
    /// What the owner gave to the last [`Opening::start`] or [`Store::checkpoint`]: it covers everything up to the
    /// base.
    pub fn state(&self) -> &[u8] {
        self.anchor.state()
    }

    /// What recovery found.
    pub fn report(&self) -> Report {
        self.recovered.report()
    }

    /// The frames that the state does not cover, in order.
    pub fn frames(&self) -> Replay<'_> {
        self.recovered.frames()
    }

    /// Starts the log. `state` covers everything that was recovered, and what it points to is durable.
    ///
    /// # Errors
    /// [`LogError::UserBytes`] for too much state, before anything is written; otherwise if the first segment or the anchor
    /// cannot be. The next open finds the same frames.
    pub fn start(self, state: &[u8]) -> Result<Store, LogError> {
        anchor::fits(state)?;
        let Self { recovered, mut anchor, lock } = self;
        let log = recovered.start(|next| anchor.store(*next, state))?;
        Ok(Store { log, anchor: Mutex::new(anchor), _lock: lock })
    }
}

/// Is there anything of a log? Before the lock, which would be created.
fn has_log(io: &dyn Io, directory: &Path) -> Result<(), LogError> {
    let absent = || LogError::NotALog { path: directory.to_owned() };
    let entries = io.list(directory).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => absent(),
        _ => LogError::storage("read", directory)(error),
    })?;
    for entry in &entries {
        if entry.name == "anchor" || Name::of(directory, entry)?.is_some() {
            return Ok(());
        }
    }
    Err(absent())
}

/// The directory, durable in its parent.
fn create_directory(io: &dyn Io, directory: &Path) -> Result<(), LogError> {
    io.create_dir(directory).map_err(LogError::storage(CREATE_DIRECTORY, directory))?;
    match directory.parent() {
        Some(parent) => {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            io.sync_dir(parent).map_err(LogError::storage("sync", parent))
        }
        None => Ok(()),
    }
}

/// Chosen by chance: the seeds of two hash maps are as random as the system makes them.
fn random_id() -> StoreId {
    let mut id = [0; 16];
    for half in id.chunks_exact_mut(8) {
        half.copy_from_slice(&RandomState::new().build_hasher().finish().to_le_bytes());
    }
    StoreId(id)
}
