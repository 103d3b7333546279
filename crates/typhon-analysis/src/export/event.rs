//! What the writers of other formats need to know of one event.

use std::borrow::Cow;
use typhon_trace::decode::{self, Field, Value};
use typhon_trace::record::Record;

/// Value of a field in another tool's trace.
#[derive(Debug, Clone, PartialEq)]
pub enum Annotation<'a> {
    /// true or false.
    Bool(bool),
    /// Unsigned.
    Uint(u64),
    /// Signed.
    Int(i64),
    /// Floating point.
    Double(f64),
    /// Text.
    Text(Cow<'a, str>),
}

/// Name, category and extras of a slice's begin or of an instant.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventText<'a> {
    /// What the bar says.
    pub name: &'a str,
    /// Group of names.
    pub category: &'a str,
    /// Fields, by name.
    pub annotations: &'a [(&'a str, Annotation<'a>)],
    /// Ids that connect this event with earlier and later ones of the same id.
    pub flows: &'a [u64],
}

/// Fields of a record, for [`EventText::annotations`].
pub(super) fn annotations<'r>(record: &Record<'r>) -> Vec<(&'static str, Annotation<'r>)> {
    decode::fields(record).filter_map(|field| Some((field.name, annotation(&field)?))).collect()
}

/// Gauges are counters of their own and appear in no record's fields.
fn annotation<'r>(field: &Field<'r>) -> Option<Annotation<'r>> {
    if let Some(name) = field.value_name() {
        return Some(Annotation::Text(Cow::Borrowed(name)));
    }
    Some(match field.value {
        Value::Unsigned(value) => Annotation::Uint(value),
        Value::Signed(value) => Annotation::Int(value),
        Value::F32(value) => Annotation::Double(value.into()),
        Value::F64(value) => Annotation::Double(value),
        Value::Bool(value) => Annotation::Bool(value),
        Value::Text(text) => Annotation::Text(text.to_str_lossy()),
        Value::Gauges(_) => return None,
        Value::Evaluators(list) => {
            let parts: Vec<String> = list.iter().map(|evaluator| format!("{evaluator:?}")).collect();
            Annotation::Text(parts.join("; ").into())
        }
        Value::FieldIndexes(list) => joined(list.iter()),
        Value::Thresholds(list) => joined(list.iter()),
    })
}

fn joined<'r>(values: impl Iterator<Item = impl ToString>) -> Annotation<'r> {
    let parts: Vec<String> = values.map(|value| value.to_string()).collect();
    Annotation::Text(parts.join(", ").into())
}
