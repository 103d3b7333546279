//! What an event waited for, and what waited for it (brief 11 B-20).
//!
//! Links are looked for near the event and nowhere else: those of a system in its tick, those of a wait for the log among
//! the flushes around it. So an answer takes as long as what lies there, whatever the size of the file.

use super::event::{RelatedSpan, own_length};
use super::{Cancel, EventDetail, FieldValue, Place, Session, SessionError};
use crate::index::group::{Entry, GroupHead, GroupReader};
use crate::index::row::Row;
use crate::index::{EventId, Index, LaneKind, Strip};
use std::ops::Range;
use typhon_trace::decode;
use typhon_trace::record::Record;
use typhon_trace::registry::id;

/// Why two events are linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkReason {
    /// From this moment on the system could run: the time up to its start is that of the workers.
    Ready,
    /// The end of the first system's work made the second one ready, as kind 154 says.
    Dependency,
    /// The schedule has the first system run before the second, and of those it was the last to end in this tick. Stands
    /// in for [`LinkReason::Dependency`] where that was not recorded.
    Schedule,
    /// The flush made durable what the thread waited for.
    Durability,
    /// The operation that the first span started, and the second one says when it was complete: one operation, two records.
    Completion,
}

/// A link, from what comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Why.
    pub reason: LinkReason,
    /// What was waited for.
    pub from: RelatedSpan,
    /// What waited.
    pub to: RelatedSpan,
}

/// Links of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Links {
    /// In order of the beginning of what comes first.
    pub links: Vec<Link>,
    /// There was more to look at than is looked at; links may be missing.
    pub is_cut: bool,
}

/// Records of the tick's readiness that are read for an answer.
const MOST_RECORDS: usize = 4_096;
/// Flushes and waits that are read for an answer.
const MOST_FLUSHES: usize = 256;

/// Kinds that start an operation, each with the kind that says when it was complete.
const OPERATIONS: [[u8; 2]; 3] = [
    [id::PAGE_CACHE_DISK_READ, id::PAGE_CACHE_DISK_READ_COMPLETED],
    [id::PAGE_CACHE_DISK_WRITE, id::PAGE_CACHE_DISK_WRITE_COMPLETED],
    [id::PAGE_CACHE_FLUSH, id::PAGE_CACHE_FLUSH_COMPLETED],
];

impl Session {
    /// What the event waited for and what waited for it; nothing for kinds of which no such thing is known.
    ///
    /// # Errors
    /// When there is no such event, the index is not ready, the file cannot be read any more, or when cancelled.
    pub fn links(&self, event: EventId, cancel: &Cancel) -> Result<Links, SessionError> {
        let index = self.index()?;
        let detail = self.event(event)?;
        let mut near = Near { session: self, index: &index, reader: GroupReader::default(), cancel };
        let mut links = match (detail.kind, detail.system) {
            (id::SCHEDULER_CHUNK | id::SYSTEM_READY, Some(system)) => near.of_system(system, &detail)?,
            (id::WAL_WAIT, _) => near.of_wait(&detail)?,
            (id::WAL_FLUSH, _) => near.of_flush(&detail)?,
            (kind, _) if OPERATIONS.iter().any(|pair| pair.contains(&kind)) => near.of_operation(&detail)?,
            _ => Links::default(),
        };
        links.links.sort_by_key(|link| (link.from.start_ns, link.to.start_ns));
        Ok(links)
    }
}

/// A value of a record that is a whole number.
fn number(record: &Record<'_>, name: &str) -> Option<i128> {
    decode::fields(record).find(|field| field.name == name)?.value.as_i128()
}

fn field(detail: &EventDetail, name: &str) -> Option<i128> {
    match detail.fields.iter().find(|field| field.name == name)?.value {
        Some(FieldValue::Signed(value)) => Some(value.into()),
        Some(FieldValue::Unsigned(value)) => Some(value.into()),
        _ => None,
    }
}

/// A dependency that is told twice is one link.
fn add(systems: &mut Vec<u16>, system: u16) {
    if !systems.contains(&system) {
        systems.push(system);
    }
}

struct Near<'s> {
    session: &'s Session,
    index: &'s Index,
    reader: GroupReader,
    cancel: &'s Cancel,
}

/// An entry, and the event that it stands for.
type Found = (EventId, Entry);

/// What the records of a tick say about who makes whom ready.
#[derive(Default)]
struct Readiness {
    ready: Vec<Found>,
    /// Systems whose end made this one ready, and systems that this one's end made ready.
    before: Vec<u16>,
    after: Vec<u16>,
    is_cut: bool,
}

impl Near<'_> {
    /// Entries of a row that begin within a time and are of a name.
    fn entries(
        &mut self,
        row: &Row,
        within: &Range<i64>,
        is_wanted: impl Fn(u16) -> bool,
        found: &mut Vec<Found>,
    ) -> Result<(), SessionError> {
        let first = row.groups.partition_point(|head| head.last_start < within.start);
        for head in row.groups[first..].iter().take_while(|head| head.first_start < within.end) {
            self.of_group(head, within, &is_wanted, found)?;
        }
        Ok(())
    }

    fn of_group(
        &mut self,
        head: &GroupHead,
        within: &Range<i64>,
        is_wanted: impl Fn(u16) -> bool,
        found: &mut Vec<Found>,
    ) -> Result<(), SessionError> {
        self.cancel.check()?;
        for entry in self.reader.read(&self.index.store, head)? {
            if within.contains(&entry.start) && is_wanted(entry.name) {
                found.extend(self.index.blocks.event(entry.reference).map(|event| (event, *entry)));
            }
        }
        Ok(())
    }

    fn record<T>(&self, event: EventId, look: impl FnOnce(&Record<'_>) -> T) -> Result<T, SessionError> {
        self.session.shared.with_record(self.index, event, look)
    }

    /// An entry with its place in the lane of its thread.
    fn end(&self, (event, entry): &Found) -> Result<Option<RelatedSpan>, SessionError> {
        let place = self.record(*event, |record| self.index.locate(entry.reference, record))??;
        Ok(place.map(|place: Place| RelatedSpan {
            id: *event,
            place,
            name: entry.name,
            start_ns: self.index.time.ns(entry.start),
            duration_ns: self.index.time.ns_of_duration(own_length(entry)),
        }))
    }

    fn link(&self, reason: LinkReason, from: &Found, to: &Found) -> Result<Option<Link>, SessionError> {
        Ok(self.end(from)?.zip(self.end(to)?).map(|(from, to)| Link { reason, from, to }))
    }

    /// The tick of a moment, in clock ticks; before the first tick what lies before it.
    fn tick_of(&self, moment: i64) -> Range<i64> {
        let numbering = &self.index.survey.ticks;
        let (starts, ordinal) = (numbering.starts(), numbering.ordinal(moment) as usize);
        let from = ordinal.checked_sub(1).map_or(i64::MIN, |at| starts[at]);
        from..starts.get(ordinal).copied().unwrap_or(i64::MAX)
    }

    /// The chunks of a system in a tick.
    fn chunks(&mut self, system: u16, tick: &Range<i64>) -> Result<Vec<Found>, SessionError> {
        let index = self.index;
        let is_it = |kind: LaneKind| matches!(kind, LaneKind::System { index } if index == system);
        let mut chunks = Vec::new();
        for row in index.lanes.iter().filter(|lane| is_it(lane.kind)).flat_map(|lane| &lane.rows) {
            self.entries(row, tick, |_| true, &mut chunks)?;
        }
        Ok(chunks)
    }

    fn first_chunk(&mut self, system: u16, tick: &Range<i64>) -> Result<Option<Found>, SessionError> {
        Ok(self.chunks(system, tick)?.into_iter().min_by_key(|(_, entry)| entry.start))
    }

    fn last_chunk(&mut self, system: u16, tick: &Range<i64>) -> Result<Option<Found>, SessionError> {
        Ok(self.chunks(system, tick)?.into_iter().max_by_key(|(_, entry)| entry.end()))
    }

    fn readiness(&mut self, system: u16, tick: &Range<i64>) -> Result<Readiness, SessionError> {
        let index = self.index;
        let (ready, dependency) = (u16::from(id::SYSTEM_READY), u16::from(id::SCHEDULER_DEPENDENCY_READY));
        let mut records = Vec::new();
        for (_, lane) in index.threads() {
            self.entries(&lane.instants, tick, |name| name == ready || name == dependency, &mut records)?;
        }
        let mut of = Readiness { is_cut: records.len() > MOST_RECORDS, ..Readiness::default() };
        for (event, entry) in records.into_iter().take(MOST_RECORDS) {
            self.cancel.check()?;
            let systems = self.record(event, |record| {
                let system = |name| number(record, name).and_then(|value| u16::try_from(value).ok());
                (system("systemIdx"), system("fromSysIdx"), system("toSysIdx"))
            })?;
            match systems {
                (Some(of_record), _, _) if of_record == system => of.ready.push((event, entry)),
                (None, Some(from), Some(to)) if to == system => add(&mut of.before, from),
                (None, Some(from), Some(to)) if from == system => add(&mut of.after, to),
                _ => {}
            }
        }
        Ok(of)
    }

    /// Of some systems, the chunk that ended last in the tick before a moment.
    fn last_of(
        &mut self,
        systems: &[u16],
        tick: &Range<i64>,
        before: i64,
    ) -> Result<Option<Found>, SessionError> {
        let mut last: Option<Found> = None;
        for system in systems {
            let Some(chunk) = self.last_chunk(*system, tick)? else { continue };
            if chunk.1.end() <= before && last.is_none_or(|(_, known)| known.end() < chunk.1.end()) {
                last = Some(chunk);
            }
        }
        Ok(last)
    }

    fn of_system(&mut self, system: u16, detail: &EventDetail) -> Result<Links, SessionError> {
        let tick = self.tick_of(detail.start_ticks);
        let of = self.readiness(system, &tick)?;
        let mut links = Links { is_cut: of.is_cut, ..Links::default() };
        let Some(first) = self.first_chunk(system, &tick)? else { return Ok(links) };
        for ready in &of.ready {
            links.links.extend(self.link(LinkReason::Ready, ready, &first)?);
        }
        let session = self.session;
        let scheduled = session.trace().tables().systems.iter().find(|one| one.index == system);
        for before in &of.before {
            if let Some(chunk) = self.last_chunk(*before, &tick)? {
                links.links.extend(self.link(LinkReason::Dependency, &chunk, &first)?);
            }
        }
        if of.before.is_empty()
            && let Some(scheduled) = scheduled
            && let Some(chunk) = self.last_of(&scheduled.predecessors, &tick, first.1.start)?
        {
            links.links.extend(self.link(LinkReason::Schedule, &chunk, &first)?);
        }
        if let Some(last) = self.last_chunk(system, &tick)? {
            for after in &of.after {
                if let Some(chunk) = self.first_chunk(*after, &tick)? {
                    links.links.extend(self.link(LinkReason::Dependency, &last, &chunk)?);
                }
            }
        }
        Ok(links)
    }

    /// Spans of a kind on the log's strip that begin within a time, in order: at most so many of the last, or of the first.
    fn of_log(
        &mut self,
        kind: u8,
        within: &Range<i64>,
        most: usize,
        are_last: bool,
    ) -> Result<Vec<Found>, SessionError> {
        let index = self.index;
        let mut found = Vec::new();
        for lane in index.lanes.iter().filter(|lane| lane.kind == LaneKind::Strip(Strip::Wal)) {
            for row in &lane.rows {
                let from = row.groups.partition_point(|head| head.last_start < within.start);
                let to = row.groups.partition_point(|head| head.first_start < within.end).max(from);
                let mut groups: Vec<&GroupHead> = row.groups[from..to].iter().collect();
                if are_last {
                    groups.reverse();
                }
                let mut of_row = Vec::new();
                for head in groups {
                    self.of_group(head, within, |name| name == u16::from(kind), &mut of_row)?;
                    if of_row.len() >= most {
                        break;
                    }
                }
                found.append(&mut of_row);
            }
        }
        found.sort_by_key(|(_, entry)| entry.start);
        let cut =
            if are_last { found.len().saturating_sub(most)..found.len() } else { 0..found.len().min(most) };
        Ok(found.drain(cut).collect())
    }

    /// The first flush that made a position durable: flushes write positions in their order.
    fn of_wait(&mut self, detail: &EventDetail) -> Result<Links, SessionError> {
        let (Some(target), Some(own)) = (field(detail, "targetLsn"), self.own(detail)?) else {
            return Ok(Links::default());
        };
        let until = i64::MIN..own.1.start.saturating_add(own_length(&own.1)).saturating_add(1);
        let flushes = self.of_log(id::WAL_FLUSH, &until, MOST_FLUSHES, true)?;
        let mut links = Links { is_cut: flushes.len() == MOST_FLUSHES, ..Links::default() };
        let mut first = None;
        for flush in flushes.iter().rev() {
            let high = self.record(flush.0, |record| number(record, "highLsn"))?;
            if high.is_none_or(|high| high < target) {
                links.is_cut = false;
                break;
            }
            first = Some(flush);
        }
        if let Some(flush) = first {
            links.links.extend(self.link(LinkReason::Durability, flush, &own)?);
        }
        Ok(links)
    }

    /// The waits whose position is in this flush: they begin after the flush before it and before the next one ends.
    fn of_flush(&mut self, detail: &EventDetail) -> Result<Links, SessionError> {
        let (Some(high), Some(own)) = (field(detail, "highLsn"), self.own(detail)?) else {
            return Ok(Links::default());
        };
        let (before, after) = (i64::MIN..own.1.start, own.1.start.saturating_add(1)..i64::MAX);
        let previous = self.of_log(id::WAL_FLUSH, &before, 1, true)?.pop();
        let next = self.of_log(id::WAL_FLUSH, &after, 1, false)?.pop();
        let low = match previous {
            Some((event, _)) => self.record(event, |record| number(record, "highLsn"))?,
            None => None,
        };
        let from = previous.map_or(i64::MIN, |(_, entry)| entry.start);
        let until = next.map_or(i64::MAX, |(_, entry)| entry.end());
        let waits = self.of_log(id::WAL_WAIT, &(from..until), MOST_FLUSHES, false)?;
        let mut links = Links { is_cut: waits.len() == MOST_FLUSHES, ..Links::default() };
        for wait in &waits {
            let target = self.record(wait.0, |record| number(record, "targetLsn"))?;
            if target.is_some_and(|target| target <= high && low.is_none_or(|low| target > low)) {
                links.links.extend(self.link(LinkReason::Durability, &own, wait)?);
            }
        }
        Ok(links)
    }

    /// The other record of an asynchronous operation: it has the same start and span id, and may be of another thread.
    fn of_operation(&mut self, detail: &EventDetail) -> Result<Links, SessionError> {
        let index = self.index;
        let mut links = Links::default();
        let Some(own) = self.own(detail)? else { return Ok(links) };
        let Some(pair) = OPERATIONS.iter().find(|pair| pair.contains(&detail.kind)) else { return Ok(links) };
        let is_start = pair[0] == detail.kind;
        let other = if is_start { pair[1] } else { pair[0] };
        let moment = own.1.start..own.1.start.saturating_add(1);
        let mut found = Vec::new();
        for lane in index.lanes.iter().filter(|lane| lane.kind == LaneKind::Strip(Strip::DiskIo)) {
            for row in &lane.rows {
                self.entries(row, &moment, |name| name == u16::from(other), &mut found)?;
            }
        }
        for span in found {
            let span_id = self.record(span.0, |record| record.span().map(|span| span.span_id))?;
            if span_id.is_some() && span_id == detail.span_id {
                let (from, to) = if is_start { (&own, &span) } else { (&span, &own) };
                links.links.extend(self.link(LinkReason::Completion, from, to)?);
            }
        }
        Ok(links)
    }

    /// The entry of an event itself.
    fn own(&mut self, detail: &EventDetail) -> Result<Option<Found>, SessionError> {
        let Some(place) = detail.place else { return Ok(None) };
        let row = self.index.row(place.lane, place.row)?;
        let entry = row.entry(place.index, &self.index.store, &mut self.reader)?;
        Ok(entry.map(|entry| (detail.id, entry)))
    }
}
