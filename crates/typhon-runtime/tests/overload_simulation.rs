//! The overload detector on a simulated machine: real grid, real detector, ticks that take what the load says.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use typhon_engine::options::OverloadOptions;
use typhon_runtime::metronome::Grid;
use typhon_runtime::overload::{Change, Overload, TickLoad};

const RATE_HZ: u32 = 60;
const MAX_CATCH_UP: u32 = 4;
/// Ticks after which a load must have settled. A load of 1.001 skips one tick in a thousand, and five times five of them
/// lead to where it fits.
const SETTLING: usize = 25_000;
/// The same where ticks are clearly too long.
const WARM_UP: usize = 4_000;
const TICKS: usize = 12_000;

/// Runs ticks whose length, in base intervals, depends on the number of the tick and the level in force. Gives the
/// changes with the ticks after which they happened, and the detector at the end.
fn run(ticks: usize, load: impl Fn(usize, u8) -> f64) -> (Vec<(usize, Change)>, Overload) {
    let options = OverloadOptions::default();
    let mut overload = Overload::new(RATE_HZ, &options);
    let mut grid = Grid::new(0, RATE_HZ, MAX_CATCH_UP);
    let interval_ns = grid.interval_ns() as f64;
    let mut now_ns = 0;
    let mut changes = Vec::new();
    for tick in 0..ticks {
        let multiplier = overload.multiplier();
        let target = grid.advance(now_ns, multiplier);
        now_ns = now_ns.max(target.at_ns);
        let late_ns = now_ns - target.at_ns;
        let base_ratio = load(tick, overload.level().0);
        now_ns += (base_ratio * interval_ns) as i64;
        let load = TickLoad {
            base_ratio: base_ratio as f32,
            was_skipped: target.missed_ticks > 0,
            was_late: late_ns > grid.interval_ns() * i64::from(multiplier),
            ..TickLoad::default()
        };
        changes.extend(overload.update(load).map(|change| (tick, change)));
    }
    (changes, overload)
}

fn changes_after(warm_up: usize, changes: &[(usize, Change)]) -> usize {
    changes.iter().filter(|(tick, _)| *tick >= warm_up).count()
}

#[test]
fn b50_a_constant_load_settles_where_it_fits() {
    let loads = (1001..=6000).step_by(17).map(|thousandths| f64::from(thousandths) / 1000.0);
    for load in loads.chain([0.3, 0.59, 0.61, 1.0, 2.0, 3.0, 4.0]) {
        let (changes, overload) = run(SETTLING + TICKS, |_, _| load);
        assert_eq!(changes_after(SETTLING, &changes), 0, "load {load}");
        assert!(f64::from(overload.multiplier()) >= load.min(6.0) / 1.2, "load {load} does not fit");
        if load <= 1.0 {
            assert_eq!(overload.level().0, 0, "load {load}");
        }
        assert_ne!(overload.level().0, 4, "load {load} is below what stretching achieves");
    }
}

#[test]
fn b50_a_load_beyond_all_measures_ends_at_the_top_and_comes_back() {
    let (changes, overload) = run(2_000, |tick, _| if tick < 500 { 8.0 } else { 0.3 });
    assert_eq!(overload.level().0, 0);
    let top = changes.iter().position(|(_, change)| change.is_critical()).unwrap();
    assert_eq!((top, changes.len()), (6, 14), "seven rungs up and seven down");
}

#[test]
fn b50_loads_that_measures_relieve_change_levels_rarely() {
    let mut cases = 0;
    let mut most = 0;
    for load in (13..=60).step_by(2).map(|tenths| f64::from(tenths) / 10.0) {
        for throttling in [1.0, 0.9, 0.75, 0.6, 0.5, 0.4, 0.3, 0.2] {
            for reduction in [1.0, 0.8, 0.6, 0.4, 0.2] {
                let (changes, _) = run(WARM_UP + TICKS, |_, level| match level {
                    0 => load,
                    1 => load * throttling,
                    _ => load * throttling * reduction,
                });
                cases += 1;
                let count = changes_after(WARM_UP, &changes);
                most = most.max(count);
                assert!(count <= 20, "load {load}, relief {throttling} and {reduction}: {count} changes");
            }
        }
    }
    assert_eq!(cases, 960);
    assert!(most > 0, "no case oscillates: the cases are too easy");
}

#[test]
fn b50_an_alternating_load_is_noticed() {
    let (changes, overload) = run(2_000, |tick, _| if tick % 2 == 0 { 3.0 } else { 1.0 });
    assert!(!changes.is_empty());
    assert!(overload.multiplier() >= 2, "two intervals on average");
}

#[test]
fn b50_one_slow_tick_changes_nothing() {
    for length in [2.0, 5.0, 20.0] {
        let (changes, _) = run(2_000, |tick, _| if tick == 1_000 { length } else { 0.5 });
        assert!(changes.is_empty(), "a tick of {length} intervals");
    }
}
