//! Gauges: numbers that are read once per tick, or in programs without ticks once per interval, all in one record
//! (kind 76).
//!
//! The profiler knows the totals of [`memory`]; everything else comes from sources that the program registers.
//! Sources are only asked while kind 76 is recorded, by the thread whose tick ended or by a thread for the interval.
#![forbid(unsafe_code)]

use crate::clock::Ticks;
use crate::event::{is_recorded, put_instant};
use crate::say::say;
use crate::session::Companion;
use crate::{fork, memory, own_thread};
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use typhon_trace::event::PerTickSnapshot;
pub use typhon_trace::event::{Gauge, GaugeValue};
use typhon_trace::registry;

/// Snapshots after which gauges that hardly ever change are written again.
const ONCE_INTERVAL: u32 = 1_000;

/// Something that has gauges.
pub trait GaugeSource: Send + Sync {
    /// Sets the values of this source's gauges. Called often: it should only read numbers that are at hand, and must
    /// not register or drop sources. A source that panics is not asked again.
    fn read(&self, readings: &mut Readings);
}

impl<F: Fn(&mut Readings) + Send + Sync> GaugeSource for F {
    fn read(&self, readings: &mut Readings) {
        self(readings);
    }
}

/// The values of one snapshot.
#[derive(Debug)]
pub struct Readings {
    gauges: Vec<Gauge>,
    with_once: bool,
}

impl Readings {
    /// Sets a gauge. The ids of the registry have names and units ([`registry::gauge`]); of those marked "once",
    /// readings are left out of most snapshots. Ids from 0x8000 are the program's own and appear as numbers.
    pub fn set(&mut self, id: u16, value: GaugeValue) {
        let is_due = self.with_once || !registry::gauge(id).is_some_and(|gauge| gauge.once);
        if is_due {
            self.gauges.push(Gauge { id, value });
        }
    }
}

/// A registered source; dropping it takes the source out.
#[must_use = "dropping it takes the source out again"]
pub struct Registration {
    source: Arc<dyn GaugeSource>,
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").finish_non_exhaustive()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // A thread that a forked child does not have may hold the lock for ever; nothing is read there anyway.
        if !fork::is_child() {
            lock().sources.retain(|source| !Arc::ptr_eq(source, &self.source));
        }
    }
}

/// Has a source read from now on, in this recording and later ones.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use typhon_profiler::gauges::{self, GaugeValue, Readings};
///
/// static QUEUED: AtomicU32 = AtomicU32::new(0);
///
/// let _queue = gauges::register(|readings: &mut Readings| {
///     readings.set(0x8000, GaugeValue::U32Count(QUEUED.load(Ordering::Relaxed)));
/// });
/// ```
pub fn register(source: impl GaugeSource + 'static) -> Registration {
    let source: Arc<dyn GaugeSource> = Arc::new(source);
    if !fork::is_child() {
        lock().sources.push(Arc::clone(&source));
    }
    Registration { source }
}

struct State {
    sources: Vec<Arc<dyn GaugeSource>>,
    /// Snapshots since the "once" gauges were written; `None` when this recording does not have them yet.
    since_once: Option<u32>,
    /// The last tick that ended.
    tick: u32,
    /// A tick ended since the interval was last over.
    ticks: bool,
}

static STATE: Mutex<State> =
    Mutex::new(State { sources: Vec::new(), since_once: None, tick: 0, ticks: false });

fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A recording begins: it needs every gauge once.
pub(crate) fn begin_session() {
    lock().since_once = None;
}

/// A tick of the program's own ended.
pub(crate) fn tick_ended(number: u32) {
    if is_recorded::<PerTickSnapshot<'_>>() {
        let mut state = lock();
        (state.tick, state.ticks) = (number, true);
        drop(state);
        snapshot();
    }
}

/// An interval is over; there is nothing to do for it while there are ticks.
fn interval_over() {
    if is_recorded::<PerTickSnapshot<'_>>() && !std::mem::take(&mut lock().ticks) {
        snapshot();
    }
}

/// Reads all gauges and records them. A snapshot without values is none.
fn snapshot() {
    let state = lock();
    let with_once = state.since_once.is_none_or(|count| count >= ONCE_INTERVAL);
    let (sources, tick_number) = (state.sources.clone(), state.tick);
    // Sources are foreign code, which must not run under the lock.
    drop(state);
    let mut readings = Readings { gauges: Vec::new(), with_once };
    read_memory(&mut readings);
    sources.iter().for_each(|source| read(source, &mut readings));
    if readings.gauges.is_empty() {
        return;
    }
    let gauges = &readings.gauges;
    if put_instant(Ticks::now(), &PerTickSnapshot { tick_number, gauges }) {
        let mut state = lock();
        state.since_once = if with_once { Some(1) } else { state.since_once.map(|count| count + 1) };
    }
}

/// Asks one source. One that panics is left out and asked no more: neither the tick of the program that asks nor the
/// gauges of others may end with it.
fn read(source: &Arc<dyn GaugeSource>, readings: &mut Readings) {
    let before = readings.gauges.len();
    if catch_unwind(AssertUnwindSafe(|| source.read(readings))).is_err() {
        readings.gauges.truncate(before);
        lock().sources.retain(|other| !Arc::ptr_eq(other, source));
        say("a source of gauges panicked and is not asked any more; the program goes on");
    }
}

/// Totals of native memory, if the program says anything about it.
fn read_memory(readings: &mut Readings) {
    let totals = memory::totals();
    if totals.peak_bytes > 0 {
        readings.set(0x0100, GaugeValue::U64Bytes(totals.bytes));
        readings.set(0x0101, GaugeValue::U64Bytes(totals.peak_bytes));
        readings.set(0x0102, GaugeValue::U32Count(totals.live_blocks));
    }
}

/// The thread that reads the gauges of programs without ticks. It ends some time after this is dropped.
#[derive(Debug)]
pub(crate) struct IntervalReader(Arc<(Mutex<bool>, Condvar)>);

impl IntervalReader {
    pub(crate) fn start(interval: Duration) -> io::Result<Self> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let reader = Self(Arc::clone(&stop));
        own_thread::spawn("Typhon.Gauges", move || {
            let (stopped, changed) = &*stop;
            loop {
                let guard = stopped.lock().unwrap_or_else(PoisonError::into_inner);
                let wait = changed.wait_timeout_while(guard, interval, |stopped| !*stopped);
                if *wait.unwrap_or_else(PoisonError::into_inner).0 {
                    return;
                }
                interval_over();
            }
        })?;
        Ok(reader)
    }
}

impl Companion for IntervalReader {
    fn stop(self: Box<Self>, _patience: Duration) {
        // Dropping it is enough: a reading that is under way is not waited for.
    }
}

impl Drop for IntervalReader {
    fn drop(&mut self) {
        let (stopped, changed) = &*self.0;
        *stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }
}
