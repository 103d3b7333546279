//! Self time and depth of every span, for readers that go through a trace once.
//!
//! What lies around a span is known only when its surroundings have ended, which may be long after the span was read. So
//! a [`Placer`] holds parts of a trace (blocks, portions) back until all their spans have a place, and gives them out in
//! their order.
//!
//! **Invariants**
//! - Parts come out in the order in which they went in, each with one [`Place`] per span, in the order of its records.
//! - Memory is bounded: when too much waits, the older spans are settled; [`Placer::faults`] counts those whose place
//!   may therefore be off ([`crate::nesting`]).

use crate::nesting::LaneNesting;
use std::collections::{BTreeMap, VecDeque};
use typhon_trace::record::Record;
use typhon_trace::registry;

/// Where a span lies among the spans of its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Duration without that of the spans directly inside, ticks of the trace clock.
    pub self_ticks: i64,
    /// Spans around it; 0 = outermost.
    pub depth: u32,
}

/// Spans of which the place may be off, because too much would have had to wait in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlaceFaults {
    /// Self times that may be too large; see [`LaneNesting::inexact`].
    pub inexact: u64,
    /// Depths that are too small, each with those of the spans inside: they waited no longer when the span around them
    /// arrived; see [`LaneNesting::enclosed_later`].
    pub too_shallow: u64,
}

/// Bytes of records that may wait before the older spans are settled.
const WAITING_BYTES: usize = 32 << 20;

/// Holds parts of a trace back until their spans have a place.
#[derive(Debug)]
pub struct Placer<P> {
    lanes: BTreeMap<u8, LaneNesting<SpanRef>>,
    waiting: VecDeque<Part<P>>,
    /// Parts that have been given out.
    done: u64,
    waiting_bytes: usize,
    max_waiting_bytes: usize,
}

/// A span of a waiting part.
#[derive(Debug, Clone, Copy)]
struct SpanRef {
    part: u64,
    index: u32,
}

#[derive(Debug)]
struct Part<P> {
    payload: P,
    bytes: usize,
    places: Vec<Place>,
    unplaced: usize,
}

impl<P> Default for Placer<P> {
    fn default() -> Self {
        Self::with_limit(WAITING_BYTES)
    }
}

impl<P> Placer<P> {
    /// With another limit on the bytes of records that wait.
    pub fn with_limit(max_waiting_bytes: usize) -> Self {
        let (lanes, waiting) = (BTreeMap::new(), VecDeque::new());
        Self { lanes, waiting, done: 0, waiting_bytes: 0, max_waiting_bytes }
    }

    /// Adds the next part; `records` shows all its records, in order.
    pub fn push(&mut self, payload: P, records: impl FnOnce(&P, &mut dyn FnMut(Record<'_>))) {
        let part = self.done + self.waiting.len() as u64;
        let (mut places, mut unplaced, mut bytes) = (Vec::new(), 0, 0);
        records(&payload, &mut |record| {
            bytes += record.size();
            let Some(span) = record.span() else { return };
            let index = places.len() as u32;
            // A completion repeats a span and lies in no lane.
            places.push(Place { self_ticks: span.duration.max(0), depth: 0 });
            if registry::kind(record.kind()).is_none_or(|kind| kind.correlates_span_id.is_none()) {
                unplaced += 1;
                let lane = self.lanes.entry(record.slot()).or_default();
                lane.push(record.timestamp(), span.duration, span.span_id, SpanRef { part, index });
            }
        });
        self.waiting_bytes += bytes;
        self.waiting.push_back(Part { payload, bytes, places, unplaced });
        if self.waiting_bytes > self.max_waiting_bytes {
            self.settle_older();
        }
    }

    /// The next part whose spans all have a place. `None` until then.
    pub fn pop(&mut self) -> Option<(P, Vec<Place>)> {
        let part = self.waiting.pop_front_if(|part| part.unplaced == 0)?;
        self.done += 1;
        self.waiting_bytes -= part.bytes;
        Some((part.payload, part.places))
    }

    /// There are no more parts; all that wait get their places.
    pub fn finish(&mut self) {
        let Self { lanes, waiting, done, .. } = self;
        for lane in lanes.values_mut() {
            lane.settle_all(|step| place(waiting, *done, step));
        }
    }

    /// How many places may be off.
    pub fn faults(&self) -> PlaceFaults {
        PlaceFaults {
            inexact: self.lanes.values().map(LaneNesting::inexact).sum(),
            too_shallow: self.lanes.values().map(LaneNesting::enclosed_later).sum(),
        }
    }

    /// Places the older spans of every lane, and all that wait in the older half of the parts.
    fn settle_older(&mut self) {
        let Self { lanes, waiting, done, .. } = self;
        let newer_half = *done + waiting.len() as u64 / 2;
        for lane in lanes.values_mut() {
            lane.settle_older(|step| place(waiting, *done, step));
            if lane.items().any(|item| item.part <= newer_half) {
                lane.settle_all(|step| place(waiting, *done, step));
            }
        }
    }
}

fn place<P>(waiting: &mut VecDeque<Part<P>>, done: u64, step: crate::nesting::Nesting<SpanRef>) {
    let Some((span, self_ticks, depth)) = step.placed() else { return };
    // A part is not given out before all its spans are placed, so it is still there.
    if let Some(part) = waiting.get_mut((span.item.part - done) as usize) {
        part.places[span.item.index as usize] = Place { self_ticks, depth };
        part.unplaced -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use typhon_trace::record::RecordWalk;
    use typhon_trace::registry::id;

    fn span(slot: u8, start: i64, duration: i64, span_id: u64) -> Vec<u8> {
        let mut bytes = vec![37, 0, id::BTREE_INSERT, slot];
        bytes.extend_from_slice(&start.to_le_bytes());
        bytes.extend_from_slice(&duration.to_le_bytes());
        bytes.extend_from_slice(&span_id.to_le_bytes());
        bytes.extend_from_slice(&[0; 9]);
        bytes
    }

    type Parts = Vec<(usize, Vec<Place>)>;

    /// Parts of `per_part` spans each; what comes out, and how many are inexact and too shallow.
    fn run(spans: &[(u8, i64, i64)], per_part: usize, limit: usize) -> (Parts, [u64; 2]) {
        let mut placer = Placer::with_limit(limit);
        let mut out = Parts::new();
        for (index, part) in spans.chunks(per_part).enumerate() {
            let records: Vec<Vec<u8>> = part
                .iter()
                .zip(index * per_part..)
                .map(|((slot, start, duration), id)| span(*slot, *start, *duration, id as u64 + 1))
                .collect();
            placer.push((index, records.concat()), |(_, bytes), see| RecordWalk::new(bytes).for_each(see));
            out.extend(std::iter::from_fn(|| placer.pop()).map(|((index, _), places)| (index, places)));
        }
        placer.finish();
        out.extend(std::iter::from_fn(|| placer.pop()).map(|((index, _), places)| (index, places)));
        let faults = placer.faults();
        (out, [faults.inexact, faults.too_shallow])
    }

    #[test]
    fn a_span_waits_for_the_one_around_it() {
        let (parts, off) = run(&[(1, 10, 5), (2, 0, 3), (1, 0, 100)], 1, usize::MAX);
        let place = |self_ticks, depth| vec![Place { self_ticks, depth }];
        assert_eq!(parts, [(0, place(5, 1)), (1, place(3, 0)), (2, place(95, 0))]);
        assert_eq!(off, [0, 0]);
    }

    #[test]
    fn an_idle_lane_does_not_hold_everything_back() {
        let mut spans = vec![(9, 0, 1)];
        spans.extend((0..1_000).map(|n| (1, n * 10, 5)));
        let mut placer = Placer::with_limit(37 * 20);
        let mut most = 0;
        for (id, (slot, start, duration)) in spans.iter().enumerate() {
            let record = span(*slot, *start, *duration, id as u64 + 1);
            placer.push((), |(), see| see(Record::parse(&record).unwrap()));
            while placer.pop().is_some() {}
            most = most.max(placer.waiting.len());
        }
        assert!(most <= 21, "{most}");
    }

    proptest! {
        /// Spans in order of their end, as recorders write them, get the same places however little may wait.
        #[test]
        fn places_do_not_depend_on_the_limit(
            intervals in prop::collection::vec((0u8..3, 0u32..8, 0i64..256), 1..100),
            per_part in 1usize..9,
            limit in 1usize..3_000,
        ) {
            // Halves of halves never overlap without nesting.
            let interval = |(slot, level, at): (u8, u32, i64)| (slot, at >> level << level, 1 << level);
            let mut spans: Vec<(u8, i64, i64)> = intervals.into_iter().map(interval).collect();
            spans.sort_by_key(|(_, start, duration)| start + duration);
            let (whole, off) = run(&spans, per_part, usize::MAX);
            prop_assert_eq!(off, [0, 0]);
            prop_assert_eq!(whole.iter().map(|(index, _)| *index).collect::<Vec<_>>(), (0..whole.len()).collect::<Vec<_>>());
            let (bounded, [inexact, shallow]) = run(&spans, per_part, limit);
            prop_assert_eq!(bounded.len(), whole.len());
            let places = |parts: &Parts| parts.iter().flat_map(|(_, places)| places.clone()).collect::<Vec<_>>();
            for (bounded, whole) in places(&bounded).into_iter().zip(places(&whole)) {
                prop_assert!(bounded.self_ticks == whole.self_ticks || inexact > 0);
                prop_assert!(bounded.depth == whole.depth || inexact + shallow > 0);
            }
        }
    }
}
