//! The seam between Typhon and storage.
//!
//! Everything that outlives a process goes through two traits: [`Io`] for names, directories and locks, [`File`] for
//! bytes. Code above the seam cannot tell which disk it runs on:
//!
//! - [`PoolIo`] is the real one: positioned reads and writes of the operating system, past its cache where asked, and
//!   a small pool of threads for requests that need not be waited for at once.
//! - [`SimIo`](sim::SimIo) is a disk in memory that is crueller than any real one. It stops the world at any call,
//!   then forgets, tears and reorders everything that was not synced, loses names, fails, fills up and writes short,
//!   all from one seed.
//! - [`ReadOnly`] lets through what reads, for looking at files that belong to somebody else.
//!
//! What it is not: there is no cache and no page here, and no retry. An error is passed on as the operating system
//! gave it, with the path; what it means for durability is decided by whoever made the promise.
//!
//! **Invariants**
//! - A write or a name is durable after the matching [`File::sync_data`] or [`Io::sync_dir`] returned `Ok`, and not
//!   before. After an error of either, nothing can be said about what it covered, for ever.
//! - A request that was submitted has exactly one completion, also when it fails or the pool is dropped.
//! - The same seed and the same calls give the same disk.
#![forbid(unsafe_code)]

mod buffer;
mod io;
mod pool;
mod read_only;
mod real;
pub mod sim;

pub use buffer::{BLOCK_BYTES, Buffer};
pub use io::{Access, Entry, EntryKind, File, Io, Lock, Open, read_exact_at, write_all_at};
pub use pool::{Completion, Op, Pending};
pub use read_only::ReadOnly;
pub use real::PoolIo;
