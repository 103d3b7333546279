//! Batches: what exporters get. One becomes one block of a trace file.
#![forbid(unsafe_code)]

use super::markers::{MARKER_BYTES, Marker};

/// Most bytes of one batch: a block's limit less the checksum marker that a file puts in front (brief 01 B-23).
pub const MAX_BATCH_BYTES: usize = 262_124;
/// Most records of one batch, for the same reason.
pub const MAX_BATCH_RECORDS: usize = 8_191;

/// Whole records in the order of their start times; never empty. Times and durations are nanoseconds of the trace
/// clock.
#[derive(Debug, PartialEq, Eq)]
pub struct Batch {
    records: Vec<u8>,
    record_count: u32,
    name_count: u32,
}

impl Batch {
    /// The records, back to back; at most [`MAX_BATCH_BYTES`].
    pub fn records(&self) -> &[u8] {
        &self.records
    }

    /// How many there are; at most [`MAX_BATCH_RECORDS`].
    pub fn record_count(&self) -> u32 {
        self.record_count
    }

    /// All name ids in the batch are below this number: names that an exporter must have written before the batch.
    pub fn name_count(&self) -> u32 {
        self.name_count
    }
}

/// What a record is to the order of a batch. At equal times the earlier variant comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Class {
    /// Says who a slot's records belong to: precedes them all.
    ThreadInfo,
    /// Says what is missing: precedes what is there.
    Loss,
    /// A change of the mask, at its own time.
    Change,
    /// Everything else.
    Ordinary,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    time_ns: i64,
    start: u32,
    size: u16,
    slot: u8,
    class: Class,
}

/// The batch that is being filled.
pub(crate) struct OpenBatch {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Earliest time of an ordinary record per slot, `i64::MAX` without one.
    earliest_ns: Box<[i64; 256]>,
    /// Slots with a record of any class.
    has_slot: [u64; 4],
}

impl OpenBatch {
    pub(crate) fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(MAX_BATCH_BYTES),
            entries: Vec::with_capacity(MAX_BATCH_RECORDS),
            earliest_ns: Box::new([i64::MAX; 256]),
            has_slot: [0; 4],
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Does the batch hold a record of this slot?
    pub(crate) fn has_slot(&self, slot: u8) -> bool {
        self.has_slot[usize::from(slot >> 6)] >> (slot & 63) & 1 != 0
    }

    /// Is there room for a record of this size and one marker after it?
    #[inline]
    pub(crate) fn fits(&self, size: usize) -> bool {
        self.bytes.len() + size + MARKER_BYTES <= MAX_BATCH_BYTES
            && self.entries.len() + 2 <= MAX_BATCH_RECORDS
    }

    /// Is there room for one marker?
    pub(crate) fn fits_marker(&self) -> bool {
        self.bytes.len() + MARKER_BYTES <= MAX_BATCH_BYTES && self.entries.len() < MAX_BATCH_RECORDS
    }

    /// Adds a record, for which there is room, and lets `patch` change its bytes.
    #[inline]
    pub(crate) fn push(&mut self, record: &[u8], time_ns: i64, class: Class, patch: impl FnOnce(&mut [u8])) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(record);
        patch(&mut self.bytes[start..]);
        let slot = record[3];
        self.has_slot[usize::from(slot >> 6)] |= 1 << (slot & 63);
        if class == Class::Ordinary {
            let earliest = &mut self.earliest_ns[usize::from(slot)];
            *earliest = time_ns.min(*earliest);
        }
        self.entries.push(Entry { time_ns, start: start as u32, size: record.len() as u16, slot, class });
    }

    /// Adds a marker, for which there is room.
    pub(crate) fn push_marker(&mut self, marker: Marker, slot: u8, time_ns: i64, value: i32) {
        let class = if marker.is_loss() { Class::Loss } else { Class::Change };
        self.push(&marker.record(slot, time_ns, value), time_ns, class, |_| ());
    }

    /// Takes the batch out, sorted by time, class, slot and order in the slot. `ThreadInfo` and losses take the
    /// earliest time of their slot's records, so that no reader meets those first. `None` when there is nothing.
    pub(crate) fn cut(&mut self, name_count: u32) -> Option<Batch> {
        if self.entries.is_empty() {
            return None;
        }
        for entry in self.entries.iter_mut().filter(|entry| entry.class <= Class::Loss) {
            let earliest = self.earliest_ns[usize::from(entry.slot)];
            if earliest < entry.time_ns {
                entry.time_ns = earliest;
                let at = entry.start as usize + 4;
                self.bytes[at..at + 8].copy_from_slice(&earliest.to_le_bytes());
            }
        }
        // Stable: records of one slot with equal times keep their order.
        self.entries.sort_by_key(|entry| (entry.time_ns, entry.class, entry.slot));
        let mut records = Vec::with_capacity(self.bytes.len());
        for entry in &self.entries {
            let start = entry.start as usize;
            records.extend_from_slice(&self.bytes[start..start + usize::from(entry.size)]);
        }
        let batch = Batch { records, record_count: self.entries.len() as u32, name_count };
        self.bytes.clear();
        self.entries.clear();
        self.earliest_ns.fill(i64::MAX);
        self.has_slot = [0; 4];
        Some(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::thread_info::ThreadLabel;
    use typhon_trace::record::RecordWalk;

    fn instant(slot: u8, time_ns: i64, tag: u8) -> Vec<u8> {
        let mut record = vec![13, 0, 0, slot];
        record.extend(time_ns.to_le_bytes());
        record.push(tag);
        record
    }

    fn push(batch: &mut OpenBatch, slot: u8, time_ns: i64, tag: u8) {
        batch.push(&instant(slot, time_ns, tag), time_ns, Class::Ordinary, |_| ());
    }

    #[test]
    fn b17_order_is_time_slot_sequence() {
        let mut batch = OpenBatch::new();
        for (slot, time, tag) in [(2, 50, 0), (2, 40, 1), (1, 50, 2), (1, 50, 3), (2, 50, 4)] {
            push(&mut batch, slot, time, tag);
        }
        let batch = batch.cut(0).unwrap();
        let tags: Vec<u8> =
            RecordWalk::new(batch.records()).map(|record| record.payload().unwrap()[0]).collect();
        assert_eq!(tags, [1, 2, 3, 0, 4]);
    }

    #[test]
    fn b17_thread_info_and_losses_precede_their_slots_records() {
        let mut batch = OpenBatch::new();
        push(&mut batch, 1, 100, 0);
        push(&mut batch, 3, 10, 1);
        batch.push_marker(Marker::DroppedRecords, 1, 900, 5);
        let info = ThreadLabel::default().record(1, 800);
        batch.push(&info, 800, Class::ThreadInfo, |_| ());
        batch.push_marker(Marker::KindOff, 254, 100, 5);
        let batch = batch.cut(5).unwrap();
        let kinds: Vec<_> =
            RecordWalk::new(batch.records()).map(|r| (r.kind(), r.slot(), r.timestamp())).collect();
        assert_eq!(kinds, [(0, 3, 10), (77, 1, 100), (6, 1, 100), (6, 254, 100), (0, 1, 100)]);
        assert_eq!((batch.record_count(), batch.name_count()), (5, 5));
    }

    #[test]
    fn a_cut_leaves_nothing_behind() {
        let mut batch = OpenBatch::new();
        push(&mut batch, 200, 5, 0);
        assert!(batch.has_slot(200) && !batch.has_slot(201));
        assert!(batch.cut(0).is_some());
        assert!(batch.cut(0).is_none() && !batch.has_slot(200) && batch.is_empty());
        batch.push_marker(Marker::DroppedRecords, 200, 9, 1);
        assert_eq!(RecordWalk::new(batch.cut(0).unwrap().records()).next().unwrap().timestamp(), 9);
    }

    #[test]
    fn room_is_kept_for_one_marker() {
        let mut batch = OpenBatch::new();
        let record = vec![0xFE; 65_534];
        while batch.fits(record.len()) {
            batch.push(&record, 0, Class::Ordinary, |_| ());
        }
        while batch.fits(12) {
            batch.push(&[12; 12], 0, Class::Ordinary, |_| ());
        }
        assert!(batch.fits_marker());
        batch.push_marker(Marker::DroppedRecords, 0, 0, 1);
        assert!(batch.cut(0).unwrap().records().len() <= MAX_BATCH_BYTES);
    }
}
