//! The ring of the last ticks, with its writing and its reading end.

use super::record::{SYSTEM_WORDS, SystemTelemetry, TICK_WORDS, TickTelemetry};
use super::slots::Slots;
use crate::SystemIndex;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use typhon_sync::atomic::AtomicU64;

/// A ring for the last `capacity` ticks, rounded up to a power of two, of a schedule with this many systems.
pub fn telemetry_ring(capacity: usize, system_count: usize) -> (TelemetryWriter, Telemetry) {
    let words = TICK_WORDS + SYSTEM_WORDS * system_count;
    let ring = Arc::new(Ring {
        slots: Slots::new(capacity.max(1).next_power_of_two(), words),
        newest: AtomicI64::new(0),
        system_count,
    });
    (TelemetryWriter(Arc::clone(&ring)), Telemetry(ring))
}

#[derive(Debug)]
struct Ring {
    slots: Slots,
    /// The last tick written; 0 before the first.
    newest: AtomicI64,
    system_count: usize,
}

/// The writing end. There is one.
#[derive(Debug)]
pub struct TelemetryWriter(Arc<Ring>);

impl TelemetryWriter {
    /// Adds a tick, whose number is one more than the last one's, with its systems by index. How many of them were
    /// active is counted here.
    #[inline]
    pub fn record(&mut self, mut tick: TickTelemetry, systems: impl IntoIterator<Item = SystemTelemetry>) {
        debug_assert_eq!(tick.tick, self.0.newest.load(Ordering::Relaxed) + 1);
        self.0.slots.write(tick.tick as u64, |words| {
            let (head, rest) = words.split_at(TICK_WORDS);
            let (rest, _) = rest.as_chunks::<SYSTEM_WORDS>();
            tick.active_systems = 0;
            for (words, system) in rest.iter().zip(systems) {
                tick.active_systems += u16::from(system.workers > 0);
                store(words, system.to_words());
            }
            store(head, tick.to_words());
        });
        self.0.newest.store(tick.tick, Ordering::Release);
    }
}

fn store(words: &[AtomicU64], values: impl IntoIterator<Item = u64>) {
    words.iter().zip(values).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
}

/// Why there are no numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TelemetryError {
    /// The tick is not kept any more, or has not ended yet.
    #[error("tick {asked} is not kept; ticks {oldest} to {newest} are")]
    OutOfWindow {
        /// The tick that was asked for.
        asked: i64,
        /// The first tick that is kept.
        oldest: i64,
        /// The last tick that ended.
        newest: i64,
    },
    /// No tick has ended yet.
    #[error("no tick has ended yet")]
    Empty,
    /// The schedule has no such system.
    #[error("the schedule has {count} systems, and none with the number {asked}")]
    NoSuchSystem {
        /// The system that was asked for.
        asked: SystemIndex,
        /// Systems of the schedule.
        count: usize,
    },
}

/// The reading end, for any number of threads.
#[derive(Debug, Clone)]
pub struct Telemetry(Arc<Ring>);

impl Telemetry {
    /// Ticks that are kept at the moment; they may be gone the next.
    pub fn window(&self) -> Option<RangeInclusive<i64>> {
        let newest = self.0.newest.load(Ordering::Acquire);
        (newest > 0).then(|| (newest - self.0.slots.count() as i64 + 1).max(1)..=newest)
    }

    /// One tick.
    ///
    /// # Errors
    /// The tick is not kept.
    pub fn tick(&self, tick: i64) -> Result<TickTelemetry, TelemetryError> {
        let mut words = [0; TICK_WORDS];
        self.read(tick, 0, &mut words)?;
        Ok(TickTelemetry::from_words(words))
    }

    /// The last tick that ended.
    ///
    /// # Errors
    /// There is none.
    pub fn latest(&self) -> Result<TickTelemetry, TelemetryError> {
        loop {
            let newest = self.0.newest.load(Ordering::Acquire);
            // It can only be gone if the whole ring was written since; then there is a newer one.
            match self.tick(newest) {
                Err(TelemetryError::OutOfWindow { .. }) => std::hint::spin_loop(),
                result => return result,
            }
        }
    }

    /// One system in one tick.
    ///
    /// # Errors
    /// The tick is not kept, or there is no such system.
    pub fn system(&self, tick: i64, system: SystemIndex) -> Result<SystemTelemetry, TelemetryError> {
        let count = self.0.system_count;
        if system.as_usize() >= count {
            return Err(TelemetryError::NoSuchSystem { asked: system, count });
        }
        let mut words = [0; SYSTEM_WORDS];
        self.read(tick, TICK_WORDS + SYSTEM_WORDS * system.as_usize(), &mut words)?;
        Ok(SystemTelemetry::from_words(words))
    }

    /// A tick with all of its systems, all from the same moment.
    ///
    /// # Errors
    /// The tick is not kept.
    pub fn tick_with_systems(
        &self,
        tick: i64,
    ) -> Result<(TickTelemetry, Vec<SystemTelemetry>), TelemetryError> {
        let mut words = vec![0; TICK_WORDS + SYSTEM_WORDS * self.0.system_count];
        self.read(tick, 0, &mut words)?;
        let (head, rest) = words.split_at(TICK_WORDS);
        let head = std::array::from_fn(|word| head[word]);
        let (systems, _) = rest.as_chunks::<SYSTEM_WORDS>();
        let systems = systems.iter().map(|words| SystemTelemetry::from_words(*words)).collect();
        Ok((TickTelemetry::from_words(head), systems))
    }

    fn read(&self, tick: i64, first: usize, into: &mut [u64]) -> Result<(), TelemetryError> {
        let window = self.window().ok_or(TelemetryError::Empty)?;
        if window.contains(&tick) && self.0.slots.read(tick as u64, first, into) {
            return Ok(());
        }
        let (oldest, newest) = self.window().unwrap_or(window).into_inner();
        Err(TelemetryError::OutOfWindow { asked: tick, oldest, newest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SkipReason;
    use std::sync::atomic::AtomicBool;
    use typhon_trace::event::OverloadLevel;

    /// A tick all of whose numbers follow from its own.
    fn tick(number: i64) -> TickTelemetry {
        let small = (number % 251) as u8;
        let float = number as f32;
        TickTelemetry {
            tick: number,
            target_ms: float,
            actual_ms: float + 1.0,
            overrun_ratio: float + 2.0,
            interval_ms: float + 3.0,
            late_ms: float + 4.0,
            active_workers: u16::from(small),
            active_systems: if small > 0 { 3 } else { 0 },
            level: OverloadLevel(small),
            multiplier: small,
            queue_depth: number as u32 + 5,
            overflow_count: number as u32 + 6,
            missed_ticks: number as u32 + 7,
        }
    }

    fn system(number: i64, index: u16) -> SystemTelemetry {
        let float = (number + i64::from(index)) as f32;
        SystemTelemetry {
            transition_latency_us: float,
            duration_us: float + 1.0,
            straggler_gap_us: float + 2.0,
            workers: (number % 251) as u8,
            skip_reason: SkipReason((number % 9) as u8),
        }
    }

    fn record(writer: &mut TelemetryWriter, number: i64) {
        writer.record(tick(number), (0..3).map(|index| system(number, index)));
    }

    #[test]
    fn b56_the_last_ticks_are_readable_and_others_are_errors() {
        let (mut writer, telemetry) = telemetry_ring(4, 3);
        assert_eq!(telemetry.latest(), Err(TelemetryError::Empty));
        assert_eq!((telemetry.tick(1), telemetry.window()), (Err(TelemetryError::Empty), None));
        (1..=9).for_each(|number| record(&mut writer, number));
        assert_eq!(telemetry.window(), Some(6..=9));
        assert_eq!(telemetry.latest(), Ok(tick(9)));
        for number in 6..=9 {
            assert_eq!(telemetry.tick(number), Ok(tick(number)));
            assert_eq!(telemetry.system(number, SystemIndex::new(2)), Ok(system(number, 2)));
            let systems = (0..3).map(|index| system(number, index)).collect();
            assert_eq!(telemetry.tick_with_systems(number), Ok((tick(number), systems)));
        }
        for asked in [-1, 5, 10, i64::MAX] {
            let error = TelemetryError::OutOfWindow { asked, oldest: 6, newest: 9 };
            assert_eq!(telemetry.tick(asked), Err(error));
            assert_eq!(error.to_string(), format!("tick {asked} is not kept; ticks 6 to 9 are"));
        }
        let error = TelemetryError::NoSuchSystem { asked: SystemIndex::new(3), count: 3 };
        assert_eq!(telemetry.system(9, SystemIndex::new(3)), Err(error));
    }

    #[test]
    fn b56_a_young_ring_has_a_short_window() {
        let (mut writer, telemetry) = telemetry_ring(1000, 3);
        record(&mut writer, 1);
        record(&mut writer, 2);
        assert_eq!(telemetry.window(), Some(1..=2));
    }

    #[test]
    fn b56_no_read_is_torn_while_ticks_are_written() {
        const TICKS: i64 = 100_000;
        let (mut writer, telemetry) = telemetry_ring(4, 3);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut whole = 0;
                        while !is_over.load(Ordering::Relaxed) {
                            let Some(window) = telemetry.window() else { continue };
                            for number in window {
                                let Ok((read, systems)) = telemetry.tick_with_systems(number) else {
                                    continue;
                                };
                                whole += 1;
                                assert_eq!(read, tick(number));
                                let expected = (0..3).map(|index| system(number, index));
                                assert!(systems.into_iter().eq(expected), "tick {number} is torn");
                            }
                        }
                        whole
                    })
                })
                .collect();
            (1..=TICKS).for_each(|number| record(&mut writer, number));
            is_over.store(true, Ordering::Relaxed);
            let whole: u64 = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
            assert!(telemetry.latest().is_ok(), "{whole} reads were whole");
        });
    }
}
