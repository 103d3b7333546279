//! Filters: which events match, how many they are, and the index of those alone (brief 11 B-25, §3.2).
//!
//! A filter is evaluated once, which gives a bit per record ([`super::matching`]). From the bits follow an exact
//! count, and rows like those of the index that hold the matching entries only, at their places in the full rows. So
//! a filtered tile is made exactly as an unfiltered one, and rows do not move.

use super::event::RelatedSpan;
use super::matching::{Bits, Found, Progress, RowAt, all_rows, work};
use super::memory::Held;
use super::{Cancel, Place, Session, SessionError, Shared};
use crate::filter;
use crate::index::group::{Entry, GroupReader};
use crate::index::row::{Row, RowWriter};
use crate::index::store::{Store, StoreWriter};
use crate::index::{EventId, Index};
use crate::parallel::map_parts;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// Evaluates a filter over the whole trace. `progress` gets the part that is done, as bytes of the file.
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
        let file_bytes = self.shared.file_bytes;
        let mut progress = Progress { tell: progress, done: 0, total: work(&index, &filter), file_bytes };
        let found = self.shared.find(&index, &filter, cancel, &mut progress)?;
        let count = found.bits.count();
        let filtered = self.shared.select(&index, found, count, cancel, &mut progress)?;
        // Nobody would know its id.
        cancel.check()?;
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

    /// The rows of the matches.
    fn select<F: FnMut(u64)>(
        &self,
        index: &Index,
        found: Found,
        count: u64,
        cancel: &Cancel,
        progress: &mut Progress<F>,
    ) -> Result<Filtered, SessionError> {
        let kept = &self.memory.kept;
        let store = StoreWriter::in_memory_of(kept, kept.limit() / 2);
        let mut parts = all_rows(index);
        // The largest come first, so that none of them is alone at the end.
        parts.sort_by_key(|at| Reverse(at.row.count()));
        let select = |reader: &mut GroupReader, at: &RowAt<'_>| match count {
            0 => Ok(Row { is_indexed: true, groups: Vec::new(), pyramid: None, ..*at.row }),
            _ => select_row(index, at, &found, &store, reader, cancel),
        };
        let selected = map_parts(&parts, GroupReader::default, select, |at| progress.add(at.row.count()))?;
        let mut by_place: BTreeMap<_, Row> =
            parts.iter().map(|at| (at.lane, at.number)).zip(selected).collect();
        let mut lanes = Vec::with_capacity(index.lanes.len());
        for (lane, of) in (0..).zip(&index.lanes) {
            let mut take = |number| by_place.remove(&(lane, number)).unwrap_or_default();
            let rows = (0u16..).zip(&of.rows).map(|(number, _)| take(Some(number))).collect();
            lanes.push(FilteredLane { rows, instants: take(None) });
        }
        let rows = lanes.iter().flat_map(|lane| lane.rows.iter().chain([&lane.instants]));
        let heads = self.memory.heads(rows.map(Row::resident_bytes).sum())?;
        Ok(Filtered { id: 0, bits: found.bits, count, lanes, store: store.finish()?.0, _heads: heads })
    }
}

/// The matches of a row, at their places in it.
fn select_row(
    index: &Index,
    at: &RowAt<'_>,
    found: &Found,
    store: &StoreWriter,
    reader: &mut GroupReader,
    cancel: &Cancel,
) -> Result<Row, SessionError> {
    let Row { is_overflow, is_shared, .. } = *at.row;
    let mut writer = RowWriter::default();
    writer.row = Row { is_overflow, is_shared, is_indexed: true, ..Row::default() };
    let groups = at.row.groups.iter().enumerate().filter(|(group, _)| found.may_match(at, *group));
    for (_, head) in groups {
        cancel.check()?;
        for (entry, reference) in reader.read(&index.store, head)?.iter().zip(head.first_index..) {
            if found.bits.get(entry.reference) {
                writer.push(Entry { reference, ..*entry }, index.time, store)?;
            }
        }
    }
    Ok(writer.finish(index.time, store)?)
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
    /// Lets go of the oldest one; false when there is none.
    pub(super) fn give_way(&mut self) -> bool {
        if self.kept.is_empty() {
            return false;
        }
        self.kept.remove(0);
        true
    }

    fn next_id(&mut self) -> u16 {
        loop {
            self.last_id = self.last_id.wrapping_add(1).max(1);
            if self.kept.iter().all(|filter| filter.id != self.last_id) {
                return self.last_id;
            }
        }
    }
}
