//! What is kept of a tick, and how it becomes words.

use crate::SkipReason;
use typhon_trace::event::OverloadLevel;

/// Words of a tick without its systems.
pub(super) const TICK_WORDS: usize = 6;
/// Words of one system.
pub(super) const SYSTEM_WORDS: usize = 2;

/// One tick.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TickTelemetry {
    /// Number of the tick.
    pub tick: i64,
    /// What the tick may take: the base interval, in milliseconds.
    pub target_ms: f32,
    /// What it took from its start to its end, in milliseconds.
    pub actual_ms: f32,
    /// `actual_ms / target_ms`.
    pub overrun_ratio: f32,
    /// From the start of the previous tick to the start of this one, in milliseconds; 0 for the first tick.
    pub interval_ms: f32,
    /// By how much the tick started after its moment, in milliseconds.
    pub late_ms: f32,
    /// Workers that ran at least one chunk.
    pub active_workers: u16,
    /// Systems that ran.
    pub active_systems: u16,
    /// The overload level in force during the tick.
    pub level: OverloadLevel,
    /// Base intervals between ticks, in force during the tick.
    pub multiplier: u8,
    /// Events that some reader had not passed when the tick ended, of all queues.
    pub queue_depth: u32,
    /// Events of this tick that found no room in their queues.
    pub overflow_count: u32,
    /// Ticks that were skipped before this one.
    pub missed_ticks: u32,
}

/// One system in one tick. Times are 0 for a system that did not run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SystemTelemetry {
    /// From being ready to the first claim, in microseconds.
    pub transition_latency_us: f32,
    /// From the first claim to the end of the last chunk, in microseconds.
    pub duration_us: f32,
    /// What the last worker worked longer than the first one to run out of chunks, in microseconds.
    pub straggler_gap_us: f32,
    /// Workers that ran at least one chunk.
    pub workers: u8,
    /// Why it did not run, or failed.
    pub skip_reason: SkipReason,
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

fn floats(low: f32, high: f32) -> u64 {
    pair(low.to_bits(), high.to_bits())
}

fn float_halves(word: u64) -> (f32, f32) {
    let (low, high) = halves(word);
    (f32::from_bits(low), f32::from_bits(high))
}

impl TickTelemetry {
    pub(super) fn to_words(self) -> [u64; TICK_WORDS] {
        let load = u32::from(self.level.0) | u32::from(self.multiplier) << 8;
        let active = u32::from(self.active_workers) | u32::from(self.active_systems) << 16;
        [
            self.tick as u64,
            floats(self.target_ms, self.actual_ms),
            floats(self.overrun_ratio, self.interval_ms),
            pair(self.late_ms.to_bits(), load),
            pair(active, self.missed_ticks),
            pair(self.queue_depth, self.overflow_count),
        ]
    }

    pub(super) fn from_words(words: [u64; TICK_WORDS]) -> Self {
        let (target_ms, actual_ms) = float_halves(words[1]);
        let (overrun_ratio, interval_ms) = float_halves(words[2]);
        let (late, load) = halves(words[3]);
        let (active, missed_ticks) = halves(words[4]);
        let (queue_depth, overflow_count) = halves(words[5]);
        Self {
            tick: words[0] as i64,
            target_ms,
            actual_ms,
            overrun_ratio,
            interval_ms,
            late_ms: f32::from_bits(late),
            active_workers: active as u16,
            active_systems: (active >> 16) as u16,
            level: OverloadLevel(load as u8),
            multiplier: (load >> 8) as u8,
            queue_depth,
            overflow_count,
            missed_ticks,
        }
    }
}

impl SystemTelemetry {
    pub(super) fn to_words(self) -> [u64; SYSTEM_WORDS] {
        let run = u32::from(self.workers) | u32::from(self.skip_reason.0) << 8;
        [floats(self.transition_latency_us, self.duration_us), pair(self.straggler_gap_us.to_bits(), run)]
    }

    pub(super) fn from_words(words: [u64; SYSTEM_WORDS]) -> Self {
        let (transition_latency_us, duration_us) = float_halves(words[0]);
        let (gap, run) = halves(words[1]);
        Self {
            transition_latency_us,
            duration_us,
            straggler_gap_us: f32::from_bits(gap),
            workers: run as u8,
            skip_reason: SkipReason((run >> 8) as u8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tick() -> impl Strategy<Value = TickTelemetry> {
        let times = prop::array::uniform5(0.0f32..1e9);
        (any::<i64>(), times, any::<[u16; 2]>(), any::<[u8; 2]>(), any::<[u32; 3]>()).prop_map(
            |(tick, times, [active_workers, active_systems], [level, multiplier], counts)| {
                let [target_ms, actual_ms, overrun_ratio, interval_ms, late_ms] = times;
                let [queue_depth, overflow_count, missed_ticks] = counts;
                let level = OverloadLevel(level);
                TickTelemetry {
                    tick,
                    target_ms,
                    actual_ms,
                    overrun_ratio,
                    interval_ms,
                    late_ms,
                    active_workers,
                    active_systems,
                    level,
                    multiplier,
                    queue_depth,
                    overflow_count,
                    missed_ticks,
                }
            },
        )
    }

    fn system() -> impl Strategy<Value = SystemTelemetry> {
        (prop::array::uniform3(0.0f32..1e9), any::<u8>(), any::<u8>()).prop_map(|(times, workers, reason)| {
            let [transition_latency_us, duration_us, straggler_gap_us] = times;
            let skip_reason = SkipReason(reason);
            SystemTelemetry { transition_latency_us, duration_us, straggler_gap_us, workers, skip_reason }
        })
    }

    proptest! {
        #[test]
        fn b56_ticks_and_systems_survive_their_words(tick in tick(), system in system()) {
            prop_assert_eq!(TickTelemetry::from_words(tick.to_words()), tick);
            prop_assert_eq!(SystemTelemetry::from_words(system.to_words()), system);
        }
    }
}
