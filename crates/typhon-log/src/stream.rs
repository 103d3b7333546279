//! The stream of frames in memory: claims, ring, watermarks and who waits for them. Knows nothing of files.
//!
//! ```text
//!  producers: reserve ─▶ claim ─▶ copy, publish          consumer: peek ─▶ take ─▶ (write, sync) ─▶ acknowledge
//!             reserved ≥ claimed ≥ … published …  ≥  freed      ≥      durable   (positions)
//! ```

use crate::claim::{Claims, Place};
use crate::format::FrameKind;
use crate::ring::Ring;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Fault, Ordering, fence, planted};
use crate::waiters::Waiters;
use std::time::Duration;
use typhon_sync::Deadline;
use typhon_sync::wait::{self, Parker, WaitEnd};

/// Nobody waits for a frame to be published; no position is odd.
const NOWHERE: u64 = 1;

/// For whom space is reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// May hold space while it waits for others: all of them together hold at most half the ring unspent.
    Commit,
    /// Spends at once what it gets.
    Fence,
}

#[derive(Debug)]
pub(crate) struct Stream {
    claims: Claims,
    ring: Ring,
    /// End of the space that was promised.
    reserved: AtomicU64,
    /// Everything before it was drained and zeroed. Stored after `freed_tsn`.
    freed: AtomicU64,
    /// Next sequence number at `freed`.
    freed_tsn: AtomicU64,
    durable: AtomicU64,
    failed: AtomicBool,
    /// Position of the frame whose publication the consumer waits for.
    awaited: AtomicU64,
    published: Parker,
    /// Counts events that may have made room.
    room: AtomicU32,
    room_waiters: AtomicU32,
    pub(crate) waiters: Waiters,
}

/// Where the consumer is; owned by whoever holds the writer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor(pub(crate) Place);

/// What the consumer must know of a frame before it takes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peeked {
    /// Bytes in the stream.
    pub(crate) span_bytes: u64,
    /// Did it take a sequence number?
    pub(crate) takes_tsn: bool,
}

impl Stream {
    /// An empty stream that continues at a place, everything before it durable.
    pub(crate) fn new(start: Place, ring_bytes: u64) -> Self {
        Self {
            claims: Claims::new(start),
            ring: Ring::new(ring_bytes),
            reserved: AtomicU64::new(start.position),
            freed: AtomicU64::new(start.position),
            freed_tsn: AtomicU64::new(start.tsn),
            durable: AtomicU64::new(start.position),
            failed: AtomicBool::new(false),
            awaited: AtomicU64::new(NOWHERE),
            published: Parker::new(),
            room: AtomicU32::new(0),
            room_waiters: AtomicU32::new(0),
            waiters: Waiters::new(),
        }
    }

    /// A place that is not after any claim that is not drained, and at most one ring behind.
    fn floor(&self) -> Place {
        let position = self.freed.load(Ordering::Acquire);
        Place { position, tsn: self.freed_tsn.load(Ordering::Acquire) }
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.ring.bytes()
    }

    /// Where the next frame would begin: its position and sequence number.
    pub(crate) fn next(&self) -> Place {
        self.claims.next(self.floor())
    }

    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    pub(crate) fn freed(&self) -> u64 {
        self.freed.load(Ordering::Acquire)
    }

    /// Bytes that are claimed and not drained.
    pub(crate) fn claimed_bytes(&self) -> u64 {
        if planted(Fault::FreedReadLate) {
            return self.next().position.wrapping_sub(self.freed());
        }
        // In this order: a claim that is read later is not behind what was freed before.
        let freed = self.freed();
        self.next().position - freed
    }

    pub(crate) fn failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Promises space, if there is any now.
    pub(crate) fn try_reserve(&self, bytes: u64, class: Class) -> bool {
        loop {
            // In this order: nothing read later is behind what was read before.
            let freed = self.freed.load(Ordering::Acquire);
            let claimed = self.next().position;
            let reserved = self.reserved.load(Ordering::Relaxed);
            let end = reserved + bytes;
            let is_over = class == Class::Commit && end.saturating_sub(claimed) > self.capacity() / 2;
            if is_over || end.saturating_sub(freed) > self.capacity() {
                return false;
            }
            let promised =
                self.reserved.compare_exchange_weak(reserved, end, Ordering::AcqRel, Ordering::Relaxed);
            if promised.is_ok() {
                return true;
            }
        }
    }

    /// Takes promised space back.
    pub(crate) fn unreserve(&self, bytes: u64) {
        self.reserved.fetch_sub(bytes, Ordering::AcqRel);
        self.made_room();
    }

    /// Puts a frame into reserved space. `header` gets the sequence number that was claimed and makes the words.
    /// Returns where the frame begins.
    pub(crate) fn append(
        &self,
        span_bytes: u64,
        takes_tsn: bool,
        header: impl FnOnce(Place) -> [u64; 4],
        body: &[u8],
    ) -> Place {
        let place = self.claims.claim(span_bytes, takes_tsn, || self.floor());
        self.ring.publish(place.position, header(place), body);
        // With the fence in `await_published` and in `wait_for_room`: either the other side sees what was stored
        // here, or this side sees that somebody waits.
        fence(Ordering::SeqCst);
        if self.awaited.load(Ordering::Relaxed) == place.position {
            self.published.unpark();
        }
        self.wake_for_room();
        place
    }

    // ---- the consumer's side

    /// The frame at a position, if it is published.
    pub(crate) fn peek(&self, position: u64) -> Option<Peeked> {
        let word = self.ring.first_word(position);
        (word as u32 != 0).then(|| Peeked {
            span_bytes: u64::from(word as u32).next_multiple_of(8),
            takes_tsn: FrameKind::try_from((word >> 32) as u8).is_ok_and(FrameKind::takes_tsn),
        })
    }

    /// Has anybody claimed beyond the cursor?
    pub(crate) fn is_claimed_beyond(&self, cursor: Cursor) -> bool {
        self.next().position > cursor.0.position
    }

    /// Waits until the frame at the cursor, which somebody has claimed, is published. That takes a copy of its body.
    pub(crate) fn await_published(&self, cursor: Cursor) {
        let position = cursor.0.position;
        self.awaited.store(position, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if planted(Fault::AwaitBlind) && self.published.park(Deadline::INFINITE) == WaitEnd::Woken {
            return;
        }
        while self.peek(position).is_none() {
            let _ = self.published.park(Deadline::INFINITE);
        }
        self.awaited.store(NOWHERE, Ordering::Relaxed);
    }

    /// Copies published bytes from the cursor on and moves it. Their space is free for others afterwards.
    pub(crate) fn take(&self, cursor: &mut Cursor, bytes: &mut [u8], tsns: u64) {
        let end = Place { position: cursor.0.position + bytes.len() as u64, tsn: cursor.0.tsn + tsns };
        if planted(Fault::FreeEarly) {
            self.freed.store(end.position, Ordering::Release);
        }
        self.ring.take(cursor.0.position, bytes);
        self.waiters.begin_group();
        cursor.0 = end;
        self.freed_tsn.store(end.tsn, Ordering::Release);
        self.freed.store(end.position, Ordering::Release);
        self.made_room();
    }

    /// Everything before a position is durable: whoever waited for that is served, and to be woken when the writer is
    /// free, or before it does something else. They and the calling thread are expected back within a time.
    pub(crate) fn acknowledge(&self, position: u64, gather: Duration) {
        let is_late = planted(Fault::DurableAfterMark);
        if !is_late {
            self.durable.store(position, Ordering::Release);
        }
        self.waiters.release(position, gather);
        if is_late {
            self.durable.store(position, Ordering::Release);
        }
    }

    /// Nothing more will become durable: wakes everybody.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
        self.waiters.wake_all();
        self.made_room();
    }

    // ---- waiting for space

    /// The writer was given back. Whoever waits for space found it taken, perhaps, and is to look again if there are
    /// frames whose space it can free; without any, the space is others' to give back.
    pub(crate) fn writer_is_free(&self) {
        // With the ones in `append` and in `wait_for_room`: either the frame and whoever waits are seen here, or
        // whoever waits sees the writer free.
        fence(Ordering::SeqCst);
        let waits = self.room_waiters.load(Ordering::Relaxed) > 0 && !planted(Fault::FreedUntold);
        if waits && self.claimed_bytes() > 0 {
            self.wake_for_room();
        }
    }

    /// Something may have made room.
    pub(crate) fn made_room(&self) {
        fence(Ordering::SeqCst);
        self.wake_for_room();
    }

    fn wake_for_room(&self) {
        if planted(Fault::SpaceBlind) || self.room_waiters.load(Ordering::Relaxed) == 0 {
            return;
        }
        self.room.fetch_add(1, Ordering::Release);
        wait::wake_all(&self.room);
    }

    /// Calls `attempt` until it gives a result, or the deadline passes; between attempts it sleeps until something may
    /// have made room.
    pub(crate) fn wait_for_room<R>(
        &self,
        deadline: Deadline,
        mut attempt: impl FnMut() -> Option<R>,
    ) -> Option<R> {
        self.room_waiters.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let result = loop {
            let seen = self.room.load(Ordering::Acquire);
            if let Some(result) = attempt() {
                break Some(result);
            }
            if wait::wait(&self.room, seen, deadline) == WaitEnd::Expired || deadline.is_expired() {
                break None;
            }
        };
        self.room_waiters.fetch_sub(1, Ordering::Relaxed);
        result
    }
}
