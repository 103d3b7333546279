//! How the scheduler spent its ticks: time in phases, systems that were skipped and why, how long systems waited for a
//! worker, how full event queues were, when overload was answered (kinds 5, 148, 156, 242, 243 and 244).

use crate::clock::Clock;
use crate::quantile::Durations;
use std::collections::BTreeMap;
use typhon_trace::event::{
    OverloadLevel, QueueTickEndView, RuntimePhaseSpanView, SchedulerOverloadDetectorView,
    SchedulerOverloadLevelChangeView, SchedulerSystemCompletionView, SchedulerSystemQueueWaitView,
    SkipReason, SystemSkippedView, TickPhase,
};
use typhon_trace::record::Record;
use typhon_trace::registry::id;

/// Entries that a collector tells apart, of each sort. Real schedules have a few hundred; only damaged or hostile traces
/// have more, and then the further ones are counted in [`Schedule::left_out`].
const MAX_ENTRIES: usize = 1 << 12;

/// Collects the scheduler's records in any order.
#[derive(Debug, Default, Clone)]
pub struct ScheduleCollector {
    phases: BTreeMap<TickPhase, Times>,
    skips: BTreeMap<(u16, SkipReason), u64>,
    waits: BTreeMap<u16, Times>,
    queues: BTreeMap<u16, QueueUse>,
    overload: Overload,
    left_out: u64,
}

/// Times of one sort.
#[derive(Debug, Default, Clone)]
pub struct Times {
    durations_ns: Durations,
    total_ns: u64,
    max_ns: u64,
}

impl Times {
    fn add(&mut self, ns: u64) {
        self.durations_ns.push(ns);
        self.total_ns = self.total_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    fn merge(&mut self, other: Self) {
        self.durations_ns.merge(other.durations_ns);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.durations_ns.count()
    }

    /// Their sum, ns.
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// The longest, ns.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// 50th and 95th percentile, ns; within 1 % when there are very many.
    pub fn p50_p95_ns(&self) -> [u64; 2] {
        let percentiles = self.durations_ns.clone().percentiles([50.0, 95.0]);
        percentiles.map_or([0; 2], |of| of.map(|percentile| percentile.value.min(self.max_ns)))
    }
}

/// An event queue over the ticks in which it was reported.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct QueueUse {
    /// Reports: one a tick.
    pub ticks: u64,
    /// Largest number of events in it at once.
    pub peak_depth: u32,
    /// Largest number left when a tick ended.
    pub max_end_depth: u32,
    /// Events put into it.
    pub produced: u64,
    /// Events taken out of it.
    pub consumed: u64,
    /// Events that did not fit.
    pub overflowed: u64,
}

impl QueueUse {
    fn merge(&mut self, other: &Self) {
        self.ticks += other.ticks;
        self.peak_depth = self.peak_depth.max(other.peak_depth);
        self.max_end_depth = self.max_end_depth.max(other.max_end_depth);
        self.produced += other.produced;
        self.consumed += other.consumed;
        self.overflowed += other.overflowed;
    }
}

/// What the overload detector saw.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Overload {
    /// Ticks by level.
    pub ticks_by_level: BTreeMap<OverloadLevel, u64>,
    /// Ticks that took longer than the target.
    pub late_ticks: u64,
    /// Largest duration of a tick as a multiple of the target.
    pub max_ratio: f32,
    /// Largest tick multiplier.
    pub max_multiplier: u8,
    /// When the level changed, in order of time.
    pub changes: Vec<LevelChange>,
}

/// A change of the overload level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelChange {
    /// When, in trace-clock ticks.
    pub at: i64,
    /// The level before and after it.
    pub levels: [OverloadLevel; 2],
    /// The tick multiplier before and after it.
    pub multipliers: [u8; 2],
    /// Duration of the tick that decided it, as a multiple of the target.
    pub ratio: f32,
    /// Events left in all queues by that tick.
    pub queue_depth: i32,
}

impl Overload {
    /// Adds what `other` saw; returns the changes for which there is no room.
    fn merge(&mut self, other: &Self) -> u64 {
        for (level, ticks) in &other.ticks_by_level {
            *self.ticks_by_level.entry(*level).or_default() += ticks;
        }
        self.late_ticks += other.late_ticks;
        self.max_ratio = self.max_ratio.max(other.max_ratio);
        self.max_multiplier = self.max_multiplier.max(other.max_multiplier);
        let room = MAX_ENTRIES - self.changes.len();
        self.changes.extend(other.changes.iter().take(room));
        other.changes.len().saturating_sub(room) as u64
    }
}

/// What came out.
#[derive(Debug, Default, Clone)]
pub struct Schedule {
    /// Time in each phase of the tick, by phase.
    pub phases: BTreeMap<TickPhase, Times>,
    /// How often a system was skipped or, for the reason `Exception`, failed, by system and reason.
    pub skips: BTreeMap<(u16, SkipReason), u64>,
    /// Time from ready to started, by system.
    pub waits: BTreeMap<u16, Times>,
    /// Event queues by their number.
    pub queues: BTreeMap<u16, QueueUse>,
    /// Overload; `None` without a report of the detector or a change of the level.
    pub overload: Option<Overload>,
    /// Records about further systems, phases and queues than are told apart.
    pub left_out: u64,
}

impl Schedule {
    /// Is there nothing to tell?
    pub fn is_empty(&self) -> bool {
        self.phases.is_empty()
            && self.skips.is_empty()
            && self.waits.is_empty()
            && self.queues.is_empty()
            && self.overload.is_none()
    }
}

impl ScheduleCollector {
    /// Looks at one record of any kind.
    #[inline]
    pub fn observe(&mut self, record: &Record<'_>, clock: Clock) {
        let kind = record.kind();
        let is_wanted = matches!(
            kind,
            id::SYSTEM_SKIPPED
                | id::SCHEDULER_SYSTEM_QUEUE_WAIT
                | id::SCHEDULER_SYSTEM_COMPLETION
                | id::SCHEDULER_OVERLOAD_DETECTOR
                | id::SCHEDULER_OVERLOAD_LEVEL_CHANGE
                | id::RUNTIME_PHASE_SPAN
                | id::QUEUE_TICK_END
        );
        if is_wanted && self.add(record, clock).is_none() {
            self.left_out += 1;
        }
    }

    /// `None` for a record that lacks what is needed, or when there is no room for what it is about.
    fn add(&mut self, record: &Record<'_>, clock: Clock) -> Option<()> {
        match record.kind() {
            id::SYSTEM_SKIPPED => {
                let skip = SystemSkippedView::new(record)?;
                *entry(&mut self.skips, (skip.system_idx()?, skip.skip_reason()?))? += 1;
            }
            id::SCHEDULER_SYSTEM_COMPLETION => {
                let completion = SchedulerSystemCompletionView::new(record)?;
                let (system, reason) = (completion.sys_idx()?, completion.reason()?);
                // What was skipped has a record of its own.
                if reason == SkipReason::EXCEPTION {
                    *entry(&mut self.skips, (system, reason))? += 1;
                }
            }
            id::SCHEDULER_SYSTEM_QUEUE_WAIT => {
                let wait = SchedulerSystemQueueWaitView::new(record)?;
                let ns = u64::from(wait.queue_wait_us()?) * 1_000;
                entry(&mut self.waits, wait.sys_idx()?)?.add(ns);
            }
            id::RUNTIME_PHASE_SPAN => {
                let phase = RuntimePhaseSpanView::new(record)?.phase()?;
                let ns = clock.to_ns(record.span()?.duration).max(0) as u64;
                entry(&mut self.phases, phase)?.add(ns);
            }
            id::QUEUE_TICK_END => {
                let queue = QueueTickEndView::new(record)?;
                entry(&mut self.queues, queue.queue_id()?)?.merge(&QueueUse {
                    ticks: 1,
                    peak_depth: queue.peak_depth()?,
                    max_end_depth: queue.end_of_tick_depth()?,
                    produced: queue.produced()?.into(),
                    consumed: queue.consumed()?.into(),
                    overflowed: queue.overflow_count()?.into(),
                });
            }
            id::SCHEDULER_OVERLOAD_LEVEL_CHANGE => {
                let change = SchedulerOverloadLevelChangeView::new(record)?;
                let change = LevelChange {
                    at: record.timestamp(),
                    levels: [change.prev_lvl()?, change.new_lvl()?],
                    multipliers: [change.old_mul()?, change.new_mul()?],
                    ratio: change.ratio()?,
                    queue_depth: change.queue_depth()?,
                };
                let overload = Overload { changes: vec![change], ..Overload::default() };
                self.left_out += self.overload.merge(&overload);
            }
            _ => {
                let report = SchedulerOverloadDetectorView::new(record)?;
                let ratio = report.overrun_ratio()?;
                self.left_out += self.overload.merge(&Overload {
                    ticks_by_level: BTreeMap::from([(report.level()?, 1)]),
                    late_ticks: u64::from(ratio > 1.0),
                    // `max` passes over NaN.
                    max_ratio: 0f32.max(ratio),
                    max_multiplier: report.multiplier()?,
                    changes: Vec::new(),
                });
            }
        }
        Some(())
    }

    /// Adds everything that `other` collected.
    pub fn merge(&mut self, other: Self) {
        self.left_out += other.left_out;
        for (phase, times) in other.phases {
            self.phases.entry(phase).or_default().merge(times);
        }
        for (key, count) in other.skips {
            match entry(&mut self.skips, key) {
                Some(skips) => *skips += count,
                None => self.left_out += count,
            }
        }
        for (system, times) in other.waits {
            match entry(&mut self.waits, system) {
                Some(waits) => waits.merge(times),
                None => self.left_out += times.count(),
            }
        }
        for (queue, more) in other.queues {
            match entry(&mut self.queues, queue) {
                Some(queue) => queue.merge(&more),
                None => self.left_out += more.ticks,
            }
        }
        self.left_out += self.overload.merge(&other.overload);
    }

    /// The result.
    pub fn finish(mut self) -> Schedule {
        self.overload.changes.sort_by_key(|change| change.at);
        let is_silent = self.overload.ticks_by_level.is_empty() && self.overload.changes.is_empty();
        Schedule {
            phases: self.phases,
            skips: self.skips,
            waits: self.waits,
            queues: self.queues,
            overload: (!is_silent).then_some(self.overload),
            left_out: self.left_out,
        }
    }
}

/// The entry of a key; `None` when it would be one too many.
fn entry<K: Ord, V: Default>(map: &mut BTreeMap<K, V>, key: K) -> Option<&mut V> {
    if map.len() >= MAX_ENTRIES && !map.contains_key(&key) {
        return None;
    }
    Some(map.entry(key).or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(kind: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![(12 + payload.len()) as u8, 0, kind, 1];
        bytes.extend_from_slice(&5i64.to_le_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }

    fn skip(system: u16, reason: u8) -> Vec<u8> {
        let [low, high] = system.to_le_bytes();
        instant(id::SYSTEM_SKIPPED, &[low, high, reason, 0, 0, 0, 0])
    }

    fn queue_report(queue: u16, numbers: [u32; 5]) -> Vec<u8> {
        let mut payload = 7u32.to_le_bytes().to_vec();
        payload.extend_from_slice(&queue.to_le_bytes());
        payload.extend_from_slice(&[0; 2]);
        numbers.iter().for_each(|number| payload.extend_from_slice(&number.to_le_bytes()));
        instant(id::QUEUE_TICK_END, &payload)
    }

    fn overload_report(ratio: f32, level: u8, multiplier: u8) -> Vec<u8> {
        let mut payload = 7i64.to_le_bytes().to_vec();
        payload.extend_from_slice(&ratio.to_le_bytes());
        payload.extend_from_slice(&[0; 10]);
        payload.extend_from_slice(&[level, multiplier]);
        instant(id::SCHEDULER_OVERLOAD_DETECTOR, &payload)
    }

    fn collect(records: &[Vec<u8>]) -> ScheduleCollector {
        let mut collector = ScheduleCollector::default();
        for record in records {
            collector.observe(&Record::parse(record).unwrap(), Clock::new(1_000_000_000));
        }
        collector
    }

    #[test]
    fn skips_are_counted_by_system_and_reason() {
        let mut collector = collect(&[skip(3, 2), skip(3, 2), skip(3, 4)]);
        collector.merge(collect(&[skip(1, 2), skip(3, 2), instant(id::SYSTEM_SKIPPED, &[3])]));
        let schedule = collector.finish();
        assert_eq!(
            schedule.skips,
            BTreeMap::from([((1, SkipReason(2)), 1), ((3, SkipReason(2)), 3), ((3, SkipReason(4)), 1)])
        );
        assert_eq!(schedule.left_out, 1, "a record too short to say what it is about");
    }

    #[test]
    fn failures_are_counted_and_other_completions_are_not() {
        let completion = |reason| instant(id::SCHEDULER_SYSTEM_COMPLETION, &[3, 0, reason, 9, 0, 0, 0]);
        let failed = SkipReason::EXCEPTION;
        let schedule =
            collect(&[completion(0), completion(failed.0), completion(7), completion(failed.0)]).finish();
        assert_eq!(schedule.skips, BTreeMap::from([((3, failed), 2)]));
    }

    #[test]
    fn b30_depths_fold_with_max_and_flows_with_sum() {
        let records = [queue_report(2, [9, 1, 0, 40, 39]), queue_report(2, [4, 3, 5, 10, 8])];
        let expected =
            QueueUse { ticks: 2, peak_depth: 9, max_end_depth: 3, produced: 50, consumed: 47, overflowed: 5 };
        assert_eq!(collect(&records).finish().queues, BTreeMap::from([(2, expected)]));
    }

    #[test]
    fn a_ratio_that_is_no_number_does_not_spoil_the_maximum() {
        let records = [(1.5, 1, 2), (f32::NAN, 0, 1), (0.5, 0, 1)];
        let records = records.map(|(ratio, level, multiplier)| overload_report(ratio, level, multiplier));
        let overload = collect(&records).finish().overload.unwrap();
        assert_eq!((overload.max_ratio, overload.late_ticks, overload.max_multiplier), (1.5, 1, 2));
        assert_eq!(overload.ticks_by_level, BTreeMap::from([(OverloadLevel(0), 2), (OverloadLevel(1), 1)]));
    }

    /// At 5, as [`instant`] has it, or later.
    fn level_change(at: i64, levels: [u8; 2], ratio: f32) -> Vec<u8> {
        let mut payload = levels.to_vec();
        payload.extend_from_slice(&ratio.to_le_bytes());
        payload.extend_from_slice(&9i32.to_le_bytes());
        payload.extend_from_slice(&[1, 2]);
        let mut bytes = instant(id::SCHEDULER_OVERLOAD_LEVEL_CHANGE, &payload);
        bytes[4..12].copy_from_slice(&at.to_le_bytes());
        bytes
    }

    #[test]
    fn changes_of_the_level_are_kept_in_order_of_time_and_bounded() {
        let mut collector = collect(&[level_change(70, [1, 0], 0.5)]);
        collector.merge(collect(&[level_change(20, [0, 1], 1.5)]));
        let overload = collector.finish().overload.unwrap();
        let first = LevelChange {
            at: 20,
            levels: [OverloadLevel(0), OverloadLevel(1)],
            multipliers: [1, 2],
            ratio: 1.5,
            queue_depth: 9,
        };
        assert_eq!(overload.changes[0], first);
        assert_eq!(overload.changes.iter().map(|change| change.at).collect::<Vec<_>>(), [20, 70]);
        let many: Vec<_> = (0..3_000).map(|at| level_change(at, [0, 1], 1.5)).collect();
        let mut collector = collect(&many);
        collector.merge(collect(&many));
        let schedule = collector.finish();
        assert_eq!(schedule.overload.unwrap().changes.len(), MAX_ENTRIES);
        assert_eq!(schedule.left_out as usize, 6_000 - MAX_ENTRIES);
    }

    #[test]
    fn a_trace_with_countless_systems_takes_bounded_memory() {
        let records: Vec<Vec<u8>> = (0..=u16::MAX).map(|system| skip(system, 1)).collect();
        let mut collector = collect(&records[..40_000]);
        collector.merge(collect(&records[40_000..]));
        let schedule = collector.finish();
        assert_eq!(schedule.skips.len(), MAX_ENTRIES);
        assert_eq!(schedule.left_out as usize + MAX_ENTRIES, records.len());
    }
}
