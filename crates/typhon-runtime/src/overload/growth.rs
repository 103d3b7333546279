//! Whether queues fill faster than they are emptied.

/// Compares the depths of queues from tick to tick.
#[derive(Debug, Clone, Default)]
pub struct QueueGrowth {
    /// By queue, at the end of the last tick.
    depths: Vec<u32>,
}

/// The queues of a schedule at the end of a tick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueTotals {
    /// Events left in all queues.
    pub depth: u32,
    /// The queues that count hold more than a tick ago.
    pub grew: bool,
}

impl QueueGrowth {
    /// For this many queues, all empty.
    pub fn new(queue_count: usize) -> Self {
        Self { depths: vec![0; queue_count] }
    }

    /// The end of a tick: depth of each queue by id, and whether it counts. A queue does not if one of its consumers was
    /// throttled in this tick: that it grew is no news then.
    pub fn update(&mut self, queues: impl IntoIterator<Item = (u32, bool)>) -> QueueTotals {
        let (mut total, mut growth) = (0u32, 0i64);
        for (before, (depth, counts)) in self.depths.iter_mut().zip(queues) {
            if counts {
                growth += i64::from(depth) - i64::from(*before);
            }
            total = total.saturating_add(depth);
            *before = depth;
        }
        QueueTotals { depth: total, grew: growth > 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b50_queues_grow_together() {
        let mut growth = QueueGrowth::new(2);
        assert_eq!(growth.update([(5, true), (0, true)]), QueueTotals { depth: 5, grew: true });
        assert!(!growth.update([(3, true), (2, true)]).grew, "what one lost the other gained");
        assert!(growth.update([(3, true), (3, true)]).grew);
        assert!(!growth.update([(3, true), (3, true)]).grew);
    }

    #[test]
    fn b50_a_queue_with_a_throttled_consumer_does_not_count() {
        let mut growth = QueueGrowth::new(1);
        // The consumer runs in every other tick and takes everything then.
        for _ in 0..10 {
            assert_eq!(growth.update([(10, false)]), QueueTotals { depth: 10, grew: false });
            assert!(!growth.update([(0, true)]).grew);
        }
        growth.update([(10, false)]);
        assert!(growth.update([(12, true)]).grew, "not emptied although its consumer ran");
    }
}
