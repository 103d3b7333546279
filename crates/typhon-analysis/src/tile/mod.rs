//! Tiles: what a view of the timeline asks for and gets, byte by byte (brief 11 §3.3, protocol version 1).
//!
//! [`TileRequest`] and [`Tile`] are the two messages; [`answer`](crate::session::Session::tiles) makes the second from
//! the first. A tile is 512 buckets of 2^level ns of one lane; its bytes depend on the file, the level, the tile, the lane,
//! the rows and the filter, and on nothing else.
//!
//! Where the brief leaves room:
//! - a frame of ticks has the lane [`NO_LANE`];
//! - flag [`FLAG_TAIL`] marks the completion of an asynchronous operation;
//! - a bucket that holds one short span or instant gives an exact entry when its place in the row is known;
//! - a counter entry with 0 samples at x = 0 repeats the value from before the tile.

pub(crate) mod counters;
mod entries;
mod frame;
mod request;
pub(crate) mod spans;
pub(crate) mod tick_strip;

pub use entries::{
    CounterEntry, FLAG_AGGREGATE, FLAG_FAULT, FLAG_FROM_LEFT, FLAG_NO_END, FLAG_OVERFLOW, FLAG_SITE,
    FLAG_TAIL, FLAG_TO_RIGHT, SpanEntry, TickEntry,
};
pub use frame::{
    Content, Entries, FRAME_HEADER_BYTES, NO_LANE, TILE_CAPPED, TILE_INCOMPLETE, TILE_NOTICE, TILE_STALE,
    Tile, TileFault, end_frame,
};
pub use request::{
    CONTENT_COUNTERS, CONTENT_INSTANTS, CONTENT_OFF_CPU, CONTENT_SPANS, CONTENT_TICKS, LaneRows, MAX_LANES,
    MAX_LEVEL, MAX_TILES, RequestFault, TileRequest,
};

/// Buckets of a tile.
pub const TILE_BUCKETS: u64 = 512;
/// Entries of one row in a tile, at most.
pub const MAX_ROW_ENTRIES: usize = 1_024;
/// Bytes after which the rest of an answer is capped.
pub const MAX_ANSWER_BYTES: usize = 16 << 20;

use std::ops::Range;

/// The nanoseconds that a tile covers; empty for tiles beyond the axis.
pub fn tile_range_ns(level: u8, tile: u64) -> Range<u64> {
    let shift = u32::from(level) + TILE_BUCKETS.trailing_zeros();
    let at = |tile: u128| u64::try_from(tile << shift.min(64)).unwrap_or(u64::MAX);
    at(tile.into())..at(u128::from(tile) + 1)
}
