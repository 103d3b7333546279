//! What the collector's events mean: typed payloads, and the collections and pauses they add up to.
//!
//! [`GcEvent`] decodes one event. [`Tracker`] pairs events into [`GcRecord`]s. [`GcStream`] does the whole way from
//! bytes to both. All of it is pure: no I/O and no clock but the timestamps in the stream.

mod event;
mod record;
mod stream;
mod tracker;
mod values;

pub use event::{
    CommittedUsage, DynamicEvent, GcEnd, GcEvent, GcPayloadError, GcStart, GenerationHistory,
    GlobalHeapHistory, HeapStats, MarkWithType, PerHeapHistory, RUNTIME_PROVIDER, Segment, SuspendEeBegin,
    is_gc_event,
};
pub use record::{Collection, CollectionStart, GcRecord, HeapSizes, Loss, LossKind, Suspension};
pub use stream::{GcItem, GcStream, GcStreamError, StreamCounters};
pub use tracker::{Tracker, TrackerCounters};
pub use values::{GcReason, GcType, SuspendReason};
