use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::{Event, EventHeader, Metadata};

/// Payload bytes held at once, whatever their number.
const MAX_HELD_BYTES: usize = 64 << 20;
/// Larger payload buffers are given back instead of being kept for reuse.
const MAX_KEPT_BYTES: usize = 4096;

/// Merges the per-thread sequences of a stream into one sequence in time order.
///
/// Events are held until nothing older can follow: a *sorted* event or a sequence point of time T releases everything
/// older than T. A target that falls silent sends neither, so the caller decides by its own clock when to
/// [`release_all`](Self::release_all). Payload buffers are reused: in steady state nothing is allocated.
#[derive(Debug)]
pub struct Reorder {
    heap: BinaryHeap<Reverse<(u64, u64, usize)>>,
    slots: Vec<Held>,
    free: Vec<usize>,
    /// Slot of the event returned last, reusable at the next call.
    lent: Option<usize>,
    arrivals: u64,
    /// Events older than this may go.
    horizon: u64,
    /// This many may go whatever their time.
    forced: usize,
    newest_released: u64,
    capacity: usize,
    held_bytes: usize,
    overflows: u64,
    late: u64,
}

#[derive(Debug)]
struct Held {
    metadata: Arc<Metadata>,
    header: EventHeader,
    payload: Vec<u8>,
}

impl Default for Reorder {
    fn default() -> Self {
        Self::with_capacity(65_536)
    }
}

impl Reorder {
    /// A merger that holds at most `capacity` events (and 64 MiB of payload); beyond that it releases the older half early.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            heap: BinaryHeap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            lent: None,
            arrivals: 0,
            horizon: 0,
            forced: 0,
            newest_released: 0,
            capacity: capacity.max(2),
            held_bytes: 0,
            overflows: 0,
            late: 0,
        }
    }

    /// Takes an event in. Call [`pop`](Self::pop) until it yields nothing after each one.
    pub fn push(&mut self, event: &Event<'_>) {
        self.recycle();
        if self.heap.len() >= self.capacity || self.held_bytes > MAX_HELD_BYTES {
            self.overflows += 1;
            self.forced = self.heap.len().div_ceil(2);
        }
        let slot = self.store(event);
        self.heap.push(Reverse((event.header.timestamp, self.arrivals, slot)));
        self.arrivals += 1;
        if event.header.sorted {
            self.release_before(event.header.timestamp);
        }
    }

    /// Nothing older than `timestamp` will follow.
    pub fn release_before(&mut self, timestamp: u64) {
        self.horizon = self.horizon.max(timestamp);
    }

    /// Lets everything go that is held now: the stream ended, or has been silent for longer than a flush period.
    pub fn release_all(&mut self) {
        self.forced = self.heap.len();
    }

    /// The oldest event that may go.
    pub fn pop(&mut self) -> Option<Event<'_>> {
        self.recycle();
        let &Reverse((timestamp, _, slot)) = self.heap.peek()?;
        if self.forced == 0 && timestamp >= self.horizon {
            return None;
        }
        self.heap.pop();
        self.forced = self.forced.saturating_sub(1);
        if timestamp < self.newest_released {
            self.late += 1;
        }
        self.newest_released = self.newest_released.max(timestamp);
        self.lent = Some(slot);
        let held = &self.slots[slot];
        self.held_bytes -= held.payload.len();
        Some(Event { metadata: &held.metadata, header: held.header, payload: &held.payload })
    }

    /// Events held now.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no event is held.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// How often the capacity was reached, so that order across threads is not certain.
    pub fn overflows(&self) -> u64 {
        self.overflows
    }

    /// Events that came after a younger one of another thread had been released.
    pub fn late(&self) -> u64 {
        self.late
    }

    fn recycle(&mut self) {
        let Some(slot) = self.lent.take() else { return };
        let payload = &mut self.slots[slot].payload;
        if payload.capacity() > MAX_KEPT_BYTES {
            *payload = Vec::new();
        }
        self.free.push(slot);
    }

    fn store(&mut self, event: &Event<'_>) -> usize {
        let metadata = Arc::clone(event.metadata);
        self.held_bytes += event.payload.len();
        if let Some(slot) = self.free.pop() {
            let held = &mut self.slots[slot];
            (held.metadata, held.header) = (metadata, event.header);
            held.payload.clear();
            held.payload.extend_from_slice(event.payload);
            return slot;
        }
        self.slots.push(Held { metadata, header: event.header, payload: event.payload.to_vec() });
        self.slots.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nettrace::Continuity;
    use proptest::prelude::*;

    fn metadata() -> Arc<Metadata> {
        Arc::new(Metadata {
            metadata_id: 1,
            provider: String::new(),
            event_id: 1,
            event_name: String::new(),
            keywords: 0,
            version: 0,
            level: 0,
            fields: None,
        })
    }

    fn push(reorder: &mut Reorder, timestamp: u64, thread: u64, sorted: bool, payload: &[u8]) {
        let header = EventHeader {
            timestamp,
            capture_thread: thread,
            thread,
            sequence: 1,
            processor: 0,
            stack_id: 0,
            activity_ids: [[0; 16]; 2],
            sorted,
            continuity: Continuity::Contiguous,
        };
        reorder.push(&Event { metadata: &metadata(), header, payload });
    }

    fn drain(reorder: &mut Reorder) -> Vec<u64> {
        std::iter::from_fn(|| reorder.pop().map(|event| event.header.timestamp)).collect()
    }

    #[test]
    fn a_sorted_event_releases_what_is_older_but_not_itself() {
        let mut reorder = Reorder::default();
        push(&mut reorder, 30, 1, false, b"");
        push(&mut reorder, 10, 2, false, b"");
        assert_eq!(drain(&mut reorder), []);
        push(&mut reorder, 20, 3, true, b"");
        assert_eq!(drain(&mut reorder), [10]);
        reorder.release_before(31);
        assert_eq!(drain(&mut reorder), [20, 30]);
    }

    #[test]
    fn silence_releases_everything_once_and_late_events_are_counted() {
        let mut reorder = Reorder::default();
        push(&mut reorder, 30, 1, false, b"");
        reorder.release_all();
        assert_eq!(drain(&mut reorder), [30]);
        push(&mut reorder, 20, 2, false, b"");
        assert_eq!(drain(&mut reorder), []);
        reorder.release_all();
        assert_eq!(drain(&mut reorder), [20]);
        assert_eq!(reorder.late(), 1);
    }

    #[test]
    fn a_full_heap_releases_its_older_half_and_counts_it() {
        let mut reorder = Reorder::with_capacity(4);
        for timestamp in [4, 3, 2, 1] {
            push(&mut reorder, timestamp, timestamp, false, b"");
        }
        assert_eq!(drain(&mut reorder), []);
        push(&mut reorder, 9, 9, false, b"");
        assert_eq!((drain(&mut reorder), reorder.overflows(), reorder.len()), (vec![1, 2], 1, 3));
    }

    #[test]
    fn payloads_survive_reuse_of_their_buffers() {
        let mut reorder = Reorder::default();
        for round in 0..3u8 {
            push(&mut reorder, 2, 1, false, &[round; 5]);
            push(&mut reorder, 1, 2, false, &[round + 100; 9000]);
            reorder.release_all();
            assert_eq!(reorder.pop().unwrap().payload, [round + 100; 9000]);
            assert_eq!(reorder.pop().unwrap().payload, [round; 5]);
            assert!(reorder.pop().is_none());
            assert!(reorder.slots.iter().all(|held| held.payload.capacity() <= MAX_KEPT_BYTES));
        }
        assert_eq!((reorder.slots.len(), reorder.held_bytes), (2, 0));
    }

    proptest! {
        /// I-3: with truthful sorted flags the output is in time order, ties in order of arrival.
        #[test]
        fn i3_output_is_in_time_order(mut times in prop::collection::vec(0u64..50, 1..100)) {
            let mut reorder = Reorder::default();
            let mut released = Vec::new();
            for index in 0..times.len() {
                let sorted = times[index..].iter().all(|&later| later >= times[index]);
                push(&mut reorder, times[index], index as u64, sorted, b"");
                released.extend(drain(&mut reorder));
            }
            reorder.release_all();
            released.extend(drain(&mut reorder));
            times.sort_unstable();
            prop_assert_eq!(released, times);
            prop_assert_eq!(reorder.late(), 0);
        }
    }
}
