//! What the threads of a runtime and its handle share.

use super::error::Terminal;
use super::hooks::HookKind;
use super::outcome::TickOutcome;
use super::resources::Numbers;
use crate::metronome::TimerMetrics;
use crate::overload::Rung;
use crate::scheduler::board::Board;
use crate::scheduler::claim::Epoch;
use crate::scheduler::control::Control;
use crate::scheduler::execution::Execution;
use crate::telemetry::Telemetry;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use typhon_engine::options::RuntimeOptions;

pub(crate) struct Shared {
    pub(crate) board: Board,
    pub(crate) execution: Execution,
    pub(crate) control: Arc<Control>,
    pub(crate) options: RuntimeOptions,
    pub(crate) workers: usize,
    pub(crate) telemetry: Telemetry,
    pub(crate) numbers: Arc<Numbers>,
    /// The hooks that the driver runs: a [`HookKind`] and one more; 0 for none.
    hook: AtomicU8,
    /// Tick in the words of the board, for diagnostics.
    epoch: AtomicU64,
    last_outcome: Mutex<Option<TickOutcome>>,
    timer: Mutex<TimerMetrics>,
    overload: Mutex<Rung>,
    terminal: Mutex<Option<Terminal>>,
    /// Names of threads that have not ended.
    pub(crate) threads: Arc<Threads>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(
        board: Board,
        execution: Execution,
        options: RuntimeOptions,
        workers: usize,
        telemetry: Telemetry,
        numbers: Arc<Numbers>,
    ) -> Self {
        Self {
            control: Arc::clone(&execution.control),
            board,
            execution,
            options,
            workers,
            telemetry,
            numbers,
            hook: AtomicU8::new(0),
            epoch: AtomicU64::new(0),
            last_outcome: Mutex::new(None),
            timer: Mutex::new(TimerMetrics::default()),
            overload: Mutex::new(Rung::NORMAL),
            terminal: Mutex::new(None),
            threads: Arc::default(),
        }
    }

    pub(crate) fn set_epoch(&self, epoch: Epoch) {
        self.epoch.store(epoch.get(), Ordering::Release);
    }

    pub(crate) fn epoch(&self) -> Epoch {
        Epoch::from_raw(self.epoch.load(Ordering::Acquire))
    }

    pub(crate) fn publish(&self, outcome: TickOutcome) {
        *lock(&self.last_outcome) = Some(outcome);
    }

    pub(crate) fn last_outcome(&self) -> Option<TickOutcome> {
        lock(&self.last_outcome).clone()
    }

    pub(crate) fn set_timer(&self, metrics: TimerMetrics) {
        *lock(&self.timer) = metrics;
    }

    pub(crate) fn timer(&self) -> TimerMetrics {
        *lock(&self.timer)
    }

    pub(crate) fn set_overload(&self, rung: Rung) {
        *lock(&self.overload) = rung;
    }

    pub(crate) fn overload(&self) -> Rung {
        *lock(&self.overload)
    }

    /// The runtime has ended; the first cause stays.
    pub(crate) fn end(&self, cause: Terminal) {
        lock(&self.terminal).get_or_insert(cause);
    }

    pub(crate) fn terminal(&self) -> Option<Terminal> {
        lock(&self.terminal).clone()
    }

    /// Says which hooks run from here on.
    pub(crate) fn set_hook(&self, kind: Option<HookKind>) {
        self.hook.store(kind.map_or(0, |kind| kind as u8 + 1), Ordering::Release);
    }

    /// The hooks that run now.
    pub(crate) fn hook(&self) -> Option<HookKind> {
        HookKind::ALL.into_iter().find(|&kind| kind as u8 + 1 == self.hook.load(Ordering::Acquire))
    }

    /// Names of the systems that workers run now, gates included, and of the hooks that the driver runs.
    pub(crate) fn running(&self) -> Vec<String> {
        let running: BTreeSet<u16> =
            self.board.workers.iter().filter_map(|worker| worker.running()).collect();
        let systems = self.execution.graph.systems();
        let running = running.into_iter().map(|system| systems[usize::from(system)].name.clone());
        running.chain(self.hook().map(|kind| kind.name().to_owned())).collect()
    }

    /// Marks the calling thread as one of this runtime's until the guard is dropped.
    pub(crate) fn enter(&self) -> Entered {
        ENTERED.with_borrow_mut(|entered| entered.push(self.address()));
        Entered
    }

    /// Is the calling thread one of this runtime's? It then runs a tick of it, maybe below that of another runtime, and
    /// must not wait for the tick to end.
    pub(crate) fn is_own_thread(&self) -> bool {
        // A thread that is past its destructors runs no tick.
        ENTERED.try_with(|entered| entered.borrow().contains(&self.address())).unwrap_or(false)
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

thread_local! {
    /// Addresses of what the runtimes share that the thread is in, the outermost first: a system may step a runtime of
    /// its own.
    static ENTERED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

pub(crate) struct Entered;

impl Drop for Entered {
    fn drop(&mut self) {
        ENTERED.with_borrow_mut(Vec::pop);
    }
}

/// Is a thread of this name among those?
pub(crate) fn is_among(name: &str, threads: &[String]) -> bool {
    threads.iter().any(|thread| thread == name)
}

/// The threads of a runtime, by name.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    alive: Mutex<Vec<String>>,
    changed: Condvar,
}

impl Threads {
    pub(crate) fn started(&self, name: &str) {
        lock(&self.alive).push(name.to_owned());
    }

    pub(crate) fn ended(&self, name: &str) {
        lock(&self.alive).retain(|alive| alive != name);
        self.changed.notify_all();
    }

    /// Those that are alive.
    pub(crate) fn alive(&self) -> Vec<String> {
        lock(&self.alive).clone()
    }

    pub(crate) fn is_alive(&self, name: &str) -> bool {
        is_among(name, &lock(&self.alive))
    }

    /// Waits until `is_enough` of those that are alive, or for so long.
    pub(crate) fn wait(&self, timeout: Duration, is_enough: impl Fn(&[String]) -> bool) {
        let alive = lock(&self.alive);
        drop(self.changed.wait_timeout_while(alive, timeout, |alive| !is_enough(alive)));
    }
}

/// One line on standard error; a program without one has nobody to tell.
pub(crate) fn say(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "typhon-runtime: {line}");
}
