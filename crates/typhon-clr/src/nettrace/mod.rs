//! Streaming decoder of nettrace, the byte stream in which .NET runtimes send their events.
//!
//! Format version 4 is what every runtime from .NET Core 3.1 to .NET 10 sends; the optional additions of version 5
//! are tolerated, version 6 and newer are refused with a clear error. [`Decoder`] is fed bytes in chunks of any size
//! and yields [`Item`]s; it does no I/O, never allocates from a length it has not checked, and holds at most one
//! block. [`Reorder`] merges the per-thread event sequences into one in time order.
//!
//! Nothing here knows what an event means; [`crate::gc`] does.

mod blob;
mod cursor;
mod decoder;
mod error;
mod metadata;
mod reorder;
mod sequence;

pub use decoder::{
    Decoder, Event, EventHeader, Item, LostEvents, MAX_BLOCK_BYTES, SequencePoint, TraceInfo, UtcTime,
};
pub use error::{NettraceError, NettraceFault};
pub use metadata::{Field, Metadata};
pub use reorder::Reorder;
pub use sequence::Continuity;

pub(crate) use cursor::Cursor;
