//! Filters: which events match, how many they are, and the index of those alone (brief 11 B-25, §3.2).
//!
//! A filter is evaluated once over the records of the file, which gives a bit per record. From the bits follow an exact
//! count, and rows like those of the index that hold the matching entries only, at their places in the full rows. So
//! a filtered tile is made exactly as an unfiltered one, and rows do not move.

use super::event::RelatedSpan;
use super::memory::Held;
use super::{Cancel, Place, Session, SessionError, Shared};
use crate::facts::{RecordFacts, TraceContext};
use crate::filter::{self, Filter};
use crate::index::group::{Entry, GroupReader};
use crate::index::lane::Lane;
use crate::index::row::{Row, RowWriter};
use crate::index::store::{Store, StoreWriter};
use crate::index::{EventId, Index};
use crate::pipeline::{PipelineOptions, map_blocks};
use crate::placing::{self, Placer};
use crate::stats::copy_events;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use typhon_trace::reader::{BlockBuffer, BlockFeed, BlockSummary, FileSource, ReadOptions};
use typhon_trace::record::{Record, RecordWalk};

/// Filters of a session that can be in use at a time. The oldest one gives way.
pub const MAX_FILTERS: usize = 8;

/// The matches of a filter.
#[derive(Debug)]
pub(crate) struct Filtered {
    pub(crate) id: u16,
    bits: Bits,
    pub(crate) count: u64,
    pub(crate) lanes: Vec<FilteredLane>,
    pub(crate) store: Store,
    _heads: Held,
}

/// A bit per record number of the file, and the memory that they take.
#[derive(Debug)]
struct Bits {
    words: Vec<u64>,
    _held: Held,
}

impl Bits {
    #[inline]
    fn get(&self, ordinal: u64) -> bool {
        self.words.get((ordinal / 64) as usize).is_some_and(|word| word >> (ordinal % 64) & 1 != 0)
    }

    fn set(&mut self, ordinal: u64) {
        if let Some(word) = self.words.get_mut((ordinal / 64) as usize) {
            *word |= 1 << (ordinal % 64);
        }
    }

    fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// The matches in a lane.
#[derive(Debug)]
pub(crate) struct FilteredLane {
    pub(crate) rows: Vec<Row>,
    pub(crate) instants: Row,
}

/// A filter that is ready for tile requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterInfo {
    /// What tile requests call it; never 0.
    pub id: u16,
    /// Events that match, exactly.
    pub matches: u64,
}

/// Which way to look for matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Later ones.
    Forward,
    /// Earlier ones.
    Backward,
}

impl Filtered {
    #[inline]
    pub(crate) fn matches(&self, ordinal: u64) -> bool {
        self.bits.get(ordinal)
    }
}

impl Session {
    /// Evaluates a filter over the whole trace. `progress` gets the bytes of the file that are done.
    ///
    /// # Errors
    /// When the text is no filter, the index is not ready, the file cannot be read, there is no memory left, or
    /// cancelled.
    pub fn add_filter(
        &self,
        text: &str,
        cancel: &Cancel,
        progress: impl FnMut(u64),
    ) -> Result<FilterInfo, SessionError> {
        let filter = filter::parse(text)?;
        let index = self.index()?;
        let bits = self.shared.evaluate(&index, &filter, cancel, progress)?;
        let count = bits.count();
        let filtered = self.shared.select(&index, bits, count, cancel)?;
        let mut filters = self.shared.filters();
        let id = filters.next_id();
        if filters.kept.len() == MAX_FILTERS {
            filters.kept.remove(0);
        }
        filters.kept.push(Arc::new(Filtered { id, ..filtered }));
        drop(filters);
        Ok(FilterInfo { id, matches: count })
    }

    /// Forgets a filter.
    pub fn remove_filter(&self, id: u16) {
        self.shared.filters().kept.retain(|filter| filter.id != id);
    }

    /// Events that match a filter.
    ///
    /// # Errors
    /// When there is no such filter.
    pub fn match_count(&self, filter: u16) -> Result<u64, SessionError> {
        Ok(self.shared.filtered(filter)?.count)
    }

    /// Matches of a filter in order of time: the first `limit` ones behind an event, or from one end.
    ///
    /// # Errors
    /// When there is no such filter or event, or the index cannot be read.
    pub fn matches(
        &self,
        filter: u16,
        after: Option<EventId>,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<RelatedSpan>, SessionError> {
        let index = self.index()?;
        let filtered = self.shared.filtered(filter)?;
        let from = match after {
            Some(id) => {
                let start = self.shared.with_record(&index, id, |record| record.timestamp())?;
                Some((start, index.blocks.ordinal(id).ok_or_else(|| SessionError::unknown("such event"))?))
            }
            None => None,
        };
        let mut search =
            Search { index: &index, filtered: &filtered, from, direction, limit, found: Vec::new() };
        for (lane, of) in index.threads() {
            let matching = &filtered.lanes[lane as usize];
            let spans = matching.rows.iter().zip(&of.rows).zip(0u16..);
            for ((matching, row), number) in spans {
                search.row(matching, row, Place { lane, row: Some(number), index: 0 })?;
            }
            search.row(&matching.instants, &of.instants, Place { lane, row: None, index: 0 })?;
        }
        search.found.truncate(limit);
        Ok(search.found.into_iter().map(|(_, span)| span).collect())
    }
}

impl Shared {
    pub(super) fn filtered(&self, id: u16) -> Result<Arc<Filtered>, SessionError> {
        let filters = self.filters();
        let found = filters.kept.iter().find(|filter| filter.id == id).cloned();
        found.ok_or_else(|| SessionError::unknown(format!("filter {id}")))
    }

    /// The bits of the matching records.
    fn evaluate(
        &self,
        index: &Index,
        filter: &Filter,
        cancel: &Cancel,
        progress: impl FnMut(u64),
    ) -> Result<Bits, SessionError> {
        let matcher = Matcher { index, filter, context: self.context(index) };
        let bits = self.bits(index.blocks.records)?;
        let mut run = Evaluation { index, bits, cancel, progress };
        let feed = BlockFeed::from_file(self.trace.data(), ReadOptions::default())?;
        let is_whole =
            if filter.needs_places() { run.placed(feed, &matcher)? } else { run.direct(feed, &matcher)? };
        // Afterwards: it may have been cut while it was read.
        self.check_length()?;
        if is_whole { Ok(run.bits) } else { Err(SessionError::Cancelled) }
    }
}

impl Shared {
    /// Room for a bit per record. Older filters give way, the oldest first.
    fn bits(&self, records: u64) -> Result<Bits, SessionError> {
        let words = records.div_ceil(64) as usize;
        loop {
            if let Some(held) = self.memory.kept.try_take(words * size_of::<u64>()) {
                return Ok(Bits { words: vec![0; words], _held: held });
            }
            let mut filters = self.filters();
            if filters.kept.is_empty() {
                return Err(SessionError::NoRoom);
            }
            filters.kept.remove(0);
        }
    }

    /// The rows of the matches.
    fn select(
        &self,
        index: &Index,
        bits: Bits,
        count: u64,
        cancel: &Cancel,
    ) -> Result<Filtered, SessionError> {
        let kept = &self.memory.kept;
        let store = StoreWriter::in_memory_of(kept, kept.limit() / 2);
        let select = |row: &Row| {
            cancel.check()?;
            Ok::<_, SessionError>(match count {
                0 => Row { is_indexed: true, groups: Vec::new(), pyramid: None, ..*row },
                _ => select_row(index, row, &bits, &store)?,
            })
        };
        let mut lanes = Vec::with_capacity(index.lanes.len());
        for Lane { rows, instants, .. } in &index.lanes {
            let rows = rows.iter().map(select).collect::<Result<_, _>>()?;
            lanes.push(FilteredLane { rows, instants: select(instants)? });
        }
        let rows = lanes.iter().flat_map(|lane| lane.rows.iter().chain([&lane.instants]));
        let heads = self.memory.heads(rows.map(Row::resident_bytes).sum())?;
        Ok(Filtered { id: 0, bits, count, lanes, store: store.finish()?.0, _heads: heads })
    }
}

/// Decides about single records.
struct Matcher<'i> {
    index: &'i Index,
    filter: &'i Filter,
    context: TraceContext<'i>,
}

impl Matcher<'_> {
    fn passes(&self, record: &Record<'_>, place: Option<placing::Place>) -> bool {
        let at = record.timestamp();
        let survey = &self.index.survey;
        let thread = survey.threads.at(record.slot(), at);
        self.filter.matches(&RecordFacts {
            record: *record,
            context: &self.context,
            thread: thread.and_then(|thread| thread.name.as_deref()),
            tick: u64::try_from(survey.ticks.tick_at(at)).unwrap_or(0),
            place,
        })
    }
}

/// One pass over the records of the file.
struct Evaluation<'i, P> {
    index: &'i Index,
    bits: Bits,
    cancel: &'i Cancel,
    progress: P,
}

type Feed<'f> = BlockFeed<FileSource<&'f std::fs::File>>;

impl<P: FnMut(u64)> Evaluation<'_, P> {
    /// Records are matched on the threads of the pipeline; false when cancelled.
    fn direct(&mut self, feed: Feed<'_>, matcher: &Matcher<'_>) -> Result<bool, SessionError> {
        let matching = || {
            |block: &BlockBuffer| {
                let passing = block.events().zip(0u32..).filter(|(record, _)| matcher.passes(record, None));
                passing.map(|(_, at)| at).collect::<Vec<u32>>()
            }
        };
        let outcome = map_blocks(feed, PipelineOptions::default(), matching, |block| {
            if block.delivered
                && let Some(first) = self.first_event(&block.summary)
            {
                block.payload.into_iter().for_each(|at| self.bits.set(first + u64::from(at)));
            }
            Ok::<_, SessionError>(self.step(&block.summary))
        })?;
        Ok(outcome.is_some())
    }

    /// Records are matched in order, once their spans have their places; false when cancelled.
    fn placed(&mut self, feed: Feed<'_>, matcher: &Matcher<'_>) -> Result<bool, SessionError> {
        let mut placer = Placer::<(u64, Vec<u8>)>::default();
        let outcome = map_blocks(
            feed,
            PipelineOptions::default(),
            || copy_events,
            |block| {
                if block.delivered
                    && let Some(first) = self.first_event(&block.summary)
                {
                    placer
                        .push((first, block.payload), |(_, bytes), see| RecordWalk::new(bytes).for_each(see));
                    self.match_placed(&mut placer, matcher);
                }
                Ok::<_, SessionError>(self.step(&block.summary))
            },
        )?;
        placer.finish();
        self.match_placed(&mut placer, matcher);
        Ok(outcome.is_some())
    }

    fn match_placed(&mut self, placer: &mut Placer<(u64, Vec<u8>)>, matcher: &Matcher<'_>) {
        while let Some(((first, bytes), places)) = placer.pop() {
            let mut places = places.into_iter();
            for (record, ordinal) in RecordWalk::new(&bytes).zip(first..) {
                let place = record.span().and_then(|_| places.next());
                if matcher.passes(&record, place) {
                    self.bits.set(ordinal);
                }
            }
        }
    }

    /// Record number of a block's first event. Of a file that has grown only what was indexed counts.
    fn first_event(&self, summary: &BlockSummary) -> Option<u64> {
        let place = self.index.blocks.blocks.get(summary.entry.index as usize)?;
        Some(place.first_record + u64::from(summary.leading_markers()))
    }

    fn step(&mut self, summary: &BlockSummary) -> ControlFlow<()> {
        (self.progress)(summary.entry.end());
        if self.cancel.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn select_row(index: &Index, row: &Row, bits: &Bits, store: &StoreWriter) -> io::Result<Row> {
    let mut writer = RowWriter::default();
    writer.row =
        Row { is_overflow: row.is_overflow, is_shared: row.is_shared, is_indexed: true, ..Row::default() };
    let mut reader = GroupReader::default();
    for head in &row.groups {
        for (entry, reference) in reader.read(&index.store, head)?.iter().zip(head.first_index..) {
            if bits.get(entry.reference) {
                writer.push(Entry { reference, ..*entry }, index.time, store)?;
            }
        }
    }
    writer.finish(index.time, store)
}

/// Looks for the matches next to an event.
struct Search<'i> {
    index: &'i Index,
    filtered: &'i Filtered,
    /// Start in ticks and record number.
    from: Option<(i64, u64)>,
    direction: Direction,
    limit: usize,
    /// In order of finding, the nearest first.
    found: Vec<((i64, u64), RelatedSpan)>,
}

impl Search<'_> {
    fn row(&mut self, matching: &Row, row: &Row, place: Place) -> Result<(), SessionError> {
        let mut reader = GroupReader::default();
        let store = &self.filtered.store;
        let forward = self.direction == Direction::Forward;
        let start = match (self.from, forward) {
            (Some((ticks, _)), true) => matching.first_from(ticks, store, &mut reader)?,
            (Some((ticks, _)), false) => matching.first_from(ticks.saturating_add(1), store, &mut reader)?,
            (None, true) => 0,
            (None, false) => matching.count(),
        };
        let candidates: Box<dyn Iterator<Item = u64>> =
            if forward { Box::new(start..matching.count()) } else { Box::new((0..start).rev()) };
        let (mut base, mut taken) = (GroupReader::default(), 0);
        for at in candidates {
            if taken == self.limit {
                break;
            }
            let Some(entry) = matching.entry(at, store, &mut reader)? else { break };
            // References of matches are places in the full row.
            let place = Place { index: entry.reference, ..place };
            let Some(full) = row.entry(entry.reference, &self.index.store, &mut base)? else { break };
            let key = (full.start, full.reference);
            let is_behind = self.from.is_none_or(|from| if forward { key > from } else { key < from });
            if let Some(span) = self.index.related(place, &full).filter(|_| is_behind) {
                taken += 1;
                self.keep(key, span);
            }
        }
        Ok(())
    }

    fn keep(&mut self, key: (i64, u64), span: RelatedSpan) {
        let before = |other: &(i64, u64)| match self.direction {
            Direction::Forward => *other < key,
            Direction::Backward => *other > key,
        };
        let at = self.found.partition_point(|(other, _)| before(other));
        if at < self.limit {
            self.found.insert(at, (key, span));
            self.found.truncate(self.limit);
        }
    }
}

/// The filters of a session.
#[derive(Debug, Default)]
pub(super) struct Filters {
    kept: Vec<Arc<Filtered>>,
    last_id: u16,
}

impl Filters {
    fn next_id(&mut self) -> u16 {
        loop {
            self.last_id = self.last_id.wrapping_add(1).max(1);
            if self.kept.iter().all(|filter| filter.id != self.last_id) {
                return self.last_id;
            }
        }
    }
}
