//! From records to slices, instants, counters and arrows.

use super::chrome::FlowEnd;
use super::event::{Annotation, EventText, annotations};
use super::pages::{Handle, Pages};
use crate::facts::{RecordFacts, TimeWindow, TraceContext};
use crate::filter::Filter;
use crate::nesting::{LaneNesting, Nesting};
use crate::pipeline::{PipelineOptions, map_blocks};
use crate::placing::{self, PlaceFaults, Placer};
use crate::stats::copy_events;
use crate::survey::Survey;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;
use std::sync::LazyLock;
use typhon_trace::TraceError;
use typhon_trace::decode::{self, Value};
use typhon_trace::reader::{BlockFeed, Outcome, Source};
use typhon_trace::record::{Record, RecordWalk};
use typhon_trace::registry::{self, GaugeValueKind, id};

/// Parents on other threads that are remembered for arrows; beyond, arrows are left out and counted.
const MAX_LINKS: usize = 1 << 20;

/// What keeps memory and the written timeline small, whatever the trace holds.
///
/// When too much waits for nesting, the oldest spans are written, and spans that come too late after that go to overlap
/// rows. So do spans that lie too deep. Spans for which there is no row left are not drawn but counted
/// ([`Exported::undrawn`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvertLimits {
    /// Spans that may wait, over all lanes.
    pub pending_spans: usize,
    /// Bytes of the decoded blocks they lie in.
    pub pending_bytes: usize,
    /// Spans inside each other that a lane shows.
    pub depth: u32,
    /// Overlap rows, over all lanes.
    pub overlap_rows: usize,
}

impl Default for ConvertLimits {
    /// Viewers draw no more than a few hundred levels or thousand rows: what lies beyond these limits is of no use there.
    fn default() -> Self {
        Self { pending_spans: 1 << 18, pending_bytes: 64 << 20, depth: 128, overlap_rows: 1 << 14 }
    }
}

/// What to convert.
#[derive(Debug, Clone, Copy)]
pub struct ConvertQuery<'a> {
    /// Records to convert; all when absent.
    pub filter: Option<&'a Filter>,
    /// Time of the records to convert. All when absent.
    pub window: Option<&'a TimeWindow>,
    /// Names and times.
    pub context: &'a TraceContext<'a>,
    /// Ticks and threads.
    pub survey: &'a Survey,
    /// Spans with children on other threads.
    pub links: &'a Links,
    /// How much may wait in memory.
    pub limits: ConvertLimits,
}

/// Ids of spans that other threads name as parent: the starting points of arrows.
#[derive(Debug, Clone, Default)]
pub struct Links {
    parents: HashSet<u64>,
    left_out: u64,
}

impl Links {
    /// Looks at one record of the survey pass. A span id holds the slot that opened it in its highest byte
    /// (brief 01 B-13), which tells a parent of another thread without knowing the parent.
    #[inline]
    pub fn observe(&mut self, record: &Record<'_>) {
        let Some(span) = record.span() else { return };
        let parent = span.parent_span_id;
        if parent == 0 || (parent >> 56) as u8 == record.slot() || self.parents.contains(&parent) {
            return;
        }
        if self.parents.len() < MAX_LINKS {
            self.parents.insert(parent);
        } else {
            self.left_out += 1;
        }
    }

    /// Adds what `other` found.
    pub fn merge(&mut self, other: Self) {
        self.left_out += other.left_out;
        for parent in other.parents {
            if self.parents.len() < MAX_LINKS {
                self.parents.insert(parent);
            } else {
                self.left_out += 1;
            }
        }
    }

    /// Arrows that are not drawn because there are too many.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// Where an event is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Lane of a thread: its index in the survey.
    Thread(usize),
    /// Row below a lane for slices that overlap without nesting, from 0.
    Overlap {
        /// The lane.
        thread: usize,
        /// The row.
        row: usize,
    },
    /// Collections and suspensions of the managed runtime.
    Gc,
    /// Row for suspensions that overlap, from 0.
    GcOverlap(usize),
    /// Ticks.
    Ticks,
}

/// A record on its way out.
#[derive(Debug, Clone, Copy)]
pub struct SourceEvent<'a> {
    record: Record<'a>,
    context: &'a TraceContext<'a>,
    links: &'a Links,
}

impl SourceEvent<'_> {
    /// Hands name, category, fields and arrows to `write`.
    pub fn with_text<R>(&self, write: impl FnOnce(EventText<'_>) -> R) -> R {
        let name = self.context.name(&self.record);
        let unknown = name.is_none().then(|| format!("kind {}", self.record.kind()));
        let mut flows = [0; 2];
        let flows = self.flows(&mut flows);
        let annotations = annotations(&self.record);
        write(EventText {
            name: name.as_deref().or(unknown.as_deref()).unwrap_or_default(),
            category: registry::kind(self.record.kind()).map_or("Unknown", |kind| kind.family),
            annotations: &annotations,
            flows,
        })
    }

    /// Arrows touching the record: from a kick-off to its completion, from a parent to children of other threads.
    fn flows<'b>(&self, buffer: &'b mut [u64; 2]) -> &'b [u64] {
        let Some(span) = self.record.span() else { return &[] };
        let kind = registry::kind(self.record.kind());
        let is_completion = kind.is_some_and(|kind| kind.correlates_span_id.is_some());
        let mut count = 0;
        if is_completion || is_kick_off(self.record.kind()) || self.links.parents.contains(&span.span_id) {
            buffer[count] = span.span_id;
            count += 1;
        }
        if self.links.parents.contains(&span.parent_span_id)
            && (span.parent_span_id >> 56) as u8 != self.record.slot()
        {
            buffer[count] = span.parent_span_id;
            count += 1;
        }
        &buffer[..count]
    }

    /// Which end of arrow `flow` this is. A parent can have many children, so they are steps.
    pub(super) fn flow_end(&self, flow: u64) -> FlowEnd {
        let kind = registry::kind(self.record.kind());
        if self.record.span().is_some_and(|span| span.span_id != flow) {
            FlowEnd::Step
        } else if kind.is_some_and(|kind| kind.correlates_span_id.is_some()) {
            FlowEnd::Finish
        } else {
            FlowEnd::Start
        }
    }
}

/// Does a completion of another kind repeat the span id of this kind?
fn is_kick_off(kind: u8) -> bool {
    static KICK_OFFS: LazyLock<[bool; 256]> = LazyLock::new(|| {
        let mut kick_offs = [false; 256];
        let ids = registry::KINDS.iter().filter_map(|kind| kind.correlates_span_id);
        ids.for_each(|id| kick_offs[usize::from(id)] = true);
        kick_offs
    });
    KICK_OFFS[usize::from(kind)]
}

/// Receives a trace. Times are nanoseconds of the trace clock. Slices of a place begin and end in nesting order.
pub trait EventSink {
    /// A place is used for the first time.
    fn place(&mut self, place: Place, label: &str) -> io::Result<()>;
    /// A slice begins.
    fn begin(&mut self, place: Place, start_ns: i64, event: &SourceEvent<'_>) -> io::Result<()>;
    /// The innermost slice of the place ends; it began at `start_ns`.
    fn end(&mut self, place: Place, start_ns: i64, end_ns: i64, event: &SourceEvent<'_>) -> io::Result<()>;
    /// A point in time.
    fn instant(&mut self, place: Place, at_ns: i64, event: &SourceEvent<'_>) -> io::Result<()>;
    /// A gauge value. `name` is unique for the gauge.
    fn counter(
        &mut self,
        name: &str,
        kind: GaugeValueKind,
        at_ns: i64,
        value: Annotation<'_>,
    ) -> io::Result<()>;
    /// A whole tick.
    fn tick(&mut self, start_ns: i64, end_ns: i64, number: i64) -> io::Result<()>;
}

/// How much was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exported {
    /// Records read, before filter and range.
    pub records: u64,
    /// Slices made of spans.
    pub slices: u64,
    /// Instants.
    pub instants: u64,
    /// Counter values made of gauges.
    pub counters: u64,
    /// Slices made of ticks.
    pub ticks: u64,
    /// Spans left out because all [`ConvertLimits::overlap_rows`] are taken where they lie.
    pub undrawn: u64,
}

/// What ended a conversion early.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The source cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The destination cannot be written.
    #[error("write failed")]
    Write(#[from] io::Error),
}

/// The outcome of [`convert`].
#[derive(Debug)]
pub struct Conversion {
    /// What was written.
    pub exported: Exported,
    /// What reading found.
    pub outcome: Outcome,
    /// Places that may be off, when the filter asks for places.
    pub place_faults: PlaceFaults,
}

/// Converts a trace. `None` when `progress`, which gets the file offset reached, broke off.
pub fn convert<S: Source + Send>(
    feed: BlockFeed<S>,
    options: PipelineOptions,
    query: ConvertQuery<'_>,
    sink: &mut impl EventSink,
    mut progress: impl FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<Conversion>, ConvertError> {
    let mut converter = Converter::new(query, sink);
    let mut placer = query.filter.filter(|filter| filter.needs_places()).map(|_| Placer::default());
    let outcome = map_blocks(
        feed,
        options,
        || copy_events,
        |block| {
            let end = block.summary.entry.end();
            match &mut placer {
                _ if !block.delivered => {}
                None => converter.block(block.payload, &[])?,
                Some(placer) => {
                    placer.push(block.payload, |bytes, see| RecordWalk::new(bytes).for_each(see));
                    converter.placed_blocks(placer)?;
                }
            }
            Ok::<_, ConvertError>(progress(end))
        },
    )?;
    let Some(outcome) = outcome else { return Ok(None) };
    if let Some(placer) = &mut placer {
        placer.finish();
        converter.placed_blocks(placer)?;
    }
    let place_faults = placer.as_ref().map(Placer::faults).unwrap_or_default();
    let exported = converter.finish()?;
    Ok(Some(Conversion { exported, outcome, place_faults }))
}

struct Converter<'a, K> {
    query: ConvertQuery<'a>,
    out: Output<'a, K>,
    lanes: BTreeMap<LaneKey, LaneNesting<Handle>>,
    pages: Pages,
    pending: usize,
}

/// Spans that nest together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LaneKey {
    Slot(u8),
    Gc,
}

impl<'a, K: EventSink> Converter<'a, K> {
    fn new(query: ConvertQuery<'a>, sink: &'a mut K) -> Self {
        let out = Output {
            query,
            sink,
            places: HashSet::new(),
            overlaps: HashMap::new(),
            overlap_rows: 0,
            exported: Exported::default(),
        };
        Self { query, out, lanes: BTreeMap::new(), pages: Pages::default(), pending: 0 }
    }

    fn placed_blocks(&mut self, placer: &mut Placer<Vec<u8>>) -> io::Result<()> {
        while let Some((bytes, places)) = placer.pop() {
            self.block(bytes, &places)?;
        }
        Ok(())
    }

    /// Takes a block; `places` are those of its spans, when the filter asks for them.
    fn block(&mut self, bytes: Vec<u8>, places: &[placing::Place]) -> io::Result<()> {
        let mut places = places.iter().copied();
        let page = self.pages.reserve();
        let (mut offset, mut waiting) = (0, 0);
        while let Ok(record) = Record::parse(&bytes[offset..]) {
            self.out.exported.records += 1;
            let at = offset as u32;
            offset += record.size();
            let thread = self.query.survey.threads.index_at(record.slot(), record.timestamp()).unwrap_or(0);
            let span = record.span();
            let place = span.and_then(|_| places.next());
            if !self.query.includes(&record, thread, place) {
                continue;
            }
            let Some(span) = span else {
                self.out.instant(&record, thread)?;
                continue;
            };
            if registry::kind(record.kind()).is_some_and(|kind| kind.correlates_span_id.is_some()) {
                self.out.overlapping(&record, thread)?;
                continue;
            }
            let key =
                if record.kind() == id::GC_SUSPENSION { LaneKey::Gc } else { LaneKey::Slot(record.slot()) };
            let handle = Handle { page, offset: at, thread: thread as u32 };
            let lane = self.lanes.entry(key).or_default();
            lane.push(record.timestamp(), span.duration, span.span_id, handle);
            waiting += 1;
        }
        self.pending += waiting as usize;
        self.pages.fill(page, bytes, waiting);
        let limits = self.query.limits;
        while (self.pending > limits.pending_spans || self.pages.bytes() > limits.pending_bytes)
            && self.settle_largest()?
        {}
        Ok(())
    }

    /// Writes the older spans of the lane with the most; `false` when none waits.
    fn settle_largest(&mut self) -> io::Result<bool> {
        let Self { out, lanes, pages, pending, .. } = self;
        let Some(lane) = lanes.values_mut().max_by_key(|lane| lane.pending()) else { return Ok(false) };
        let before = lane.pending();
        let mut written = Ok(());
        lane.settle_older(|step| out.settled(pages, &step, &mut written));
        if lane.pending() == before {
            // A single span is no older than any other, but the block it lies in must go.
            lane.settle_all(|step| out.settled(pages, &step, &mut written));
        }
        *pending -= before - lane.pending();
        written.map(|()| before > 0)
    }

    fn finish(self) -> io::Result<Exported> {
        let Self { mut out, lanes, mut pages, .. } = self;
        let mut written = Ok(());
        for mut lane in lanes.into_values() {
            lane.settle_all(|step| out.settled(&mut pages, &step, &mut written));
        }
        written?;
        out.ticks()?;
        Ok(out.exported)
    }
}

impl<'a> ConvertQuery<'a> {
    fn event<'r>(&self, record: &Record<'r>) -> SourceEvent<'r>
    where
        'a: 'r,
    {
        SourceEvent { record: *record, context: self.context, links: self.links }
    }

    fn ns(&self, ticks: i64) -> i64 {
        self.context.clock.to_ns(ticks)
    }

    fn includes(&self, record: &Record<'_>, thread: usize, place: Option<placing::Place>) -> bool {
        if self.window.is_some_and(|window| !window.includes(record)) {
            return false;
        }
        let Some(filter) = self.filter else { return true };
        let thread = self.survey.threads.all().get(thread);
        filter.matches(&RecordFacts {
            record: *record,
            context: self.context,
            thread: thread.and_then(|thread| thread.name.as_deref()),
            tick: u64::try_from(self.survey.ticks.tick_at(record.timestamp())).unwrap_or(0),
            place,
        })
    }
}

/// Chooses places and feeds the sink.
struct Output<'a, K> {
    query: ConvertQuery<'a>,
    sink: &'a mut K,
    places: HashSet<Place>,
    /// The overlap rows of each home place by the end of their last slice.
    overlaps: HashMap<Place, BTreeSet<(i64, usize)>>,
    /// Their number over all places.
    overlap_rows: usize,
    exported: Exported,
}

impl<K: EventSink> Output<'_, K> {
    /// Writes a step of nesting unless an earlier one failed, and lets go of spans that have been written.
    fn settled(&mut self, pages: &mut Pages, step: &Nesting<Handle>, written: &mut io::Result<()>) {
        let (Nesting::Begin { span, .. } | Nesting::End { span, .. } | Nesting::Overflow { span, .. }) = step;
        let handle = span.item;
        if let (Ok(()), Some(record)) = (&written, pages.record(handle)) {
            *written = self.step(step, &record, handle.thread as usize);
        }
        if !matches!(step, Nesting::Begin { .. }) {
            pages.release(handle.page);
        }
    }

    fn step(&mut self, step: &Nesting<Handle>, record: &Record<'_>, thread: usize) -> io::Result<()> {
        let home = home(record, thread);
        let nests = |depth: u32, is_late: bool| !is_late && depth < self.query.limits.depth;
        match *step {
            Nesting::Begin { depth, is_late, .. } if nests(depth, is_late) => {
                self.exported.slices += 1;
                self.use_place(home)?;
                let event = self.query.event(record);
                self.sink.begin(home, self.query.ns(record.timestamp()), &event)
            }
            Nesting::End { span, depth, is_late, .. } if nests(depth, is_late) => {
                let event = self.query.event(record);
                self.sink.end(home, self.query.ns(span.start), self.query.ns(span.end), &event)
            }
            Nesting::Begin { .. } | Nesting::Overflow { .. } => self.overlapping(record, thread),
            // It was written whole when it began.
            Nesting::End { .. } => Ok(()),
        }
    }

    /// A slice that nests nowhere: the overlap row that became free last before it takes it.
    fn overlapping(&mut self, record: &Record<'_>, thread: usize) -> io::Result<()> {
        let Some(span) = record.span() else { return Ok(()) };
        let home = home(record, thread);
        let start = record.timestamp();
        let end = start.saturating_add(span.duration.max(0));
        let rows = self.overlaps.entry(home).or_default();
        let row = match rows.range(..=(start, usize::MAX)).next_back().copied() {
            Some(free) => {
                rows.remove(&free);
                free.1
            }
            None if self.overlap_rows == self.query.limits.overlap_rows => {
                self.exported.undrawn += 1;
                return Ok(());
            }
            None => {
                self.overlap_rows += 1;
                rows.len()
            }
        };
        rows.insert((end, row));
        let place = if home == Place::Gc { Place::GcOverlap(row) } else { Place::Overlap { thread, row } };
        self.exported.slices += 1;
        self.use_place(place)?;
        let event = self.query.event(record);
        let (start_ns, end_ns) = (self.query.ns(start), self.query.ns(end));
        self.sink.begin(place, start_ns, &event)?;
        self.sink.end(place, start_ns, end_ns, &event)
    }

    fn instant(&mut self, record: &Record<'_>, thread: usize) -> io::Result<()> {
        let at_ns = self.query.ns(record.timestamp());
        if record.kind() == id::PER_TICK_SNAPSHOT {
            self.gauges(record, at_ns)?;
        }
        let place = home(record, thread);
        self.exported.instants += 1;
        self.use_place(place)?;
        let event = self.query.event(record);
        self.sink.instant(place, at_ns, &event)
    }

    fn gauges(&mut self, record: &Record<'_>, at_ns: i64) -> io::Result<()> {
        for field in decode::fields(record) {
            let Value::Gauges(gauges) = field.value else { continue };
            for gauge in gauges {
                let name = match registry::gauge(gauge.id) {
                    Some(info) => info.name.to_owned(),
                    None => format!("gauge 0x{:04x}", gauge.id),
                };
                let value = gauge.value.as_i128();
                let value = match u64::try_from(value) {
                    Ok(value) => Annotation::Uint(value),
                    Err(_) => Annotation::Int(value as i64),
                };
                self.exported.counters += 1;
                self.sink.counter(&name, gauge.value.kind(), at_ns, value)?;
            }
        }
        Ok(())
    }

    fn ticks(&mut self) -> io::Result<()> {
        let ticks = &self.query.survey.ticks;
        for (index, start) in ticks.starts().iter().enumerate() {
            let ordinal = index as u64 + 1;
            if self.query.window.is_some_and(|window| !window.extent().contains(start)) {
                continue;
            }
            let end = start.saturating_add(
                ticks
                    .duration(ordinal)
                    .unwrap_or_else(|| self.query.survey.last_ticks.saturating_sub(*start)),
            );
            self.use_place(Place::Ticks)?;
            self.exported.ticks += 1;
            self.sink.tick(self.query.ns(*start), self.query.ns(end), ticks.shown(ordinal))?;
        }
        Ok(())
    }

    fn use_place(&mut self, place: Place) -> io::Result<()> {
        if !self.places.insert(place) {
            return Ok(());
        }
        let thread = |thread: usize| match self.query.survey.threads.all().get(thread) {
            Some(thread) => thread.label().into_owned(),
            None => String::from("unknown thread"),
        };
        let label = match place {
            Place::Thread(index) => thread(index),
            Place::Overlap { thread: index, row } => {
                self.use_place(Place::Thread(index))?;
                format!("{} overlap {}", thread(index), row + 1)
            }
            Place::Gc => String::from("GC"),
            Place::GcOverlap(row) => {
                self.use_place(Place::Gc)?;
                format!("GC overlap {}", row + 1)
            }
            Place::Ticks => String::from("Ticks"),
        };
        self.sink.place(place, &label)
    }
}

/// The lane a record belongs to: collections belong to the process, not to the thread that reported them.
fn home(record: &Record<'_>, thread: usize) -> Place {
    match record.kind() {
        id::GC_START | id::GC_END | id::GC_SUSPENSION => Place::Gc,
        _ => Place::Thread(thread),
    }
}
