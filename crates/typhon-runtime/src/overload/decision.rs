//! What the level of overload means for one system.

use crate::graph::{Graph, SystemNode};
use crate::{Priority, SkipReason, SystemIndex};
use typhon_trace::event::{OverloadLevel, SchedulerOverloadSystemShed, SystemShedDecision};

/// What a system declares about being left out, and its place in the stagger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemLoad {
    /// How much it matters.
    pub priority: Priority,
    /// It runs in one of this many ticks, at least 1.
    pub tick_divisor: u32,
    /// The same while the load is too high, at least 1.
    pub throttled_tick_divisor: u32,
    /// It may be left out altogether while the load is too high.
    pub can_shed: bool,
    /// Of all ticks in which it could run, which ones; see [`stagger_offsets`].
    pub offset: u16,
}

/// Does a system run, as far as divisors and overload are concerned?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It does.
    Run,
    /// It is not its turn; that is so at every level.
    Divided,
    /// It is not its turn because of the load: it runs in one of this many ticks.
    Throttled {
        /// Ticks of which one is its turn.
        divisor: u32,
    },
    /// It does not run at this level.
    Shed,
}

impl SystemLoad {
    /// What the schedule says about a system, with its offset.
    pub fn of(system: &SystemNode, offset: u16) -> Self {
        Self {
            priority: system.priority,
            tick_divisor: system.tick_divisor,
            throttled_tick_divisor: system.throttled_tick_divisor,
            can_shed: system.can_shed,
            offset,
        }
    }

    /// Does the system run in this tick (brief 04 B-52)?
    pub fn decide(&self, level: OverloadLevel, tick: i64) -> Decision {
        let is_overloaded = level > OverloadLevel::NORMAL;
        let may_throttle = matches!(self.priority, Priority::Normal | Priority::Low);
        if is_overloaded && self.priority == Priority::Low && self.can_shed {
            return Decision::Shed;
        }
        if is_overloaded && may_throttle && self.throttled_tick_divisor > 1 {
            let divisor = self.tick_divisor.max(self.throttled_tick_divisor);
            return if self.is_turn(tick, divisor) { Decision::Run } else { Decision::Throttled { divisor } };
        }
        if self.is_turn(tick, self.tick_divisor) { Decision::Run } else { Decision::Divided }
    }

    /// Is there a level or a tick at which it does not run?
    pub fn is_ever_left_out(&self) -> bool {
        let may_throttle = matches!(self.priority, Priority::Normal | Priority::Low);
        let may_shed = self.priority == Priority::Low && self.can_shed;
        self.tick_divisor > 1 || may_shed || may_throttle && self.throttled_tick_divisor > 1
    }

    /// What is recorded about a system whose own gate says no (kind 157); `None` while there is no overload.
    pub fn refusal_event(
        &self,
        system: SystemIndex,
        level: OverloadLevel,
    ) -> Option<SchedulerOverloadSystemShed> {
        let divisor = u16::try_from(self.tick_divisor).unwrap_or(u16::MAX);
        let decision = SystemShedDecision::SHOULD_RUN_FALSE;
        (level > OverloadLevel::NORMAL).then_some(SchedulerOverloadSystemShed {
            sys_idx: system.get(),
            level,
            divisor,
            decision,
        })
    }

    fn is_turn(&self, tick: i64, divisor: u32) -> bool {
        (tick + i64::from(self.offset)) % i64::from(divisor.max(1)) == 0
    }
}

impl Decision {
    /// Why the system does not run; `None` if it does.
    pub fn skip_reason(self) -> Option<SkipReason> {
        match self {
            Self::Run => None,
            Self::Divided | Self::Throttled { .. } => Some(SkipReason::THROTTLED),
            Self::Shed => Some(SkipReason::SHED),
        }
    }

    /// What is recorded about a system that overload leaves out (kind 157); `None` if it is not overload that does.
    pub fn event(self, system: SystemIndex, level: OverloadLevel) -> Option<SchedulerOverloadSystemShed> {
        let (divisor, decision) = match self {
            Self::Run | Self::Divided => return None,
            Self::Throttled { divisor } => (divisor, SystemShedDecision::THROTTLED),
            Self::Shed => (0, SystemShedDecision::SHED),
        };
        let divisor = u16::try_from(divisor).unwrap_or(u16::MAX);
        Some(SchedulerOverloadSystemShed { sys_idx: system.get(), level, divisor, decision })
    }
}

/// The offset of each system of a graph: its own index, so that systems with the same divisor take turns, but the lowest
/// index among systems that queues join: a consumer that runs in other ticks than its producer would never see an event.
pub fn stagger_offsets(graph: &Graph) -> Vec<u16> {
    let mut lowest: Vec<usize> = (0..graph.systems().len()).collect();
    for queue in graph.queues() {
        let mut users = queue.producers.iter().chain(&queue.consumers).map(|system| system.as_usize());
        if let Some(first) = users.next() {
            users.for_each(|user| join(&mut lowest, first, user));
        }
    }
    (0..lowest.len()).map(|system| root(&mut lowest, system) as u16).collect()
}

fn root(lowest: &mut [usize], mut system: usize) -> usize {
    while lowest[system] != system {
        lowest[system] = lowest[lowest[system]];
        system = lowest[system];
    }
    system
}

fn join(lowest: &mut [usize], one: usize, other: usize) {
    let (one, other) = (root(lowest, one), root(lowest, other));
    lowest[one.max(other)] = one.min(other);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVELS: [OverloadLevel; 5] = [
        OverloadLevel::NORMAL,
        OverloadLevel::SYSTEM_THROTTLING,
        OverloadLevel::SCOPE_REDUCTION,
        OverloadLevel::TICK_RATE_MODULATION,
        OverloadLevel::PLAYER_SHEDDING,
    ];

    fn system(priority: Priority, can_shed: bool) -> SystemLoad {
        SystemLoad { priority, tick_divisor: 2, throttled_tick_divisor: 4, can_shed, offset: 0 }
    }

    #[test]
    fn b52_critical_and_high_systems_are_never_touched() {
        for level in LEVELS {
            for priority in [Priority::Critical, Priority::High] {
                let decisions = [0, 1, 2, 3].map(|tick| system(priority, true).decide(level, tick));
                let every_other = [Decision::Run, Decision::Divided, Decision::Run, Decision::Divided];
                assert_eq!(decisions, every_other);
            }
        }
    }

    #[test]
    fn b52_low_systems_that_can_be_shed_are_shed_from_level_one_on() {
        let low = system(Priority::Low, true);
        assert_eq!(low.decide(OverloadLevel::NORMAL, 0), Decision::Run);
        for level in &LEVELS[1..] {
            assert_eq!((0..8).filter(|&tick| low.decide(*level, tick) == Decision::Shed).count(), 8);
        }
        assert_eq!(system(Priority::Normal, true).decide(LEVELS[1], 0), Decision::Run, "only low ones");
    }

    #[test]
    fn b52_normal_and_low_systems_are_throttled_by_the_larger_divisor() {
        for priority in [Priority::Normal, Priority::Low] {
            let throttled = system(priority, false);
            let decisions = [0, 1, 2, 3, 4].map(|tick| throttled.decide(LEVELS[1], tick));
            let skipped = Decision::Throttled { divisor: 4 };
            assert_eq!(decisions, [Decision::Run, skipped, skipped, skipped, Decision::Run]);
            let slower = SystemLoad { tick_divisor: 8, ..throttled };
            assert_eq!(slower.decide(LEVELS[1], 4), Decision::Throttled { divisor: 8 });
            let unthrottled = SystemLoad { throttled_tick_divisor: 1, ..throttled };
            assert_eq!(unthrottled.decide(LEVELS[4], 1), Decision::Divided);
        }
    }

    #[test]
    fn b52_systems_with_the_same_divisor_take_turns() {
        let systems = [0, 1, 2, 3].map(|offset| SystemLoad { offset, ..system(Priority::Normal, false) });
        for tick in 0..100 {
            let running = systems.iter().filter(|load| load.decide(LEVELS[1], tick) == Decision::Run);
            assert_eq!(running.count(), 1);
        }
    }

    #[test]
    fn b52_what_is_never_left_out_needs_no_gate() {
        for priority in [Priority::Critical, Priority::High, Priority::Normal, Priority::Low] {
            for (tick_divisor, throttled_tick_divisor, can_shed) in
                [(1, 1, false), (1, 1, true), (1, 4, false), (2, 1, false)]
            {
                let load = SystemLoad { priority, tick_divisor, throttled_tick_divisor, can_shed, offset: 0 };
                let is_left_out = LEVELS
                    .into_iter()
                    .any(|level| (0..8).any(|tick| load.decide(level, tick) != Decision::Run));
                assert_eq!(load.is_ever_left_out(), is_left_out, "{load:?}");
            }
        }
    }

    #[test]
    fn b52_decisions_become_skip_reasons_and_records() {
        let index = SystemIndex::new(7);
        let throttled = Decision::Throttled { divisor: 100_000 };
        assert_eq!(throttled.skip_reason(), Some(SkipReason::THROTTLED));
        assert_eq!(Decision::Divided.skip_reason(), Some(SkipReason::THROTTLED));
        assert_eq!(Decision::Shed.skip_reason(), Some(SkipReason::SHED));
        assert_eq!(Decision::Run.skip_reason(), None);
        let event = throttled.event(index, LEVELS[2]).unwrap();
        assert_eq!((event.sys_idx, event.level, event.divisor), (7, LEVELS[2], u16::MAX));
        assert_eq!(event.decision, SystemShedDecision::THROTTLED);
        assert_eq!(Decision::Shed.event(index, LEVELS[1]).unwrap().decision, SystemShedDecision::SHED);
        assert!(Decision::Divided.event(index, LEVELS[1]).is_none());
        assert!(Decision::Run.event(index, LEVELS[1]).is_none());
        let load = system(Priority::Critical, false);
        assert!(load.refusal_event(index, LEVELS[0]).is_none());
        let refusal = load.refusal_event(index, LEVELS[3]).unwrap();
        assert_eq!((refusal.decision, refusal.divisor), (SystemShedDecision::SHOULD_RUN_FALSE, 2));
    }
}
