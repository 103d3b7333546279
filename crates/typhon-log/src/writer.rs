//! Drains the stream to the disk: one group at a time, acknowledged after it is durable.

use crate::LogError;
use crate::drive::{Drive, Step};
use crate::error::Failure;
use crate::format::{self, BLOCK_ALIGNMENT, BLOCK_HEADER_BYTES, BlockHeader, Frames};
use crate::segments::Segments;
use crate::stream::{Cursor, Stream};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Fault, Mutex, Ordering, lock, planted};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use typhon_profiler::events::{
    DurabilityWalBuffer, DurabilityWalFrame, DurabilityWalOsWrite, DurabilityWalQueue,
    DurabilityWalQueueDrain, DurabilityWalSignal, Event, WalFlush,
};
use typhon_profiler::{emit, is_on, span};
use typhon_store::Buffer;

/// How long the first thread of a crowd waits at most for the last, as part of what a sync takes.
const GATHER_PART: u32 = 2;
/// And never longer than this.
const GATHER_MAX: Duration = Duration::from_micros(400);

/// Reasons of kind 218.
const DRAINED: u8 = 0;
const EMPTY: u8 = 1;
const UNPUBLISHED: u8 = 4;

/// What the writer tells everybody else.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Why the log has failed.
    failure: Mutex<Option<Arc<Failure>>>,
    /// There was no room for another segment.
    is_full: AtomicBool,
    /// Why.
    full: Mutex<(String, &'static str)>,
    /// Groups made durable so far.
    pub(crate) groups: AtomicU64,
    /// Bytes of blocks written so far, with headers and padding.
    pub(crate) bytes: AtomicU64,
    /// Frames that are being written.
    pub(crate) frames_in_flight: AtomicU32,
    /// A segment was begun, and a file for the one after it should be made ready.
    pub(crate) wants_spare: AtomicBool,
}

impl Told {
    /// The error for everything after a failure.
    pub(crate) fn failed(&self) -> LogError {
        let cause = lock(&self.failure).clone();
        let cause = cause.unwrap_or_else(|| {
            Arc::new(Failure {
                doing: "write",
                path: PathBuf::new(),
                source: io::Error::other("a thread panicked while it wrote"),
            })
        });
        LogError::Failed { cause }
    }

    /// The error while there is no room for another segment.
    pub(crate) fn full(&self) -> Option<LogError> {
        self.is_full.load(Ordering::Relaxed).then(|| {
            let (reason, remedy) = lock(&self.full).clone();
            LogError::Full { reason, remedy }
        })
    }

    /// Takes a failure to find room, or that room was found.
    pub(crate) fn set_full(&self, full: Option<(String, &'static str)>) {
        self.is_full.store(full.is_some(), Ordering::Relaxed);
        if let Some(full) = full {
            *lock(&self.full) = full;
        }
    }

    fn set_failure(&self, error: LogError) {
        let failure = match error {
            LogError::Storage { doing, path, source } => Failure { doing, path, source },
            other => Failure { doing: "write", path: PathBuf::new(), source: io::Error::other(other) },
        };
        lock(&self.failure).get_or_insert_with(|| Arc::new(failure));
    }
}

/// Frames that go into one block.
#[derive(Debug, Clone, Copy, Default)]
struct Batch {
    bytes: u64,
    frames: u32,
    tsns: u64,
}

enum Collected {
    Nothing,
    Batch(Batch),
    /// The next frame has this size, for which the segment has no room.
    TooLarge(u64),
}

#[derive(Debug)]
pub(crate) struct Writer {
    cursor: Cursor,
    pub(crate) segments: Segments,
    staging: Buffer,
    /// Checksum of the last block.
    previous_crc: u32,
    /// What the last sync took.
    sync_time: Duration,
    pub(crate) told: Arc<Told>,
}

impl Drive for Writer {
    fn step(&mut self, stream: &Stream) -> Step {
        if stream.failed() {
            return Step::Failed;
        }
        match self.write_group(stream) {
            Ok(step) => step,
            Err(error) => {
                self.told.set_failure(error);
                stream.fail();
                Step::Failed
            }
        }
    }
}

impl Writer {
    pub(crate) fn new(cursor: Cursor, segments: Segments, previous_crc: u32, told: Arc<Told>) -> Self {
        Self {
            cursor,
            segments,
            staging: Buffer::zeroed(64 << 10),
            previous_crc,
            sync_time: Duration::ZERO,
            told,
        }
    }

    fn write_group(&mut self, stream: &Stream) -> Result<Step, LogError> {
        if stream.peek(self.cursor.0.position).is_none() {
            if !stream.is_claimed_beyond(self.cursor) {
                decide(0, 0, EMPTY);
                return Ok(Step::Idle);
            }
            decide(0, 0, UNPUBLISHED);
            stream.await_published(self.cursor);
        }
        let mut group = span!(WalFlush { batch_byte_count: 0, frame_count: 0, high_lsn: 0 });
        let (start, mut frames, mut blocks) = (self.cursor.0.position, 0, 0_u8);
        let step = loop {
            // One ring is in flight at most, so that what is appended and not durable stays below two.
            if self.cursor.0.position - start >= stream.capacity() {
                break Step::Wrote;
            }
            match self.collect(stream) {
                Collected::Nothing => break Step::Wrote,
                Collected::Batch(batch) => {
                    decide(blocks, batch.bytes, DRAINED);
                    self.write_block(stream, batch)?;
                    frames += batch.frames;
                    blocks = blocks.saturating_add(1);
                    // Those whom the sync has woken are about to append: their group is for the last of them to write.
                    if stream.durable() == self.cursor.0.position {
                        break Step::Wrote;
                    }
                }
                Collected::TooLarge(bytes) => {
                    if !planted(Fault::SyncNewestOnly) {
                        self.settle(stream)?;
                    }
                    stream.waiters.wake_served();
                    if !self.rotate(bytes)? {
                        break if frames > 0 { Step::Wrote } else { Step::Full };
                    }
                }
            }
        };
        self.settle(stream)?;
        group.set(|event| {
            event.batch_byte_count = clamp(self.cursor.0.position - start);
            event.frame_count = frames as i32;
            event.high_lsn = self.cursor.0.position as i64;
        });
        Ok(step)
    }

    /// Counts the published frames that fit into one block.
    fn collect(&self, stream: &Stream) -> Collected {
        let mut drain = span!(DurabilityWalQueueDrain { bytes_aligned: 0, frame_count: 0 });
        let room = self.segments.room_bytes();
        let limit = room.min(self.segments.maker.options.block_bytes);
        let mut batch = Batch::default();
        let mut claimed = self.cursor.0.position;
        // When the ring is full, its first frame comes round again behind the last.
        while batch.bytes < stream.capacity()
            && let Some(frame) = stream.peek(self.cursor.0.position + batch.bytes)
        {
            let bytes = batch.bytes + frame.span_bytes;
            if self.cursor.0.position + bytes > claimed {
                claimed = stream.next().position;
                assert!(self.cursor.0.position + bytes <= claimed, "a frame that nobody claimed");
            }
            if batch.frames == 0 && bytes > room {
                return Collected::TooLarge(bytes);
            }
            if batch.frames > 0 && bytes > limit {
                break;
            }
            batch.bytes = bytes;
            batch.frames += 1;
            batch.tsns += u64::from(frame.takes_tsn);
        }
        drain.set(|event| {
            event.bytes_aligned = clamp(batch.bytes);
            event.frame_count = batch.frames as i32;
        });
        if batch.frames == 0 { Collected::Nothing } else { Collected::Batch(batch) }
    }

    /// Goes on in a new segment, unless there is no room for one.
    fn rotate(&mut self, frames_bytes: u64) -> Result<bool, LogError> {
        match self.segments.rotate(self.cursor.0.position, frames_bytes) {
            Ok(()) => {
                self.told.set_full(None);
                self.told.wants_spare.store(true, Ordering::Relaxed);
                Ok(true)
            }
            Err(LogError::Full { reason, remedy }) => {
                self.told.set_full(Some((reason, remedy)));
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn write_block(&mut self, stream: &Stream, batch: Batch) -> Result<(), LogError> {
        let length = BLOCK_HEADER_BYTES as u64 + batch.bytes;
        let padded = length.next_multiple_of(BLOCK_ALIGNMENT);
        let first_lsn = self.cursor.0.position;
        let header = BlockHeader {
            length: length as u32,
            first_lsn,
            end_lsn: first_lsn + batch.bytes,
            segment: self.segments.active.id,
            open_epoch: self.segments.maker.place.epoch,
            frames: batch.frames,
            previous_crc: self.previous_crc,
            follows_durable: stream.durable() >= first_lsn,
            crc: 0,
        };
        let block = self.staging.at_least(padded as usize);
        {
            let pad = clamp(padded - batch.bytes);
            let _span = span!(DurabilityWalBuffer { bytes_aligned: clamp(padded), pad });
            let (head, padding) = block.split_at_mut(length as usize);
            padding.fill(0);
            stream.take(&mut self.cursor, &mut head[BLOCK_HEADER_BYTES..], batch.tsns);
            self.previous_crc = format::seal(&header, head, self.segments.maker.place.store);
            record_frames(head, &header);
        }
        self.told.frames_in_flight.store(batch.frames, Ordering::Relaxed);
        self.told.bytes.fetch_add(padded, Ordering::Relaxed);
        let _span = span!(DurabilityWalOsWrite {
            bytes_aligned: clamp(padded),
            frame_count: batch.frames as i32,
            high_lsn: header.end_lsn as i64,
        });
        self.segments.write(block)?;
        // The last block of a group is nearly always its only one: the span covers its sync as well.
        if stream.peek(self.cursor.0.position).is_none() { self.sync(stream) } else { Ok(()) }
    }

    /// Makes what was written durable, and says so.
    fn settle(&mut self, stream: &Stream) -> Result<(), LogError> {
        if stream.durable() < self.cursor.0.position { self.sync(stream) } else { Ok(()) }
    }

    fn sync(&mut self, stream: &Stream) -> Result<(), LogError> {
        if planted(Fault::AckBeforeSync) {
            self.acknowledge(stream);
        }
        let before = Instant::now();
        self.segments.sync()?;
        self.sync_time = before.elapsed();
        self.acknowledge(stream);
        Ok(())
    }

    fn acknowledge(&mut self, stream: &Stream) {
        let lsn = self.cursor.0.position;
        let _span = span!(DurabilityWalSignal { high_lsn: lsn as i64 });
        self.told.groups.fetch_add(1, Ordering::Relaxed);
        self.told.frames_in_flight.store(0, Ordering::Relaxed);
        stream.acknowledge(lsn, GATHER_MAX.min(self.sync_time / GATHER_PART));
    }
}

/// Kind 218: what was found to be drained.
fn decide(attempt: u8, bytes: u64, reason: u8) {
    emit(|| DurabilityWalQueue { drain_attempt: attempt, data_len: clamp(bytes), wait_reason: reason });
}

/// Kind 220, once per frame, with the checksum of the block before it; extreme, so off unless asked for by name.
fn record_frames(block: &[u8], header: &BlockHeader) {
    if !is_on(DurabilityWalFrame::KIND) {
        return;
    }
    let frames = Frames::new(&block[BLOCK_HEADER_BYTES..], header.first_lsn);
    let mut crc = header.previous_crc;
    for (ordinal, frame) in (0_u16..).zip(frames) {
        emit(|| DurabilityWalFrame { frame_count: ordinal, crc_start: crc });
        crc = frame.header.body_crc;
    }
}

fn clamp(bytes: u64) -> i32 {
    bytes.try_into().unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Draft, Options, Store};
    use std::path::Path;
    use typhon_store::sim::{Faults, SimIo};
    use typhon_sync::Deadline;

    /// Whoever finds that the log has failed finds out why: the reason is there first. Here it can not be put down yet.
    #[test]
    fn a_log_has_not_failed_before_its_reason_is_known() {
        let io = SimIo::new(1);
        let opening = Store::open(Arc::new(io.process()), Path::new("/db"), Options::small(), b"");
        let log = opening.expect("opens").start(b"").expect("starts");
        io.set_faults(Faults { sync_error: 1_000_000, ..Faults::default() });
        let synced = io.calls() + 2;
        let shared = log.shared();
        let reason = lock(&shared.told.failure);
        let error = std::thread::scope(|scope| {
            let commit = scope.spawn(|| log.commit(&Draft::commit(b"lost"), Deadline::INFINITE));
            while io.calls() < synced {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(50));
            let has_failed = shared.driven.stream.failed();
            drop(reason);
            assert!(!has_failed, "failed, and nobody knows why");
            commit.join().expect("no panic").expect_err("the sync failed")
        });
        assert!(error.to_string().contains("cannot sync"), "{error}");
    }
}
