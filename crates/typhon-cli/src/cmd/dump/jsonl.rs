//! `--format jsonl`: one object a line, written byte by byte, since a trace holds millions of records.

use super::row::{Layout, Row};
use super::value::{push_fields, push_quotable};
use crate::output::json::{push_escaped, push_hex, push_int, push_string};
use typhon_analysis::facts::TraceContext;
use typhon_trace::registry;

/// Writes records of one trace.
pub(crate) struct Jsonl {
    layout: Layout,
    /// `{"kind":"TransactionCommit","id":20,"slot":` by kind id.
    heads: Vec<Vec<u8>>,
}

impl Jsonl {
    pub(crate) fn new(layout: Layout) -> Self {
        Self { layout, heads: (0..=u8::MAX).map(head).collect() }
    }

    /// Appends one line.
    pub(crate) fn record(&self, out: &mut Vec<u8>, row: &Row<'_>) {
        let record = &row.facts.record;
        let context = row.facts.context;
        let quote = self.layout.quote_int64;
        out.extend_from_slice(&self.heads[usize::from(record.kind())]);
        push_int(out, record.slot());
        out.extend_from_slice(b",\"thread\":");
        match row.facts.thread {
            Some(name) => push_string(out, name),
            None => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(b",\"tick\":");
        push_int(out, row.facts.tick);
        out.extend_from_slice(b",\"ts\":");
        push_quotable(out, self.layout.time.timestamp(context, record.timestamp()), quote);
        if let Some(span) = row.span() {
            out.extend_from_slice(b",\"dur\":");
            push_quotable(out, self.layout.time.duration(context, span.duration), quote);
            out.extend_from_slice(b",\"spanId\":");
            push_id(out, span.span_id);
            out.extend_from_slice(b",\"parentSpanId\":");
            match span.parent_span_id {
                0 => out.extend_from_slice(b"null"),
                parent => push_id(out, parent),
            }
            out.extend_from_slice(b",\"traceId\":");
            match span.trace_id {
                Some(trace) => {
                    out.push(b'"');
                    push_hex(out, trace);
                    out.push(b'"');
                }
                None => out.extend_from_slice(b"null"),
            }
            if let Some(site) = span.site {
                push_site(out, site, context);
            }
        }
        out.extend_from_slice(b",\"fields\":");
        push_fields(out, row, &self.layout);
        if self.layout.raw || registry::kind(record.kind()).is_none() {
            out.extend_from_slice(b",\"raw\":\"");
            push_hex(out, record.bytes());
            out.push(b'"');
        }
        out.extend_from_slice(b",\"event\":\"");
        push_event(out, row);
        out.extend_from_slice(b"\"}\n");
    }
}

fn head(id: u8) -> Vec<u8> {
    let name = registry::kind(id).map_or("null".to_owned(), |kind| format!("\"{}\"", kind.name));
    format!("{{\"kind\":{name},\"id\":{id},\"slot\":").into_bytes()
}

/// Appends `"0x0200000000000001"`.
fn push_id(out: &mut Vec<u8>, id: u64) {
    out.extend_from_slice(b"\"0x");
    push_hex(out, &id.to_be_bytes());
    out.push(b'"');
}

/// Appends `,"site":{"id":17,"file":…,"line":76,"method":…}`; the id alone when nothing else is known.
fn push_site(out: &mut Vec<u8>, site: u16, context: &TraceContext<'_>) {
    out.extend_from_slice(b",\"site\":{\"id\":");
    push_int(out, site);
    if let Some((location, path)) = context.site(site) {
        if let Some(path) = path {
            out.extend_from_slice(b",\"file\":\"");
            push_escaped(out, path);
            out.push(b'"');
        }
        out.extend_from_slice(b",\"line\":");
        push_int(out, location.line);
        out.extend_from_slice(b",\"method\":");
        push_string(out, &location.method);
    }
    out.push(b'}');
}

/// Appends the event's id, `block.record`.
pub(crate) fn push_event(out: &mut Vec<u8>, row: &Row<'_>) {
    push_int(out, row.block);
    out.push(b'.');
    push_int(out, row.ordinal);
}
