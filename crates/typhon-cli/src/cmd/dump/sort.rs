//! `--sort`: an external merge sort, since a trace does not fit into memory as text.

use crate::cmd::portions::Text;
use crate::failure::{Exit, Failure};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::ops::{ControlFlow, Range};

/// Lines held in memory before a sorted run is spilled into a temporary file.
const RUN_BYTES: usize = 64 << 20;

/// Collects lines with keys and gives them back in the order of the keys; equal keys keep their order.
pub(crate) struct Sorter {
    bytes: Vec<u8>,
    lines: Vec<(i64, Range<usize>)>,
    spilled: Vec<File>,
    records: u64,
    run_bytes: usize,
}

impl Sorter {
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::new(), lines: Vec::new(), spilled: Vec::new(), records: 0, run_bytes: RUN_BYTES }
    }

    /// Adds the lines of a portion.
    pub(crate) fn take(&mut self, text: &Text) -> Result<(), Failure> {
        let lines = text.bytes.split_inclusive(|&byte| byte == b'\n');
        for (key, line) in text.keys.iter().zip(lines) {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(line);
            self.lines.push((*key, start..self.bytes.len()));
        }
        self.records += text.records;
        let held = self.bytes.len() + self.lines.len() * size_of::<(i64, Range<usize>)>();
        if held >= self.run_bytes { self.spill().map_err(spill_failed) } else { Ok(()) }
    }

    fn spill(&mut self) -> io::Result<()> {
        self.lines.sort_by_key(|(key, _)| *key);
        let mut file = tempfile::tempfile()?;
        let mut out = BufWriter::new(&mut file);
        for (key, line) in self.lines.drain(..) {
            let line = &self.bytes[line];
            out.write_all(&key.to_le_bytes())?;
            out.write_all(&(line.len() as u64).to_le_bytes())?;
            out.write_all(line)?;
        }
        out.flush()?;
        drop(out);
        file.rewind()?;
        self.spilled.push(file);
        self.bytes.clear();
        Ok(())
    }

    /// Lines so far.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Delivers the lines in order, without the first `skip`, until `deliver` breaks off.
    pub(crate) fn finish(
        mut self,
        mut skip: u64,
        mut deliver: impl FnMut(Text) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<(), Failure> {
        let mut line = |bytes: &[u8]| {
            if skip > 0 {
                skip -= 1;
                return Ok(ControlFlow::Continue(()));
            }
            deliver(Text { bytes: bytes.to_vec(), records: 1, keys: Vec::new() })
        };
        if self.spilled.is_empty() {
            self.lines.sort_by_key(|(key, _)| *key);
            for (_, place) in &self.lines {
                if line(&self.bytes[place.clone()])?.is_break() {
                    break;
                }
            }
            return Ok(());
        }
        self.spill().map_err(spill_failed)?;
        let mut runs: Vec<_> = self.spilled.into_iter().map(Run::new).collect();
        let mut heap = BinaryHeap::new();
        for (index, run) in runs.iter_mut().enumerate() {
            heap.extend(run.advance().map_err(spill_failed)?.map(|key| Reverse((key, index))));
        }
        while let Some(Reverse((_, index))) = heap.pop() {
            if line(&runs[index].line)?.is_break() {
                break;
            }
            heap.extend(runs[index].advance().map_err(spill_failed)?.map(|key| Reverse((key, index))));
        }
        Ok(())
    }
}

fn spill_failed(err: io::Error) -> Failure {
    Failure::new(Exit::Io, "sorting needs temporary files, which cannot be used")
        .caused_by(err)
        .hint("set TMPDIR to a folder with enough room, or select fewer records")
}

/// A spilled run that is being read back.
struct Run {
    file: BufReader<File>,
    line: Vec<u8>,
}

impl Run {
    fn new(file: File) -> Self {
        Self { file: BufReader::new(file), line: Vec::new() }
    }

    /// Reads the next line and returns its key; `None` at the end of the run.
    fn advance(&mut self) -> io::Result<Option<i64>> {
        let mut head = [0; 16];
        match self.file.read_exact(&mut head) {
            Err(err) if err.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let (key, length) = head.split_at(8);
        let word = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).unwrap_or_default();
        self.line.resize(word(length) as usize, 0);
        self.file.read_exact(&mut self.line)?;
        Ok(Some(word(key) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(keys: &[i64], run_bytes: usize) -> Vec<String> {
        let mut sorter = Sorter { run_bytes, ..Sorter::new() };
        for (portion, keys) in keys.chunks(3).enumerate() {
            let lines = keys.iter().enumerate().map(|(index, key)| format!("{key} {portion}.{index}\n"));
            let bytes = lines.collect::<String>().into_bytes();
            let text = Text { bytes, records: keys.len() as u64, keys: keys.to_vec() };
            sorter.take(&text).expect("temporary files");
        }
        let mut lines = Vec::new();
        let deliver = |text: Text| {
            lines.push(String::from_utf8_lossy(&text.bytes).into_owned());
            Ok(ControlFlow::Continue(()))
        };
        sorter.finish(0, deliver).expect("temporary files");
        lines
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn spilling_changes_nothing(keys in prop::collection::vec(-4i64..4, 0..40)) {
            let in_memory = sorted(&keys, usize::MAX);
            let mut expected = keys.clone();
            expected.sort();
            let found: Vec<i64> =
                in_memory.iter().map(|line| line.split(' ').next().expect("key").parse().expect("key")).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(in_memory, sorted(&keys, 200));
        }
    }
}
