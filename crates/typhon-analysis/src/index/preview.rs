//! What can be shown of a file that is still being indexed (brief 11 B-3).
//!
//! An index like the finished one, but of little: its ticks so far, and for each thread one row with bars for when its
//! records began, a bar per block and thread at first, neighbours merged when there are many. The row is shared, so
//! the bars are drawn as aggregates; their counts are no counts of spans.

use super::Index;
use super::build::Builder;
use super::group::Entry;
use super::item::Key;
use super::lane::{Lane, LaneKind};
use super::names::FIRST_DYNAMIC;
use super::row::RowWriter;
use super::scan::BlockScan;
use super::store::StoreWriter;
use super::ticks::TickTable;
use super::time::TimeBase;
use crate::clock::Clock;
use std::collections::BTreeMap;
use std::io;
use typhon_trace::registry::id;

/// Bars of a thread, at most.
const BARS_MAX: usize = 1_024;

/// Bars by slot.
#[derive(Debug, Default)]
pub(crate) struct Preview {
    bars: BTreeMap<u8, Vec<Entry>>,
}

impl Preview {
    /// Adds a block, of which `scan` has not been changed yet; its first record has the number `first_record`.
    pub(crate) fn add(&mut self, scan: &BlockScan, first_record: u64) {
        for (key, items) in scan.items.by_key() {
            let (Key::Spans(slot) | Key::Instants(slot)) = key else { continue };
            let (Some(first), Some(last)) = (items.first(), items.last()) else { continue };
            let bar = Entry {
                start: first.start,
                length: last.start.saturating_sub(first.start),
                reference: first_record + first.ordinal,
                // The block's own names have no numbers yet.
                name: if first.name < FIRST_DYNAMIC { first.name } else { id::NAMED_SPAN.into() },
                flags: 0,
            };
            let bars = self.bars.entry(slot).or_default();
            bars.push(bar);
            if bars.len() > BARS_MAX {
                bars.sort_by_key(|bar| bar.start);
                *bars = bars.chunks(2).filter_map(|pair| pair.iter().copied().reduce(joined)).collect();
            }
        }
    }

    /// An index of what `builder` has taken so far.
    ///
    /// # Errors
    /// As [`StoreWriter::append`], which does not happen in memory.
    pub(crate) fn index(&self, builder: &Builder, clock: Clock) -> io::Result<Index> {
        let survey = builder.survey.clone().finish();
        let time = TimeBase::new(clock, survey.first_ticks);
        let store = StoreWriter::in_memory();
        let threads = survey.threads.all().len();
        let mut rows: Vec<RowWriter> = (0..threads).map(|_| RowWriter::default()).collect();
        for (slot, bars) in &self.bars {
            let mut bars = bars.clone();
            bars.sort_by_key(|bar| bar.start);
            for bar in bars {
                if let Some(thread) = survey.threads.index_at(*slot, bar.start) {
                    rows[thread].row.is_shared = true;
                    rows[thread].push(bar, time, &store)?;
                }
            }
        }
        let mut lanes = Vec::with_capacity(threads);
        for (writer, thread) in rows.into_iter().zip(0..) {
            let row = writer.finish(time, &store)?;
            lanes.push(Lane { rows: vec![row], nested_rows: 1, ..Lane::new(LaneKind::Thread { thread }) });
        }
        Ok(Index {
            ticks: TickTable::new(&survey, &builder.tick_ends, &builder.gc, time),
            store: store.finish()?.0,
            tick_ends: Vec::new(),
            names: builder.names.clone(),
            blocks: builder.blocks.clone(),
            kinds: builder.kinds,
            gc: builder.gc.clone(),
            survey,
            time,
            lanes,
            losses: Vec::new(),
            capped: Vec::new(),
            notices: Vec::new(),
            totals: Default::default(),
            stacks: BTreeMap::new(),
            span_names: Default::default(),
        })
    }
}

/// One bar instead of two.
fn joined(a: Entry, b: Entry) -> Entry {
    let start = a.start.min(b.start);
    Entry { start, length: a.end().max(b.end()).saturating_sub(start), ..a }
}
