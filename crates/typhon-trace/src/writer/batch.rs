//! The block under construction, and the losses that the next one has to report.

use std::collections::BTreeMap;

use super::TICK_START_KIND;
use crate::block::{MAX_EVENT_BYTES, MAX_EVENTS};
use crate::checksum::{MARKER_BYTES, named_instant};
use crate::record::Record;

/// Consecutive records that are copied into the block in one go.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) bytes: usize,
    pub(super) records: usize,
    ticks: u32,
    first_timestamp: i64,
}

impl Run {
    #[inline]
    pub(super) fn add(&mut self, record: &Record<'_>) {
        if self.records == 0 {
            self.first_timestamp = record.timestamp();
        }
        self.bytes += record.size();
        self.records += 1;
        self.ticks += u32::from(record.kind() == TICK_START_KIND);
    }
}

/// Records of the open block, behind room for the checksum marker.
#[derive(Debug)]
pub(super) struct Batch {
    buffer: Vec<u8>,
    /// Loss markers included.
    records: usize,
    ticks: u32,
    first_timestamp: i64,
    /// What the loss markers of this block say.
    losses: Losses,
    loss_markers: usize,
}

impl Batch {
    pub(super) fn new() -> Self {
        let mut buffer = Vec::with_capacity(MARKER_BYTES + MAX_EVENT_BYTES);
        buffer.resize(MARKER_BYTES, 0);
        Self { buffer, records: 0, ticks: 0, first_timestamp: 0, losses: Losses::default(), loss_markers: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records == 0
    }

    pub(super) fn records(&self) -> u64 {
        self.records as u64
    }

    pub(super) fn ticks(&self) -> u32 {
        self.ticks
    }

    pub(super) fn first_timestamp(&self) -> i64 {
        self.first_timestamp
    }

    /// Does `record` fit behind what is here and behind `run`?
    #[inline]
    pub(super) fn has_room(&self, run: &Run, record: &Record<'_>) -> bool {
        self.buffer.len() + run.bytes + record.size() <= MARKER_BYTES + MAX_EVENT_BYTES
            && self.records + run.records < MAX_EVENTS
    }

    /// Adds the records that `run` describes.
    pub(super) fn push(&mut self, records: &[u8], run: &Run) {
        debug_assert_eq!(records.len(), run.bytes);
        if self.is_empty() {
            self.first_timestamp = run.first_timestamp;
        }
        self.buffer.extend_from_slice(records);
        self.records += run.records;
        self.ticks += run.ticks;
    }

    /// Adds a marker for every slot with losses, with as much of each count as a marker can hold.
    pub(super) fn push_losses(&mut self, losses: &mut Losses, timestamp: i64, name_id: u16) {
        self.first_timestamp = timestamp;
        for (slot, count) in losses.take_markers() {
            self.buffer.extend_from_slice(&named_instant(slot, timestamp, name_id, count));
            self.losses.add(slot, u64::from(count.unsigned_abs()));
            self.records += 1;
            self.loss_markers += 1;
        }
    }

    /// The whole block: the marker, then the records, and their number.
    pub(super) fn finish(&mut self, marker: &[u8; MARKER_BYTES]) -> (&[u8], u32) {
        self.buffer[..MARKER_BYTES].copy_from_slice(marker);
        (&self.buffer, self.records as u32 + 1)
    }

    /// For a block that could not be written: gives back what its loss markers say and returns the number of its
    /// other records.
    pub(super) fn take_losses(&mut self, losses: &mut Losses) -> u64 {
        for (slot, count) in std::mem::take(&mut self.losses).per_slot {
            losses.add(slot, count);
        }
        (self.records - self.loss_markers) as u64
    }

    pub(super) fn clear(&mut self) {
        self.buffer.truncate(MARKER_BYTES);
        self.records = 0;
        self.ticks = 0;
        self.losses = Losses::default();
        self.loss_markers = 0;
    }
}

/// Lost records by slot, not yet in the file.
#[derive(Debug, Clone, Default)]
pub(super) struct Losses {
    per_slot: BTreeMap<u8, u64>,
}

impl Losses {
    /// Far above anything real, and a bound on the number of markers that close may have to write.
    const MAX_PER_SLOT: u64 = 1 << 40;

    pub(super) fn is_empty(&self) -> bool {
        self.per_slot.is_empty()
    }

    pub(super) fn add(&mut self, slot: u8, count: u64) {
        if count > 0 {
            let sum = self.per_slot.entry(slot).or_default();
            *sum = sum.saturating_add(count).min(Self::MAX_PER_SLOT);
        }
    }

    /// One marker value per slot; what a marker cannot hold stays for the next block.
    fn take_markers(&mut self) -> Vec<(u8, i32)> {
        let markers =
            self.per_slot.iter().map(|(&slot, &count)| (slot, i32::try_from(count).unwrap_or(i32::MAX)));
        let markers: Vec<_> = markers.collect();
        for &(slot, count) in &markers {
            if let Some(left) = self.per_slot.get_mut(&slot) {
                *left -= u64::from(count.unsigned_abs());
            }
        }
        self.per_slot.retain(|_, left| *left > 0);
        markers
    }
}
