//! The ticks on the session's axis.

use super::gc::GcEvent;
use super::scan::TickEndInfo;
use super::time::TimeBase;
use crate::quantile::Durations;
use crate::survey::Survey;

/// One tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tick {
    /// Number as shown (brief 01 B-36).
    pub number: i64,
    /// When it began, ns on the session's axis.
    pub start_ns: u64,
    /// How long it worked, ns; `None` for a last tick without an end.
    pub duration_ns: Option<u64>,
    /// Overload level in its end record; 0 without one.
    pub level: u8,
    /// Tick multiplier in its end record; 1 without one.
    pub multiplier: u8,
    /// Collections that began in it.
    pub collections: u16,
    /// Numbers that are missing before it.
    pub missing_before: i64,
}

/// All ticks, in order of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TickTable {
    pub(crate) ticks: Vec<Tick>,
    /// Of the whole session; `None` without ticks.
    pub(crate) p95_ns: Option<u64>,
}

impl TickTable {
    pub(crate) fn new(survey: &Survey, ends: &[TickEndInfo], gc: &[GcEvent], time: TimeBase) -> Self {
        let numbering = &survey.ticks;
        let mut ticks: Vec<Tick> = numbering
            .starts()
            .iter()
            .zip(1u64..)
            .map(|(start, ordinal)| {
                let number = numbering.shown(ordinal);
                Tick {
                    number,
                    start_ns: time.ns(*start),
                    duration_ns: numbering.duration(ordinal).map(|ticks| time.ns_of_duration(ticks)),
                    level: 0,
                    multiplier: 1,
                    collections: 0,
                    missing_before: if ordinal == 1 {
                        0
                    } else {
                        number.saturating_sub(numbering.shown(ordinal - 1)) - 1
                    },
                }
            })
            .collect();
        let of = |ticks: i64| (numbering.ordinal(ticks) as usize).checked_sub(1);
        for end in ends {
            if let Some(tick) = of(end.ticks).and_then(|at| ticks.get_mut(at)) {
                (tick.level, tick.multiplier) = (end.level, end.multiplier);
            }
        }
        for event in gc {
            if let GcEvent::Start { ticks: at, .. } = event
                && let Some(tick) = of(*at).and_then(|at| ticks.get_mut(at))
            {
                tick.collections = tick.collections.saturating_add(1);
            }
        }
        let mut durations = Durations::default();
        ticks.iter().filter_map(|tick| tick.duration_ns).for_each(|ns| durations.push(ns));
        let p95_ns = durations.percentiles([95.0]).map(|[p95]| p95.value);
        Self { ticks, p95_ns }
    }

    /// About so many bytes.
    pub(crate) fn resident_bytes(&self) -> usize {
        size_of_val(self.ticks.as_slice())
    }

    /// The ticks that begin in a range.
    pub(crate) fn starting_in(&self, range_ns: &std::ops::Range<u64>) -> &[Tick] {
        let first = self.ticks.partition_point(|tick| tick.start_ns < range_ns.start);
        let after = self.ticks.partition_point(|tick| tick.start_ns < range_ns.end);
        &self.ticks[first..after.max(first)]
    }
}
