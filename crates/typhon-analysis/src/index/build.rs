//! From the blocks of a file to an index.

use super::blocks::BlockTable;
use super::capped::CappedTally;
use super::gc::{GC_EVENTS_MAX, GcEvent};
use super::item::{Item, Key};
use super::lanes::{LaneContext, build_lanes};
use super::names::{FIRST_DYNAMIC, Names};
use super::notices::{PlacedNotice, losses, place};
use super::scan::{BlockScan, GC_SIZE_GAUGES, Marker, STACKS, Stack, TickEndInfo};
use super::sort::Sorter;
use super::store::StoreWriter;
use super::ticks::TickTable;
use super::time::TimeBase;
use super::{Index, Totals};
use crate::clock::Clock;
use crate::survey::SurveyCollector;
use crate::ticks::MAX_TICKS;
use std::collections::BTreeMap;
use std::io;
use typhon_trace::reader::{BlockSummary, Outcome};
use typhon_trace::tables::Tables;

/// Takes the scans of blocks in file order.
#[derive(Debug)]
pub(crate) struct Builder {
    pub(super) names: Names,
    pub(crate) blocks: BlockTable,
    sorter: Sorter,
    pub(super) survey: SurveyCollector,
    pub(super) gc: Vec<GcEvent>,
    gc_not_kept: u64,
    pub(super) tick_ends: Vec<TickEndInfo>,
    markers: Vec<Marker>,
    capped: CappedTally,
    pub(crate) kinds: [u64; 256],
    stacks: [u64; STACKS.len()],
    gc_heap: u64,
}

impl Builder {
    /// Keeps about `memory_bytes` of items in memory.
    pub(crate) fn new(memory_bytes: usize) -> Self {
        Self {
            names: Names::new(),
            blocks: BlockTable::default(),
            sorter: Sorter::new(memory_bytes),
            survey: SurveyCollector::default(),
            gc: Vec::new(),
            gc_not_kept: 0,
            tick_ends: Vec::new(),
            markers: Vec::new(),
            capped: CappedTally::default(),
            kinds: [0; 256],
            stacks: [0; STACKS.len()],
            gc_heap: 0,
        }
    }

    /// Adds the next block; what it holds counts only when it is `delivered`.
    ///
    /// # Errors
    /// When the temporary file cannot be written.
    pub(crate) fn absorb(
        &mut self,
        summary: &BlockSummary,
        delivered: bool,
        scan: BlockScan,
        tables: &Tables,
    ) -> io::Result<()> {
        let first = self.blocks.push(summary, delivered, scan.extent.filter(|_| delivered));
        if !delivered {
            return Ok(());
        }
        let names: Vec<u16> = scan.names.into_iter().map(|key| self.names.intern(key, tables)).collect();
        // What the scan counts from its own block on counts from the file's beginning now.
        let of_file = |item: Item| {
            let local = item.name.checked_sub(FIRST_DYNAMIC);
            let name = local.map(|local| names.get(usize::from(local)).copied().unwrap_or(u16::MAX));
            Item { ordinal: item.ordinal + first, name: name.unwrap_or(item.name), ..item }
        };
        for (key, items) in scan.items.by_key() {
            self.sorter.extend(key, items.iter().copied().map(of_file))?;
        }
        self.survey.merge(scan.survey);
        let room = GC_EVENTS_MAX - self.gc.len();
        self.gc_not_kept += scan.gc.len().saturating_sub(room) as u64;
        self.gc.extend(scan.gc.into_iter().take(room));
        // Those of ticks that are not told apart would change nothing.
        let room = MAX_TICKS.saturating_sub(self.tick_ends.len());
        self.tick_ends.extend(scan.tick_ends.into_iter().take(room));
        self.markers.extend(scan.markers);
        self.capped.merge(&scan.capped);
        scan.kinds.into_iter().for_each(|(kind, count)| self.kinds[usize::from(kind)] += count);
        self.stacks.iter_mut().zip(scan.stacks).for_each(|(most, sum)| *most = (*most).max(sum));
        self.gc_heap = self.gc_heap.max(scan.gc_heap);
        Ok(())
    }

    /// What grows with blocks and ticks and stays in memory, about so many bytes.
    pub(crate) fn table_bytes(&self) -> usize {
        size_of_val(self.blocks.blocks.as_slice())
            + self.survey.resident_bytes()
            + size_of_val(self.tick_ends.as_slice())
            + size_of_val(self.gc.as_slice())
            + size_of_val(self.markers.as_slice())
    }

    /// Makes the lanes; gives the index and the offset behind its last piece in the store.
    ///
    /// # Errors
    /// What writing to the store returns.
    pub(crate) fn finish(
        mut self,
        outcome: &Outcome,
        clock: Clock,
        store: StoreWriter,
    ) -> io::Result<(Index, u64)> {
        let survey = self.survey.finish();
        let time = TimeBase::new(clock, survey.first_ticks);
        let mut sorted = self.sorter.finish()?;
        let mut keys = sorted.take_pending();
        // Gauges say more than the records of collections.
        let has_heap_gauges =
            keys.iter().any(|waiting| matches!(waiting.key, Key::Gauge(id) if GC_SIZE_GAUGES.contains(&id)));
        keys.retain(|waiting| !has_heap_gauges || !matches!(waiting.key, Key::GcSizes(_)));
        let lanes =
            build_lanes(keys, &LaneContext { sorted: &sorted, survey: &survey, time, store: &store })?;
        if !has_heap_gauges {
            self.stacks[0] = self.gc_heap;
        }
        let stacks = STACKS.iter().map(|(stack, _)| *stack).zip(self.stacks).filter(|(_, sum)| *sum > 0);
        let end_ns = time.ns(survey.last_ticks);
        let notices: Vec<PlacedNotice> =
            outcome.notices.iter().map(|notice| place(notice, &self.blocks, time, end_ns)).collect();
        let (store, pieces_end) = store.finish()?;
        let index = Index {
            ticks: TickTable::new(&survey, &self.tick_ends, &self.gc, time),
            capped: self.capped.finish(time),
            losses: losses(&self.markers, &outcome.span_names, time),
            totals: Totals {
                events: outcome.totals.events,
                withheld_events: outcome.totals.withheld_events,
                dropped_records: outcome.totals.dropped_records,
                gc_not_kept: self.gc_not_kept,
            },
            stacks: stacks.collect::<BTreeMap<Stack, u64>>(),
            span_names: outcome.span_names.clone(),
            names: self.names,
            blocks: self.blocks,
            kinds: self.kinds,
            gc: self.gc,
            tick_ends: self.tick_ends,
            survey,
            time,
            lanes,
            notices,
            store,
        };
        Ok((index, pieces_end))
    }
}
