//! Which tick a moment belongs to (brief 01 B-36).
//!
//! Records carry no tick number, and stream order does not help: a span is written when it ends, possibly blocks after
//! the next tick began. So ticks are assigned by time. Tick `n` starts at the n-th distinct TickStart timestamp;
//! the engine's own numbers, which some records carry ("anchors"), shift the numbering when they all agree.

/// Ticks that are told apart; a day at 60 Hz has 5.2 million. Memory is bounded by this number, at most 64 bytes each.
pub const MAX_TICKS: usize = 3 << 20;

/// Odd cases that are told one by one.
pub const MAX_NOTICES: usize = 1_000;

/// Collects TickStart timestamps and anchors in any order.
#[derive(Debug, Clone)]
pub struct TickCollector {
    starts: Moments<i64>,
    ends: Moments<i64>,
    anchors: Moments<(i64, i64)>,
    max_ticks: usize,
}

impl Default for TickCollector {
    fn default() -> Self {
        Self::with_limit(MAX_TICKS)
    }
}

impl TickCollector {
    /// Tells at most `max_ticks` ticks apart: the first ones in the file.
    pub fn with_limit(max_ticks: usize) -> Self {
        let (starts, ends, anchors) = Default::default();
        Self { starts, ends, anchors, max_ticks }
    }

    /// A TickStart record (kind 0) at `timestamp`.
    pub fn tick_start(&mut self, timestamp: i64) {
        self.starts.push(timestamp, self.max_ticks);
    }

    /// A TickEnd record (kind 1) at `timestamp`.
    pub fn tick_end(&mut self, timestamp: i64) {
        self.ends.push(timestamp, self.max_ticks);
    }

    /// A record at `timestamp` that names the engine's number of the tick it belongs to (kinds 76, 242, 244).
    pub fn anchor(&mut self, timestamp: i64, engine_tick: i64) {
        // Several kinds can name the number of one tick.
        self.anchors.push((timestamp, engine_tick), 2 * self.max_ticks);
    }

    /// Adds everything that `other` collected.
    pub fn merge(&mut self, other: Self) {
        self.starts.merge(other.starts, self.max_ticks);
        self.ends.merge(other.ends, self.max_ticks);
        self.anchors.merge(other.anchors, 2 * self.max_ticks);
    }

    /// About so many bytes.
    pub(crate) fn resident_bytes(&self) -> usize {
        let moments = |moments: &Moments<i64>| size_of_val(moments.values.as_slice());
        moments(&self.starts) + moments(&self.ends) + size_of_val(self.anchors.values.as_slice())
    }

    /// Resolves the numbering.
    pub fn finish(self) -> Ticks {
        let not_told_apart = self.starts.left_out;
        let mut ticks = Ticks { starts: self.starts.sorted(), ends: self.ends.sorted(), ..Ticks::default() };
        ticks.number(&self.anchors.sorted());
        ticks.not_told_apart = not_told_apart;
        ticks
    }
}

/// Distinct values, up to a number of them.
#[derive(Debug, Clone, Default)]
struct Moments<T> {
    values: Vec<T>,
    /// Length at which repetitions are removed: they take no room in a compressed file, but much in memory.
    next_tidy: usize,
    is_full: bool,
    left_out: u64,
}

impl<T: Copy + Ord> Moments<T> {
    const FIRST_TIDY: usize = 1 << 16;

    #[inline]
    fn push(&mut self, value: T, limit: usize) {
        if self.values.last() == Some(&value) {
            return;
        }
        if self.values.len() >= self.next_tidy.max(Self::FIRST_TIDY).min(limit) {
            self.make_room(limit);
        }
        if self.is_full {
            self.left_out += 1;
        } else {
            self.values.push(value);
        }
    }

    fn make_room(&mut self, limit: usize) {
        if self.is_full {
            return;
        }
        self.tidy();
        self.next_tidy = 2 * self.values.len();
        // Tidying again for every few values would take forever.
        self.is_full = self.values.len() > limit - limit / 8;
    }

    fn merge(&mut self, other: Self, limit: usize) {
        self.left_out += other.left_out;
        other.values.into_iter().for_each(|value| self.push(value, limit));
    }

    fn tidy(&mut self) {
        self.values.sort_unstable();
        self.values.dedup();
    }

    fn sorted(mut self) -> Vec<T> {
        self.tidy();
        self.values
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
    pub(crate) starts: Vec<i64>,
    pub(crate) ends: Vec<i64>,
    /// (first ordinal, offset) in ascending order; the offset holds from that ordinal on.
    pub(crate) offsets: Vec<(u64, i64)>,
    pub(crate) notices: Vec<TickNotice>,
    pub(crate) missing: i64,
    pub(crate) contradictions: u64,
    pub(crate) not_told_apart: u64,
}

impl Ticks {
    /// `anchors` are sorted by time, and so by tick.
    fn number(&mut self, anchors: &[(i64, i64)]) {
        let mut offset = 0;
        let mut rest = anchors;
        while let Some((timestamp, anchor)) = rest.first().copied() {
            let ordinal = self.ordinal(timestamp);
            let next = self.starts.get(ordinal as usize).copied().unwrap_or(i64::MAX);
            let of_tick = rest.partition_point(|(timestamp, _)| *timestamp < next).max(1);
            let do_agree = rest[..of_tick].iter().all(|(_, other)| *other == anchor);
            rest = &rest[of_tick..];
            let tick = (ordinal as i64).saturating_add(offset);
            if ordinal == 0 {
                continue;
            }
            if !do_agree {
                self.notice(TickNotice::AnchorsDisagree { tick });
                continue;
            }
            let wanted = anchor.saturating_sub(ordinal as i64 - 1);
            if wanted > offset {
                // The first anchored tick only tells where the capture began, which is no loss.
                if !self.offsets.is_empty() || ordinal > 1 {
                    let shown = (ordinal as i64).saturating_add(wanted);
                    self.notice(TickNotice::Gap { tick: shown, missing: wanted.saturating_sub(offset) });
                }
                offset = wanted;
                self.offsets.push((ordinal, offset));
            } else if wanted < offset {
                self.notice(TickNotice::AnchorBehind { tick, anchor });
            }
        }
    }

    /// Counts every notice and keeps the first ones: a hostile trace can have one for each tick.
    fn notice(&mut self, notice: TickNotice) {
        match notice {
            TickNotice::Gap { missing, .. } => {
                self.missing = self.missing.saturating_add_unsigned(missing.unsigned_abs())
            }
            _ => self.contradictions += 1,
        }
        if self.notices.len() < MAX_NOTICES {
            self.notices.push(notice);
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

    /// What was odd, the first [`MAX_NOTICES`] cases.
    pub fn notices(&self) -> &[TickNotice] {
        &self.notices
    }

    /// Numbers that are missing in all gaps together.
    pub fn missing(&self) -> u64 {
        self.missing.unsigned_abs()
    }

    /// Ticks whose records contradict each other or the ticks before about its number.
    pub fn contradictions(&self) -> u64 {
        self.contradictions
    }

    /// Ticks beyond [`MAX_TICKS`], which are taken for a part of the one before them.
    pub fn not_told_apart(&self) -> u64 {
        self.not_told_apart
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
    fn ticks_beyond_the_limit_are_counted_and_repetitions_are_free() {
        let mut collector = TickCollector::with_limit(8);
        for start in [1, 2, 3, 1, 2, 3, 1, 2, 3, 4, 5, 6, 6, 6, 7, 8] {
            collector.tick_start(start);
        }
        let mut more = TickCollector::with_limit(8);
        (9..=20).for_each(|start| more.tick_start(start));
        collector.merge(more);
        let ticks = collector.finish();
        assert_eq!((ticks.starts(), ticks.not_told_apart()), (&[1, 2, 3, 4, 5, 6, 7, 8][..], 12));
        assert_eq!(ticks.tick_at(20), 8);
    }

    #[test]
    fn notices_are_counted_all_and_told_up_to_a_number() {
        let anchors: Vec<(i64, i64)> = (0..2_000).map(|n| (n * 10 + 5, n * 3)).collect();
        let ticks = collect(&(0..2_000).map(|n| n * 10).collect::<Vec<_>>(), &anchors);
        assert_eq!((ticks.notices().len(), ticks.missing()), (MAX_NOTICES, 2 * 1_999));
    }

    #[test]
    fn anchors_before_the_first_tick_are_ignored() {
        assert_eq!(collect(&[100], &[(50, 9)]).tick_at(100), 1);
    }
}
