//! Garbage collections of a managed runtime, summed up (kinds 7, 8 and 75; brief 03).
//!
//! Time paused is the time inside suspension windows, never the sum over collections: one window can hold several
//! collections, and a background collection has several windows. Only a recording without any suspension record falls back
//! to the collections' own figures, and says so.

use crate::clock::Clock;
use crate::quantile::Durations;
use std::collections::BTreeMap;
use std::ops::Range;
use typhon_trace::event::{GcEndView, GcStartView};
use typhon_trace::record::Record;
use typhon_trace::registry::id;

/// Collects GC records in any order.
#[derive(Debug, Default, Clone)]
pub struct GcCollector {
    /// By generation: collections that ended.
    ended: BTreeMap<u8, u64>,
    /// Count fields of starts without an end so far, and of ends without a start.
    open: BTreeMap<u32, i64>,
    /// Halves that did not fit into `open`.
    unpaired: u64,
    own_pauses: Pauses,
    suspensions: Pauses,
    windows: Windows,
}

/// Collections whose other half may still come. A runtime has a handful at a time.
const MAX_OPEN: usize = 1 << 16;

/// Figures of many pauses.
#[derive(Debug, Default, Clone)]
struct Pauses {
    durations_ns: Durations,
    total_ns: u64,
    max_ns: u64,
}

impl Pauses {
    fn add(&mut self, ns: i64) {
        let ns = ns.max(0) as u64;
        self.durations_ns.push(ns);
        self.total_ns = self.total_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    fn merge(&mut self, other: Self) {
        self.durations_ns.merge(other.durations_ns);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

/// Suspension windows, of which the older ones are replaced by the time they cover when there are many.
#[derive(Debug, Clone)]
struct Windows {
    waiting: Vec<(i64, i64)>,
    covered_ticks: i64,
    covered_until: i64,
}

impl Default for Windows {
    fn default() -> Self {
        Self { waiting: Vec::new(), covered_ticks: 0, covered_until: i64::MIN }
    }
}

/// Windows kept one by one: 16 bytes each. Hours of collecting without a break.
const MAX_WINDOWS: usize = 1 << 18;

impl Windows {
    fn push(&mut self, start: i64, end: i64) {
        self.waiting.push((start, end));
        if self.waiting.len() > MAX_WINDOWS {
            self.waiting.sort_unstable();
            let older = self.waiting.drain(..MAX_WINDOWS / 2).collect();
            self.cover(older, &(i64::MIN..i64::MAX));
        }
    }

    fn merge(&mut self, other: Self) {
        self.covered_ticks = self.covered_ticks.saturating_add(other.covered_ticks);
        self.covered_until = self.covered_until.max(other.covered_until);
        other.waiting.into_iter().for_each(|(start, end)| self.push(start, end));
    }

    /// Adds the union of windows, which may overlap, inside `limits`.
    fn cover(&mut self, mut windows: Vec<(i64, i64)>, limits: &Range<i64>) {
        windows.sort_unstable();
        self.covered_until = self.covered_until.max(limits.start);
        for (start, end) in windows {
            let end = end.min(limits.end);
            let new_ticks = end.saturating_sub(start.max(self.covered_until)).max(0);
            self.covered_ticks = self.covered_ticks.saturating_add(new_ticks);
            self.covered_until = self.covered_until.max(end);
        }
    }

    fn covered_ticks(mut self, limits: &Range<i64>) -> i64 {
        let waiting = std::mem::take(&mut self.waiting);
        self.cover(waiting, limits);
        self.covered_ticks
    }
}

/// Where the pause figures come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseSource {
    /// Suspension windows (kind 75).
    Suspensions,
    /// The collections' own pause field (kind 8), because the recording holds no suspension.
    Collections,
}

/// The summary.
#[derive(Debug, Clone, PartialEq)]
pub struct GcSummary {
    /// Collections that ended, by generation.
    pub collections: BTreeMap<u8, u64>,
    /// Collections of which the recording holds only the start or only the end.
    pub half_recorded: u64,
    /// Where the pause figures come from.
    pub pause_source: PauseSource,
    /// Number of pauses.
    pub pause_count: u64,
    /// Their sum, ns.
    pub pause_total_ns: u64,
    /// The longest, ns.
    pub pause_max_ns: u64,
    /// 99th percentile, ns.
    pub pause_p99_ns: u64,
    /// Share of the observed time that lies in at least one suspension window, 0..=1.
    pub suspended_share: f64,
}

impl GcCollector {
    /// Looks at one record of any kind. One that does not `count`, because a window cut it off, still completes its other
    /// half. `own_dialect` decides the unit of the pause: files of the reference engine hold 100 ns units (brief 01 C-18).
    #[inline]
    pub fn observe(&mut self, record: &Record<'_>, clock: Clock, own_dialect: bool, counts: bool) {
        if matches!(record.kind(), id::GC_START | id::GC_END | id::GC_SUSPENSION) {
            self.observe_gc(record, clock, own_dialect, counts);
        }
    }

    fn observe_gc(&mut self, record: &Record<'_>, clock: Clock, own_dialect: bool, counts: bool) {
        match record.kind() {
            id::GC_START => {
                if let Some(count) = GcStartView::new(record).and_then(|start| start.count()) {
                    self.start(count);
                }
            }
            id::GC_END => self.observe_end(record, clock, own_dialect, counts),
            id::GC_SUSPENSION if counts => {
                if let Some(span) = record.span() {
                    self.suspension(record.timestamp(), span.duration, clock);
                }
            }
            _ => {}
        }
    }

    fn observe_end(&mut self, record: &Record<'_>, clock: Clock, own_dialect: bool, counts: bool) {
        let Some(view) = GcEndView::new(record) else { return };
        let (Some(generation), Some(count)) = (view.generation(), view.count()) else { return };
        self.end(count);
        if counts {
            let pause = view.pause_duration_ticks();
            self.collection(
                generation,
                pause.map(|pause| if own_dialect { clock.to_ns(pause) } else { pause.saturating_mul(100) }),
            );
        }
    }

    /// A collection started (kind 7).
    pub(crate) fn start(&mut self, count: u32) {
        self.half(count, 1);
    }

    /// The end of a collection (kind 8), wherever it lies: the other half of [`GcCollector::start`].
    pub(crate) fn end(&mut self, count: u32) {
        self.half(count, -1);
    }

    fn half(&mut self, count: u32, change: i64) {
        if self.open.len() >= MAX_OPEN && !self.open.contains_key(&count) {
            self.unpaired += change.unsigned_abs();
            return;
        }
        let open = self.open.entry(count).or_default();
        *open += change;
        if *open == 0 {
            self.open.remove(&count);
        }
    }

    /// A collection that counts, known from its end; `pause_ns` is absent in short records.
    pub(crate) fn collection(&mut self, generation: u8, pause_ns: Option<i64>) {
        *self.ended.entry(generation).or_default() += 1;
        if let Some(ns) = pause_ns {
            self.own_pauses.add(ns);
        }
    }

    /// The runtime was suspended for a collection (kind 75); ticks of the trace clock.
    pub(crate) fn suspension(&mut self, start: i64, duration: i64, clock: Clock) {
        self.suspensions.add(clock.to_ns(duration));
        self.windows.push(start, start.saturating_add(duration.max(0)));
    }

    /// Adds everything that `other` collected.
    pub fn merge(&mut self, other: Self) {
        other.ended.iter().for_each(|(generation, n)| *self.ended.entry(*generation).or_default() += n);
        other.open.iter().for_each(|(count, n)| self.half(*count, *n));
        self.unpaired += other.unpaired;
        self.own_pauses.merge(other.own_pauses);
        self.suspensions.merge(other.suspensions);
        self.windows.merge(other.windows);
    }

    /// Sums up. `observed` is the time the records come from, in trace-clock ticks: pauses that reach beyond it count as a
    /// whole, but not for the share of time. `None` without any GC record.
    pub fn finish(self, observed: Range<i64>) -> Option<GcSummary> {
        let half_recorded = self.open.values().map(|n| n.unsigned_abs()).sum::<u64>() + self.unpaired;
        let has_suspensions = self.suspensions.durations_ns.count() > 0;
        if self.ended.is_empty() && !has_suspensions && half_recorded == 0 {
            return None;
        }
        let observed_ticks = observed.end.saturating_sub(observed.start);
        let suspended_ticks = self.windows.covered_ticks(&observed);
        let (pause_source, mut pauses) = match has_suspensions {
            true => (PauseSource::Suspensions, self.suspensions),
            false => (PauseSource::Collections, self.own_pauses),
        };
        let share = if observed_ticks > 0 { suspended_ticks as f64 / observed_ticks as f64 } else { 0.0 };
        Some(GcSummary {
            collections: self.ended,
            half_recorded,
            pause_source,
            pause_count: pauses.durations_ns.count(),
            pause_total_ns: pauses.total_ns,
            pause_max_ns: pauses.max_ns,
            pause_p99_ns: pauses.durations_ns.percentiles([99.0]).map_or(0, |[p99]| p99.value),
            suspended_share: share,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NS: i64 = 1_000_000_000;

    #[test]
    fn time_paused_is_the_sum_of_suspensions_not_of_collections() {
        let mut gc = GcCollector::default();
        for (generation, count, pause_ns) in [(0, 1, 500), (2, 2, 700)] {
            gc.start(count);
            gc.end(count);
            gc.collection(generation, Some(pause_ns));
        }
        gc.suspension(100, 50, Clock::new(NS));
        gc.suspension(120, 50, Clock::new(NS));
        gc.suspension(400, 30, Clock::new(NS));
        let summary = gc.finish(0..1_000).unwrap();
        assert_eq!(summary.collections, BTreeMap::from([(0, 1), (2, 1)]));
        assert_eq!((summary.pause_count, summary.pause_total_ns, summary.pause_max_ns), (3, 130, 50));
        assert_eq!((summary.pause_source, summary.half_recorded), (PauseSource::Suspensions, 0));
        assert!((summary.suspended_share - 0.1).abs() < 1e-12, "overlapping windows count once");
    }

    #[test]
    fn without_suspensions_the_collections_speak() {
        let mut gc = GcCollector::default();
        gc.end(7);
        gc.collection(1, Some(900));
        gc.start(8);
        let summary = gc.finish(0..1_000).unwrap();
        assert_eq!((summary.pause_source, summary.pause_total_ns), (PauseSource::Collections, 900));
        assert_eq!(summary.half_recorded, 2);
    }

    #[test]
    fn only_the_observed_time_counts_for_the_share() {
        let mut gc = GcCollector::default();
        gc.suspension(900, 200, Clock::new(NS));
        let summary = gc.finish(1_000..2_000).unwrap();
        assert_eq!((summary.pause_total_ns, summary.suspended_share), (200, 0.1));
    }

    #[test]
    fn windows_beyond_the_limit_count_with_the_time_they_cover() {
        let mut gc = GcCollector::default();
        let count = 2 * MAX_WINDOWS as i64;
        (0..count).for_each(|n| gc.suspension(n * 10, 5, Clock::new(NS)));
        assert!(gc.windows.waiting.len() <= MAX_WINDOWS);
        let summary = gc.finish(0..count * 10).unwrap();
        assert_eq!((summary.pause_count, summary.suspended_share), (count as u64, 0.5));
    }

    #[test]
    fn no_records_no_summary() {
        assert_eq!(GcCollector::default().finish(0..10), None);
    }
}
