//! Waiting for the next tick.

use super::grid::Grid;
use super::metrics::TimerMetrics;
use std::sync::Arc;
use typhon_profiler::trace_clock_ns;
use typhon_sync::atomic::{AtomicU32, Ordering};
use typhon_sync::clock::Clock;
use typhon_sync::sleep::PreciseSleep;
use typhon_trace::event::{
    MetronomeIntentClass, MetronomePhaseFlags, SchedulerMetronomeWait, SchedulerOverloadTickMultiplier,
};

/// Has ticks start on time. Belongs to the thread that drives them.
#[derive(Debug)]
pub struct Metronome {
    clock: Arc<dyn Clock>,
    grid: Grid,
    sleep: PreciseSleep,
    metrics: TimerMetrics,
}

/// One wait for a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickWait {
    /// When the tick is due, on the metronome's clock.
    pub target_ns: i64,
    /// By how much the wait ended after that; negative when it was interrupted.
    pub late_ns: i64,
    /// Base intervals between two ticks.
    pub multiplier: u8,
    /// Base intervals since the previous target, skipped ones included.
    pub intervals: u64,
    /// Ticks that were skipped because there was too much to catch up.
    pub missed_ticks: u64,
    /// Why it waited this long.
    pub intent: MetronomeIntentClass,
    /// How it waited.
    pub phases: MetronomePhaseFlags,
    /// The word has changed; there is no tick.
    pub is_interrupted: bool,
}

impl Metronome {
    /// Starts now. The first tick is due one base interval later.
    pub fn start(clock: Arc<dyn Clock>, base_rate_hz: u32, max_catch_up_ticks: u32) -> Self {
        let grid = Grid::new(clock.now_ns(), base_rate_hz, max_catch_up_ticks);
        Self { clock, grid, sleep: PreciseSleep::new(), metrics: TimerMetrics::default() }
    }

    /// Waits for the tick that is due `multiplier` base intervals after the previous one, at least 1. There is
    /// none once `word` is no longer `expected`; whoever changes it wakes with [`Clock::wake_all`].
    pub fn wait(&mut self, multiplier: u8, word: &AtomicU32, expected: u32) -> TickWait {
        let multiplier = multiplier.max(1);
        let now_ns = self.clock.now_ns();
        let target = self.grid.advance(now_ns, multiplier);
        let intent = match target.at_ns {
            at_ns if at_ns <= now_ns => MetronomeIntentClass::CATCH_UP,
            _ if multiplier > 1 => MetronomeIntentClass::THROTTLED,
            _ => MetronomeIntentClass::HEADROOM,
        };
        let slept = self.sleep.sleep_until_or_woken(&*self.clock, target.at_ns, word, expected);
        // Spinning does not look at the word, and a tick that is late does not wait for it.
        let is_interrupted = word.load(Ordering::Acquire) != expected;
        if !is_interrupted {
            self.metrics.record(slept.late_ns, target.missed_ticks);
        }
        let entered = |is_entered, flag| if is_entered { flag } else { MetronomePhaseFlags(0) };
        let phases = entered(slept.slept, MetronomePhaseFlags::SLEEP_ENTERED)
            | entered(slept.spun, MetronomePhaseFlags::SPIN_ENTERED);
        TickWait {
            target_ns: target.at_ns,
            late_ns: slept.late_ns,
            multiplier,
            intervals: target.intervals,
            missed_ticks: target.missed_ticks,
            intent,
            phases,
            is_interrupted,
        }
    }

    /// The clock that it runs on.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// How well it kept its time so far.
    pub fn metrics(&self) -> TimerMetrics {
        self.metrics
    }

    /// Base interval between two ticks, rounded down to a nanosecond.
    pub fn interval_ns(&self) -> i64 {
        self.grid.interval_ns()
    }
}

impl TickWait {
    /// The payload of the wait's span (kind 241). Only for a metronome on the system's clock: traces know no other.
    pub fn event(&self) -> SchedulerMetronomeWait {
        SchedulerMetronomeWait {
            scheduled_timestamp: trace_clock_ns(self.target_ns),
            multiplier: self.multiplier,
            intent_class: self.intent,
            phase_flags: self.phases,
        }
    }

    /// What the metronome did about this tick (kind 158).
    pub fn multiplier_event(&self, tick: i64) -> SchedulerOverloadTickMultiplier {
        let interval_ticks = u8::try_from(self.intervals).unwrap_or(u8::MAX);
        SchedulerOverloadTickMultiplier { tick, multiplier: self.multiplier, interval_ticks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use typhon_sync::clock::VirtualClock;

    const MS: i64 = 1_000_000;
    const START: i64 = 1_000 * MS;

    /// Ten ticks per second from `START`, and the word that interrupts.
    fn ten_hertz() -> (Arc<VirtualClock>, Metronome, AtomicU32) {
        let clock = Arc::new(VirtualClock::new(START));
        let metronome = Metronome::start(clock.clone(), 10, 4);
        (clock, metronome, AtomicU32::new(0))
    }

    #[test]
    fn b25_b26_a_wait_sleeps_then_spins_and_says_so() {
        for (multiplier, intent) in
            [(1, MetronomeIntentClass::HEADROOM), (2, MetronomeIntentClass::THROTTLED)]
        {
            let (clock, mut metronome, word) = ten_hertz();
            clock.advance_ns(100 * MS);
            metronome.wait(1, &word, 0);
            let target_ns = START + 100 * MS * (1 + i64::from(multiplier));
            std::thread::scope(|scope| {
                let waiting = scope.spawn(|| metronome.wait(multiplier, &word, 0));
                // 150 µs are left for spinning while nothing is known about the machine.
                clock.await_next_moment_ns(target_ns - 150_000);
                clock.advance_to_ns(target_ns - 140_000);
                clock.await_next_moment_ns(target_ns);
                clock.advance_to_ns(target_ns + 7);
                let wait = waiting.join().unwrap();
                assert_eq!((wait.target_ns, wait.late_ns, wait.intent), (target_ns, 7, intent));
                let both = MetronomePhaseFlags::SLEEP_ENTERED | MetronomePhaseFlags::SPIN_ENTERED;
                assert_eq!(wait.phases, both);
            });
        }
    }

    #[test]
    fn b26_a_target_in_the_past_is_catch_up_even_when_throttled() {
        let (clock, mut metronome, word) = ten_hertz();
        clock.advance_ns(450 * MS);
        metronome.wait(1, &word, 0);
        let wait = metronome.wait(2, &word, 0);
        assert_eq!((wait.intent, wait.phases.0), (MetronomeIntentClass::CATCH_UP, 0));
        assert_eq!(wait.late_ns, 150 * MS);
    }

    #[test]
    fn trap18_a_suspend_is_caught_up_within_bounds() {
        let (clock, mut metronome, word) = ten_hertz();
        clock.advance_ns(3_600_000 * MS);
        let waits: Vec<_> = (0..5).map(|_| metronome.wait(1, &word, 0)).collect();
        let missed: Vec<_> = waits.iter().map(|wait| wait.missed_ticks).collect();
        assert_eq!(missed, [36_000 - 1 - 4, 0, 0, 0, 0]);
        assert_eq!(waits[4].late_ns, 0, "on the grid again");
        let metrics = metronome.metrics();
        assert_eq!((metrics.ticks, metrics.missed_ticks, metrics.max_error_us), (5, 35_995, 400_000.0));
    }

    #[test]
    fn b59_a_wait_can_be_interrupted_and_counts_as_no_tick() {
        let (clock, mut metronome, word) = ten_hertz();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| metronome.wait(1, &word, 0));
            clock.await_waiting(1);
            word.store(1, Ordering::Release);
            clock.wake_all(&word);
            assert!(waiting.join().unwrap().is_interrupted);
        });
        assert_eq!(metronome.metrics().ticks, 0);
    }

    #[test]
    fn b59_a_late_tick_is_interrupted_too() {
        let (clock, mut metronome, word) = ten_hertz();
        clock.advance_ns(450 * MS);
        word.store(1, Ordering::Release);
        assert!(metronome.wait(1, &word, 0).is_interrupted);
        assert_eq!(metronome.metrics().ticks, 0);
    }

    #[test]
    fn waits_become_records() {
        let (clock, mut metronome, word) = ten_hertz();
        clock.advance_ns(3_600_000 * MS);
        let wait = metronome.wait(1, &word, 0);
        let event = wait.multiplier_event(9);
        assert_eq!(
            (event.tick, event.multiplier, event.interval_ticks),
            (9, 1, 255),
            "255 is as far as it counts"
        );
        let event = wait.event();
        assert_eq!(event.scheduled_timestamp, trace_clock_ns(wait.target_ns));
        assert_eq!(event.intent_class, MetronomeIntentClass::CATCH_UP);
    }
}
