//! The values of a gauge in one tile.

use super::entries::CounterEntry;
use super::{TILE_BUCKETS, tile_range_ns};
use crate::index::series::Series;
use crate::index::store::Store;
use crate::index::time::TimeBase;
use std::io;

/// The entries of a tile.
///
/// # Errors
/// When the index cannot be read.
pub(crate) fn entries(
    series: &Series,
    level: u8,
    tile: u64,
    time: TimeBase,
    store: &Store,
) -> io::Result<Vec<CounterEntry>> {
    let range_ns = tile_range_ns(level, tile);
    if range_ns.is_empty() {
        return Ok(Vec::new());
    }
    let first = range_ns.start >> level;
    let (before, envelopes) = series.envelopes(level, first..first + TILE_BUCKETS, time, store)?;
    let carried = before.map(|value| value as f32);
    let carried = carried.map(|value| CounterEntry { x: 0, samples: 0, min: value, max: value, last: value });
    let measured = envelopes.into_iter().map(|envelope| CounterEntry {
        x: (envelope.bucket - first) as u16,
        samples: envelope.samples.min(u16::MAX.into()) as u16,
        min: envelope.min as f32,
        max: envelope.max as f32,
        last: envelope.last as f32,
    });
    Ok(carried.into_iter().chain(measured).collect())
}
