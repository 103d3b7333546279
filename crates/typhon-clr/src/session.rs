//! Sessions with a running target: raw event streams ([`TraceSession`]) and the collector's records ([`GcSession`]).
//!
//! A session is always ended with StopTracing before its connection is closed, and its stream is read meanwhile:
//! abandoned sessions crash old runtimes, and a runtime that cannot write never answers.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::time::{ClockId, clock_gettime};

use crate::gc::{GcItem, GcStream, StreamCounters, TrackerCounters};
use crate::ipc::message::parse_session_id;
use crate::ipc::{
    BufferMib, CollectVersion, Connection, Connector, ErrorCode, IpcError, ReadOutcome, Request,
    TraceRequest, Wait, resume_runtime, wait_for_any,
};
use crate::{ClockSync, ClrError, endpoint};

/// The runtime writes single bytes; large reads keep the number of system calls down.
const READ_BUFFER_BYTES: usize = 64 << 10;
/// What dropping a session may cost: enough for a stop command, not enough to hold up a process's exit.
const DROP_STOP_TIMEOUT: Duration = Duration::from_millis(200);
const STARTING: &str = "starting the tracing session";
const STOPPING: &str = "stopping the tracing session";

/// Our monotonic clock, ns: the one that targets on this machine use too.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}

/// A running event stream of any providers.
pub struct TraceSession {
    connector: Box<dyn Connector + Send>,
    stream: Connection,
    id: u64,
    started_ns: [u64; 2],
    request_timeout: Duration,
    buffer: Vec<u8>,
    is_over: bool,
}

/// What reading a session yields.
#[derive(Debug)]
pub enum TraceRead<'a> {
    /// Bytes of the nettrace stream.
    Data(&'a [u8]),
    /// Nothing within the time.
    Idle,
    /// The runtime closed the stream: it exited or was killed.
    Closed,
}

impl TraceSession {
    /// Starts a session. `request_timeout` holds for each connection attempt and each answer, also later ones.
    ///
    /// # Errors
    /// The runtime cannot be reached, does not answer, or refuses.
    pub fn start(
        mut connector: Box<dyn Connector + Send>,
        request: &TraceRequest,
        request_timeout: Duration,
    ) -> Result<Self, ClrError> {
        let mut attempt = |version| -> Result<_, ClrError> {
            let mut stream = connector.connect(request_timeout)?;
            let before_ns = monotonic_ns();
            let command = Request::CollectTracing(version, request);
            let answer = stream.request(&command, request_timeout, STARTING)?;
            Ok((stream, parse_session_id(&answer)?, [before_ns, monotonic_ns()]))
        };
        // Without call stacks, where the runtime knows how: nothing here needs them, and the target has to walk them.
        let mut started = attempt(CollectVersion::V3);
        for older in [CollectVersion::V2, CollectVersion::V1] {
            if !matches!(started, Err(ClrError::Ipc(IpcError::Refused(ErrorCode::UNKNOWN_COMMAND)))) {
                break;
            }
            started = attempt(older);
        }
        let (stream, id, started_ns) = started?;
        let buffer = vec![0; READ_BUFFER_BYTES];
        Ok(Self { connector, stream, id, started_ns, request_timeout, buffer, is_over: false })
    }

    /// Our clock just before the session was asked for and just after it was granted, ns.
    pub fn started_ns(&self) -> [u64; 2] {
        self.started_ns
    }

    /// Reads the stream, waiting up to `timeout` for something to come.
    ///
    /// # Errors
    /// [`ClrError::Io`].
    pub fn read(&mut self, timeout: Duration) -> Result<TraceRead<'_>, ClrError> {
        if self.is_over {
            return Ok(TraceRead::Closed);
        }
        Ok(match self.stream.read(&mut self.buffer, timeout)? {
            ReadOutcome::Data(bytes) => TraceRead::Data(&self.buffer[..bytes]),
            ReadOutcome::Idle => TraceRead::Idle,
            ReadOutcome::Closed => {
                self.is_over = true;
                TraceRead::Closed
            }
        })
    }

    /// Lets a runtime go on that waits at start-up.
    ///
    /// # Errors
    /// As [`resume_runtime`].
    pub fn resume_runtime(&mut self) -> Result<(), ClrError> {
        resume_runtime(&mut *self.connector, self.request_timeout)
    }

    /// Ends the session and passes on the rest of its stream. Without effect once the stream is closed.
    ///
    /// # Errors
    /// [`ClrError::Timeout`] when the stream is not closed in time; otherwise why the stop command failed. What was
    /// read until then has been passed on.
    pub fn stop(&mut self, timeout: Duration, on_data: &mut dyn FnMut(&[u8])) -> Result<(), ClrError> {
        if self.is_over {
            return Ok(());
        }
        self.is_over = true;
        let deadline = Instant::now() + timeout;
        let left = || deadline.saturating_duration_since(Instant::now());
        let command = Request::StopTracing { session: self.id }.encode()?;
        let mut control = match self.connector.connect(self.request_timeout.min(left())) {
            Ok(control) => control,
            // The target is gone; what it wrote before is still there to be read.
            Err(error) if error.is_absent() => {
                return drain(&mut self.stream, &mut self.buffer, timeout, on_data);
            }
            Err(error) => return Err(error),
        };
        let wait = Wait { deadline, timeout, doing: STOPPING };
        match control.send(&command, wait) {
            Ok(()) => self.read_until_answered(&mut control, deadline, timeout, on_data)?,
            Err(ClrError::Closed { .. }) => {}
            Err(error) => return Err(error),
        }
        drain(&mut self.stream, &mut self.buffer, left(), on_data)
    }

    /// The runtime writes the rest of the stream before it answers, and waits for ever if nobody reads it.
    fn read_until_answered(
        &mut self,
        control: &mut Connection,
        deadline: Instant,
        timeout: Duration,
        on_data: &mut dyn FnMut(&[u8]),
    ) -> Result<(), ClrError> {
        let wait = Wait { deadline, timeout, doing: STOPPING };
        // A stream that never pauses must not hold us beyond the deadline.
        while Instant::now() < deadline {
            let mut descriptors =
                [PollFd::new(&self.stream, PollFlags::IN), PollFd::new(&*control, PollFlags::IN)];
            wait_for_any(&mut descriptors, wait)?;
            let is_ready = |descriptor: &PollFd<'_>| !descriptor.revents().is_empty();
            let (has_data, has_answer) = (is_ready(&descriptors[0]), is_ready(&descriptors[1]));
            if has_data {
                match self.stream.read(&mut self.buffer, Duration::ZERO)? {
                    ReadOutcome::Data(bytes) => on_data(&self.buffer[..bytes]),
                    ReadOutcome::Idle => {}
                    ReadOutcome::Closed => return Ok(()),
                }
            }
            if has_answer {
                return match control.answer(wait) {
                    Ok(_) | Err(ClrError::Closed { .. }) => Ok(()),
                    Err(error) => Err(error),
                };
            }
        }
        Err(ClrError::Timeout { doing: STOPPING, after: timeout })
    }
}

impl Drop for TraceSession {
    fn drop(&mut self) {
        // Nobody is left to hear of a failure, and a target that hangs must not hold us up.
        let _ = self.stop(DROP_STOP_TIMEOUT, &mut |_| {});
    }
}

/// Reads until the runtime closes the stream.
fn drain(
    stream: &mut Connection,
    buffer: &mut [u8],
    timeout: Duration,
    on_data: &mut dyn FnMut(&[u8]),
) -> Result<(), ClrError> {
    let deadline = Instant::now() + timeout;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match stream.read(buffer, left)? {
            ReadOutcome::Data(bytes) if !left.is_zero() => on_data(&buffer[..bytes]),
            ReadOutcome::Closed => return Ok(()),
            _ => return Err(ClrError::Timeout { doing: STOPPING, after: timeout }),
        }
    }
}

/// How a [`GcSession`] behaves.
#[derive(Debug, Clone)]
pub struct GcSettings {
    /// What is recorded; must include [`Provider::gc`](crate::ipc::Provider::gc).
    pub request: TraceRequest,
    /// For each connection attempt and each answer.
    pub request_timeout: Duration,
    /// Silence after which held events are passed on: two and a half of the runtime's flush periods.
    pub order_delay: Duration,
    /// For ending the session and reading the rest of its stream.
    pub stop_timeout: Duration,
}

impl Default for GcSettings {
    fn default() -> Self {
        Self {
            request: TraceRequest::gc(BufferMib::default()),
            request_timeout: Duration::from_secs(2),
            order_delay: Duration::from_millis(250),
            stop_timeout: Duration::from_secs(5),
        }
    }
}

/// Whether a session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GcProgress {
    /// More may come.
    Running,
    /// The runtime ended the stream properly: it exited.
    Ended,
    /// The stream stopped without its end mark: the runtime was killed. All complete blocks have been passed on.
    Cut,
}

/// A running stream of the collector's events and records of one process.
pub struct GcSession {
    trace: TraceSession,
    stream: GcStream,
    clock: Option<ClockSync>,
    clock_is_final: bool,
    settings: GcSettings,
    last_data: Instant,
    progress: GcProgress,
}

/// What a finished session has seen and missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcSessionReport {
    /// Whether the stream has its end mark.
    pub is_complete: bool,
    /// Events seen and lost.
    pub stream: StreamCounters,
    /// What pairing left out.
    pub tracker: TrackerCounters,
}

impl GcSession {
    /// Starts a session with a process by its id.
    ///
    /// # Errors
    /// As [`endpoint::find`] and [`TraceSession::start`].
    pub fn attach(process_id: u32, settings: GcSettings) -> Result<Self, ClrError> {
        Self::start(Box::new(endpoint::find(process_id)?), settings)
    }

    /// Starts a session over any connector.
    ///
    /// # Errors
    /// As [`TraceSession::start`].
    pub fn start(connector: Box<dyn Connector + Send>, settings: GcSettings) -> Result<Self, ClrError> {
        let trace = TraceSession::start(connector, &settings.request, settings.request_timeout)?;
        Ok(Self {
            trace,
            stream: GcStream::new(),
            clock: None,
            clock_is_final: false,
            settings,
            last_data: Instant::now(),
            progress: GcProgress::Running,
        })
    }

    /// Lets a runtime go on that waits at start-up.
    ///
    /// # Errors
    /// As [`resume_runtime`].
    pub fn resume_runtime(&mut self) -> Result<(), ClrError> {
        self.trace.resume_runtime()
    }

    /// How the target's clock relates to ours; known as soon as the first bytes have come.
    pub fn clock(&self) -> Option<&ClockSync> {
        self.clock.as_ref()
    }

    /// Reads once, waiting up to `timeout`, and passes on what became certain. Call it in a loop.
    ///
    /// # Errors
    /// The connection failed or the stream is malformed. The session has been stopped then; what was certain has been
    /// passed on.
    pub fn poll(
        &mut self,
        timeout: Duration,
        out: &mut impl FnMut(GcItem<'_>),
    ) -> Result<GcProgress, ClrError> {
        if self.progress != GcProgress::Running {
            return Ok(self.progress);
        }
        let quiet_for = self.last_data.elapsed();
        let until_release = self.settings.order_delay.saturating_sub(quiet_for);
        let wait = if until_release.is_zero() { timeout } else { timeout.min(until_release) };
        match self.trace.read(wait) {
            Err(error) => {
                self.stream.finish(out);
                self.progress = GcProgress::Cut;
                return Err(error);
            }
            Ok(TraceRead::Data(bytes)) => {
                self.last_data = Instant::now();
                if let Err(error) = self.stream.feed(bytes, out) {
                    // The rest means nothing any more; what failed first is what is reported.
                    let _ = self.trace.stop(self.settings.stop_timeout, &mut |_| {});
                    self.progress = GcProgress::Cut;
                    return Err(error.into());
                }
                self.sync_clock();
            }
            Ok(TraceRead::Idle) => {
                if self.last_data.elapsed() >= self.settings.order_delay {
                    let now = self.clock.map(|clock| clock.to_target_ticks(monotonic_ns()));
                    self.stream.release_idle(now, out);
                }
            }
            Ok(TraceRead::Closed) => {
                self.stream.finish(out);
                self.progress = if self.stream.has_ended() { GcProgress::Ended } else { GcProgress::Cut };
            }
        }
        Ok(self.progress)
    }

    fn sync_clock(&mut self) {
        let Some(trace) = self.stream.trace() else { return };
        let [before_ns, after_ns] = self.trace.started_ns();
        let clock = self.clock.get_or_insert_with(|| ClockSync::new(before_ns, after_ns, trace));
        // Only the first batch may correct the clock: later ones find times converted with it.
        if let Some(newest) = self.stream.newest_timestamp().filter(|_| !self.clock_is_final) {
            clock.narrow(newest, monotonic_ns());
            self.clock_is_final = true;
        }
    }

    /// Ends the session, passes on the rest and tells what was missed. Ask for the [`clock`](Self::clock) afterwards: a
    /// session that is ended at once learns of it only now.
    ///
    /// # Errors
    /// As [`TraceSession::stop`], or the rest of the stream is malformed. Everything that did come has been passed on.
    pub fn stop(&mut self, out: &mut impl FnMut(GcItem<'_>)) -> Result<GcSessionReport, ClrError> {
        let mut malformed = None;
        let stream = &mut self.stream;
        let stopped = self.trace.stop(self.settings.stop_timeout, &mut |bytes| {
            if malformed.is_none() {
                malformed = stream.feed(bytes, out).err();
            }
        });
        self.stream.finish(out);
        self.sync_clock();
        if let Some(error) = malformed {
            return Err(error.into());
        }
        stopped?;
        Ok(self.report())
    }

    /// What has been seen and missed so far.
    pub fn report(&self) -> GcSessionReport {
        GcSessionReport {
            is_complete: self.stream.has_ended(),
            stream: self.stream.counters(),
            tracker: self.stream.tracker_counters(),
        }
    }
}
