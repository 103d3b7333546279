//! Sessions that nobody has asked for a while give their memory back; their index is in its file.

use super::memory::Held;
use super::{Outcome, Session, SessionError, Shared};
use crate::clock::Clock;
use crate::index::Index;
use crate::index::store::Store;
use crate::sidecar::{self, Fingerprint};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// An index, and the memory that it takes.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) index: Arc<Index>,
    _held: Held,
}

impl Ready {
    /// An index and the memory taken for it.
    pub(super) fn new(index: Arc<Index>, held: Held) -> Self {
        Self { index, _held: held }
    }
}

/// The file that the index is kept in.
#[derive(Debug, Clone)]
pub(super) struct Sidecar {
    pub(super) path: PathBuf,
    pub(super) fingerprint: Fingerprint,
}

/// The file of an index that is not in memory.
#[derive(Debug)]
pub(super) struct Resting {
    file: File,
    fingerprint: Fingerprint,
}

impl Session {
    /// When the index was last asked for something.
    pub fn last_used(&self) -> Instant {
        *self.shared.last_used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of the index, which is read from its file again when somebody asks: that takes milliseconds. False when it
    /// has no file, or there is no index.
    pub fn rest(&self) -> bool {
        let Some(Sidecar { fingerprint, .. }) = self.shared.sidecar() else { return false };
        let mut outcome = self.shared.lock();
        let Outcome::Ready(ready) = &*outcome else { return false };
        let Store::File(file) = &ready.index.store else { return false };
        // Its own handle: the index stays this one, whatever becomes of the name.
        let Ok(file) = file.try_clone() else { return false };
        *outcome = Outcome::Resting(Resting { file, fingerprint });
        true
    }
}

impl Shared {
    pub(super) fn touch(&self) {
        *self.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Reads the index again. It was sound, so what is wrong with it now has happened to the file since.
    ///
    /// # Errors
    /// [`SessionError::NoRoom`]: it goes on resting.
    pub(super) fn wake(&self, Resting { file, fingerprint }: &Resting) -> Result<Outcome, SessionError> {
        let clock = Clock::new(self.trace.header().timestamp_frequency);
        let loaded = file.try_clone().and_then(|file| sidecar::read(file, fingerprint, clock));
        match loaded {
            Ok(index) => {
                let held = self.memory.heads(index.resident_bytes())?;
                Ok(Outcome::Ready(Ready::new(Arc::new(index), held)))
            }
            Err(error) => Ok(Outcome::Failed(format!("{error}; open the file again to index it anew"))),
        }
    }
}
