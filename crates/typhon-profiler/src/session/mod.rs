//! Sessions: from a mask and exporters to a running capture and back.
//!
//! At most one session runs in a process. Start and stop are serialised and idempotent. Chunks, slots and what was
//! reported survive a session; see `Drain::begin_session` for what a new one leaves behind.
#![forbid(unsafe_code)]

mod consumer;
mod report;

pub use report::{ExporterReport, SessionReport};

use crate::capture::{CONSUMER_SLOT, chunk::CHUNK_DATA_BYTES};
use crate::clock::{Clock, ClockMap, Ticks};
use crate::drain::Drain;
use crate::export::queue::Queue;
use crate::export::worker::Worker;
use crate::export::{ExportError, Exporter, SessionEnd, SessionStart};
use crate::gates::KindMask;
use crate::lifecycle::first_use;
use crate::mask::GATE;
use crate::program::Program;
use crate::switch::Switch;
use crate::{fork, gauges, local, site, thread};
use consumer::{Consumer, Control};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// Chunks whose memory is touched before the mask is armed.
const WARM_CHUNKS: u32 = 64;
/// Time for the consumer's last drain.
const DRAIN_BUDGET: Duration = Duration::from_secs(2);
/// Time for each exporter to finish after that.
const EXPORTER_BUDGET: Duration = Duration::from_secs(5);
/// Time for each companion to hand in its last records, before that.
const COMPANION_BUDGET: Duration = Duration::from_secs(5);

/// What a session records, and how.
pub struct SessionOptions {
    /// Kinds that are recorded from the start.
    pub mask: KindMask,
    /// Where the batches go; none is allowed: everything is then collected and discarded.
    pub exporters: Vec<Box<dyn Exporter>>,
    /// Memory for records between producers and consumer, in bytes; whole chunks of 64 KiB, at least two, at most
    /// 4 GiB.
    pub buffer_budget_bytes: u64,
    /// Time between two rounds of the consumer while records come in.
    pub cadence: Duration,
    /// Batches that wait for one exporter at most.
    pub queue_depth: usize,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            mask: KindMask::EMPTY,
            exporters: Vec::new(),
            buffer_budget_bytes: 160 << 20,
            cadence: Duration::from_millis(1),
            queue_depth: 64,
        }
    }
}

/// How [`start`] ended well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    /// A session runs now.
    New,
    /// A session ran already, and goes on as it was.
    AlreadyRunning,
    /// This process is a fork of one that had used the profiler; it cannot record.
    Forked,
}

/// Why a session could not start. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An exporter refused.
    #[error("exporter {name} could not start: {source}")]
    Exporter {
        /// Its name.
        name: String,
        /// Its reason.
        #[source]
        source: ExportError,
    },
    /// The operating system refused a thread.
    #[error("the thread of {name} could not start: {source}; raise the limit on threads or close others")]
    Thread {
        /// What the thread was for.
        name: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

/// The session that runs, and what outlives it.
struct State {
    /// The consumer of the process; while a session runs, its thread has it.
    idle: Option<(Drain<'static>, ClockMap)>,
    running: Option<Running>,
    /// What is recorded, if somebody said so.
    program: Option<Arc<Program>>,
}

struct Running {
    control: Arc<Control>,
    consumer: JoinHandle<(Drain<'static>, ClockMap)>,
    exporters: Vec<RunningExporter>,
    companions: Vec<Box<dyn Companion>>,
    start_ns: i64,
}

/// Something that produces records as long as a session runs, on threads of its own.
pub(crate) trait Companion: Send {
    /// The session is about to end: hands in what is still to be recorded, in `patience` at most.
    fn stop(self: Box<Self>, patience: Duration);
}

struct RunningExporter {
    queue: Arc<Queue>,
    report: Arc<Mutex<ExporterReport>>,
}

static STATE: Mutex<State> = Mutex::new(State { idle: None, running: None, program: None });
static SWITCH: Switch = Switch::new();

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a lock that the calling thread itself may hold further up its stack; `None` after the deadline.
fn lock_until<T>(mutex: &Mutex<T>, deadline: Instant) -> Option<MutexGuard<'_, T>> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(error)) => return Some(error.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Starts a session. The calling thread counts as the program's main one.
///
/// # Errors
/// [`StartError`]; everything begun is undone then.
pub fn start(options: SessionOptions) -> Result<Started, StartError> {
    if fork::is_child() {
        return Ok(Started::Forked);
    }
    first_use::is_not_awaited();
    let mut state = lock(&STATE);
    if state.running.is_some() {
        return Ok(Started::AlreadyRunning);
    }
    fork::watch();
    thread::set_main();
    let clock = Clock::get();
    let (mut drain, mut map) =
        state.idle.take().unwrap_or_else(|| (Drain::new(local::capture()), clock.map()));
    clock.follow(&mut map);
    map.forget_residual();
    let start_ns = map.to_ns(Ticks::now().raw());
    prepare_chunks(options.buffer_budget_bytes);

    let begin = SessionStart {
        wall_clock: SystemTime::now(),
        time_ns: start_ns,
        consumer_slot: CONSUMER_SLOT,
        sites: site::all(),
        program: state.program.clone(),
    };
    let result = start_exporters(options.exporters, options.queue_depth, &begin);
    let exporters = match result {
        Ok(exporters) => exporters,
        Err(error) => {
            state.idle = Some((drain, map));
            return Err(error);
        }
    };
    let control =
        Arc::new(Control::new(options.cadence, exporters.iter().map(|one| Arc::clone(&one.queue)).collect()));
    drain.begin_session(&consumer::label(), start_ns);
    let parts = Arc::new(Mutex::new(Some((drain, map))));
    match spawn_consumer(&control, Arc::clone(&parts)) {
        Ok(consumer) => {
            gauges::begin_session();
            SWITCH.arm(&GATE.mask, options.mask);
            let companions = Vec::new();
            state.running = Some(Running { control, consumer, exporters, companions, start_ns });
            Ok(Started::New)
        }
        Err(source) => {
            state.idle = lock(&parts).take();
            finish_exporters(&exporters, SessionEnd { time_ns: start_ns, start_ns }, EXPORTER_BUDGET);
            Err(StartError::Thread { name: "the consumer".to_owned(), source })
        }
    }
}

type Parts = Arc<Mutex<Option<(Drain<'static>, ClockMap)>>>;

/// The consumer's thread takes its parts out of `parts`, where they stay if it cannot be started.
fn spawn_consumer(
    control: &Arc<Control>,
    parts: Parts,
) -> std::io::Result<JoinHandle<(Drain<'static>, ClockMap)>> {
    let control = Arc::clone(control);
    std::thread::Builder::new().name(consumer::NAME.to_owned()).spawn(move || {
        let (drain, map) = lock(&parts).take().expect("the parts were put in for this thread");
        Consumer::new(drain, map, control).run()
    })
}

fn prepare_chunks(budget_bytes: u64) {
    let chunks = (budget_bytes / CHUNK_DATA_BYTES as u64).clamp(2, u64::from(local::MAX_CHUNKS)) as u32;
    let pool = local::capture().pool();
    let limit = pool.set_limit(chunks);
    pool.warm(0, WARM_CHUNKS.min(limit));
}

/// Initialises the exporters and starts their threads; all of them or none.
fn start_exporters(
    exporters: Vec<Box<dyn Exporter>>,
    queue_depth: usize,
    begin: &SessionStart,
) -> Result<Vec<RunningExporter>, StartError> {
    let start_ns = begin.time_ns;
    let mut running = Vec::new();
    for exporter in exporters {
        match start_exporter(exporter, queue_depth, begin) {
            Ok(exporter) => running.push(exporter),
            Err(error) => {
                finish_exporters(&running, SessionEnd { time_ns: start_ns, start_ns }, EXPORTER_BUDGET);
                return Err(error);
            }
        }
    }
    Ok(running)
}

fn start_exporter(
    mut exporter: Box<dyn Exporter>,
    queue_depth: usize,
    begin: &SessionStart,
) -> Result<RunningExporter, StartError> {
    let name = exporter.name().to_owned();
    if let Err(source) = exporter.init(begin) {
        return Err(StartError::Exporter { name, source });
    }
    let queue = Arc::new(Queue::new(queue_depth));
    let report = Arc::new(Mutex::new(ExporterReport { name: name.clone(), ..ExporterReport::default() }));
    let worker = Worker::new(exporter, Arc::clone(&queue), Arc::clone(&report));
    let thread = std::thread::Builder::new().name(format!("Typhon.Export-{name}"));
    match thread.spawn(move || worker.run()) {
        Ok(_detached) => Ok(RunningExporter { queue, report }),
        Err(source) => Err(StartError::Thread { name, source }),
    }
}

/// Waits for the exporters to write what they have, and collects their reports.
fn finish_exporters(exporters: &[RunningExporter], end: SessionEnd, budget: Duration) -> Vec<ExporterReport> {
    exporters.iter().for_each(|exporter| exporter.queue.close(end));
    let finished = exporters.iter().map(|exporter| {
        let in_time = exporter.queue.wait_abandoned(Instant::now() + budget);
        let mut report = lock(&exporter.report).clone();
        report.dropped_records += exporter.queue.dropped().1;
        if !in_time {
            report.error.get_or_insert_with(|| format!("not finished {} s after the stop", budget.as_secs()));
        }
        report
    });
    finished.collect()
}

/// Has something stopped together with the session that runs. Without one, it is stopped at once.
pub(crate) fn accompany(companion: Box<dyn Companion>) {
    match &mut lock(&STATE).running {
        Some(running) => running.companions.push(companion),
        None => companion.stop(Duration::ZERO),
    }
}

/// Stops the session: no kind is recorded from here on, and what was recorded is drained and written. `None` when
/// none runs. Takes at most 2 s plus 5 s per exporter that does not finish, and 5 s for a .NET runtime that does not
/// answer.
pub fn stop() -> Option<SessionReport> {
    if fork::is_child() {
        return None;
    }
    let budgets = Budgets { companion: COMPANION_BUDGET, drain: DRAIN_BUDGET, exporter: EXPORTER_BUDGET };
    stop_running(lock(&STATE), budgets)
}

/// As [`stop`], for the end of the process: takes about as long as `budget` at most, also when another thread is
/// starting or stopping a session.
pub(crate) fn stop_within(budget: Duration) -> Option<SessionReport> {
    if fork::is_child() {
        return None;
    }
    let state = lock_until(&STATE, Instant::now() + budget)?;
    let budgets = Budgets { companion: budget / 4, drain: budget / 2, exporter: budget / 2 };
    stop_running(state, budgets)
}

/// How long each part of a stop may take.
struct Budgets {
    companion: Duration,
    drain: Duration,
    exporter: Duration,
}

fn stop_running(mut state: MutexGuard<'_, State>, budgets: Budgets) -> Option<SessionReport> {
    let mut running = state.running.take()?;
    // Last in, first out; while records still count.
    while let Some(companion) = running.companions.pop() {
        companion.stop(budgets.companion);
    }
    SWITCH.disarm(&GATE.mask);
    running.control.stop(Instant::now() + budgets.drain);
    let (drain, map) = match running.consumer.join() {
        Ok(parts) => parts,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    let time_ns = map.to_ns(Ticks::now().raw());
    let end = SessionEnd { time_ns, start_ns: running.start_ns };
    let exporters = finish_exporters(&running.exporters, end, budgets.exporter);
    let report = SessionReport::new(&drain, &map, exporters);
    state.idle = Some((drain, map));
    Some(report)
}

/// Drains everything recorded before the call and waits until the exporters have it; `false` when no session runs or
/// that took longer than `patience`.
pub fn flush(patience: Duration) -> bool {
    if fork::is_child() {
        return false;
    }
    let deadline = Instant::now() + patience;
    let state = lock_until(&STATE, deadline);
    let control = state.and_then(|state| state.running.as_ref().map(|running| Arc::clone(&running.control)));
    control.is_some_and(|control| control.flush(deadline))
}

/// See [`crate::describe`].
pub(crate) fn describe(program: Program) {
    if fork::is_child() {
        return;
    }
    let program = Arc::new(program);
    // Under the lock, so that a session that starts meanwhile either begins with the description or is told.
    let mut state = lock(&STATE);
    state.program = Some(Arc::clone(&program));
    if let Some(running) = &state.running {
        running.exporters.iter().for_each(|exporter| exporter.queue.describe(Arc::clone(&program)));
    }
}

/// Does a session run?
pub fn is_running() -> bool {
    !fork::is_child() && lock(&STATE).running.is_some()
}

/// Records exactly these kinds from now on, while a session runs; every difference is marked in the trace. `false`,
/// and nothing changed, when none runs.
pub fn set_mask(mask: KindMask) -> bool {
    if fork::is_child() {
        return false;
    }
    SWITCH.set(&GATE.mask, mask, Ticks::now().raw())
}

/// Ends the state in which every kind counts as recorded until somebody asks.
pub(crate) fn clear_initial_mask() {
    SWITCH.clear_unless_armed(&GATE.mask);
}
