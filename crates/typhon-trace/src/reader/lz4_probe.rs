//! Measures an LZ4 block without producing its output.
//!
//! The salvage search meets thousands of places that look like a block header. Decompressing at each would cost up to
//! 16 MiB of output per place; walking the sequences alone rejects nearly all of them after a few steps, and reports
//! how many steps it took, so that the search can bound its work.

/// Result of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Probe {
    /// Bytes that the data would decompress to; `None` when it is not an LZ4 block of at most the stated size.
    pub(crate) output_bytes: Option<usize>,
    /// Sequences and length bytes looked at.
    pub(crate) steps: u64,
}

/// Walks the sequences of `data`; gives up as soon as the output would exceed `limit`.
pub(crate) fn probe(data: &[u8], limit: usize) -> Probe {
    let mut walk = Sequences { data, position: 0, output: 0, steps: 0 };
    while walk.output <= limit && walk.steps <= data.len() as u64 {
        match walk.sequence() {
            Some(true) => return Probe { output_bytes: Some(walk.output), steps: walk.steps },
            Some(false) => {}
            None => break,
        }
    }
    Probe { output_bytes: None, steps: walk.steps }
}

struct Sequences<'a> {
    data: &'a [u8],
    position: usize,
    output: usize,
    steps: u64,
}

impl Sequences<'_> {
    /// Steps over one sequence; `Some(true)` at the clean end of the data, `None` when the data is not LZ4.
    fn sequence(&mut self) -> Option<bool> {
        self.steps += 1;
        let token = self.byte()?;
        let literals = self.length(token >> 4)?;
        self.position = self.position.checked_add(literals).filter(|end| *end <= self.data.len())?;
        self.output += literals;
        if self.position == self.data.len() {
            return Some(true);
        }
        let distance = usize::from(u16::from_le_bytes([self.byte()?, self.byte()?]));
        if distance == 0 || distance > self.output {
            return None;
        }
        self.output += self.length(token & 15)? + 4;
        Some(false)
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = self.data.get(self.position).copied();
        self.position += 1;
        byte
    }

    /// A length of 15 goes on in bytes of 255 and ends with a smaller one.
    fn length(&mut self, nibble: u8) -> Option<usize> {
        let mut length = usize::from(nibble);
        if nibble == 15 {
            loop {
                self.steps += 1;
                let byte = self.byte()?;
                length += usize::from(byte);
                if byte != 255 {
                    break;
                }
            }
        }
        Some(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_compressed_block_measures_as_its_input(
            pieces in prop::collection::vec((any::<u8>(), 1usize..400), 0..40),
        ) {
            let input: Vec<u8> = pieces.iter().flat_map(|&(byte, n)| std::iter::repeat_n(byte, n)).collect();
            let compressed = lz4_flex::block::compress(&input);
            prop_assert_eq!(probe(&compressed, input.len()).output_bytes, Some(input.len()));
            if !input.is_empty() {
                prop_assert_eq!(probe(&compressed, input.len() - 1).output_bytes.filter(|n| *n < input.len()), None);
            }
        }

        #[test]
        fn what_decompresses_also_measures(data in prop::collection::vec(any::<u8>(), 1..200)) {
            let result = probe(&data, 1 << 16);
            prop_assert!(result.steps <= data.len() as u64 + 1);
            let mut output = vec![0; 1 << 16];
            if let Ok(bytes) = lz4_flex::block::decompress_into(&data, &mut output) {
                prop_assert_eq!(result.output_bytes, Some(bytes));
            }
        }
    }
}
