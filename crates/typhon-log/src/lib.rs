//! A write-ahead log that acknowledges only what is durable, and recovers exactly that.
//!
//! A program appends frames: opaque bytes with a kind. Each gets a position ([`Lsn`]) and, if it is a commit or the
//! end of a fence, a sequence number ([`Tsn`]), both in one atomic step, so that the two orders are one. A thread that
//! must know waits until its position is durable; everything before it is then durable as well. After a crash,
//! [`Recovered`] gives back a prefix of what was appended that holds all that was acknowledged, whole frames only.
//!
//! ```text
//!  threads                     memory                       disk
//!  reserve ─▶ claim ─▶ copy ─▶ ring ─▶ block ─▶ write, sync ─▶ segments: 0000000000000007.wal …
//!                              wait_durable ◀───────┘          anchor: where recovery begins
//! ```
//!
//! - [`Store`] is the log on its own: a directory with a lock, an anchor and segments. Start here.
//! - [`Recovered`] and [`Log`] are the parts for a database that keeps the anchor in a page of its own.
//! - [`inspect`] looks at a log that may be open elsewhere, or damaged.
//! - [`mod@format`] reads and checks bytes; `docs/log-format.md` is its description.
//!
//! What it is not: it does not know what frames mean, it has no readers while it is open, and it does not replicate.
//!
//! **Invariants**
//! - A position is acknowledged after its bytes, the header and the name of its segment, and everything before it are
//!   durable, and not before.
//! - What is recovered is a prefix of what was appended and holds everything acknowledged.
//! - No position and no sequence number is given twice, whatever crashed when.
//! - The first write or sync that fails ends the log: nothing is tried again, nothing more is acknowledged.
//! - Between reservation and publication an append cannot fail and waits for nothing.
//!
//! ```
//! use std::sync::Arc;
//! use typhon_log::{Draft, Options, Store};
//! use typhon_store::PoolIo;
//! use typhon_sync::Deadline;
//!
//! # let folder = tempfile::tempdir()?;
//! # let directory = folder.path().join("log");
//! let opening = Store::open(Arc::new(PoolIo::new()), &directory, Options::small(), b"")?;
//! let mut frames = opening.frames();
//! while let Some(frame) = frames.next_frame()? {
//!     println!("{} {:?}", frame.lsn, frame.body);
//! }
//! drop(frames);
//! let log = opening.start(b"")?;
//! log.commit(&Draft::commit(b"survives anything"), Deadline::INFINITE)?;
//! # drop(log);
//! # let opening = Store::open(Arc::new(PoolIo::new()), &directory, Options::small(), b"")?;
//! # assert_eq!(opening.frames().next_frame()?.unwrap().body, b"survives anything");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(not(loom))]
mod anchor;
#[cfg(not(loom))]
mod append;
mod claim;
mod drive;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod fences;
pub mod format;
#[cfg(not(loom))]
mod gauges;
mod group;
#[cfg(not(loom))]
pub mod inspect;
#[cfg(not(loom))]
mod log;
#[cfg(loom)]
pub mod model;
#[cfg(not(loom))]
mod names;
mod numbers;
#[cfg(not(loom))]
mod options;
#[cfg(not(loom))]
mod reader;
#[cfg(not(loom))]
mod recover;
mod ring;
#[cfg(not(loom))]
mod scan;
#[cfg(not(loom))]
mod segments;
#[cfg(not(loom))]
mod spares;
#[cfg(not(loom))]
mod store;
mod stream;
mod sync;
mod waiters;
#[cfg(not(loom))]
mod writer;

#[cfg(not(loom))]
pub use anchor::{Anchor, STATE_BYTES_MAX};
#[cfg(not(loom))]
pub use append::{Appended, Draft};
#[cfg(not(loom))]
pub use error::{Failure, LogError};
#[cfg(not(loom))]
pub use fences::{Effect, FenceEnd, Fences};
#[cfg(not(loom))]
pub use log::{Credits, Log, Pin, Watermarks};
pub use numbers::{Lsn, Tsn};
#[cfg(not(loom))]
pub use options::{Options, SyncMode};
#[cfg(not(loom))]
pub use recover::{Recovered, Replay, Report};
#[cfg(not(loom))]
pub use scan::Stop;
#[cfg(not(loom))]
pub use store::{Opening, Store};
/// For tests: mistakes that can be planted in the protocol.
#[cfg(any(loom, feature = "mutants"))]
pub use sync::{Fault, plant};

/// Runs the examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/log.md")]
struct Guide;
