//! Records that the profiler itself puts into a trace: `Instant` (kind 6) under reserved names (brief 02 B-36).
#![forbid(unsafe_code)]

use typhon_trace::checksum::{DROPPED_BATCHES_NAME, DROPPED_RECORDS_NAME};
use typhon_trace::record::RECORD_HEADER_BYTES;

/// Kind id of `Instant`.
const INSTANT: u8 = 6;
/// Size of an `Instant` record: name id and value after the header.
pub(crate) const MARKER_BYTES: usize = RECORD_HEADER_BYTES + 8;

/// The reserved names. Their name ids are their positions.
pub(crate) const RESERVED_NAMES: [&str; 5] =
    [DROPPED_RECORDS_NAME, DROPPED_BATCHES_NAME, "typhon.sampler_lost", "typhon.kind_on", "typhon.kind_off"];

/// What a marker says. The value of a loss is a number of records, that of a change a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Marker {
    DroppedRecords = 0,
    DroppedBatches = 1,
    SamplerLost = 2,
    KindOn = 3,
    KindOff = 4,
}

impl Marker {
    const ALL: [Self; 5] =
        [Self::DroppedRecords, Self::DroppedBatches, Self::SamplerLost, Self::KindOn, Self::KindOff];

    /// Does its value count lost records?
    pub(crate) fn is_loss(self) -> bool {
        matches!(self, Self::DroppedRecords | Self::DroppedBatches | Self::SamplerLost)
    }

    /// The record; `time_ns` is trace-clock time.
    pub(crate) fn record(self, slot: u8, time_ns: i64, value: i32) -> [u8; MARKER_BYTES] {
        let mut record = [0; MARKER_BYTES];
        record[..2].copy_from_slice(&(MARKER_BYTES as u16).to_le_bytes());
        record[2] = INSTANT;
        record[3] = slot;
        record[4..12].copy_from_slice(&time_ns.to_le_bytes());
        record[12..16].copy_from_slice(&(self as i32).to_le_bytes());
        record[16..20].copy_from_slice(&value.to_le_bytes());
        record
    }

    /// The marker and value of a record, if it is one.
    pub(crate) fn parse(record: &[u8]) -> Option<(Self, i32)> {
        let record: &[u8; MARKER_BYTES] = record.try_into().ok()?;
        if record[2] != INSTANT {
            return None;
        }
        let [.., n0, n1, n2, n3, v0, v1, v2, v3] = *record;
        let name = usize::try_from(i32::from_le_bytes([n0, n1, n2, n3])).ok()?;
        Some((*Self::ALL.get(name)?, i32::from_le_bytes([v0, v1, v2, v3])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_survive_the_way_through_bytes() {
        for marker in Marker::ALL {
            let record = marker.record(9, -5, 77);
            assert_eq!(Marker::parse(&record), Some((marker, 77)));
        }
        let mut application = Marker::KindOff.record(0, 0, 1);
        application[12] = RESERVED_NAMES.len() as u8;
        assert_eq!(Marker::parse(&application), None);
        assert_eq!(Marker::parse(&[0; 12]), None);
    }
}
