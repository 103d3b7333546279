use super::host::Say;
use super::{Collection, CollectionStart, GcRecord, HeapSizes, Loss, LossKind, Suspension};
use crate::capture::PRODUCER_SLOTS;
use crate::clock::Ticks;
use crate::event::{emit_at, emit_root_span, is_recorded, put_instant};
use crate::gauges::{self, GaugeValue, Readings, Registration};
use crate::local;
use crate::names::{self, NameId};
use crate::own_thread;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use typhon_trace::event::{GcEnd, GcReason, GcStart, GcSuspendReason, GcSuspension, GcType, Instant};

/// Name of the thread.
const NAME: &str = "Typhon.GcIngest";
/// First of the gauges of generations 0, 1, 2, large and pinned objects.
const FIRST_SIZE_GAUGE: u16 = 0x0110;
const COMMITTED_GAUGE: u16 = 0x0115;

/// The end of the queue into which records are put, from one thread or several. The thread of [`Ingestion`] ends when
/// all inputs are gone. The queue is a bounded channel of the standard library.
#[derive(Debug, Clone)]
pub struct Input {
    queue: SyncSender<Queued>,
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Queued {
    Record(GcRecord),
    /// A session with a runtime broke; the time is ours, ns.
    SessionLost(u64),
}

impl Input {
    /// Puts a record into the queue; never waits. All its times are on `CLOCK_MONOTONIC`, ns. `false` if the queue was
    /// full: the record is dropped and counted, and the trace says so.
    pub fn push(&self, record: GcRecord) -> bool {
        self.offer(Queued::Record(record))
    }

    pub(super) fn session_lost(&self, now_ns: u64) -> bool {
        self.offer(Queued::SessionLost(now_ns))
    }

    fn offer(&self, queued: Queued) -> bool {
        match self.queue.try_send(queued) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                false
            }
        }
    }
}

/// The thread that records collections. Kinds that are off are left out, and what comes while nothing is recorded is
/// gone.
///
/// ```
/// use std::time::Duration;
/// use typhon_profiler::gc::{GcRecord, Ingestion, SuspendReason, Suspension};
///
/// # fn main() -> std::io::Result<()> {
/// let (input, ingestion) = Ingestion::start(1024)?;
/// input.push(GcRecord::Suspension(Suspension {
///     timestamp: 5_000_000,
///     duration_ticks: 120_000,
///     time_to_suspend_ticks: None,
///     time_to_restart_ticks: None,
///     reason: SuspendReason::GC,
///     capture_thread: 4711,
/// }));
/// drop(input);
/// assert!(ingestion.finish(Duration::from_secs(5)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Ingestion {
    done: Receiver<()>,
    _gauges: Registration,
}

impl Ingestion {
    /// Starts the thread. The queue holds `capacity` records.
    ///
    /// # Errors
    /// The operating system refuses a thread.
    pub fn start(capacity: usize) -> io::Result<(Input, Self)> {
        Self::start_saying(capacity, |_| ())
    }

    /// As [`start`](Self::start), and tells the user when nothing can be recorded.
    pub(super) fn start_saying(capacity: usize, say: Say) -> io::Result<(Input, Self)> {
        let (queue, records) = sync_channel(capacity);
        let (finished, done) = sync_channel(1);
        let input = Input { queue, dropped: Arc::default() };
        let latest = Arc::<Mutex<Option<Latest>>>::default();
        let mut recorder = Recorder {
            dropped: Arc::clone(&input.dropped),
            dropped_marked: 0,
            latest: Arc::clone(&latest),
            names: MarkerNames::get(),
            say,
            lack_is_said: false,
        };
        own_thread::spawn(NAME, move || {
            let dropped = Arc::clone(&recorder.dropped);
            take_each(&records, &dropped, |queued| recorder.record(queued));
            recorder.mark_dropped();
            // Nobody may be waiting.
            let _ = finished.send(());
        })?;
        let gauges = gauges::register(move |readings: &mut Readings| {
            if let Some(latest) = *latest.lock().unwrap_or_else(PoisonError::into_inner) {
                latest.read(readings);
            }
        });
        Ok((input, Self { done, _gauges: gauges }))
    }

    /// Waits until everything that was put in is recorded; needs all inputs to be gone. `false` if that took longer
    /// than `patience`.
    pub fn finish(&self, patience: Duration) -> bool {
        !matches!(self.done.recv_timeout(patience), Err(RecvTimeoutError::Timeout))
    }
}

/// Takes records until all inputs are gone. One that cannot be recorded is dropped and counted like those that found
/// the queue full; it does not take the following ones with it.
fn take_each(records: &Receiver<Queued>, dropped: &AtomicU64, mut take: impl FnMut(Queued)) {
    while let Ok(queued) = records.recv() {
        // What a panic leaves behind are counters and the last sizes, each written in one go.
        if catch_unwind(AssertUnwindSafe(|| take(queued))).is_err() {
            dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Sizes after the last collection that had them.
#[derive(Debug, Clone, Copy)]
struct Latest {
    heap: HeapSizes,
    committed_bytes: Option<u64>,
}

impl Latest {
    fn read(&self, readings: &mut Readings) {
        for (id, bytes) in (FIRST_SIZE_GAUGE..).zip(self.heap.size_bytes) {
            readings.set(id, GaugeValue::U64Bytes(bytes));
        }
        if let Some(bytes) = self.committed_bytes {
            readings.set(COMMITTED_GAUGE, GaugeValue::U64Bytes(bytes));
        }
    }
}

/// Names of the loss markers; `None` if the process has used up its names.
#[derive(Debug, Clone, Copy)]
struct MarkerNames {
    events_lost: Option<NameId>,
    half_open: Option<NameId>,
    without_sizes: Option<NameId>,
    queue_dropped: Option<NameId>,
    session_lost: Option<NameId>,
}

impl MarkerNames {
    fn get() -> Self {
        Self {
            events_lost: names::reserved("typhon.gc_events_lost"),
            half_open: names::reserved("typhon.gc_half_open"),
            without_sizes: names::reserved("typhon.gc_end_without_sizes"),
            queue_dropped: names::reserved("typhon.gc_queue_dropped"),
            session_lost: names::reserved("typhon.gc_session_lost"),
        }
    }
}

/// Turns what is queued into records of the trace.
struct Recorder {
    dropped: Arc<AtomicU64>,
    dropped_marked: u64,
    latest: Arc<Mutex<Option<Latest>>>,
    names: MarkerNames,
    say: Say,
    /// That there is no slot is said once.
    lack_is_said: bool,
}

impl Recorder {
    fn record(&mut self, queued: Queued) {
        self.mark_dropped();
        match queued {
            Queued::Record(GcRecord::Start(start)) => record_start(&start),
            Queued::Record(GcRecord::End(end)) => self.record_end(&end),
            Queued::Record(GcRecord::Suspension(suspension)) => record_suspension(&suspension),
            Queued::Record(GcRecord::Loss(loss)) => self.record_loss(&loss),
            Queued::SessionLost(now_ns) => mark(self.names.session_lost, ticks(now_ns), 1),
        }
        self.say_lack_of_slot();
    }

    /// What finds no slot is counted with the losses of the recording; the next record tries again.
    fn say_lack_of_slot(&mut self) {
        if !self.lack_is_said && local::producer().lacks_slot() {
            self.lack_is_said = true;
            (self.say)(format_args!(
                "collections are lost, and counted, as long as {NAME} has no slot: {PRODUCER_SLOTS} threads that \
                 record have them all, and one of these has to end"
            ));
        }
    }

    fn record_end(&self, end: &Collection) {
        let [gen0_size_after, gen1_size_after, gen2_size_after, loh_size_after, poh_size_after] =
            end.heap.map_or([0; 5], |heap| heap.size_bytes);
        emit_at(ticks(end.timestamp), || GcEnd {
            generation: byte(end.generation),
            count: end.count,
            // The trace's clock counts nanoseconds.
            pause_duration_ticks: i64::try_from(end.pause_ticks).unwrap_or(i64::MAX),
            promoted_bytes: end.heap.map_or(0, |heap| heap.promoted_bytes),
            gen0_size_after,
            gen1_size_after,
            gen2_size_after,
            loh_size_after,
            poh_size_after,
            total_committed_bytes: end.committed_bytes.unwrap_or(0),
        });
        if let Some(heap) = end.heap {
            let latest = Latest { heap, committed_bytes: end.committed_bytes };
            *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(latest);
        }
    }

    fn record_loss(&self, loss: &Loss) {
        let name = match loss.kind {
            LossKind::Events => self.names.events_lost,
            LossKind::HalfOpenSuspension => self.names.half_open,
            LossKind::EndWithoutSizes => self.names.without_sizes,
        };
        mark(name, ticks(loss.timestamp), loss.count);
    }

    /// Marks what the queue has dropped since the last time.
    fn mark_dropped(&mut self) {
        let dropped = self.dropped.load(Ordering::Relaxed);
        if dropped > self.dropped_marked {
            mark(self.names.queue_dropped, Ticks::now(), dropped - self.dropped_marked);
            self.dropped_marked = dropped;
        }
    }
}

fn record_start(start: &CollectionStart) {
    emit_at(ticks(start.timestamp), || GcStart {
        generation: byte(start.generation),
        reason: GcReason(byte(start.reason.0)),
        gc_type: GcType(byte(start.kind.0)),
        count: start.count,
    });
}

/// Suspensions belong to the process: no parent, no distributed trace.
fn record_suspension(suspension: &Suspension) {
    let start = ticks(suspension.timestamp);
    let end = ticks(suspension.timestamp.saturating_add(suspension.duration_ticks));
    emit_root_span(start, end, || GcSuspension { reason: GcSuspendReason(byte(suspension.reason.0)) });
}

fn mark(name: Option<NameId>, at: Ticks, count: u64) {
    if let Some(name) = name.filter(|_| is_recorded::<Instant>()) {
        let payload = i32::try_from(count).unwrap_or(i32::MAX);
        put_instant(at, &Instant { name_id: i32::from(name.value()), payload });
    }
}

fn ticks(monotonic_ns: u64) -> Ticks {
    Ticks::from_monotonic_ns(monotonic_ns)
}

/// A trace has one byte for what runtimes send as 32 bits; real values are below 16.
fn byte(value: u32) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(count: u64) -> GcRecord {
        let kind = LossKind::Events;
        GcRecord::Loss(Loss { timestamp: 0, capture_thread: 0, kind, count })
    }

    #[test]
    fn i8_a_queue_of_n_takes_n_and_counts_the_rest() {
        for capacity in [1, 2, 16, 1024] {
            let (queue, records) = sync_channel(capacity);
            let input = Input { queue, dropped: Arc::default() };
            assert!((0..capacity as u64).all(|count| input.push(loss(count))));
            assert!(!input.push(loss(0)) && !input.session_lost(0));
            assert_eq!(input.dropped.load(Ordering::Relaxed), 2);
            let Ok(Queued::Record(GcRecord::Loss(Loss { count: 0, .. }))) = records.recv() else {
                panic!("the oldest comes first");
            };
            assert!(input.push(loss(0)), "there is room again");
            assert_eq!(records.try_iter().count(), capacity);
        }
    }

    #[test]
    fn one_record_that_panics_is_counted_and_the_rest_recorded() {
        let (queue, records) = sync_channel(16);
        let input = Input { queue, dropped: Arc::default() };
        let dropped = Arc::clone(&input.dropped);
        assert!((0..8).all(|count| input.push(loss(count))));
        drop(input);
        let mut taken = Vec::new();
        take_each(&records, &dropped, |queued| match queued {
            Queued::Record(GcRecord::Loss(Loss { count, .. })) if count % 4 != 3 => taken.push(count),
            _ => panic!("an injected fault"),
        });
        assert_eq!((taken, dropped.load(Ordering::Relaxed)), (vec![0, 1, 2, 4, 5, 6], 2));
    }

    #[test]
    fn i8_accepted_and_dropped_add_up_across_threads() {
        const EACH: u64 = 5_000;
        let (queue, records) = sync_channel(4);
        let input = Input { queue, dropped: Arc::default() };
        let dropped = Arc::clone(&input.dropped);
        let taken = std::thread::scope(|scope| {
            for _ in 0..3 {
                let input = input.clone();
                scope.spawn(move || (0..EACH).for_each(|count| _ = input.push(loss(count))));
            }
            drop(input);
            records.iter().count()
        });
        assert_eq!(taken as u64 + dropped.load(Ordering::Relaxed), 3 * EACH);
    }
}
