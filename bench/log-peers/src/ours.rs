//! The log of Typhon, with the options of a server.

use crate::contender::{Contender, Recovery, Result};
use std::path::Path;
use std::sync::Arc;
use typhon_log::{Draft, Options, Store};
use typhon_store::Io;
use typhon_sync::Deadline;

pub struct Ours(Store);

impl Ours {
    pub fn create(io: Arc<dyn Io>, directory: &Path) -> Result<Self> {
        Ok(Self(Store::open(io, directory, Options::default(), b"")?.start(b"")?))
    }
}

impl Contender for Ours {
    fn append_durable(&self, record: &[u8], count: usize) -> Result<()> {
        for _ in 1..count {
            self.0.append(&Draft::commit(record), Deadline::INFINITE)?;
        }
        self.0.commit(&Draft::commit(record), Deadline::INFINITE)?;
        Ok(())
    }

    fn append_deferred(&self, record: &[u8]) -> Result<bool> {
        self.0.append(&Draft::commit(record), Deadline::INFINITE)?;
        Ok(true)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.0.wait_durable(self.0.watermarks().appended, Deadline::INFINITE)?)
    }

    fn rest(&self) -> Result<()> {
        self.0.checkpoint(self.0.watermarks().durable, b"")?;
        Ok(())
    }
}

pub fn recover(io: Arc<dyn Io>, directory: &Path) -> Result<Recovery> {
    let opening = Store::open(io, directory, Options::default(), b"")?;
    let mut found = Recovery::default();
    let mut frames = opening.frames();
    while let Some(frame) = frames.next_frame()? {
        found.add(frame.body);
    }
    Ok(found)
}
