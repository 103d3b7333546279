//! Where the text of records goes: straight out, or through a selection of the first or last of them.

use crate::cmd::portions::Text;
use crate::failure::Failure;
use std::collections::VecDeque;
use std::io::Write;
use std::ops::ControlFlow;

/// Writes at once, up to a limit of records.
pub(crate) struct First<W> {
    out: W,
    left: u64,
    written: u64,
}

impl<W: Write> First<W> {
    pub(crate) fn new(out: W, limit: Option<u64>) -> Self {
        Self { out, left: limit.unwrap_or(u64::MAX), written: 0 }
    }

    /// Breaks off at the limit.
    pub(crate) fn take(&mut self, text: &Text) -> Result<ControlFlow<()>, Failure> {
        let records = text.records.min(self.left);
        let bytes = if records == text.records { &text.bytes } else { first_lines(&text.bytes, records) };
        self.out.write_all(bytes).map_err(Failure::stdout)?;
        self.written += records;
        self.left -= records;
        Ok(if self.left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Hands everything to the operating system; returns the number of records.
    pub(crate) fn finish(mut self) -> Result<u64, Failure> {
        self.out.flush().map_err(Failure::stdout)?;
        Ok(self.written)
    }
}

/// Keeps the last records until the end is known.
pub(crate) struct Last {
    kept: VecDeque<Text>,
    records: u64,
    limit: u64,
}

impl Last {
    pub(crate) fn new(limit: u64) -> Self {
        Self { kept: VecDeque::new(), records: 0, limit }
    }

    pub(crate) fn take(&mut self, text: Text) {
        self.records += text.records;
        self.kept.push_back(text);
        while let Some(front) = self.kept.front() {
            if self.records - front.records < self.limit {
                break;
            }
            self.records -= front.records;
            self.kept.pop_front();
        }
    }

    /// Delivers the last records.
    pub(crate) fn finish(
        mut self,
        mut deliver: impl FnMut(Text) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<(), Failure> {
        let mut surplus = self.records.saturating_sub(self.limit);
        for mut text in self.kept.drain(..) {
            let skip = surplus.min(text.records);
            surplus -= skip;
            text.records -= skip;
            let head = first_lines(&text.bytes, skip).len();
            text.bytes.drain(..head);
            if text.records > 0 && deliver(text)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// The first lines. Every record is one line, since line breaks inside of values are escaped.
fn first_lines(text: &[u8], count: u64) -> &[u8] {
    let mut end = 0;
    for _ in 0..count {
        match text[end..].iter().position(|&byte| byte == b'\n') {
            Some(length) => end += length + 1,
            None => return text,
        }
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[u32]) -> Text {
        let bytes: String = lines.iter().map(|line| format!("{line}\n")).collect();
        Text { bytes: bytes.into_bytes(), records: lines.len() as u64, keys: Vec::new() }
    }

    #[test]
    fn the_first_records_end_inside_a_portion() {
        let mut out = Vec::new();
        let mut sink = First::new(&mut out, Some(3));
        assert!(sink.take(&text(&[1, 2])).expect("memory").is_continue());
        assert!(sink.take(&text(&[3, 4])).expect("memory").is_break());
        assert_eq!(out, b"1\n2\n3\n");
    }

    #[test]
    fn the_last_records_begin_inside_a_portion() {
        for (limit, expected) in [(3, "3\n4\n5\n"), (1, "5\n"), (9, "1\n2\n3\n4\n5\n"), (0, "")] {
            let mut sink = Last::new(limit);
            for portion in [text(&[1, 2]), text(&[3, 4]), text(&[]), text(&[5])] {
                sink.take(portion);
            }
            let mut out = Vec::new();
            let deliver = |text: Text| {
                out.extend_from_slice(&text.bytes);
                Ok(ControlFlow::Continue(()))
            };
            sink.finish(deliver).expect("memory");
            assert_eq!(String::from_utf8_lossy(&out), expected, "{limit}");
        }
    }
}
