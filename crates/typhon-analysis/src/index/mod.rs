//! The index behind the Workbench: what is where and when, at every level of detail (brief 11 §3).
//!
//! ```text
//!  blocks ──▶ scan ──▶ build ──▶ sort ──▶ lanes ──▶ rows ──▶ groups of spans, pyramid      session
//!  (threads)           (in file order)   (by time)   (packed, in a store)          └──▶ tiles, look-ups, statistics
//! ```
//!
//! - **Items.** Every block shrinks to items of 40 bytes: a span, an instant or a value of a gauge, under the key of
//!   the lane it goes to. The items of a key are sorted in the order of nesting; those beyond the memory allowed go
//!   through a temporary file (`sort`).
//! - **Lanes.** A lane is a thread (slot and incarnation), the collector, a gauge, a system, or a strip of operations.
//!   Chunks lie in the lane of their thread and once more in that of their system; spans of some families once more in a
//!   strip.
//! - **Rows.** One per depth of nesting; spans that overlap without nesting have overflow rows behind them (`rows`).
//!   Completions (kinds 56 to 58) stand in the overflow rows, marked as the tail of their kick-off: as an asynchronous
//!   tail they outlast what encloses the kick-off, and nothing is re-timed.
//! - **Groups.** The entries of a row, 4,096 at a time, in packed columns (`group`, `packed`), in clock ticks.
//! - **Pyramid.** Aggregates per bucket and level, and lists of long spans, for rows of more than one group
//!   (`pyramid`).
//! - **Store.** Groups and levels are pieces of a store, which is memory or a file; what stays in memory all the time
//!   are the heads of the pieces. A store in a file can become the sidecar of the trace (the module `sidecar`).
//! - **Preview.** While a file is indexed, an index of little stands in for the one to come (`preview`).
//!
//! **Invariants**
//! - Every event of a delivered block is exactly one entry of its thread's lane.
//! - The index depends on the bytes of the file only: not on the number of threads, the memory allowed, or whether it
//!   was read from a sidecar.
//! - Memory does not grow with the spans of a file: per 4,096 of them about a hundred bytes stay. What grows with it
//!   are blocks (56 bytes each), ticks (80 bytes each, up to the limit of [`crate::ticks`]), threads and rows.
//! - Nothing is re-timed: entries hold the ticks of their records, and nanoseconds are computed from those.

pub(crate) mod blocks;
pub(crate) mod build;
mod capped;
pub(crate) mod gc;
pub(crate) mod group;
pub(crate) mod item;
pub(crate) mod lane;
pub(crate) mod lanes;
pub(crate) mod lists;
pub(crate) mod names;
pub(crate) mod notices;
pub(crate) mod packed;
pub(crate) mod preview;
pub(crate) mod pyramid;
mod resident;
pub(crate) mod row;
pub(crate) mod rows;
pub(crate) mod scan;
pub(crate) mod series;
pub(crate) mod sort;
pub(crate) mod store;
pub(crate) mod ticks;
pub(crate) mod time;

pub use blocks::EventId;
pub use capped::{Capped, CappedSet};
pub use gc::{Collection, GcSizes};
pub use lane::{LaneKind, Strip};
pub use names::{GROUP_IS_SYSTEM, Name, Names, families};
pub use notices::{Loss, PlacedNotice};
pub use scan::Stack;
pub use ticks::Tick;
pub use time::TimeBase;

use crate::survey::Survey;
use std::collections::BTreeMap;
use typhon_trace::trailer::SpanNames;

/// Sums over the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Events in the index.
    pub events: u64,
    /// Events that are left out because a checksum says that their block is damaged.
    pub withheld_events: u64,
    /// Records that the recorder reports as lost.
    pub dropped_records: u64,
    /// Records of collections that are drawn, but missing in the list and the statistics of collections.
    pub gc_not_kept: u64,
}

/// A finished index.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) store: store::Store,
    pub(crate) time: TimeBase,
    pub(crate) lanes: Vec<lane::Lane>,
    pub(crate) names: Names,
    pub(crate) survey: Survey,
    pub(crate) blocks: blocks::BlockTable,
    pub(crate) tick_ends: Vec<scan::TickEndInfo>,
    pub(crate) ticks: ticks::TickTable,
    /// Events by kind.
    pub(crate) kinds: [u64; 256],
    pub(crate) gc: Vec<gc::GcEvent>,
    pub(crate) losses: Vec<Loss>,
    pub(crate) capped: Vec<Capped>,
    pub(crate) notices: Vec<PlacedNotice>,
    pub(crate) totals: Totals,
    /// Largest sum of each stacked area.
    pub(crate) stacks: BTreeMap<Stack, u64>,
    pub(crate) span_names: SpanNames,
}

impl Index {
    /// The whole extent, ns.
    pub(crate) fn end_ns(&self) -> u64 {
        self.time.ns(self.survey.last_ticks)
    }
}
