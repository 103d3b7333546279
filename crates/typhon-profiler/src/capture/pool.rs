//! The global pool of chunks: memory in segments, free chunks as bits.
//!
//! Bits and not a linked stack: taking from a stack compares and swaps a head that may have left and come back with
//! another successor. A bit is taken by one read-modify-write, and whoever cleared it owns the chunk.
//!
//! Chunks are never unmapped, since a thread may write its last record at any time after a session ended. The budget
//! may grow (a new segment) and shrink (free chunks above the limit are no longer handed out).
#![allow(unsafe_code)]

use super::chunk::{self, Chunk};
use crate::sync::{AtomicU32, AtomicU64, Fault, Ordering, planted};
use std::sync::OnceLock;

/// Times that the budget can grow in one process.
const SEGMENTS: usize = 8;

/// All chunks of a process.
pub(crate) struct Pool {
    segments: [OnceLock<Box<[Chunk]>>; SEGMENTS],
    /// Bit set: free.
    free: Box<[AtomicU64]>,
    /// Chunks that exist.
    total: AtomicU32,
    /// Only chunks below this index are handed out.
    limit: AtomicU32,
}

impl Pool {
    /// An empty pool that can grow to `max_chunks`.
    pub(crate) fn new(max_chunks: u32) -> Self {
        Self {
            segments: std::array::from_fn(|_| OnceLock::new()),
            free: (0..max_chunks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            total: AtomicU32::new(0),
            limit: AtomicU32::new(0),
        }
    }

    /// Hands out at most `chunks` from now on, as far as [`Pool::new`] and the number of segments allow; returns the
    /// limit that holds. Chunks in use above a lower limit are used up. One caller at a time.
    pub(crate) fn set_limit(&self, chunks: u32) -> u32 {
        let chunks = chunks.min(self.free.len() as u32 * 64);
        let total = self.total.load(Ordering::Relaxed);
        if chunks > total
            && let Some(segment) = self.segments.iter().find(|segment| segment.get().is_none())
        {
            segment.get_or_init(|| chunk::allocate((chunks - total) as usize));
            for index in total..chunks {
                self.give(index);
            }
            self.total.store(chunks, Ordering::Relaxed);
        }
        let limit = chunks.min(self.total.load(Ordering::Relaxed));
        self.limit.store(limit, Ordering::Release);
        limit
    }

    /// The chunk with an index that the pool handed out.
    pub(crate) fn chunk(&self, index: u32) -> &Chunk {
        let mut at = index as usize;
        for segment in self.segments.iter().filter_map(OnceLock::get) {
            match segment.get(at) {
                Some(chunk) => return chunk,
                None => at -= segment.len(),
            }
        }
        unreachable!("chunk {index} of {}", self.total.load(Ordering::Relaxed))
    }

    /// Takes the free chunk with the lowest index: the lowest are used again first, while their memory is warm.
    pub(crate) fn take(&self) -> Option<u32> {
        let limit = self.limit.load(Ordering::Acquire);
        (0..limit.div_ceil(64)).find_map(|word| {
            loop {
                let bits = self.free[word as usize].load(Ordering::Relaxed) & below(limit, word);
                if bits == 0 {
                    break None;
                }
                let index = word * 64 + bits.trailing_zeros();
                if self.take_index(index) {
                    break Some(index);
                }
            }
        })
    }

    /// Takes one chunk if it is free.
    pub(crate) fn take_index(&self, index: u32) -> bool {
        let (word, bit) = (&self.free[index as usize / 64], 1 << (index % 64));
        if planted(Fault::PoolPlain) {
            let bits = word.load(Ordering::Acquire);
            word.store(bits & !bit, Ordering::Release);
            return bits & bit != 0;
        }
        // Acquire: what the reader of the chunk's former life did to it happens before its next life.
        word.fetch_and(!bit, Ordering::Acquire) & bit != 0
    }

    /// Returns a chunk that the caller owns.
    pub(crate) fn give(&self, index: u32) {
        let before = self.free[index as usize / 64].fetch_or(1 << (index % 64), Ordering::Release);
        debug_assert_eq!(before >> (index % 64) & 1, 0, "chunk {index} returned twice");
    }

    /// Free chunks with an index below this.
    pub(crate) fn free_below(&self, end: u32) -> u32 {
        let free =
            |word: u32| (self.free[word as usize].load(Ordering::Relaxed) & below(end, word)).count_ones();
        (0..end.div_ceil(64)).map(free).sum()
    }

    /// Touches the memory of the free chunks in a range, so that their first record does not pay for it.
    pub(crate) fn warm(&self, from: u32, to: u32) {
        for index in from..to {
            if self.take_index(index) {
                // SAFETY: the chunk was just taken.
                unsafe { self.chunk(index).touch() };
                self.give(index);
            }
        }
    }

    /// Chunks that are handed out at most.
    pub(crate) fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }
}

/// Mask of the bits of a word that stand for chunks below `limit`.
fn below(limit: u32, word: u32) -> u64 {
    match limit.saturating_sub(word * 64) {
        bits @ 0..64 => (1 << bits) - 1,
        _ => u64::MAX,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_chunk_is_handed_out_once_until_returned() {
        let pool = Pool::new(200);
        assert_eq!(pool.take(), None);
        assert_eq!(pool.set_limit(130), 130);
        let taken: HashSet<u32> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(taken, (0..130).collect());
        pool.give(77);
        pool.give(64);
        assert_eq!(
            (pool.free_below(130), pool.take(), pool.take(), pool.take()),
            (2, Some(64), Some(77), None)
        );
    }

    #[test]
    fn budget_grows_by_segments_and_shrinks_by_withholding() {
        let pool = Pool::new(64);
        assert_eq!(pool.set_limit(2), 2);
        assert_eq!(pool.set_limit(5), 5);
        assert_eq!(pool.set_limit(1000), 64);
        assert_eq!(pool.set_limit(3), 3);
        assert_eq!(std::iter::from_fn(|| pool.take()).collect::<Vec<_>>(), [0, 1, 2]);
        let addresses: HashSet<_> = (0..64).map(|index| std::ptr::from_ref(pool.chunk(index))).collect();
        assert_eq!(addresses.len(), 64);
        pool.set_limit(4);
        assert_eq!(pool.take(), Some(3));
    }

    #[test]
    fn threads_never_share_a_chunk() {
        let pool = Pool::new(64);
        pool.set_limit(7);
        let owner: Vec<AtomicU32> = (0..7).map(|_| AtomicU32::new(0)).collect();
        std::thread::scope(|scope| {
            for thread in 1..=4 {
                let (pool, owner) = (&pool, &owner);
                scope.spawn(move || {
                    for _ in 0..2_000 {
                        if let Some(index) = pool.take() {
                            assert_eq!(owner[index as usize].swap(thread, Ordering::Relaxed), 0);
                            owner[index as usize].store(0, Ordering::Relaxed);
                            pool.give(index);
                        }
                    }
                });
            }
        });
        assert_eq!(pool.free_below(64), 7);
    }
}
