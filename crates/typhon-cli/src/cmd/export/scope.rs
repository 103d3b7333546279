//! `--where`, `--range` and `--ticks` of an export.

use crate::cli::Export;
use crate::cmd::input::shown;
use crate::cmd::selection::parse_where;
use crate::cmd::stats::survey;
use crate::cmd::window::Window;
use crate::failure::Failure;
use crate::output::progress::Progress;
use crate::output::stream::Style;
use std::borrow::Cow;
use std::fs::File;
use typhon_analysis::clock::Clock;
use typhon_analysis::export::Scope;
use typhon_trace::reader::{BlockFeed, ReadOptions};

/// Of a pipe, which is read once: ticks and threads are those of the stream so far.
pub(super) fn of_pipe(args: &Export) -> Result<Scope<'static>, Failure> {
    if args.ticks.is_some() || args.selection.range.is_some() {
        return Err(Failure::usage("ticks and ranges need a file, not a pipe")
            .in_file(&shown(&args.file))
            .hint("write the stream into a file first"));
    }
    let filter = args.selection.filter.as_deref().map(parse_where).transpose()?;
    Ok(Scope { filter, window: None, survey: None })
}

/// Reads the options and surveys the trace.
pub(super) fn of_file(
    args: &Export,
    file: &File,
    clock: Clock,
    style: &Style,
) -> Result<Scope<'static>, Failure> {
    let filter = args.selection.filter.as_deref().map(parse_where).transpose()?;
    let window = Window::new(args.selection.range.as_deref(), args.ticks.as_deref())?;
    let feed =
        BlockFeed::from_file(file, ReadOptions::default()).map_err(|err| Failure::trace(&args.file, err))?;
    let size = file.metadata().ok().map(|data| data.len());
    let survey = survey(feed, &args.file, Progress::new(style, "surveying", size))?;
    let window = window.resolve(&survey, clock)?;
    Ok(Scope { filter, window, survey: Some(Cow::Owned(survey)) })
}

/// Does anything ask for less than the whole trace?
pub(super) fn is_limited(args: &Export) -> bool {
    args.selection.filter.is_some() || args.selection.range.is_some() || args.ticks.is_some()
}
