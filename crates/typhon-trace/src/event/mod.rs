//! Typed records: per kind a borrowed view for reading and an owned form for writing.
//!
//! The view of a kind, [`TransactionCommitView`] for one, has a method per field. A method returns `None` when the
//! record does not have the field: optional and not flagged, or beyond the end of a record from before the field
//! was appended. Older and alternative layouts are told apart by size. [`EventView`] picks the view by kind.
//!
//! The owned form, [`TransactionCommit`] for one, has required fields as plain values and optional ones as
//! `Option`. It always writes the current full layout, with the mask byte if the kind has one, and never allocates.
//! Retired and removed kinds have a view only: nothing writes them any more.
//!
//! ```
//! use typhon_trace::event::{SpanEvent, SpanFields, TransactionCommit, TransactionCommitView};
//! use typhon_trace::record::Record;
//!
//! let event = TransactionCommit { tsn: 4242, component_count: Some(3), ..TransactionCommit::default() };
//! let span = SpanFields { duration: 85_000, span_id: 2 << 56 | 1, ..SpanFields::default() };
//! let mut buffer = [0; 64];
//! let size = event.encode(2, 1_000_010_000, &span, &mut buffer)?;
//!
//! let record = Record::parse(&buffer[..size])?;
//! let view = TransactionCommitView::new(&record).ok_or("another kind")?;
//! assert_eq!(view.tsn(), Some(4242));
//! assert_eq!(view.component_count(), Some(3));
//! assert_eq!(view.conflict_detected(), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Everything but the five kinds with a variable part is generated from the registry by `cargo xtask codegen`, as
//! invocations of the macros in `macros.rs`.

#[macro_use]
mod macros;

mod all;
mod encode;
mod variable;
mod variable_events;
mod wire;

pub mod concurrency;
pub mod durability;
pub mod ecs;
pub mod enums;
pub mod index;
pub mod profiler;
pub mod query;
pub mod scheduler;
pub mod spatial;
pub mod storage;
pub mod subscriptions;
pub mod transaction;

pub use all::EventView;
pub(crate) use encode::put_common_header;
pub use encode::{BufferTooSmall, Event, InstantEvent, MAX_NAME_BYTES, SpanEvent, SpanFields};
pub use variable::{Evaluator, Gauge, GaugeValue, Gauges, Text};
pub(crate) use variable::{query_lists, span_name, thread_name};
pub use variable_events::{
    NamedSpan, PerTickSnapshot, QueryArgs, QueryDefinitionDescribe, QueryDefinitionHead, ThreadInfo,
};
pub use wire::{PackedIter, PackedList, Wire};
#[doc(no_inline)]
pub use {
    concurrency::*, durability::*, ecs::*, enums::*, index::*, profiler::*, query::*, scheduler::*,
    spatial::*, storage::*, subscriptions::*, transaction::*,
};
