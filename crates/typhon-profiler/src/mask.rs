//! The effective mask and the two flags beside it: all that a call site reads before it writes, on one cache line.
//!
//! The only unsafe code here is the instruction that tests a bit in memory, which the compiler does not use for atomic
//! loads: with it, a call site whose kind is off runs three instructions.
#![allow(unsafe_code)]

use crate::gates::KindMask;
use crate::sync::{AtomicU64, Ordering};
use std::sync::atomic::AtomicU8;
#[cfg(not(loom))]
use typhon_trace::event::{Event, MemoryAlignmentWaste, MemoryAllocEvent};

/// A mask that threads test while another one stores it.
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

    /// Is the kind recorded?
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

/// Read by every call site, written almost never.
#[repr(C, align(64))]
pub(crate) struct Gate {
    /// The process's mask. Until the first record asks for it, it is [`INITIAL`]; after that it is empty unless a
    /// session runs.
    #[cfg(not(loom))]
    pub(crate) mask: EffectiveMask,
    /// 1 when the mask says what is recorded; before, the first record has to look at the configuration.
    #[cfg(not(loom))]
    pub(crate) is_decided: AtomicU8,
    /// 1 while producers read the time stamp counter.
    pub(crate) reads_counter: AtomicU8,
}

pub(crate) static GATE: Gate = Gate {
    #[cfg(not(loom))]
    mask: EffectiveMask::holding(INITIAL),
    #[cfg(not(loom))]
    is_decided: AtomicU8::new(0),
    reads_counter: AtomicU8::new(0),
};

#[cfg(not(loom))]
impl Gate {
    /// Is this kind in the mask?
    #[inline(always)]
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    pub(crate) fn contains<E: Event>(&'static self) -> bool {
        // SAFETY: the byte lies inside of the mask, which lives for ever; the bytes of a word stand in ascending order
        // on this processor, and one of them is loaded as it was before or after any store of the word. Nothing is
        // written but flags.
        unsafe {
            std::arch::asm!(
                "test byte ptr [{mask} + {byte}], {bit}",
                "jnz {recorded}",
                mask = in(reg) &raw const self.mask,
                byte = const E::KIND / 8,
                bit = const 1_u8 << (E::KIND % 8),
                recorded = label { return true },
                options(nostack, readonly),
            );
        }
        false
    }

    /// Is this kind in the mask?
    #[inline(always)]
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    pub(crate) fn contains<E: Event>(&'static self) -> bool {
        self.mask.contains(E::KIND)
    }

    /// See the field.
    #[inline(always)]
    pub(crate) fn is_decided(&self) -> bool {
        self.is_decided.load(Ordering::Relaxed) != 0
    }
}

impl Gate {
    /// See the field.
    #[inline(always)]
    pub(crate) fn reads_counter(&self) -> bool {
        self.reads_counter.load(Ordering::Relaxed) != 0
    }
}

/// Kinds whose first record makes the profiler look at its configuration: all but those that are recorded inside of
/// allocators, where a session cannot be started.
#[cfg(not(loom))]
const INITIAL: KindMask = {
    let mut mask = KindMask::from_words([u64::MAX; 4]);
    mask.remove(MemoryAllocEvent::KIND);
    mask.remove(MemoryAlignmentWaste::KIND);
    mask
};
