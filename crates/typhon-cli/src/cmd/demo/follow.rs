//! What every tick took, collected from the runtime's telemetry.

use typhon::telemetry::{Telemetry, TickTelemetry};

/// Ticks followed so far.
#[derive(Debug, Default)]
pub(super) struct Ticks {
    /// Durations, in microseconds.
    durations_us: Vec<u32>,
    /// The last tick that was seen; the first is 1.
    last: i64,
    latest: Option<TickTelemetry>,
    highest_level: u8,
    highest_multiplier: u8,
    /// Ticks longer than the target, the base interval: what `typhon trace stats` counts too.
    pub(super) overruns: u64,
    /// Ticks that went by between two looks.
    pub(super) unseen: u64,
}

impl Ticks {
    /// Takes in the ticks that ended since the last call.
    pub(super) fn follow(&mut self, telemetry: &Telemetry) {
        let Some(window) = telemetry.window() else { return };
        self.unseen += u64::try_from(window.start() - self.last - 1).unwrap_or(0);
        for number in (self.last + 1).max(*window.start())..=*window.end() {
            match telemetry.tick(number) {
                Ok(tick) => self.add(tick),
                Err(_) => self.unseen += 1,
            }
        }
        self.last = *window.end();
    }

    fn add(&mut self, tick: TickTelemetry) {
        self.durations_us.push((tick.actual_ms * 1e3) as u32);
        self.overruns += u64::from(tick.overrun_ratio > 1.0);
        self.highest_level = self.highest_level.max(tick.level.0);
        self.highest_multiplier = self.highest_multiplier.max(tick.multiplier);
        self.latest = Some(tick);
    }

    /// The tick that ended last.
    pub(super) fn latest(&self) -> Option<&TickTelemetry> {
        self.latest.as_ref()
    }

    /// Ticks that ended.
    pub(super) fn count(&self) -> i64 {
        self.last
    }

    /// The highest level of overload, and the largest number of steps between two ticks.
    pub(super) fn worst(&self) -> (u8, u8) {
        (self.highest_level, self.highest_multiplier)
    }

    /// The durations at these ranks (0.0 to 1.0, nearest rank) of the last `ticks` ticks, in nanoseconds.
    pub(super) fn percentiles_ns<const N: usize>(&self, ticks: usize, ranks: [f64; N]) -> [i64; N] {
        let from = self.durations_us.len().saturating_sub(ticks);
        let mut sorted = self.durations_us[from..].to_vec();
        sorted.sort_unstable();
        ranks.map(|rank| {
            let at = (rank * sorted.len() as f64).ceil() as usize;
            sorted.get(at.saturating_sub(1)).map_or(0, |&us| i64::from(us) * 1_000)
        })
    }
}
