//! A watermark that follows numbers as they are filled, without gaps.
//!
//! Each number has a slot in a ring. Who fills one stores the number there, fences, and then moves the watermark over all
//! that is filled. Without the fence two could each miss the other's slot, and nobody would move it.
#![forbid(unsafe_code)]

use crate::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use crate::context::{Stop, WaitContext};
use crate::fault::{Fault, planted, unless};
use crate::wait::wake_all;
use crate::waiter::AdaptiveWaiter;
use thiserror::Error;

/// Why a number was not filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SequenceError {
    /// It was filled before.
    #[error("number {number} has been filled before")]
    FilledBefore {
        /// The number.
        number: u64,
    },
    /// It is further ahead of the watermark than the ring is long: more numbers are under way than the gate was made for.
    #[error("number {number} is more than {capacity} ahead of {published}")]
    TooFarAhead {
        /// The number.
        number: u64,
        /// The watermark.
        published: u64,
        /// Length of the ring.
        capacity: u64,
    },
}

/// The greatest number up to which all are filled. What a thread did before it filled a number is seen by whoever sees a
/// watermark that has reached it.
///
/// ```
/// use typhon_sync::gate::SequenceGate;
///
/// let gate = SequenceGate::new(64, 0);
/// gate.fill(2)?;
/// assert_eq!(gate.published(), 0);
/// gate.fill(1)?;
/// assert_eq!(gate.published(), 2);
/// # Ok::<(), typhon_sync::gate::SequenceError>(())
/// ```
#[derive(Debug)]
pub struct SequenceGate {
    published: Line<AtomicU64>,
    /// Threads that wait, and a word that they block on, changed whenever the watermark moves while some do.
    waiters: Line<(AtomicU32, AtomicU32)>,
    /// Each holds the last number of its place in the ring that was filled.
    ring: Box<[AtomicU64]>,
}

#[derive(Debug)]
#[repr(align(64))]
struct Line<T>(T);

impl SequenceGate {
    /// A gate whose watermark is `published`, for at least `capacity` numbers under way: twice as many as transactions can
    /// be active.
    pub fn new(capacity: usize, published: u64) -> Self {
        Self {
            published: Line(AtomicU64::new(published)),
            waiters: Line((AtomicU32::new(0), AtomicU32::new(0))),
            ring: (0..capacity.max(2).next_power_of_two()).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The watermark.
    #[inline]
    pub fn published(&self) -> u64 {
        self.published.0.load(Ordering::Acquire)
    }

    /// Fills a number, which is above the watermark, and moves the watermark as far as it goes. Each number is filled once,
    /// and every one that was given out is.
    ///
    /// # Errors
    /// [`SequenceError::FilledBefore`], [`SequenceError::TooFarAhead`]; nothing has changed.
    pub fn fill(&self, number: u64) -> Result<(), SequenceError> {
        self.check(number)?;
        let slot = self.slot(number);
        if slot.swap(number, unless(Fault::FillRelaxed, Ordering::Release)) == number {
            return Err(SequenceError::FilledBefore { number });
        }
        if !planted(Fault::FillUnfenced) {
            fence(Ordering::SeqCst);
        }
        self.advance();
        Ok(())
    }

    fn check(&self, number: u64) -> Result<(), SequenceError> {
        let published = self.published();
        let capacity = self.ring.len() as u64;
        if number <= published {
            Err(SequenceError::FilledBefore { number })
        } else if number - published > capacity {
            Err(SequenceError::TooFarAhead { number, published, capacity })
        } else {
            Ok(())
        }
    }

    fn slot(&self, number: u64) -> &AtomicU64 {
        &self.ring[(number as usize) & (self.ring.len() - 1)]
    }

    fn advance(&self) {
        let mut has_moved = false;
        let mut published = self.published.0.load(Ordering::Acquire);
        loop {
            let next = published + 1;
            let is_filled = self.slot(next).load(Ordering::Acquire) == next;
            if !is_filled && (has_moved || !planted(Fault::AdvanceBlind)) {
                break;
            }
            let order = unless(Fault::AdvanceRelaxed, Ordering::AcqRel);
            match self.published.0.compare_exchange(published, next, order, Ordering::Acquire) {
                Ok(_) => (published, has_moved) = (next, true),
                Err(now) => published = now,
            }
        }
        if has_moved {
            self.wake();
        }
    }

    fn wake(&self) {
        if !planted(Fault::WaitersUnfenced) {
            fence(Ordering::SeqCst);
        }
        let (waiting, word) = &self.waiters.0;
        if waiting.load(Ordering::Relaxed) > 0 {
            word.fetch_add(1, Ordering::Release);
            wake_all(word);
        }
    }

    /// Waits until the watermark has reached a number.
    ///
    /// # Errors
    /// The reason why the wait was given up.
    pub fn wait_published(&self, number: u64, context: &WaitContext<'_>) -> Result<(), Stop> {
        if self.published() >= number {
            return Ok(());
        }
        let (waiting, word) = &self.waiters.0;
        waiting.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let mut waiter = AdaptiveWaiter::new();
        let end = loop {
            let seen = word.load(Ordering::Acquire);
            if self.published() >= number {
                break Ok(());
            }
            if let Some(stop) = context.should_stop() {
                break Err(stop);
            }
            waiter.wait(word, seen, context);
        };
        waiting.fetch_sub(1, Ordering::Relaxed);
        end
    }
}
