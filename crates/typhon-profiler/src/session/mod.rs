//! Sessions: from a mask and exporters to a running capture and back.
//!
//! At most one session runs in a process. Start and stop are serialised and idempotent. Chunks, slots and what was
//! reported survive a session; see `Drain::begin_session` for what a new one leaves behind.
#![forbid(unsafe_code)]

mod consumer;
mod report;

pub use report::{ExporterReport, Losses, SessionReport};

use crate::capture::{CONSUMER_SLOT, chunk::CHUNK_DATA_BYTES};
use crate::clock::Ticks;
use crate::export::queue::Queue;
use crate::export::worker::{Worker, cancel, guarded};
use crate::export::{ExportError, Exporter, SessionEnd, SessionStart};
use crate::gates::KindMask;
use crate::lifecycle::first_use;
use crate::mask::GATE;
use crate::program::Program;
use crate::stage::Stage;
use crate::switch::Switch;
use crate::{fork, gauges, local, own_thread, site, thread};
use consumer::Consumer;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
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
    /// An earlier session ended in a panic of the profiler's own thread.
    #[error(
        "the profiler's thread panicked in an earlier session; nothing can be recorded in this process any more"
    )]
    Broken,
}

/// The session that runs, and what outlives it.
struct State {
    stage: Stage<Consumer, Beside>,
    /// What is recorded, if somebody said so.
    program: Option<Arc<Program>>,
}

/// What runs beside the consumer.
struct Beside {
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

impl RunningExporter {
    /// What it did so far.
    fn report(&self) -> ExporterReport {
        let mut report = lock(&self.report).clone();
        report.dropped_records += self.queue.dropped().1;
        report
    }
}

static STATE: Mutex<State> = Mutex::new(State { stage: Stage::new(), program: None });
static SWITCH: Switch = Switch::new();
/// Sessions begun so far.
static NUMBER: AtomicU32 = AtomicU32::new(0);

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
    if state.stage.is_running() {
        return Ok(Started::AlreadyRunning);
    }
    fork::watch();
    thread::set_main();
    let Some(mut consumer) = state.stage.take_idle(|| Consumer::new(options.cadence)) else {
        return Err(StartError::Broken);
    };
    let start_ns = consumer.follow_clock();
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
            state.stage.put_back(consumer);
            return Err(error);
        }
    };
    let queues = exporters.iter().map(|exporter| Arc::clone(&exporter.queue)).collect();
    consumer.begin_session(queues, options.cadence, start_ns);
    let beside = Beside { exporters, companions: Vec::new(), start_ns };
    let arm = || {
        gauges::begin_session();
        NUMBER.fetch_add(1, Ordering::Relaxed);
        SWITCH.arm(&GATE.mask, options.mask);
    };
    match state.stage.begin(consumer::NAME, consumer, beside, arm) {
        Ok(()) => Ok(Started::New),
        Err((source, Beside { exporters, .. })) => {
            cancel_exporters(&exporters);
            Err(StartError::Thread { name: "the consumer".to_owned(), source })
        }
    }
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
    let mut running = Vec::new();
    for exporter in exporters {
        match start_exporter(exporter, queue_depth, begin) {
            Ok(exporter) => running.push(exporter),
            Err(error) => {
                cancel_exporters(&running);
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
    let mut name = "without a name".to_owned();
    // Foreign code, which may panic: the caller has the consumer in hand, and there will be no second one.
    let initialised = guarded(|| {
        exporter.name().clone_into(&mut name);
        exporter.init(begin)
    });
    if let Err(source) = initialised {
        cancel(&mut *exporter);
        return Err(StartError::Exporter { name, source });
    }
    let queue = Arc::new(Queue::new(queue_depth));
    let report = Arc::new(Mutex::new(ExporterReport { name: name.clone(), ..ExporterReport::default() }));
    let worker = Worker::new(exporter, Arc::clone(&queue), Arc::clone(&report));
    // Where both find it: the thread, or this one when there is no thread.
    let place = Arc::new(Mutex::new(Some(worker)));
    let from = Arc::clone(&place);
    let spawned = own_thread::spawn(&format!("Typhon.Export-{name}"), move || {
        let worker = lock(&from).take();
        worker.into_iter().for_each(Worker::run);
    });
    match spawned {
        Ok(_detached) => Ok(RunningExporter { queue, report }),
        Err(source) => {
            lock(&place).iter_mut().for_each(Worker::cancel);
            Err(StartError::Thread { name, source })
        }
    }
}

/// Has exporters whose session does not come about undo their beginnings.
fn cancel_exporters(exporters: &[RunningExporter]) {
    exporters.iter().for_each(|exporter| exporter.queue.cancel());
    let deadline = Instant::now() + EXPORTER_BUDGET;
    exporters.iter().for_each(|exporter| _ = exporter.queue.wait_abandoned(deadline));
}

/// Waits for the exporters to write what they have, and collects their reports.
fn finish_exporters(exporters: &[RunningExporter], end: SessionEnd, budget: Duration) -> Vec<ExporterReport> {
    exporters.iter().for_each(|exporter| exporter.queue.close(end));
    let finished = exporters.iter().map(|exporter| {
        let in_time = exporter.queue.wait_abandoned(Instant::now() + budget);
        let mut report = exporter.report();
        if !in_time {
            report.error.get_or_insert_with(|| format!("not finished {} s after the stop", budget.as_secs()));
        }
        report
    });
    finished.collect()
}

/// Has something stopped together with the session that runs. Without one, it is stopped at once.
pub(crate) fn accompany(companion: Box<dyn Companion>) {
    match lock(&STATE).stage.beside() {
        Some(beside) => beside.companions.push(companion),
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
    // Last in, first out; while records still count.
    let stop_companions = |beside: &mut Beside| {
        while let Some(companion) = beside.companions.pop() {
            companion.stop(budgets.companion);
        }
    };
    let disarm = || SWITCH.disarm(&GATE.mask);
    let (consumer, beside) = state.stage.end(budgets.drain, stop_companions, disarm)?;
    let end = SessionEnd { time_ns: consumer.now_ns(), start_ns: beside.start_ns };
    let exporters = finish_exporters(&beside.exporters, end, budgets.exporter);
    Some(consumer.report(exporters))
}

/// Drains everything recorded before the call and waits until the exporters have it; `false` when no session runs,
/// that took longer than `patience`, or the session was stopped meanwhile.
pub fn flush(patience: Duration) -> bool {
    if fork::is_child() {
        return false;
    }
    let deadline = Instant::now() + patience;
    let Some(mut state) = lock_until(&STATE, deadline) else { return false };
    let Some(control) = state.stage.control() else { return false };
    let exporters = state.stage.beside().map(|beside| &beside.exporters);
    let queues: Vec<_> =
        exporters.into_iter().flatten().map(|exporter| Arc::clone(&exporter.queue)).collect();
    drop(state);
    control.flush(deadline) && queues.iter().all(|queue| queue.wait_idle(deadline))
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
    if let Some(beside) = state.stage.beside() {
        beside.exporters.iter().for_each(|exporter| exporter.queue.describe(Arc::clone(&program)));
    }
}

/// What was lost so far; may be asked at any time, also while a session runs. Waits while one is being started or
/// stopped.
pub fn losses() -> Losses {
    if fork::is_child() {
        return Losses::default();
    }
    let mut state = lock(&STATE);
    let exporters = state.stage.beside().map(|beside| &beside.exporters);
    Losses::new(exporters.into_iter().flatten().map(RunningExporter::report).collect())
}

/// Number of the session that runs, else of the last one; 0 before the first.
pub(crate) fn number() -> u32 {
    NUMBER.load(Ordering::Relaxed)
}

/// Does a session run?
pub fn is_running() -> bool {
    !fork::is_child() && lock(&STATE).stage.is_running()
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
