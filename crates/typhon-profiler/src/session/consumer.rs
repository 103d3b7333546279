//! The consumer's thread.
#![forbid(unsafe_code)]

use super::{SWITCH, lock};
use crate::capture::thread_info::{ThreadKind, ThreadLabel};
use crate::clock::{Clock, ClockMap, Ticks};
use crate::drain::Drain;
use crate::drain::batch::Batch;
use crate::export::queue::Queue;
use crate::{local, names, thread};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Name of the thread.
pub(super) const NAME: &str = "Typhon.Profiler";
/// A batch is cut when its first record is this old.
const MAX_BATCH_AGE_NS: i64 = 100_000_000;
/// Longest pause between two rounds when nothing comes in.
const MAX_PAUSE: Duration = Duration::from_millis(10);
/// Time between two readings of the clock, and between two searches for dead threads.
const HOUSEKEEPING: Duration = Duration::from_secs(1);
/// Durations below zero after which the counter is not trusted any more.
const MAX_CLAMPED: u64 = 3;
/// Free chunks that are kept warm ahead of the producers.
const WARM_AHEAD: u32 = 16;

/// What others ask of the consumer.
#[derive(Debug)]
pub(super) struct Control {
    wishes: Mutex<Wishes>,
    changed: Condvar,
    cadence: Duration,
    queues: Vec<Arc<Queue>>,
}

#[derive(Debug, Default)]
struct Wishes {
    /// Stop, and have everything handed over by then.
    stop: Option<Instant>,
    flushes_wanted: u64,
    flushes_done: u64,
}

impl Control {
    pub(super) fn new(cadence: Duration, queues: Vec<Arc<Queue>>) -> Self {
        Self { wishes: Mutex::default(), changed: Condvar::new(), cadence, queues }
    }

    pub(super) fn stop(&self, deadline: Instant) {
        lock(&self.wishes).stop = Some(deadline);
        self.changed.notify_all();
    }

    pub(super) fn flush(&self, deadline: Instant) -> bool {
        let mut wishes = lock(&self.wishes);
        wishes.flushes_wanted += 1;
        let ticket = wishes.flushes_wanted;
        self.changed.notify_all();
        let left = deadline.saturating_duration_since(Instant::now());
        let (wishes, timeout) = self
            .changed
            .wait_timeout_while(wishes, left, |wishes| wishes.flushes_done < ticket && wishes.stop.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        drop(wishes);
        !timeout.timed_out() && self.queues.iter().all(|queue| queue.wait_idle(deadline))
    }

    /// Waits for a wish, at most `pause`.
    fn wait(&self, pause: Duration) -> (Option<Instant>, u64) {
        let wishes = lock(&self.wishes);
        let (wishes, _) = self
            .changed
            .wait_timeout_while(wishes, pause, |wishes| {
                wishes.stop.is_none() && wishes.flushes_wanted == wishes.flushes_done
            })
            .unwrap_or_else(PoisonError::into_inner);
        (wishes.stop, wishes.flushes_wanted)
    }

    fn flushed(&self, ticket: u64) {
        lock(&self.wishes).flushes_done = ticket;
        self.changed.notify_all();
    }
}

/// The consumer's label in the trace.
pub(super) fn label() -> ThreadLabel {
    ThreadLabel { name: NAME.to_owned(), kind: ThreadKind::Other, ..ThreadLabel::default() }
}

pub(super) struct Consumer {
    drain: Drain<'static>,
    map: ClockMap,
    control: Arc<Control>,
    housekeeping_due: Instant,
    /// Grows from a millisecond, so that the first readings soon give a good rate.
    housekeeping_pause: Duration,
    warm: u32,
}

impl Consumer {
    pub(super) fn new(drain: Drain<'static>, map: ClockMap, control: Arc<Control>) -> Self {
        let housekeeping_pause = Duration::from_millis(1);
        Self {
            drain,
            map,
            control,
            housekeeping_due: Instant::now() + housekeeping_pause,
            housekeeping_pause,
            warm: super::WARM_CHUNKS,
        }
    }

    /// Runs rounds until a stop is wished for, then drains to the end.
    pub(super) fn run(mut self) -> (Drain<'static>, ClockMap) {
        let mut pause = self.control.cadence;
        loop {
            let (stop, flush) = self.control.wait(pause);
            if let Some(deadline) = stop {
                self.drain_all(deadline);
                return (self.drain, self.map);
            }
            let bytes = self.pass();
            let now_ns = self.now_ns();
            let must_flush = flush > lock(&self.control.wishes).flushes_done;
            if must_flush || self.drain.batch_age_ns(now_ns).is_some_and(|age| age >= MAX_BATCH_AGE_NS) {
                self.cut(None);
            }
            if must_flush {
                self.control.flushed(flush);
            }
            self.keep_house();
            pause = if bytes > 0 {
                self.control.cadence
            } else {
                (pause * 2).min(MAX_PAUSE.max(self.control.cadence))
            };
        }
    }

    /// Rounds until every slot was found empty once; returns the bytes taken.
    fn pass(&mut self) -> usize {
        let mut bytes = 0;
        loop {
            let round = self.round(false, None);
            bytes += round.bytes;
            if !round.more || lock(&self.control.wishes).stop.is_some() {
                break;
            }
        }
        let changes = SWITCH.take_changes();
        self.with_sink(None, |drain, map, sink| drain.mark_changes(&changes, map, sink));
        bytes
    }

    /// The last drain: rounds until one finds nothing, waiting for room in the queues, until the deadline.
    fn drain_all(&mut self, deadline: Instant) {
        loop {
            let round = self.round(true, Some(deadline));
            if !round.more && round.bytes == 0 {
                break;
            }
            if Instant::now() >= deadline {
                let now_ns = self.now_ns();
                self.with_sink(Some(deadline), |drain, _, sink| drain.give_up_rest(now_ns, sink));
                break;
            }
        }
        let changes = SWITCH.take_changes();
        self.with_sink(Some(deadline), |drain, map, sink| drain.mark_changes(&changes, map, sink));
        self.cut(Some(deadline));
    }

    fn round(&mut self, last: bool, deadline: Option<Instant>) -> crate::drain::Round {
        let now_ns = self.now_ns();
        self.drain.set_name_count(names::count());
        self.with_sink(deadline, |drain, map, sink| drain.round(map, now_ns, last, sink))
    }

    fn cut(&mut self, deadline: Option<Instant>) {
        let now_ns = self.now_ns();
        self.drain.set_name_count(names::count());
        self.with_sink(deadline, |drain, _, sink| drain.cut(now_ns, sink));
    }

    fn with_sink<R>(
        &mut self,
        deadline: Option<Instant>,
        work: impl FnOnce(&mut Drain<'static>, &ClockMap, &mut dyn FnMut(Batch)) -> R,
    ) -> R {
        let queues = &self.control.queues;
        let mut sink = |batch: Batch| {
            let batch = Arc::new(batch);
            queues.iter().for_each(|queue| queue.offer(&batch, deadline));
        };
        work(&mut self.drain, &self.map, &mut sink)
    }

    fn now_ns(&self) -> i64 {
        self.map.to_ns(Ticks::now().raw())
    }

    fn keep_house(&mut self) {
        self.warm_chunks();
        if Instant::now() < self.housekeeping_due {
            return;
        }
        self.housekeeping_pause = (self.housekeeping_pause * 2).min(HOUSEKEEPING);
        self.housekeeping_due = Instant::now() + self.housekeeping_pause;
        Clock::get().follow(&mut self.map);
        if self.drain.counts().clamped_durations >= MAX_CLAMPED && Clock::get().distrust_counter() {
            eprintln!(
                "typhon-profiler: the time stamp counter went back; CLOCK_MONOTONIC is used from now on"
            );
        }
        if self.housekeeping_pause == HOUSEKEEPING {
            self.drain.retire_dead(thread::is_gone);
        }
    }

    /// Touches the memory of chunks that the producers will take next.
    fn warm_chunks(&mut self) {
        let pool = local::capture().pool();
        while self.warm < pool.limit() && pool.free_below(self.warm) < WARM_AHEAD {
            pool.warm(self.warm, self.warm + 1);
            self.warm += 1;
        }
    }
}
