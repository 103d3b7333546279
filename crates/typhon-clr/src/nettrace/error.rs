use thiserror::Error;

/// Why a nettrace stream cannot be decoded further, and the byte at which that became certain.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("nettrace stream, byte {offset}: {fault}")]
pub struct NettraceError {
    /// Bytes from the start of the stream.
    pub offset: u64,
    /// What is wrong there.
    pub fault: NettraceFault,
}

/// The kinds of malformed or unsupported input.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NettraceFault {
    /// The stream does not begin with `Nettrace`.
    #[error("this is no nettrace stream (the first bytes are not \"Nettrace\")")]
    NotNettrace,
    /// The serialisation header after the magic is not `!FastSerialization.1`.
    #[error("the serialisation header is not \"!FastSerialization.1\"")]
    BadSerializationHeader,
    /// A stream of a version whose framing differs (6 and newer, or below 4).
    #[error("unsupported nettrace major version {0} (this reader knows 4 and 5)")]
    UnsupportedVersion(u32),
    /// An object says that readers as old as this one must not read it.
    #[error("object \"{name}\" needs a reader of version {needed}, this one knows {known}")]
    ReaderTooOld {
        /// Type name of the object.
        name: String,
        /// Lowest reader version the object accepts.
        needed: i32,
        /// Version that this reader implements.
        known: i32,
    },
    /// A tag byte other than the ones allowed at this place.
    #[error("unexpected tag {found} where {expected} was due")]
    UnexpectedTag {
        /// The byte found.
        found: u8,
        /// What would have been right.
        expected: &'static str,
    },
    /// The first object is not `Trace`, or a second one appears.
    #[error("the Trace object must come first and only once")]
    TraceObjectMisplaced,
    /// A field of the Trace object has no usable value (pointer size, clock frequency).
    #[error("the Trace object's {0} is out of range")]
    BadTraceField(&'static str),
    /// A count or length is negative or above its limit.
    #[error("{what} of {value} is outside 0..={limit}")]
    LimitExceeded {
        /// Name of the length or count.
        what: &'static str,
        /// Value read.
        value: i64,
        /// Largest accepted value.
        limit: i64,
    },
    /// A structure ends before its last field.
    #[error("{0} ends too early")]
    TooShort(&'static str),
    /// A variable-length integer has more bytes than its type allows, or bits above its width.
    #[error("variable-length integer too long")]
    VarintTooLong,
    /// An event refers to metadata that has not been sent.
    #[error("event refers to unknown metadata id {0}")]
    UnknownMetadata(u32),
    /// An event lies outside the time range that its block's header promises.
    #[error("event time {timestamp} lies outside its block's range {min}..={max}")]
    TimestampOutsideBlock {
        /// Time of the event, ticks.
        timestamp: u64,
        /// First time of the block, ticks.
        min: u64,
        /// Last time of the block, ticks.
        max: u64,
    },
    /// Bytes follow the end-of-stream tag.
    #[error("bytes follow the end of the stream")]
    TrailingBytes,
}
