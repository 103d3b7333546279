//! The live stream: frames between a recording engine (server) and a viewer (client), both directions, sans-IO
//! (format spec, "Live stream").
//!
//! A frame is a type byte, an i32 payload length and the payload. [`FrameDecoder`] turns received bytes, in pieces of
//! any size, into frames; [`ServerMessage`] and [`ClientMessage`] give them meaning; [`Outgoing`] builds frames, and
//! [`Outbox`] keeps what a socket has not taken yet.
//!
//! Order from the server: Init, file table and source manifest (both or neither), catch-up blocks, blocks as they
//! come, Shutdown. A new Init starts a new session. Header, tables and blocks are exactly those of a file, without
//! checksum markers, so that Init and all blocks put together are a readable trace.
//!
//! Sockets, timeouts and reconnecting are the business of the callers.

mod client;
mod framing;
mod server;

pub use client::ClientMessage;
pub use framing::{Direction, Frame, FrameDecoder, Outbox, Outgoing};
pub use server::{Init, LiveBlock, QueryString, Reply, ReplyStatus, ServerMessage};

/// Bytes before the payload of a frame: u8 type, i32 length.
pub const FRAME_HEADER_BYTES: usize = 5;
/// Largest payload of a frame from the server.
pub const MAX_SERVER_PAYLOAD_BYTES: usize = 8 << 20;
/// Largest payload of a frame from a client.
pub const MAX_CLIENT_PAYLOAD_BYTES: usize = 64 << 10;

/// Frame types on the wire.
pub mod frame_type {
    /// Header and tables.
    pub const INIT: u8 = 1;
    /// One block.
    pub const BLOCK: u8 = 2;
    /// Clean end of the session.
    pub const SHUTDOWN: u8 = 3;
    /// File table.
    pub const FILE_TABLE: u8 = 4;
    /// Source manifest.
    pub const SOURCE_MANIFEST: u8 = 5;
    /// New texts of query definitions.
    pub const QUERY_STRINGS: u8 = 6;
    /// New span names.
    pub const SPAN_NAMES: u8 = 7;
    /// Answer to a client frame.
    pub const REPLY: u8 = 8;
    /// Shows that the client may see and control the session.
    pub const AUTH: u8 = 128;
    /// Switches kinds.
    pub const SET_KINDS: u8 = 129;
    /// Records everything for a number of ticks.
    pub const ARM_TICKS: u8 = 130;
    /// Writes the flight recorder to a file.
    pub const DUMP: u8 = 131;
}

/// What can be wrong with a live stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// A frame length is negative or above the limit of its direction. Nothing after it can be understood: close the
    /// connection.
    #[error("frame of type {kind} states {length} bytes of payload; at most {limit} are allowed")]
    BadLength {
        /// Type of the frame.
        kind: u8,
        /// Length found.
        length: i32,
        /// Largest length allowed.
        limit: usize,
    },
    /// The Init frame cannot be read: the engine speaks another version of the format.
    #[error("incompatible engine: {reason}")]
    Incompatible {
        /// What is wrong with it.
        reason: String,
    },
    /// The payload of a frame does not have the form of its type. The frame can be skipped.
    #[error("malformed frame of type {kind}: {reason}")]
    Malformed {
        /// Type of the frame.
        kind: u8,
        /// What is wrong with it.
        reason: String,
    },
    /// A frame to be sent is above the limit of its direction.
    #[error("frame of type {kind} has {length} bytes of payload; at most {limit} can be sent")]
    TooLarge {
        /// Type of the frame.
        kind: u8,
        /// Its length.
        length: usize,
        /// Largest length allowed.
        limit: usize,
    },
    /// A table to be sent has more entries than the format can count.
    #[error("frame of type {kind} cannot be built: {reason}")]
    Unsendable {
        /// Type of the frame.
        kind: u8,
        /// Which limit it breaks.
        reason: String,
    },
}
