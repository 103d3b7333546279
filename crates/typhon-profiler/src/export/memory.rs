//! Batches kept in memory: for tests, and for programs that look at their own trace.
#![forbid(unsafe_code)]

use super::{Batch, ExportError, Exporter, SessionEnd, SessionStart};
use std::sync::{Arc, Mutex, PoisonError};
use typhon_trace::record::{Record, RecordWalk};

/// Keeps every record of a session.
#[derive(Debug, Default)]
pub struct MemoryExporter {
    trace: MemoryTrace,
}

/// What a [`MemoryExporter`] has so far; a handle that can be cloned and outlives the session.
#[derive(Debug, Clone, Default)]
pub struct MemoryTrace {
    blocks: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl MemoryExporter {
    /// An exporter and the handle to what it keeps.
    pub fn new() -> (Self, MemoryTrace) {
        let exporter = Self::default();
        let trace = exporter.trace.clone();
        (exporter, trace)
    }
}

impl MemoryTrace {
    /// The blocks so far: whole records, each block in the order of time.
    pub fn blocks(&self) -> Vec<Vec<u8>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Shows `look` every record so far, block by block.
    pub fn for_each(&self, mut look: impl FnMut(&Record<'_>)) {
        for block in self.blocks() {
            RecordWalk::new(&block).for_each(|record| look(&record));
        }
    }
}

impl Exporter for MemoryExporter {
    fn name(&self) -> &str {
        "memory"
    }

    fn init(&mut self, _: &SessionStart) -> Result<(), ExportError> {
        Ok(())
    }

    fn process(&mut self, batch: &Batch) -> Result<(), ExportError> {
        self.trace.blocks.lock().unwrap_or_else(PoisonError::into_inner).push(batch.records().to_vec());
        Ok(())
    }

    fn close(&mut self, _: &SessionEnd) -> Result<(), ExportError> {
        Ok(())
    }
}
