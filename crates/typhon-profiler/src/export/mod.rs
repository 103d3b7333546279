//! Where batches go. Every exporter has a thread and a bounded queue of its own, so that one that is slow, broken or
//! stuck costs the others nothing (brief 02 B-20, B-21).
#![forbid(unsafe_code)]

mod file;
mod memory;
pub(crate) mod queue;
pub(crate) mod summary;
pub(crate) mod worker;

pub use crate::drain::batch::{Batch, MAX_BATCH_BYTES, MAX_BATCH_RECORDS};
pub use file::FileExporter;
pub use memory::{MemoryExporter, MemoryTrace};

use crate::program::Program;
use crate::site::SiteInfo;
use std::error::Error;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::SystemTime;

/// What an exporter may fail with. `storage_full` makes it give up at once instead of after eight failures in a row.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ExportError {
    /// What failed, for one line on stderr.
    pub message: String,
    /// There is no room at the destination.
    pub storage_full: bool,
    /// The cause, if another error is.
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl ExportError {
    /// A failure without a cause of its own.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), storage_full: false, source: None }
    }
}

/// Is there no room, so that trying again is of no use?
fn is_full(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

impl From<typhon_trace::TraceError> for ExportError {
    fn from(error: typhon_trace::TraceError) -> Self {
        let storage_full =
            matches!(&error, typhon_trace::TraceError::Io { source, .. } if is_full(source.kind()));
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        Self { message: format!("{error}{cause}"), storage_full, source: Some(Box::new(error)) }
    }
}

/// What an exporter knows when a session begins.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionStart {
    /// Wall clock.
    pub wall_clock: SystemTime,
    /// Trace clock, in nanoseconds.
    pub time_ns: i64,
    /// Slot of the profiler's own records.
    pub consumer_slot: u8,
    /// Every call site of the program.
    pub sites: &'static [SiteInfo],
    /// What is recorded, if that is known already.
    pub program: Option<Arc<Program>>,
}

/// What an exporter learns when a session ends.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SessionEnd {
    /// Trace clock, in nanoseconds.
    pub time_ns: i64,
    /// Trace clock when the session began.
    pub start_ns: i64,
}

/// A sink of batches. All calls come from one thread of its own, except [`Exporter::init`] and [`Exporter::cancel`],
/// which may come from the thread that starts the session. A panic in any of them counts as a failure.
pub trait Exporter: Send {
    /// Name in messages and reports.
    fn name(&self) -> &str;

    /// Called once, before the first batch.
    ///
    /// # Errors
    /// The session then does not start, and [`Exporter::cancel`] is called.
    fn init(&mut self, start: &SessionStart) -> Result<(), ExportError>;

    /// Called instead of [`Exporter::close`], without a batch before it, when the session does not come about: undoes
    /// what [`Exporter::init`] did, also where that failed half way.
    fn cancel(&mut self) {}

    /// Takes one batch. Name ids in it are below [`Batch::name_count`]; [`names`] gives the texts.
    ///
    /// # Errors
    /// The batch then counts as dropped, and the loss is reported in front of the next batch.
    fn process(&mut self, batch: &Batch) -> Result<(), ExportError>;

    /// Called when the program is described, for the first time or anew, while the session runs.
    ///
    /// # Errors
    /// One line on stderr, no more.
    fn describe(&mut self, program: &Arc<Program>) -> Result<(), ExportError> {
        let _ = program;
        Ok(())
    }

    /// Called when the queue is empty, and before [`Exporter::close`]: hands on what was kept back.
    ///
    /// # Errors
    /// One line on stderr, no more.
    fn flush(&mut self) -> Result<(), ExportError> {
        Ok(())
    }

    /// Called once, after the last batch.
    ///
    /// # Errors
    /// They appear in the report of the session.
    fn close(&mut self, end: &SessionEnd) -> Result<(), ExportError>;
}

/// The names with ids from `from` to below `to`, which is at most [`Batch::name_count`].
pub fn names(from: u32, to: u32) -> Vec<(u16, &'static str)> {
    crate::names::range(from, to)
}
