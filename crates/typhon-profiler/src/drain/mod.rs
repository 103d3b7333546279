//! The consumer's work: takes what threads published, gives it trace time, and fills batches.
//!
//! No thread and no clock of its own, so that the models in `tests/loom_*.rs` run the very code that sessions run.
//!
//! **Invariants**
//! - A loss marker stands in the batch of the records that were read before the loss was counted, so that no record
//!   of a slot precedes, in the trace, the report of an earlier loss of that slot.
//! - No batch holds records of two owners of a slot.
//! - A slot is freed only after a visit that found it retired, read everything and reported every loss.
#![forbid(unsafe_code)]

pub(crate) mod batch;
pub(crate) mod markers;

use crate::capture::slot::{SPAN_COUNTER_BITS, SlotReader, Visit};
use crate::capture::thread_info::{THREAD_INFO, ThreadLabel};
use crate::capture::{CONSUMER_SLOT, Capture};
use crate::clock::ClockMap;
use crate::sync::{Fault, planted};
use batch::{Batch, Class, MAX_BATCH_BYTES, OpenBatch};
use markers::{Marker, RESERVED_NAMES};
use typhon_trace::record::SPAN_HEADER_BYTES;
use typhon_trace::registry;

/// A change of the mask, as the changer noted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KindChange {
    pub(crate) kind: u8,
    pub(crate) on: bool,
    pub(crate) ticks: u64,
}

/// What was done since the session began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct DrainCounts {
    /// Records of threads put into batches, `ThreadInfo` not included.
    pub(crate) records: u64,
    /// Spans of an earlier session, left out.
    pub(crate) stale_spans: u64,
    /// Records and losses from before the session, found when it began.
    pub(crate) late_records: u64,
    /// Durations below zero, set to zero.
    pub(crate) clamped_durations: u64,
    /// Records that a stop had no time for; they count as lost.
    pub(crate) undrained_records: u64,
    /// Losses put into markers.
    pub(crate) reported_losses: u64,
}

/// What one round over the slots achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Round {
    /// Bytes taken.
    pub(crate) bytes: usize,
    /// Some slot has more.
    pub(crate) more: bool,
    /// Some slot has more of what it had when the pass began.
    pub(crate) behind: bool,
}

/// Rounds of a pass, until everything is taken that was there at [`Drain::begin_pass`], or `stops` says so: threads that
/// go on faster than it is taken must not keep the consumer from the rest of its work. What they achieved together.
pub(crate) fn pass(mut round: impl FnMut() -> Round, mut stops: impl FnMut() -> bool) -> Round {
    let mut bytes = 0;
    loop {
        let found = round();
        bytes += found.bytes;
        if !found.behind || stops() {
            return Round { bytes, ..found };
        }
    }
}

/// The rounds of the last drain, until one finds nothing; false if the time was `over` before.
pub(crate) fn last_rounds(mut round: impl FnMut() -> Round, mut over: impl FnMut() -> bool) -> bool {
    loop {
        let found = round();
        if !found.more && found.bytes == 0 {
            return true;
        }
        if over() {
            return false;
        }
    }
}

/// The consumer.
pub(crate) struct Drain<'c> {
    capture: &'c Capture,
    readers: Vec<SlotReader<'c>>,
    /// Per slot, the last span id given before the session began.
    floors: Vec<u64>,
    /// Per slot, bytes left of those that waited when the pass began.
    goals: Vec<u64>,
    reported_no_slot: u64,
    /// Slot that the next round begins with.
    turn: usize,
    batch: OpenBatch,
    /// Trace time at which the open batch got its first record.
    opened_ns: i64,
    /// Names that the next batch may use.
    name_count: u32,
    counts: DrainCounts,
}

impl<'c> Drain<'c> {
    /// The consumer of a capture; there is one.
    pub(crate) fn new(capture: &'c Capture) -> Self {
        Self {
            capture,
            readers: capture.all_slots().iter().map(SlotReader::new).collect(),
            floors: vec![0; capture.all_slots().len()],
            goals: vec![0; capture.all_slots().len()],
            reported_no_slot: 0,
            turn: 0,
            batch: OpenBatch::new(),
            opened_ns: 0,
            name_count: RESERVED_NAMES.len() as u32,
            counts: DrainCounts::default(),
        }
    }

    /// Numbers of this session so far.
    pub(crate) fn counts(&self) -> DrainCounts {
        self.counts
    }

    /// Begins a session, before its mask is stored: discards what came after the last one, frees slots that were
    /// retired meanwhile, and announces the consumer and every claimed slot.
    pub(crate) fn begin_session(&mut self, consumer: &ThreadLabel, now_ns: i64) {
        self.counts = DrainCounts::default();
        self.batch = OpenBatch::new();
        if !planted(Fault::NoDiscard) {
            self.discard();
        }
        if planted(Fault::RestartTotal) {
            self.readers.iter_mut().for_each(SlotReader::forget_reports);
        }
        let no_slot = self.capture.no_slot_drops();
        self.counts.late_records += no_slot - self.reported_no_slot;
        self.reported_no_slot = no_slot;
        self.opened_ns = now_ns;
        self.announce(CONSUMER_SLOT, consumer, now_ns);
        for (index, slot) in self.capture.all_slots().iter().enumerate() {
            if !planted(Fault::NoFloor) {
                self.floors[index] = slot.last_span_id();
            }
            if slot.is_claimed() {
                self.announce(index as u8, &slot.label(), now_ns);
            }
        }
    }

    fn discard(&mut self) {
        let mut late = 0;
        for reader in &mut self.readers {
            let visit = reader.visit(self.capture.pool(), |record| {
                late += u64::from(record[2] != THREAD_INFO);
                true
            });
            if let Some(visit) = visit {
                late += visit.unreported;
                reader.report(visit.unreported);
                if visit.retiring {
                    reader.free();
                }
            }
        }
        self.capture.note_freed();
        self.counts.late_records += late;
    }

    fn announce(&mut self, slot: u8, label: &ThreadLabel, now_ns: i64) {
        let record = label.record(slot, now_ns as u64);
        self.batch.push(&record, now_ns, Class::ThreadInfo, |_| ());
    }

    /// Begins a pass: whatever waits now is taken when a round is no longer [`behind`](Round::behind), which comes to
    /// pass however fast the threads go on.
    pub(crate) fn begin_pass(&mut self) {
        let used = self.capture.slots().len();
        for (goal, reader) in self.goals.iter_mut().zip(&self.readers[..used]) {
            *goal = reader.backlog(self.capture.pool());
        }
    }

    /// Visits every slot once. No slot takes more than its share of a batch. Full batches go to `sink`.
    pub(crate) fn round(
        &mut self,
        map: &ClockMap,
        now_ns: i64,
        last: bool,
        sink: &mut dyn FnMut(Batch),
    ) -> Round {
        let used = self.capture.slots().len();
        let share = MAX_BATCH_BYTES / used.max(1);
        let mut round = Round::default();
        for step in 0..used {
            let index = (self.turn + step) % used;
            if !self.batch.fits_marker() {
                self.cut(now_ns, sink);
            }
            self.visit(index, share, map, now_ns, last, &mut round, sink);
        }
        self.turn = if used == 0 { 0 } else { (self.turn + 1) % used };
        self.report_no_slot(now_ns, sink);
        round
    }

    #[allow(clippy::too_many_arguments, reason = "one call, split off for its length")]
    fn visit(
        &mut self,
        index: usize,
        share: usize,
        map: &ClockMap,
        now_ns: i64,
        last: bool,
        round: &mut Round,
        sink: &mut dyn FnMut(Batch),
    ) {
        let (batch, floors, counts) = (&mut self.batch, &self.floors, &mut self.counts);
        let was_empty = batch.is_empty();
        let (mut taken, mut full) = (0, false);
        let visit = self.readers[index].visit(self.capture.pool(), |record| {
            if taken > 0 && taken + record.len() > share {
                return false;
            }
            let info = record[2] == THREAD_INFO;
            if !batch.fits(record.len()) || (info && batch.has_slot(record[3])) {
                full = true;
                return false;
            }
            taken += record.len();
            add(batch, record, map, floors, counts);
            true
        });
        let Some(visit) = visit else { return };
        let goal = &mut self.goals[index];
        *goal = if visit.drained { 0 } else { goal.saturating_sub(taken as u64) };
        round.behind |= *goal > 0;
        if was_empty {
            self.opened_ns = now_ns;
        }
        self.finish_visit(index, visit, 0, now_ns, last);
        round.bytes += taken;
        round.more |= !visit.drained;
        if full {
            self.cut(now_ns, sink);
        }
    }

    /// Reports the losses that a visit found, and those that it caused, and frees the slot if nothing is left of its
    /// owner.
    fn finish_visit(&mut self, index: usize, visit: Visit, discarded: u64, now_ns: i64, last: bool) {
        let reader = &mut self.readers[index];
        let loss = i32::try_from(visit.unreported + discarded).unwrap_or(i32::MAX);
        let unmarked = (planted(Fault::LastMark) && last) || (planted(Fault::FreeUnmarked) && visit.retiring);
        let reported = if loss > 0 && !unmarked { u64::from(loss.unsigned_abs()) } else { 0 };
        if reported > 0 {
            if self.batch.is_empty() {
                self.opened_ns = now_ns;
            }
            self.batch.push_marker(Marker::DroppedRecords, index as u8, now_ns, loss);
            reader.report(reported - discarded);
            self.counts.reported_losses += reported;
        }
        let free = visit.retiring && visit.drained && (reported == visit.unreported + discarded || unmarked);
        if free {
            reader.free();
        }
        if free || visit.recycled {
            self.capture.note_freed();
        }
    }

    fn report_no_slot(&mut self, now_ns: i64, sink: &mut dyn FnMut(Batch)) {
        let loss = i32::try_from(self.capture.no_slot_drops() - self.reported_no_slot).unwrap_or(i32::MAX);
        if loss > 0 {
            self.push_own_marker(Marker::DroppedRecords, now_ns, loss, sink);
            self.reported_no_slot += u64::from(loss.unsigned_abs());
            self.counts.reported_losses += u64::from(loss.unsigned_abs());
        }
    }

    /// Puts changes of the mask into the batch; the caller took them after the round that precedes them.
    pub(crate) fn mark_changes(
        &mut self,
        changes: &[KindChange],
        map: &ClockMap,
        sink: &mut dyn FnMut(Batch),
    ) {
        for change in changes {
            let marker = if change.on { Marker::KindOn } else { Marker::KindOff };
            self.push_own_marker(marker, map.to_ns(change.ticks), i32::from(change.kind), sink);
        }
    }

    fn push_own_marker(&mut self, marker: Marker, time_ns: i64, value: i32, sink: &mut dyn FnMut(Batch)) {
        if !self.batch.fits_marker() {
            self.cut(time_ns, sink);
        }
        if self.batch.is_empty() {
            self.opened_ns = time_ns;
        }
        self.batch.push_marker(marker, CONSUMER_SLOT, time_ns, value);
    }

    /// Lets the next batch use names below this number.
    pub(crate) fn set_name_count(&mut self, name_count: u32) {
        self.name_count = name_count;
    }

    /// Trace time since the open batch got its first record; `None` when it has none.
    pub(crate) fn batch_age_ns(&self, now_ns: i64) -> Option<i64> {
        (!self.batch.is_empty()).then(|| now_ns - self.opened_ns)
    }

    /// Hands the open batch over, if it holds anything.
    pub(crate) fn cut(&mut self, now_ns: i64, sink: &mut dyn FnMut(Batch)) {
        if let Some(batch) = self.batch.cut(self.name_count) {
            sink(batch);
        }
        self.opened_ns = now_ns;
    }

    /// Retires the slots of threads that are gone without having run their destructors.
    pub(crate) fn retire_dead(&self, thread_is_gone: impl Fn(u32) -> bool) -> usize {
        self.capture.slots().iter().filter(|slot| slot.retire_if(&thread_is_gone)).count()
    }

    /// Counts what is left in the slots as lost, for a stop that has no time to take it.
    pub(crate) fn give_up_rest(&mut self, now_ns: i64, sink: &mut dyn FnMut(Batch)) {
        for index in 0..self.capture.slots().len() {
            if !self.batch.fits_marker() {
                self.cut(now_ns, sink);
            }
            let (mut discarded, mut stale) = (0, 0);
            let visit = self.readers[index].visit(self.capture.pool(), |record| {
                let is_stale = registry::is_span(record[2]) && is_stale(word(record, 20), &self.floors);
                stale += u64::from(is_stale);
                discarded += u64::from(!is_stale && record[2] != THREAD_INFO);
                true
            });
            let Some(visit) = visit else { continue };
            self.counts.stale_spans += stale;
            self.counts.undrained_records += discarded;
            self.finish_visit(index, visit, discarded, now_ns, true);
        }
        self.report_no_slot(now_ns, sink);
    }
}

/// Adds a producer's record in trace time; leaves out spans of earlier sessions and forgets their ids as parents.
#[inline]
fn add(batch: &mut OpenBatch, record: &[u8], map: &ClockMap, floors: &[u64], counts: &mut DrainCounts) {
    let start_ticks = word(record, 4);
    let start_ns = map.to_ns(start_ticks);
    if record[2] == THREAD_INFO {
        return batch.push(record, start_ns, Class::ThreadInfo, |bytes| put(bytes, 4, start_ns as u64));
    }
    if !registry::is_span(record[2]) || record.len() < SPAN_HEADER_BYTES {
        counts.records += 1;
        return batch.push(record, start_ns, Class::Ordinary, |bytes| put(bytes, 4, start_ns as u64));
    }
    let (id, parent) = (word(record, 20), word(record, 28));
    if is_stale(id, floors) {
        counts.stale_spans += 1;
        return;
    }
    counts.records += 1;
    let mut duration = word(record, 12) as i64;
    if duration < 0 {
        duration = 0;
        counts.clamped_durations += 1;
    }
    let duration_ns = map.to_ns(start_ticks.wrapping_add(duration as u64)) - start_ns;
    batch.push(record, start_ns, Class::Ordinary, |bytes| {
        put(bytes, 4, start_ns as u64);
        put(bytes, 12, duration_ns as u64);
        if is_stale(parent, floors) {
            put(bytes, 28, 0);
        }
    });
}

/// Was this span id given before the session began?
#[inline]
fn is_stale(id: u64, floors: &[u64]) -> bool {
    floors.get((id >> SPAN_COUNTER_BITS) as usize).is_some_and(|floor| id <= *floor && id != 0)
}

#[inline]
fn word(record: &[u8], at: usize) -> u64 {
    record[at..].first_chunk().map_or(0, |raw| u64::from_le_bytes(*raw))
}

#[inline]
fn put(record: &mut [u8], at: usize, value: u64) {
    record[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

#[cfg(all(test, not(loom)))]
mod tests;
