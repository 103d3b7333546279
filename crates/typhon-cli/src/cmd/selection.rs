//! Which records a command is about: `--where`, `--range` and what `dump` adds to them.

use crate::cli;
use crate::failure::Failure;
use crate::output::escape::printable;
use typhon_analysis::facts::RecordFacts;
use typhon_analysis::filter::{self, Facts, Filter, FilterError, Number, NumberRange};

/// Longer texts are not repeated in messages about them.
const POINTED_BYTES_MAX: usize = 400;

/// A compiled selection. Every group must pass, and a group passes with any of its filters.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    groups: Vec<Vec<Filter>>,
    ticks: Option<NumberRange>,
    window: Option<NumberRange>,
}

impl Selection {
    /// From the options that `dump` and `export` share.
    pub(crate) fn new(args: &cli::Selection) -> Result<Self, Failure> {
        let mut selection = Self::default();
        if let Some(text) = &args.filter {
            selection.groups.push(vec![parse_where(text)?]);
        }
        if let Some(text) = &args.range {
            let range = filter::parse_time_range(text).map_err(|err| mistake("--range", text, &err))?;
            selection.window = Some(range);
        }
        Ok(selection)
    }

    /// Adds `key=value` for each value, of which one must hold. Values are names or globs.
    pub(crate) fn any_of(mut self, option: &str, key: &str, values: &[String]) -> Result<Self, Failure> {
        let parse = |value: &String| {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            // A number is an id, which must stand without quotes.
            let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
            let text = if is_number { format!("{key}={value}") } else { format!("{key}=\"{quoted}\"") };
            filter::parse(&text).map_err(|err| {
                with_hint(Failure::usage(err.message.clone()).detail(format!("{option}  {value}")), &err)
            })
        };
        if !values.is_empty() {
            self.groups.push(values.iter().map(parse).collect::<Result<_, _>>()?);
        }
        Ok(self)
    }

    /// Adds a range of ticks.
    pub(crate) fn within_ticks(mut self, text: Option<&str>) -> Result<Self, Failure> {
        if let Some(text) = text {
            let range = filter::parse_count_range(text).map_err(|err| mistake("--ticks", text, &err))?;
            self.ticks = Some(range);
        }
        Ok(self)
    }

    /// Do the filters ask for self times or depths?
    pub(crate) fn needs_places(&self) -> bool {
        self.groups.iter().flatten().any(Filter::needs_places)
    }

    /// Does this record pass?
    #[inline]
    pub(crate) fn passes(&self, facts: &RecordFacts<'_>) -> bool {
        self.ticks.is_none_or(|range| range.contains(Number::Int(facts.tick.into())))
            && self.window.is_none_or(|window| overlaps(&window, facts))
            && self.groups.iter().all(|group| group.iter().any(|filter| filter.matches(facts)))
    }
}

/// A span counts when any part of it lies in the window, an instant when its moment does.
fn overlaps(window: &NumberRange, facts: &RecordFacts<'_>) -> bool {
    let start = Number::Int(facts.ts_ns().into());
    if window.contains(start) {
        return true;
    }
    let Some(duration) = facts.dur_ns() else { return false };
    let end = i128::from(facts.ts_ns()) + i128::from(duration);
    let starts_before = window.from.is_some_and(|from| start.compare(from) == Some(std::cmp::Ordering::Less));
    let ends_after =
        window.from.is_some_and(|from| Number::Int(end).compare(from) == Some(std::cmp::Ordering::Greater));
    starts_before && ends_after
}

/// Parses the value of `--where`.
pub(crate) fn parse_where(text: &str) -> Result<Filter, Failure> {
    filter::parse(text).map_err(|err| mistake("--where", text, &err))
}

/// A mistake inside an option's value, with the place marked.
pub(crate) fn mistake(option: &str, text: &str, err: &FilterError) -> Failure {
    let mut failure = Failure::usage(err.message.clone());
    // A pointer under text with escapes would point at the wrong place, and one below several lines nowhere.
    if printable(text) == text && text.len() <= POINTED_BYTES_MAX {
        let indent = " ".repeat(option.len());
        failure = failure.detail(format!("{option}  {text}")).detail(format!("{indent}  {}", err.pointer()));
    } else {
        failure = failure.detail(format!("{option}  column {}", err.column));
    }
    with_hint(failure, err)
}

fn with_hint(failure: Failure, err: &FilterError) -> Failure {
    match &err.hint {
        Some(hint) => failure.hint(hint.clone()),
        None => failure,
    }
}
