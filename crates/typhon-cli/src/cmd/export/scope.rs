//! Which records an export holds.

use crate::cli::Export;
use crate::cmd::input::shown;
use crate::cmd::selection::parse_where;
use crate::cmd::stats::survey;
use crate::cmd::window::Window;
use crate::failure::Failure;
use crate::output::progress::Progress;
use crate::output::stream::Style;
use std::fs::File;
use typhon_analysis::clock::Clock;
use typhon_analysis::facts::{RecordFacts, TimeWindow, TraceContext};
use typhon_analysis::filter::Filter;
use typhon_analysis::placing::Place;
use typhon_analysis::survey::Survey;
use typhon_trace::reader::{BlockFeed, ReadOptions};
use typhon_trace::record::Record;

/// `--where`, `--range` and `--ticks`, with the survey of ticks and threads that gives them a meaning.
pub(super) struct Scope {
    filter: Option<Filter>,
    window: Option<TimeWindow>,
    survey: Option<Survey>,
}

impl Scope {
    /// Of a pipe, which is read once: ticks and threads are those of the stream so far.
    pub(super) fn of_pipe(args: &Export) -> Result<Self, Failure> {
        if args.ticks.is_some() || args.selection.range.is_some() {
            return Err(Failure::usage("ticks and ranges need a file, not a pipe")
                .in_file(&shown(&args.file))
                .hint("write the stream into a file first"));
        }
        let filter = args.selection.filter.as_deref().map(parse_where).transpose()?;
        Ok(Self { filter, window: None, survey: None })
    }

    /// Reads the options and surveys the trace.
    pub(super) fn new(args: &Export, file: &File, clock: Clock, style: &Style) -> Result<Self, Failure> {
        let filter = args.selection.filter.as_deref().map(parse_where).transpose()?;
        let window = Window::new(args.selection.range.as_deref(), args.ticks.as_deref())?;
        let feed = BlockFeed::from_file(file, ReadOptions::default())
            .map_err(|err| Failure::trace(&args.file, err))?;
        let size = file.metadata().ok().map(|data| data.len());
        let survey = survey(feed, &args.file, Progress::new(style, "surveying", size))?;
        let window = window.resolve(&survey, clock)?;
        Ok(Self { filter, window, survey: Some(survey) })
    }

    /// Ticks and threads by time; `None` of a pipe.
    pub(super) fn survey(&self) -> Option<&Survey> {
        self.survey.as_ref()
    }

    /// Does anything ask for less than the whole trace?
    pub(super) fn is_limited(args: &Export) -> bool {
        args.selection.filter.is_some() || args.selection.range.is_some() || args.ticks.is_some()
    }

    /// Must the caller know the place of spans?
    pub(super) fn needs_places(&self) -> bool {
        self.filter.as_ref().is_some_and(Filter::needs_places)
    }

    /// The time that is exported; `None` for all.
    pub(super) fn window(&self) -> Option<&TimeWindow> {
        self.window.as_ref()
    }

    /// Does a record belong to it?
    pub(super) fn includes(&self, facts: &RecordFacts<'_>) -> bool {
        self.window.as_ref().is_none_or(|window| window.includes(&facts.record))
            && self.filter.as_ref().is_none_or(|filter| filter.matches(facts))
    }

    /// What filters ask about a record.
    pub(super) fn facts<'a>(
        &'a self,
        record: Record<'a>,
        context: &'a TraceContext<'a>,
        place: Option<Place>,
    ) -> RecordFacts<'a> {
        let at = record.timestamp();
        let thread = self.survey().and_then(|survey| survey.threads.at(record.slot(), at));
        let tick = self.survey().map_or(0, |survey| survey.ticks.tick_at(at));
        RecordFacts {
            record,
            context,
            thread: thread.and_then(|thread| thread.name.as_deref()),
            tick: u64::try_from(tick).unwrap_or(0),
            place,
        }
    }
}
