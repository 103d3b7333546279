//! Native memory: blocks that a program allocates outside of its ordinary heap objects, such as page caches and
//! staging buffers, each with a tag that says what it is for (brief 02 §6.4).
//!
//! Totals are kept whether or not anything is recorded; they are the gauges 0x0100 to 0x0102. Nothing here starts the
//! profiler, so that it can be used inside of allocators.
#![forbid(unsafe_code)]

use crate::event::emit;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use typhon_trace::event::{MemoryAlignmentWaste, MemoryAllocDirection, MemoryAllocEvent, MemoryAllocSource};

static TOTAL_BYTES: AtomicU64 = AtomicU64::new(0);
static PEAK_BYTES: AtomicU64 = AtomicU64::new(0);
static LIVE_BLOCKS: AtomicU32 = AtomicU32::new(0);

/// A block that exists. Keep it beside the block itself: its drop says that the block is gone.
///
/// ```
/// use typhon_profiler::events::MemoryAllocSource;
/// use typhon_profiler::memory::Allocation;
///
/// struct Staging {
///     bytes: Vec<u8>,
///     _allocation: Allocation,
/// }
///
/// let bytes = vec![0; 65_536];
/// let staging = Staging { _allocation: Allocation::new(MemoryAllocSource::WAL_STAGING, 65_536), bytes };
/// ```
#[must_use = "dropping it says that the block is gone"]
#[derive(Debug)]
pub struct Allocation {
    source: MemoryAllocSource,
    size_bytes: u64,
}

impl Allocation {
    /// A block was allocated: updates the totals, then records kind 9.
    pub fn new(source: MemoryAllocSource, size_bytes: u64) -> Self {
        let total_after_bytes = TOTAL_BYTES.fetch_add(size_bytes, Ordering::Relaxed).wrapping_add(size_bytes);
        PEAK_BYTES.fetch_max(total_after_bytes, Ordering::Relaxed);
        LIVE_BLOCKS.fetch_add(1, Ordering::Relaxed);
        report(MemoryAllocDirection::ALLOC, source, size_bytes, total_after_bytes);
        Self { source, size_bytes }
    }

    /// As [`Allocation::new`], for a block whose size was rounded up to `alignment` bytes; the waste is kind 172. An
    /// alignment of 0 is the natural one, which wastes nothing.
    pub fn aligned(source: MemoryAllocSource, size_bytes: u64, alignment_bytes: u64) -> Self {
        let rest_bytes = size_bytes.checked_rem(alignment_bytes).unwrap_or(0);
        if rest_bytes != 0 {
            emit(|| waste(size_bytes, alignment_bytes, alignment_bytes - rest_bytes));
        }
        Self::new(source, size_bytes)
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let total_after_bytes =
            TOTAL_BYTES.fetch_sub(self.size_bytes, Ordering::Relaxed).wrapping_sub(self.size_bytes);
        LIVE_BLOCKS.fetch_sub(1, Ordering::Relaxed);
        report(MemoryAllocDirection::FREE, self.source, self.size_bytes, total_after_bytes);
    }
}

fn report(
    direction: MemoryAllocDirection,
    source_tag: MemoryAllocSource,
    size_bytes: u64,
    total_after_bytes: u64,
) {
    emit(|| MemoryAllocEvent { direction, source_tag, size_bytes, total_after_bytes });
}

/// The part of the whole block that is waste, in hundredths of a percent. Sizes beyond the field are its maximum.
fn waste(size_bytes: u64, alignment_bytes: u64, waste_bytes: u64) -> MemoryAlignmentWaste {
    let (waste, whole) = (u128::from(waste_bytes), u128::from(size_bytes) + u128::from(waste_bytes));
    MemoryAlignmentWaste {
        size: i32::try_from(size_bytes).unwrap_or(i32::MAX),
        alignment: i32::try_from(alignment_bytes).unwrap_or(i32::MAX),
        waste_pct_hundredths: (waste * 10_000 / whole).min(10_000) as u16,
    }
}

/// What native blocks of the process take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Bytes of all blocks that exist.
    pub bytes: u64,
    /// The most that this ever was.
    pub peak_bytes: u64,
    /// Number of blocks that exist.
    pub live_blocks: u32,
}

/// The totals now. The three numbers are read one after the other.
pub fn totals() -> Totals {
    Totals {
        bytes: TOTAL_BYTES.load(Ordering::Relaxed),
        peak_bytes: PEAK_BYTES.load(Ordering::Relaxed),
        live_blocks: LIVE_BLOCKS.load(Ordering::Relaxed),
    }
}
