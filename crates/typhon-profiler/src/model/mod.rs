//! A small stage for loom: the real capture and the real consumer, with threads that number what they record, so that
//! every scenario ends with the same questions. Is each record there once, in order, under its own thread? Is every
//! other one reported lost, and no later than the records that follow it?
#![forbid(unsafe_code)]

mod sessions;

pub use crate::sync::{Fault, plant};
pub use sessions::ModelProcess;

use crate::capture::Capture;
use crate::capture::chunk::RecordContext;
use crate::capture::producer::{Identity, OpenSpan, Producer};
use crate::capture::thread_info::{THREAD_INFO, ThreadLabel};
use crate::clock::ClockMap;
use crate::drain::batch::Batch;
use crate::drain::markers::Marker;
use crate::drain::{self, Drain, KindChange};
use crate::gates::KindMask;
use crate::mask::EffectiveMask;
use crate::switch::Switch;
use crate::sync::planted;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use typhon_trace::event::{CheckpointCollect, Event, SpanEvent, SpanFields};
use typhon_trace::record::{Record, RecordWalk};

/// An instant of 20 bytes, of which a chunk of a model holds two.
const INSTANT: u8 = 0;

/// What producers and consumer of one model share.
pub struct Model {
    capture: Capture,
    mask: EffectiveMask,
    switch: Switch,
    /// 1 once a stop of the last session has returned.
    stopped: loom::sync::atomic::AtomicU32,
    /// Records that threads were told to make and for which the mask was on. Watched, never steering.
    emitted: AtomicU32,
    gone: Mutex<Vec<u32>>,
    /// Instants that a consumer's thread has handed on.
    handed_on: Mutex<HashSet<u32>>,
    /// Sessions begun, less one; only for scenarios about sessions, since it orders what a thread did before it looks.
    session: Option<loom::sync::atomic::AtomicU32>,
    /// Session in which a record was published, or a span begun, at the latest.
    known_in: Mutex<HashMap<Made, u32>>,
}

/// What a thread has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Made {
    Instant(u32),
    Span(u64),
}

impl Model {
    /// A capture of its own.
    pub fn new(slots: usize, chunks: u32) -> Arc<Self> {
        Arc::new(Self::build(slots, chunks, false))
    }

    /// A capture of its own for several sessions.
    pub fn with_sessions(slots: usize, chunks: u32) -> Arc<Self> {
        Arc::new(Self::build(slots, chunks, true))
    }

    fn build(slots: usize, chunks: u32, sessions: bool) -> Self {
        let capture = Capture::new(slots, chunks);
        capture.pool().set_limit(chunks);
        Self {
            capture,
            mask: EffectiveMask::new(),
            switch: Switch::new(),
            stopped: loom::sync::atomic::AtomicU32::new(0),
            emitted: AtomicU32::new(0),
            gone: Mutex::default(),
            handed_on: Mutex::default(),
            session: sessions.then(|| loom::sync::atomic::AtomicU32::new(0)),
            known_in: Mutex::default(),
        }
    }

    /// A thread with an id above 0 and below 100.
    pub fn thread(&self, id: u32) -> ModelThread<'_> {
        ModelThread { model: self, producer: Producer::new(), id, made: 0 }
    }

    /// The consumer, with a session begun and the mask on.
    pub fn consumer(&self) -> ModelConsumer<'_> {
        let mut consumer = ModelConsumer::new(self);
        consumer.begin();
        consumer
    }

    /// Switches all kinds on or off while a session runs. True if one does.
    pub fn switch(&self, on: bool) -> bool {
        let kinds = if on { KindMask::from_words([u64::MAX; 4]) } else { KindMask::EMPTY };
        self.switch.set(&self.mask, kinds, 4)
    }

    /// Asks whether an instant would be recorded, after having looked whether the session was stopped.
    pub fn asks_after_stop(&self) {
        let stopped = self.stopped.load(Ordering::Acquire) == 1;
        let on = self.mask.contains(INSTANT);
        assert!(!(stopped && on), "a kind is on after the session");
    }

    fn made(&self, what: Made) {
        let Some(session) = &self.session else { return };
        // After the fact and by a read-modify-write: whoever begins a later session sees what was made.
        let session = session.fetch_add(0, Ordering::AcqRel);
        if let Ok(mut known_in) = self.known_in.lock() {
            known_in.insert(what, session);
        }
    }

    fn session_of(&self, what: Made) -> Option<u32> {
        self.known_in.lock().ok()?.get(&what).copied()
    }

    fn slot_losses(&self) -> u32 {
        let mut by_kind = vec![0; 256];
        self.capture.all_slots().iter().for_each(|slot| slot.add_dropped_by_kind(&mut by_kind));
        by_kind.iter().sum::<u64>() as u32
    }
}

/// One producing thread.
pub struct ModelThread<'m> {
    model: &'m Model,
    producer: Producer<'m>,
    id: u32,
    made: u32,
}

#[derive(Clone, Copy)]
struct Who<'m> {
    model: &'m Model,
    id: u32,
}

impl<'m> Identity<'m> for Who<'m> {
    fn capture(self) -> &'m Capture {
        &self.model.capture
    }

    fn label(self) -> Option<ThreadLabel> {
        // A name of one byte makes the record 20 bytes long.
        let label = ThreadLabel {
            os_thread_id: self.id,
            thread_id: self.id as u16,
            name: "m".into(),
            ..ThreadLabel::default()
        };
        Some(label)
    }

    fn now_ticks(self) -> u64 {
        1
    }
}

impl<'m> ModelThread<'m> {
    fn who(&self) -> Who<'m> {
        Who { model: self.model, id: self.id }
    }

    fn emits(&mut self, kind: u8) -> bool {
        let on = self.model.mask.contains(kind);
        if on {
            self.model.emitted.fetch_add(1, Ordering::Relaxed);
        }
        on
    }

    /// Makes one instant: thread and number, and how many losses its slot has had before. Losses are watched per
    /// capture, so that scenarios that ask for their order use one slot.
    pub fn instant(&mut self) {
        if self.emits(INSTANT) {
            let (number, lost) = (self.id * 100 + self.made, self.model.slot_losses());
            self.made += 1;
            self.producer.emit(self.who(), INSTANT, 20, |context: RecordContext, bytes: &mut [u8]| {
                bytes[..4].copy_from_slice(&[20, 0, INSTANT, context.slot]);
                bytes[4..12].copy_from_slice(&5u64.to_le_bytes());
                bytes[12..16].copy_from_slice(&number.to_le_bytes());
                bytes[16..20].copy_from_slice(&lost.to_le_bytes());
            });
            self.model.made(Made::Instant(number));
        }
    }

    /// Makes an instant while another one is being made, as a signal handler would.
    pub fn instant_inside_instant(&mut self) {
        if self.emits(INSTANT) {
            let who = self.who();
            let inner = |bytes: &mut [u8]| {
                bytes.copy_from_slice(&[20, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0])
            };
            self.model.emitted.fetch_add(1, Ordering::Relaxed);
            self.producer.emit(who, INSTANT, 20, |context: RecordContext, bytes: &mut [u8]| {
                self.producer.emit(who, INSTANT, 20, |_: RecordContext, bytes: &mut [u8]| inner(bytes));
                inner(bytes);
                bytes[3] = context.slot;
            });
        }
    }

    /// Begins a span.
    pub fn begin(&mut self) -> Option<OpenModelSpan> {
        let span =
            self.emits(CheckpointCollect::KIND).then(|| self.producer.begin_span(self.who())).flatten()?;
        self.model.made(Made::Span(span.id));
        Some(OpenModelSpan(span))
    }

    /// Ends a span. Its record fills a chunk of a model.
    pub fn end(&mut self, span: Option<OpenModelSpan>) {
        let Some(OpenModelSpan(span)) = span else { return };
        let fields = SpanFields { span_id: span.id, parent_span_id: span.parent, ..SpanFields::default() };
        let event = CheckpointCollect::default();
        let size = event.record_bytes(&fields);
        // Three bytes that readers ignore make it whole words.
        self.producer.end_span(
            self.who(),
            CheckpointCollect::KIND,
            span,
            size + 3,
            |context: RecordContext, bytes: &mut [u8]| {
                let written = event.encode(context.slot, 5, &fields, &mut bytes[..size]);
                assert!(written.is_ok());
                bytes[..2].copy_from_slice(&(size as u16 + 3).to_le_bytes());
            },
        );
    }

    /// Ends the thread as its destructor does.
    pub fn exit(&self) {
        self.producer.retire();
        if let Ok(mut gone) = self.model.gone.lock() {
            gone.push(self.id);
        }
    }
}

/// A span that has begun.
pub struct OpenModelSpan(OpenSpan);

/// The consumer and what it has written, one list of batches per session.
pub struct ModelConsumer<'m> {
    model: &'m Model,
    drain: Drain<'m>,
    batches: Vec<Batch>,
    files: Vec<Vec<Batch>>,
    /// Records of other sessions that were left out.
    discarded: u32,
}

impl<'m> ModelConsumer<'m> {
    fn new(model: &'m Model) -> Self {
        let (batches, files) = (Vec::new(), Vec::new());
        Self { model, drain: Drain::new(&model.capture), batches, files, discarded: 0 }
    }

    /// Begins a further session.
    pub fn start(&mut self) {
        if let Some(session) = &self.model.session {
            session.fetch_add(1, Ordering::AcqRel);
        }
        self.model.stopped.store(0, Ordering::Release);
        self.begin();
    }

    fn announce(&mut self) {
        self.drain.begin_session(&ThreadLabel::default(), 0);
    }

    fn begin(&mut self) {
        self.announce();
        self.model.switch.arm(&self.model.mask, KindMask::from_words([u64::MAX; 4]));
    }

    /// Visits every slot once and cuts; returns the bytes taken.
    pub fn round(&mut self) -> usize {
        let early = planted(Fault::NotesFirst).then(|| self.model.switch.take_changes());
        let round = self.visit(false);
        self.mark_changes(early.unwrap_or_else(|| self.model.switch.take_changes()));
        self.drain.cut(9, &mut |batch| self.batches.push(batch));
        round.bytes
    }

    fn mark_changes(&mut self, changes: Vec<KindChange>) {
        let batches = &mut self.batches;
        self.drain.mark_changes(&changes, &ClockMap::identity(), &mut |batch| batches.push(batch));
    }

    /// In batches in which the kind of an instant was off until then: is there an instant without a mark that the kind
    /// was turned on?
    pub fn check_marks(&self) {
        let mut on = false;
        for batch in self.files.iter().flatten() {
            let records: Vec<_> = RecordWalk::new(batch.records()).collect();
            on |= records
                .iter()
                .any(|record| Marker::parse(record.bytes()) == Some((Marker::KindOn, i32::from(INSTANT))));
            let has_instant = records.iter().any(|record| record.kind() == INSTANT);
            assert!(on || !has_instant, "an instant before the mark that its kind was turned on");
        }
    }

    fn visit(&mut self, last: bool) -> crate::drain::Round {
        self.drain.round(&ClockMap::identity(), 9, last, &mut |batch| self.batches.push(batch))
    }

    /// Ends the session: clears the mask and drains to the end.
    pub fn stop(&mut self) {
        self.model.switch.disarm(&self.model.mask);
        self.finish_session();
        self.model.stopped.store(1, Ordering::Release);
    }

    fn finish_session(&mut self) {
        drain::last_rounds(|| self.visit(true), || false);
        self.mark_changes(self.model.switch.take_changes());
        self.drain.cut(9, &mut |batch| self.batches.push(batch));
        self.files.push(std::mem::take(&mut self.batches));
        let counts = self.drain.counts();
        self.discarded += (counts.late_records + counts.stale_spans) as u32;
    }

    /// Looks for threads that are gone without having ended; returns how many it retired.
    pub fn retire_dead(&self) -> usize {
        self.drain.retire_dead(|id| self.model.gone.lock().is_ok_and(|gone| gone.contains(&id)))
    }

    /// Asks the questions. Every thread has ended and every session was stopped; one more was begun and stopped if
    /// threads made records while one was being stopped.
    pub fn check(&self) {
        let (mut seen, mut recorded, mut reported) = (Vec::new(), 0, 0);
        for (session, file) in (0..).zip(&self.files) {
            let mut owners = HashMap::new();
            let mut losses_so_far = 0;
            for record in file.iter().flat_map(|batch| RecordWalk::new(batch.records())) {
                if let Some((marker, value)) = Marker::parse(record.bytes()) {
                    if matches!(marker, Marker::KindOn | Marker::KindOff) {
                        continue;
                    }
                    assert_eq!(marker, Marker::DroppedRecords);
                    reported += value.unsigned_abs();
                    losses_so_far += value.unsigned_abs();
                } else if record.kind() == THREAD_INFO {
                    owners.insert(record.slot(), word(&record, 0));
                } else {
                    recorded += 1;
                    self.check_session(&record, session);
                    self.check_record(&record, &owners, losses_so_far, &mut seen);
                }
            }
        }
        let emitted = self.model.emitted.load(Ordering::Relaxed);
        let discarded = self.discarded;
        assert_eq!(
            emitted,
            recorded + reported + discarded,
            "{recorded} recorded, {reported} lost, {discarded} discarded"
        );
    }

    /// No instant of an earlier session, no span begun in one, and none as a parent.
    fn check_session(&self, record: &Record<'_>, session: u32) {
        let made = match record.span() {
            Some(span) => vec![Made::Span(span.span_id), Made::Span(span.parent_span_id)],
            None => vec![Made::Instant(word(record, 0))],
        };
        for what in made {
            let known = self.model.session_of(what);
            assert!(
                known.is_none_or(|known| known >= session),
                "{what:?} of session {known:?} in the file of {session}"
            );
        }
    }

    fn check_record(&self, record: &Record<'_>, owners: &HashMap<u8, u32>, losses: u32, seen: &mut Vec<u32>) {
        if record.kind() != INSTANT {
            return;
        }
        let (number, lost_before) = (word(record, 0), word(record, 1));
        assert!(!seen.contains(&number), "record {number} twice");
        let thread = number / 100;
        assert!(
            seen.iter().all(|other| other / 100 != thread || *other < number),
            "record {number} out of order"
        );
        assert_eq!(owners.get(&record.slot()), Some(&thread), "record {number} under another thread");
        let first_session = self.files.len() == 1;
        assert!(
            !first_session || lost_before <= losses,
            "record {number} follows {lost_before} losses, {losses} reported"
        );
        seen.push(number);
    }
}

fn word(record: &Record<'_>, index: usize) -> u32 {
    let payload = record.payload().unwrap_or_default();
    payload.get(index * 4..).and_then(<[u8]>::first_chunk).map_or(u32::MAX, |raw| u32::from_le_bytes(*raw))
}
