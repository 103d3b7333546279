//! Decides which blocks the checksums of a file vouch for (format spec, "Checksums").
//!
//! The checksum of a block stands in the block after it, so a verdict needs a look ahead. A checksum that matches
//! proves its block at once. One that does not match leaves open which of the two blocks is damaged; that depends on
//! whether the later block is itself proven. Every reader uses this one resolver, so that streams, random access and
//! parallel decoding agree on every block.

use std::collections::VecDeque;

use super::Lead;

/// Most blocks with mismatching checksums in a row that are held back undecided. A hostile file cannot make a reader
/// hold more: beyond the limit the oldest is taken for damaged. A verdict therefore depends on this many later blocks
/// and on nothing before, so that a reader may start anywhere.
pub(crate) const MAX_UNDECIDED_BLOCKS: usize = 8;

/// What the checksums say about a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The bytes are as they were written.
    Sound,
    /// The bytes differ from what was written; the records are not trusted.
    Mismatch,
    /// Nothing vouches for the block: its successor is missing, damaged or itself mismatching, or the file has no
    /// checksums.
    Unchecked,
}

/// One block as the chain sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    /// CRC-32C of the block; `None` when it does not decode.
    pub(crate) crc: Option<u32>,
    /// What lies between the block before and this one; span-name tables there belong to the checksum of the former.
    pub(crate) lead: Lead,
    /// What the block says about its predecessor; `None` when it says nothing or does not decode.
    pub(crate) claim: Option<u32>,
}

/// Turns links, pushed in file order, into verdicts in the same order.
#[derive(Debug, Default)]
pub(crate) struct ChecksumChain {
    /// Blocks without a verdict so far; each one's checksum in its successor does not match.
    undecided: usize,
    last_crc: Option<u32>,
    ready: VecDeque<Verdict>,
}

impl ChecksumChain {
    /// An empty chain.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds the next block in file order.
    pub(crate) fn push(&mut self, link: Link) {
        if self.undecided > 0 {
            match (self.last_crc.and_then(|crc| link.lead.extend_crc(crc)), link.claim) {
                (Some(crc), Some(claim)) if crc == claim => self.decide(Verdict::Sound),
                (Some(_), Some(_)) if self.undecided < MAX_UNDECIDED_BLOCKS => {}
                (Some(_), Some(_)) => {
                    self.ready.push_back(Verdict::Mismatch);
                    self.undecided -= 1;
                }
                _ => self.decide(Verdict::Unchecked),
            }
        }
        self.undecided += 1;
        self.last_crc = link.crc;
    }

    /// Ends the chain. `last` is the verdict of the last block: a closing block vouches for itself by its form, any
    /// other last block is unchecked.
    pub(crate) fn finish(&mut self, last: Verdict) {
        self.decide(last);
        self.last_crc = None;
    }

    /// The verdict of the oldest block that has not been reported, once it is known.
    pub(crate) fn next_verdict(&mut self) -> Option<Verdict> {
        self.ready.pop_front()
    }

    /// Gives the last undecided block its verdict; each one before it is a mismatch unless its witness is one.
    fn decide(&mut self, last: Verdict) {
        let start = self.ready.len();
        let mut verdict = last;
        for _ in 0..self.undecided {
            self.ready.insert(start, verdict);
            verdict = if verdict == Verdict::Mismatch { Verdict::Unchecked } else { Verdict::Mismatch };
        }
        self.undecided = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Mismatch, Sound, Unchecked};
    use super::*;

    /// Runs the chain over one character per block: what it says about its predecessor.
    /// `m` matches, `x` does not match, `n` nothing, `u` undecodable.
    fn verdicts(blocks: &str, last: Verdict) -> Vec<Verdict> {
        let mut chain = ChecksumChain::new();
        let mut seen = Vec::new();
        let mut most_undecided = 0;
        for (index, what) in blocks.bytes().enumerate() {
            let previous = (index as u32).wrapping_sub(1);
            let (crc, claim) = match what {
                b'm' => (Some(index as u32), Some(previous)),
                b'x' => (Some(index as u32), Some(1_000_000)),
                b'n' => (Some(index as u32), None),
                _ => (None, None),
            };
            chain.push(Link { crc, lead: Lead::Adjacent, claim });
            most_undecided = most_undecided.max(chain.undecided);
            seen.extend(std::iter::from_fn(|| chain.next_verdict()));
        }
        chain.finish(last);
        seen.extend(std::iter::from_fn(|| chain.next_verdict()));
        assert_eq!(seen.len(), blocks.len());
        assert!(most_undecided <= MAX_UNDECIDED_BLOCKS);
        seen
    }

    #[test]
    fn b38_a_whole_file_is_sound() {
        assert_eq!(verdicts("nmmm", Sound), [Sound; 4]);
    }

    #[test]
    fn b38_the_last_block_of_a_crashed_file_is_unchecked() {
        assert_eq!(verdicts("nmm", Unchecked), [Sound, Sound, Unchecked]);
        assert_eq!(verdicts("n", Unchecked), [Unchecked]);
        assert_eq!(verdicts("", Unchecked), []);
    }

    #[test]
    fn b38_a_damaged_block_is_named_by_its_sound_successor() {
        assert_eq!(verdicts("nmxmm", Sound), [Sound, Mismatch, Sound, Sound, Sound]);
    }

    #[test]
    fn b38_a_block_whose_marker_is_damaged_leaves_its_predecessor_unchecked() {
        // Block 2 is damaged in the marker about block 1, so block 3 does not vouch for block 2 either.
        assert_eq!(verdicts("nmxxm", Sound), [Sound, Unchecked, Mismatch, Sound, Sound]);
    }

    #[test]
    fn b38_a_successor_that_does_not_decode_leaves_a_block_unchecked() {
        assert_eq!(verdicts("nmunm", Sound), [Sound, Unchecked, Unchecked, Sound, Sound]);
    }

    #[test]
    fn b38_a_mismatching_end_is_decided_by_the_closing_block() {
        assert_eq!(verdicts("nmx", Sound), [Sound, Mismatch, Sound]);
        assert_eq!(verdicts("nmx", Mismatch), [Sound, Unchecked, Mismatch]);
        assert_eq!(verdicts("nmx", Unchecked), [Sound, Mismatch, Unchecked]);
    }

    #[test]
    fn b38_a_long_run_of_mismatches_is_decided_within_the_limit() {
        let all = verdicts(&format!("n{}", "x".repeat(100)), Unchecked);
        assert!(all.iter().filter(|v| **v == Mismatch).count() >= 50);
        assert!(!all.contains(&Sound));
    }
}
