//! The collections of a managed runtime (kinds 7, 8, 75).

use super::time::TimeBase;
use crate::clock::Clock;
use crate::facts::TimeWindow;
use crate::gc::{GcCollector, GcSummary};
use std::collections::HashMap;
use std::ops::Range;
use typhon_trace::event::{GcEndView, GcStartView};
use typhon_trace::record::Record;
use typhon_trace::registry::id;

/// Records of collections that are kept one by one; 128 bytes each. Bars and markers of further ones are drawn all the
/// same, but the list and the statistics lack them.
pub(crate) const GC_EVENTS_MAX: usize = 1 << 18;

/// One record about the runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GcEvent {
    Start { ticks: i64, count: u32, generation: Option<u8>, reason: Option<u8>, gc_type: Option<u8> },
    End { ticks: i64, count: u32, generation: u8, pause_ns: Option<i64>, sizes: GcSizes },
    Suspension { ticks: i64, duration: i64 },
}

/// Sizes when a collection ended, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GcSizes {
    /// Bytes that moved to an older generation.
    pub promoted: Option<u64>,
    /// Gen0, Gen1, Gen2, large and pinned objects.
    pub generations: [Option<u64>; 5],
    /// Bytes that the runtime holds from the system.
    pub committed: Option<u64>,
}

/// One collection, put together from its start and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Collection {
    /// The runtime's number of it.
    pub count: u32,
    /// Generation that was collected.
    pub generation: Option<u8>,
    /// Value of GcReason.
    pub reason: Option<u8>,
    /// Value of GcType; 1 is a background collection.
    pub gc_type: Option<u8>,
    /// When it began, ns on the session's axis; `None` when the recording lacks it.
    pub start_ns: Option<u64>,
    /// When it ended.
    pub end_ns: Option<u64>,
    /// Pause that the runtime states, ns.
    pub pause_ns: Option<i64>,
    /// Sizes at the end.
    pub sizes: GcSizes,
}

impl GcEvent {
    /// What a record tells; `None` for other kinds and for records too short to be told apart.
    pub(crate) fn of(record: &Record<'_>, clock: Clock, own_dialect: bool) -> Option<Self> {
        let ticks = record.timestamp();
        match record.kind() {
            id::GC_START => {
                let view = GcStartView::new(record)?;
                Some(Self::Start {
                    ticks,
                    count: view.count()?,
                    generation: view.generation(),
                    reason: view.reason().map(|reason| reason.0),
                    gc_type: view.gc_type().map(|of| of.0),
                })
            }
            id::GC_END => {
                let view = GcEndView::new(record)?;
                let pause = view.pause_duration_ticks();
                // Brief 01 C-18: the reference engine writes 100 ns units.
                let pause_ns = pause
                    .map(|pause| if own_dialect { clock.to_ns(pause) } else { pause.saturating_mul(100) });
                let generations = [
                    view.gen0_size_after(),
                    view.gen1_size_after(),
                    view.gen2_size_after(),
                    view.loh_size_after(),
                    view.poh_size_after(),
                ];
                let committed = view.total_committed_bytes();
                let sizes = GcSizes { promoted: view.promoted_bytes(), generations, committed };
                Some(Self::End {
                    ticks,
                    count: view.count()?,
                    generation: view.generation()?,
                    pause_ns,
                    sizes,
                })
            }
            id::GC_SUSPENSION => Some(Self::Suspension { ticks, duration: record.span()?.duration }),
            _ => None,
        }
    }
}

/// Pairs starts and ends by their count; in order of time.
pub(crate) fn collections(events: &[GcEvent], time: TimeBase) -> Vec<Collection> {
    let mut found: Vec<Collection> = Vec::new();
    let mut open: HashMap<u32, usize> = HashMap::new();
    let mut sorted: Vec<&GcEvent> = events.iter().collect();
    sorted.sort_by_key(|event| match **event {
        GcEvent::Start { ticks, .. } => (ticks, 0),
        GcEvent::End { ticks, .. } => (ticks, 1),
        GcEvent::Suspension { ticks, .. } => (ticks, 2),
    });
    for event in sorted {
        match *event {
            GcEvent::Start { ticks, count, generation, reason, gc_type } => {
                open.insert(count, found.len());
                let start_ns = Some(time.ns(ticks));
                found.push(Collection {
                    count,
                    generation,
                    reason,
                    gc_type,
                    start_ns,
                    ..Collection::default()
                });
            }
            GcEvent::End { ticks, count, generation, pause_ns, sizes } => {
                let at = open.remove(&count).unwrap_or_else(|| {
                    found.push(Collection { count, ..Collection::default() });
                    found.len() - 1
                });
                let collection = &mut found[at];
                collection.generation = Some(generation);
                (collection.end_ns, collection.pause_ns, collection.sizes) =
                    (Some(time.ns(ticks)), pause_ns, sizes);
            }
            GcEvent::Suspension { .. } => {}
        }
    }
    found
}

/// What `typhon trace stats` says of the collections in a window.
pub(crate) fn summary(
    events: &[GcEvent],
    clock: Clock,
    window: Option<&TimeWindow>,
    observed: Range<i64>,
) -> Option<GcSummary> {
    let mut collector = GcCollector::default();
    let counts =
        |start: i64, duration: i64| window.is_none_or(|window| window.includes_span(start, duration));
    for event in events {
        match *event {
            GcEvent::Start { count, .. } => collector.start(count),
            GcEvent::End { ticks, count, generation, pause_ns, .. } => {
                collector.end(count);
                if counts(ticks, 0) {
                    collector.collection(generation, pause_ns);
                }
            }
            GcEvent::Suspension { ticks, duration } => {
                if counts(ticks, duration) {
                    collector.suspension(ticks, duration, clock);
                }
            }
        }
    }
    collector.finish(observed)
}
