//! Watch the garbage collector of a .NET process from Rust.
//!
//! No agent, no code in the target, no elevated rights: every .NET runtime since Core 3.1 listens on a local socket of
//! its user and sends its events to whoever asks. This crate finds that socket, starts a session, decodes the *nettrace*
//! stream while it arrives, and pairs the collector's events into collections and suspensions.
//!
//! Watching a running process (see `examples/watch_gc.rs`):
//!
//! ```no_run
//! # #[cfg(unix)]
//! # fn main() -> Result<(), typhon_clr::ClrError> {
//! use std::time::Duration;
//! use typhon_clr::gc::{GcItem, GcRecord};
//! use typhon_clr::session::{GcProgress, GcSession, GcSettings};
//!
//! let mut session = GcSession::attach(4711, GcSettings::default())?;
//! let mut print = |item: GcItem<'_>| {
//!     if let GcItem::Record(GcRecord::End(collection)) = item {
//!         println!("#{} paused for {} ticks", collection.count, collection.pause_ticks);
//!     }
//! };
//! while session.poll(Duration::from_millis(100), &mut print)? == GcProgress::Running {}
//! # Ok(())
//! # }
//! # #[cfg(not(unix))]
//! # fn main() {}
//! ```
//!
//! Reading a recorded stream:
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
//! - [`ipc`]: the diagnostics protocol as bytes, and connections to runtimes (Unix sockets).
//! - [`endpoint`]: where a process's socket is. Names for Linux, macOS and Windows as pure functions.
//! - [`session`]: everything together for a running target (Unix systems).
//!
//! What it is not: it starts no threads, keeps no global state, and knows nothing of the rest of Typhon.
//!
//! **Invariants**
//! - Any byte string decodes to items and a verdict: no panic, no allocation from an unchecked length, memory within a
//!   small multiple of the input and fixed limits.
//! - Timestamps are those of the event, in the target's ticks, never times of arrival.
//! - Nothing pairs across a gap; whatever is missing is counted.
//! - Only well-formed requests are sent, every wait has a limit, and a session is always stopped before its connection
//!   is closed: a target is never harmed.
#![forbid(unsafe_code)]

mod clock;
pub mod endpoint;
mod error;
pub mod gc;
pub mod ipc;
pub mod nettrace;
#[cfg(unix)]
pub mod session;

pub use clock::ClockSync;
pub use error::ClrError;
