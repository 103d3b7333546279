//! Who runs which chunk of a system: one word per system, claimed by compare-and-swap (B-32, B-33).
//!
//! A worker may be descheduled anywhere, also between looking at a word and claiming from it, and come back in a later
//! tick. So the word carries its tick: a claim made for another tick fails. It carries the number of chunks too: were
//! that beside it, the worker that came back could take the old word for one of a system that has chunks again.

use super::sync::{AtomicU32, AtomicU64, Fault, Ordering, acq_rel_unless, planted, release_unless};

/// A tick in the words of all systems, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Epoch(u64);

impl Epoch {
    /// Before the first tick; no claim succeeds in it.
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }

    pub(crate) fn get(self) -> u64 {
        self.0
    }

    pub(crate) fn from_raw(raw: u64) -> Self {
        Self(raw)
    }
}

/// Chunks that a system can have in one tick.
pub(crate) const MAX_CHUNKS: u32 = u16::MAX as u32;

/// The lower half of the tick, the number of chunks, and the next one to be claimed. A worker would have to sleep through
/// 2³² ticks, and wake in exactly the last of them, to take a tick for its own that is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Word(u64);

impl Word {
    #[inline(always)]
    fn new(epoch: Epoch, total: u32, next: u32) -> Self {
        Self(epoch.0 << 32 | u64::from(total) << 16 | u64::from(next))
    }

    #[inline(always)]
    fn is_of(self, epoch: Epoch) -> bool {
        (self.0 >> 32) as u32 == epoch.0 as u32
    }

    #[inline(always)]
    fn total(self) -> u32 {
        u32::from((self.0 >> 16) as u16)
    }

    #[inline(always)]
    fn next(self) -> u32 {
        u32::from(self.0 as u16)
    }

    #[inline(always)]
    fn with_next(self, next: u32) -> Self {
        Self(self.0 & !u64::from(MAX_CHUNKS) | u64::from(next))
    }
}

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
    /// A [`Word`].
    word: AtomicU64,
    /// Chunks that are neither finished nor drained.
    remaining: AtomicU32,
}

impl ChunkClaims {
    pub(crate) fn new() -> Self {
        Self { word: AtomicU64::new(Word::new(Epoch::NONE, 0, 0).0), remaining: AtomicU32::new(0) }
    }

    /// Offers `total` chunks, 1..=[`MAX_CHUNKS`], to everybody. Done once per tick, by the thread that released the
    /// system.
    pub(crate) fn publish(&self, epoch: Epoch, total: u32) {
        debug_assert!((1..=MAX_CHUNKS).contains(&total));
        let word = Word::new(epoch, total, 0).0;
        if planted(Fault::WordFirst) {
            self.word.store(word, Ordering::Release);
        }
        self.remaining.store(total, Ordering::Relaxed);
        if !planted(Fault::WordFirst) {
            self.word.store(word, release_unless(Fault::PublishRelaxed));
        }
    }

    /// Offers one chunk and claims it in the same step, so that nobody else ever sees it free.
    pub(crate) fn publish_claimed(&self, epoch: Epoch) -> Claim {
        self.remaining.store(1, Ordering::Relaxed);
        self.word.store(Word::new(epoch, 1, 1).0, Ordering::Relaxed);
        Claim { chunk: 0, total: 1 }
    }

    /// Claims the next chunk, if the system has one left in this tick.
    pub(crate) fn claim(&self, epoch: Epoch) -> Option<Claim> {
        let word = self.advance(epoch, |word| word.next() + 1)?;
        Some(Claim { chunk: word.next(), total: word.total() })
    }

    /// Claims all chunks that are left, so that nobody runs them; returns how many.
    pub(crate) fn drain(&self, epoch: Epoch) -> u32 {
        if planted(Fault::DrainPlain) {
            let word = Word(self.word.load(Ordering::Acquire));
            self.word.store(word.with_next(word.total()).0, Ordering::Release);
            return word.total() - word.next();
        }
        self.advance(epoch, Word::total).map_or(0, |word| word.total() - word.next())
    }

    /// Moves the next chunk on while there is one in this tick; returns the word as it was.
    #[inline(always)]
    fn advance(&self, epoch: Epoch, next: impl Fn(Word) -> u32) -> Option<Word> {
        let mut word = Word(self.word.load(Ordering::Acquire));
        loop {
            let is_other_tick = !word.is_of(epoch) && !planted(Fault::ClaimAnyTick);
            if is_other_tick || word.next() >= word.total() {
                return None;
            }
            match self.swap(word, word.with_next(next(word))) {
                Ok(_) => return Some(word),
                Err(changed) => word = Word(changed),
            }
        }
    }

    #[inline(always)]
    fn swap(&self, word: Word, next: Word) -> Result<u64, u64> {
        if planted(Fault::ClaimPlain) {
            self.word.store(next.0, Ordering::Release);
            return Ok(word.0);
        }
        self.word.compare_exchange_weak(word.0, next.0, Ordering::Acquire, Ordering::Acquire)
    }

    /// Counts claimed chunks as finished, run or not. True for exactly one call per tick: the system is complete, and
    /// the caller sees what all its chunks did.
    pub(crate) fn finish(&self, chunks: u32) -> bool {
        self.remaining.fetch_sub(chunks, acq_rel_unless(Fault::FinishRelaxed)) == chunks
    }

    /// Chunks of the tick that nobody has claimed, and those that are neither finished nor drained; `None` if the
    /// system was not published in it. For diagnostics.
    #[cfg(not(loom))]
    pub(crate) fn open_chunks(&self, epoch: Epoch) -> Option<(u32, u32)> {
        let word = Word(self.word.load(Ordering::Acquire));
        let unclaimed = word.total() - word.next().min(word.total());
        word.is_of(epoch).then(|| (unclaimed, self.remaining.load(Ordering::Relaxed)))
    }
}
