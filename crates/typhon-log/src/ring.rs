//! The memory between producers and the writer: a ring of 64-bit words, addressed by position in the stream.
//!
//! A producer owns the words of its claim until it stores the frame's first word, which holds the length and is never
//! zero; the consumer owns them from then until it has zeroed them and returned the space. Words are relaxed atomics:
//! as fast as plain memory for whole words, and nothing here can be a data race. Order comes from the first word
//! (release, acquire) and from the positions that return space.

use crate::sync::{AtomicU64, Fault, Ordering, planted};

/// Bytes of a word.
const WORD_BYTES: usize = 8;

#[derive(Debug)]
pub(crate) struct Ring {
    words: Box<[AtomicU64]>,
}

impl Ring {
    /// A ring of a power of two of bytes, zeroed.
    pub(crate) fn new(bytes: u64) -> Self {
        debug_assert!(bytes.is_power_of_two() && bytes >= WORD_BYTES as u64);
        Self { words: (0..bytes as usize / WORD_BYTES).map(|_| AtomicU64::new(0)).collect() }
    }

    pub(crate) fn bytes(&self) -> u64 {
        (self.words.len() * WORD_BYTES) as u64
    }

    fn index(&self, position: u64) -> usize {
        (position / WORD_BYTES as u64) as usize & (self.words.len() - 1)
    }

    fn word(&self, position: u64) -> &AtomicU64 {
        &self.words[self.index(position)]
    }

    /// The words from a position on, in the two pieces that the end of the ring makes of them.
    fn pieces(&self, position: u64, words: usize) -> (&[AtomicU64], &[AtomicU64]) {
        let start = self.index(position);
        let first = words.min(self.words.len() - start);
        (&self.words[start..start + first], &self.words[..words - first])
    }

    /// Puts a frame at its claimed position, its first word last.
    pub(crate) fn publish(&self, position: u64, header: [u64; 4], body: &[u8]) {
        if planted(Fault::PublishFirst) {
            self.word(position).store(header[0], Ordering::Release);
        }
        for (index, word) in header.iter().enumerate().skip(1) {
            self.word(position + (index * WORD_BYTES) as u64).store(*word, Ordering::Relaxed);
        }
        self.copy_in(position + size_of_val(&header) as u64, body);
        let order = if planted(Fault::PublishRelaxed) { Ordering::Relaxed } else { Ordering::Release };
        self.word(position).store(header[0], order);
    }

    fn copy_in(&self, position: u64, bytes: &[u8]) {
        let (first, second) = self.pieces(position, bytes.len().div_ceil(WORD_BYTES));
        let (head, tail) = bytes.split_at(bytes.len().min(first.len() * WORD_BYTES));
        store(first, head);
        store(second, tail);
    }

    /// The first word of the frame at a position, 0 if it is not published.
    pub(crate) fn first_word(&self, position: u64) -> u64 {
        self.word(position).load(Ordering::Acquire)
    }

    /// Copies published bytes out, and zeroes their words: a later frame may have its first word anywhere there.
    pub(crate) fn take(&self, position: u64, bytes: &mut [u8]) {
        let (first, second) = self.pieces(position, bytes.len() / WORD_BYTES);
        let (head, tail) = bytes.split_at_mut(first.len() * WORD_BYTES);
        load_and_zero(first, head);
        load_and_zero(second, tail);
    }
}

/// Stores bytes as little-endian words, the last one filled up with zeros.
fn store(words: &[AtomicU64], bytes: &[u8]) {
    let (whole, rest) = bytes.as_chunks::<WORD_BYTES>();
    for (word, bytes) in words.iter().zip(whole) {
        word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
    }
    if !rest.is_empty() {
        let mut last = [0; WORD_BYTES];
        last[..rest.len()].copy_from_slice(rest);
        words[whole.len()].store(u64::from_le_bytes(last), Ordering::Relaxed);
    }
}

fn load_and_zero(words: &[AtomicU64], bytes: &mut [u8]) {
    let (chunks, _) = bytes.as_chunks_mut::<WORD_BYTES>();
    for (word, bytes) in words.iter().zip(chunks) {
        *bytes = word.load(Ordering::Relaxed).to_le_bytes();
        if !planted(Fault::NoZero) {
            word.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_frame_wraps_in_two_pieces_and_comes_out_whole() {
        let ring = Ring::new(128);
        let body: Vec<u8> = (1..=61).collect();
        for position in (4096..4096 + 128).step_by(8) {
            ring.publish(position, [93, 2, 3, 4], &body);
            assert_eq!(ring.first_word(position), 93);
            let mut bytes = [0xFF; 96];
            ring.take(position, &mut bytes);
            assert_eq!(bytes[..8], 93_u64.to_le_bytes());
            assert_eq!(bytes[32..93], body[..]);
            assert_eq!(bytes[93..], [0; 3]);
            assert!(ring.words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        }
    }
}
