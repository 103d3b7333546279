//! Watch the garbage collector of a .NET process from Rust.
//!
//! A Common Language Runtime sends its own events as a *nettrace* stream. This crate decodes that stream while it
//! arrives, gives the collector's events types, and pairs them into collections and suspensions:
//!
//! ```
//! use typhon_clr::gc::{GcItem, GcRecord, GcStream};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/nettrace/net8-server.nettrace");
//! let mut stream = GcStream::new();
//! let mut collections = 0;
//! let mut count = |item: GcItem<'_>| {
//!     if let GcItem::Record(GcRecord::End(_)) = item {
//!         collections += 1;
//!     }
//! };
//! stream.feed(&std::fs::read(file)?, &mut count)?;
//! stream.finish(&mut count);
//! assert_eq!(collections, 63);
//! # Ok(())
//! # }
//! ```
//!
//! Layers, each usable without the ones after it:
//! - [`nettrace`]: the container format, for any provider's events. Push decoder, no I/O.
//! - [`gc`]: the collector's events, and what they add up to. No I/O, no clock.
//!
//! **Invariants**
//! - Any byte string decodes to items and a verdict: no panic, no allocation from an unchecked length, memory within a
//!   small multiple of the input and fixed limits.
//! - Timestamps are those of the event, in the target's ticks, never times of arrival.
//! - Nothing pairs across a gap; whatever is missing is counted.
#![forbid(unsafe_code)]

pub mod gc;
pub mod nettrace;
