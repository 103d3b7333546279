//! `typhon trace stats`: where did the time go?

pub(super) mod histogram;
mod schedule;
pub(super) mod text;

use super::input::{Input, shown};
use super::notices;
use super::selection::parse_where;
use super::window::Window;
use crate::cli::{self, By};
use crate::failure::Failure;
use crate::output::json;
use crate::output::progress::Progress;
use crate::output::stream::{Style, print};
use serde_json::{Value, json};
use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;
use typhon_analysis::beside::trace_of;
use typhon_analysis::clock::Clock;
use typhon_analysis::documents;
use typhon_analysis::facts::{MarkNames, TimeWindow, TraceContext};
use typhon_analysis::filter::Filter;
use typhon_analysis::pipeline::PipelineOptions;
use typhon_analysis::stats::{self, GroupBy, Row, Stats, StatsQuery, TickFigures};
use typhon_analysis::survey::{self, Survey};
use typhon_analysis::ticks::TickNotice;
use typhon_trace::reader::{BlockFeed, Outcome, Preamble, ReadOptions, Sections, Source};
use typhon_trace::tables::Tables;
use typhon_trace::{Notice, Severity, TraceError};

pub(crate) fn run(args: &cli::Stats, style: &Style) -> Result<u8, Failure> {
    let path = shown(&args.file);
    let request = Request {
        group_by: group_by(args.by),
        filter: args.selection.filter.as_deref().map(parse_where).transpose()?,
        window: Window::new(args.selection.range.as_deref(), args.ticks.as_deref())?,
    };
    let report = match Input::open(&args.file)? {
        Input::File(file) => of_file(&file, &path, &request, style)?,
        Input::Pipe(pipe) => {
            if request.needs_survey() {
                return Err(Failure::usage("threads, ticks and ranges need a file, not a pipe")
                    .in_file(&path)
                    .hint("write the stream into a file first"));
            }
            let feed = open(BlockFeed::from_reader(&pipe, ReadOptions::default()), &path)?;
            let preamble = feed.preamble().clone();
            request.sum_up(
                feed,
                &preamble,
                (&Sections::default(), None),
                None,
                Progress::new(style, "reading", None),
                &path,
            )?
        }
    };
    notices::warn(style, &path, &report.notices);
    let output = match &args.hist {
        Some(name) => histogram::render(&report.stats.rows, name, style)?,
        None if style.json => json::document(&document(&report, args)),
        None => text::render(&report, args, style).into_bytes(),
    };
    print(&output)?;
    Ok(0)
}

/// What the options ask for.
pub(super) struct Request {
    pub(super) group_by: GroupBy,
    pub(super) filter: Option<Filter>,
    pub(super) window: Window,
}

/// What came out.
pub(super) struct Report {
    pub(super) stats: Stats,
    /// Ticks and threads of the whole trace.
    pub(super) survey: Survey,
    /// Names of systems and queues.
    pub(super) tables: Tables,
    pub(super) clock: Clock,
    /// The window asked for.
    pub(super) window: Option<TimeWindow>,
    pub(super) dropped_records: u64,
    pub(super) withheld_records: u64,
    pub(super) notices: Vec<Notice>,
}

/// Statistics of a file with random access.
pub(super) fn of_file(file: &File, path: &Path, request: &Request, style: &Style) -> Result<Report, Failure> {
    let trace = open(trace_of(file, path), path)?;
    let size = file.metadata().ok().map(|data| data.len());
    let feed = || open(BlockFeed::from_file(file, ReadOptions::default()), path);
    let survey = match request.needs_survey() {
        true => Some(survey(feed()?, path, Progress::new(style, "surveying", size))?),
        false => None,
    };
    let progress = Progress::new(style, "reading", size);
    let marks = open(MarkNames::read(&trace), path)?;
    let names = (trace.sections(), Some(&marks));
    request.sum_up(feed()?, trace.preamble(), names, survey, progress, path)
}

/// Ticks and threads of a whole trace.
pub(super) fn survey<S: Source + Send>(
    feed: BlockFeed<S>,
    path: &Path,
    mut progress: Progress,
) -> Result<Survey, Failure> {
    let options = PipelineOptions::default();
    let survey = survey::run(
        feed,
        options,
        |_, _: &mut ()| {},
        |()| {},
        |done| {
            progress.update(done);
            ControlFlow::Continue(())
        },
    );
    whole(survey.map_err(|err| Failure::trace(path, err))?)
}

/// Progress callbacks of this module never break off.
fn whole<T>(outcome: Option<T>) -> Result<T, Failure> {
    outcome.ok_or(Failure::ClosedPipe)
}

fn open<T>(opened: Result<T, TraceError>, path: &Path) -> Result<T, Failure> {
    opened.map_err(|err| Failure::trace(path, err))
}

impl Request {
    fn needs_survey(&self) -> bool {
        self.group_by == GroupBy::Thread
            || self.window.is_limited()
            || self.filter.as_ref().is_some_and(Filter::needs_survey)
    }

    fn sum_up<S: Source + Send>(
        &self,
        feed: BlockFeed<S>,
        preamble: &Preamble,
        (sections, marks): (&Sections, Option<&MarkNames>),
        survey: Option<Survey>,
        mut progress: Progress,
        path: &Path,
    ) -> Result<Report, Failure> {
        let clock = Clock::new(preamble.header.timestamp_frequency);
        let origin_ticks = survey.as_ref().map_or(0, |survey| survey.origin_ticks);
        let window = match &survey {
            Some(survey) => self.window.resolve(survey, clock)?,
            None => None,
        };
        let mut context = TraceContext::new(&preamble.header, &preamble.tables, sections, origin_ticks);
        context.mark_names = marks;
        let query = StatsQuery {
            group_by: self.group_by,
            filter: self.filter.as_ref(),
            window: window.as_ref(),
            context,
            survey: survey.as_ref(),
        };
        let result = stats::run(feed, PipelineOptions::default(), query, |done| {
            progress.update(done);
            ControlFlow::Continue(())
        });
        let (mut stats, outcome): (Stats, Outcome) = whole(result.map_err(|err| Failure::trace(path, err))?)?;
        Ok(Report {
            survey: survey.or(stats.new_survey.take()).unwrap_or_default(),
            tables: preamble.tables.clone(),
            stats,
            clock,
            window,
            dropped_records: outcome.totals.dropped_records,
            withheld_records: outcome.totals.withheld_events,
            notices: outcome.notices,
        })
    }
}

pub(super) fn group_by(by: By) -> GroupBy {
    match by {
        By::Kind => GroupBy::Kind,
        By::Family => GroupBy::Family,
        By::Name => GroupBy::Name,
        By::System => GroupBy::System,
        By::Thread => GroupBy::Thread,
    }
}

impl Report {
    /// The ticks that begin in the window.
    fn tick_figures(&self) -> TickFigures {
        let ticks = &self.survey.ticks;
        let is_inside =
            |start: &i64| self.window.as_ref().is_none_or(|window| window.extent().contains(start));
        let inside = ticks.starts().iter().zip(1u64..).filter(|(start, _)| is_inside(start));
        let of = |(_, ordinal)| {
            let ns = self.clock.to_ns(ticks.duration(ordinal)?).max(0) as u64;
            Some((ticks.shown(ordinal), ns))
        };
        inside.filter_map(of).collect()
    }

    /// Rows in the order asked for.
    fn sorted_rows(&self, by_self: bool) -> Vec<&Row> {
        let mut rows: Vec<&Row> = self.stats.rows.iter().collect();
        if by_self {
            rows.sort_by_key(|row| std::cmp::Reverse((row.self_ns, row.count)));
        }
        rows
    }
}

fn document(report: &Report, args: &cli::Stats) -> Value {
    let mut rows: Vec<Value> =
        report.sorted_rows(args.by_self).into_iter().map(documents::stats_row).collect();
    let all = rows.len();
    if args.top > 0 {
        rows.truncate(args.top);
    }
    json!({
        "schema": "typhon.stats/1",
        "by": format!("{:?}", args.by).to_lowercase(),
        "window": documents::observed(&report.stats.observed, report.clock, report.survey.origin_ticks),
        "rows": rows,
        "rowCount": all,
        "ticks": ticks_json(report),
        "gc": report.stats.gc.as_ref().map(documents::gc_summary),
        "schedule": schedule::document(report),
        "losses": losses_json(report),
    })
}

fn ticks_json(report: &Report) -> Value {
    let ticks = &report.survey.ticks;
    let mut document = documents::tick_figures(&report.tick_figures());
    document.insert("notToldApart".to_owned(), ticks.not_told_apart().into());
    document.insert("notices".to_owned(), ticks.notices().iter().map(tick_notice_json).collect());
    Value::Object(document)
}

fn tick_notice_json(notice: &TickNotice) -> Value {
    match *notice {
        TickNotice::Gap { tick, missing } => json!({ "what": "gap", "tick": tick, "missing": missing }),
        TickNotice::AnchorsDisagree { tick } => json!({ "what": "numbers-disagree", "tick": tick }),
        TickNotice::AnchorBehind { tick, anchor } => {
            json!({ "what": "number-behind", "tick": tick, "number": anchor })
        }
    }
}

/// Everything that the figures do not contain.
fn losses_json(report: &Report) -> Value {
    let mut losses = Vec::new();
    if report.dropped_records > 0 {
        losses.push(json!({ "what": "dropped-by-recorder", "count": report.dropped_records }));
    }
    if report.withheld_records > 0 {
        losses.push(json!({ "what": "in-damaged-blocks", "count": report.withheld_records }));
    }
    if report.survey.more_infos > 0 {
        losses.push(json!({ "what": "unread-thread-names", "count": report.survey.more_infos }));
    }
    if report.stats.too_shallow_spans > 0 {
        losses.push(json!({ "what": "too-small-depths", "count": report.stats.too_shallow_spans }));
    }
    if report.stats.inexact_self_times > 0 {
        losses.push(json!({ "what": "inexact-self-times", "count": report.stats.inexact_self_times }));
    }
    let damage = report.notices.iter().filter(|notice| notice.severity() == Severity::DataLoss);
    losses.extend(damage.map(|notice| {
        json!({
            "what": notice.code.as_str(),
            "count": notice.count,
            "offset": notice.offset,
            "block": notice.block,
            "message": notice.message,
        })
    }));
    Value::Array(losses)
}
