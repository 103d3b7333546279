//! The consumer's thread.
#![forbid(unsafe_code)]

use super::{ExporterReport, SWITCH, SessionReport};
use crate::capture::thread_info::{ThreadKind, ThreadLabel};
use crate::clock::{Clock, ClockMap, Ticks};
use crate::drain::batch::Batch;
use crate::drain::{self, Drain};
use crate::export::queue::Queue;
use crate::say::say;
use crate::stage::{Came, Control, Work};
use crate::{local, names, thread};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Name of the thread.
pub(super) const NAME: &str = "Typhon.Profiler";
/// A batch is cut when its first record is this old.
const MAX_BATCH_AGE_NS: i64 = 100_000_000;
/// Longest pause between two rounds when nothing comes in.
const MAX_PAUSE: Duration = Duration::from_millis(10);
/// Time between two readings of the clock, and between two searches for dead threads.
const HOUSEKEEPING: Duration = Duration::from_secs(1);
const HOUSEKEEPING_AT_FIRST: Duration = Duration::from_millis(1);
/// Durations below zero after which the counter is not trusted any more.
const MAX_CLAMPED: u64 = 3;
/// Free chunks that are kept warm ahead of the producers.
const WARM_AHEAD: u32 = 16;

/// The consumer's label in the trace.
pub(super) fn label() -> ThreadLabel {
    ThreadLabel { name: NAME.to_owned(), kind: ThreadKind::Other, ..ThreadLabel::default() }
}

/// The consumer of the process, with what it needs for the session at hand.
pub(super) struct Consumer {
    drain: Drain<'static>,
    map: ClockMap,
    queues: Vec<Arc<Queue>>,
    cadence: Duration,
    housekeeping_due: Instant,
    /// Grows from a millisecond, so that the first readings soon give a good rate.
    housekeeping_pause: Duration,
    warm: u32,
}

impl Consumer {
    pub(super) fn new(cadence: Duration) -> Self {
        Self {
            drain: Drain::new(local::capture()),
            map: Clock::get().map(),
            queues: Vec::new(),
            cadence,
            housekeeping_due: Instant::now(),
            housekeeping_pause: HOUSEKEEPING_AT_FIRST,
            warm: super::WARM_CHUNKS,
        }
    }

    /// Reads the clock anew, for a session that begins now; its time in nanoseconds.
    pub(super) fn follow_clock(&mut self) -> i64 {
        Clock::get().follow(&mut self.map);
        self.map.forget_residual();
        self.now_ns()
    }

    /// Begins a session, before it is armed.
    pub(super) fn begin_session(&mut self, queues: Vec<Arc<Queue>>, cadence: Duration, start_ns: i64) {
        (self.queues, self.cadence) = (queues, cadence);
        self.housekeeping_pause = HOUSEKEEPING_AT_FIRST;
        self.housekeeping_due = Instant::now() + HOUSEKEEPING_AT_FIRST;
        self.warm = super::WARM_CHUNKS;
        self.drain.begin_session(&label(), start_ns);
    }

    /// What the session did, after it.
    pub(super) fn report(&self, exporters: Vec<ExporterReport>) -> SessionReport {
        SessionReport::new(&self.drain, &self.map, exporters)
    }

    pub(super) fn now_ns(&self) -> i64 {
        self.map.to_ns(Ticks::now().raw())
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
        let queues = &self.queues;
        let mut sink = |batch: Batch| {
            let batch = Arc::new(batch);
            queues.iter().for_each(|queue| queue.offer(&batch, deadline));
        };
        work(&mut self.drain, &self.map, &mut sink)
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

impl Work for Consumer {
    fn pass(&mut self, control: &Control) -> Came {
        self.drain.begin_pass();
        let found = drain::pass(|| self.round(false, None), || control.stops());
        let changes = SWITCH.take_changes();
        self.with_sink(None, |drain, map, sink| drain.mark_changes(&changes, map, sink));
        match (found.more, found.bytes) {
            (true, _) => Came::More,
            (false, 0) => Came::Nothing,
            (false, _) => Came::All,
        }
    }

    fn hand_on(&mut self, now: bool) {
        let now_ns = self.now_ns();
        if now || self.drain.batch_age_ns(now_ns).is_some_and(|age| age >= MAX_BATCH_AGE_NS) {
            self.cut(None);
        }
    }

    /// The last drain: rounds until one finds nothing, waiting for room in the queues, until the deadline.
    fn finish(&mut self, deadline: Instant) {
        let is_all = drain::last_rounds(|| self.round(true, Some(deadline)), || Instant::now() >= deadline);
        if !is_all {
            let now_ns = self.now_ns();
            self.with_sink(Some(deadline), |drain, _, sink| drain.give_up_rest(now_ns, sink));
        }
        let changes = SWITCH.take_changes();
        self.with_sink(Some(deadline), |drain, map, sink| drain.mark_changes(&changes, map, sink));
        self.cut(Some(deadline));
        self.queues.clear();
    }

    fn pauses(&self) -> (Duration, Duration) {
        (self.cadence, MAX_PAUSE)
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
            say("the time stamp counter went back; CLOCK_MONOTONIC is used from now on");
        }
        if self.housekeeping_pause == HOUSEKEEPING {
            self.drain.retire_dead(thread::is_gone);
        }
    }
}
