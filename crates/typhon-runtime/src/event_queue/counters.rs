//! What one tick did to a queue.

use crate::QueueId;
use typhon_trace::event::QueueTickEnd;

/// Counts of one tick of one queue; see the invariant of the [module](super).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Events that entered the queue.
    pub produced: u32,
    /// Events that every reader has passed, or that were drained.
    pub consumed: u32,
    /// The most events that were in the queue at once.
    pub peak_depth: u32,
    /// Events that found no room: refused when pushed, or dropped at the merge.
    pub overflow: u32,
    /// Events that some reader has not passed when the tick ends.
    pub end_depth: u32,
}

impl QueueCounters {
    /// The record of kind 244 (brief 04 §4).
    pub fn event(&self, tick: u32, queue: QueueId) -> QueueTickEnd {
        QueueTickEnd {
            tick,
            queue_id: queue.get(),
            peak_depth: self.peak_depth,
            end_of_tick_depth: self.end_depth,
            overflow_count: self.overflow,
            produced: self.produced,
            consumed: self.consumed,
        }
    }
}

/// A count as the trace's 32 bits have it.
pub(super) fn saturate(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
