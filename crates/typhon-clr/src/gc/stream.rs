use thiserror::Error;

use super::{GcEvent, GcPayloadError, GcRecord, Tracker, TrackerCounters, is_gc_event};
use crate::nettrace::{Continuity, Decoder, EventHeader, Item, NettraceError, Reorder, TraceInfo};

/// From the bytes of a nettrace stream to the collector's events and records: decoder, reordering and pairing.
///
/// Feed it chunks of any size; results do not depend on how the stream is cut. Tell it when the source falls silent
/// ([`release_idle`](Self::release_idle)) and when it ends ([`finish`](Self::finish)).
#[derive(Debug, Default)]
pub struct GcStream {
    decoder: Decoder,
    reorder: Reorder,
    tracker: Option<Tracker>,
    newest: u64,
    counters: StreamCounters,
}

/// What a [`GcStream`] passes on.
#[derive(Debug, Clone, Copy)]
pub enum GcItem<'a> {
    /// The stream's clock and process; always first.
    Trace(TraceInfo),
    /// An event of the collector, in time order.
    Event(EventHeader, GcEvent<'a>),
    /// What the events add up to.
    Record(GcRecord),
}

/// Why decoding stopped. Everything passed on before stays valid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GcStreamError {
    /// The stream itself is malformed or unsupported.
    #[error(transparent)]
    Nettrace(#[from] NettraceError),
    /// An event of the collector is shorter than its layout.
    #[error("nettrace stream, event before byte {offset}: {error}")]
    Payload {
        /// Stream offset right after the event.
        offset: u64,
        /// What is wrong with it.
        error: GcPayloadError,
    },
}

/// What a [`GcStream`] has seen and missed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamCounters {
    /// Events of any kind.
    pub events: u64,
    /// Of these, the collector's.
    pub gc_events: u64,
    /// Events of any kind that the runtime dropped.
    pub lost_events: u64,
    /// Events released before it was certain that nothing older follows, because too many were held.
    pub order_overflows: u64,
    /// Events that came after a younger one of another thread had been passed on.
    pub late_events: u64,
}

impl GcStream {
    /// A stream at its beginning.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and passes on what became certain.
    ///
    /// # Errors
    /// The stream is malformed from here on. Held events have been passed on and the stream is finished.
    pub fn feed(&mut self, bytes: &[u8], out: &mut impl FnMut(GcItem<'_>)) -> Result<(), GcStreamError> {
        self.decoder.feed(bytes);
        let result = self.take_items(out);
        if result.is_err() {
            self.finish(out);
        }
        result
    }

    /// Passes on everything held: the source has been silent for longer than a runtime's flush period (100 ms).
    /// `now` is the target's clock, by which overdue collections are given up; `None` if it is not known.
    pub fn release_idle(&mut self, now: Option<u64>, out: &mut impl FnMut(GcItem<'_>)) {
        self.reorder.release_all();
        self.pass_on(out);
        if let (Some(now), Some(tracker)) = (now, &mut self.tracker) {
            tracker.advance_to(now, &mut |record| out(GcItem::Record(record)));
        }
    }

    /// The source has ended: passes on everything held and closes what is open.
    pub fn finish(&mut self, out: &mut impl FnMut(GcItem<'_>)) {
        self.reorder.release_all();
        self.pass_on(out);
        if let Some(tracker) = &mut self.tracker {
            tracker.finish(self.newest, &mut |record| out(GcItem::Record(record)));
        }
    }

    /// The stream's clock and process, once known.
    pub fn trace(&self) -> Option<&TraceInfo> {
        self.decoder.trace()
    }

    /// Time of the newest event that was decoded, ticks.
    pub fn newest_timestamp(&self) -> Option<u64> {
        (self.counters.events > 0).then_some(self.newest)
    }

    /// Whether the stream's own end mark has come.
    pub fn has_ended(&self) -> bool {
        self.decoder.has_ended()
    }

    /// Bytes that wait for the rest of their block; not 0 at the end of a stream that was cut inside one.
    pub fn pending_bytes(&self) -> usize {
        self.decoder.pending_bytes()
    }

    /// What has been seen and missed.
    pub fn counters(&self) -> StreamCounters {
        let (order_overflows, late_events) = (self.reorder.overflows(), self.reorder.late());
        StreamCounters { order_overflows, late_events, ..self.counters }
    }

    /// What pairing left out.
    pub fn tracker_counters(&self) -> TrackerCounters {
        self.tracker.as_ref().map(Tracker::counters).unwrap_or_default()
    }

    fn take_items(&mut self, out: &mut impl FnMut(GcItem<'_>)) -> Result<(), GcStreamError> {
        loop {
            let pointer_bytes = self.decoder.trace().map_or(8, |trace| trace.pointer_bytes);
            let Some(item) = self.decoder.next_item()? else { return Ok(()) };
            match item {
                Item::Trace(trace) => {
                    self.tracker = Some(Tracker::new(trace.ticks_per_second));
                    out(GcItem::Trace(trace));
                    continue;
                }
                Item::Event(event) => {
                    self.counters.events += 1;
                    self.newest = self.newest.max(event.header.timestamp);
                    let is_gc = is_gc_event(event.metadata);
                    let has_gap = event.header.continuity != Continuity::Contiguous;
                    if let Continuity::Lost(count) = event.header.continuity {
                        self.counters.lost_events += u64::from(count);
                    }
                    if is_gc {
                        self.counters.gc_events += 1;
                        // Checked on arrival, so that a malformed event stops the stream at its place.
                        if let Err(error) = GcEvent::decode(&event, pointer_bytes) {
                            return Err(GcStreamError::Payload { offset: self.decoder.position(), error });
                        }
                    }
                    // A gap matters to pairing whatever event it precedes.
                    if is_gc || has_gap {
                        self.reorder.push(&event);
                    } else if event.header.sorted {
                        self.reorder.release_before(event.header.timestamp);
                    }
                }
                Item::SequencePoint(point) => {
                    self.reorder.release_before(point.timestamp);
                    if !point.lost.is_empty() {
                        let (timestamp, lost) = (point.timestamp, point.lost.to_vec());
                        self.pass_on(out);
                        for loss in lost {
                            self.counters.lost_events += u64::from(loss.count);
                            if let Some(tracker) = &mut self.tracker {
                                let mut record = |record| out(GcItem::Record(record));
                                tracker.on_lost_events(
                                    loss.capture_thread,
                                    loss.count,
                                    timestamp,
                                    &mut record,
                                );
                            }
                        }
                    }
                }
                Item::End => self.reorder.release_all(),
            }
            self.pass_on(out);
        }
    }

    /// Hands released events to the caller and to the tracker.
    fn pass_on(&mut self, out: &mut impl FnMut(GcItem<'_>)) {
        let Some(tracker) = &mut self.tracker else { return };
        let pointer_bytes = self.decoder.trace().map_or(8, |trace| trace.pointer_bytes);
        while let Some(event) = self.reorder.pop() {
            match GcEvent::decode(&event, pointer_bytes) {
                Ok(Some(gc)) => {
                    out(GcItem::Event(event.header, gc));
                    tracker.on_event(&event.header, &gc, &mut |record| out(GcItem::Record(record)));
                }
                // Held for its gap only; its payload was checked on arrival.
                Ok(None) | Err(_) => {
                    tracker.on_gap(&event.header, &mut |record| out(GcItem::Record(record)));
                }
            }
        }
    }
}
