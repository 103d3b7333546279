//! Every transition of the detector, and the whole of it against the rules written down a second time.

use super::*;
use proptest::prelude::*;
use typhon_engine::options::OverloadOptions;

/// A tick that took this many base intervals.
fn took(base_ratio: f32) -> TickLoad {
    TickLoad { base_ratio, ..TickLoad::default() }
}

fn at_60_hz() -> Overload {
    Overload::new(60, &OverloadOptions::default())
}

/// The same tick some times over. The changes with the number of the tick, from 1.
fn repeat(overload: &mut Overload, load: TickLoad, times: u32) -> Vec<(u32, u8, u8)> {
    let changes = (1..=times).filter_map(|tick| overload.update(load).map(|change| (tick, change.to)));
    changes.map(|(tick, to)| (tick, to.level.0, to.multiplier)).collect()
}

/// An engine that has climbed to this level and multiplier.
fn on(level: u8, multiplier: u8) -> Overload {
    let mut overload = at_60_hz();
    while (overload.level().0, overload.multiplier()) != (level, multiplier) {
        overload.update(took(100.0));
    }
    overload
}

#[test]
fn b50_five_overruns_escalate_rung_by_rung() {
    let mut overload = at_60_hz();
    let changes = repeat(&mut overload, took(100.0), 60);
    let expected = [(5, 1, 1), (10, 2, 1), (15, 3, 2), (20, 3, 3), (25, 3, 4), (30, 3, 6), (35, 4, 6)];
    assert_eq!(changes, expected);
}

#[test]
fn b50_twenty_underruns_deescalate_rung_by_rung() {
    let mut overload = on(4, 6);
    let changes = repeat(&mut overload, took(0.1), 200);
    let expected = [(20, 3, 6), (40, 3, 4), (60, 3, 3), (80, 3, 2), (100, 2, 1), (120, 1, 1), (140, 0, 1)];
    assert_eq!(changes, expected);
}

#[test]
fn b49_b50_thresholds_are_exclusive_and_count_what_is_allowed_now() {
    for (level, multiplier) in [(0, 1), (2, 1), (3, 3)] {
        let budget = f32::from(multiplier);
        let mut overload = on(level, multiplier);
        assert!(repeat(&mut overload, took(1.2 * budget), 100).is_empty(), "not above the threshold");
        assert!(!repeat(&mut overload, took(1.21 * budget), 5).is_empty());
        let mut overload = on(level, multiplier);
        assert!(repeat(&mut overload, took(0.6 * budget), 100).is_empty(), "not below the ratio");
    }
}

#[test]
fn b50_a_load_that_would_not_fit_the_shorter_tick_is_no_underrun() {
    // At 6 × a load of 3.5 is 0.58 of what a tick may take, and fits into 4 ×.
    assert_eq!(repeat(&mut on(3, 6), took(3.5), 20), [(20, 3, 4)]);
    // At 2 × a load of 1.1 is 0.55, but would be too much for 1 ×.
    assert!(repeat(&mut on(3, 2), took(1.1), 100).is_empty());
    assert_eq!(repeat(&mut on(3, 2), took(0.99), 20), [(20, 2, 1)]);
}

#[test]
fn trap17_the_end_of_the_ladder_is_left_by_what_is_allowed_there() {
    // Three intervals per tick: too much for 1 × or 2 ×, and half of what 6 × allows.
    assert_eq!(repeat(&mut on(4, 6), took(3.0), 100), [(20, 3, 6), (40, 3, 4)]);
}

#[test]
fn b50_opposite_signs_start_anew_and_neutral_ticks_take_one_back() {
    let mut overload = at_60_hz();
    repeat(&mut overload, took(2.0), 4);
    overload.update(took(0.1));
    assert!(repeat(&mut overload, took(2.0), 4).is_empty(), "an underrun forgets overruns");
    overload.update(took(1.0));
    overload.update(took(1.0));
    assert_eq!(repeat(&mut overload, took(2.0), 3), [(3, 1, 1)], "four less two and three are five");
    repeat(&mut overload, took(0.1), 19);
    overload.update(took(2.0));
    assert!(repeat(&mut overload, took(0.1), 19).is_empty(), "an overrun forgets underruns");
    overload.update(took(1.0));
    assert_eq!(repeat(&mut overload, took(0.1), 2), [(2, 0, 1)]);
}

#[test]
fn b50_a_skipped_tick_is_an_overrun_and_a_late_one_says_nothing() {
    let skipped = TickLoad { was_skipped: true, ..took(0.1) };
    assert_eq!(repeat(&mut at_60_hz(), skipped, 5), [(5, 1, 1)]);
    let late = TickLoad { was_late: true, ..took(0.1) };
    let mut overload = on(1, 1);
    repeat(&mut overload, took(2.0), 4);
    assert!(repeat(&mut overload, late, 100).is_empty());
    assert_eq!(repeat(&mut overload, took(2.0), 1), [(1, 2, 1)], "overruns are still counted");
    let late_overrun = TickLoad { was_late: true, ..took(2.0) };
    assert_eq!(repeat(&mut at_60_hz(), late_overrun, 5), [(5, 1, 1)]);
}

#[test]
fn b50_queues_that_grow_while_there_is_work_escalate_to_level_two_at_most() {
    let growing = TickLoad { queues_grew: true, ..took(0.7) };
    // Five ticks until growth counts, and five until it escalates; the second time it counts at once.
    assert_eq!(repeat(&mut at_60_hz(), growing, 1000), [(9, 1, 1), (14, 2, 1)]);
    let idle = TickLoad { queues_grew: true, ..took(0.1) };
    assert!(repeat(&mut at_60_hz(), idle, 1000).is_empty(), "an idle machine is not overloaded");
    let options = OverloadOptions { queue_growth_ticks: 0, ..OverloadOptions::default() };
    assert!(repeat(&mut Overload::new(60, &options), growing, 1000).is_empty(), "0 is never");
    let mut overload = at_60_hz();
    for _ in 0..100 {
        repeat(&mut overload, growing, 4);
        assert_eq!(overload.update(took(0.7)), None, "in a row");
    }
}

#[test]
fn b50_a_rung_to_which_the_load_returns_is_left_later_every_time() {
    let mut overload = at_60_hz();
    let mut patience = Vec::new();
    for _ in 0..9 {
        repeat(&mut overload, took(2.0), 5);
        patience.push(repeat(&mut overload, took(0.1), 2000)[0].0);
    }
    assert_eq!(patience, [20; 9], "longer than the window away");
    // The same without pause.
    let mut overload = at_60_hz();
    patience.clear();
    for _ in 0..9 {
        repeat(&mut overload, took(2.0), 5);
        let mut underruns = 1;
        while overload.update(took(0.1)).is_none() {
            underruns += 1;
        }
        patience.push(underruns);
    }
    assert_eq!(patience, [20, 40, 80, 160, 320, 640, 1280, 1280, 1280]);
    repeat(&mut overload, took(0.8), 601);
    repeat(&mut overload, took(2.0), 5);
    assert_eq!(repeat(&mut overload, took(0.1), 20), [(20, 0, 1)], "forgotten after the window");
}

#[test]
fn b54_player_shedding_is_critical_once_per_entry() {
    let mut overload = on(3, 6);
    let changes: Vec<_> = (0..100).filter_map(|_| overload.update(took(100.0))).collect();
    assert_eq!(changes.len(), 1);
    assert!(changes[0].is_critical());
    let left: Vec<_> = (0..20).filter_map(|_| overload.update(took(0.1))).collect();
    assert!(!left[0].is_critical());
    let again: Vec<_> = (0..5).filter_map(|_| overload.update(took(100.0))).collect();
    assert!(again[0].is_critical());
}

#[test]
fn changes_and_states_become_records() {
    let mut overload = on(2, 1);
    let load = TickLoad { queue_depth: u32::MAX, ..took(2.0) };
    repeat(&mut overload, load, 4);
    let event = overload.event(7);
    assert_eq!((event.tick, event.consecutive_overrun, event.overrun_ratio), (7, 4, 2.0));
    assert_eq!((event.level.0, event.multiplier, event.queue_depth), (2, 1, i32::MAX));
    let event = overload.update(load).unwrap().event().unwrap();
    assert_eq!((event.prev_lvl.0, event.new_lvl.0, event.old_mul, event.new_mul), (2, 3, 1, 2));
    assert_eq!((event.ratio, event.queue_depth), (2.0, i32::MAX));
    repeat(&mut overload, took(100.0), 4);
    let step = overload.update(took(100.0)).unwrap();
    assert_eq!((step.to.multiplier, step.event()), (3, None), "the level is the same");
}

/// The rules in their own words: level, index of the multiplier and counts, without rungs.
struct Oracle {
    level: u8,
    index: usize,
    multipliers: Vec<u8>,
    over: u32,
    under: u32,
    growth: u32,
    now: u64,
    left: std::collections::HashMap<(u8, usize), u64>,
    doublings: std::collections::HashMap<(u8, usize), u32>,
}

impl Oracle {
    fn at_60_hz() -> Self {
        Self {
            level: 0,
            index: 0,
            multipliers: vec![1, 2, 3, 4, 6],
            over: 0,
            under: 0,
            growth: 0,
            now: 0,
            left: Default::default(),
            doublings: Default::default(),
        }
    }

    fn update(&mut self, load: TickLoad) {
        self.now += 1;
        let multiplier = f32::from(self.multipliers[self.index]);
        let effective = load.base_ratio / multiplier;
        self.growth = if load.queues_grew { self.growth + 1 } else { 0 };
        let grows = self.growth >= 5 && effective >= 0.6 && self.level < 2;
        if effective > 1.2 || load.was_skipped || grows {
            self.over += 1;
            self.under = 0;
        } else if !load.was_late {
            let fits = self.index == 0 || load.base_ratio < f32::from(self.multipliers[self.index - 1]);
            if effective < 0.6 && fits {
                self.under += 1;
                self.over = 0;
            } else {
                self.over = self.over.saturating_sub(1);
                self.under = self.under.saturating_sub(1);
            }
        }
        let here = (self.level, self.index);
        let wait = 20 << self.doublings.get(&here).copied().unwrap_or(0);
        if self.over >= 5 && self.level < 4 {
            match self.level {
                0 | 1 => self.level += 1,
                2 => (self.level, self.index) = (3, 1),
                _ if self.index + 1 < self.multipliers.len() => self.index += 1,
                _ => self.level = 4,
            }
            let there = (self.level, self.index);
            let is_back = self.left.get(&there).is_some_and(|left| self.now - left <= 600);
            let doublings = self.doublings.entry(there).or_default();
            *doublings = if is_back { (*doublings + 1).min(6) } else { 0 };
            (self.over, self.under) = (0, 0);
        } else if self.under >= wait && self.level > 0 {
            self.left.insert(here, self.now);
            match self.level {
                3 if self.index > 1 => self.index -= 1,
                3 => (self.level, self.index) = (2, 0),
                _ => self.level -= 1,
            }
            (self.over, self.under) = (0, 0);
        }
    }
}

/// The same kind of tick for a while, so that runs get far enough to mean something.
fn spells() -> impl Strategy<Value = Vec<(TickLoad, u32)>> {
    let ratio = prop_oneof![0.0f32..0.6, 0.5f32..1.3, 1.0f32..8.0];
    let load = (ratio, prop::bool::weighted(0.05), prop::bool::weighted(0.1), prop::bool::weighted(0.3));
    let load = load.prop_map(|(base_ratio, was_skipped, was_late, queues_grew)| TickLoad {
        base_ratio,
        was_skipped,
        was_late,
        queues_grew,
        queue_depth: 0,
    });
    prop::collection::vec((load, 1u32..60), 1..60)
}

proptest! {
    #[test]
    fn b50_b51_level_index_and_counts_follow_the_rules(spells in spells()) {
        let (mut overload, mut oracle) = (at_60_hz(), Oracle::at_60_hz());
        for (load, times) in spells {
            for _ in 0..times {
                let before = overload.rung();
                let change = overload.update(load);
                oracle.update(load);
                prop_assert_eq!(change.is_some(), before != overload.rung());
                let event = overload.event(0);
                prop_assert_eq!((event.level.0, event.multiplier), (oracle.level, oracle.multipliers[oracle.index]));
                let counts = (event.consecutive_overrun, event.consecutive_underrun, event.consecutive_queue_growth);
                prop_assert_eq!(
                    (u32::from(counts.0), u32::from(counts.1), u32::from(counts.2)),
                    (oracle.over, oracle.under, oracle.growth)
                );
                prop_assert!(counts.0 == 0 || counts.1 == 0);
            }
        }
    }
}
