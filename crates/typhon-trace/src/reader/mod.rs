//! Reading whole traces: streaming and random access, with recovery and checksum verification.
//!
//! - [`StreamReader`] reads from front to back in bounded memory and works on pipes.
//! - [`TraceFile`] gives access to any block of a file; [`TraceFile::scan`] finds the blocks without decoding them.
//! - [`verify`] checks a whole trace and gives a verdict.
//! - [`BlockFeed`] and [`Sequencer`] are the two halves of the stream reader, for callers that decode on several
//!   threads in between.
//!
//! A file that is cut, damaged, still growing or was never closed opens as long as its header is there. Everything
//! that had to be stepped over is a [`crate::Notice`]; only a wrong magic, version or clock, a cut header and a
//! failing device are errors.
//!
//! **One parse path.** Streams, files, scans and parallel readers walk the block sequence with the same code and put
//! decoded blocks through the same [`Sequencer`], so they agree on every block, verdict and notice.
//!
//! **Checksums.** In a file that declares them (see [`crate::checksum`]) every block is checked when it is decoded.
//! The events of a block that is proven to be damaged are withheld, unless [`ReadOptions::salvage`] is set. Checksum
//! markers are no events: they are left out of [`BlockBuffer::events`] and counted in no total; only the record
//! counts of block headers ([`BlockEntry::header`]) include them.

mod block_buffer;
mod chain;
mod digest;
mod file;
mod lz4_probe;
mod notices;
mod salvage;
mod sections;
mod sequence;
mod source;
mod stream;
mod verify;
mod walk;

pub use block_buffer::{BlockBuffer, BlockSummary, Closing, Events};
pub use chain::Verdict;
pub use digest::{BlockDigest, Derived, TimeRange};
pub use file::{BlockIndex, TraceFile};
pub use sections::Sections;
pub use sequence::{Sequenced, Sequencer, Totals};
pub use source::{FileSource, PipeSource, ReadAt, Source};
pub use stream::{BlockFeed, CheckedBlock, Outcome, Preamble, ReadOptions, StreamReader};
pub use verify::{BlockCheck, FileVerdict, Verifier, VerifyOptions, VerifyReport, verify};
pub use walk::{BlockEntry, EndReason, Lead, SequenceEnd};

use block_buffer::MarkerIds;
use chain::{ChecksumChain, Link};
use notices::NoticeLog;
