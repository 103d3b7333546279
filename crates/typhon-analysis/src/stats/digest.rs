//! A block shrunk to what statistics need of it.

use super::{GroupBy, StatsQuery};
use crate::facts::{RecordFacts, system_index};
use crate::filter::Filter;
use crate::gc::GcCollector;
use crate::placing::Place;
use crate::schedule::ScheduleCollector;
use crate::survey::{SurveyCollector, bounded_text};
use std::collections::HashMap;
use typhon_trace::record::{Record, SpanHead};
use typhon_trace::registry::{self, id};

/// What the rows of a digest are about; resolved to text when the table is made.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum RowKey {
    Kind(u8),
    Family(&'static str),
    System(u16),
    /// Index into the survey's threads, or the slot when there is no survey.
    Thread(usize),
    Text(String),
    /// Texts beyond the limit of rows.
    OtherTexts,
}

/// One span of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpanEntry {
    pub(super) start: i64,
    pub(super) duration: i64,
    pub(super) span_id: u64,
    /// Index into [`BlockDigest::keys`]; `None` when the span does not enter a row.
    pub(super) key: Option<u32>,
    pub(super) slot: u8,
    /// Completions repeat the span of their kick-off and lie in no lane.
    pub(super) is_completion: bool,
}

/// A block shrunk to what statistics need of it.
#[derive(Debug, Default)]
pub struct BlockDigest {
    pub(super) keys: Vec<RowKey>,
    pub(super) spans: Vec<SpanEntry>,
    /// Instants and unknown records per key.
    pub(super) instants: Vec<u64>,
    pub(super) gc: GcCollector,
    pub(super) schedule: ScheduleCollector,
    /// Empty when there is a survey already.
    pub(super) survey: SurveyCollector,
}

impl StatsQuery<'_> {
    /// Shrinks the events of one block, with room for `spans` spans from the start. `places` are those of its spans, in
    /// order; none when no filter asks for them ([`Filter::needs_places`]).
    pub fn digest<'r>(
        &self,
        events: impl Iterator<Item = Record<'r>>,
        spans: usize,
        places: &[Place],
    ) -> BlockDigest {
        let mut places = places.iter().copied();
        let mut keys = Keys::default();
        let mut digest = BlockDigest { spans: Vec::with_capacity(spans), ..BlockDigest::default() };
        for record in events {
            let span = record.span();
            let place = span.and_then(|_| places.next());
            if self.survey.is_none() {
                digest.survey.observe_with(&record, span.as_ref());
            }
            let is_in_window = self.window.is_none_or(|window| window.includes(&record));
            // Collections and the schedule are about the process, so filters do not touch them.
            digest.gc.observe(&record, self.context.clock, self.context.own_dialect, is_in_window);
            if is_in_window {
                digest.schedule.observe(&record, self.context.clock);
            }
            let is_in = is_in_window && self.passes_filter(&record, place);
            let key = if is_in { self.key(&record, &mut keys) } else { None };
            match span {
                Some(span) => digest.spans.push(entry(&record, &span, key)),
                None => {
                    if let Some(key) = key {
                        let count = keys.keys.len();
                        digest.instants.resize(count, 0);
                        digest.instants[key as usize] += 1;
                    }
                }
            }
        }
        digest.keys = keys.keys;
        digest
    }

    #[inline]
    fn passes_filter(&self, record: &Record<'_>, place: Option<Place>) -> bool {
        self.filter.is_none_or(|filter| self.passes(filter, record, place))
    }

    fn passes(&self, filter: &Filter, record: &Record<'_>, place: Option<Place>) -> bool {
        let at = record.timestamp();
        let thread = self.survey.and_then(|survey| survey.threads.at(record.slot(), at));
        let tick = self.survey.map_or(0, |survey| survey.ticks.tick_at(at));
        filter.matches(&RecordFacts {
            record: *record,
            context: &self.context,
            thread: thread.and_then(|thread| thread.name.as_deref()),
            tick: u64::try_from(tick).unwrap_or(0),
            place,
        })
    }

    #[inline]
    fn key(&self, record: &Record<'_>, keys: &mut Keys) -> Option<u32> {
        let kind = record.kind();
        Some(match self.group_by {
            GroupBy::Kind => keys.kind(kind),
            GroupBy::Family => match registry::kind(kind) {
                Some(info) => keys.any(RowKey::Family(info.family)),
                None => keys.kind(kind),
            },
            GroupBy::Name => match kind {
                id::SCHEDULER_CHUNK => match system_index(record) {
                    Some(system) => keys.any(RowKey::System(system)),
                    None => keys.kind(kind),
                },
                id::NAMED_SPAN => {
                    let name = self.context.name(record)?;
                    keys.text(name.into_owned())
                }
                _ => keys.kind(kind),
            },
            GroupBy::System => match kind {
                id::SCHEDULER_CHUNK => keys.any(RowKey::System(system_index(record)?)),
                _ => return None,
            },
            GroupBy::Thread => keys.any(RowKey::Thread(match self.survey {
                Some(survey) => survey.threads.index_at(record.slot(), record.timestamp())?,
                None => usize::from(record.slot()),
            })),
        })
    }
}

fn entry(record: &Record<'_>, span: &SpanHead<'_>, key: Option<u32>) -> SpanEntry {
    SpanEntry {
        start: record.timestamp(),
        duration: span.duration.max(0),
        span_id: span.span_id,
        key,
        slot: record.slot(),
        is_completion: registry::kind(record.kind()).is_some_and(|kind| kind.correlates_span_id.is_some()),
    }
}

/// Keys of a block; further texts of named spans share one.
const MAX_KEYS: usize = 4_096;

/// Numbers the keys of a block in order of appearance.
#[derive(Default)]
struct Keys {
    keys: Vec<RowKey>,
    by_key: HashMap<RowKey, u32>,
    /// Shortcut for the most frequent sort of key.
    by_kind: Vec<Option<u32>>,
}

impl Keys {
    fn any(&mut self, key: RowKey) -> u32 {
        let next = self.keys.len() as u32;
        *self.by_key.entry(key).or_insert_with_key(|key| {
            self.keys.push(key.clone());
            next
        })
    }

    /// A hostile block can hold half a million texts.
    fn text(&mut self, text: String) -> u32 {
        let key = RowKey::Text(bounded_text(text));
        let is_full = self.keys.len() >= MAX_KEYS && !self.by_key.contains_key(&key);
        self.any(if is_full { RowKey::OtherTexts } else { key })
    }

    #[inline]
    fn kind(&mut self, kind: u8) -> u32 {
        if let Some(Some(key)) = self.by_kind.get(usize::from(kind)) {
            return *key;
        }
        let key = self.any(RowKey::Kind(kind));
        self.by_kind.resize(256, None);
        self.by_kind[usize::from(kind)] = Some(key);
        key
    }
}
