//! Slots: producer identities, each owned by one thread at a time, each with a list of chunks.
//!
//! The list outlives its owners: the next owner goes on in the chunk where the last one stopped, so that the consumer
//! needs no notion of owners. [`Owner`] is the producer's end, [`SlotReader`] the consumer's.
//!
//! **Invariants**
//! - Free → Claiming is one compare-and-swap by the thread that becomes the owner; Claiming → Active is a release
//!   store after thread id, label and the `ThreadInfo` record; Active → Retiring is a release store after the owner's
//!   last record (or a compare-and-swap by the consumer for a thread that no longer exists); Retiring → Free is a
//!   release store by the consumer after everything is read and every loss is reported.
//! - The consumer ignores Free and Claiming slots and loads the state before the records of the same visit.
//! - `span_counter`, `dropped` and `dropped_by_kind` are written by the owner only and never go back.
#![allow(unsafe_code)]

use super::chunk::{CHUNK_DATA_BYTES, Encode, Reader, RecordContext, Writer};
use super::pool::Pool;
use super::thread_info::ThreadLabel;
use crate::sync::{AtomicU8, AtomicU32, AtomicU64, Fault, Ordering, planted};
use std::sync::{Mutex, PoisonError};
use typhon_trace::record::MAX_RECORD_BYTES;

const FREE: u8 = 0;
const CLAIMING: u8 = 1;
const ACTIVE: u8 = 2;
const RETIRING: u8 = 3;

/// Low bits of a span id; the slot is above them.
pub(crate) const SPAN_COUNTER_BITS: u32 = 56;

/// One producer identity.
#[repr(align(128))]
pub(crate) struct Slot {
    state: AtomicU8,
    /// Thread id of the operating system; meaningful while Active.
    os_thread_id: AtomicU32,
    /// The last span id given, slot bits included.
    span_counter: AtomicU64,
    /// Records lost for want of a chunk.
    dropped: AtomicU64,
    /// Index plus one of the first chunk that the list ever had.
    first: AtomicU32,
    /// Index plus one of the chunk that is being written.
    tail: AtomicU32,
    /// Index plus one of a recycled chunk kept for this slot; put by the consumer, taken by the owner.
    spare: AtomicU32,
    label: Mutex<ThreadLabel>,
    dropped_by_kind: Box<[std::sync::atomic::AtomicU64]>,
}

impl Slot {
    pub(crate) fn new(index: u8) -> Self {
        Self {
            state: AtomicU8::new(FREE),
            os_thread_id: AtomicU32::new(0),
            span_counter: AtomicU64::new(u64::from(index) << SPAN_COUNTER_BITS),
            dropped: AtomicU64::new(0),
            first: AtomicU32::new(0),
            tail: AtomicU32::new(0),
            spare: AtomicU32::new(0),
            label: Mutex::new(ThreadLabel::default()),
            dropped_by_kind: (0..256).map(|_| std::sync::atomic::AtomicU64::new(0)).collect(),
        }
    }

    /// Makes the calling thread the owner of a Free slot; the slot is Claiming afterwards.
    pub(crate) fn begin_claim(&self) -> bool {
        if self.state.load(Ordering::Relaxed) != FREE {
            return false;
        }
        if planted(Fault::ClaimPlain) {
            self.state.store(CLAIMING, Ordering::Release);
            return true;
        }
        // Acquire: the consumer's last look at the former owner's records happens before this owner's first write.
        self.state.compare_exchange(FREE, CLAIMING, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Ends a claim that could not write its `ThreadInfo`.
    fn abandon_claim(&self) {
        self.state.store(FREE, Ordering::Release);
    }

    /// Announced and not yet free: the state in which a new session must name the thread.
    pub(crate) fn is_claimed(&self) -> bool {
        matches!(self.state.load(Ordering::Acquire), ACTIVE | RETIRING)
    }

    /// Retires the slot of a thread that died without running its destructors. True if it did.
    pub(crate) fn retire_if(&self, thread_is_gone: impl FnOnce(u32) -> bool) -> bool {
        self.state.load(Ordering::Acquire) == ACTIVE
            && thread_is_gone(self.os_thread_id.load(Ordering::Relaxed))
            && self.state.compare_exchange(ACTIVE, RETIRING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// A copy of the owner's label.
    pub(crate) fn label(&self) -> ThreadLabel {
        self.label.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The last span id given.
    pub(crate) fn last_span_id(&self) -> u64 {
        self.span_counter.load(Ordering::Relaxed)
    }

    /// Adds the losses per kind to `totals`, which has 256 elements.
    pub(crate) fn add_dropped_by_kind(&self, totals: &mut [u64]) {
        for (total, dropped) in totals.iter_mut().zip(&self.dropped_by_kind) {
            *total += dropped.load(Ordering::Relaxed);
        }
    }

    fn count_loss(&self, kind: u8) {
        let by_kind = &self.dropped_by_kind[kind as usize];
        by_kind.store(by_kind.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.dropped.store(self.dropped.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Takes a chunk for the owner: the slot's own spare one, which is warm, or one of the pool.
    fn take_chunk(&self, pool: &Pool) -> Option<u32> {
        self.spare.swap(0, Ordering::Acquire).checked_sub(1).or_else(|| pool.take())
    }

    /// Returns a chunk that was read to its end. True when it went to the pool, for others to take.
    fn recycle_chunk(&self, pool: &Pool, index: u32) -> bool {
        // Only the consumer fills the spare cell, so that an empty one stays empty.
        let to_pool = self.spare.load(Ordering::Relaxed) != 0;
        if to_pool {
            pool.give(index);
        } else {
            self.spare.store(index + 1, Ordering::Release);
        }
        to_pool
    }
}

/// The producer's end of a slot: the right to write its records.
pub(crate) struct Owner<'c> {
    slot: &'c Slot,
    pool: &'c Pool,
    index: u8,
    writer: Writer<'c>,
    /// Losses not counted yet, which is a mistake.
    #[cfg(loom)]
    owed: Vec<u8>,
}

impl<'c> Owner<'c> {
    /// Completes a claim: labels the slot, writes `ThreadInfo` as its first record, and makes it Active. `None`, with
    /// the slot Free again, when there is no room for that record.
    ///
    /// The caller's [`Slot::begin_claim`] has just succeeded.
    pub(crate) fn complete_claim(
        slot: &'c Slot,
        pool: &'c Pool,
        index: u8,
        label: ThreadLabel,
        ticks: u64,
    ) -> Option<Self> {
        if planted(Fault::ThreadIdEarly) {
            slot.state.store(ACTIVE, Ordering::Release);
        }
        slot.os_thread_id.store(label.os_thread_id, Ordering::Relaxed);
        let record = label.record(index, ticks);
        *slot.label.lock().unwrap_or_else(PoisonError::into_inner) = label;
        let Some(writer) = Self::writer(slot, pool) else {
            slot.abandon_claim();
            return None;
        };
        let mut owner = Self {
            slot,
            pool,
            index,
            writer,
            #[cfg(loom)]
            owed: Vec::new(),
        };
        let context = RecordContext { slot: index, ..RecordContext::default() };
        let encode = |_: RecordContext, bytes: &mut [u8]| bytes.copy_from_slice(&record);
        if !owner.try_append(record.len(), context, encode) {
            slot.abandon_claim();
            return None;
        }
        slot.state.store(ACTIVE, Ordering::Release);
        Some(owner)
    }

    /// The end of the slot's list, which starts now if this is its first owner.
    fn writer(slot: &'c Slot, pool: &'c Pool) -> Option<Writer<'c>> {
        if let Some(tail) = slot.tail.load(Ordering::Relaxed).checked_sub(1) {
            // SAFETY: the slot is Claiming by this thread, and its former owner's store of Retiring happened before.
            return Some(unsafe { Writer::resume(pool.chunk(tail)) });
        }
        let index = slot.take_chunk(pool)?;
        slot.first.store(index + 1, Ordering::Relaxed);
        slot.tail.store(index + 1, Ordering::Relaxed);
        // SAFETY: the chunk was just taken.
        Some(unsafe { Writer::of_free(pool.chunk(index)) })
    }

    /// Number of the slot.
    #[inline(always)]
    pub(crate) fn index(&self) -> u8 {
        self.index
    }

    /// A span id that was never given before in this process.
    #[inline(always)]
    pub(crate) fn next_span_id(&mut self) -> u64 {
        let id = self.slot.span_counter.load(Ordering::Relaxed) + 1;
        self.slot.span_counter.store(id, Ordering::Relaxed);
        id
    }

    /// Writes one record of `size` bytes, or counts it as lost: when there is no memory, or when it is larger than the
    /// format allows.
    #[inline(always)]
    pub(crate) fn append(&mut self, kind: u8, size: usize, context: RecordContext, record: impl Encode) {
        #[cfg(loom)]
        self.owed.drain(..).for_each(|kind| self.slot.count_loss(kind));
        if !self.try_append(size, context, record) {
            #[cfg(loom)]
            if planted(Fault::CountLate) {
                return self.owed.push(kind);
            }
            self.slot.count_loss(kind);
        }
    }

    #[inline(always)]
    fn try_append(&mut self, size: usize, context: RecordContext, record: impl Encode) -> bool {
        (self.writer.fits(size) || self.link(size)) && self.writer.append(size, context, record)
    }

    /// Goes on in a fresh chunk; `false` when there is none, or the record would not fit one either.
    #[cold]
    #[inline(never)]
    fn link(&mut self, record_bytes: usize) -> bool {
        if record_bytes > MAX_RECORD_BYTES.min(CHUNK_DATA_BYTES) {
            return false;
        }
        let Some(index) = self.slot.take_chunk(self.pool) else { return false };
        // SAFETY: the chunk was just taken.
        let fresh = unsafe { Writer::of_free(self.pool.chunk(index)) };
        self.slot.tail.store(index + 1, Ordering::Relaxed);
        std::mem::replace(&mut self.writer, fresh).link(index);
        true
    }

    /// Gives up the slot after its last record.
    pub(crate) fn retire(self) {
        self.slot.state.store(RETIRING, Ordering::Release);
    }

    /// The mistake of giving up a slot and keeping the right to write.
    pub(crate) fn retire_early(&self) {
        self.slot.state.store(RETIRING, Ordering::Release);
    }
}

/// What one visit of the consumer found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Visit {
    /// Everything published when the visit began was taken.
    pub(crate) drained: bool,
    /// Losses not reported before.
    pub(crate) unreported: u64,
    /// The owner was gone before the visit began.
    pub(crate) retiring: bool,
    /// A chunk went back to the pool.
    pub(crate) recycled: bool,
}

/// The consumer's end of a slot.
pub(crate) struct SlotReader<'c> {
    slot: &'c Slot,
    head: Option<Reader<'c>>,
    reported: u64,
}

impl<'c> SlotReader<'c> {
    /// The reader of a slot; the caller makes one per slot of a capture.
    pub(crate) fn new(slot: &'c Slot) -> Self {
        Self { slot, head: None, reported: 0 }
    }

    /// Shows `sink` the unread records in order, until it refuses one. `None` for a slot without an owner.
    pub(crate) fn visit(&mut self, pool: &'c Pool, sink: impl FnMut(&[u8]) -> bool) -> Option<Visit> {
        let mut state = self.slot.state.load(Ordering::Acquire);
        if !matches!(state, ACTIVE | RETIRING) {
            return None;
        }
        let early_total = self.slot.dropped.load(Ordering::Relaxed);
        let (drained, recycled) = self.drain(pool, sink);
        // After the records: whoever reads a record written after a loss finds the loss reported no later.
        let mut total = self.slot.dropped.load(Ordering::Relaxed);
        if planted(Fault::TotalFirst) {
            total = early_total;
        }
        if planted(Fault::StateLate) {
            state = self.slot.state.load(Ordering::Acquire);
        }
        Some(Visit { drained, recycled, unreported: total - self.reported, retiring: state == RETIRING })
    }

    /// Bytes of records that wait to be read.
    pub(crate) fn backlog(&self, pool: &'c Pool) -> u64 {
        let is_used = matches!(self.slot.state.load(Ordering::Acquire), ACTIVE | RETIRING);
        let mut chunk = self.head.or_else(|| self.first(pool)).filter(|_| is_used);
        let mut bytes = 0;
        while let Some(reader) = chunk {
            let (next, committed) = reader.progress();
            bytes += reader.unread(committed);
            chunk = next.map(|next| self.reader(pool, next));
        }
        bytes
    }

    fn drain(&mut self, pool: &'c Pool, mut sink: impl FnMut(&[u8]) -> bool) -> (bool, bool) {
        let Some(mut head) = self.head.or_else(|| self.first(pool)) else { return (true, false) };
        let mut recycled = false;
        let drained = loop {
            let (next, committed) = head.progress();
            if let Some(next) = next
                && planted(Fault::RecycleEarly)
            {
                recycled |= self.slot.recycle_chunk(pool, head.index);
                head.read(committed, &mut sink);
                head = self.reader(pool, next);
                continue;
            }
            if !head.read(committed, &mut sink) {
                break false;
            }
            if next.is_none() && head.has_records() && planted(Fault::RecycleCur) {
                recycled |= self.slot.recycle_chunk(pool, head.index);
            }
            let Some(next) = next else { break true };
            recycled |= self.slot.recycle_chunk(pool, head.index);
            head = self.reader(pool, next);
        };
        self.head = Some(head);
        (drained, recycled)
    }

    fn first(&self, pool: &'c Pool) -> Option<Reader<'c>> {
        self.slot.first.load(Ordering::Relaxed).checked_sub(1).map(|index| self.reader(pool, index))
    }

    fn reader(&self, pool: &'c Pool, index: u32) -> Reader<'c> {
        // SAFETY: the index stands in this slot's list, whose only reader this is.
        unsafe { Reader::new(pool.chunk(index), index) }
    }

    /// Takes note that this many more losses stand in the trace.
    pub(crate) fn report(&mut self, losses: u64) {
        if planted(Fault::CountReset) {
            let dropped = self.slot.dropped.load(Ordering::Relaxed);
            self.slot.dropped.store(dropped - losses, Ordering::Relaxed);
            return;
        }
        self.reported += losses;
    }

    /// Forgets what was reported, which is a mistake.
    pub(crate) fn forget_reports(&mut self) {
        self.reported = 0;
    }

    /// Makes a slot free whose [`Visit`] was `retiring` and `drained` with every loss reported.
    pub(crate) fn free(&self) {
        self.slot.state.store(FREE, Ordering::Release);
    }
}
