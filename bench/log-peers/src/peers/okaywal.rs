//! okaywal: a log and nothing else. One entry is written at a time; syncs are shared.

use crate::contender::{Contender, Recovery, Result};
use okaywal::{Configuration, Entry, EntryId, LogManager, ReadChunkResult, SegmentReader, WriteAheadLog};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

struct OkayWal(WriteAheadLog);

#[derive(Debug, Default, Clone)]
struct Counter(Arc<Mutex<Recovery>>);

impl LogManager for Counter {
    fn recover(&mut self, entry: &mut Entry<'_>) -> io::Result<()> {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match entry.read_chunk()? {
                ReadChunkResult::Chunk(mut chunk) => {
                    let record = chunk.read_all()?;
                    if !chunk.check_crc()? {
                        return Err(io::ErrorKind::InvalidData.into());
                    }
                    found.add(&record);
                }
                ReadChunkResult::EndOfEntry | ReadChunkResult::AbortedEntry => return Ok(()),
            }
        }
    }

    fn checkpoint_to(&mut self, _: EntryId, _: &mut SegmentReader, _: &WriteAheadLog) -> io::Result<()> {
        Ok(())
    }
}

/// One segment, allocated before, that is never given to the checkpointer.
fn open(directory: &Path, counter: Counter) -> Result<WriteAheadLog> {
    let configuration =
        Configuration::default_for(directory).preallocate_bytes(64 << 20).checkpoint_after_bytes(4 << 30);
    Ok(configuration.open(counter)?)
}

pub fn create(directory: &Path) -> Result<Box<dyn Contender>> {
    Ok(Box::new(OkayWal(open(directory, Counter::default())?)))
}

impl Contender for OkayWal {
    fn append_durable(&self, record: &[u8], count: usize) -> Result<()> {
        let mut entry = self.0.begin_entry()?;
        for _ in 0..count {
            entry.write_chunk(record)?;
        }
        entry.commit()?;
        Ok(())
    }
}

impl Drop for OkayWal {
    fn drop(&mut self) {
        // Its threads hold the log only weakly, but go on until they notice; what is measured next must not meet them.
        if let Err(error) = self.0.clone().shutdown() {
            eprintln!("okaywal does not shut down: {error}");
        }
    }
}

pub fn recover(directory: &Path) -> Result<Recovery> {
    let counter = Counter::default();
    let log = open(directory, counter.clone())?;
    let found = *counter.0.lock().unwrap_or_else(PoisonError::into_inner);
    log.shutdown()?;
    Ok(found)
}
