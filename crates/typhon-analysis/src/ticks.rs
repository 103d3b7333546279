//! Which tick a moment belongs to (brief 01 B-36).
//!
//! Records carry no tick number, and stream order does not help: a span is written when it ends, possibly blocks after
//! the next tick began. So ticks are assigned by time. Tick `n` starts at the n-th distinct TickStart timestamp;
//! the engine's own numbers, which some records carry ("anchors"), shift the numbering when they all agree.

use std::collections::BTreeMap;

/// Collects TickStart timestamps and anchors in any order.
#[derive(Debug, Default, Clone)]
pub struct TickCollector {
    starts: Vec<i64>,
    ends: Vec<i64>,
    anchors: Vec<(i64, i64)>,
}

impl TickCollector {
    /// A TickStart record (kind 0) at `timestamp`.
    pub fn tick_start(&mut self, timestamp: i64) {
        self.starts.push(timestamp);
    }

    /// A TickEnd record (kind 1) at `timestamp`.
    pub fn tick_end(&mut self, timestamp: i64) {
        self.ends.push(timestamp);
    }

    /// A record at `timestamp` that names the engine's number of the tick it belongs to (kinds 76, 242, 244).
    pub fn anchor(&mut self, timestamp: i64, engine_tick: i64) {
        self.anchors.push((timestamp, engine_tick));
    }

    /// Adds everything that `other` collected.
    pub fn merge(&mut self, other: Self) {
        self.starts.extend(other.starts);
        self.ends.extend(other.ends);
        self.anchors.extend(other.anchors);
    }

    /// Resolves the numbering.
    pub fn finish(mut self) -> Ticks {
        self.starts.sort_unstable();
        self.starts.dedup();
        self.ends.sort_unstable();
        let mut ticks =
            Ticks { starts: self.starts, ends: self.ends, offsets: Vec::new(), notices: Vec::new() };
        ticks.number(&self.anchors);
        ticks
    }
}

/// Something odd about the numbering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TickNotice {
    /// Anchors of one tick name different numbers; all of that tick's anchors are ignored.
    AnchorsDisagree {
        /// Shown number of the tick.
        tick: i64,
    },
    /// Numbers are missing before this tick: the recorder lost ticks or recording was paused.
    Gap {
        /// Shown number of the tick after the gap.
        tick: i64,
        /// How many numbers are missing.
        missing: i64,
    },
    /// An anchor is smaller than the numbering so far, which keeps its course.
    AnchorBehind {
        /// Shown number of the tick.
        tick: i64,
        /// The number the anchor names.
        anchor: i64,
    },
}

/// The resolved numbering of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ticks {
    starts: Vec<i64>,
    ends: Vec<i64>,
    /// (first ordinal, offset) in ascending order; the offset holds from that ordinal on.
    offsets: Vec<(u64, i64)>,
    notices: Vec<TickNotice>,
}

impl Ticks {
    fn number(&mut self, anchors: &[(i64, i64)]) {
        let mut by_ordinal: BTreeMap<u64, Option<i64>> = BTreeMap::new();
        for &(timestamp, engine_tick) in anchors {
            let ordinal = self.ordinal(timestamp);
            if ordinal == 0 {
                continue;
            }
            by_ordinal
                .entry(ordinal)
                .and_modify(|seen| {
                    if *seen != Some(engine_tick) {
                        *seen = None;
                    }
                })
                .or_insert(Some(engine_tick));
        }
        let mut offset = 0;
        for (ordinal, anchor) in by_ordinal {
            let tick = (ordinal as i64).saturating_add(offset);
            let Some(anchor) = anchor else {
                self.notices.push(TickNotice::AnchorsDisagree { tick });
                continue;
            };
            let wanted = anchor.saturating_sub(ordinal as i64 - 1);
            if wanted > offset {
                // The first anchored tick only tells where the capture began, which is no loss.
                if !self.offsets.is_empty() || ordinal > 1 {
                    let shown = (ordinal as i64).saturating_add(wanted);
                    self.notices.push(TickNotice::Gap { tick: shown, missing: wanted - offset });
                }
                offset = wanted;
                self.offsets.push((ordinal, offset));
            } else if wanted < offset {
                self.notices.push(TickNotice::AnchorBehind { tick, anchor });
            }
        }
    }

    /// How many distinct TickStart timestamps are at or before `timestamp`; 0 = before the first tick.
    #[inline]
    pub fn ordinal(&self, timestamp: i64) -> u64 {
        self.starts.partition_point(|start| *start <= timestamp) as u64
    }

    /// The number shown for a moment: 0 before the first tick.
    #[inline]
    pub fn tick_at(&self, timestamp: i64) -> i64 {
        self.shown(self.ordinal(timestamp))
    }

    /// The number shown for the tick of an ordinal.
    pub fn shown(&self, ordinal: u64) -> i64 {
        if ordinal == 0 {
            return 0;
        }
        let at = self.offsets.partition_point(|(from, _)| *from <= ordinal);
        let offset = if at == 0 { 0 } else { self.offsets[at - 1].1 };
        (ordinal as i64).saturating_add(offset)
    }

    /// Start timestamps in ascending order; index + 1 is the ordinal.
    pub fn starts(&self) -> &[i64] {
        &self.starts
    }

    /// How long the tick of an ordinal worked, in ticks of the clock: up to its TickEnd, else to the next TickStart.
    /// `None` for a last tick without an end.
    pub fn duration(&self, ordinal: u64) -> Option<i64> {
        let index = usize::try_from(ordinal).ok()?.checked_sub(1)?;
        let start = *self.starts.get(index)?;
        let next = self.starts.get(index + 1).copied();
        let end = self.ends.get(self.ends.partition_point(|end| *end < start)).copied();
        let end = match (end, next) {
            (Some(end), Some(next)) => end.min(next),
            (end, next) => end.or(next)?,
        };
        Some(end.saturating_sub(start))
    }

    /// Start of the first tick whose shown number is at least `tick`; `None` beyond the last.
    pub fn start_of(&self, tick: i64) -> Option<i64> {
        let ordinals = 1..=self.starts.len() as u64;
        let at =
            self.starts.len() - ordinals.rev().take_while(|ordinal| self.shown(*ordinal) >= tick).count();
        self.starts.get(at).copied()
    }

    /// What was odd.
    pub fn notices(&self) -> &[TickNotice] {
        &self.notices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(starts: &[i64], anchors: &[(i64, i64)]) -> Ticks {
        let mut collector = TickCollector::default();
        starts.iter().for_each(|start| collector.tick_start(*start));
        anchors.iter().for_each(|(ts, tick)| collector.anchor(*ts, *tick));
        collector.finish()
    }

    #[test]
    fn b36_a_tick_lasts_from_its_start_to_the_next() {
        let ticks = collect(&[100, 200, 200, 300], &[]);
        assert_eq!([99, 100, 199, 200, 5_000].map(|ts| ticks.tick_at(ts)), [0, 1, 1, 2, 3]);
    }

    #[test]
    fn b36_order_of_arrival_does_not_matter() {
        assert_eq!(
            collect(&[300, 100, 200], &[(210, 7), (110, 6)]),
            collect(&[100, 200, 300], &[(110, 6), (210, 7)])
        );
    }

    #[test]
    fn b36_an_anchor_of_the_first_tick_shifts_the_numbers_without_a_notice() {
        let ticks = collect(&[100, 200], &[(150, 500)]);
        assert_eq!((ticks.tick_at(150), ticks.tick_at(250)), (501, 502));
        assert_eq!(ticks.notices(), []);
    }

    #[test]
    fn b36_anchors_that_follow_the_count_from_zero_change_nothing() {
        let ticks = collect(&[100, 200, 300], &[(150, 0), (250, 1), (350, 2)]);
        assert_eq!((ticks.tick_at(150), ticks.tick_at(350)), (1, 3));
        assert_eq!(ticks.notices(), []);
    }

    #[test]
    fn b36_a_larger_offset_is_a_gap_from_that_tick_on() {
        let ticks = collect(&[100, 200, 300], &[(150, 0), (250, 11)]);
        assert_eq!([150, 250, 350].map(|ts| ticks.tick_at(ts)), [1, 12, 13]);
        assert_eq!(ticks.notices(), [TickNotice::Gap { tick: 12, missing: 10 }]);
    }

    #[test]
    fn b36_a_smaller_offset_is_only_reported() {
        let ticks = collect(&[100, 200], &[(150, 10), (250, 3)]);
        assert_eq!([150, 250].map(|ts| ticks.tick_at(ts)), [11, 12]);
        assert_eq!(ticks.notices(), [TickNotice::AnchorBehind { tick: 12, anchor: 3 }]);
    }

    #[test]
    fn b36_disagreeing_anchors_of_a_tick_are_ignored() {
        let ticks = collect(&[100, 200], &[(150, 10), (160, 11), (170, 10)]);
        assert_eq!(ticks.tick_at(150), 1);
        assert_eq!(ticks.notices(), [TickNotice::AnchorsDisagree { tick: 1 }]);
    }

    #[test]
    fn a_tick_works_until_its_end_record_or_the_next_tick() {
        let mut collector = TickCollector::default();
        [100, 200, 300].iter().for_each(|start| collector.tick_start(*start));
        [150, 320].iter().for_each(|end| collector.tick_end(*end));
        let ticks = collector.finish();
        assert_eq!([1, 2, 3, 4].map(|n| ticks.duration(n)), [Some(50), Some(100), Some(20), None]);
        assert_eq!(collect(&[100], &[]).duration(1), None);
    }

    #[test]
    fn ticks_are_found_by_their_shown_number() {
        let ticks = collect(&[100, 200, 300], &[(150, 0), (250, 11)]);
        assert_eq!(
            [0, 1, 2, 12, 13, 14].map(|n| ticks.start_of(n)),
            [100, 100, 200, 200, 300].map(Some).into_iter().chain([None]).collect::<Vec<_>>()[..]
        );
    }

    #[test]
    fn anchors_before_the_first_tick_are_ignored() {
        assert_eq!(collect(&[100], &[(50, 9)]).tick_at(100), 1);
    }
}
