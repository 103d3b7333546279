//! The parts of an index in a sidecar, and what must hold for them so that nothing behind them can fail.

use super::persist::{Persist, persist, put_one_of, take_one_of};
use crate::index::blocks::{BlockPlace, BlockTable};
use crate::index::gc::{GcEvent, GcSizes};
use crate::index::group::{GROUP_ENTRIES, GroupHead};
use crate::index::lane::{Lane, LaneKind, Strip};
use crate::index::notices::{Loss, PlacedNotice};
use crate::index::packed::Malformed;
use crate::index::pyramid::{Class, LevelHead, Pyramid};
use crate::index::row::Row;
use crate::index::rows::{NESTED_ROWS_MAX, OVERFLOW_ROWS_MAX};
use crate::index::scan::{Stack, TickEndInfo};
use crate::index::series::Series;
use crate::index::store::Piece;
use crate::index::{Capped, CappedSet, Name, Totals};
use crate::survey::{Survey, Thread, Threads};
use crate::ticks::{TickNotice, Ticks};
use typhon_trace::block::{BLOCK_HEADER_BYTES, BlockHeader};
use typhon_trace::checksum::LOSS_NAMES;
use typhon_trace::trailer::{SpanName, SpanNames};
use typhon_trace::{Notice, NoticeCode};

/// Everything of an index but its pieces.
pub(super) struct Parts {
    pub(super) lanes: Vec<Lane>,
    /// Those after the names of the kinds.
    pub(super) names: Vec<Name>,
    pub(super) names_full: bool,
    pub(super) survey: Survey,
    pub(super) tick_ends: Vec<TickEndInfo>,
    pub(super) blocks: BlockTable,
    pub(super) kinds: [u64; 256],
    pub(super) gc: Vec<GcEvent>,
    pub(super) losses: Vec<Loss>,
    pub(super) capped: Vec<Capped>,
    pub(super) notices: Vec<PlacedNotice>,
    pub(super) totals: Totals,
    pub(super) stacks: std::collections::BTreeMap<Stack, u64>,
    pub(super) span_names: SpanNames,
}

persist! {
    Piece { offset, bytes, crc }
    GroupHead {
        piece, first_index, count, first_start, last_start, reach, busy_ns, longest_ns, longest_name,
    }
    LevelHead { piece, count, first_bucket, last_bucket }
    Class { class, groups }
    Pyramid { base, levels, classes }
    Row { is_overflow, is_shared, is_indexed, groups, pyramid }
    Series { groups, min, max, base, levels }
    Lane { kind, rows, nested_rows, instants, series }
    Name { text, kind, system, group }
    Thread { slot, incarnation, name, number, kind, from_ticks }
    Threads { entries, by_slot }
    Survey { ticks, threads, more_infos, origin_ticks, first_ticks, last_ticks, records }
    Ticks { starts, ends, offsets, notices, missing, contradictions, not_told_apart }
    TickEndInfo { ticks, level, multiplier }
    BlockPlace { offset, header, first_record, is_delivered, first_ticks, last_ticks }
    BlockTable { blocks, records }
    GcSizes { promoted, generations, committed }
    Capped { what, shown, total, at_ns, times }
    PlacedNotice { notice, range_ns }
    Notice { code, offset, block, record, count, message }
    Totals { events, withheld_events, dropped_records, gc_not_kept }
    SpanName { id, name }
    SpanNames { entries }
}

impl Persist for NoticeCode {
    fn put(&self, out: &mut Vec<u8>) {
        put_one_of(self, Self::ALL, out);
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        take_one_of(Self::ALL, bytes)
    }
}

impl Persist for Strip {
    fn put(&self, out: &mut Vec<u8>) {
        put_one_of(self, &Self::ALL, out);
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        take_one_of(&Self::ALL, bytes)
    }
}

impl Persist for Stack {
    fn put(&self, out: &mut Vec<u8>) {
        put_one_of(self, &Self::ALL, out);
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        take_one_of(&Self::ALL, bytes)
    }
}

impl Persist for CappedSet {
    fn put(&self, out: &mut Vec<u8>) {
        put_one_of(self, &Self::ALL, out);
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        take_one_of(&Self::ALL, bytes)
    }
}

impl Persist for Loss {
    fn put(&self, out: &mut Vec<u8>) {
        (self.at_ns, self.records).put(out);
        put_one_of(&self.marker, &LOSS_NAMES, out);
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        let (at_ns, records) = Persist::take(bytes)?;
        Ok(Self { at_ns, records, marker: take_one_of(&LOSS_NAMES, bytes)? })
    }
}

impl Persist for BlockHeader {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.encode());
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        let (header, rest) = bytes.split_first_chunk::<BLOCK_HEADER_BYTES>().ok_or(Malformed)?;
        *bytes = rest;
        Self::parse(header).map_err(|_| Malformed)
    }
}

impl Persist for LaneKind {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Gc => 0u8.put(out),
            Self::Gauge { gauge } => (1u8, *gauge).put(out),
            Self::Thread { thread } => (2u8, *thread).put(out),
            Self::System { index } => (3u8, *index).put(out),
            Self::Strip(strip) => (4u8, *strip).put(out),
        }
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(match u8::take(bytes)? {
            0 => Self::Gc,
            1 => Self::Gauge { gauge: Persist::take(bytes)? },
            2 => Self::Thread { thread: Persist::take(bytes)? },
            3 => Self::System { index: Persist::take(bytes)? },
            4 => Self::Strip(Persist::take(bytes)?),
            _ => return Err(Malformed),
        })
    }
}

impl Persist for TickNotice {
    fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Self::AnchorsDisagree { tick } => (0u8, tick).put(out),
            Self::Gap { tick, missing } => (1u8, (tick, missing)).put(out),
            Self::AnchorBehind { tick, anchor } => (2u8, (tick, anchor)).put(out),
        }
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        let (which, tick) = <(u8, i64)>::take(bytes)?;
        Ok(match which {
            0 => Self::AnchorsDisagree { tick },
            1 => Self::Gap { tick, missing: Persist::take(bytes)? },
            2 => Self::AnchorBehind { tick, anchor: Persist::take(bytes)? },
            _ => return Err(Malformed),
        })
    }
}

impl Persist for GcEvent {
    fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Start { ticks, count, generation, reason, gc_type } => {
                (0u8, (ticks, count)).put(out);
                (generation, (reason, gc_type)).put(out);
            }
            Self::End { ticks, count, generation, pause_ns, sizes } => {
                (1u8, (ticks, count)).put(out);
                (generation, (pause_ns, sizes)).put(out);
            }
            Self::Suspension { ticks, duration } => (2u8, (ticks, duration)).put(out),
        }
    }
    fn take(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        let (which, ticks) = <(u8, i64)>::take(bytes)?;
        Ok(match which {
            0 => {
                let (count, (generation, (reason, gc_type))) = Persist::take(bytes)?;
                Self::Start { ticks, count, generation, reason, gc_type }
            }
            1 => {
                let (count, (generation, (pause_ns, sizes))) = Persist::take(bytes)?;
                Self::End { ticks, count, generation, pause_ns, sizes }
            }
            2 => Self::Suspension { ticks, duration: Persist::take(bytes)? },
            _ => return Err(Malformed),
        })
    }
}

impl Parts {
    /// Does everything hold that the rest of the index relies on? A checksum proves only that the bytes are those that
    /// somebody wrote.
    pub(super) fn check(&self, trace_bytes: u64) -> Result<(), Malformed> {
        let threads = self.survey.threads.all().len();
        let slots_are_right =
            self.survey.threads.by_slot.values().all(|(first, count)| {
                *count > 0 && first.checked_add(*count).is_some_and(|end| end <= threads)
            });
        let blocks = &self.blocks.blocks;
        let records_ascend = blocks.windows(2).all(|pair| pair[0].first_record <= pair[1].first_record)
            && blocks.last().is_none_or(|last| last.first_record <= self.blocks.records)
            // Filters need a bit per record: there are no more than fit into blocks that fit into the file.
            && self.blocks.records <= blocks.iter().map(|block| u64::from(block.header.uncompressed_bytes / 12)).sum()
            && blocks.iter().try_fold(0u64, |end, block| {
                let next = block.offset.checked_add(block.header.total_bytes())?;
                (block.offset >= end && next <= trace_bytes).then_some(next)
            }).is_some();
        let sound = slots_are_right
            && records_ascend
            && self.names.len() < usize::from(u16::MAX) - 256
            && self.lanes.iter().all(|lane| is_sound_lane(lane, threads));
        if sound { Ok(()) } else { Err(Malformed) }
    }
}

fn is_sound_lane(lane: &Lane, threads: usize) -> bool {
    !matches!(lane.kind, LaneKind::Thread { thread } if thread >= threads)
        && lane.rows.len() <= NESTED_ROWS_MAX + OVERFLOW_ROWS_MAX
        && lane.nested_rows <= lane.rows.len()
        && lane.rows.iter().chain([&lane.instants]).all(is_sound_row)
        && lane.series.as_ref().is_none_or(|series| {
            are_sound_groups(&series.groups) && usize::from(series.base) + series.levels.len() <= 64
        })
}

fn is_sound_row(row: &Row) -> bool {
    let is_sound_pyramid = |pyramid: &Pyramid| {
        usize::from(pyramid.base) + pyramid.levels.len() <= 64
            && !pyramid.levels.is_empty()
            && pyramid.classes.iter().all(|class| class.class < 64 && are_sound_groups(&class.groups))
            && (!row.is_shared || pyramid.classes.is_empty())
    };
    !row.is_indexed && are_sound_groups(&row.groups) && row.pyramid.as_deref().is_none_or(is_sound_pyramid)
}

fn are_sound_groups(groups: &[GroupHead]) -> bool {
    let mut next_index = 0u64;
    groups.iter().all(|head| {
        let follows = head.first_index == next_index;
        next_index = next_index.saturating_add(head.count.into());
        follows && (1..=GROUP_ENTRIES as u32).contains(&head.count)
    })
}
