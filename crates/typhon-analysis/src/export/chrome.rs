//! The JSON trace format of Chrome's `about:tracing`, which most viewers open (brief 11 §5.5).
//!
//! One object per line inside one array, so that a cut file can be mended by hand and diffed. Times are microseconds with
//! three decimals. Every event carries process 1 and the lane as thread.

use super::event::{Annotation, EventText};
use std::io::{self, Write};

/// Above this size browsers' viewers fail to load the file, so the command line warns.
pub const WARN_BYTES: u64 = 200 << 20;

/// Writes a Chrome JSON trace.
#[derive(Debug)]
pub struct ChromeWriter<W> {
    out: W,
    line: Vec<u8>,
    is_first: bool,
}

/// Connects two slices: the arrow leaves at `Start` and arrives at `Finish`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowEnd {
    /// Bound to the slice that encloses the moment.
    Start,
    /// As the finish, but more may follow: viewers forget an arrow at its finish.
    Step,
    /// Bound to the slice that encloses the moment.
    Finish,
}

impl<W: Write> ChromeWriter<W> {
    /// Starts a trace; wrap files in a `BufWriter`.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
        Ok(Self { out, line: Vec::new(), is_first: true })
    }

    /// Closes the array and gives the destination back, not yet flushed.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.write_all(b"\n]}\n")?;
        Ok(self.out)
    }

    /// Names the process.
    pub fn process(&mut self, name: &str) -> io::Result<()> {
        self.write_line(|line| {
            line.extend_from_slice(
                b"\"ph\":\"M\",\"pid\":1,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":",
            );
            json_string(line, name);
            line.push(b'}');
        })
    }

    /// Names a lane.
    pub fn thread(&mut self, tid: u32, name: &str) -> io::Result<()> {
        self.write_line(|line| {
            head(line, 'M', None, tid);
            line.extend_from_slice(b",\"name\":\"thread_name\",\"args\":{\"name\":");
            json_string(line, name);
            line.push(b'}');
        })
    }

    /// A whole slice of a lane; slices of a lane must nest.
    pub fn slice(&mut self, ts_ns: i64, duration_ns: i64, tid: u32, text: EventText<'_>) -> io::Result<()> {
        self.write_line(|line| {
            head(line, 'X', Some(ts_ns), tid);
            line.extend_from_slice(b",\"dur\":");
            microseconds(line, duration_ns);
            named(line, text);
        })
    }

    /// A slice that need not nest with others of its lane.
    pub fn async_slice(
        &mut self,
        ts_ns: i64,
        duration_ns: i64,
        tid: u32,
        id: u64,
        text: EventText<'_>,
    ) -> io::Result<()> {
        for (phase, at, annotations) in
            [('b', ts_ns, text.annotations), ('e', ts_ns.saturating_add(duration_ns), &[][..])]
        {
            self.write_line(|line| {
                head(line, phase, Some(at), tid);
                line.extend_from_slice(format!(",\"id\":\"0x{id:x}\"").as_bytes());
                named(line, EventText { annotations, ..text });
            })?;
        }
        Ok(())
    }

    /// A point in time on a lane.
    pub fn instant(&mut self, ts_ns: i64, tid: u32, text: EventText<'_>) -> io::Result<()> {
        self.write_line(|line| {
            head(line, 'i', Some(ts_ns), tid);
            line.extend_from_slice(b",\"s\":\"t\"");
            named(line, text);
        })
    }

    /// A value of a named counter.
    pub fn counter(&mut self, ts_ns: i64, name: &str, value: Annotation<'_>) -> io::Result<()> {
        self.write_line(|line| {
            head(line, 'C', Some(ts_ns), 0);
            named(line, EventText { name, annotations: &[("value", value)], ..EventText::default() });
        })
    }

    /// One end of an arrow between slices.
    pub fn flow(&mut self, end: FlowEnd, ts_ns: i64, tid: u32, id: u64, name: &str) -> io::Result<()> {
        self.write_line(|line| {
            let phase = match end {
                FlowEnd::Start => 's',
                FlowEnd::Step => 't',
                FlowEnd::Finish => 'f',
            };
            head(line, phase, Some(ts_ns), tid);
            line.extend_from_slice(format!(",\"bp\":\"e\",\"id\":\"0x{id:x}\"").as_bytes());
            named(line, EventText { name, category: "flow", ..EventText::default() });
        })
    }

    fn write_line(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.line.clear();
        self.line.extend_from_slice(if self.is_first { b"{" } else { b",\n{" });
        self.is_first = false;
        fill(&mut self.line);
        self.line.push(b'}');
        self.out.write_all(&self.line)
    }
}

fn head(line: &mut Vec<u8>, phase: char, ts_ns: Option<i64>, tid: u32) {
    line.extend_from_slice(b"\"ph\":\"");
    line.push(phase as u8);
    line.extend_from_slice(b"\",\"pid\":1,\"tid\":");
    integer(line, tid);
    if let Some(ts_ns) = ts_ns {
        line.extend_from_slice(b",\"ts\":");
        microseconds(line, ts_ns);
    }
}

fn named(line: &mut Vec<u8>, text: EventText<'_>) {
    line.extend_from_slice(b",\"name\":");
    json_string(line, text.name);
    if !text.category.is_empty() {
        line.extend_from_slice(b",\"cat\":");
        json_string(line, text.category);
    }
    if text.annotations.is_empty() {
        return;
    }
    line.extend_from_slice(b",\"args\":{");
    for (index, (label, value)) in text.annotations.iter().enumerate() {
        if index > 0 {
            line.push(b',');
        }
        json_string(line, label);
        line.push(b':');
        match *value {
            Annotation::Bool(value) => line.extend_from_slice(if value { b"true" } else { b"false" }),
            Annotation::Uint(value) => integer(line, value),
            Annotation::Int(value) => integer(line, value),
            Annotation::Double(value) if value.is_finite() => {
                line.extend_from_slice(value.to_string().as_bytes())
            }
            Annotation::Double(value) => json_string(line, &value.to_string()),
            Annotation::Text(ref value) => json_string(line, value),
        }
    }
    line.push(b'}');
}

fn integer(line: &mut Vec<u8>, value: impl itoa::Integer) {
    line.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Nanoseconds as microseconds with exactly three decimals, in integers: doubles would lose digits.
fn microseconds(line: &mut Vec<u8>, ns: i64) {
    let magnitude = ns.unsigned_abs();
    if ns < 0 {
        line.push(b'-');
    }
    integer(line, magnitude / 1_000);
    let fraction = magnitude % 1_000;
    line.extend_from_slice(&[
        b'.',
        b'0' + (fraction / 100) as u8,
        b'0' + (fraction / 10 % 10) as u8,
        b'0' + (fraction % 10) as u8,
    ]);
}

fn json_string(line: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    line.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', byte]),
            0..0x20 | 0x7f => {
                line.extend_from_slice(b"\\u00");
                line.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
            _ => line.push(byte),
        }
    }
    line.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_one_json_document() {
        let mut writer = ChromeWriter::new(Vec::new()).unwrap();
        writer.process("a \"quoted\"\u{1b}[31m name").unwrap();
        writer.thread(2, "Worker").unwrap();
        let annotations = [("tsn", Annotation::Int(-4)), ("ratio", Annotation::Double(f64::NAN))];
        let text =
            EventText { name: "Commit", category: "Transaction", annotations: &annotations, flows: &[] };
        writer.slice(-1_234_567, 5, 2, text).unwrap();
        writer.async_slice(10, 5, 2, 0x99, text).unwrap();
        writer.instant(1, 2, EventText { name: "Mark", ..EventText::default() }).unwrap();
        writer.counter(1_000, "Gen0", Annotation::Uint(u64::MAX)).unwrap();
        writer.flow(FlowEnd::Start, 3, 2, 7, "completion").unwrap();
        let bytes = writer.finish().unwrap();
        let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 8);
        assert_eq!(events[0]["args"]["name"], "a \"quoted\"\u{1b}[31m name");
        assert_eq!(events[2]["ts"], serde_json::json!(-1234.567));
        assert_eq!(events[2]["args"], serde_json::json!({"tsn": -4, "ratio": "NaN"}));
        assert_eq!((&events[3]["ph"], &events[4]["ph"]), (&serde_json::json!("b"), &serde_json::json!("e")));
        assert_eq!(events[6]["args"]["value"], serde_json::json!(u64::MAX));
    }
}
