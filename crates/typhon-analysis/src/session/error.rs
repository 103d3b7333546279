//! What can go wrong with a session.

use crate::filter::FilterError;
use crate::tile::RequestFault;
use std::io;
use std::path::PathBuf;
use typhon_trace::TraceError;

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The file cannot be opened.
    #[error("{} cannot be opened: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is not a trace that this build reads, or cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The file is shorter than when it was opened, so that not all of it could be read.
    #[error("the file was cut after it was opened: of {opened_bytes} bytes {bytes} are left; open it again")]
    Truncated {
        /// Its length now.
        bytes: u64,
        /// Its length when it was opened.
        opened_bytes: u64,
    },
    /// The index cannot be read or written.
    #[error("the index cannot be used: {0}")]
    Index(#[from] io::Error),
    /// The file is still being indexed.
    #[error("the file is still being indexed")]
    NotReady,
    /// Indexing has failed.
    #[error("the file could not be indexed: {0}")]
    Failed(String),
    /// The call was cancelled, or indexing was.
    #[error("cancelled")]
    Cancelled,
    /// Filters and open files have taken the memory for them.
    #[error(
        "there is no memory left for this; close other files or remove filters, or allow more with --memory"
    )]
    NoRoom,
    /// Places of blocks, ticks and parts of the index, which stay in memory, are too many.
    #[error(
        "places of its blocks, ticks and rows take {} MiB or more, and there are {} MiB of memory for them; allow more with --memory",
        *bytes >> 20,
        *most_bytes >> 20
    )]
    TooLarge {
        /// What they take, or have taken when it was too much.
        bytes: usize,
        /// What they may take.
        most_bytes: usize,
    },
    /// A part of the trace could not be written.
    #[error("the part cannot be written: {0}")]
    Cut(String),
    /// There is no such lane, row, event or filter.
    #[error("there is no {what}")]
    Unknown {
        /// What was asked for.
        what: String,
    },
    /// The tile request is malformed.
    #[error(transparent)]
    Request(#[from] RequestFault),
    /// The filter cannot be read.
    #[error("{0}")]
    Filter(#[from] FilterError),
}

impl SessionError {
    /// The index is not what was written: see [`Session::discard_index`](super::Session::discard_index).
    pub fn is_damaged_index(&self) -> bool {
        matches!(self, Self::Index(error) if error.kind() == io::ErrorKind::InvalidData)
    }

    pub(super) fn unknown(what: impl Into<String>) -> Self {
        Self::Unknown { what: what.into() }
    }
}
