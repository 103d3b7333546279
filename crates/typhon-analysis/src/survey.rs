//! What must be known of a whole trace before its records can be named: ticks and threads.
//!
//! Both are found by time, not by stream order: a record belongs to the last thread that claimed its slot before it,
//! and to the tick that lasted at its start (brief 01 B-36, §9.2 "slot reuse relabels earlier lanes").

use crate::pipeline::{PipelineOptions, map_blocks};
use crate::ticks::{TickCollector, Ticks};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use typhon_trace::TraceError;
use typhon_trace::decode::{self, Value};
use typhon_trace::reader::{BlockBuffer, BlockFeed, Source};
use typhon_trace::record::{Record, SpanHead};
use typhon_trace::registry::id;

/// A thread that held a slot for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// The slot.
    pub slot: u8,
    /// Threads that held the slot before.
    pub incarnation: u32,
    /// Its name; `None` when the trace does not tell.
    pub name: Option<String>,
    /// Thread number given by the recorder.
    pub number: Option<i64>,
    /// Value of ThreadKind; `None` in records from before format version 4.
    pub kind: Option<u8>,
    /// First timestamp that belongs to it, ticks; `i64::MIN` for the first of a slot.
    pub from_ticks: i64,
}

impl Thread {
    /// The name, or the slot's number where there is none.
    pub fn label(&self) -> Cow<'_, str> {
        match &self.name {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(format!("slot {}", self.slot)),
        }
    }
}

/// The threads of a trace, by slot and time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Threads {
    /// In order of slot, then time. Every slot with a record has at least one entry.
    pub(crate) entries: Vec<Thread>,
    /// Index of each slot's first entry, and how many it has.
    pub(crate) by_slot: BTreeMap<u8, (usize, usize)>,
}

impl Threads {
    /// All of them, in order of slot, then time.
    pub fn all(&self) -> &[Thread] {
        &self.entries
    }

    /// Index in [`Threads::all`] of the thread that held `slot` at a moment.
    #[inline]
    pub fn index_at(&self, slot: u8, timestamp: i64) -> Option<usize> {
        let (first, count) = *self.by_slot.get(&slot)?;
        let after = self.entries[first..first + count].partition_point(|entry| entry.from_ticks <= timestamp);
        Some(first + after.saturating_sub(1))
    }

    /// The thread that held `slot` at a moment.
    #[inline]
    pub fn at(&self, slot: u8, timestamp: i64) -> Option<&Thread> {
        self.index_at(slot, timestamp).map(|index| &self.entries[index])
    }
}

/// ThreadInfo records that are looked at. Real recordings have one for each thread and recording session.
pub const MAX_THREAD_INFOS: usize = 1 << 14;

/// Longest name that is kept, in bytes. Records can hold 64 KiB, and a trace may have thousands of them.
pub(crate) const MAX_NAME_BYTES: usize = 1 << 10;

/// Cuts a text to [`MAX_NAME_BYTES`] at a character boundary and says so by an ellipsis.
pub(crate) fn bounded_text(mut text: String) -> String {
    if text.len() > MAX_NAME_BYTES {
        text.truncate(text.floor_char_boundary(MAX_NAME_BYTES));
        text.push('…');
    }
    text
}

/// Collects what a survey needs. Merge in file order: only the origin of relative times depends on it.
#[derive(Debug, Clone)]
pub struct SurveyCollector {
    ticks: TickCollector,
    infos: Vec<(u8, i64, Thread)>,
    more_infos: u64,
    slots: [bool; 256],
    origin_ticks: Option<i64>,
    first_ticks: i64,
    last_ticks: i64,
    records: u64,
}

impl Default for SurveyCollector {
    fn default() -> Self {
        Self {
            ticks: TickCollector::default(),
            infos: Vec::new(),
            more_infos: 0,
            slots: [false; 256],
            origin_ticks: None,
            first_ticks: i64::MAX,
            last_ticks: i64::MIN,
            records: 0,
        }
    }
}

/// The result.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// Tick numbering.
    pub ticks: Ticks,
    /// Threads.
    pub threads: Threads,
    /// ThreadInfo records beyond [`MAX_THREAD_INFOS`], which are not looked at.
    pub more_infos: u64,
    /// Timestamp of the first record in the file, from which relative times count; 0 without records.
    pub origin_ticks: i64,
    /// Earliest start of a record, ticks; 0 without records.
    pub first_ticks: i64,
    /// Latest end of a record, ticks; 0 without records.
    pub last_ticks: i64,
    /// Number of records.
    pub records: u64,
}

impl Survey {
    /// From the first record's start to the last one's end, ticks.
    pub fn extent_ticks(&self) -> i64 {
        self.last_ticks.saturating_sub(self.first_ticks)
    }
}

impl SurveyCollector {
    /// Looks at one record.
    #[inline]
    pub fn observe(&mut self, record: &Record<'_>) {
        self.observe_with(record, record.span().as_ref());
    }

    /// Looks at one record whose span extension has been read already.
    #[inline]
    pub(crate) fn observe_with(&mut self, record: &Record<'_>, span: Option<&SpanHead<'_>>) {
        let start = record.timestamp();
        let end = span.map_or(start, |span| start.saturating_add(span.duration.max(0)));
        self.origin_ticks.get_or_insert(start);
        self.first_ticks = self.first_ticks.min(start);
        self.last_ticks = self.last_ticks.max(end);
        self.records += 1;
        self.slots[usize::from(record.slot())] = true;
        match record.kind() {
            id::TICK_START => self.ticks.tick_start(start),
            id::TICK_END => self.ticks.tick_end(start),
            id::THREAD_INFO => self.thread_info(record),
            kind => {
                if let Some(tick) = anchor_field(kind).and_then(|name| integer_field(record, name)) {
                    self.ticks.anchor(start, tick);
                }
            }
        }
    }

    fn thread_info(&mut self, record: &Record<'_>) {
        let name = decode::fields(record).find_map(|field| match field.value {
            Value::Text(text) => Some(text.to_str_lossy().into_owned()),
            _ => None,
        });
        self.add_info(
            record.slot(),
            record.timestamp(),
            Thread {
                slot: record.slot(),
                incarnation: 0,
                name: name.filter(|name| !name.is_empty()).map(bounded_text),
                number: integer_field(record, "managedThreadId"),
                kind: integer_field(record, "threadKind").and_then(|kind| u8::try_from(kind).ok()),
                from_ticks: i64::MIN,
            },
        );
    }

    fn add_info(&mut self, slot: u8, timestamp: i64, thread: Thread) {
        if self.infos.last().is_some_and(|(_, at, last)| *at == timestamp && *last == thread) {
            return;
        }
        if self.infos.len() < MAX_THREAD_INFOS {
            self.infos.push((slot, timestamp, thread));
        } else {
            self.more_infos += 1;
        }
    }

    /// Adds everything that `other` collected.
    pub fn merge(&mut self, other: Self) {
        self.ticks.merge(other.ticks);
        other.infos.into_iter().for_each(|(slot, timestamp, thread)| self.add_info(slot, timestamp, thread));
        self.more_infos += other.more_infos;
        self.slots.iter_mut().zip(other.slots).for_each(|(mine, theirs)| *mine |= theirs);
        self.origin_ticks = self.origin_ticks.or(other.origin_ticks);
        self.first_ticks = self.first_ticks.min(other.first_ticks);
        self.last_ticks = self.last_ticks.max(other.last_ticks);
        self.records += other.records;
    }

    /// About so many bytes.
    pub(crate) fn resident_bytes(&self) -> usize {
        self.ticks.resident_bytes() + size_of_val(self.infos.as_slice())
    }

    /// Resolves ticks and threads.
    pub fn finish(self) -> Survey {
        let is_empty = self.records == 0;
        Survey {
            threads: threads(self.infos, &self.slots),
            more_infos: self.more_infos,
            ticks: self.ticks.finish(),
            origin_ticks: self.origin_ticks.unwrap_or(0),
            first_ticks: if is_empty { 0 } else { self.first_ticks },
            last_ticks: if is_empty { 0 } else { self.last_ticks },
            records: self.records,
        }
    }
}

/// Surveys a whole trace on several threads; `look` sees every record as well and collects into a value per block that
/// `keep` gets in file order. `None` when `progress`, which gets the file offset reached, broke off.
///
/// # Errors
/// When the source cannot be read.
pub fn run<S: Source + Send, T: Default + Send>(
    feed: BlockFeed<S>,
    options: PipelineOptions,
    look: impl Fn(&Record<'_>, &mut T) + Sync,
    mut keep: impl FnMut(T),
    mut progress: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<Survey>, TraceError> {
    let mut collector = SurveyCollector::default();
    let observe = || {
        |block: &BlockBuffer| {
            let (mut found, mut extra) = (SurveyCollector::default(), T::default());
            for record in block.events() {
                found.observe(&record);
                look(&record, &mut extra);
            }
            (found, extra)
        }
    };
    let outcome = map_blocks(feed, options, observe, |block| {
        let end = block.summary.entry.end();
        if block.delivered {
            collector.merge(block.payload.0);
            keep(block.payload.1);
        }
        Ok::<_, TraceError>(progress(end))
    })?;
    Ok(outcome.map(|_| collector.finish()))
}

/// The field that names the engine's tick in the kinds that anchor the numbering.
fn anchor_field(kind: u8) -> Option<&'static str> {
    match kind {
        id::PER_TICK_SNAPSHOT => Some("tickNumber"),
        id::SCHEDULER_OVERLOAD_DETECTOR | id::QUEUE_TICK_END => Some("tick"),
        _ => None,
    }
}

fn integer_field(record: &Record<'_>, name: &str) -> Option<i64> {
    let field = decode::fields(record).find(|field| field.name == name)?;
    field.value.as_i128().and_then(|value| i64::try_from(value).ok())
}

fn threads(mut infos: Vec<(u8, i64, Thread)>, slots: &[bool; 256]) -> Threads {
    infos.sort_by_key(|(slot, timestamp, _)| (*slot, *timestamp));
    let mut threads = Threads::default();
    let mut infos = infos.into_iter().peekable();
    for slot in (0..=255u8).filter(|slot| slots[usize::from(*slot)]) {
        let first = threads.entries.len();
        while let Some((_, timestamp, thread)) = infos.next_if(|(of, ..)| *of == slot) {
            // Recorders repeat the record for late viewers: the same identity again is the same thread.
            let identity = |thread: &Thread| (thread.name.clone(), thread.number, thread.kind);
            let last = threads.entries[first..].last();
            if last.is_some_and(|last| identity(last) == identity(&thread)) {
                continue;
            }
            let incarnation = (threads.entries.len() - first) as u32;
            let from_ticks = if incarnation == 0 { i64::MIN } else { timestamp };
            threads.entries.push(Thread { incarnation, from_ticks, ..thread });
        }
        if threads.entries.len() == first {
            let unnamed =
                Thread { slot, incarnation: 0, name: None, number: None, kind: None, from_ticks: i64::MIN };
            threads.entries.push(unnamed);
        }
        threads.by_slot.insert(slot, (first, threads.entries.len() - first));
    }
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant(kind: u8, slot: u8, timestamp: i64, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![(12 + payload.len()) as u8, 0, kind, slot];
        bytes.extend_from_slice(&timestamp.to_le_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }

    fn thread_info(slot: u8, timestamp: i64, number: i32, name: &str) -> Vec<u8> {
        let mut payload = number.to_le_bytes().to_vec();
        payload.extend_from_slice(&(name.len() as u16).to_le_bytes());
        payload.extend_from_slice(name.as_bytes());
        payload.push(1);
        instant(id::THREAD_INFO, slot, timestamp, &payload)
    }

    fn survey(records: &[Vec<u8>]) -> Survey {
        let mut collector = SurveyCollector::default();
        records.iter().for_each(|bytes| collector.observe(&Record::parse(bytes).unwrap()));
        collector.finish()
    }

    #[test]
    fn a_slot_keeps_the_name_of_the_thread_that_held_it_at_the_time() {
        let survey = survey(&[
            thread_info(3, 500, 8, "B"),
            thread_info(3, 100, 7, "A"),
            thread_info(3, 300, 7, "A"),
            instant(6, 9, 10, &[0; 8]),
        ]);
        let name = |slot, ts| survey.threads.at(slot, ts).map(|thread| thread.label().into_owned());
        assert_eq!([50, 100, 499, 500].map(|ts| name(3, ts).unwrap()), ["A", "A", "A", "B"]);
        assert_eq!((name(9, 0).as_deref(), name(4, 0)), (Some("slot 9"), None));
        assert_eq!(survey.threads.all().iter().map(|t| t.incarnation).collect::<Vec<_>>(), [0, 1, 0]);
        assert_eq!((survey.first_ticks, survey.last_ticks, survey.records), (10, 500, 4));
    }

    #[test]
    fn b36_anchors_come_from_snapshots_detectors_and_queues() {
        let mut snapshot = 41u32.to_le_bytes().to_vec();
        snapshot.extend_from_slice(&[0; 6]);
        let survey = survey(&[
            instant(id::TICK_START, 0, 100, &[]),
            instant(id::PER_TICK_SNAPSHOT, 0, 150, &snapshot),
            instant(id::TICK_END, 0, 140, &[0, 1]),
        ]);
        assert_eq!(survey.ticks.tick_at(120), 42);
    }
}
