//! The five kinds of numbers that a node can have, and what it says of itself when asked.

use std::fmt;

/// One number, or a few that belong together (brief 04 B-63).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Metric {
    /// Memory in use.
    Memory {
        /// Now.
        allocated_bytes: u64,
        /// At most, since the window of peaks began.
        peak_bytes: u64,
    },
    /// A part of something limited.
    Capacity {
        /// In use.
        current: u64,
        /// There is.
        max: u64,
    },
    /// Reading and writing, in total.
    DiskIo {
        /// Reads.
        read_ops: u64,
        /// Writes.
        write_ops: u64,
        /// Bytes read.
        read_bytes: u64,
        /// Bytes written.
        write_bytes: u64,
    },
    /// A count that only grows.
    Throughput {
        /// What is counted.
        name: &'static str,
        /// How many there were.
        count: u64,
    },
    /// How long something takes.
    Duration {
        /// What.
        name: &'static str,
        /// The last time, in microseconds.
        last_us: u64,
        /// On average, in microseconds.
        average_us: u64,
        /// At most, since the window of peaks began, in microseconds.
        max_us: u64,
    },
}

/// Something whose numbers can be read.
pub trait MetricSource: Send + Sync {
    /// Hands over the numbers as they are. Must not lock or allocate: it is asked while everything runs.
    fn read_metrics(&self, sink: &mut MetricSink<'_>);

    /// Begins a new window of peaks.
    fn reset_peaks(&self) {}

    /// Says what there is to know about the many things below the node that are no nodes themselves: each by its name.
    /// Asked for one node at a time, by somebody who wants to know; it may lock and allocate.
    fn debug_properties(&self, _say: &mut dyn FnMut(&str, &dyn fmt::Display)) {}
}

/// Takes the numbers of one node: each of the first three kinds at most once, the others under different names.
#[derive(Debug)]
pub struct MetricSink<'a> {
    metrics: &'a mut Vec<Metric>,
    start: usize,
}

impl<'a> MetricSink<'a> {
    pub(super) fn new(metrics: &'a mut Vec<Metric>) -> Self {
        Self { start: metrics.len(), metrics }
    }

    /// Adds a number.
    #[inline]
    pub fn put(&mut self, metric: Metric) {
        debug_assert!(!self.has(&metric), "a node has {metric:?} twice");
        self.metrics.push(metric);
    }

    fn has(&self, metric: &Metric) -> bool {
        self.metrics[self.start..].iter().any(|other| match (other, metric) {
            (Metric::Throughput { name, .. }, Metric::Throughput { name: new, .. })
            | (Metric::Duration { name, .. }, Metric::Duration { name: new, .. }) => name == new,
            _ => std::mem::discriminant(other) == std::mem::discriminant(metric),
        })
    }
}
