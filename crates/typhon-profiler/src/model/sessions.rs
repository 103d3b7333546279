//! Sessions with a consumer's thread: the real start, loop and stop, around the capture of a model.

use super::{INSTANT, Model, ModelConsumer, ModelThread, word};
use crate::drain;
use crate::gates::KindMask;
use crate::stage::{Came, Control, Stage, Work};
use crate::sync::{Fault, planted};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use typhon_trace::record::RecordWalk;

/// A process in which any thread may start and stop sessions.
pub struct ModelProcess {
    model: &'static Model,
    stage: loom::sync::Mutex<Stage<ModelConsumer<'static>, ()>>,
    /// Consumers made; there is one per process. Watched, never steering.
    consumers: AtomicU32,
}

type StageGuard<'p> = loom::sync::MutexGuard<'p, Stage<ModelConsumer<'static>, ()>>;

impl ModelProcess {
    /// A process that has not recorded yet. It stays in memory: its consumer's thread must be able to outlive anything.
    pub fn new(slots: usize, chunks: u32) -> &'static Self {
        let model = Box::leak(Box::new(Model::build(slots, chunks, false)));
        let stage = loom::sync::Mutex::new(Stage::new());
        Box::leak(Box::new(Self { model, stage, consumers: AtomicU32::new(0) }))
    }

    fn lock(&self) -> StageGuard<'_> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread with an id above 0 and below 100.
    pub fn thread(&'static self, id: u32) -> ModelThread<'static> {
        self.model.thread(id)
    }

    /// As `session::start`: true if a session began, false if one ran.
    pub fn start(&'static self) -> bool {
        let ran_before = self.lock().is_running();
        let mut stage = self.lock();
        let runs = if planted(Fault::StartUnchecked) { ran_before } else { stage.is_running() };
        if runs {
            return false;
        }
        let consumer = stage.take_idle(|| {
            self.consumers.fetch_add(1, Ordering::Relaxed);
            ModelConsumer::new(self.model)
        });
        let mut consumer = consumer.expect("no session runs");
        consumer.announce();
        let arm = || self.model.switch.arm(&self.model.mask, KindMask::from_words([u64::MAX; 4]));
        stage.begin("consumer", consumer, (), arm).is_ok()
    }

    /// As `session::stop`: true if a session ended.
    pub fn stop(&self) -> bool {
        let disarm = || self.model.switch.disarm(&self.model.mask);
        self.lock().end(Duration::ZERO, |()| (), disarm).is_some()
    }

    /// A pause of the consumer is over.
    pub fn end_pause(&self) {
        let control = self.lock().control();
        control.iter().for_each(|control| control.end_pause());
    }

    /// Flushes; whatever the calling thread made before must have been handed on if that succeeds.
    pub fn flush(&self, thread: &ModelThread<'_>) {
        let Some(control) = self.lock().control() else { return };
        if control.flush(Instant::now()) && thread.made > 0 {
            let handed_on = self.model.handed_on.lock().unwrap_or_else(PoisonError::into_inner);
            assert!(handed_on.contains(&(thread.id * 100 + thread.made - 1)), "flushed, but not handed on");
        }
    }

    /// Asks the questions of [`ModelConsumer::check`], with every session stopped; returns what was discarded as coming
    /// from outside of the sessions.
    pub fn check(&self) -> u32 {
        assert_eq!(self.consumers.load(Ordering::Relaxed), 1, "consumers");
        let none = || unreachable!("a session was stopped");
        let consumer = self.lock().take_idle(none).expect("no session runs");
        consumer.check();
        consumer.discarded
    }
}

impl Work for ModelConsumer<'static> {
    fn pass(&mut self, _: &Control) -> Came {
        self.drain.begin_pass();
        let found = drain::pass(|| self.visit(false), || false);
        let changes = self.model.switch.take_changes();
        self.mark_changes(changes);
        if found.bytes > 0 { Came::All } else { Came::Nothing }
    }

    fn hand_on(&mut self, _now: bool) {
        let before = self.batches.len();
        self.drain.cut(9, &mut |batch| self.batches.push(batch));
        let mut handed_on = self.model.handed_on.lock().unwrap_or_else(PoisonError::into_inner);
        let records = self.batches[before..].iter().flat_map(|batch| RecordWalk::new(batch.records()));
        handed_on.extend(records.filter(|record| record.kind() == INSTANT).map(|record| word(&record, 0)));
    }

    fn keep_house(&mut self) {}

    fn finish(&mut self, _deadline: Instant) {
        self.finish_session();
    }

    fn pauses(&self) -> (Duration, Duration) {
        (Duration::ZERO, Duration::ZERO)
    }
}
