//! What indexing keeps of a record until the rows are made.

use std::cmp::Ordering;

/// Flag of a span: its record names a source location.
pub(crate) const SPAN_HAS_SITE: u8 = 1;
/// Flag of a span: its duration is negative, so its end is unknown (brief 11 B-13).
pub(crate) const SPAN_NO_END: u8 = 2;
/// Flag of a span: it completes another one (kinds 56 to 58), whose start it repeats.
pub(crate) const SPAN_TAIL: u8 = 4;

/// Where a record is drawn. The order of keys is the order of lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    /// Suspensions of the managed runtime.
    GcSpans,
    /// Starts and ends of its collections.
    GcInstants,
    /// Values of a gauge, by its id.
    Gauge(u16),
    /// Heap sizes in the records of collections, under the ids of the gauges that stand for the same.
    GcSizes(u16),
    /// Spans of the threads of a slot.
    Spans(u8),
    /// Instants of the threads of a slot.
    Instants(u8),
    /// Spans in which a system runs, whatever the thread.
    System(u16),
    /// Spans of a strip of operations, whatever the thread.
    Strip(super::Strip),
}

/// A span, an instant or a value of a gauge on its way into the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item {
    /// Start in trace-clock ticks.
    pub(crate) start: i64,
    /// Duration in ticks, ≥ 0; 0 for instants; the value of a gauge.
    pub(crate) length: i64,
    /// Span id; it decides which of two equal spans is outside.
    pub(crate) span_id: u64,
    /// Number of the record in the file, see [`super::blocks::BlockTable`].
    pub(crate) ordinal: u64,
    /// See [`super::names::Names`].
    pub(crate) name: u16,
    /// `SPAN_…` bits.
    pub(crate) flags: u8,
}

impl Item {
    /// End of a span in ticks.
    #[inline]
    pub(crate) fn end(&self) -> i64 {
        self.start.saturating_add(self.length)
    }

    /// The order of nesting ([`crate::nesting`]): by start, the longer one first, then by id. The place in the file
    /// makes it total.
    #[inline]
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.start.cmp(&other.start).then_with(|| {
            let rest = |item: &Self| (std::cmp::Reverse(item.end()), item.span_id, item.ordinal);
            rest(self).cmp(&rest(other))
        })
    }
}
