//! Digests in file order become rows.

use super::digest::{BlockDigest, RowKey};
use super::rows::{RowData, Stats};
use super::{StatsQuery, rows};
use crate::gc::GcCollector;
use crate::nesting::LaneNesting;
use crate::survey::SurveyCollector;
use std::collections::HashMap;

/// Spans that may wait for nesting, over all lanes: 32 bytes each.
const MAX_PENDING_SPANS: usize = 2 << 20;

/// Fills the rows from digests in file order.
#[derive(Debug)]
pub struct StatsCollector<'a> {
    query: StatsQuery<'a>,
    keys: HashMap<RowKey, u32>,
    rows: Vec<RowData>,
    lanes: Vec<LaneNesting<Option<u32>>>,
    pending: usize,
    max_pending: usize,
    gc: GcCollector,
    survey: SurveyCollector,
}

impl<'a> StatsCollector<'a> {
    /// Starts with empty rows.
    pub fn new(query: StatsQuery<'a>) -> Self {
        Self {
            query,
            keys: HashMap::new(),
            rows: Vec::new(),
            lanes: std::iter::repeat_with(LaneNesting::default).take(256).collect(),
            pending: 0,
            max_pending: MAX_PENDING_SPANS,
            gc: GcCollector::default(),
            survey: SurveyCollector::default(),
        }
    }

    /// Lowers the number of spans that may wait, to see that results stay the same.
    #[cfg(test)]
    pub(super) fn with_max_pending(mut self, max_pending: usize) -> Self {
        self.max_pending = max_pending;
        self
    }

    /// Adds the digest of the next block.
    pub fn absorb(&mut self, digest: BlockDigest) {
        let rows: Vec<u32> = digest.keys.into_iter().map(|key| self.row(key)).collect();
        for (row, count) in rows.iter().zip(digest.instants) {
            self.rows[*row as usize].add_instants(count);
        }
        for span in digest.spans {
            let row = span.key.map(|key| rows[key as usize]);
            if span.is_completion {
                if let Some(row) = row {
                    let ns = self.query.context.clock.to_ns(span.duration) as u64;
                    self.rows[row as usize].add_span(ns, ns);
                }
                continue;
            }
            self.lanes[usize::from(span.slot)].push(span.start, span.duration, span.span_id, row);
            self.pending += 1;
        }
        self.gc.merge(digest.gc);
        self.survey.merge(digest.survey);
        while self.pending > self.max_pending && self.settle_largest() {}
    }

    /// Nests what still waits and makes the table.
    pub fn finish(mut self) -> Stats {
        let mut inexact = 0;
        for lane in &mut self.lanes {
            let (rows, clock) = (&mut self.rows, self.query.context.clock);
            lane.settle_all(|step| rows::add_placed(rows, clock, step));
            inexact += lane.inexact();
        }
        let survey = self.survey.finish();
        let observed = match self.query.window {
            Some(window) => {
                let extent = window.extent();
                extent.end.min(survey.last_ticks).saturating_sub(extent.start.max(survey.first_ticks))
            }
            None => survey.extent_ticks(),
        };
        let mut keys: Vec<(RowKey, u32)> = self.keys.into_iter().collect();
        keys.sort_unstable_by_key(|(_, row)| *row);
        let named = keys.into_iter().map(|(key, _)| rows::text(&key, &self.query)).zip(self.rows);
        Stats {
            rows: rows::finish(named),
            gc: self.gc.finish(self.query.context.clock, observed),
            observed_ticks: observed,
            inexact_self_times: inexact,
            survey,
        }
    }

    fn row(&mut self, key: RowKey) -> u32 {
        let next = self.rows.len() as u32;
        *self.keys.entry(key).or_insert_with(|| {
            self.rows.push(RowData::default());
            next
        })
    }

    /// `false` when every lane has at most one span left, which cannot be settled.
    fn settle_largest(&mut self) -> bool {
        let Some(lane) = self.lanes.iter_mut().max_by_key(|lane| lane.pending()) else { return false };
        let before = lane.pending();
        let (rows, clock) = (&mut self.rows, self.query.context.clock);
        lane.settle_half(|step| rows::add_placed(rows, clock, step));
        self.pending -= before - lane.pending();
        lane.pending() < before
    }
}
