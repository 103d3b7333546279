//! Whether ticks take too long, and when to act on it.

use super::ladder::{Ladder, Rung};
use typhon_engine::options::OverloadOptions;
use typhon_trace::event::{OverloadLevel, SchedulerOverloadDetector, SchedulerOverloadLevelChange};

/// A rung to which the load returns this many de-escalation counts after it was left, or sooner, was left too early.
const RETURN_WINDOW: u64 = 30;
/// How often the patience of a rung is doubled, at most: 64 times the usual count.
const MAX_DOUBLINGS: u32 = 6;

/// What one tick was like.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TickLoad {
    /// What the tick took, in base intervals.
    pub base_ratio: f32,
    /// Ticks were skipped before this one, since there were too many to catch up.
    pub was_skipped: bool,
    /// The tick started more than one step after its moment.
    pub was_late: bool,
    /// The queues that count grew since the last tick; see [`QueueGrowth`](super::QueueGrowth).
    pub queues_grew: bool,
    /// Events that are left in all queues.
    pub queue_depth: u32,
}

/// The state of overload. Belongs to the thread that drives the ticks, which updates it once per tick.
#[derive(Debug, Clone)]
pub struct Overload {
    options: OverloadOptions,
    ladder: Ladder,
    place: usize,
    overruns: u16,
    underruns: u16,
    growth: u16,
    /// Updates so far.
    ticks: u64,
    /// By rung.
    patience: Vec<Patience>,
    /// The load of the last tick.
    last: TickLoad,
}

/// How long a rung waits before it is left downwards.
#[derive(Debug, Clone, Copy, Default)]
struct Patience {
    doublings: u32,
    /// When it was last left downwards.
    left_at: Option<u64>,
}

/// A step on the ladder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Where it was.
    pub from: Rung,
    /// Where it is now.
    pub to: Rung,
    /// The load that decided it.
    pub load: TickLoad,
}

/// What a tick says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Overrun,
    Underrun,
    /// Neither; both counts lose one.
    Neutral,
    /// Nothing, because the tick made up for a delay of others.
    None,
}

impl Overload {
    /// In the normal state, for ticks of `base_rate_hz`.
    pub fn new(base_rate_hz: u32, options: &OverloadOptions) -> Self {
        let ladder = Ladder::new(base_rate_hz, options);
        Self {
            patience: vec![Patience::default(); ladder.rungs().len()],
            options: options.clone(),
            ladder,
            place: 0,
            overruns: 0,
            underruns: 0,
            growth: 0,
            ticks: 0,
            last: TickLoad::default(),
        }
    }

    /// The rung that is in force.
    pub fn rung(&self) -> Rung {
        self.ladder.rungs()[self.place]
    }

    /// The level that is in force.
    pub fn level(&self) -> OverloadLevel {
        self.rung().level
    }

    /// The base intervals between ticks that are in force.
    pub fn multiplier(&self) -> u8 {
        self.rung().multiplier
    }

    /// A tick has ended (brief 04 B-50). What changes holds from the next tick on.
    pub fn update(&mut self, load: TickLoad) -> Option<Change> {
        self.ticks += 1;
        self.last = load;
        self.growth = if load.queues_grew { self.growth.saturating_add(1) } else { 0 };
        match self.sign(&load) {
            Sign::Overrun => (self.overruns, self.underruns) = (self.overruns.saturating_add(1), 0),
            Sign::Underrun => (self.overruns, self.underruns) = (0, self.underruns.saturating_add(1)),
            Sign::Neutral => {
                self.overruns = self.overruns.saturating_sub(1);
                self.underruns = self.underruns.saturating_sub(1);
            }
            Sign::None => {}
        }
        if self.overruns >= self.options.escalation_ticks && self.place + 1 < self.ladder.rungs().len() {
            return Some(self.escalate(load));
        }
        if self.place > 0 && u64::from(self.underruns) >= self.deescalation_count() {
            return Some(self.deescalate(load));
        }
        None
    }

    fn sign(&self, load: &TickLoad) -> Sign {
        let multiplier = f32::from(self.multiplier());
        let effective = load.base_ratio / multiplier;
        let wanted = self.options.queue_growth_ticks;
        let is_backlog = wanted > 0 && self.growth >= wanted && effective >= self.options.deescalation_ratio;
        // Stretching ticks does not empty a queue.
        let counts_backlog = self.level() < OverloadLevel::SCOPE_REDUCTION;
        if effective > self.options.overrun_threshold || load.was_skipped || is_backlog && counts_backlog {
            return Sign::Overrun;
        }
        if load.was_late {
            return Sign::None;
        }
        // The load must fit into the shorter ticks that it would get.
        let fits = self.next_lower_multiplier().is_none_or(|lower| load.base_ratio < f32::from(lower));
        if effective < self.options.deescalation_ratio && fits { Sign::Underrun } else { Sign::Neutral }
    }

    /// What the ticks would be stretched by one multiplier further down; `None` if they are not stretched.
    fn next_lower_multiplier(&self) -> Option<u8> {
        let below = self.ladder.rungs()[..self.place].iter().rev();
        below.map(|rung| rung.multiplier).find(|&multiplier| multiplier < self.multiplier())
    }

    /// Underruns after which the present rung is left.
    fn deescalation_count(&self) -> u64 {
        u64::from(self.options.deescalation_ticks) << self.patience[self.place].doublings
    }

    fn escalate(&mut self, load: TickLoad) -> Change {
        let change = self.step_to(self.place + 1, load);
        let window = RETURN_WINDOW * u64::from(self.options.deescalation_ticks);
        let patience = &mut self.patience[self.place];
        let was_left_too_early = patience.left_at.is_some_and(|left_at| self.ticks - left_at <= window);
        patience.doublings = if was_left_too_early { (patience.doublings + 1).min(MAX_DOUBLINGS) } else { 0 };
        change
    }

    fn deescalate(&mut self, load: TickLoad) -> Change {
        self.patience[self.place].left_at = Some(self.ticks);
        self.step_to(self.place - 1, load)
    }

    fn step_to(&mut self, place: usize, load: TickLoad) -> Change {
        let from = self.rung();
        self.place = place;
        (self.overruns, self.underruns) = (0, 0);
        Change { from, to: self.rung(), load }
    }

    /// The state after an update as a record (kind 242).
    pub fn event(&self, tick: i64) -> SchedulerOverloadDetector {
        SchedulerOverloadDetector {
            tick,
            overrun_ratio: self.last.base_ratio,
            consecutive_overrun: self.overruns,
            consecutive_underrun: self.underruns,
            consecutive_queue_growth: self.growth,
            queue_depth: depth(self.last.queue_depth),
            level: self.level(),
            multiplier: self.multiplier(),
        }
    }
}

impl Change {
    /// The change as a record (kind 156); `None` if the level is the same and only the multiplier changed.
    pub fn event(&self) -> Option<SchedulerOverloadLevelChange> {
        (self.from.level != self.to.level).then_some(SchedulerOverloadLevelChange {
            prev_lvl: self.from.level,
            new_lvl: self.to.level,
            ratio: self.load.base_ratio,
            queue_depth: depth(self.load.queue_depth),
            old_mul: self.from.multiplier,
            new_mul: self.to.multiplier,
        })
    }

    /// Has this step led into player shedding (brief 04 B-54)?
    pub fn is_critical(&self) -> bool {
        self.to.level == OverloadLevel::PLAYER_SHEDDING
    }
}

/// A depth as records have it.
fn depth(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
