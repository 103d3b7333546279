//! What a scan of the records derives: counts per kind, the time range, the query catalogue. Stands in for what only
//! close writes into the header, when close did not run (brief 01, B-31).

use std::collections::HashSet;

use super::BlockBuffer;
use crate::record::Record;

/// Kind of the records that start a tick.
const TICK_START: u8 = 0;
/// Kind of the records that describe a query.
const QUERY_DEFINITION: u8 = 247;
/// Bytes of a query definition's payload that identify the query: u8 kind, u32 local id.
const QUERY_KEY_BYTES: usize = 5;

/// First start and last end of some records, in trace-clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// Smallest start timestamp.
    pub start: i64,
    /// Largest end: timestamp plus duration for spans, timestamp for instants. Negative durations count as 0.
    pub end: i64,
}

impl TimeRange {
    fn include(range: &mut Option<Self>, other: Self) {
        let range = range.get_or_insert(other);
        range.start = range.start.min(other.start);
        range.end = range.end.max(other.end);
    }
}

/// One block's part of the derived values: a row of a per-kind block index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockDigest {
    /// Events per kind, ascending by kind; kinds without events are left out.
    pub kinds: Vec<(u8, u32)>,
    /// Time range of the events; `None` in a block without events.
    pub range: Option<TimeRange>,
    /// Query definitions of the block, as whole records.
    pub query_definitions: Vec<Vec<u8>>,
}

impl BlockDigest {
    /// Goes once over the events of a decoded block.
    pub fn of(buffer: &BlockBuffer) -> Self {
        Self::of_records(buffer.events())
    }

    /// Goes once over some records.
    pub(crate) fn of_records<'r>(records: impl Iterator<Item = Record<'r>>) -> Self {
        let mut counts = [0u32; 256];
        let mut digest = Self::default();
        for record in records {
            counts[usize::from(record.kind())] += 1;
            let start = record.timestamp();
            let duration = record.span().map_or(0, |span| span.duration.max(0));
            TimeRange::include(&mut digest.range, TimeRange { start, end: start.saturating_add(duration) });
            if record.kind() == QUERY_DEFINITION {
                digest.query_definitions.push(record.bytes().to_vec());
            }
        }
        digest.kinds = (0u8..=255).zip(counts).filter(|(_, count)| *count > 0).collect();
        digest
    }

    /// Events of a kind.
    pub fn count_of(&self, kind: u8) -> u32 {
        self.kinds.binary_search_by_key(&kind, |(kind, _)| *kind).map_or(0, |at| self.kinds[at].1)
    }
}

/// Values derived from all events of a trace.
#[derive(Debug, Clone)]
pub struct Derived {
    /// Events per kind, by id.
    pub kinds: Box<[u64; 256]>,
    /// Time range of all events.
    pub range: Option<TimeRange>,
    /// Query definitions as whole records: the first of each identity, in file order.
    pub query_definitions: Vec<Vec<u8>>,
    query_keys: HashSet<Vec<u8>>,
}

impl Default for Derived {
    fn default() -> Self {
        Self {
            kinds: Box::new([0; 256]),
            range: None,
            query_definitions: Vec::new(),
            query_keys: HashSet::new(),
        }
    }
}

impl Derived {
    /// Adds the next block in file order.
    pub fn add(&mut self, digest: &BlockDigest) {
        for &(kind, count) in &digest.kinds {
            self.kinds[usize::from(kind)] += u64::from(count);
        }
        if let Some(range) = digest.range {
            TimeRange::include(&mut self.range, range);
        }
        for record in &digest.query_definitions {
            let key = record.iter().skip(crate::record::RECORD_HEADER_BYTES).take(QUERY_KEY_BYTES);
            if self.query_keys.insert(key.copied().collect()) {
                self.query_definitions.push(record.clone());
            }
        }
    }

    /// Number of events.
    pub fn events(&self) -> u64 {
        self.kinds.iter().sum()
    }

    /// TickStart records.
    pub fn tick_count(&self) -> u64 {
        self.kinds[usize::from(TICK_START)]
    }

    /// Last end less first start in trace-clock ticks; 0 without events. May exceed the header's duration, since
    /// events from before the start of the recording are kept.
    pub fn duration_ticks(&self) -> i64 {
        self.range.map_or(0, |range| range.end.saturating_sub(range.start))
    }
}
