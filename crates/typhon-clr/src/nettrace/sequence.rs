use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Threads tracked at once; more than any real process has, and a bound on what a hostile stream can make us hold.
const MAX_THREADS: usize = 65_536;

/// How an event relates to the one before it on the same capture thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuity {
    /// It is the next one.
    Contiguous,
    /// The runtime dropped this many events in between (its buffer was full).
    Lost(u32),
    /// Numbering began again: another thread got the operating-system thread id of one that ended.
    Restarted,
    /// Its time lies before that of its predecessor, which no healthy stream shows; the time was raised to it.
    TimeReversed,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    sequence: u32,
    timestamp: u64,
}

/// Finds dropped events: each capture thread numbers its events from 1 without holes.
#[derive(Debug, Default)]
pub(super) struct SequenceTracker {
    threads: HashMap<u64, Last>,
    /// The table overflowed once and was emptied, so that a first number above 1 proves nothing any more.
    forgetful: bool,
}

impl SequenceTracker {
    /// Takes note of an event and says how it continues its thread. Raises a reversed `timestamp`.
    pub(super) fn on_event(&mut self, thread: u64, sequence: u32, timestamp: &mut u64) -> Continuity {
        self.make_room(thread);
        let first_is_judged = !self.forgetful;
        match self.threads.entry(thread) {
            Entry::Vacant(entry) => {
                entry.insert(Last { sequence, timestamp: *timestamp });
                let lost = sequence.wrapping_sub(1);
                if lost > 0 && first_is_judged { Continuity::Lost(lost) } else { Continuity::Contiguous }
            }
            Entry::Occupied(mut entry) => {
                let last = entry.insert(Last { sequence, timestamp: *timestamp });
                let jump = sequence.wrapping_sub(last.sequence);
                let continuity = match jump {
                    1 if *timestamp < last.timestamp => Continuity::TimeReversed,
                    1 => Continuity::Contiguous,
                    _ if sequence == 1 => Continuity::Restarted,
                    // Backwards: a new thread whose first events are already missing.
                    0 | 0x8000_0000.. => Continuity::Lost(sequence.wrapping_sub(1)),
                    _ => Continuity::Lost(jump - 1),
                };
                if *timestamp < last.timestamp {
                    *timestamp = last.timestamp;
                    entry.get_mut().timestamp = last.timestamp;
                }
                continuity
            }
        }
    }

    /// A sequence point names the number that the thread has reached; returns how many of its events never came.
    pub(super) fn on_sequence_point(&mut self, thread: u64, sequence: u32) -> u32 {
        self.make_room(thread);
        let first_is_judged = !self.forgetful;
        match self.threads.entry(thread) {
            Entry::Vacant(entry) => {
                entry.insert(Last { sequence, timestamp: 0 });
                if first_is_judged { sequence } else { 0 }
            }
            Entry::Occupied(mut entry) => {
                let ahead = sequence.wrapping_sub(entry.get().sequence);
                if ahead >= 0x8000_0000 {
                    return 0;
                }
                entry.get_mut().sequence = sequence;
                ahead
            }
        }
    }

    fn make_room(&mut self, thread: u64) {
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&thread) {
            self.threads.clear();
            self.forgetful = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn feed(tracker: &mut SequenceTracker, sequence: u32, mut timestamp: u64) -> Continuity {
        tracker.on_event(1, sequence, &mut timestamp)
    }

    #[test]
    fn first_number_jump_and_sequence_point_reveal_losses() {
        let mut tracker = SequenceTracker::default();
        assert_eq!(feed(&mut tracker, 3, 10), Continuity::Lost(2));
        assert_eq!(feed(&mut tracker, 4, 11), Continuity::Contiguous);
        assert_eq!(feed(&mut tracker, 9, 12), Continuity::Lost(4));
        assert_eq!(tracker.on_sequence_point(1, 12), 3);
        assert_eq!(tracker.on_sequence_point(1, 12), 0);
        assert_eq!(tracker.on_sequence_point(2, 5), 5);
        assert_eq!(feed(&mut tracker, 13, 14), Continuity::Contiguous);
    }

    #[test]
    fn a_reset_to_one_is_a_new_thread_and_no_loss() {
        let mut tracker = SequenceTracker::default();
        feed(&mut tracker, 1, 10);
        feed(&mut tracker, 2, 10);
        assert_eq!(feed(&mut tracker, 1, 11), Continuity::Restarted);
        assert_eq!(feed(&mut tracker, 2, 11), Continuity::Contiguous);
    }

    #[test]
    fn numbers_wrap_without_a_loss() {
        let mut tracker = SequenceTracker::default();
        feed(&mut tracker, u32::MAX, 10);
        assert_eq!(feed(&mut tracker, 0, 11), Continuity::Contiguous);
        assert_eq!(feed(&mut tracker, 1, 12), Continuity::Contiguous);
    }

    #[test]
    fn reversed_time_is_raised_and_marked() {
        let mut tracker = SequenceTracker::default();
        feed(&mut tracker, 1, 10);
        let mut timestamp = 4;
        assert_eq!(tracker.on_event(1, 2, &mut timestamp), Continuity::TimeReversed);
        assert_eq!(timestamp, 10);
    }

    #[test]
    fn endless_threads_take_bounded_memory_and_invent_no_loss() {
        let mut tracker = SequenceTracker::default();
        for thread in 0..2 * MAX_THREADS as u64 {
            assert_eq!(tracker.on_event(thread, 1, &mut 5), Continuity::Contiguous);
        }
        assert_eq!(tracker.on_event(0, 2, &mut 6), Continuity::Contiguous);
        assert!(tracker.threads.len() <= MAX_THREADS);
    }

    proptest! {
        /// I-4: whatever is dropped from a stream of numbered events is reported, no more and no less.
        #[test]
        fn i4_reported_losses_equal_drops(kept in prop::collection::vec((0u64..4, any::<bool>()), 0..200)) {
            let mut tracker = SequenceTracker::default();
            let mut sent = [0u32; 4];
            let (mut dropped, mut reported) = (0u64, 0u64);
            for (thread, keep) in kept {
                sent[thread as usize] += 1;
                if !keep {
                    dropped += 1;
                } else if let Continuity::Lost(lost) = tracker.on_event(thread, sent[thread as usize], &mut 1) {
                    reported += u64::from(lost);
                }
            }
            for (thread, sequence) in sent.iter().enumerate() {
                reported += u64::from(tracker.on_sequence_point(thread as u64, *sequence));
            }
            prop_assert_eq!(reported, dropped);
        }
    }
}
