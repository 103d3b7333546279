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

impl SessionReport {
    pub(super) fn new(drain: &Drain<'_>, map: &ClockMap, exporters: Vec<ExporterReport>) -> Self {
        let counts = drain.counts();
        let capture = local::capture();
        let mut by_kind = vec![0; 256];
        capture.slots().iter().for_each(|slot| slot.add_dropped_by_kind(&mut by_kind));
        Self {
            records: counts.records,
            dropped_records: counts.reported_losses,
            no_slot_drops: capture.no_slot_drops(),
            late_records: counts.late_records,
            stale_spans: counts.stale_spans,
            clamped_durations: counts.clamped_durations,
            dropped_by_kind: (0..=u8::MAX).zip(by_kind).filter(|(_, count)| *count > 0).collect(),
            undrained_records: counts.undrained_records,
            clock_source: Clock::get().source(),
            clock_residual_ns: map.largest_residual_ns(),
            exporters,
        }
    }
}
