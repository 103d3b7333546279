//! The thread that runs the callbacks of timers.
#![forbid(unsafe_code)]

use super::metrics::{ServiceMetrics, TimerMetrics};
use crate::Deadline;
use crate::atomic::{AtomicU32, Mutex, MutexGuard, Ordering, lock};
use crate::clock::{Clock, SystemClock};
use crate::panics::{drop_guarded, guarded};
use crate::sleep::PreciseSleep;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use thiserror::Error;

/// How exactly a timer keeps its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// As late as the system's wakes are; nothing spins.
    #[default]
    Coarse,
    /// Spins from shortly before each target.
    Precise,
}

/// Why a timer was not made.
#[derive(Debug, Error)]
pub enum TimerError {
    /// An interval of nothing.
    #[error("the interval of timer {name:?} must be at least 1 ns and at most 292 years")]
    BadInterval {
        /// Name of the timer.
        name: String,
    },
    /// The system does not give a thread.
    #[error("no thread for the timers of {service:?}: {error}")]
    NoThread {
        /// Name of the service.
        service: String,
        /// What the system says.
        error: std::io::Error,
    },
}

type Callback = Box<dyn FnMut() + Send>;

struct Entry {
    id: u64,
    name: String,
    interval_ns: i64,
    precision: Precision,
    next_ns: i64,
    /// `None` while it runs.
    callback: Option<Callback>,
    metrics: TimerMetrics,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    last_id: u64,
    metrics: ServiceMetrics,
    thread: Option<JoinHandle<()>>,
    is_stopped: bool,
}

struct Shared {
    name: String,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Changes whenever the thread has to look at its timers again.
    changes: AtomicU32,
}

/// One thread and its timers. The thread begins with the first timer; dropping the service ends it.
pub struct TimerService {
    shared: Arc<Shared>,
}

impl fmt::Debug for TimerService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerService").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

/// The service that all of the process may use, for callbacks that are short.
pub fn shared() -> &'static Arc<TimerService> {
    static SHARED: OnceLock<Arc<TimerService>> = OnceLock::new();
    SHARED.get_or_init(|| Arc::new(TimerService::new("Typhon.Timer", Arc::new(SystemClock))))
}

impl TimerService {
    /// A service whose thread will have this name, on this clock.
    pub fn new(name: &str, clock: Arc<dyn Clock>) -> Self {
        let (state, changes) = (Mutex::default(), AtomicU32::new(0));
        Self { shared: Arc::new(Shared { name: name.to_owned(), clock, state, changes }) }
    }

    /// Runs `callback` every `interval` from now on, for the first time after one interval, until the timer is dropped.
    /// A panic of the callback is caught and counted, and the timer goes on.
    ///
    /// # Errors
    /// [`TimerError::BadInterval`], [`TimerError::NoThread`].
    pub fn every(
        &self,
        name: &str,
        interval: Duration,
        precision: Precision,
        callback: impl FnMut() + Send + 'static,
    ) -> Result<Timer, TimerError> {
        let interval_ns = i64::try_from(interval.as_nanos()).ok().filter(|ns| *ns > 0);
        let interval_ns = interval_ns.ok_or_else(|| TimerError::BadInterval { name: name.to_owned() })?;
        let mut state = self.shared.lock();
        self.shared.ensure_thread(&mut state)?;
        state.last_id += 1;
        let id = state.last_id;
        state.entries.push(Entry {
            id,
            name: name.to_owned(),
            interval_ns,
            precision,
            next_ns: self.shared.clock.now_ns().saturating_add(interval_ns),
            callback: Some(Box::new(callback)),
            metrics: TimerMetrics::default(),
        });
        drop(state);
        self.shared.look_again();
        Ok(Timer { shared: Arc::clone(&self.shared), id })
    }

    /// How well its timers keep their time.
    pub fn metrics(&self) -> ServiceMetrics {
        self.shared.lock().metrics
    }

    /// Names of its timers.
    pub fn timers(&self) -> Vec<String> {
        self.shared.lock().entries.iter().map(|entry| entry.name.clone()).collect()
    }

    /// The clock of its timers.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }
}

impl Drop for TimerService {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_stopped = true;
        let thread = state.thread.take();
        drop(state);
        self.shared.look_again();
        // A callback that drops its own service cannot wait for itself.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "panics of callbacks are caught");
        }
    }
}

/// A timer. Once it is dropped its callback does not begin again; a run that has begun goes on.
#[must_use = "the timer ends when this is dropped"]
pub struct Timer {
    shared: Arc<Shared>,
    id: u64,
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Timer {
    /// How its callback has run; `None` once the service has ended.
    pub fn metrics(&self) -> Option<TimerMetrics> {
        self.shared.lock().entries.iter().find(|entry| entry.id == self.id).map(|entry| entry.metrics)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let place = state.entries.iter().position(|entry| entry.id == self.id);
        let entry = place.map(|place| state.entries.swap_remove(place));
        // The callback is dropped without the lock: what it holds may be a timer.
        drop(state);
        drop(entry);
        self.shared.look_again();
    }
}

/// A timer with a thread of its own.
#[must_use = "the timer ends when this is dropped"]
#[derive(Debug)]
pub struct Dedicated {
    timer: Timer,
    service: TimerService,
}

impl Dedicated {
    /// Runs `callback` every `interval` on a thread of this name, spinning to each target.
    ///
    /// # Errors
    /// As [`TimerService::every`].
    pub fn start(
        name: &str,
        interval: Duration,
        clock: Arc<dyn Clock>,
        callback: impl FnMut() + Send + 'static,
    ) -> Result<Self, TimerError> {
        let service = TimerService::new(name, clock);
        let timer = service.every(name, interval, Precision::Precise, callback)?;
        Ok(Self { timer, service })
    }

    /// How its callback has run.
    pub fn metrics(&self) -> (TimerMetrics, ServiceMetrics) {
        (self.timer.metrics().unwrap_or_default(), self.service.metrics())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn look_again(&self) {
        self.changes.fetch_add(1, Ordering::Release);
        self.clock.wake_all(&self.changes);
    }

    fn ensure_thread(self: &Arc<Self>, state: &mut State) -> Result<(), TimerError> {
        if state.thread.is_none() {
            let shared = Arc::clone(self);
            let thread = std::thread::Builder::new().name(self.name.clone()).spawn(move || shared.run());
            let thread =
                thread.map_err(|error| TimerError::NoThread { service: self.name.clone(), error })?;
            state.thread = Some(thread);
        }
        Ok(())
    }

    fn run(&self) {
        let mut sleep = PreciseSleep::new();
        loop {
            // Before the timers are looked at: a change after that ends the sleep.
            let changes = self.changes.load(Ordering::Acquire);
            let mut state = self.lock();
            if state.is_stopped {
                return;
            }
            let next = state.entries.iter().min_by_key(|entry| entry.next_ns);
            let next = next.map(|entry| (entry.id, entry.next_ns, entry.precision));
            match next {
                None => {
                    drop(state);
                    let _ = self.clock.wait(&self.changes, changes, Deadline::INFINITE);
                }
                Some((id, next_ns, _)) if next_ns <= self.clock.now_ns() => {
                    let callback = state.take_callback(id);
                    drop(state);
                    self.fire(id, next_ns, callback);
                }
                Some((_, next_ns, Precision::Coarse)) => {
                    drop(state);
                    let _ = self.clock.wait(&self.changes, changes, Deadline::at_ns(next_ns));
                }
                Some((_, next_ns, Precision::Precise)) => {
                    drop(state);
                    sleep.sleep_until_or_woken(&*self.clock, next_ns, &self.changes, changes);
                }
            }
        }
    }

    /// Runs a callback, without the lock, and says when it is due again.
    fn fire(&self, id: u64, target_ns: i64, callback: Option<Callback>) {
        let Some(mut callback) = callback else { return };
        let begun_ns = self.clock.now_ns();
        let has_panicked = !guarded(&mut callback);
        let ended_ns = self.clock.now_ns();
        let mut state = self.lock();
        let Some(place) = state.entries.iter().position(|entry| entry.id == id) else {
            // Dropped meanwhile; so is what the callback holds, without the lock.
            drop(state);
            drop_guarded(callback);
            return;
        };
        let entry = &mut state.entries[place];
        let missed = entry.advance(ended_ns);
        entry.metrics.run(ended_ns - begun_ns, missed, has_panicked);
        entry.callback = Some(callback);
        state.metrics.tick(begun_ns - target_ns, missed);
    }
}

impl State {
    fn take_callback(&mut self, id: u64) -> Option<Callback> {
        self.entries.iter_mut().find(|entry| entry.id == id)?.callback.take()
    }
}

impl Entry {
    /// Moves to the next target; returns how many are skipped because they are more than an interval ago.
    fn advance(&mut self, now_ns: i64) -> u64 {
        self.next_ns = self.next_ns.saturating_add(self.interval_ns);
        let skipped = (now_ns.saturating_sub(self.next_ns) / self.interval_ns).max(0);
        self.next_ns += skipped * self.interval_ns;
        skipped.unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(next_ns: i64, interval_ns: i64) -> Entry {
        let (callback, metrics) = (None, TimerMetrics::default());
        Entry {
            id: 1,
            name: String::new(),
            interval_ns,
            precision: Precision::Coarse,
            next_ns,
            callback,
            metrics,
        }
    }

    proptest! {
        #[test]
        fn b26_targets_stay_on_the_grid_and_at_most_one_is_behind(interval_ns in 1..5_000i64, late_ns in 0..100_000i64) {
            let mut entry = entry(70, interval_ns);
            let now_ns = 70 + late_ns;
            let missed = entry.advance(now_ns);
            prop_assert_eq!((entry.next_ns - 70) % interval_ns, 0);
            prop_assert_eq!((entry.next_ns - 70) / interval_ns, 1 + missed as i64);
            // Less than an interval behind, and nothing is skipped without need.
            prop_assert!(now_ns - entry.next_ns < interval_ns);
            prop_assert!(missed == 0 || now_ns >= entry.next_ns);
        }
    }
}
