//! Typed records: per kind a borrowed view for reading and an owned form for writing.

mod variable;
mod wire;

pub use variable::{Evaluator, Gauge, GaugeValue, Gauges, Text};
pub(crate) use variable::{query_lists, span_name, thread_name};
pub use wire::{PackedIter, PackedList, Wire};
