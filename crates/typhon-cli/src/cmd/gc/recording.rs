//! A recording in progress: every record into the trace, every collection to the user, every loss on the list.

use super::trace_file::{Timebase, TraceFile, Written};
use super::view;
use crate::failure::Failure;
use crate::output::file::OutputFile;
use crate::output::stream::Style;
use crate::output::units::plural;
use std::path::Path;
use std::time::{Duration, Instant};
use typhon_analysis::gc::GcSummary;
use typhon_analysis::quantile::Durations;
use typhon_clr::gc::{Collection, GcRecord, LossKind};
use typhon_clr::nettrace::TraceInfo;
use typhon_trace::writer::CloseReport;

/// A crash of ours loses no more than this.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// When a trace appears under its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeping {
    /// As soon as it begins, for what happens only once: even if we are killed, it is there.
    FromTheStart,
    /// When it is whole.
    AtTheEnd,
}

pub(super) struct Recording<'a> {
    path: &'a Path,
    file: &'a mut OutputFile,
    keeping: Keeping,
    /// From the moment at which the stream's clock is known.
    trace: Option<TraceFile>,
    flush_due: Instant,
    view: view::Live<'a>,
    losses: Losses,
    last: Option<Collection>,
}

/// What a recording came to.
pub(super) enum Finish {
    Recorded(Box<Finished>),
    /// The stream never stated its clock; with the reason, if something went wrong.
    NeverBegun(Option<String>),
}

/// A finished recording.
pub(super) struct Finished {
    pub(super) written: CloseReport,
    pub(super) bytes: u64,
    pub(super) duration_ns: i64,
    pub(super) summary: Option<GcSummary>,
    pub(super) pauses_ns: Durations,
    pub(super) losses: Losses,
    /// The collection that ended last, for the sizes of the heap.
    pub(super) last: Option<Collection>,
}

/// What is missing from a recording.
#[derive(Debug, Default)]
pub(super) struct Losses {
    events: u64,
    half_open: u64,
    without_sizes: u64,
    /// Why the stream stopped before its end.
    broken_off: Option<String>,
}

/// One kind of loss.
pub(super) struct Loss {
    pub(super) code: &'static str,
    pub(super) count: u64,
    pub(super) message: String,
}

impl Losses {
    /// Events that the runtime itself dropped.
    pub(super) fn dropped_events(&self) -> u64 {
        self.events
    }

    /// Every kind of which there was one.
    pub(super) fn list(&self) -> Vec<Loss> {
        let counted = [
            ("events-lost", self.events, "event", "dropped by the runtime, whose buffer was full"),
            ("half-open", self.half_open, "suspension", "left out, since begin or end is missing"),
            ("without-sizes", self.without_sizes, "collection", "recorded without heap sizes"),
        ];
        let counted = counted.into_iter().filter(|(_, count, ..)| *count > 0);
        let counted = counted.map(|(code, count, noun, why)| {
            let message = format!("{} {why}", plural(count, noun));
            Loss { code, count, message }
        });
        let broken_off = self.broken_off.iter();
        let broken_off = broken_off.map(|why| Loss { code: "broken-off", count: 1, message: why.clone() });
        counted.chain(broken_off).collect()
    }
}

impl<'a> Recording<'a> {
    pub(super) fn new(path: &'a Path, file: &'a mut OutputFile, keeping: Keeping, style: &'a Style) -> Self {
        Self {
            path,
            file,
            keeping,
            trace: None,
            flush_due: Instant::now() + FLUSH_EVERY,
            view: view::Live::new(style),
            losses: Losses::default(),
            last: None,
        }
    }

    pub(super) fn style(&self) -> &'a Style {
        self.view.style()
    }

    /// Has the trace been begun?
    pub(super) fn has_begun(&self) -> bool {
        self.trace.is_some()
    }

    /// Begins the trace; without effect once it has begun.
    pub(super) fn begin(
        &mut self,
        trace: &TraceInfo,
        timebase: Timebase,
        created_utc_ticks: i64,
    ) -> Result<(), Failure> {
        if self.trace.is_none() {
            let begun = TraceFile::begin(self.file.writer()?, trace, timebase, created_utc_ticks);
            self.trace = Some(begun.map_err(|err| Failure::trace(self.path, err))?);
            if self.keeping == Keeping::FromTheStart {
                self.file.keep()?;
            }
        }
        Ok(())
    }

    /// Takes records, once the trace has begun.
    pub(super) fn take(&mut self, records: &mut Vec<GcRecord>) -> Result<(), Failure> {
        let Some(trace) = &mut self.trace else { return Ok(()) };
        let failed = |err| Failure::trace(self.path, err);
        for record in records.drain(..) {
            trace.add(&record).map_err(failed)?;
            match record {
                GcRecord::End(collection) => {
                    self.view.show(&collection, trace);
                    self.last = Some(collection);
                }
                GcRecord::Loss(loss) => match loss.kind {
                    LossKind::Events => self.losses.events += loss.count,
                    LossKind::HalfOpenSuspension => self.losses.half_open += loss.count,
                    LossKind::EndWithoutSizes => self.losses.without_sizes += loss.count,
                },
                GcRecord::Start(_) | GcRecord::Suspension(_) => {}
            }
        }
        if Instant::now() >= self.flush_due {
            trace.flush().map_err(failed)?;
            self.flush_due = Instant::now() + FLUSH_EVERY;
        }
        Ok(())
    }

    /// Notes that the stream stopped before its end; the first reason counts.
    pub(super) fn broken_off(&mut self, why: String) {
        self.losses.broken_off.get_or_insert(why);
    }

    /// Closes the trace.
    pub(super) fn finish(self, stop: Option<i64>) -> Result<Finish, Failure> {
        let Some(trace) = self.trace else { return Ok(Finish::NeverBegun(self.losses.broken_off)) };
        let written = trace.finish(stop).map_err(|err| Failure::trace(self.path, err))?;
        let Written { report, duration_ns, summary, pauses_ns } = written;
        let bytes = report.bytes;
        let (losses, last) = (self.losses, self.last);
        let finished = Finished { written: report, bytes, duration_ns, summary, pauses_ns, losses, last };
        Ok(Finish::Recorded(Box::new(finished)))
    }
}
