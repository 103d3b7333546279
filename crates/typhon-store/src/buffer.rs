//! Memory that the operating system can hand to a device without a copy.

use memmap2::MmapMut;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Alignment of buffers and, for files opened past the cache, of offsets and lengths. Every device in use reads and
/// writes units that divide it.
pub const BLOCK_BYTES: usize = 4096;

/// From this length on a buffer asks for large pages. A device takes a buffer in pieces that lie together in memory; where it
/// is given page after page, reading past the cache was 5 times as slow as with pages of 2 MiB.
const LARGE_BYTES: usize = 2 << 20;

/// Zeroed bytes that begin at a multiple of [`BLOCK_BYTES`].
pub struct Buffer {
    storage: Storage,
    length: usize,
}

enum Storage {
    /// Bytes, and where the first aligned one is.
    Heap(Vec<u8>, usize),
    Pages(MmapMut),
}

impl Buffer {
    /// `length` zero bytes.
    pub fn zeroed(length: usize) -> Self {
        let pages = if length >= LARGE_BYTES { large_pages(length) } else { None };
        let storage = pages.map_or_else(|| Storage::heap(length), Storage::Pages);
        Self { storage, length }
    }

    /// At least `length` bytes: the buffer itself if it is long enough, otherwise a new one without its content.
    pub fn at_least(&mut self, length: usize) -> &mut [u8] {
        if self.length < length {
            *self = Self::zeroed(length.next_multiple_of(BLOCK_BYTES));
        }
        &mut self[..length]
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.storage {
            Storage::Heap(bytes, start) => &bytes[*start..*start + self.length],
            Storage::Pages(pages) => &pages[..self.length],
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.storage {
            Storage::Heap(bytes, start) => &mut bytes[*start..*start + self.length],
            Storage::Pages(pages) => &mut pages[..self.length],
        }
    }
}

impl Storage {
    fn heap(length: usize) -> Self {
        let bytes = vec![0; length + BLOCK_BYTES - 1];
        let start = bytes.as_ptr().align_offset(BLOCK_BYTES);
        Self::Heap(bytes, start)
    }
}

/// Memory of its own, in large pages where the system has some.
fn large_pages(length: usize) -> Option<MmapMut> {
    let pages = MmapMut::map_anon(length).ok()?;
    #[cfg(target_os = "linux")]
    // A system without them gives small ones: slower, and just as right.
    let _ = pages.advise(memmap2::Advice::HugePage);
    Some(pages)
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("length", &self.length).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_and_stays_so_when_moved() {
        for length in [0, 1, 4095, 4096, 100_000] {
            let buffer = Buffer::zeroed(length);
            let moved = Box::new(buffer);
            assert_eq!(moved.as_ptr().align_offset(BLOCK_BYTES), 0);
            assert_eq!(moved.len(), length);
            assert!(moved.iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn growing_keeps_the_alignment() {
        let mut buffer = Buffer::zeroed(16);
        assert_eq!(buffer.at_least(5000).len(), 5000);
        assert_eq!(buffer.as_ptr().align_offset(BLOCK_BYTES), 0);
        assert_eq!(buffer.len(), 8192);
    }
}
