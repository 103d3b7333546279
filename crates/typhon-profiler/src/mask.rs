//! The effective mask: the one thing that a call site asks before it does anything.
#![forbid(unsafe_code)]

use crate::gates::KindMask;
use crate::sync::{AtomicU64, Ordering};
#[cfg(not(loom))]
use typhon_trace::event::{Event, MemoryAlignmentWaste, MemoryAllocEvent};

/// A mask that threads test while another one stores it. On a cache line of its own, which is read everywhere and
/// written almost never.
#[repr(align(64))]
pub(crate) struct EffectiveMask([AtomicU64; 4]);

impl EffectiveMask {
    #[cfg(not(loom))]
    const fn holding(mask: KindMask) -> Self {
        let words = mask.words();
        Self([
            AtomicU64::new(words[0]),
            AtomicU64::new(words[1]),
            AtomicU64::new(words[2]),
            AtomicU64::new(words[3]),
        ])
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// Is the kind recorded? One load and one test when `kind` is a constant.
    #[inline(always)]
    pub(crate) fn contains(&self, kind: u8) -> bool {
        self.0[usize::from(kind >> 6)].load(Ordering::Relaxed) & (1 << (kind & 63)) != 0
    }

    /// Stores a mask; threads see it soon, word by word.
    pub(crate) fn store(&self, mask: KindMask) {
        for (word, value) in self.0.iter().zip(mask.words()) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// The mask now.
    pub(crate) fn load(&self) -> KindMask {
        KindMask::from_words(std::array::from_fn(|word| self.0[word].load(Ordering::Relaxed)))
    }
}

/// The process's mask. Until the first record asks for it, it is [`INITIAL`]; after that it is empty unless a session
/// runs.
#[cfg(not(loom))]
pub(crate) static EFFECTIVE: EffectiveMask = EffectiveMask::holding(INITIAL);

/// Kinds whose first record makes the profiler look at its configuration: all but those that are recorded inside of
/// allocators, where a session cannot be started.
#[cfg(not(loom))]
const INITIAL: KindMask = {
    let mut mask = KindMask::from_words([u64::MAX; 4]);
    mask.remove(MemoryAllocEvent::KIND);
    mask.remove(MemoryAlignmentWaste::KIND);
    mask
};
