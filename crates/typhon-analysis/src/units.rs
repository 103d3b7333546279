//! Times in payload fields: which unit a field has, and what a value means in nanoseconds.

use crate::clock::Clock;
use typhon_trace::registry::FieldInfo;

/// Unit of a field that holds a duration or an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// Nanoseconds.
    Nanoseconds,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Ticks of the trace clock; their rate is in the file header.
    ClockTicks,
    /// Trace-clock ticks in files of this project, 100 ns in those of the reference engine.
    DialectTicks,
}

impl TimeUnit {
    /// The time unit of a field, from the registry's unit text; `None` for anything that is not a time.
    pub fn of(info: &FieldInfo) -> Option<Self> {
        Self::parse(info.unit)
    }

    fn parse(unit: &str) -> Option<Self> {
        if unit.contains("dialect") {
            return Some(Self::DialectTicks);
        }
        if unit.starts_with("trace-clock ticks") {
            return Some(Self::ClockTicks);
        }
        unit.split([' ', ',']).find_map(|word| match word {
            "ns" => Some(Self::Nanoseconds),
            "µs" => Some(Self::Microseconds),
            "ms" | "CPU-milliseconds" => Some(Self::Milliseconds),
            _ => None,
        })
    }

    /// Nanoseconds per step of a field with this unit. `own_dialect` when the header says dialect 1.
    pub fn ns_per_step(self, clock: Clock, own_dialect: bool) -> f64 {
        match self {
            Self::Nanoseconds => 1.0,
            Self::Microseconds => 1e3,
            Self::Milliseconds => 1e6,
            Self::DialectTicks if !own_dialect => 100.0,
            Self::ClockTicks | Self::DialectTicks => 1e9 / clock.ticks_per_second() as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use typhon_trace::registry;

    fn unit(kind: &str, field: &str) -> Option<TimeUnit> {
        let kind = registry::kind_by_name(kind).expect("kind");
        let optional = kind.optional.iter().map(|optional| &optional.field);
        let info = kind.required.iter().chain(optional).find(|info| info.name == field).expect("field");
        TimeUnit::of(info)
    }

    #[test]
    fn units_come_from_the_registry() {
        assert_eq!(unit("GcEnd", "pauseDurationTicks"), Some(TimeUnit::DialectTicks));
        assert_eq!(unit("GcEnd", "promotedBytes"), None);
        assert_eq!(TimeUnit::parse("the poll interval, ms"), Some(TimeUnit::Milliseconds));
        assert_eq!(TimeUnit::parse("ms, projected"), Some(TimeUnit::Milliseconds));
        assert_eq!(TimeUnit::parse("bytes/s"), None);
        assert_eq!(TimeUnit::parse("tick duration / target period"), None);
    }

    #[test]
    fn c18_pause_unit_depends_on_the_dialect() {
        let clock = Clock::new(1_000_000_000);
        assert_eq!(TimeUnit::DialectTicks.ns_per_step(clock, false), 100.0);
        assert_eq!(TimeUnit::DialectTicks.ns_per_step(clock, true), 1.0);
    }
}
