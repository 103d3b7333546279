//! Artificial load that comes in waves, to see a schedule give way and recover.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

/// Length of one wave, in ticks.
const WAVE_TICKS: i64 = 600;
/// Load at the top of each wave, in tick budgets: one that shedding absorbs, one that takes a lower tick rate too.
const CRESTS: [f64; 2] = [1.6, 4.5];

/// The part of the storm that a system bears.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Storm {
    budget: Duration,
    share: f64,
}

impl Storm {
    /// `share` (0.0 to 1.0) of a storm over ticks of this length.
    pub fn new(budget: Duration, share: f64) -> Self {
        Self { budget, share }
    }

    /// How long the storm keeps its system busy in a tick: nothing in the first half of a wave, then up and down.
    pub fn load(&self, tick: i64) -> Duration {
        let crest = CRESTS[(tick / WAVE_TICKS) as usize % CRESTS.len()];
        let phase = (tick % WAVE_TICKS) as f64 / WAVE_TICKS as f64;
        let height = (1.0 - (phase * 4.0 - 3.0).abs()).max(0.0);
        self.budget.mul_f64(crest * height * self.share)
    }

    /// Keeps a core busy for as long as [`load`](Self::load) says.
    pub fn blow(&self, tick: i64) {
        let until = Instant::now() + self.load(tick);
        while Instant::now() < until {
            spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waves_rise_and_fall_between_calms() {
        let storm = Storm::new(Duration::from_millis(10), 1.0);
        let load_ms = |tick| storm.load(tick).as_secs_f64() * 1e3;
        assert_eq!([0, 150, 300].map(load_ms), [0.0; 3]);
        assert_eq!(load_ms(450), 16.0);
        assert_eq!(load_ms(600 + 450), 45.0);
        assert_eq!(load_ms(1200 + 450), 16.0);
        assert!(load_ms(375) > 0.0 && load_ms(375) < load_ms(449));
    }
}
