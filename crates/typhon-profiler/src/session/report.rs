//! What a session did.
#![forbid(unsafe_code)]

use crate::clock::{Clock, ClockMap};
use crate::drain::Drain;
pub use crate::export::worker::ExporterReport;
use crate::local;

/// The numbers of a session, given by [`stop`](super::stop).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionReport {
    /// Records of the program's threads that went to the exporters.
    pub records: u64,
    /// Records lost before they reached the exporters: no memory, or no slot. All of them are marked in the trace.
    pub dropped_records: u64,
    /// Of all records ever lost in this process, those of threads without a slot, and those made inside a record.
    pub no_slot_drops: u64,
    /// Records and losses from between the sessions, found and discarded at the start of this one.
    pub late_records: u64,
    /// Spans that began in an earlier session and were left out.
    pub stale_spans: u64,
    /// Spans that ended before they began by their clock; their duration was set to 0.
    pub clamped_durations: u64,
    /// Per kind, records lost for want of memory since the process started.
    pub dropped_by_kind: Vec<(u8, u64)>,
    /// Of the dropped records, those that the stop had no time to drain.
    pub undrained_records: u64,
    /// The clock of the records, `TSC` or `CLOCK_MONOTONIC`.
    pub clock_source: &'static str,
    /// Largest difference found between the trace clock and `CLOCK_MONOTONIC` in this session, in nanoseconds.
    pub clock_residual_ns: u64,
    /// One report per exporter, in the order of the options.
    pub exporters: Vec<ExporterReport>,
}

/// Records that were lost, before the exporters since the process began, and by the exporters of the session that runs.
/// No number goes back before the session ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Losses {
    /// Per kind, records lost for want of memory.
    pub by_kind: Vec<(u8, u64)>,
    /// Records of threads without a slot, and those made inside a record.
    pub no_slot: u64,
    /// The exporters of the session that runs, in the order of its options.
    pub exporters: Vec<ExporterReport>,
}

impl Losses {
    pub(super) fn new(exporters: Vec<ExporterReport>) -> Self {
        let capture = local::capture();
        let mut by_kind = vec![0; 256];
        capture.slots().iter().for_each(|slot| slot.add_dropped_by_kind(&mut by_kind));
        let by_kind = (0..=u8::MAX).zip(by_kind).filter(|(_, count)| *count > 0).collect();
        Self { by_kind, no_slot: capture.no_slot_drops(), exporters }
    }

    /// Records that never reached the exporters.
    pub fn before_exporters(&self) -> u64 {
        self.no_slot + self.by_kind.iter().map(|(_, count)| count).sum::<u64>()
    }
}

impl SessionReport {
    pub(super) fn new(drain: &Drain<'_>, map: &ClockMap, exporters: Vec<ExporterReport>) -> Self {
        let counts = drain.counts();
        let Losses { by_kind, no_slot, exporters } = Losses::new(exporters);
        Self {
            records: counts.records,
            dropped_records: counts.reported_losses,
            no_slot_drops: no_slot,
            late_records: counts.late_records,
            stale_spans: counts.stale_spans,
            clamped_durations: counts.clamped_durations,
            dropped_by_kind: by_kind,
            undrained_records: counts.undrained_records,
            clock_source: Clock::get().source(),
            clock_residual_ns: map.largest_residual_ns(),
            exporters,
        }
    }
}
