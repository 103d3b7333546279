//! What every log must offer to take part.

use std::error::Error;
use std::path::Path;

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// An open log that several threads append to.
pub trait Contender: Send + Sync {
    /// Appends so many copies of a record, each a record of its own, and returns when all are durable: written and
    /// synced, and so is everything that is needed to find them again.
    fn append_durable(&self, record: &[u8], count: usize) -> Result<()>;

    /// Appends a record without waiting for its durability; `false` if the log has no such append.
    fn append_deferred(&self, _record: &[u8]) -> Result<bool> {
        Ok(false)
    }

    /// Makes durable what was deferred.
    fn flush(&self) -> Result<()> {
        Ok(())
    }

    /// The calling thread appends nothing more in this round.
    fn leave(&self) -> Result<()> {
        Ok(())
    }

    /// Between two rounds: gives back space that is not needed any more, where the log does not by itself.
    fn rest(&self) -> Result<()> {
        Ok(())
    }
}

/// Records and bytes of them that a recovery found.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Recovery {
    pub records: u64,
    pub bytes: u64,
}

impl Recovery {
    pub fn add(&mut self, record: &[u8]) {
        self.records += 1;
        self.bytes += record.len() as u64;
    }
}

/// A kind of log.
#[derive(Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    /// What it does for an append that others do not, or the other way round.
    pub does: &'static str,
    /// Opens a log in an empty directory.
    pub create: fn(&Path) -> Result<Box<dyn Contender>>,
    /// Opens what was closed, and reads every record.
    pub recover: fn(&Path) -> Result<Recovery>,
}
