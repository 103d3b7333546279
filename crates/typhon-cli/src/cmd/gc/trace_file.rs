//! The collector's records as records of a trace (brief 03 §4).

use std::fs::File;

use typhon_analysis::clock::Clock;
use typhon_analysis::gc::{GcCollector, GcSummary};
use typhon_analysis::quantile::Durations;
use typhon_clr::ClockSync;
use typhon_clr::gc::{Collection, CollectionStart, GcRecord, LossKind, Suspension};
use typhon_clr::nettrace::TraceInfo;
use typhon_trace::TraceError;
use typhon_trace::event::{
    GcEnd, GcReason, GcStart, GcSuspendReason, GcSuspension, GcType, Instant, InstantEvent, SpanEvent,
    SpanFields, ThreadInfo, ThreadKind,
};
use typhon_trace::header::{CLOCK_FREQUENCY_NS, FileHeader};
use typhon_trace::record::Record;
use typhon_trace::tables::Tables;
use typhon_trace::trailer::SpanNames;
use typhon_trace::writer::{CloseInfo, CloseReport, TraceWriter, WriterOptions};

/// The one slot of such a trace: the process that was watched.
const SLOT: u8 = 0;
/// Names of the markers; a name's id is its position.
const MARKER_NAMES: [&str; 4] = [
    "typhon.gc_events_lost",
    "typhon.gc_half_open",
    "typhon.gc_end_without_sizes",
    "typhon.gc_recording_end",
];
/// Id of the marker at the end.
const RECORDING_END: i32 = 3;

/// The clock of the trace.
#[derive(Debug, Clone, Copy)]
pub(super) enum Timebase {
    /// The target's own ticks, of a recorded stream.
    Target {
        /// Ticks per second.
        frequency: i64,
    },
    /// Our monotonic clock in ns, to which the target's times are converted.
    Host(ClockSync),
}

impl Timebase {
    fn frequency(self) -> i64 {
        match self {
            Self::Target { frequency } => frequency,
            Self::Host(_) => CLOCK_FREQUENCY_NS,
        }
    }

    /// A time of the target.
    pub(super) fn time(self, ticks: u64) -> i64 {
        let time = match self {
            Self::Target { .. } => ticks,
            Self::Host(clock) => clock.to_host_ns(ticks),
        };
        i64::try_from(time).unwrap_or(i64::MAX)
    }

    fn length(self, ticks: u64) -> i64 {
        let length = match self {
            Self::Target { .. } => ticks,
            Self::Host(clock) => clock.duration_ns(ticks),
        };
        i64::try_from(length).unwrap_or(i64::MAX)
    }
}

/// A trace that is being written.
pub(super) struct TraceFile {
    writer: TraceWriter<File>,
    timebase: Timebase,
    start: i64,
    /// Latest time of any record.
    newest: i64,
    spans: u64,
    buffer: Vec<u8>,
    summary: GcCollector,
    pauses_ns: Durations,
}

/// What a trace ended up with.
pub(super) struct Written {
    pub(super) report: CloseReport,
    pub(super) duration_ns: i64,
    pub(super) summary: Option<GcSummary>,
    pub(super) pauses_ns: Durations,
}

impl TraceFile {
    /// Begins the trace of a process at the moment its stream began.
    pub(super) fn begin(
        sink: File,
        trace: &TraceInfo,
        timebase: Timebase,
        created_utc_ticks: i64,
    ) -> Result<Self, TraceError> {
        let header =
            FileHeader { timestamp_frequency: timebase.frequency(), ..FileHeader::new(created_utc_ticks) };
        let mut writer = TraceWriter::create(sink, header, &Tables::default(), WriterOptions::new(SLOT))?;
        let mut names = SpanNames::default();
        for (id, name) in (0..).zip(MARKER_NAMES) {
            names.push(id, name);
        }
        writer.span_names(&names)?;
        let start = timebase.time(trace.sync_ticks);
        let mut file = Self {
            writer,
            timebase,
            start,
            newest: start,
            spans: 0,
            buffer: Vec::new(),
            summary: GcCollector::default(),
            pauses_ns: Durations::default(),
        };
        let name = format!(".NET process {}", trace.process_id);
        file.instant(
            start,
            &ThreadInfo { managed_thread_id: 0, name: &name, thread_kind: ThreadKind::OTHER },
        )?;
        Ok(file)
    }

    /// Time since the recording began, ns.
    pub(super) fn since_start_ns(&self, ticks: u64) -> i64 {
        self.clock().to_ns(self.timebase.time(ticks).saturating_sub(self.start))
    }

    /// A length of the target's time, ns.
    pub(super) fn length_ns(&self, ticks: u64) -> i64 {
        self.clock().to_ns(self.timebase.length(ticks))
    }

    /// Adds a record.
    pub(super) fn add(&mut self, record: &GcRecord) -> Result<(), TraceError> {
        match record {
            GcRecord::Start(start) => self.add_start(start),
            GcRecord::End(end) => self.add_end(end),
            GcRecord::Suspension(suspension) => self.add_suspension(suspension),
            GcRecord::Loss(loss) => {
                let name_id = match loss.kind {
                    LossKind::Events => 0,
                    LossKind::HalfOpenSuspension => 1,
                    LossKind::EndWithoutSizes => 2,
                };
                let payload = i32::try_from(loss.count).unwrap_or(i32::MAX);
                self.instant(self.timebase.time(loss.timestamp), &Instant { name_id, payload })
            }
        }
    }

    fn add_start(&mut self, start: &CollectionStart) -> Result<(), TraceError> {
        let event = GcStart {
            generation: byte(start.generation),
            reason: GcReason(byte(start.reason.0)),
            gc_type: GcType(byte(start.kind.0)),
            count: start.count,
        };
        self.instant(self.timebase.time(start.timestamp), &event)
    }

    fn add_end(&mut self, end: &Collection) -> Result<(), TraceError> {
        // What is not known is 0 in a trace; a marker tells that sizes are missing.
        let [gen0, gen1, gen2, loh, poh] = end.heap.map_or([0; 5], |heap| heap.size_bytes);
        let event = GcEnd {
            generation: byte(end.generation),
            count: end.count,
            pause_duration_ticks: self.timebase.length(end.pause_ticks),
            promoted_bytes: end.heap.map_or(0, |heap| heap.promoted_bytes),
            gen0_size_after: gen0,
            gen1_size_after: gen1,
            gen2_size_after: gen2,
            loh_size_after: loh,
            poh_size_after: poh,
            total_committed_bytes: end.committed_bytes.unwrap_or(0),
        };
        self.instant(self.timebase.time(end.timestamp), &event)
    }

    fn add_suspension(&mut self, suspension: &Suspension) -> Result<(), TraceError> {
        self.spans += 1;
        let duration = self.timebase.length(suspension.duration_ticks);
        let span =
            SpanFields { duration, span_id: u64::from(SLOT) << 56 | self.spans, ..SpanFields::default() };
        let event = GcSuspension { reason: GcSuspendReason(byte(suspension.reason.0)) };
        let start = self.timebase.time(suspension.timestamp);
        self.pauses_ns.push(self.clock().to_ns(duration) as u64);
        self.buffer.resize(event.record_bytes(&span), 0);
        event.encode(SLOT, start, &span, &mut self.buffer).expect("the buffer has the record's size");
        self.write(start.saturating_add(duration))
    }

    fn instant(&mut self, timestamp: i64, event: &impl InstantEvent) -> Result<(), TraceError> {
        self.buffer.resize(event.record_bytes(), 0);
        event.encode(SLOT, timestamp, &mut self.buffer).expect("the buffer has the record's size");
        self.write(timestamp)
    }

    fn write(&mut self, end: i64) -> Result<(), TraceError> {
        self.newest = self.newest.max(end);
        if let Ok(record) = Record::parse(&self.buffer) {
            self.summary.observe(&record, self.clock(), true, true);
        }
        self.writer.write_records(&self.buffer)
    }

    fn clock(&self) -> Clock {
        Clock::new(self.timebase.frequency())
    }

    /// Makes sure that what was added survives us.
    pub(super) fn flush(&mut self) -> Result<(), TraceError> {
        self.writer.flush()
    }

    /// Closes the trace. `stop` is when the recording ended, if not with its last record.
    pub(super) fn finish(mut self, stop: Option<i64>) -> Result<Written, TraceError> {
        let clock = self.clock();
        let stop = stop.map_or(self.newest, |stop| stop.max(self.newest));
        if stop > self.newest {
            // Who reads the trace takes it to be as long as its records reach, and quiet time is time too.
            self.instant(stop, &Instant { name_id: RECORDING_END, payload: 0 })?;
        }
        // A file whose header states no length reads as not closed.
        let duration_ticks = stop.saturating_sub(self.start).max(1);
        let info = CloseInfo { stop_timestamp: stop, duration_ticks, ..CloseInfo::default() };
        self.writer.close(&info);
        let (_, report) = self.writer.into_parts();
        Ok(Written {
            report: report.expect("the writer was closed"),
            duration_ns: clock.to_ns(duration_ticks),
            summary: self.summary.finish(self.start..stop),
            pauses_ns: self.pauses_ns,
        })
    }
}

/// A trace has one byte for what the runtime sends as 32 bits; real values are below 16.
fn byte(value: u32) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}
