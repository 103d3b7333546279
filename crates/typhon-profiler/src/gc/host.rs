use super::control::{Control, Reading};
use super::{Collection, CollectionStart, GcRecord, Ingestion, Input, Loss, Suspension};
use crate::config::{GcTarget, GcTracingOptions};
use crate::own_thread;
use crate::session::Companion;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use typhon_clr::gc::GcItem;
use typhon_clr::ipc::{BufferMib, Bystanders, ReverseListener, ReverseTarget, TraceRequest};
use typhon_clr::session::{GcProgress, GcSession, GcSettings, monotonic_ns};
use typhon_clr::{ClockSync, ClrError};

/// Name of the thread that reads the runtime's events.
const NAME: &str = "Typhon.GcReader";
/// How soon a stop is noticed.
const POLL: Duration = Duration::from_millis(100);
/// How often a runtime is looked for at first, how long that counts as "at first", and how often later.
const EAGER_PROBE: Duration = Duration::from_millis(250);
const EAGER_FOR: Duration = Duration::from_secs(5);
const PATIENT_PROBE: Duration = Duration::from_secs(2);
/// Streams of nonsense, one directly after the other, after which a target is given up.
const MOST_MALFORMED: u32 = 2;

/// Tracing of one target, while a recording runs.
#[derive(Debug)]
pub(crate) struct GcHost {
    control: Arc<Control>,
    ingestion: Ingestion,
    say: Say,
}

/// Where lines for the user go.
pub(crate) type Say = fn(fmt::Arguments<'_>);

impl GcHost {
    /// Starts the two threads; the runtime may come later.
    pub(crate) fn start(options: &GcTracingOptions, say: Say) -> io::Result<Self> {
        let (input, ingestion) = Ingestion::start_saying(options.queue_capacity as usize, say)?;
        let control = Control::start(input.clone());
        let settings = GcSettings {
            request: TraceRequest::gc(buffer(options.buffer_mib)),
            request_timeout: options.connect_timeout,
            order_delay: options.order_delay,
            ..GcSettings::default()
        };
        let reader =
            Reader { target: options.target.clone(), settings, control: Arc::clone(&control), input, say };
        own_thread::spawn(NAME, move || reader.run())?;
        Ok(Self { control, ingestion, say })
    }
}

impl Companion for GcHost {
    /// Ends the session with the runtime, and waits until what it had sent is recorded.
    fn stop(self: Box<Self>, patience: Duration) {
        self.control.stop();
        if !self.ingestion.finish(patience) {
            (self.say)(format_args!(
                "the session with the .NET runtime did not end in time; its last collections may be missing"
            ));
        }
    }
}

/// The configuration admits only sizes that the runtime admits too.
fn buffer(mebibytes: u64) -> BufferMib {
    u32::try_from(mebibytes).ok().and_then(|size| BufferMib::new(size).ok()).unwrap_or_default()
}

struct Reader {
    target: GcTarget,
    settings: GcSettings,
    control: Arc<Control>,
    input: Input,
    say: Say,
}

/// A session, and the runtimes at its socket that are not its target.
type Attached = (GcSession, Option<Bystanders>);

impl Reader {
    fn run(self) {
        let listener = match &self.target {
            GcTarget::Listen(path) => match ReverseListener::bind(path) {
                Ok(listener) => Some(Arc::new(listener)),
                Err(error) => {
                    return (self.say)(format_args!("GcTracing:Target: {}: {error}", path.display()));
                }
            },
            _ => None,
        };
        let mut waiting = Waiting::new();
        let mut malformed_in_a_row = 0;
        while let Some(reading) = self.control.begin_reading() {
            match self.attach(listener.as_ref()) {
                Ok(None) => {
                    // Waiting at the socket was the pause.
                    waiting.report(self.say, None);
                    continue;
                }
                Ok(Some(attached)) => {
                    (self.say)(format_args!("tracing the collections of {}", self.target_name()));
                    let ended = self.follow(attached, &reading);
                    let is_malformed = matches!(&ended, Err(ClrError::Stream(_)));
                    malformed_in_a_row = if is_malformed { malformed_in_a_row + 1 } else { 0 };
                    if !self.goes_on(ended, malformed_in_a_row) {
                        return;
                    }
                    waiting = Waiting::new();
                }
                Err(ClrError::NoProcess(id)) if matches!(self.target, GcTarget::Process(_)) => {
                    return (self.say)(format_args!("GcTracing:Target: there is no process {id}"));
                }
                Err(error) => waiting.report(self.say, Some(&error)),
            }
            drop(reading);
            self.control.wait(waiting.pause());
        }
    }

    fn target_name(&self) -> String {
        match &self.target {
            GcTarget::OwnProcess => "the .NET runtime in this process".to_owned(),
            GcTarget::Process(id) => format!("process {id}"),
            GcTarget::Listen(path) => format!("the process that connected to {}", path.display()),
        }
    }

    fn attach(&self, listener: Option<&Arc<ReverseListener>>) -> Result<Option<Attached>, ClrError> {
        let process_id = match (&self.target, listener) {
            (_, Some(listener)) => return self.accept(listener),
            (GcTarget::Process(id), None) => *id,
            (_, None) => std::process::id(),
        };
        Ok(Some((GcSession::attach(process_id, self.settings.clone())?, None)))
    }

    fn accept(&self, listener: &Arc<ReverseListener>) -> Result<Option<Attached>, ClrError> {
        let Some(incoming) = listener.accept(POLL)? else { return Ok(None) };
        let bystanders = Bystanders::new(Arc::clone(listener), incoming.advertise);
        let target = ReverseTarget::new(Arc::clone(listener), incoming);
        let mut session = GcSession::start(Box::new(target), self.settings.clone())?;
        session.resume_runtime()?;
        Ok(Some((session, Some(bystanders))))
    }

    /// Takes records until the process ends or reading must, and ends the session.
    fn follow(
        &self,
        (mut session, mut bystanders): Attached,
        reading: &Reading,
    ) -> Result<GcProgress, ClrError> {
        // Records wait for the clock, which the first batch may still correct.
        let mut records = Vec::new();
        let mut progress = Ok(GcProgress::Running);
        while matches!(progress, Ok(GcProgress::Running)) && !reading.must_end() {
            progress = session.poll(POLL, &mut collector(&mut records));
            self.hand_over(session.clock(), &mut records);
            if let Some(bystanders) = &mut bystanders {
                // Who could not be let go on connects again.
                let _ = bystanders.let_go_on(self.settings.request_timeout);
            }
        }
        let stopped = session.stop(&mut collector(&mut records));
        self.hand_over(session.clock(), &mut records);
        let progress = progress?;
        stopped.map(|_| progress)
    }

    fn hand_over(&self, clock: Option<&ClockSync>, records: &mut Vec<GcRecord>) {
        let Some(clock) = clock else { return };
        for record in records.drain(..) {
            // A full queue is counted there.
            self.input.push(on_our_clock(record, clock));
        }
    }

    /// Says how a session ended. Is there anything more to wait for?
    fn goes_on(&self, ended: Result<GcProgress, ClrError>, malformed_in_a_row: u32) -> bool {
        let is_process = matches!(self.target, GcTarget::Process(_));
        let goes_on = malformed_in_a_row < MOST_MALFORMED;
        match ended {
            // We wanted it so.
            Ok(GcProgress::Running) => return true,
            Ok(GcProgress::Ended) => return !is_process,
            Ok(GcProgress::Cut) => {
                (self.say)(format_args!(
                    "{} ended without a word; its last moments may be missing",
                    self.target_name()
                ));
            }
            Err(error) => {
                let what_next = if goes_on { "trying again" } else { "giving up" };
                (self.say)(format_args!("lost {}: {error}; {what_next}", self.target_name()));
            }
        }
        self.input.session_lost(monotonic_ns());
        goes_on
    }
}

fn collector(records: &mut Vec<GcRecord>) -> impl FnMut(GcItem<'_>) {
    |item| {
        if let GcItem::Record(record) = item {
            records.push(record);
        }
    }
}

/// All times of a record on our monotonic clock, in ns.
fn on_our_clock(record: GcRecord, clock: &ClockSync) -> GcRecord {
    let start =
        |start: CollectionStart| CollectionStart { timestamp: clock.to_host_ns(start.timestamp), ..start };
    match record {
        GcRecord::Start(it) => GcRecord::Start(start(it)),
        GcRecord::End(it) => GcRecord::End(Collection {
            timestamp: clock.to_host_ns(it.timestamp),
            start: it.start.map(start),
            pause_ticks: clock.duration_ns(it.pause_ticks),
            ..it
        }),
        GcRecord::Suspension(it) => GcRecord::Suspension(Suspension {
            timestamp: clock.to_host_ns(it.timestamp),
            duration_ticks: clock.duration_ns(it.duration_ticks),
            time_to_suspend_ticks: it.time_to_suspend_ticks.map(|ticks| clock.duration_ns(ticks)),
            time_to_restart_ticks: it.time_to_restart_ticks.map(|ticks| clock.duration_ns(ticks)),
            ..it
        }),
        GcRecord::Loss(it) => GcRecord::Loss(Loss { timestamp: clock.to_host_ns(it.timestamp), ..it }),
    }
}

/// A runtime that is not there (yet): how often to look, and what to say, once.
struct Waiting {
    since: Instant,
    is_refused: bool,
    reported: Option<String>,
}

impl Waiting {
    fn new() -> Self {
        Self { since: Instant::now(), is_refused: false, reported: None }
    }

    fn is_eager(&self) -> bool {
        !self.is_refused && self.since.elapsed() < EAGER_FOR
    }

    fn pause(&self) -> Duration {
        if self.is_eager() { EAGER_PROBE } else { PATIENT_PROBE }
    }

    /// Absence is normal at first; everything else is said at once, and nothing twice.
    fn report(&mut self, say: Say, error: Option<&ClrError>) {
        self.is_refused = error.is_some_and(|error| !error.is_absent());
        if self.is_eager() {
            return;
        }
        let line = error.map_or_else(|| "nobody has connected".to_owned(), ClrError::to_string);
        if self.reported.as_ref() != Some(&line) {
            say(format_args!("GcTracing: still waiting for a .NET runtime: {line}"));
            self.reported = Some(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use typhon_clr::gc::{GcReason, GcType, SuspendReason};
    use typhon_clr::nettrace::{TraceInfo, UtcTime};

    /// A target whose clock has 10 MHz and is a second ahead of ours.
    fn slow_clock() -> ClockSync {
        let sync_utc = UtcTime {
            year: 2026,
            month: 1,
            day_of_week: 0,
            day: 1,
            hour: 0,
            minute: 0,
            second: 0,
            millisecond: 0,
        };
        let trace = TraceInfo {
            version: 4,
            min_reader: 4,
            sync_utc,
            sync_ticks: 20_000_000,
            ticks_per_second: 10_000_000,
            pointer_bytes: 8,
            process_id: 1,
            processors: 1,
            cpu_sampling_period_ns: 0,
        };
        ClockSync::new(1_000_000_000, 1_000_000_000, &trace)
    }

    #[test]
    fn b6_times_and_lengths_of_a_record_become_nanoseconds_of_our_clock() {
        let clock = slow_clock();
        let (reason, kind) = (GcReason::INDUCED, GcType::BLOCKING);
        let start = CollectionStart { timestamp: 20_000_010, count: 1, generation: 0, reason, kind };
        let end = Collection {
            timestamp: 20_000_030,
            count: 1,
            generation: 0,
            start: Some(start),
            pause_ticks: 77,
            heap: None,
            committed_bytes: None,
        };
        let GcRecord::End(end) = on_our_clock(GcRecord::End(end), &clock) else { panic!("still an end") };
        assert_eq!((end.timestamp, end.pause_ticks), (1_000_003_000, 7_700));
        assert_eq!(end.start.map(|start| start.timestamp), Some(1_000_001_000));
        let suspension = Suspension {
            timestamp: 20_000_000,
            duration_ticks: 50,
            time_to_suspend_ticks: Some(5),
            time_to_restart_ticks: None,
            reason: SuspendReason::GC,
            capture_thread: 1,
        };
        let GcRecord::Suspension(on_ours) = on_our_clock(GcRecord::Suspension(suspension), &clock) else {
            panic!("still a suspension")
        };
        assert_eq!((on_ours.timestamp, on_ours.duration_ticks), (1_000_000_000, 5_000));
        assert_eq!((on_ours.time_to_suspend_ticks, on_ours.time_to_restart_ticks), (Some(500), None));
    }

    #[test]
    fn b2_a_runtime_is_looked_for_often_at_first_and_then_every_two_seconds() {
        static SAID: AtomicU32 = AtomicU32::new(0);
        let count: Say = |_| _ = SAID.fetch_add(1, Ordering::Relaxed);
        let absent = ClrError::NoProcess(1);
        let mut waiting = Waiting::new();
        waiting.report(count, Some(&absent));
        assert_eq!((waiting.pause(), SAID.load(Ordering::Relaxed)), (EAGER_PROBE, 0));
        waiting.since = Instant::now().checked_sub(EAGER_FOR).expect("the machine runs for longer");
        (0..3).for_each(|_| waiting.report(count, Some(&absent)));
        assert_eq!((waiting.pause(), SAID.load(Ordering::Relaxed)), (PATIENT_PROBE, 1));
        // Whoever is there and does not answer is no absence.
        let mut refused = Waiting::new();
        let silent = ClrError::Timeout { doing: "asking", after: Duration::ZERO };
        (0..3).for_each(|_| refused.report(count, Some(&silent)));
        assert_eq!((refused.pause(), SAID.load(Ordering::Relaxed)), (PATIENT_PROBE, 2));
    }
}
