use super::{Collection, CollectionStart, GcRecord, Ingestion, Input, Loss, Suspension};
use crate::config::{GcTarget, GcTracingOptions};
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use typhon_clr::gc::GcItem;
use typhon_clr::ipc::{BufferMib, Bystanders, ReverseListener, ReverseTarget, TraceRequest};
use typhon_clr::session::{GcProgress, GcSession, GcSettings, monotonic_ns};
use typhon_clr::{ClockSync, ClrError};

/// Name of the thread that reads the runtime's events.
const NAME: &str = "Typhon.GcReader";
/// How soon a stop is noticed.
const POLL: Duration = Duration::from_millis(50);
/// How often a runtime is looked for at first, how long that counts as "at first", and how often later.
const EAGER_PROBE: Duration = Duration::from_millis(250);
const EAGER_FOR: Duration = Duration::from_secs(5);
const PATIENT_PROBE: Duration = Duration::from_secs(2);

/// Tracing of one target, while a recording runs.
#[derive(Debug)]
pub(crate) struct GcHost {
    stop: Arc<Stop>,
    ingestion: Ingestion,
}

/// Where lines for the user go.
pub(crate) type Say = fn(fmt::Arguments<'_>);

impl GcHost {
    /// Starts the two threads; the runtime may come later.
    pub(crate) fn start(options: &GcTracingOptions, say: Say) -> io::Result<Self> {
        if !options.extra.is_empty() {
            say(format_args!("GcTracing:Extra: this version traces collections only"));
        }
        let (input, ingestion) = Ingestion::start(options.queue_capacity as usize)?;
        let stop = Arc::<Stop>::default();
        let settings = GcSettings {
            request: TraceRequest::gc(buffer(options.buffer_mib)),
            request_timeout: options.connect_timeout,
            order_delay: options.order_delay,
            ..GcSettings::default()
        };
        let reader = Reader { target: options.target.clone(), settings, stop: Arc::clone(&stop), input, say };
        std::thread::Builder::new().name(NAME.to_owned()).spawn(move || reader.run())?;
        Ok(Self { stop, ingestion })
    }

    /// Ends the session with the runtime, and waits until what it had sent is recorded, at most `patience`.
    pub(crate) fn stop(self, patience: Duration) -> bool {
        self.stop.set();
        self.ingestion.finish(patience)
    }
}

/// The configuration admits only sizes that the runtime admits too.
fn buffer(mebibytes: u64) -> BufferMib {
    u32::try_from(mebibytes).ok().and_then(|size| BufferMib::new(size).ok()).unwrap_or_default()
}

/// A wish to stop that can be waited for.
#[derive(Debug, Default)]
struct Stop {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    fn set(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    fn is_set(&self) -> bool {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, pause: Duration) {
        let is_set = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        // Whether it is set is asked again by the caller.
        let _ = self.changed.wait_timeout_while(is_set, pause, |is_set| !*is_set);
    }
}

struct Reader {
    target: GcTarget,
    settings: GcSettings,
    stop: Arc<Stop>,
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
        let mut is_second_malformed = false;
        while !self.stop.is_set() {
            match self.attach(listener.as_ref()) {
                Ok(None) => waiting.report(self.say, None),
                Ok(Some(attached)) => {
                    (self.say)(format_args!("tracing the collections of {}", self.target_name()));
                    let ended = self.follow(attached);
                    let is_malformed = matches!(&ended, Err(ClrError::Stream(_)));
                    if !self.goes_on(ended) || is_malformed && is_second_malformed {
                        return;
                    }
                    is_second_malformed |= is_malformed;
                    waiting = Waiting::new();
                }
                Err(ClrError::NoProcess(id)) if matches!(self.target, GcTarget::Process(_)) => {
                    return (self.say)(format_args!("GcTracing:Target: there is no process {id}"));
                }
                Err(error) => waiting.report(self.say, Some(&error)),
            }
            self.stop.wait(waiting.pause());
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

    /// Takes records until the process ends or a stop is wished for, and ends the session.
    fn follow(&self, (mut session, mut bystanders): Attached) -> Result<GcProgress, ClrError> {
        // Records wait for the clock, which the first batch may still correct.
        let mut records = Vec::new();
        let mut progress = Ok(GcProgress::Running);
        while matches!(progress, Ok(GcProgress::Running)) && !self.stop.is_set() {
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
    fn goes_on(&self, ended: Result<GcProgress, ClrError>) -> bool {
        let is_gone = match ended {
            Ok(GcProgress::Running) => return false,
            Ok(GcProgress::Ended) => true,
            Ok(GcProgress::Cut) => {
                (self.say)(format_args!(
                    "{} ended without a word; its last moments may be missing",
                    self.target_name()
                ));
                self.input.session_lost(monotonic_ns());
                true
            }
            Err(error) => {
                (self.say)(format_args!("lost {}: {error}", self.target_name()));
                self.input.session_lost(monotonic_ns());
                false
            }
        };
        !(is_gone && matches!(self.target, GcTarget::Process(_)))
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
    reported: Option<String>,
}

impl Waiting {
    fn new() -> Self {
        Self { since: Instant::now(), reported: None }
    }

    fn is_eager(&self) -> bool {
        self.since.elapsed() < EAGER_FOR
    }

    fn pause(&self) -> Duration {
        if self.is_eager() { EAGER_PROBE } else { PATIENT_PROBE }
    }

    /// Absence is normal at first; everything else is said at once, and nothing twice.
    fn report(&mut self, say: Say, error: Option<&ClrError>) {
        if error.is_none_or(ClrError::is_absent) && self.is_eager() {
            return;
        }
        let line = error.map_or_else(|| "nobody has connected".to_owned(), ClrError::to_string);
        if self.reported.as_ref() != Some(&line) {
            say(format_args!("GcTracing: still waiting for a .NET runtime: {line}"));
            self.reported = Some(line);
        }
    }
}
