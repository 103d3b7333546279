//! `--format csv` and `export --to csv`: RFC 4180. With one kind its fields are columns, else one column holds them
//! as JSON.

use super::jsonl::push_event;
use super::row::{Layout, Row, TimeScale};
use super::value::{push_fields, push_value};
use crate::output::escape::printable;
use crate::output::json::{push_hex, push_int};
use typhon_trace::decode;
use typhon_trace::registry::{self, KindInfo};

/// Writes records of one trace.
pub(crate) struct Csv {
    layout: Layout,
    /// Payload columns when all records are of one kind.
    columns: Option<Vec<&'static str>>,
    /// A column with the self times of spans.
    has_self_times: bool,
}

impl Csv {
    /// `only` is the kind of all records, if there is just one.
    pub(crate) fn new(layout: Layout, only: Option<&'static KindInfo>) -> Self {
        let columns = only.map(|kind| {
            let mut names: Vec<_> = decode::field_names(kind).filter(|name| layout.shows(name)).collect();
            names.dedup();
            names
        });
        Self { layout, columns, has_self_times: false }
    }

    /// With a column for the self times of spans, whose places the records must know.
    pub(crate) fn with_self_times(layout: Layout) -> Self {
        Self { has_self_times: true, ..Self::new(layout, None) }
    }

    /// Appends the line of column names.
    pub(crate) fn heading(&self, out: &mut Vec<u8>) {
        let unit = if self.layout.time == TimeScale::Raw { "ticks" } else { "ns" };
        let self_time = if self.has_self_times { format!(",self_{unit}") } else { String::new() };
        let fixed =
            format!("event,kind,id,slot,thread,tick,ts_{unit},dur_{unit}{self_time},span,parent,trace,site");
        out.extend_from_slice(fixed.as_bytes());
        match &self.columns {
            None => out.extend_from_slice(b",fields"),
            Some(names) => names.iter().for_each(|name| {
                out.push(b',');
                out.extend_from_slice(name.as_bytes());
            }),
        }
        if self.layout.raw {
            out.extend_from_slice(b",raw");
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Appends one line.
    pub(crate) fn record(&self, out: &mut Vec<u8>, row: &Row<'_>) {
        let record = &row.facts.record;
        let context = row.facts.context;
        push_event(out, row);
        out.push(b',');
        out.extend_from_slice(registry::kind(record.kind()).map_or("", |kind| kind.name).as_bytes());
        out.push(b',');
        push_int(out, record.kind());
        out.push(b',');
        push_int(out, record.slot());
        out.push(b',');
        push_cell(out, &printable(row.facts.thread.unwrap_or_default()));
        out.push(b',');
        push_int(out, row.facts.tick);
        out.push(b',');
        push_int(out, self.layout.time.timestamp(context, record.timestamp()));
        match row.span() {
            None => {
                out.extend_from_slice(if self.has_self_times { b",,,,,,".as_slice() } else { b",,,,," });
            }
            Some(span) => {
                out.push(b',');
                push_int(out, self.layout.time.duration(context, span.duration));
                if self.has_self_times {
                    out.push(b',');
                    if let Some(place) = row.facts.place {
                        push_int(out, self.layout.time.duration(context, place.self_ticks));
                    }
                }
                out.extend_from_slice(b",0x");
                push_hex(out, &span.span_id.to_be_bytes());
                out.push(b',');
                if span.parent_span_id != 0 {
                    out.extend_from_slice(b"0x");
                    push_hex(out, &span.parent_span_id.to_be_bytes());
                }
                out.push(b',');
                if let Some(trace) = span.trace_id {
                    push_hex(out, trace);
                }
                out.push(b',');
                if let Some(site) = span.site {
                    push_int(out, site);
                }
            }
        }
        self.payload(out, row);
        if self.layout.raw {
            out.push(b',');
            push_hex(out, record.bytes());
        }
        out.extend_from_slice(b"\r\n");
    }

    fn payload(&self, out: &mut Vec<u8>, row: &Row<'_>) {
        let Some(names) = &self.columns else {
            let mut json = Vec::new();
            push_fields(&mut json, row, &self.layout);
            out.push(b',');
            return push_quoted(out, &json);
        };
        for name in names {
            out.push(b',');
            let Some(field) = self.layout.fields(row).find(|field| field.name == *name) else { continue };
            match field.value {
                decode::Value::Text(text) => push_cell(out, &printable(&text.to_str_lossy())),
                _ => {
                    let mut json = Vec::new();
                    push_value(&mut json, &field, false);
                    match json.first() {
                        Some(b'[') => push_quoted(out, &json),
                        Some(b'"') => out.extend_from_slice(&json[1..json.len() - 1]),
                        _ => out.extend_from_slice(&json),
                    }
                }
            }
        }
    }
}

/// Appends a text that may hold commas or quotes. It has no line breaks, since those are escaped.
fn push_cell(out: &mut Vec<u8>, text: &str) {
    if text.contains([',', '"']) {
        push_quoted(out, text.as_bytes());
    } else {
        out.extend_from_slice(text.as_bytes());
    }
}

fn push_quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for &byte in text {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}
