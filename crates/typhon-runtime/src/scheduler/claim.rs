//! Who runs which chunk of a system: one word per system, claimed by compare-and-swap (B-32, B-33).
//!
//! A worker may be descheduled anywhere, also between looking at a word and claiming from it, and come back in a later
//! tick. So the word carries its tick: a claim made for another tick fails, whatever the chunk counters say by then.

use super::sync::{AtomicU32, AtomicU64, Fault, Ordering, acq_rel_unless, planted, release_unless};

/// A tick in the words of all systems: counted from 1, over the 48 bits that are never used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Epoch(u64);

impl Epoch {
    /// Before the first tick; no claim succeeds in it.
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn next(self) -> Self {
        Self((self.0 + 1) & (u64::MAX >> CHUNK_BITS))
    }

    pub(crate) fn get(self) -> u64 {
        self.0
    }

    pub(crate) fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    fn word(self, next_chunk: u32) -> u64 {
        self.0 << CHUNK_BITS | u64::from(next_chunk)
    }
}

/// Bits of the word that hold the next chunk.
const CHUNK_BITS: u32 = 16;
/// Chunks that a system can have in one tick.
pub(crate) const MAX_CHUNKS: u32 = (1 << CHUNK_BITS) - 1;

/// A chunk that belongs to whoever got this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The chunk's number.
    pub(crate) chunk: u32,
    /// Chunks of the system in this tick.
    pub(crate) total: u32,
}

impl Claim {
    /// Nothing is left to be claimed.
    pub(crate) fn is_last(self) -> bool {
        self.chunk + 1 == self.total
    }
}

/// The chunks of one system in one tick.
#[derive(Debug)]
pub(crate) struct ChunkClaims {
    /// Tick and next chunk.
    word: AtomicU64,
    /// Chunks in that tick.
    total: AtomicU32,
    /// Chunks that are neither finished nor drained.
    remaining: AtomicU32,
}

impl ChunkClaims {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU64::new(Epoch::NONE.word(0)),
            total: AtomicU32::new(0),
            remaining: AtomicU32::new(0),
        }
    }

    /// Offers `total` chunks, 1..=[`MAX_CHUNKS`], to everybody. Done once per tick, by the thread that released the
    /// system.
    pub(crate) fn publish(&self, epoch: Epoch, total: u32) {
        debug_assert!((1..=MAX_CHUNKS).contains(&total));
        if planted(Fault::WordFirst) {
            self.word.store(epoch.word(0), Ordering::Release);
        }
        self.total.store(total, Ordering::Relaxed);
        self.remaining.store(total, Ordering::Relaxed);
        if !planted(Fault::WordFirst) {
            self.word.store(epoch.word(0), release_unless(Fault::PublishRelaxed));
        }
    }

    /// Offers one chunk and claims it in the same step, so that nobody else ever sees it free.
    pub(crate) fn publish_claimed(&self, epoch: Epoch) -> Claim {
        self.total.store(1, Ordering::Relaxed);
        self.remaining.store(1, Ordering::Relaxed);
        self.word.store(epoch.word(1), Ordering::Relaxed);
        Claim { chunk: 0, total: 1 }
    }

    /// Claims the next chunk, if the system has one left in this tick.
    pub(crate) fn claim(&self, epoch: Epoch) -> Option<Claim> {
        self.advance(epoch, |chunk, _| chunk + 1).map(|(chunk, total)| Claim { chunk, total })
    }

    /// Claims all chunks that are left, so that nobody runs them; returns how many.
    pub(crate) fn drain(&self, epoch: Epoch) -> u32 {
        if planted(Fault::DrainPlain) {
            let next = (self.word.load(Ordering::Acquire) & u64::from(MAX_CHUNKS)) as u32;
            let total = self.total.load(Ordering::Relaxed);
            self.word.store(epoch.word(total), Ordering::Release);
            return total - next;
        }
        self.advance(epoch, |_, total| total).map_or(0, |(chunk, total)| total - chunk)
    }

    /// Moves the next chunk on while there is one in this tick; returns the chunk that was next, and the total.
    #[inline(always)]
    fn advance(&self, epoch: Epoch, next: impl Fn(u32, u32) -> u32) -> Option<(u32, u32)> {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let chunk = (word & u64::from(MAX_CHUNKS)) as u32;
            // The total of a later tick at worst: then the word has changed too, and the swap fails.
            let total = self.total.load(Ordering::Relaxed);
            let is_other_tick = word >> CHUNK_BITS != epoch.get() && !planted(Fault::ClaimAnyTick);
            if is_other_tick || chunk >= total {
                return None;
            }
            let tick = Epoch(word >> CHUNK_BITS);
            match self.swap(word, tick.word(next(chunk, total))) {
                Ok(_) => return Some((chunk, total)),
                Err(changed) => word = changed,
            }
        }
    }

    #[inline(always)]
    fn swap(&self, word: u64, next: u64) -> Result<u64, u64> {
        if planted(Fault::ClaimPlain) {
            self.word.store(next, Ordering::Release);
            return Ok(word);
        }
        self.word.compare_exchange_weak(word, next, Ordering::Acquire, Ordering::Acquire)
    }

    /// Counts claimed chunks as finished, run or not. True for exactly one call per tick: the system is complete, and
    /// the caller sees what all its chunks did.
    pub(crate) fn finish(&self, chunks: u32) -> bool {
        self.remaining.fetch_sub(chunks, acq_rel_unless(Fault::FinishRelaxed)) == chunks
    }

    /// Chunks of the tick that nobody has claimed, for diagnostics.
    pub(crate) fn unclaimed(&self, epoch: Epoch) -> u32 {
        let word = self.word.load(Ordering::Acquire);
        let total = self.total.load(Ordering::Relaxed);
        if word >> CHUNK_BITS == epoch.get() {
            total.saturating_sub((word & u64::from(MAX_CHUNKS)) as u32)
        } else {
            0
        }
    }

    /// Chunks of the tick that are neither finished nor drained, for diagnostics; `None` if the system was not
    /// published in it.
    pub(crate) fn remaining(&self, epoch: Epoch) -> Option<u32> {
        let word = self.word.load(Ordering::Acquire);
        (word >> CHUNK_BITS == epoch.get()).then(|| self.remaining.load(Ordering::Relaxed))
    }
}
