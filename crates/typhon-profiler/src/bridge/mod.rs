//! Bridges: programs that already speak `tracing` or `log` are recorded without a change at their call sites.
//!
//! | there | in the trace |
//! |---|---|
//! | `tracing` span, from each enter to its exit | named span (kind 246): `name{field=value …}` |
//! | `tracing` or `log` event | instant (kind 6): `LEVEL target: message`, with the first integer field as its value |
//!
//! Neither has a source location id: those belong to call sites of this crate's own macros.
#![forbid(unsafe_code)]

#[cfg(feature = "log")]
mod log;
mod names;
#[cfg(feature = "tracing")]
mod tracing;

#[cfg(feature = "log")]
pub use log::ProfilerLogger;
#[cfg(feature = "tracing")]
pub use tracing::ProfilerLayer;
