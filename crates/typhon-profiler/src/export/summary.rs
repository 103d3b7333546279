//! What remains of batches that an exporter did not get: their losses, and what later records cannot do without.
#![forbid(unsafe_code)]

use crate::capture::CONSUMER_SLOT;
use crate::capture::thread_info::THREAD_INFO;
use crate::drain::batch::{Batch, Class, OpenBatch};
use crate::drain::markers::Marker;
use std::collections::BTreeMap;
use typhon_trace::event::PerTickSnapshotView;
use typhon_trace::record::{Record, RecordWalk};
use typhon_trace::registry;

/// Kind id of `QueryDefinitionDescribe`, written once per definition.
const QUERY_DEFINITION: u8 = 247;

/// Records kept by a summary at most; an exporter that failed for good would collect them for ever.
const MAX_KEPT: usize = 65_536;

/// The remains of dropped batches, kept until they can be put in front of the next batch that is accepted.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// Records that are lost, and losses whose reports are lost.
    lost: u64,
    /// The latest `ThreadInfo` per slot.
    threads: BTreeMap<u8, Vec<u8>>,
    /// Changes of the mask, query definitions and capacities, in order. They are not lost.
    kept: Vec<Vec<u8>>,
    latest_ns: i64,
    name_count: u32,
}

impl Summary {
    /// Takes in a batch that was dropped.
    pub(crate) fn absorb(&mut self, batch: &Batch) {
        self.name_count = self.name_count.max(batch.name_count());
        for record in RecordWalk::new(batch.records()) {
            self.latest_ns = self.latest_ns.max(record.timestamp());
            match Marker::parse(record.bytes()) {
                Some((marker, value)) if marker.is_loss() => self.lost += u64::from(value.unsigned_abs()),
                Some(_) if self.kept.len() < MAX_KEPT => self.kept.push(record.bytes().to_vec()),
                Some(_) => {}
                None if record.kind() == THREAD_INFO => {
                    self.threads.insert(record.slot(), record.bytes().to_vec());
                }
                None if must_stay(&record) && self.kept.len() < MAX_KEPT => {
                    self.kept.push(record.bytes().to_vec())
                }
                None => self.lost += 1,
            }
        }
    }

    /// Nothing to tell?
    pub(crate) fn is_empty(&self) -> bool {
        self.lost == 0 && self.threads.is_empty() && self.kept.is_empty()
    }

    /// Lost records so far.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Empties the summary into batches: the losses as `typhon.dropped_batches`, and what was kept.
    pub(crate) fn take_batches(&mut self) -> Vec<Batch> {
        let summary = std::mem::take(self);
        let (mut open, mut batches) = (OpenBatch::new(), Vec::new());
        let mut push = |record: &[u8], class| {
            if !open.fits(record.len()) {
                batches.extend(open.cut(summary.name_count));
            }
            open.push(record, time_of(record), class, |_| ());
        };
        for record in summary.threads.values() {
            push(record, Class::ThreadInfo);
        }
        let mut left = summary.lost;
        while left > 0 {
            let value = i32::try_from(left).unwrap_or(i32::MAX);
            push(&Marker::DroppedBatches.record(CONSUMER_SLOT, summary.latest_ns, value), Class::Loss);
            left -= u64::from(value.unsigned_abs());
        }
        for record in &summary.kept {
            push(record, if Marker::parse(record).is_some() { Class::Change } else { Class::Ordinary });
        }
        batches.extend(open.cut(summary.name_count));
        batches
    }
}

/// Is this a record that is written once and that later ones refer to?
fn must_stay(record: &Record<'_>) -> bool {
    let has_capacity = |view: PerTickSnapshotView<'_>| {
        view.gauges().any(|gauge| registry::gauge(gauge.id).is_some_and(|info| info.once))
    };
    record.kind() == QUERY_DEFINITION || PerTickSnapshotView::new(record).is_some_and(has_capacity)
}

fn time_of(record: &[u8]) -> i64 {
    record[4..].first_chunk().map_or(0, |raw| i64::from_le_bytes(*raw))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::thread_info::ThreadLabel;
    use crate::drain::markers::RESERVED_NAMES;

    fn batch(fill: impl FnOnce(&mut OpenBatch)) -> Batch {
        let mut open = OpenBatch::new();
        fill(&mut open);
        open.cut(RESERVED_NAMES.len() as u32).unwrap()
    }

    fn info(slot: u8, name: &str, time: u64) -> Vec<u8> {
        ThreadLabel { name: name.into(), ..ThreadLabel::default() }.record(slot, time)
    }

    #[test]
    fn b20_dropped_batch_leaves_losses_threads_and_changes() {
        let dropped = batch(|open| {
            for slot in 0..3 {
                open.push(&[12, 0, 0, slot, 9, 0, 0, 0, 0, 0, 0, 0], 9, Class::Ordinary, |_| ());
            }
            open.push(&info(1, "old", 5), 5, Class::ThreadInfo, |_| ());
            open.push_marker(Marker::DroppedRecords, 1, 9, 40);
            open.push_marker(Marker::KindOff, CONSUMER_SLOT, 8, 33);
        });
        let mut summary = Summary::default();
        assert!(summary.is_empty());
        summary.absorb(&dropped);
        summary.absorb(&batch(|open| open.push(&info(1, "new", 20), 20, Class::ThreadInfo, |_| ())));
        assert_eq!(summary.lost(), 43);

        let batches = summary.take_batches();
        assert!(summary.is_empty());
        assert_eq!(batches.len(), 1);
        let records: Vec<Record<'_>> = RecordWalk::new(batches[0].records()).collect();
        let markers: Vec<_> = records.iter().filter_map(|record| Marker::parse(record.bytes())).collect();
        assert_eq!(markers, [(Marker::KindOff, 33), (Marker::DroppedBatches, 43)]);
        assert!(records.iter().any(|record| record.bytes() == info(1, "new", 20)));
        assert_eq!(records.len(), 3);

        // A summary that is itself dropped says the same again.
        summary.absorb(&batches[0]);
        assert_eq!(summary.lost(), 43);
        assert_eq!(summary.take_batches(), batches);
    }

    #[test]
    fn losses_beyond_a_marker_take_several() {
        let mut summary = Summary { lost: i32::MAX as u64 + 5, ..Summary::default() };
        let batches = summary.take_batches();
        let values: Vec<_> = RecordWalk::new(batches[0].records())
            .filter_map(|record| Marker::parse(record.bytes()))
            .collect();
        assert_eq!(values, [(Marker::DroppedBatches, i32::MAX), (Marker::DroppedBatches, 5)]);
    }
}
