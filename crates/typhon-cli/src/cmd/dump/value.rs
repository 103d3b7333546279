//! Payload values as JSON.

use super::row::{Layout, Row};
use crate::output::json::{push_float, push_int, push_string};
use typhon_trace::decode::{Field, Value};
use typhon_trace::event::{Gauge, GaugeValue};
use typhon_trace::registry::{self, FieldType};

/// Appends `{"tsn":4242,"componentCount":3}`: the payload of a record, as far as it is to be shown.
pub(crate) fn push_fields(out: &mut Vec<u8>, row: &Row<'_>, layout: &Layout) {
    let (kind, context) = (row.facts.record.kind(), row.facts.context);
    out.push(b'{');
    let mut separator: &[u8] = b"";
    for field in layout.fields(row) {
        out.extend_from_slice(separator);
        separator = b",";
        push_key(out, field.name, b"");
        push_value(out, &field, layout.quote_int64);
        if let Some(value_name) = context.value_name(kind, &field) {
            out.push(b',');
            push_key(out, field.name, b"Name");
            push_string(out, value_name);
        }
    }
    out.push(b'}');
}

/// Registry names are plain ASCII and need no escapes.
fn push_key(out: &mut Vec<u8>, name: &str, suffix: &[u8]) {
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(suffix);
    out.extend_from_slice(b"\":");
}

/// Appends a value. 64-bit integers are quoted on request, for readers that hold numbers as doubles.
pub(crate) fn push_value(out: &mut Vec<u8>, field: &Field<'_>, quote_int64: bool) {
    let is_wide = field.info.is_some_and(|info| matches!(info.ty, FieldType::U64 | FieldType::I64));
    let quoted = quote_int64 && is_wide;
    match field.value {
        Value::Unsigned(value) => push_quotable(out, value, quoted),
        Value::Signed(value) => push_quotable(out, value, quoted),
        Value::F32(value) => push_float(out, value.into()),
        Value::F64(value) => push_float(out, value),
        Value::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
        Value::Text(text) => push_string(out, &text.to_str_lossy()),
        Value::Gauges(gauges) => push_list(out, gauges, |out, gauge| push_gauge(out, gauge, quote_int64)),
        Value::Evaluators(list) => push_list(out, list.iter(), |out, evaluator| {
            out.extend_from_slice(b"{\"fieldIdx\":");
            push_int(out, evaluator.field_idx);
            out.extend_from_slice(b",\"op\":");
            push_int(out, evaluator.op.0);
            if let Some(name) = evaluator.op.name() {
                out.extend_from_slice(b",\"opName\":");
                push_string(out, name);
            }
            out.push(b'}');
        }),
        Value::FieldIndexes(list) => push_list(out, list.iter(), push_int),
        Value::Thresholds(list) => {
            push_list(out, list.iter(), |out, value| push_quotable(out, value, quote_int64));
        }
    }
}

/// Appends an integer, perhaps in quotes.
#[inline]
pub(crate) fn push_quotable(out: &mut Vec<u8>, value: impl itoa::Integer, quoted: bool) {
    if quoted {
        out.push(b'"');
        push_int(out, value);
        out.push(b'"');
    } else {
        push_int(out, value);
    }
}

fn push_list<T>(out: &mut Vec<u8>, items: impl Iterator<Item = T>, push: impl Fn(&mut Vec<u8>, T)) {
    out.push(b'[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push(out, item);
    }
    out.push(b']');
}

fn push_gauge(out: &mut Vec<u8>, gauge: Gauge, quote_int64: bool) {
    out.extend_from_slice(b"{\"gauge\":");
    push_int(out, gauge.id);
    if let Some(info) = registry::gauge(gauge.id) {
        out.extend_from_slice(b",\"gaugeName\":");
        push_string(out, info.name);
    }
    out.extend_from_slice(b",\"valueKind\":");
    push_int(out, gauge.value.kind().to_wire());
    out.extend_from_slice(b",\"value\":");
    match gauge.value {
        GaugeValue::U32Count(value) | GaugeValue::U32PercentHundredths(value) => push_int(out, value),
        GaugeValue::U64Bytes(value) => push_quotable(out, value, quote_int64),
        GaugeValue::I64Signed(value) => push_quotable(out, value, quote_int64),
    }
    out.push(b'}');
}
