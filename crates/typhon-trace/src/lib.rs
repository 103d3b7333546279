//! The `.typhon-trace` format, version 12: everything needed to read, check, repair and write recordings.
//!
//! A trace is a file header, eleven metadata tables, LZ4 blocks of size-prefixed binary records, and trailer
//! sections; `docs/trace-format.md` is the byte-by-byte specification. The crate has four layers, each usable
//! without the ones after it:
//!
//! 1. **Registry** ([`registry`]): every event kind with its fields, units, gates and history. Generated from
//!    `registry/kinds.json` by `cargo xtask codegen`; nothing else in the project lists kinds by hand.
//! 2. **Records** ([`record`], [`event`], [`decode`]): borrowed views over bytes. [`event`] is generated and typed,
//!    [`decode`] walks the registry and serves tools that must show any kind.
//! 3. **Parts of a file** ([`header`], [`tables`], [`block`], [`trailer`], [`checksum`], [`live`]): sans-IO codecs.
//! 4. **Whole files** ([`reader`], [`writer`], [`repair`]): streaming and random-access reading with recovery,
//!    crash-safe writing, copies of what is left of a damaged file.
//!
//! What it is not: it starts no threads, knows no engine, opens no sockets and keeps no global state.
//!
//! **Invariants**
//! - No input causes a panic, unbounded time, or memory beyond a small multiple of the input size.
//! - Fatal problems are a [`TraceError`]; everything a reader can step over is a [`Notice`].
//! - A required field that a short record lacks is *absent*, never zero.
//! - Unknown kinds and bytes appended by newer writers survive a copy.
//! - The format is append-only: ids are never reused, layouts only grow at their end.
#![forbid(unsafe_code)]

pub mod block;
pub mod checksum;
pub mod decode;
mod error;
pub mod event;
pub mod header;
pub mod live;
mod notice;
pub mod query_definition;
pub mod reader;
pub mod record;
pub mod registry;
pub mod repair;
pub mod tables;
pub mod trailer;
mod wire;
pub mod writer;

pub use error::{RecordRefusal, TraceError};
pub use notice::{Notice, NoticeCode, Severity};

/// Format version that this build reads and writes.
pub const FORMAT_VERSION: u16 = 12;
