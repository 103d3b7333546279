//! Where did the time go: one row per kind, family, name, system or thread (brief 11 §2.4, §5.3).
//!
//! Work is split for the parallel pipeline. [`StatsQuery::digest`] runs per block on any thread and shrinks the block
//! to what counts; [`StatsCollector::absorb`] takes the digests in file order, nests the spans of every lane and fills
//! the rows. Memory is bounded ([`StatsLimits`]): waiting spans are settled when there are too many of them, durations
//! go into histograms, names into a common row.
//!
//! Self time uses *all* spans of a lane; filter and range only decide which spans enter the rows.

mod collect;
mod digest;
mod rows;
#[cfg(test)]
mod tests;
mod ticks;

pub(crate) use collect::CHECK_SPANS;
pub use collect::{StatsCollector, StatsLimits};
pub use digest::BlockDigest;
pub use rows::{Row, Stats};
pub(crate) use rows::{RowData, bound_exact_durations, finish as finish_rows, thread_label};
pub use ticks::{TickFigures, WORST_TICKS};

use crate::facts::{TimeWindow, TraceContext};
use crate::filter::Filter;
use crate::pipeline::{PipelineOptions, map_blocks};
use crate::placing::Placer;
use crate::survey::Survey;
use std::ops::ControlFlow;
use typhon_trace::TraceError;
use typhon_trace::reader::{BlockBuffer, BlockFeed, Outcome, Source};
use typhon_trace::record::{RecordWalk, SPAN_HEADER_BYTES};

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GroupBy {
    /// Event kind.
    Kind,
    /// Family of kinds.
    Family,
    /// What a bar says: system, user text or kind.
    Name,
    /// System of the schedule; only its chunks (kind 10) count, not the span around those of a system that runs alone.
    System,
    /// Thread, by slot and time.
    Thread,
}

/// What to sum up.
#[derive(Debug, Clone, Copy)]
pub struct StatsQuery<'a> {
    /// What a row stands for.
    pub group_by: GroupBy,
    /// Records that enter the rows; all when absent. Ticks and collections are about the whole window all the same.
    pub filter: Option<&'a Filter>,
    /// Time of the records that enter the rows; a span that counts does so with its whole duration. All when absent.
    pub window: Option<&'a TimeWindow>,
    /// Names and times.
    pub context: TraceContext<'a>,
    /// Ticks and threads. Required to group by thread and for filters on tick or thread; without it such a filter
    /// matches nothing, and all records of a slot are one thread.
    pub survey: Option<&'a Survey>,
}

/// Sums up a whole trace on several threads. `None` when `progress`, which gets the file offset reached, broke off.
///
/// # Errors
/// When the source cannot be read.
pub fn run<S: Source + Send>(
    feed: BlockFeed<S>,
    options: PipelineOptions,
    query: StatsQuery<'_>,
    mut progress: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<(Stats, Outcome)>, TraceError> {
    if query.filter.is_some_and(Filter::needs_places) {
        return run_placed(feed, options, query, progress);
    }
    let mut collector = StatsCollector::new(query);
    let digest = || {
        |block: &BlockBuffer| {
            // What is stated in the block may be anything; this is what fits into it.
            query.digest(block.events(), block.walked().len() / SPAN_HEADER_BYTES, &[])
        }
    };
    let outcome = map_blocks(feed, options, digest, |block| {
        let end = block.summary.entry.end();
        if block.delivered {
            collector.absorb(block.payload);
        }
        Ok::<_, TraceError>(progress(end))
    })?;
    Ok(outcome.map(|outcome| (collector.finish(), outcome)))
}

/// The same when the filter must know the place of every span: blocks are shrunk in order, once their spans are placed.
fn run_placed<S: Source + Send>(
    feed: BlockFeed<S>,
    options: PipelineOptions,
    query: StatsQuery<'_>,
    mut progress: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<(Stats, Outcome)>, TraceError> {
    let mut collector = StatsCollector::new(query);
    let mut placer = Placer::default();
    let mut absorb_placed = |placer: &mut Placer<Vec<u8>>| {
        while let Some((bytes, places)) = placer.pop() {
            collector.absorb(query.digest(RecordWalk::new(&bytes), places.len(), &places));
        }
    };
    let outcome = map_blocks(
        feed,
        options,
        || copy_events,
        |block| {
            if block.delivered {
                placer.push(block.payload, |bytes, see| RecordWalk::new(bytes).for_each(see));
                absorb_placed(&mut placer);
            }
            Ok::<_, TraceError>(progress(block.summary.entry.end()))
        },
    )?;
    placer.finish();
    absorb_placed(&mut placer);
    let finish = |outcome| {
        let mut stats = collector.finish();
        let faults = placer.faults();
        stats.too_shallow_spans = faults.too_shallow;
        // The same spans are nested twice, for the filter and for the table, and may be off in either.
        stats.inexact_self_times = stats.inexact_self_times.max(faults.inexact);
        (stats, outcome)
    };
    Ok(outcome.map(finish))
}

/// The events of a block, which is reused, in one piece.
pub(crate) fn copy_events(block: &BlockBuffer) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(block.walked().len());
    block.events().for_each(|record| bytes.extend_from_slice(record.bytes()));
    bytes
}
