//! Problems that end the reading or writing of a trace. What can be stepped over is a [`crate::Notice`].

use std::io;

use crate::record::RecordFault;

/// A fatal problem with a trace file or stream (format spec, "Faults and bad input").
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The first four bytes are not `TYTR`.
    #[error("not a Typhon trace: {}", start_of(found))]
    NotATrace {
        /// The bytes found, at most four.
        found: Vec<u8>,
    },
    /// The header names a format version that this build does not read.
    #[error("unsupported trace version {found}; this build reads version {}", crate::FORMAT_VERSION)]
    UnsupportedVersion {
        /// The version in the file.
        found: u16,
    },
    /// The magic is right but the file ends inside the 207-byte header.
    #[error("header truncated: {found} of 207 bytes")]
    HeaderTruncated {
        /// Bytes present.
        found: u64,
    },
    /// The clock frequency is zero or negative, so that no timestamp has a meaning.
    #[error("clock frequency {found} at offset 8 is not positive; timestamps have no meaning")]
    BadClockFrequency {
        /// The value in the file, ticks per second.
        found: i64,
    },
    /// A value cannot be represented in the format (writer side).
    #[error("{what}: {value} is above the format's limit of {limit}")]
    Limit {
        /// The thing that is too large, with its place.
        what: String,
        /// Its size.
        value: u64,
        /// The largest size the format can hold.
        limit: u64,
    },
    /// A record that a writer does not take (writer side).
    #[error("record at byte {offset} of the batch: {refusal}")]
    RefusedRecord {
        /// Offset of the record in the bytes handed over.
        offset: u64,
        /// What is wrong with it.
        refusal: RecordRefusal,
    },
    /// A span name that the writer uses itself (writer side).
    #[error("span name id {id} or name {name:?} is reserved; choose another one")]
    ReservedName {
        /// The id given.
        id: u16,
        /// The name given.
        name: String,
    },
    /// The trace was closed before (writer side).
    #[error("the trace is closed; nothing can be added")]
    AlreadyClosed,
    /// The operating system refused a read or write.
    #[error("{action} failed at offset {offset}")]
    Io {
        /// `"read"`, `"write"`, `"sync"` …
        action: &'static str,
        /// File offset of the operation.
        offset: u64,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl TraceError {
    /// What a file that is no trace is instead, with what to do, where its first bytes say so.
    pub fn unpack_hint(&self) -> Option<&'static str> {
        let Self::NotATrace { found } = self else { return None };
        match found.as_slice() {
            [0x1F, 0x8B, ..] => {
                Some("it is compressed with gzip: gunzip -c FILE > NEW.typhon-trace, and open that")
            }
            [0x28, 0xB5, 0x2F, 0xFD] => {
                Some("it is compressed with zstd: zstd -dc FILE > NEW.typhon-trace, and open that")
            }
            _ => None,
        }
    }
}

fn start_of(found: &[u8]) -> String {
    match found {
        [] => "it is empty".to_owned(),
        _ => format!("it starts with {found:02x?}, expected \"TYTR\""),
    }
}

/// Why a writer refuses a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordRefusal {
    /// The size is illegal, or the bytes end inside the record.
    #[error(transparent)]
    Malformed(#[from] RecordFault),
    /// A span record without room for its own header.
    #[error("a span of {size} bytes is shorter than its own header")]
    ShortSpan {
        /// Size of the record.
        size: usize,
    },
    /// The kind was removed from the format; it is read and copied, but not recorded.
    #[error("kind {kind} was removed from the format")]
    RemovedKind {
        /// The kind.
        kind: u8,
    },
}
