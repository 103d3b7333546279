//! The same data in the formats of other tools (brief 11 §5.5).
//!
//! [`convert`] walks a whole trace once it has been surveyed, nests the spans of every lane and hands slices, instants,
//! counter values and arrows to an [`EventSink`]. [`perfetto`] and [`chrome`] are such sinks; they know their format and
//! nothing else. Memory is bounded: spans wait only until their lane can be nested. [`cut`] writes a part of a trace as a
//! trace.

pub mod chrome;
mod convert;
mod cut;
mod event;
mod pages;
pub mod perfetto;
mod protobuf;
mod scope;
mod sinks;

pub use convert::{
    Conversion, ConvertError, ConvertLimits, ConvertQuery, EventSink, Exported, Links, Place, SourceEvent,
    convert,
};
pub use cut::{Cut, cut};
pub use event::{Annotation, EventText};
pub use scope::Scope;
pub use sinks::{ChromeSink, PerfettoSink};
