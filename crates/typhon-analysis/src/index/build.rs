//! From the blocks of a file to an index.

use super::blocks::BlockTable;
use super::gc::{GC_EVENTS_MAX, GcEvent};
use super::item::{Item, Key};
use super::lane::{Lane, LaneKind, LaneWriter, write_instants, write_series};
use super::names::{FIRST_DYNAMIC, Names};
use super::notices::{PlacedNotice, losses, place};
use super::scan::{BlockScan, GC_SIZE_GAUGES, Marker, STACKS, Stack, TickEndInfo};
use super::series::Series;
use super::sort::{Sorter, sound};
use super::store::StoreWriter;
use super::ticks::TickTable;
use super::time::TimeBase;
use super::{Index, Totals};
use crate::clock::Clock;
use crate::survey::{Survey, SurveyCollector};
use std::collections::BTreeMap;
use std::io;
use typhon_trace::reader::{BlockSummary, Outcome};
use typhon_trace::tables::Tables;

/// Takes the scans of blocks in file order.
#[derive(Debug)]
pub(crate) struct Builder {
    names: Names,
    blocks: BlockTable,
    sorter: Sorter,
    survey: SurveyCollector,
    gc: Vec<GcEvent>,
    gc_not_kept: u64,
    tick_ends: Vec<TickEndInfo>,
    markers: Vec<Marker>,
    kinds: [u64; 256],
    stacks: [u64; STACKS.len()],
    gc_heap: u64,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            names: Names::new(),
            blocks: BlockTable::default(),
            sorter: Sorter::default(),
            survey: SurveyCollector::default(),
            gc: Vec::new(),
            gc_not_kept: 0,
            tick_ends: Vec::new(),
            markers: Vec::new(),
            kinds: [0; 256],
            stacks: [0; STACKS.len()],
            gc_heap: 0,
        }
    }

    /// Adds the next block; what it holds counts only when it is `delivered`.
    pub(crate) fn absorb(
        &mut self,
        summary: &BlockSummary,
        delivered: bool,
        scan: BlockScan,
        tables: &Tables,
    ) {
        let first = self.blocks.push(summary, delivered, scan.extent.filter(|_| delivered));
        if !delivered {
            return;
        }
        let names: Vec<u16> = scan.names.into_iter().map(|key| self.names.intern(key, tables)).collect();
        for (key, mut item) in scan.items {
            item.ordinal += first;
            if let Some(local) = item.name.checked_sub(FIRST_DYNAMIC) {
                item.name = names.get(usize::from(local)).copied().unwrap_or(u16::MAX);
            }
            self.sorter.push(key, item);
        }
        self.survey.merge(scan.survey);
        let room = GC_EVENTS_MAX - self.gc.len();
        self.gc_not_kept += scan.gc.len().saturating_sub(room) as u64;
        self.gc.extend(scan.gc.into_iter().take(room));
        self.tick_ends.extend(scan.tick_ends);
        self.markers.extend(scan.markers);
        scan.kinds.into_iter().for_each(|(kind, count)| self.kinds[usize::from(kind)] += count);
        self.stacks.iter_mut().zip(scan.stacks).for_each(|(most, sum)| *most = (*most).max(sum));
        self.gc_heap = self.gc_heap.max(scan.gc_heap);
    }

    /// Makes the lanes.
    ///
    /// # Errors
    /// What writing to the store returns.
    pub(crate) fn finish(mut self, outcome: &Outcome, clock: Clock, store: StoreWriter) -> io::Result<Index> {
        let survey = self.survey.finish();
        let time = TimeBase::new(clock, survey.first_ticks);
        let mut lanes = Lanes::new(&survey, time, &store);
        let keys = self.sorter.keys();
        // Gauges say more than the records of collections.
        let has_heap_gauges =
            keys.iter().any(|key| matches!(key, Key::Gauge(id) if GC_SIZE_GAUGES.contains(id)));
        for key in keys {
            let items = self.sorter.take(key);
            if has_heap_gauges && matches!(key, Key::GcSizes(_)) {
                continue;
            }
            lanes.add(key, sound(items))?;
        }
        let lanes = lanes.finish();
        if !has_heap_gauges {
            self.stacks[0] = self.gc_heap;
        }
        let stacks = STACKS.iter().map(|(stack, _)| *stack).zip(self.stacks).filter(|(_, sum)| *sum > 0);
        let end_ns = time.ns(survey.last_ticks);
        let notices: Vec<PlacedNotice> =
            outcome.notices.iter().map(|notice| place(notice, &self.blocks, time, end_ns)).collect();
        Ok(Index {
            ticks: TickTable::new(&survey, &self.tick_ends, &self.gc, time),
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
            survey,
            time,
            lanes,
            notices,
            store: store.finish()?.0,
        })
    }
}

/// Lanes by what they are about.
struct Lanes<'s> {
    survey: &'s Survey,
    time: TimeBase,
    store: &'s StoreWriter,
    gc: Option<Lane>,
    gauges: BTreeMap<u16, Series>,
    threads: Vec<Lane>,
    others: Vec<Lane>,
}

impl<'s> Lanes<'s> {
    fn new(survey: &'s Survey, time: TimeBase, store: &'s StoreWriter) -> Self {
        let threads =
            (0..survey.threads.all().len()).map(|thread| Lane::new(LaneKind::Thread { thread })).collect();
        Self { survey, time, store, gc: None, gauges: BTreeMap::new(), threads, others: Vec::new() }
    }

    fn add(&mut self, key: Key, items: impl Iterator<Item = io::Result<Item>>) -> io::Result<()> {
        let (time, store) = (self.time, self.store);
        match key {
            Key::GcSpans => self.gc().rows = write_spans(items, false, time, store)?.0,
            Key::GcInstants => self.gc().instants = write_instants(items, time, store)?,
            Key::Gauge(id) | Key::GcSizes(id) => {
                self.gauges.insert(id, write_series(items, time, store)?);
            }
            Key::Spans(slot) => self.by_thread(slot, items, |lane, items| {
                (lane.rows, lane.nested_rows) = write_spans(items, true, time, store)?;
                Ok(())
            })?,
            Key::Instants(slot) => self.by_thread(slot, items, |lane, items| {
                lane.instants = write_instants(items, time, store)?;
                Ok(())
            })?,
            Key::System(index) => self.other(LaneKind::System { index }, items)?,
            Key::Strip(strip) => self.other(LaneKind::Strip(strip), items)?,
        }
        Ok(())
    }

    fn gc(&mut self) -> &mut Lane {
        self.gc.get_or_insert_with(|| Lane::new(LaneKind::Gc))
    }

    fn other(&mut self, kind: LaneKind, items: impl Iterator<Item = io::Result<Item>>) -> io::Result<()> {
        let (rows, nested_rows) = write_spans(items, false, self.time, self.store)?;
        self.others.push(Lane { rows, nested_rows, ..Lane::new(kind) });
        Ok(())
    }

    /// Splits the items of a slot, which are in order of time, among the threads that held it.
    fn by_thread(
        &mut self,
        slot: u8,
        items: impl Iterator<Item = io::Result<Item>>,
        mut write: impl FnMut(&mut Lane, &mut dyn Iterator<Item = io::Result<Item>>) -> io::Result<()>,
    ) -> io::Result<()> {
        let threads = &self.survey.threads;
        let mut items = items.peekable();
        while let Some(Ok(first)) = items.peek() {
            let Some(thread) = threads.index_at(slot, first.start) else { return Ok(()) };
            let next = threads.all().get(thread + 1).filter(|next| next.slot == slot);
            let until = next.map_or(i64::MAX, |next| next.from_ticks);
            let is_last = next.is_none();
            let mut held = std::iter::from_fn(|| {
                items.next_if(|item| item.as_ref().map_or(true, |item| is_last || item.start < until))
            });
            write(&mut self.threads[thread], &mut held)?;
        }
        // What stands there now is the failure to read it.
        items.next().map_or(Ok(()), |item| item.map(|_| ()))
    }

    /// In the order in which they are drawn.
    fn finish(self) -> Vec<Lane> {
        let gauges = self
            .gauges
            .into_iter()
            .map(|(gauge, series)| Lane { series: Some(series), ..Lane::new(LaneKind::Gauge { gauge }) });
        self.gc.into_iter().chain(gauges).chain(self.threads).chain(self.others).collect()
    }
}

fn write_spans(
    items: impl Iterator<Item = io::Result<Item>>,
    nests: bool,
    time: TimeBase,
    store: &StoreWriter,
) -> io::Result<(Vec<super::row::Row>, usize)> {
    let mut writer = LaneWriter::new(nests, time, store);
    for item in items {
        writer.push(item?)?;
    }
    writer.finish()
}
