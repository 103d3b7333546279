//! Where on the time axis something is missing (brief 11 B-4, B-5).

use super::blocks::BlockTable;
use super::scan::Marker;
use super::time::TimeBase;
use std::ops::Range;
use typhon_trace::Notice;
use typhon_trace::checksum::LOSS_NAMES;
use typhon_trace::trailer::SpanNames;

/// A notice of the reader and the time it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedNotice {
    /// What was found.
    pub notice: Notice,
    /// From the last readable record before the place to the first one after it, ns; `None` for notices that are about
    /// the file as a whole.
    pub range_ns: Option<Range<u64>>,
}

/// Records that the recorder itself reports as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// When it was reported; the records were lost before that.
    pub at_ns: u64,
    /// How many records.
    pub records: u64,
    /// Name of the marker, one of [`LOSS_NAMES`].
    pub marker: &'static str,
}

/// The time that a notice is about. Only damage to blocks has a place on the axis.
pub(crate) fn place(notice: &Notice, blocks: &BlockTable, time: TimeBase, end_ns: u64) -> PlacedNotice {
    use typhon_trace::NoticeCode::{
        BadBlockData, BadBlockHeader, BadRecord, ChecksumBlock, ShortSpan, Skipped, Truncated,
    };
    let is_damage = matches!(
        notice.code,
        BadBlockData | BadBlockHeader | BadRecord | ChecksumBlock | ShortSpan | Skipped | Truncated
    );
    let range_ns = notice.offset.filter(|_| is_damage).map(|offset| {
        let (before, after) = blocks.around(offset);
        let from = before.map_or(0, |ticks| time.ns(ticks));
        let to = after.map_or(end_ns, |ticks| time.ns(ticks));
        // Blocks overlap in time; then the place is where they meet.
        from.min(to)..to.max(from)
    });
    PlacedNotice { notice: notice.clone(), range_ns }
}

/// The markers that report losses, in order of time.
pub(crate) fn losses(markers: &[Marker], names: &SpanNames, time: TimeBase) -> Vec<Loss> {
    let mut losses: Vec<Loss> = markers
        .iter()
        .filter_map(|marker| {
            let name = names.get(u16::try_from(marker.name_id).ok()?)?;
            let marker_name = LOSS_NAMES.into_iter().find(|loss| *loss == name)?;
            let records = u64::try_from(marker.payload).unwrap_or(0);
            Some(Loss { at_ns: time.ns(marker.ticks), records, marker: marker_name })
        })
        .collect();
    losses.sort_by_key(|loss| loss.at_ns);
    losses
}
