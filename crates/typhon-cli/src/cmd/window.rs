//! `--range` and `--ticks` as one window of trace-clock time, once the trace has been surveyed.

use super::selection::mistake;
use crate::failure::Failure;
use std::ops::Range;
use typhon_analysis::clock::Clock;
use typhon_analysis::facts::TimeWindow;
use typhon_analysis::filter::{self, Number, NumberRange};
use typhon_analysis::survey::Survey;

/// The part of a trace that a command is about.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Window {
    time: Option<NumberRange>,
    ticks: Option<NumberRange>,
    /// What the names of the options end with.
    side: &'static str,
}

impl Window {
    /// From the texts of the two options.
    pub(crate) fn new(range: Option<&str>, ticks: Option<&str>) -> Result<Self, Failure> {
        Self::of_side("", range, ticks)
    }

    /// The same of options with names that end with `side`, such as `-a`.
    pub(crate) fn of_side(
        side: &'static str,
        range: Option<&str>,
        ticks: Option<&str>,
    ) -> Result<Self, Failure> {
        let fault = |option, text, err| mistake(&format!("--{option}{side}"), text, &err);
        let time = range.map(|text| filter::parse_time_range(text).map_err(|err| fault("range", text, err)));
        let ticks =
            ticks.map(|text| filter::parse_count_range(text).map_err(|err| fault("ticks", text, err)));
        Ok(Self { time: time.transpose()?, ticks: ticks.transpose()?, side })
    }

    /// Is it less than the whole trace?
    pub(crate) fn is_limited(&self) -> bool {
        self.time.is_some() || self.ticks.is_some()
    }

    /// The window in trace-clock ticks; `None` for the whole trace.
    pub(crate) fn resolve(&self, survey: &Survey, clock: Clock) -> Result<Option<TimeWindow>, Failure> {
        if !self.is_limited() {
            return Ok(None);
        }
        let everything = i64::MIN..i64::MAX;
        let touching = self.time.map_or(everything.clone(), |time| touching(&time, survey, clock));
        let starting = self.ticks.map_or(Ok(everything), |ticks| starting(&ticks, self.side, survey))?;
        Ok(Some(TimeWindow { touching, starting }))
    }
}

fn touching(time: &NumberRange, survey: &Survey, clock: Clock) -> Range<i64> {
    let bound = |ns: Number| {
        let ticks = ns.as_f64() * clock.ticks_per_second() as f64 / 1e9;
        survey.origin_ticks.saturating_add(ticks.ceil() as i64)
    };
    let end = |to: Number| bound(to).saturating_add(i64::from(time.includes_end));
    time.from.map_or(i64::MIN, bound)..time.to.map_or(i64::MAX, end)
}

/// From the start of the first tick to the start of the one after the last.
fn starting(ticks: &NumberRange, side: &str, survey: &Survey) -> Result<Range<i64>, Failure> {
    let number = |bound: Number| bound.as_f64().ceil() as i64;
    let first = ticks.from.map_or(0, number);
    // Tick 0 is what lies before the first tick.
    let start = if first <= 0 { Some(i64::MIN) } else { survey.ticks.start_of(first) };
    let Some(start) = start else {
        return Err(Failure::usage(format!(
            "--ticks{side} starts behind the last tick, {}",
            last_tick(survey)
        ))
        .hint("`typhon trace stats` lists the worst ticks"));
    };
    let after = ticks.to.map(|to| number(to).saturating_add(i64::from(ticks.includes_end)));
    let end = after.and_then(|after| survey.ticks.start_of(after)).unwrap_or(i64::MAX);
    Ok(start..end.max(start))
}

fn last_tick(survey: &Survey) -> i64 {
    survey.ticks.shown(survey.ticks.starts().len() as u64)
}
