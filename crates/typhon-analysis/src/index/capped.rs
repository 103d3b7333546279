//! Row sets that the engine itself cut short before they were recorded (brief 11 B-5): it reports K of N realms or
//! sessions, and whoever looks at the K must know of the N.

use typhon_trace::event::{SpatialArchetypeTelemetryView, SubscriptionsServerTelemetryView};
use typhon_trace::record::Record;
use typhon_trace::registry::id;

use super::time::TimeBase;

/// What was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CappedSet {
    /// Realms whose rates were reported, of those that were touched (kind 66).
    RatesRealms,
    /// Realms that ran, of those that are present (kind 66).
    RunnableRealms,
    /// Sessions that were reported, of those that are connected (kind 68).
    ReportedSessions,
}

/// A set that was cut at least once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capped {
    /// What was cut.
    pub what: CappedSet,
    /// Members shown where most are missing.
    pub shown: u64,
    /// Members there were at that time.
    pub total: u64,
    /// When that was, ns.
    pub at_ns: u64,
    /// Records in which members are missing.
    pub times: u64,
}

impl CappedSet {
    /// Every set.
    pub const ALL: [Self; 3] = [Self::RatesRealms, Self::RunnableRealms, Self::ReportedSessions];

    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::RatesRealms => "ratesRealms",
            Self::RunnableRealms => "runnableRealms",
            Self::ReportedSessions => "reportedSessions",
        }
    }

    /// Kind of the records that tell.
    pub fn kind(self) -> u8 {
        match self {
            Self::RatesRealms | Self::RunnableRealms => id::SPATIAL_ARCHETYPE_TELEMETRY,
            Self::ReportedSessions => id::SUBSCRIPTIONS_SERVER_TELEMETRY,
        }
    }
}

/// The worst case of every set, and how often it was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CappedTally([Case; CappedSet::ALL.len()]);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Case {
    times: u64,
    shown: u64,
    total: u64,
    ticks: i64,
}

impl CappedTally {
    /// Looks at a record, which is mostly about something else.
    pub(crate) fn observe(&mut self, record: &Record<'_>) {
        match record.kind() {
            id::SPATIAL_ARCHETYPE_TELEMETRY => {
                let Some(view) = SpatialArchetypeTelemetryView::new(record) else { return };
                // Older records end before these fields.
                self.add(
                    record,
                    CappedSet::RatesRealms,
                    view.rates_realms_emitted(),
                    view.rates_realms_touched(),
                );
                self.add(record, CappedSet::RunnableRealms, view.runnable_realms(), view.present_realms());
            }
            id::SUBSCRIPTIONS_SERVER_TELEMETRY => {
                let Some(view) = SubscriptionsServerTelemetryView::new(record) else { return };
                self.add(record, CappedSet::ReportedSessions, view.reported_sessions(), view.sessions());
            }
            _ => {}
        }
    }

    fn add(&mut self, record: &Record<'_>, what: CappedSet, shown: Option<i32>, total: Option<i32>) {
        let (Some(shown), Some(total)) = (shown, total) else { return };
        let (shown, total) = (u64::try_from(shown).unwrap_or(0), u64::try_from(total).unwrap_or(0));
        if shown < total {
            self.0[what as usize].add(&Case { times: 1, shown, total, ticks: record.timestamp() });
        }
    }

    /// Adds those of a later block.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(case, other)| case.add(other));
    }

    /// The sets that were cut.
    pub(crate) fn finish(&self, time: TimeBase) -> Vec<Capped> {
        let cases = CappedSet::ALL.into_iter().zip(&self.0).filter(|(_, case)| case.times > 0);
        cases
            .map(|(what, case)| Capped {
                what,
                shown: case.shown,
                total: case.total,
                at_ns: time.ns(case.ticks),
                times: case.times,
            })
            .collect()
    }
}

impl Case {
    fn add(&mut self, other: &Self) {
        let times = self.times + other.times;
        if other.total - other.shown > self.total - self.shown {
            *self = *other;
        }
        self.times = times;
    }
}
