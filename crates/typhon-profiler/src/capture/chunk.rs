//! Chunks: the memory that records are written into.
//!
//! A chunk has one writer, then also one reader. The writer appends at its end and publishes with a release store of
//! `committed`; the reader loads `committed` with acquire and looks at nothing beyond it. All unsafe code of the
//! buffers is in this file.
//!
//! **Invariants**
//! - [`Writer`] exists at most once per chunk: it comes from [`Writer::of_free`], whose chunk the caller took out of
//!   the pool, or from [`Writer::resume`], whose slot the caller has just claimed.
//! - Bytes below `committed` do not change until the reader returns the chunk to the pool.
//! - `next` is stored once, after the last store of `committed`.
#![allow(unsafe_code)]

use crate::sync::{AtomicU32, Fault, Ordering, planted, release_unless};

/// Bytes for records in one chunk.
pub(crate) const CHUNK_DATA_BYTES: usize = if cfg!(loom) { 40 } else { 64 * 1024 };

/// Something that can be written as a record. A trait of its own, whose methods are always compiled into their callers;
/// closures, for everything but the hot paths, are not.
pub(crate) trait Encode {
    /// Fills `bytes`, which are as many as were asked for and hold anything.
    fn encode(self, context: RecordContext, bytes: &mut [u8]);
}

impl<F: FnOnce(RecordContext, &mut [u8])> Encode for F {
    #[inline(always)]
    fn encode(self, context: RecordContext, bytes: &mut [u8]) {
        self(context, bytes);
    }
}

/// What a record needs of the thread that it is written by.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RecordContext {
    pub(crate) slot: u8,
    /// Of a span, its id.
    pub(crate) span_id: u64,
    /// Of a span, its parent; else the innermost open span. 0 when there is none.
    pub(crate) parent: u64,
}

/// One chunk. All-zero is a valid, empty chunk, so that fresh memory need not be touched.
#[repr(C)]
pub(crate) struct Chunk {
    /// Bytes published.
    committed: AtomicU32,
    /// Index of the next chunk of the list plus one, 0 while this is the last.
    next: AtomicU32,
    data: memory::Data,
    /// Keeps the header of the chunk behind off the cache lines of this one's records.
    gap: [u64; 7],
}

impl Chunk {
    /// Touches every page of a free chunk.
    ///
    /// # Safety
    /// As for [`Writer::of_free`].
    pub(crate) unsafe fn touch(&self) {
        // SAFETY: nobody else uses the chunk by the contract.
        unsafe { self.data.touch() }
    }

    /// The successor and the bytes published, in the order that makes them usable together: a reader that sees a
    /// successor sees everything that the writer put here before it moved on.
    pub(crate) fn progress(&self) -> (Option<u32>, u32) {
        if planted(Fault::LoadOrder) {
            let committed = self.committed.load(Ordering::Acquire);
            return (self.next.load(Ordering::Acquire).checked_sub(1), committed);
        }
        let next = self.next.load(Ordering::Acquire).checked_sub(1);
        (next, self.committed.load(Ordering::Acquire))
    }
}

/// Chunks whose memory is zero and untouched.
#[cfg(not(loom))]
pub(crate) fn allocate(count: usize) -> Box<[Chunk]> {
    // For types of greater alignment the system's allocator writes the zeros itself, and with them touches all memory.
    const { assert!(align_of::<Chunk>() <= 8) }
    let zeroed = Box::<[Chunk]>::new_zeroed_slice(count);
    // SAFETY: a chunk is atomics and bytes, for which all-zero is a value.
    unsafe { zeroed.assume_init() }
}

/// Chunks for a model.
#[cfg(loom)]
pub(crate) fn allocate(count: usize) -> Box<[Chunk]> {
    (0..count)
        .map(|_| Chunk {
            committed: AtomicU32::new(0),
            next: AtomicU32::new(0),
            data: memory::Data::new(),
            gap: [0; 7],
        })
        .collect()
}

/// The writing end of a chunk.
pub(crate) struct Writer<'c> {
    chunk: &'c Chunk,
    offset: u32,
}

impl<'c> Writer<'c> {
    /// Starts a chunk afresh.
    ///
    /// # Safety
    /// The caller took `chunk` out of the pool or out of its slot's spare cell, and nobody else did.
    pub(crate) unsafe fn of_free(chunk: &'c Chunk) -> Self {
        if !planted(Fault::NoReset) {
            chunk.committed.store(0, Ordering::Relaxed);
            chunk.next.store(0, Ordering::Relaxed);
        }
        Self { chunk, offset: 0 }
    }

    /// Goes on where the former owner of a slot stopped.
    ///
    /// # Safety
    /// The caller has just claimed the slot whose last chunk this is, so that the former writer is gone.
    pub(crate) unsafe fn resume(chunk: &'c Chunk) -> Self {
        Self { chunk, offset: chunk.committed.load(Ordering::Relaxed) }
    }

    /// Is there room for this many bytes?
    #[inline(always)]
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        self.offset as usize + bytes <= CHUNK_DATA_BYTES
    }

    /// Writes one record of `size` bytes and publishes it; `false` when fewer are left.
    #[inline(always)]
    pub(crate) fn append(&mut self, size: usize, context: RecordContext, record: impl Encode) -> bool {
        if !self.fits(size) {
            return false;
        }
        // SAFETY: the range was checked against the chunk; it lies at or above `committed`, where only the one writer
        // of the chunk looks, and `&mut self` is that writer.
        unsafe { self.chunk.data.write(self.offset as usize, size, context, record) };
        self.offset += size as u32;
        self.chunk.committed.store(self.offset, release_unless(Fault::CommitRelaxed));
        true
    }

    /// Moves on to a chunk with the given index, which the reader may find from now on.
    pub(crate) fn link(self, index: u32) {
        self.chunk.next.store(index + 1, release_unless(Fault::LinkRelaxed));
    }
}

/// The reading end of a chunk.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'c> {
    chunk: &'c Chunk,
    /// Index of the chunk.
    pub(crate) index: u32,
    read: u32,
}

impl<'c> Reader<'c> {
    /// Starts reading a chunk from its beginning.
    ///
    /// # Safety
    /// The caller is the one reader of the list that holds `chunk`, and reached it through the list.
    pub(crate) unsafe fn new(chunk: &'c Chunk, index: u32) -> Self {
        Self { chunk, index, read: 0 }
    }

    /// Was anything read?
    pub(crate) fn has_records(&self) -> bool {
        self.read > 0
    }

    /// See [`Chunk::progress`].
    pub(crate) fn progress(&self) -> (Option<u32>, u32) {
        self.chunk.progress()
    }

    /// Bytes below `committed`, a value from [`Self::progress`], that were not read.
    pub(crate) fn unread(&self, committed: u32) -> u64 {
        u64::from(committed - self.read)
    }

    /// Shows `sink` every whole record below `committed`, a value from [`Self::progress`], until it refuses one,
    /// which stays unread. True when all were taken.
    #[inline]
    pub(crate) fn read(&mut self, committed: u32, mut sink: impl FnMut(&[u8]) -> bool) -> bool {
        let from = self.read as usize;
        // SAFETY: bytes below a `committed` loaded with acquire were written before it was stored, and stay until this
        // reader, the only one, returns the chunk.
        let taken = unsafe {
            self.chunk.data.read(from, committed as usize, |mut bytes: &[u8]| {
                let all = bytes.len();
                while let Some(size) = bytes.first_chunk::<2>().map(|raw| u16::from_le_bytes(*raw) as usize) {
                    let Some((record, rest)) = bytes.split_at_checked(size) else { break };
                    if size == 0 || !sink(record) {
                        break;
                    }
                    bytes = rest;
                }
                all - bytes.len()
            })
        };
        self.read += taken as u32;
        self.read == committed
    }
}

#[cfg(not(loom))]
mod memory {
    use super::{CHUNK_DATA_BYTES, Encode, RecordContext};
    use std::cell::UnsafeCell;

    /// Bytes that one writer and one reader share by ranges. Always initialised: fresh memory is zero.
    #[repr(transparent)]
    pub(super) struct Data(UnsafeCell<[u8; CHUNK_DATA_BYTES]>);

    // SAFETY: the functions below demand disjoint ranges or an acquire/release hand-over from their callers.
    unsafe impl Sync for Data {}

    impl Data {
        /// # Safety
        /// `offset + size` lies inside; nobody else uses the range.
        #[inline(always)]
        pub(super) unsafe fn write(
            &self,
            offset: usize,
            size: usize,
            context: RecordContext,
            record: impl Encode,
        ) {
            // SAFETY: in bounds and exclusive by the contract; bytes need no alignment and are initialised.
            let bytes =
                unsafe { std::slice::from_raw_parts_mut(self.0.get().cast::<u8>().add(offset), size) };
            record.encode(context, bytes);
        }

        /// # Safety
        /// Nobody else uses the data.
        pub(super) unsafe fn touch(&self) {
            const PAGE_BYTES: usize = 4096;
            for at in (0..CHUNK_DATA_BYTES).step_by(PAGE_BYTES) {
                // SAFETY: in bounds and exclusive by the contract; volatile, or it would be left out.
                unsafe { self.0.get().cast::<u8>().add(at).write_volatile(0) }
            }
        }

        /// # Safety
        /// `from <= to` lie inside; the range is published to this thread and stays unchanged during the call.
        #[inline]
        pub(super) unsafe fn read<R>(&self, from: usize, to: usize, look: impl FnOnce(&[u8]) -> R) -> R {
            // SAFETY: in bounds, initialised and unchanging by the contract.
            look(unsafe { std::slice::from_raw_parts(self.0.get().cast::<u8>().add(from), to - from) })
        }
    }
}

#[cfg(loom)]
mod memory {
    use super::{CHUNK_DATA_BYTES, Encode, RecordContext};
    use loom::cell::UnsafeCell;

    const WORD: usize = 4;

    /// The same ranges in words that loom watches, so that a torn or unpublished read fails the model.
    pub(super) struct Data([UnsafeCell<[u8; WORD]>; CHUNK_DATA_BYTES.div_ceil(WORD)]);

    impl Data {
        pub(super) unsafe fn touch(&self) {}

        pub(super) fn new() -> Self {
            Self(std::array::from_fn(|_| UnsafeCell::new([0; WORD])))
        }

        pub(super) unsafe fn write(
            &self,
            offset: usize,
            size: usize,
            context: RecordContext,
            record: impl Encode,
        ) {
            let mut bytes = vec![0; size];
            record.encode(context, &mut bytes);
            for (at, byte) in (offset..).zip(bytes) {
                // SAFETY: loom checks that nobody else uses the word; models keep records to whole words.
                self.0[at / WORD].with_mut(|word| unsafe { (&mut *word)[at % WORD] = byte });
            }
        }

        pub(super) unsafe fn read<R>(&self, from: usize, to: usize, look: impl FnOnce(&[u8]) -> R) -> R {
            // SAFETY: loom checks that every word was published to this thread.
            let bytes: Vec<u8> =
                (from..to).map(|at| self.0[at / WORD].with(|word| unsafe { (&*word)[at % WORD] })).collect();
            look(&bytes)
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const CONTEXT: RecordContext = RecordContext { slot: 0, span_id: 0, parent: 0 };

    fn filled(byte: u8) -> impl Encode {
        move |_: RecordContext, bytes: &mut [u8]| bytes.fill(byte)
    }

    #[test]
    fn writer_and_reader_meet_at_committed() {
        let chunks = allocate(2);
        // SAFETY: the chunks are this test's own.
        let (mut writer, mut reader) = unsafe { (Writer::of_free(&chunks[0]), Reader::new(&chunks[0], 0)) };
        assert_eq!(reader.progress(), (None, 0));
        assert!(
            writer.append(4, CONTEXT, |_: RecordContext, bytes: &mut [u8]| bytes
                .copy_from_slice(&[4, 0, 7, 7]))
        );
        assert!(
            writer.append(3, CONTEXT, |_: RecordContext, bytes: &mut [u8]| bytes.copy_from_slice(&[3, 0, 9]))
        );
        let mut seen = Vec::new();
        assert!(!reader.read(reader.progress().1, |record| {
            seen.push(record.to_vec());
            seen.len() < 2
        }));
        assert_eq!(reader.read, 4);
        assert!(reader.read(reader.progress().1, |record| {
            seen.push(record.to_vec());
            true
        }));
        assert_eq!(seen, [vec![4, 0, 7, 7], vec![3, 0, 9], vec![3, 0, 9]]);
        writer.link(1);
        assert_eq!(reader.progress(), (Some(1), 7));
    }

    #[test]
    fn record_that_does_not_fit_is_refused() {
        let chunks = allocate(1);
        // SAFETY: the chunk is this test's own.
        let mut writer = unsafe { Writer::of_free(&chunks[0]) };
        assert!(writer.append(CHUNK_DATA_BYTES - 19, CONTEXT, filled(0xFE)));
        assert!(!writer.append(20, CONTEXT, filled(0xFD)));
        assert!(writer.append(19, CONTEXT, filled(1)));
    }
}
