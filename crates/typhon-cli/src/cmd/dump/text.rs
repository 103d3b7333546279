//! `--format text`: one line a record, for people.

use super::jsonl::push_event;
use super::row::{Layout, Row, TimeScale};
use super::value::push_value;
use crate::output::escape::printable;
use crate::output::json::{push_hex, push_int};
use crate::output::{table, units};
use typhon_trace::decode::{Field, Value};

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
        let time = if self.layout.time == TimeScale::Raw { "CLOCK" } else { "TIME [s]" };
        let line =
            format!("{time:>20} {:>6} {:<16} {:<28} {:>9}  FIELDS", "TICK", "THREAD", "NAME", "DURATION");
        self.push_line(out, line);
    }

    /// Appends one line.
    pub(crate) fn record(&self, out: &mut Vec<u8>, row: &Row<'_>) {
        let record = &row.facts.record;
        let context = row.facts.context;
        let timestamp = self.layout.time.timestamp(context, record.timestamp());
        let time = match self.layout.time {
            TimeScale::Raw => timestamp.to_string(),
            _ => seconds(timestamp),
        };
        let thread = match row.facts.thread.filter(|name| !name.is_empty()) {
            Some(name) => printable(name).into_owned(),
            None => format!("slot {}", record.slot()),
        };
        let name = match context.name(record) {
            Some(name) => printable(&name).into_owned(),
            None => format!("kind {}", record.kind()),
        };
        let duration = match row.span() {
            None => String::new(),
            Some(span) if self.layout.time == TimeScale::Raw => span.duration.to_string(),
            Some(span) => units::duration(context.clock.to_ns(span.duration)),
        };
        let tick = row.facts.tick;
        let mut line = format!("{time:>20} {tick:>6} {thread:<16} {name:<28} {duration:>9} ").into_bytes();
        for field in self.layout.fields(row) {
            line.push(b' ');
            push_field(&mut line, &field);
        }
        if self.layout.raw {
            line.extend_from_slice(b"  ");
            push_hex(&mut line, record.bytes());
        }
        line.extend_from_slice(b"  @");
        push_event(&mut line, row);
        self.push_line(out, String::from_utf8_lossy(&line).into_owned());
    }

    fn push_line(&self, out: &mut Vec<u8>, line: String) {
        let line = match self.width {
            Some(width) => table::cut(&line, width),
            None => line,
        };
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
}

/// Seconds with nine decimals, exactly.
fn seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Appends `reason=Shutdown`: a named value by its name, a text as it is, the rest as in JSON.
fn push_field(out: &mut Vec<u8>, field: &Field<'_>) {
    out.extend_from_slice(field.name.as_bytes());
    out.push(b'=');
    match (field.value_name(), field.value) {
        (Some(name), _) => out.extend_from_slice(name.as_bytes()),
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
