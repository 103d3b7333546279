//! The protocol between producers, the writer and waiting threads, with a list in place of the disk, for loom.

use crate::claim::Place;
use crate::drive::{Drive, Driven, Step};
use crate::format::{FRAME_HEADER_BYTES, FrameHeader, FrameKind};
use crate::group::GroupTimer;
use crate::stream::{Class, Cursor, Stream};
use crate::waiters::Turn;
use std::sync::Arc;
use std::time::Duration;
use typhon_sync::Deadline;

/// Header and one word.
const SPAN_BYTES: u64 = FRAME_HEADER_BYTES as u64 + 8;
/// Where positions begin.
const START: Place = Place { position: 4096, tsn: 1 };

/// A log on nothing.
#[derive(Debug, Clone)]
pub struct Model {
    driven: Arc<Driven<Sink>>,
    group: Arc<GroupTimer>,
}

/// What stands for the disk: it checks every frame that arrives.
#[derive(Debug)]
struct Sink {
    cursor: Cursor,
    /// Sequence number and content of each frame.
    frames: Vec<(u64, u64)>,
}

impl Drive for Sink {
    fn step(&mut self, stream: &Stream) -> Step {
        if stream.peek(self.cursor.0.position).is_none() {
            if !stream.is_claimed_beyond(self.cursor) {
                return Step::Idle;
            }
            stream.await_published(self.cursor);
        }
        let mut bytes = [0; SPAN_BYTES as usize];
        let mut count = 0;
        while count < stream.capacity() / SPAN_BYTES && stream.peek(self.cursor.0.position).is_some() {
            stream.take(&mut self.cursor, &mut bytes, 1);
            let header = FrameHeader::decode(&bytes).expect("the header is whole");
            assert_eq!(header.body_crc, crc32c::crc32c(&bytes[FRAME_HEADER_BYTES..]), "the body is whole");
            let last = self.frames.last().map_or(0, |(tsn, _)| *tsn);
            assert_eq!(header.seq, last + 1, "sequence numbers have the order of positions, without a gap");
            let content = u64::from_le_bytes(bytes[FRAME_HEADER_BYTES..].try_into().expect("eight bytes"));
            self.frames.push((header.seq, content));
            count += 1;
        }
        stream.acknowledge(self.cursor.0.position, Duration::ZERO);
        // Others may run before the writer is given back. The models see that only at a step that matters to others.
        stream.waiters.look();
        Step::Wrote
    }
}

impl Model {
    /// An empty log with a ring of a power of two of bytes.
    pub fn new(ring_bytes: u64) -> Self {
        let sink = Sink { cursor: Cursor(START), frames: Vec::new() };
        let driven = Driven::new(Stream::new(START, ring_bytes), sink, true, false);
        Self { driven: Arc::new(driven), group: Arc::new(GroupTimer::new()) }
    }

    /// Reserves space, waiting for it if need be, and appends. Returns the position.
    pub fn append(&self, content: u64) -> u64 {
        let stream = &self.driven.stream;
        if !stream.try_reserve(SPAN_BYTES, Class::Fence) {
            let attempt = || {
                let has_room = stream.try_reserve(SPAN_BYTES, Class::Fence)
                    || (self.driven.try_step() == Some(Step::Wrote)
                        && stream.try_reserve(SPAN_BYTES, Class::Fence));
                has_room.then_some(())
            };
            stream.wait_for_room(Deadline::INFINITE, attempt).expect("no deadline");
        }
        let body = content.to_le_bytes();
        let header = |place: Place| {
            let header = FrameHeader {
                length: SPAN_BYTES as u32,
                kind: FrameKind::Commit as u8,
                flags: 0,
                uow: 0,
                seq: place.tsn,
                records: 0,
                body_crc: crc32c::crc32c(&body),
            };
            header.to_words()
        };
        stream.append(SPAN_BYTES, true, header, &body).position + SPAN_BYTES
    }

    /// Where so many frames end.
    pub const fn end_of(count: u64) -> u64 {
        START.position + count * SPAN_BYTES
    }

    /// Reserves space and gives it back.
    pub fn reserve_in_vain(&self) {
        let stream = &self.driven.stream;
        if stream.try_reserve(SPAN_BYTES, Class::Fence) {
            stream.unreserve(SPAN_BYTES);
        }
    }

    /// Waits until a position is durable; then it is.
    pub fn wait(&self, position: u64) {
        self.driven.wait_durable(position, Deadline::INFINITE, || {}).expect("neither failure nor deadline");
        assert!(self.driven.stream.durable() >= position);
    }

    /// Waits once, without looking again whether the position is durable: it is when the thread is served.
    pub fn wait_once(&self, position: u64) {
        let stream = &self.driven.stream;
        let ticket = stream.waiters.register(position);
        if stream.durable() < position && ticket.park(Deadline::INFINITE) == Turn::Served {
            assert!(stream.durable() >= position, "served, and not durable");
        }
    }

    /// What the ring is said to hold fits into it.
    pub fn measure(&self) {
        let stream = &self.driven.stream;
        assert!(stream.claimed_bytes() <= stream.capacity(), "more than the ring holds");
    }

    /// One step of the writer, if it is free.
    pub fn step(&self) {
        let _ = self.driven.try_step();
    }

    /// Has what this thread appended written with the group that is open, or with the next one.
    pub fn join_group(&self) {
        self.group.join(|| 0);
    }

    /// Writes the group that is open, if one is.
    pub fn write_group(&self) {
        if self.group.close(0) {
            self.driven.write_appended();
        }
    }

    /// What arrived, in order. Nobody may use the log any more.
    pub fn contents(&self) -> Vec<u64> {
        let sink = self.driven.hold();
        sink.frames.iter().map(|(_, content)| *content).collect()
    }
}
