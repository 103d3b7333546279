//! Which events match a filter: a bit per record of the file.
//!
//! ```text
//!  groups of the index ── reduced filter ──┬─▶ bits of those that match
//!                                          └─▶ blocks of those that only their record decides ── filter ──▶ bits
//! ```
//!
//! The index knows thread, name and times of every event, which is all that most filters ask. Groups of which the head
//! says that nothing in them can match are not read. Blocks of the file are read for fields, ids and the like, and only
//! those with an event that the index leaves open. Self times and depths follow from the spans around, so that those
//! filters read the whole file in order.

use super::memory::Held;
use super::{Cancel, SessionError, Shared};
use crate::facts::{RecordFacts, TraceContext, has_system};
use crate::filter::Filter;
use crate::filter::SystemRef;
use crate::filter::partial::{Axis, Common, Fact, Reduced, When};
use crate::index::group::{Columns, Entry, GroupHead, GroupReader};
use crate::index::item::SPAN_NO_END;
use crate::index::lane::Lane;
use crate::index::names::FIRST_DYNAMIC;
use crate::index::row::Row;
use crate::index::{Index, LaneKind, TimeBase};
use crate::parallel::map_parts;
use crate::pipeline::{PipelineOptions, map_blocks};
use crate::placing::{self, Placer};
use crate::stats::copy_events;
use crate::survey::Thread;
use crate::ticks::Ticks;
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use typhon_trace::reader::{BlockBuffer, BlockFeed, BlockSummary, ReadOptions};
use typhon_trace::record::{Record, RecordWalk};
use typhon_trace::registry::{self, id};

/// A bit per record number of the file, and the memory that they take.
#[derive(Debug)]
pub(super) struct Bits {
    words: Vec<AtomicU64>,
    _held: Held,
}

impl Bits {
    #[inline]
    pub(super) fn get(&self, ordinal: u64) -> bool {
        let word = self.words.get((ordinal / 64) as usize);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (ordinal % 64) & 1 != 0)
    }

    #[inline]
    fn set(&self, ordinal: u64) {
        if let Some(word) = self.words.get((ordinal / 64) as usize) {
            word.fetch_or(1 << (ordinal % 64), Ordering::Relaxed);
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum()
    }
}

/// By lane and row (`None` for instants): which groups may hold matches.
type GroupsByRow = BTreeMap<(u32, Option<u16>), Vec<bool>>;

/// What was found of a filter.
pub(super) struct Found {
    pub(super) bits: Bits,
    /// For the rows of threads.
    groups: GroupsByRow,
    /// What is left of the filter when nothing is known but that something is a span, or an instant.
    pub(super) rest: OfUnknown,
}

impl Found {
    /// May a group of a row hold matches?
    pub(super) fn may_match(&self, at: &RowAt<'_>, group: usize) -> bool {
        match self.groups.get(&(at.lane, at.number)) {
            Some(groups) => groups[group],
            None => self.rest.may_match(at.number.is_some(), &at.row.groups[group]),
        }
    }
}

/// Tells how much work is done, as bytes of the file.
pub(super) struct Progress<F> {
    pub(super) tell: F,
    pub(super) done: u64,
    pub(super) total: u64,
    pub(super) file_bytes: u64,
}

/// What decoding a record costs, where reading an entry of the index costs 1.
const RECORD_COST: u64 = 8;

impl<F: FnMut(u64)> Progress<F> {
    pub(super) fn add(&mut self, work: u64) {
        self.done = self.total.min(self.done + work);
        let share = u128::from(self.file_bytes) * u128::from(self.done) / u128::from(self.total.max(1));
        (self.tell)(share as u64);
    }
}

/// The work of a filter in all: its matches, and the rows of these.
pub(super) fn work(index: &Index, filter: &Filter) -> u64 {
    let entries = |rows: Vec<RowAt<'_>>| rows.iter().map(|at| at.row.count()).sum::<u64>();
    let all = entries(all_rows(index));
    let looked_at = if filter.needs_places() { 0 } else { entries(rows_of_threads(index)) };
    let records = if filter.needs_records() { RECORD_COST * index.blocks.records } else { 0 };
    all + looked_at + records
}

/// A row of spans, or the instants of a lane.
pub(super) struct RowAt<'i> {
    pub(super) lane: u32,
    /// `None` for instants.
    pub(super) number: Option<u16>,
    pub(super) row: &'i Row,
}

fn rows_of((lane, of): (u32, &Lane)) -> impl Iterator<Item = RowAt<'_>> {
    let rows = (0u16..).zip(&of.rows).map(|(number, row)| (Some(number), row));
    rows.chain([(None, &of.instants)]).map(move |(number, row)| RowAt { lane, number, row })
}

pub(super) fn all_rows(index: &Index) -> Vec<RowAt<'_>> {
    (0..).zip(&index.lanes).flat_map(rows_of).collect()
}

fn rows_of_threads(index: &Index) -> Vec<RowAt<'_>> {
    index.threads().flat_map(rows_of).collect()
}

impl Shared {
    /// The events that match.
    pub(super) fn find<F: FnMut(u64)>(
        &self,
        index: &Index,
        filter: &Filter,
        cancel: &Cancel,
        progress: &mut Progress<F>,
    ) -> Result<Found, SessionError> {
        let matcher = self.matcher(index, filter);
        let mut found = self.nothing_found(&matcher)?;
        if filter.needs_places() {
            self.match_placed(&matcher, &found.bits, cancel, progress)?;
        } else {
            let open = Open::new(index);
            found.groups = self.match_entries(&matcher, &found, &open, cancel, progress)?;
            self.match_blocks(&matcher, &open, &found.bits, cancel, progress)?;
        }
        // Afterwards: it may have been cut while it was read.
        self.check_length()?;
        Ok(found)
    }

    pub(super) fn matcher<'i>(&'i self, index: &'i Index, filter: &'i Filter) -> Matcher<'i> {
        let context = self.context(index);
        let axis = Axis { clock: context.clock, origin_ticks: context.origin_ticks };
        let by_kind = std::array::from_fn(|kind| filter.of_kind(kind as u8));
        Matcher { index, filter, context, axis, by_kind, needs_survey: filter.needs_survey() }
    }

    /// What is found before anything was looked at.
    pub(super) fn nothing_found(&self, matcher: &Matcher<'_>) -> Result<Found, SessionError> {
        let bits = self.bits(matcher.index.blocks.records)?;
        let rest = OfUnknown::new(matcher.filter, matcher.axis, matcher.index.time);
        Ok(Found { bits, groups: BTreeMap::new(), rest })
    }

    /// Room for a bit per record. Older filters give way, the oldest first.
    fn bits(&self, records: u64) -> Result<Bits, SessionError> {
        let words = records.div_ceil(64) as usize;
        loop {
            if let Some(held) = self.memory.kept.try_take(words * size_of::<u64>()) {
                let words = std::iter::repeat_with(AtomicU64::default).take(words).collect();
                return Ok(Bits { words, _held: held });
            }
            if !self.filters().give_way() {
                return Err(SessionError::NoRoom);
            }
        }
    }

    /// Decides about the entries of threads; gives the groups that may hold matches.
    fn match_entries<F: FnMut(u64)>(
        &self,
        matcher: &Matcher<'_>,
        found: &Found,
        open: &Open<'_>,
        cancel: &Cancel,
        progress: &mut Progress<F>,
    ) -> Result<GroupsByRow, SessionError> {
        let parts = parts_of_threads(matcher.index);
        let decide = |decider: &mut Decider<'_>, part: &Part<'_>| {
            let mut may_match = Vec::with_capacity(part.groups.len());
            for head in part.groups {
                cancel.check()?;
                let is_worth_reading = found.rest.may_match(part.row.is_some(), head);
                may_match.push(is_worth_reading && decider.group(part, head, &found.bits, open, cancel)?);
            }
            Ok::<_, SessionError>(may_match)
        };
        let state = || Decider::new(matcher);
        let told = |part: &Part<'_>| progress.add(part.groups.iter().map(|head| u64::from(head.count)).sum());
        let results = map_parts(&parts, state, decide, told)?;
        let mut groups = GroupsByRow::new();
        for (part, result) in parts.iter().zip(results) {
            groups.entry((part.lane, part.row)).or_default().extend(result);
        }
        Ok(groups)
    }

    /// Decides about the records of blocks that the index leaves open.
    fn match_blocks<F: FnMut(u64)>(
        &self,
        matcher: &Matcher<'_>,
        open: &Open<'_>,
        bits: &Bits,
        cancel: &Cancel,
        progress: &mut Progress<F>,
    ) -> Result<(), SessionError> {
        let blocks = open.blocks();
        let index = matcher.index;
        let parts: Vec<&[u32]> = blocks.chunks(BLOCKS_OF_PART).collect();
        let decide = |buffer: &mut BlockBuffer, part: &&[u32]| {
            for block in *part {
                cancel.check()?;
                self.match_block(matcher, *block, buffer, bits)?;
            }
            Ok::<_, SessionError>(())
        };
        let records = |part: &&[u32]| part.iter().map(|block| index.blocks.records_of(*block)).sum::<u64>();
        map_parts(&parts, BlockBuffer::new, decide, |part| progress.add(RECORD_COST * records(part)))?;
        Ok(())
    }

    /// Decides about the records of a block.
    pub(super) fn match_block(
        &self,
        matcher: &Matcher<'_>,
        block: u32,
        buffer: &mut BlockBuffer,
        bits: &Bits,
    ) -> Result<(), SessionError> {
        let index = matcher.index;
        let entry = index.blocks.entry(block).ok_or_else(|| SessionError::unknown("such block"))?;
        self.trace.read_known_block(&index.span_names, &entry, buffer).map_err(|error| {
            // That it was cut says more.
            self.check_length().err().unwrap_or_else(|| error.into())
        })?;
        let Some(first) = buffer.summary().and_then(|summary| first_event(index, summary)) else {
            return Ok(());
        };
        for (record, ordinal) in buffer.events().zip(first..) {
            let of_kind = matcher.by_kind[usize::from(record.kind())];
            if of_kind.unwrap_or_else(|| matcher.passes(&record, None)) {
                bits.set(ordinal);
            }
        }
        Ok(())
    }

    /// Records are matched in order, once their spans have their places.
    fn match_placed<F: FnMut(u64)>(
        &self,
        matcher: &Matcher<'_>,
        bits: &Bits,
        cancel: &Cancel,
        progress: &mut Progress<F>,
    ) -> Result<(), SessionError> {
        let mut placer = Placer::<(u64, Vec<u8>)>::default();
        let feed = BlockFeed::from_file(self.trace.data(), ReadOptions::default())?;
        let outcome = map_blocks(
            feed,
            PipelineOptions::default(),
            || copy_events,
            |block| {
                if block.delivered
                    && let Some(first) = first_event(matcher.index, &block.summary)
                {
                    placer
                        .push((first, block.payload), |(_, bytes), see| RecordWalk::new(bytes).for_each(see));
                    matcher.match_placed(&mut placer, bits);
                }
                progress.add(RECORD_COST * u64::from(block.summary.walked_records));
                let is_cancelled = cancel.is_cancelled();
                Ok::<_, SessionError>(if is_cancelled {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                })
            },
        )?;
        placer.finish();
        matcher.match_placed(&mut placer, bits);
        if outcome.is_some() { Ok(()) } else { Err(SessionError::Cancelled) }
    }
}

/// Record number of a block's first event. Of a file that has grown only what was indexed counts.
fn first_event(index: &Index, summary: &BlockSummary) -> Option<u64> {
    let place = index.blocks.blocks.get(summary.entry.index as usize)?;
    Some(place.first_record + u64::from(summary.leading_markers()))
}

/// A filter about which nothing is known but times.
pub(super) struct OfUnknown {
    spans: Reduced,
    instants: Reduced,
    time: TimeBase,
}

impl OfUnknown {
    fn new(filter: &Filter, axis: Axis, time: TimeBase) -> Self {
        let of = |is_span| filter.reduce(&Common::open(is_span), axis);
        Self { spans: of(true), instants: of(false), time }
    }

    pub(super) fn may_match(&self, is_span: bool, head: &GroupHead) -> bool {
        let reduced = if is_span { &self.spans } else { &self.instants };
        // A span without an end may have any negative duration.
        let length = Some((i64::MIN, self.most_ticks(head)));
        let when = When { start: (head.first_start, head.last_start), length };
        reduced.decide(when, &mut || None) != Some(false)
    }

    /// No span of a group has more ticks than this. Those that end after all time are shorter on the axis than they are,
    /// so that the longest one there says nothing.
    fn most_ticks(&self, head: &GroupHead) -> i64 {
        match self.time.is_last(head.reach) {
            true => i64::MAX,
            false => self.time.most_ticks(head.longest_ns),
        }
    }
}

/// Groups of a row of a thread that one thread of ours decides about.
pub(super) struct Part<'i> {
    pub(super) lane: u32,
    /// `None` for instants.
    pub(super) row: Option<u16>,
    thread: &'i Thread,
    pub(super) groups: &'i [GroupHead],
}

/// Groups of a part: entries of about a millisecond.
const GROUPS_OF_PART: usize = 32;
const BLOCKS_OF_PART: usize = 16;

pub(super) fn parts_of_threads(index: &Index) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for RowAt { lane, number: row, row: of } in rows_of_threads(index) {
        let LaneKind::Thread { thread } = index.lanes[lane as usize].kind else { continue };
        let Some(thread) = index.survey.threads.all().get(thread) else { continue };
        parts.extend(of.groups.chunks(GROUPS_OF_PART).map(|groups| Part { lane, row, thread, groups }));
    }
    parts
}

/// Blocks with events that only their records decide.
pub(super) struct Open<'i> {
    index: &'i Index,
    blocks: Vec<AtomicBool>,
}

impl<'i> Open<'i> {
    pub(super) fn new(index: &'i Index) -> Self {
        let blocks = index.blocks.blocks.iter().map(|_| AtomicBool::new(false)).collect();
        Self { index, blocks }
    }

    /// Marks the block of a record; gives the record numbers of that block.
    fn mark(&self, ordinal: u64) -> Range<u64> {
        let Some(block) = self.index.blocks.event(ordinal).map(|event| event.block) else { return 0..0 };
        self.blocks[block as usize].store(true, Ordering::Relaxed);
        let first = self.index.blocks.blocks[block as usize].first_record;
        first..first + self.index.blocks.records_of(block)
    }

    pub(super) fn blocks(&self) -> Vec<u32> {
        (0..)
            .zip(&self.blocks)
            .filter(|(_, open)| open.load(Ordering::Relaxed))
            .map(|(block, _)| block)
            .collect()
    }
}

/// Comparisons of reduced filters that a thread of ours keeps, about 100 bytes each. A recording may have 65,535 names and a
/// filter a thousand comparisons.
const REDUCED_TERMS_MAX: usize = 1 << 17;

/// Decides about entries, with what is left of the filter for each name of a thread.
pub(super) struct Decider<'m> {
    matcher: &'m Matcher<'m>,
    reader: GroupReader,
    columns: Columns,
    /// The lane, and whether of spans, that the next two are for.
    of: Option<(u32, bool)>,
    /// By name: place in `reduced`, from 1 on; 0 for what was not met yet.
    by_name: Vec<u32>,
    reduced: Vec<Reduced>,
    /// How many of those are kept.
    reduced_max: usize,
    ticks: TickCursor<'m>,
    /// Records of the block that was marked last.
    marked: Range<u64>,
}

impl<'m> Decider<'m> {
    pub(super) fn new(matcher: &'m Matcher<'m>) -> Self {
        Self {
            matcher,
            reader: GroupReader::default(),
            columns: if matcher.filter.needs_times() { Columns::All } else { Columns::WithoutTimes },
            of: None,
            // Names beyond the limit share the last place.
            by_name: vec![0; matcher.index.names.list().len() + 1],
            reduced: Vec::new(),
            reduced_max: REDUCED_TERMS_MAX / matcher.filter.terms(),
            ticks: TickCursor::new(&matcher.index.survey.ticks),
            marked: 0..0,
        }
    }

    /// Sets the bits of a group's matches and marks the blocks of those that are open; false when there are neither.
    pub(super) fn group(
        &mut self,
        part: &Part<'_>,
        head: &GroupHead,
        bits: &Bits,
        open: &Open<'_>,
        cancel: &Cancel,
    ) -> Result<bool, SessionError> {
        let of = (part.lane, part.row.is_some());
        if self.of.replace(of) != Some(of) {
            self.by_name.fill(0);
            self.reduced.clear();
        }
        let Self { matcher, reader, columns, by_name, reduced, reduced_max, ticks, marked, .. } = self;
        let mut may_match = false;
        for entry in reader.read_columns(&matcher.index.store, head, *columns)? {
            let name = usize::from(entry.name).min(by_name.len() - 1);
            if by_name[name] == 0 {
                // A large filter takes a while for each of many names.
                cancel.check()?;
                if reduced.len() == *reduced_max {
                    by_name.fill(0);
                    reduced.clear();
                }
                let common = matcher.common(part, entry.name);
                reduced.push(matcher.filter.reduce(&common, matcher.axis));
                by_name[name] = reduced.len() as u32;
            }
            let reduced = &reduced[by_name[name] as usize - 1];
            // So it is for most names.
            if matches!(reduced, Reduced::Decided(false)) {
                continue;
            }
            match reduced.decide(when(entry), &mut || Some(ticks.at(entry.start))) {
                Some(false) => continue,
                Some(true) => bits.set(entry.reference),
                None if marked.contains(&entry.reference) => {}
                None => *marked = open.mark(entry.reference),
            }
            may_match = true;
        }
        Ok(may_match)
    }
}

fn when(entry: &Entry) -> When {
    let length = (entry.flags & SPAN_NO_END == 0).then_some((entry.length, entry.length));
    When { start: (entry.start, entry.start), length }
}

/// Numbers of ticks for moments that are mostly near each other.
struct TickCursor<'i> {
    ticks: &'i Ticks,
    from: i64,
    until: i64,
    number: u64,
}

impl<'i> TickCursor<'i> {
    fn new(ticks: &'i Ticks) -> Self {
        Self { ticks, from: i64::MAX, until: i64::MIN, number: 0 }
    }

    #[inline]
    fn at(&mut self, start: i64) -> u64 {
        if start < self.from || start >= self.until {
            let ordinal = self.ticks.ordinal(start) as usize;
            let starts = self.ticks.starts();
            self.from = ordinal.checked_sub(1).map_or(i64::MIN, |at| starts[at]);
            self.until = starts.get(ordinal).copied().unwrap_or(i64::MAX);
            self.number = shown(self.ticks, start);
        }
        self.number
    }
}

fn shown(ticks: &Ticks, start: i64) -> u64 {
    u64::try_from(ticks.tick_at(start)).unwrap_or(0)
}

/// Decides about single records.
pub(super) struct Matcher<'i> {
    pub(super) index: &'i Index,
    filter: &'i Filter,
    context: TraceContext<'i>,
    axis: Axis,
    /// By kind: what that decides alone. Most records of a block are of kinds that a filter of fields cannot mean.
    by_kind: [Option<bool>; 256],
    needs_survey: bool,
}

impl Matcher<'_> {
    fn passes(&self, record: &Record<'_>, place: Option<placing::Place>) -> bool {
        let (at, survey) = (record.timestamp(), &self.index.survey);
        let (thread, tick) = match self.needs_survey {
            true => (survey.threads.at(record.slot(), at), shown(&survey.ticks, at)),
            false => (None, 0),
        };
        self.filter.matches(&RecordFacts {
            record: *record,
            context: &self.context,
            thread: thread.and_then(|thread| thread.name.as_deref()),
            tick,
            place,
        })
    }

    fn match_placed(&self, placer: &mut Placer<(u64, Vec<u8>)>, bits: &Bits) {
        while let Some(((first, bytes), places)) = placer.pop() {
            let mut places = places.into_iter();
            for (record, ordinal) in RecordWalk::new(&bytes).zip(first..) {
                let place = record.span().and_then(|_| places.next());
                if self.passes(&record, place) {
                    bits.set(ordinal);
                }
            }
        }
    }

    /// What is known of the events of a thread that have a name of the index.
    fn common<'c>(&'c self, part: &Part<'c>, name: u16) -> Common<'c> {
        let of_thread = Common {
            slot: Fact::Known(part.thread.slot),
            thread: Fact::Known(part.thread.name.as_deref()),
            ..Common::open(part.row.is_some())
        };
        // Names beyond the limit may be of any kind.
        let Some(of) = self.index.names.get(name) else { return of_thread };
        let is_chunk = of.kind == id::SCHEDULER_CHUNK && of_thread.is_span;
        let system = match of.kind {
            _ if is_chunk => Fact::Known(
                of.system.map(|index| SystemRef { index, name: self.context.tables.system_name(index) }),
            ),
            kind if has_system(kind) => Fact::Open,
            _ => Fact::Known(None),
        };
        let of_kind = registry::kind(of.kind).map(|kind| kind.name);
        let text = match (of.kind, system) {
            (id::NAMED_SPAN, _) if name >= FIRST_DYNAMIC => Fact::Known(Some(of.text.as_str())),
            // Marks have their names in a table that may come later; a text may be cut off.
            (id::NAMED_SPAN | id::INSTANT, _) | (id::SCHEDULER_CHUNK, Fact::Open) => Fact::Open,
            (id::SCHEDULER_CHUNK, Fact::Known(system)) => {
                Fact::Known(system.and_then(|system| system.name).or(of_kind))
            }
            _ => Fact::Known(of_kind),
        };
        Common { kind: Fact::Known(of.kind), name: text, system, ..of_thread }
    }
}
