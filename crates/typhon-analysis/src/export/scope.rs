//! Which records an export holds.

use crate::facts::{RecordFacts, TimeWindow, TraceContext};
use crate::filter::Filter;
use crate::placing::Place;
use crate::survey::Survey;
use std::borrow::Cow;
use typhon_trace::record::Record;

/// Records that touch a window and pass a filter, with the survey of ticks and threads that gives both a meaning.
#[derive(Debug, Default)]
pub struct Scope<'s> {
    /// Which records; `None` for all.
    pub filter: Option<Filter>,
    /// Which time; `None` for all.
    pub window: Option<TimeWindow>,
    /// Ticks and threads by time; `None` of a pipe.
    pub survey: Option<Cow<'s, Survey>>,
}

impl Scope<'_> {
    /// Must the caller know the place of spans?
    pub fn needs_places(&self) -> bool {
        self.filter.as_ref().is_some_and(Filter::needs_places)
    }

    /// Does a record belong to it?
    pub fn includes(&self, facts: &RecordFacts<'_>) -> bool {
        self.window.as_ref().is_none_or(|window| window.includes(&facts.record))
            && self.filter.as_ref().is_none_or(|filter| filter.matches(facts))
    }

    /// What filters ask about a record.
    pub fn facts<'a>(
        &'a self,
        record: Record<'a>,
        context: &'a TraceContext<'a>,
        place: Option<Place>,
    ) -> RecordFacts<'a> {
        let at = record.timestamp();
        let thread = self.survey.as_ref().and_then(|survey| survey.threads.at(record.slot(), at));
        let tick = self.survey.as_ref().map_or(0, |survey| survey.ticks.tick_at(at));
        RecordFacts {
            record,
            context,
            thread: thread.and_then(|thread| thread.name.as_deref()),
            tick: u64::try_from(tick).unwrap_or(0),
            place,
        }
    }
}
