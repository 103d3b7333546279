//! `--format text`: one line a record, for people.

use super::jsonl::push_event;
use super::row::{Layout, Row, TimeScale};
use super::value::push_value;
use crate::output::escape::printable;
use crate::output::json::{push_hex, push_int};
use crate::output::{table, units};
use typhon_trace::decode::{Field, Value};
use unicode_width::UnicodeWidthStr;

const TIME_WIDTH: usize = 20;
const TICK_WIDTH: usize = 6;
const THREAD_WIDTH: usize = 18;
const NAME_WIDTH: usize = 28;
const DURATION_WIDTH: usize = 9;

/// Writes records of one trace.
pub(crate) struct Text {
    layout: Layout,
    /// Columns of the terminal; a longer line is cut.
    width: Option<usize>,
}

impl Text {
    pub(crate) fn new(layout: Layout, width: Option<usize>) -> Self {
        Self { layout, width }
    }

    /// Appends the line of column names.
    pub(crate) fn heading(&self, out: &mut Vec<u8>) {
        let start = out.len();
        push_right(out, if self.layout.time == TimeScale::Raw { "CLOCK" } else { "TIME [s]" }, TIME_WIDTH);
        push_right(out, "TICK", TICK_WIDTH);
        push_left(out, "THREAD", THREAD_WIDTH);
        push_left(out, "NAME", NAME_WIDTH);
        push_right(out, "DURATION", DURATION_WIDTH);
        out.extend_from_slice(b" FIELDS");
        self.end_line(out, start);
    }

    /// Appends one line.
    pub(crate) fn record(&self, out: &mut Vec<u8>, row: &Row<'_>) {
        let start = out.len();
        let record = &row.facts.record;
        let context = row.facts.context;
        let timestamp = self.layout.time.timestamp(context, record.timestamp());
        match self.layout.time {
            TimeScale::Raw => push_right(out, itoa::Buffer::new().format(timestamp), TIME_WIDTH),
            _ => push_right(out, &seconds(timestamp), TIME_WIDTH),
        }
        push_right(out, itoa::Buffer::new().format(row.facts.tick), TICK_WIDTH);
        match row.facts.thread.filter(|name| !name.is_empty()) {
            Some(name) => push_left(out, &printable(name), THREAD_WIDTH),
            None => push_left(out, &format!("slot {}", record.slot()), THREAD_WIDTH),
        }
        match context.name(record) {
            Some(name) => push_left(out, &printable(&name), NAME_WIDTH),
            None => push_left(out, &format!("kind {}", record.kind()), NAME_WIDTH),
        }
        match row.span() {
            None => push_right(out, "", DURATION_WIDTH),
            Some(span) if self.layout.time == TimeScale::Raw => {
                push_right(out, itoa::Buffer::new().format(span.duration), DURATION_WIDTH);
            }
            Some(span) => {
                push_right(out, &units::duration(context.clock.to_ns(span.duration)), DURATION_WIDTH);
            }
        }
        for field in self.layout.fields(row) {
            out.push(b' ');
            push_field(out, row, &field);
        }
        if self.layout.raw {
            out.extend_from_slice(b"  ");
            push_hex(out, record.bytes());
        }
        out.extend_from_slice(b"  @");
        push_event(out, row);
        self.end_line(out, start);
    }

    /// Ends the line that began at `start`, cut to the terminal.
    fn end_line(&self, out: &mut Vec<u8>, start: usize) {
        if let Some(width) = self.width {
            let line = table::cut(&String::from_utf8_lossy(&out[start..]), width);
            out.truncate(start);
            out.extend_from_slice(line.as_bytes());
        }
        out.push(b'\n');
    }
}

/// Appends a cell of at least `width` columns and a space, filled up on the left.
fn push_right(out: &mut Vec<u8>, text: &str, width: usize) {
    out.resize(out.len() + width.saturating_sub(text.width()), b' ');
    out.extend_from_slice(text.as_bytes());
    out.push(b' ');
}

/// Appends a cell of at least `width` columns and a space, filled up on the right.
fn push_left(out: &mut Vec<u8>, text: &str, width: usize) {
    out.extend_from_slice(text.as_bytes());
    out.resize(out.len() + width.saturating_sub(text.width()) + 1, b' ');
}

/// Seconds with nine decimals, exactly.
fn seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Appends `reason=Shutdown`: a named value by its name, a text as it is, the rest as in JSON.
fn push_field(out: &mut Vec<u8>, row: &Row<'_>, field: &Field<'_>) {
    out.extend_from_slice(field.name.as_bytes());
    out.push(b'=');
    match (row.facts.context.value_name(row.facts.record.kind(), field), field.value) {
        (Some(name), _) => out.extend_from_slice(printable(name).as_bytes()),
        (None, Value::F32(value)) => out.extend_from_slice(value.to_string().as_bytes()),
        (None, Value::Text(text)) => out.extend_from_slice(printable(&text.to_str_lossy()).as_bytes()),
        (None, Value::Gauges(gauges)) => {
            push_int(out, gauges.count());
            out.extend_from_slice(b" gauges");
        }
        (None, _) => push_value(out, field, false),
    }
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn seconds_are_exact() {
        assert_eq!(seconds(1_500_000_001), "1.500000001");
        assert_eq!(seconds(-1), "-0.000000001");
        assert_eq!(seconds(i64::MIN), "-9223372036.854775808");
    }
}
