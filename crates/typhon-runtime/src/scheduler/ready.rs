//! Systems that have unclaimed chunks: one bit each, the most urgent first.
//!
//! A bit is a hint and the claim word decides. It is set after the claim word was published, and cleared by the thread
//! that took the last chunk, before it runs that chunk: the tick cannot end in between, so no left-over thread clears a
//! bit of a later tick.

use super::sync::{AtomicU64, Fault, Ordering, planted};

/// Bits per word.
const BITS: usize = u64::BITS as usize;

/// The bits, in order of rank.
#[derive(Debug)]
pub(crate) struct ReadySet(Box<[AtomicU64]>);

impl ReadySet {
    pub(crate) fn new(ranks: usize) -> Self {
        Self((0..ranks.div_ceil(BITS)).map(|_| AtomicU64::new(0)).collect())
    }

    /// The thing of this rank has chunks now.
    pub(crate) fn set(&self, rank: usize) {
        self.0[rank / BITS].fetch_or(1 << (rank % BITS), Ordering::AcqRel);
    }

    /// It has none left.
    pub(crate) fn clear(&self, rank: usize) {
        self.0[rank / BITS].fetch_and(!(1 << (rank % BITS)), Ordering::AcqRel);
    }

    /// The set ranks, ascending, as of the moment that each word is looked at.
    #[inline(always)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        let words = self.0.iter().enumerate();
        words.flat_map(|(at, word)| bits(word.load(Ordering::Acquire)).map(move |bit| at * BITS + bit))
    }

    /// Is any bit set? Asked by a thread that has registered as a sleeper: it writes to the words, so that whoever sets
    /// a bit afterwards is sure to see the registration.
    pub(crate) fn any_before_sleep(&self) -> bool {
        if planted(Fault::LookPlain) {
            return self.iter().next().is_some();
        }
        self.0.iter().any(|word| word.fetch_or(0, Ordering::AcqRel) != 0)
    }
}

fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (bit < BITS).then_some(bit)
    })
}
