//! Digests in file order become rows.

use super::digest::{BlockDigest, RowKey};
use super::rows::{RowData, RowTexts, Stats};
use super::{StatsQuery, rows};
use crate::facts::TimeWindow;
use crate::gc::GcCollector;
use crate::nesting::LaneNesting;
use crate::schedule::ScheduleCollector;
use crate::survey::SurveyCollector;
use std::collections::HashMap;

/// What a collector may keep in memory. Beyond it results stay right but become coarser, and say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatsLimits {
    /// Spans that wait for nesting, over all lanes: 32 bytes each. Beyond, the older half of a lane is settled.
    pub pending_spans: usize,
    /// Durations kept one by one, over all rows: 8 bytes each. Beyond, rows with the most become histograms.
    pub exact_durations: usize,
    /// Rows. Further texts of named spans share one row.
    pub rows: usize,
}

impl Default for StatsLimits {
    fn default() -> Self {
        Self { pending_spans: 1 << 17, exact_durations: 4 << 20, rows: 4_096 }
    }
}

/// How many spans may come before the rows' memory is looked at again.
pub(crate) const CHECK_SPANS: usize = 1 << 16;

/// Fills the rows from digests in file order.
#[derive(Debug)]
pub struct StatsCollector<'a> {
    query: StatsQuery<'a>,
    keys: HashMap<RowKey, u32>,
    rows: Vec<RowData>,
    lanes: Vec<LaneNesting<Option<u32>>>,
    pending: usize,
    /// Spans since the rows' memory was last looked at.
    unchecked: usize,
    limits: StatsLimits,
    gc: GcCollector,
    schedule: ScheduleCollector,
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
            unchecked: 0,
            limits: StatsLimits::default(),
            gc: GcCollector::default(),
            schedule: ScheduleCollector::default(),
            survey: SurveyCollector::default(),
        }
    }

    /// With other limits.
    pub fn with_limits(mut self, limits: StatsLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Adds the digest of the next block.
    pub fn absorb(&mut self, digest: BlockDigest) {
        let rows: Vec<u32> = digest.keys.into_iter().map(|key| self.row(key)).collect();
        for (row, count) in rows.iter().zip(digest.instants) {
            self.rows[*row as usize].add_instants(count);
        }
        self.unchecked += digest.spans.len();
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
        self.schedule.merge(digest.schedule);
        self.survey.merge(digest.survey);
        while self.pending > self.limits.pending_spans && self.settle_largest() {}
        if self.unchecked > CHECK_SPANS {
            self.unchecked = 0;
            rows::bound_exact_durations(self.rows.iter_mut(), self.limits.exact_durations);
        }
    }

    /// Nests what still waits and makes the table.
    pub fn finish(mut self) -> Stats {
        let mut inexact = 0;
        for lane in &mut self.lanes {
            let (rows, clock) = (&mut self.rows, self.query.context.clock);
            lane.settle_all(|step| rows::add_placed(rows, clock, step));
            inexact += lane.inexact();
        }
        let new_survey = self.query.survey.is_none().then(|| self.survey.finish());
        let survey = self.query.survey.or(new_survey.as_ref());
        let mut observed = survey.map_or(0..0, |survey| survey.first_ticks..survey.last_ticks);
        if let Some(extent) = self.query.window.map(TimeWindow::extent) {
            observed = observed.start.max(extent.start)..observed.end.min(extent.end);
        }
        let mut keys: Vec<(RowKey, u32)> = self.keys.into_iter().collect();
        keys.sort_unstable_by_key(|(_, row)| *row);
        let texts = RowTexts::new(&self.query);
        let named = keys.into_iter().map(|(key, _)| texts.of(key)).zip(self.rows);
        Stats {
            rows: rows::finish(named),
            gc: self.gc.finish(observed.clone()),
            schedule: self.schedule.finish(),
            observed,
            inexact_self_times: inexact,
            too_shallow_spans: 0,
            new_survey,
        }
    }

    fn row(&mut self, key: RowKey) -> u32 {
        let next = self.rows.len() as u32;
        let is_full = self.rows.len() >= self.limits.rows && !self.keys.contains_key(&key);
        let key = if is_full && matches!(key, RowKey::Text(_)) { RowKey::OtherTexts } else { key };
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
        lane.settle_older(|step| rows::add_placed(rows, clock, step));
        self.pending -= before - lane.pending();
        lane.pending() < before
    }
}
