//! The bounded queue between the consumer and one exporter.
#![forbid(unsafe_code)]

use super::SessionEnd;
use super::summary::Summary;
use crate::drain::batch::Batch;
use crate::program::Program;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What the exporter's thread takes out.
#[derive(Debug)]
pub(crate) enum Item {
    /// A batch, and what has to be written in front of it.
    Batch { before: Vec<Batch>, batch: Arc<Batch> },
    /// The program is described.
    Describe(Arc<Program>),
    /// No more batches: what is left to write, and the end of the session.
    Close { before: Vec<Batch>, end: SessionEnd },
    /// The session did not come about.
    Cancel,
}

#[derive(Debug, Default)]
struct State {
    items: VecDeque<Item>,
    /// Remains of batches that found the queue full.
    pending: Summary,
    dropped_batches: u64,
    dropped_records: u64,
    /// The exporter's thread took an item and is not done with it.
    busy: bool,
    /// The exporter's thread is gone.
    abandoned: bool,
}

/// At most `depth` batches wait; a further one is dropped, and its remains go in front of the next accepted one.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    depth: usize,
}

impl Queue {
    pub(crate) fn new(depth: usize) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), depth: depth.max(1) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `done` or the deadline; true if done.
    fn wait(&self, deadline: Instant, mut done: impl FnMut(&State) -> bool) -> (MutexGuard<'_, State>, bool) {
        let left = deadline.saturating_duration_since(Instant::now());
        let (state, timeout) = self
            .changed
            .wait_timeout_while(self.lock(), left, |state| !done(state))
            .unwrap_or_else(PoisonError::into_inner);
        (state, !timeout.timed_out())
    }

    /// Offers a batch. With a deadline, waits that long for room before dropping it.
    pub(crate) fn offer(&self, batch: &Arc<Batch>, deadline: Option<Instant>) {
        let has_room = |state: &State| state.items.len() < self.depth || state.abandoned;
        let mut state = match deadline {
            Some(deadline) => self.wait(deadline, has_room).0,
            None => self.lock(),
        };
        if state.items.len() < self.depth {
            let before = state.pending.take_batches();
            state.items.push_back(Item::Batch { before, batch: Arc::clone(batch) });
        } else {
            let lost = state.pending.lost();
            state.pending.absorb(batch);
            state.dropped_records += state.pending.lost() - lost;
            state.dropped_batches += 1;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Ends the stream of batches. The end always finds room.
    pub(crate) fn close(&self, end: SessionEnd) {
        let mut state = self.lock();
        let before = state.pending.take_batches();
        state.items.push_back(Item::Close { before, end });
        drop(state);
        self.changed.notify_all();
    }

    /// The session did not come about; there were no batches.
    pub(crate) fn cancel(&self) {
        self.lock().items.push_back(Item::Cancel);
        self.changed.notify_all();
    }

    /// Passes on a description of the program. It always finds room, and replaces one that still waits.
    pub(crate) fn describe(&self, program: Arc<Program>) {
        let mut state = self.lock();
        state.items.retain(|item| !matches!(item, Item::Describe(_)));
        state.items.push_back(Item::Describe(program));
        drop(state);
        self.changed.notify_all();
    }

    /// The next item, for the exporter's thread; `None` when there was none for `patience`.
    pub(crate) fn take(&self, patience: Duration) -> Option<Item> {
        let (mut state, _) = self.wait(Instant::now() + patience, |state| !state.items.is_empty());
        let item = state.items.pop_front();
        state.busy = item.is_some();
        drop(state);
        self.changed.notify_all();
        item
    }

    /// The exporter's thread is done with what it took.
    pub(crate) fn done(&self) {
        self.lock().busy = false;
        self.changed.notify_all();
    }

    /// The exporter's thread takes no more.
    pub(crate) fn abandon(&self) {
        self.lock().abandoned = true;
        self.changed.notify_all();
    }

    /// Waits until everything offered so far is processed; true if so before the deadline.
    pub(crate) fn wait_idle(&self, deadline: Instant) -> bool {
        self.wait(deadline, |state| state.abandoned || (state.items.is_empty() && !state.busy)).1
    }

    /// Waits until the exporter's thread is gone; true if so before the deadline.
    pub(crate) fn wait_abandoned(&self, deadline: Instant) -> bool {
        self.wait(deadline, |state| state.abandoned).1
    }

    /// Batches and records dropped because the queue was full.
    pub(crate) fn dropped(&self) -> (u64, u64) {
        let state = self.lock();
        (state.dropped_batches, state.dropped_records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drain::batch::{Class, OpenBatch};
    use crate::drain::markers::Marker;
    use typhon_trace::record::RecordWalk;

    fn batch(slot: u8, records: usize) -> Arc<Batch> {
        let mut open = OpenBatch::new();
        for _ in 0..records {
            open.push(&[12, 0, 0, slot, 1, 0, 0, 0, 0, 0, 0, 0], 1, Class::Ordinary, |_| ());
        }
        Arc::new(open.cut(5).unwrap())
    }

    fn losses(batches: &[Batch]) -> u64 {
        let records = batches.iter().flat_map(|batch| RecordWalk::new(batch.records()));
        let values = records.filter_map(|record| Marker::parse(record.bytes()));
        values.filter(|(marker, _)| marker.is_loss()).map(|(_, value)| value as u64).sum()
    }

    #[test]
    fn b20_full_queue_drops_the_newest_and_reports_before_the_next_accepted() {
        let queue = Queue::new(2);
        for records in 1..=4 {
            queue.offer(&batch(records as u8, records), None);
        }
        assert_eq!(queue.dropped(), (2, 7));
        let Some(Item::Batch { before, batch: first }) = queue.take(Duration::ZERO) else { panic!() };
        assert_eq!((before.len(), first.record_count()), (0, 1));
        queue.offer(&batch(9, 5), None);
        let Some(Item::Batch { before, batch: second }) = queue.take(Duration::ZERO) else { panic!() };
        assert_eq!(
            (before.len(), second.record_count()),
            (0, 2),
            "queued before the drop: no report in front"
        );
        let Some(Item::Batch { before, batch: third }) = queue.take(Duration::ZERO) else { panic!() };
        assert_eq!((losses(&before), third.record_count()), (7, 5));
    }

    #[test]
    fn b20_losses_at_the_end_are_reported_by_the_close() {
        let queue = Queue::new(1);
        queue.offer(&batch(0, 1), None);
        queue.offer(&batch(0, 6), None);
        queue.close(SessionEnd { time_ns: 0, start_ns: 0 });
        assert!(matches!(queue.take(Duration::ZERO), Some(Item::Batch { .. })));
        let Some(Item::Close { before, .. }) = queue.take(Duration::ZERO) else { panic!() };
        assert_eq!(losses(&before), 6);
        assert!(queue.take(Duration::ZERO).is_none());
    }

    #[test]
    fn b19_final_drain_waits_for_room() {
        let queue = Arc::new(Queue::new(1));
        queue.offer(&batch(0, 1), None);
        let consumer = Arc::clone(&queue);
        let waiting = std::thread::spawn(move || {
            consumer.offer(&batch(1, 2), Some(Instant::now() + Duration::from_secs(60)));
        });
        let patience = Duration::from_secs(60);
        assert!(matches!(queue.take(patience), Some(Item::Batch { .. })));
        let Some(Item::Batch { before, batch: waited }) = queue.take(patience) else { panic!() };
        assert_eq!((before.len(), waited.record_count()), (0, 2));
        waiting.join().unwrap();
        assert_eq!(queue.dropped(), (0, 0));
        // Nobody makes room: the batch is dropped when the time is over, and not before.
        queue.offer(&batch(2, 3), None);
        let deadline = Instant::now() + Duration::from_millis(50);
        queue.offer(&batch(3, 4), Some(deadline));
        assert!(Instant::now() >= deadline);
        assert_eq!(queue.dropped(), (1, 4));
    }
}
