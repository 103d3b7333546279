//! Which fences take effect: the parts directly before an end, if they are all of them and all of that fence.

use crate::format::{Frame, FrameKind};
use crate::sync::{Fault, planted};

/// The body of a frame of kind [`FrameKind::FenceEnd`], 24 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FenceEnd {
    /// Number of the fence; its parts carry it as their sequence number.
    pub fence: u64,
    /// The tick that it ended, −1 if none.
    pub tick: i64,
    /// How many frames directly before it belong to it.
    pub parts: u32,
    /// Records in all of them.
    pub records: u32,
}

impl FenceEnd {
    /// Bytes of the body.
    pub const BYTES: usize = 24;

    /// The body.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut body = [0; Self::BYTES];
        body[..8].copy_from_slice(&self.fence.to_le_bytes());
        body[8..16].copy_from_slice(&self.tick.to_le_bytes());
        body[16..20].copy_from_slice(&self.parts.to_le_bytes());
        body[20..].copy_from_slice(&self.records.to_le_bytes());
        body
    }

    /// Reads a body; `None` if it is too short. Later versions may add to it.
    pub fn decode(body: &[u8]) -> Option<Self> {
        let (fence, rest) = body.split_first_chunk()?;
        let (tick, rest) = rest.split_first_chunk()?;
        let (parts, rest) = rest.split_first_chunk()?;
        let (records, _) = rest.split_first_chunk()?;
        Some(Self {
            fence: u64::from_le_bytes(*fence),
            tick: i64::from_le_bytes(*tick),
            parts: u32::from_le_bytes(*parts),
            records: u32::from_le_bytes(*records),
        })
    }
}

/// What a frame does, given those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect<'a> {
    /// It stands for itself.
    Frame,
    /// It waits for the end of its fence.
    Pending,
    /// A fence takes effect with these bodies of parts, in order.
    Fence(FenceEnd, &'a [Vec<u8>]),
    /// None: a fence without all its parts, or a kind of a later version.
    Nothing,
}

/// Follows the frames of a replay and holds back parts of fences.
#[derive(Debug, Default)]
pub struct Fences {
    parts: Vec<Vec<u8>>,
    /// The fence of each part.
    fences: Vec<u64>,
    /// The parts of the last frame's effect are still here.
    is_spent: bool,
}

impl Fences {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Are parts held back? Then what was redone so far is not the state at any position.
    pub fn is_pending(&self) -> bool {
        !self.is_spent && !self.parts.is_empty()
    }

    /// What the next frame does.
    pub fn next(&mut self, frame: &Frame<'_>) -> Effect<'_> {
        if std::mem::take(&mut self.is_spent) {
            self.clear();
        }
        match frame.kind() {
            Some(FrameKind::FencePart) => {
                self.parts.push(frame.body.to_vec());
                self.fences.push(frame.header.seq);
                Effect::Pending
            }
            Some(FrameKind::FenceEnd) => self.end(frame),
            kind => {
                if !planted(Fault::OrphanParts) {
                    self.clear();
                }
                if kind.is_some() { Effect::Frame } else { Effect::Nothing }
            }
        }
    }

    fn end(&mut self, frame: &Frame<'_>) -> Effect<'_> {
        self.is_spent = true;
        let Some(end) = FenceEnd::decode(frame.body) else { return Effect::Nothing };
        if planted(Fault::OrphanParts) {
            return Effect::Fence(end, &self.parts);
        }
        let Some(first) = self.parts.len().checked_sub(end.parts as usize) else { return Effect::Nothing };
        let is_whole = self.fences[first..].iter().all(|fence| *fence == end.fence);
        if is_whole { Effect::Fence(end, &self.parts[first..]) } else { Effect::Nothing }
    }

    fn clear(&mut self) {
        self.parts.clear();
        self.fences.clear();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Lsn;
    use crate::format::FrameHeader;

    fn frame(kind: u8, seq: u64, body: &[u8]) -> Frame<'_> {
        let length = (crate::format::FRAME_HEADER_BYTES + body.len()) as u32;
        let header =
            FrameHeader { length, kind, flags: 0, uow: 0, seq, records: 0, body_crc: crc32c::crc32c(body) };
        Frame { lsn: Lsn(0), header, body }
    }

    fn end(fence: u64, parts: u32) -> Vec<u8> {
        FenceEnd { fence, tick: -1, parts, records: 0 }.encode().to_vec()
    }

    #[test]
    fn a_fence_applies_exactly_its_parts_directly_before_its_end() {
        let mut fences = Fences::new();
        // An abandoned fence, then a whole one.
        assert_eq!(fences.next(&frame(2, 1, b"orphan")), Effect::Pending);
        assert_eq!(fences.next(&frame(2, 2, b"a")), Effect::Pending);
        assert_eq!(fences.next(&frame(2, 2, b"b")), Effect::Pending);
        assert!(fences.is_pending());
        let body = end(2, 2);
        let Effect::Fence(found, parts) = fences.next(&frame(3, 9, &body)) else { panic!("no effect") };
        assert_eq!((found.fence, parts), (2, &[b"a".to_vec(), b"b".to_vec()][..]));
        assert!(!fences.is_pending());
    }

    #[test]
    fn a_fence_with_missing_or_foreign_parts_has_no_effect() {
        for (parts, number, count) in [(vec![2], 2, 2), (vec![1, 2], 2, 2), (vec![2, 2], 3, 2)] {
            let mut fences = Fences::new();
            for part in parts {
                fences.next(&frame(2, part, b"x"));
            }
            assert_eq!(fences.next(&frame(3, 9, &end(number, count))), Effect::Nothing);
        }
        assert_eq!(Fences::new().next(&frame(3, 9, b"short")), Effect::Nothing);
    }

    #[test]
    fn another_frame_drops_pending_parts_and_unknown_kinds_do_nothing() {
        let mut fences = Fences::new();
        fences.next(&frame(2, 1, b"x"));
        assert_eq!(fences.next(&frame(1, 5, b"commit")), Effect::Frame);
        assert_eq!(fences.next(&frame(3, 6, &end(1, 1))), Effect::Nothing);
        assert_eq!(fences.next(&frame(200, 6, b"later version")), Effect::Nothing);
    }
}
