//! The ticks of one tile.

use super::entries::TickEntry;
use super::tile_range_ns;
use crate::index::ticks::TickTable;

/// Flag of a tick entry: numbers are missing before one of its ticks.
const GAP: u32 = 1;
/// Flag of a tick entry: one of its ticks has no end.
const NO_END: u32 = 2;

/// The entries of a tile, one per bucket in which ticks begin.
pub(crate) fn entries(table: &TickTable, level: u8, tile: u64) -> Vec<TickEntry> {
    let range_ns = tile_range_ns(level, tile);
    let mut entries: Vec<TickEntry> = Vec::new();
    let mut bucket = None;
    for tick in table.starting_in(&range_ns) {
        if bucket.replace(tick.start_ns >> level) != Some(tick.start_ns >> level) {
            let first_tick = tick.number.clamp(0, u32::MAX.into()) as u32;
            entries.push(TickEntry { first_tick, start_ns: tick.start_ns, ..TickEntry::default() });
        }
        let Some(entry) = entries.last_mut() else { continue };
        let ms = tick.duration_ns.map_or(0.0, |ns| ns as f32 / 1e6);
        entry.ticks += 1;
        entry.max_ms = entry.max_ms.max(ms);
        entry.sum_ms += ms;
        entry.collections = entry.collections.saturating_add(tick.collections);
        entry.max_level = entry.max_level.max(tick.level);
        entry.max_multiplier = entry.max_multiplier.max(tick.multiplier);
        entry.flags |= if tick.missing_before > 0 { GAP } else { 0 };
        entry.flags |= if tick.duration_ns.is_none() { NO_END } else { 0 };
    }
    entries
}
