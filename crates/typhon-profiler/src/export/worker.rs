//! The thread of one exporter.
#![forbid(unsafe_code)]

use super::queue::{Item, Queue};
use super::summary::Summary;
use super::{ExportError, Exporter};
use crate::drain::batch::Batch;
use crate::say::say;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Failures in a row after which an exporter gets no more batches.
const MAX_FAILURES: u32 = 8;
/// Time without a batch after which the exporter is asked to hand on what it keeps.
const FLUSH_INTERVAL: Duration = Duration::from_millis(500);

/// What an exporter did in a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ExporterReport {
    /// Name of the exporter.
    pub name: String,
    /// Batches processed, summaries of losses included.
    pub batches: u64,
    /// Records processed, the profiler's own included.
    pub records: u64,
    /// Records that it did not get or could not write.
    pub dropped_records: u64,
    /// Of those, the ones that its output does not report either: it failed until the end.
    pub unreported_records: u64,
    /// First failure.
    pub error: Option<String>,
    /// It failed too often, or its destination was full, and got no more batches.
    pub detached: bool,
    /// It was closed.
    pub closed: bool,
}

pub(crate) struct Worker {
    exporter: Box<dyn Exporter>,
    queue: Arc<Queue>,
    report: Arc<Mutex<ExporterReport>>,
    /// Remains of batches whose processing failed.
    failed: Summary,
    failures: u32,
}

impl Worker {
    pub(crate) fn new(
        exporter: Box<dyn Exporter>,
        queue: Arc<Queue>,
        report: Arc<Mutex<ExporterReport>>,
    ) -> Self {
        Self { exporter, queue, report, failed: Summary::default(), failures: 0 }
    }

    /// Processes items until the end of the session.
    pub(crate) fn run(mut self) {
        loop {
            match self.queue.take(FLUSH_INTERVAL) {
                None => self.flush(),
                Some(Item::Batch { before, batch }) => {
                    before.iter().for_each(|batch| self.process(batch));
                    self.process(&batch);
                    self.queue.done();
                }
                Some(Item::Describe(program)) => {
                    let result = guarded(|| self.exporter.describe(&program));
                    self.note(result);
                    self.queue.done();
                }
                Some(Item::Cancel) => {
                    self.cancel();
                    return self.queue.abandon();
                }
                Some(Item::Close { before, end }) => {
                    before.iter().for_each(|batch| self.process(batch));
                    self.write_remains();
                    self.flush();
                    let result = guarded(|| self.exporter.close(&end));
                    let closed = result.is_ok();
                    self.note(result);
                    let unreported = self.failed.lost();
                    self.update(|report| {
                        report.closed = closed;
                        report.unreported_records = unreported;
                    });
                    return self.queue.abandon();
                }
            }
        }
    }

    /// The session did not come about.
    pub(crate) fn cancel(&mut self) {
        cancel(&mut *self.exporter);
    }

    fn process(&mut self, batch: &Batch) {
        if !self.is_detached() && !self.failed.is_empty() {
            self.write_remains();
        }
        // A batch must not overtake what remains of the ones before it.
        if self.is_detached() || !self.failed.is_empty() || !self.attempt(batch) {
            self.drop_batch(batch);
        }
    }

    /// Writes what remains of failed batches; whatever fails again stays.
    fn write_remains(&mut self) {
        let mut batches = self.failed.take_batches().into_iter();
        while let Some(batch) = batches.next() {
            if !self.attempt(&batch) {
                self.failed.absorb(&batch);
                batches.by_ref().for_each(|batch| self.failed.absorb(&batch));
            }
        }
    }

    fn attempt(&mut self, batch: &Batch) -> bool {
        let result = guarded(|| self.exporter.process(batch));
        let processed = result.is_ok();
        if processed {
            self.failures = 0;
            self.update(|report| {
                report.batches += 1;
                report.records += u64::from(batch.record_count());
            });
        }
        self.note(result);
        processed
    }

    fn drop_batch(&mut self, batch: &Batch) {
        let lost = self.failed.lost();
        self.failed.absorb(batch);
        let more = self.failed.lost() - lost;
        self.update(|report| report.dropped_records += more);
    }

    fn flush(&mut self) {
        if !self.is_detached() {
            let result = guarded(|| self.exporter.flush());
            self.note(result);
        }
    }

    fn is_detached(&self) -> bool {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).detached
    }

    /// Takes note of a failure: one line for the first one, detachment after too many or when there is no room.
    fn note(&mut self, result: Result<(), ExportError>) {
        let Err(error) = result else { return };
        self.failures += 1;
        let detached = error.storage_full || self.failures >= MAX_FAILURES;
        self.update(|report| {
            if report.error.is_none() {
                say(format_args!(
                    "exporter {}: {error}; what it cannot take is counted, the program goes on",
                    report.name
                ));
                report.error = Some(error.to_string());
            }
            report.detached |= detached;
        });
    }

    fn update(&self, change: impl FnOnce(&mut ExporterReport)) {
        change(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Has an exporter undo its beginning. If that panics, there is nobody to tell more than the panic has.
pub(crate) fn cancel(exporter: &mut dyn Exporter) {
    let _ = guarded(|| {
        exporter.cancel();
        Ok(())
    });
}

/// Runs a call into an exporter; a panic becomes an error.
pub(crate) fn guarded(call: impl FnOnce() -> Result<(), ExportError>) -> Result<(), ExportError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        // The payload is the exporter's as well, and its destructor may panic in its turn.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(again);
        }
        Err(ExportError::new(format!("panicked: {text}")))
    })
}
