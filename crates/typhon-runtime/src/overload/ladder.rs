//! The measures against overload, in the order in which they are taken.

use typhon_engine::options::OverloadOptions;
use typhon_trace::event::OverloadLevel;

/// By how much ticks can be stretched.
const MULTIPLIERS: [u8; 5] = [1, 2, 3, 4, 6];

/// One measure: a level of overload, and the base intervals between ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rung {
    /// What is left out.
    pub level: OverloadLevel,
    /// By how much ticks are stretched.
    pub multiplier: u8,
}

impl Rung {
    /// Nothing is left out and nothing is stretched.
    pub const NORMAL: Self = Self { level: OverloadLevel::NORMAL, multiplier: 1 };
}

/// All rungs, the normal state first (brief 04 B-51). Tick-rate modulation has one for each multiplier; player shedding
/// keeps the last of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ladder(Vec<Rung>);

impl Ladder {
    /// The ladder for ticks of `base_rate_hz`, at least 1, that are never stretched below the smallest rate.
    pub fn new(base_rate_hz: u32, options: &OverloadOptions) -> Self {
        let limit = base_rate_hz.max(1) / options.min_tick_rate_hz.max(1);
        let multipliers = MULTIPLIERS.into_iter().filter(|&multiplier| u32::from(multiplier) <= limit);
        let stretched = multipliers.filter(|&multiplier| multiplier > 1);
        let unstretched =
            [OverloadLevel::NORMAL, OverloadLevel::SYSTEM_THROTTLING, OverloadLevel::SCOPE_REDUCTION];
        let mut rungs: Vec<_> = unstretched.map(|level| Rung { level, multiplier: 1 }).to_vec();
        rungs.extend(
            stretched.map(|multiplier| Rung { level: OverloadLevel::TICK_RATE_MODULATION, multiplier }),
        );
        let multiplier = rungs.last().map_or(1, |rung| rung.multiplier);
        rungs.push(Rung { level: OverloadLevel::PLAYER_SHEDDING, multiplier });
        Self(rungs)
    }

    /// The rungs, from the normal state up.
    pub fn rungs(&self) -> &[Rung] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder(base_rate_hz: u32, min_tick_rate_hz: u32) -> Vec<(u8, u8)> {
        let options = OverloadOptions { min_tick_rate_hz, ..OverloadOptions::default() };
        let ladder = Ladder::new(base_rate_hz, &options);
        ladder.rungs().iter().map(|rung| (rung.level.0, rung.multiplier)).collect()
    }

    #[test]
    fn b51_multipliers_stop_at_the_smallest_rate() {
        assert_eq!(ladder(60, 10), [(0, 1), (1, 1), (2, 1), (3, 2), (3, 3), (3, 4), (3, 6), (4, 6)]);
        assert_eq!(ladder(50, 10), [(0, 1), (1, 1), (2, 1), (3, 2), (3, 3), (3, 4), (4, 4)]);
        assert_eq!(ladder(25, 10), [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2)]);
    }

    #[test]
    fn b51_without_multipliers_level_three_is_left_out() {
        assert_eq!(ladder(19, 10), [(0, 1), (1, 1), (2, 1), (4, 1)]);
        assert_eq!(ladder(10, 10), [(0, 1), (1, 1), (2, 1), (4, 1)]);
    }
}
