//! `--to perfetto` and `--to chrome`: the timeline for other viewers.

use super::sink::Sink;
use crate::cli::{Export, Target};
use crate::cmd::conclusion::Conclusion;
use crate::cmd::input::open_file_trace;
use crate::cmd::notices;
use crate::cmd::selection::parse_where;
use crate::cmd::window::Window;
use crate::failure::{Exit, Failure};
use crate::output::file::OutputFile;
use crate::output::progress::Progress;
use crate::output::stream::Style;
use crate::output::units::{bytes, plural};
use std::fs::File;
use std::io::{self, BufWriter};
use std::ops::ControlFlow;
use std::path::Path;
use typhon_analysis::clock::Clock;
use typhon_analysis::export::{
    ChromeSink, Conversion, ConvertError, ConvertLimits, ConvertQuery, EventSink, Links, PerfettoSink,
    chrome, convert,
};
use typhon_analysis::facts::{MarkNames, TraceContext};
use typhon_analysis::pipeline::PipelineOptions;
use typhon_analysis::survey::{self, Survey};
use typhon_trace::reader::{BlockFeed, FileSource, ReadOptions};
use typhon_trace::repair::is_loss;

const BUFFER_BYTES: usize = 256 * 1024;

pub(super) fn run(
    args: &Export,
    style: &Style,
    create: impl FnOnce() -> Result<OutputFile, Failure>,
) -> Result<Conclusion, Failure> {
    let filter = args.selection.filter.as_deref().map(parse_where).transpose()?;
    let window = Window::new(args.selection.range.as_deref(), args.ticks.as_deref())?;
    let (file, trace) = open_file_trace(&args.file)?;
    let size = file.metadata().ok().map(|data| data.len());
    let (survey, links) =
        survey(feed(&file, &args.file)?, &args.file, Progress::new(style, "surveying", size))?;
    let header = trace.header();
    let clock = Clock::new(header.timestamp_frequency);
    let marks = MarkNames::read(&trace).map_err(|err| Failure::trace(&args.file, err))?;
    let context = TraceContext::new(header, trace.tables(), trace.sections(), survey.origin_ticks)
        .with_mark_names(&marks);
    let window = window.resolve(&survey, clock)?;
    let query = ConvertQuery {
        filter: filter.as_ref(),
        window: window.as_ref(),
        context: &context,
        survey: &survey,
        links: &links,
        limits: ConvertLimits::default(),
    };
    let output = create()?;
    let out = BufWriter::with_capacity(BUFFER_BYTES, Sink::new(output.writer()?, args.compress));
    let process = if header.database_name.is_empty() { "typhon" } else { header.database_name.as_str() };
    let task = Task { args, query, progress: Progress::new(style, "exporting", size) };
    let (conversion, out) = match args.to {
        Target::Chrome => {
            let mut sink = ChromeSink::new(out, process).map_err(|err| failed(&args.output, err))?;
            let conversion = task.convert(feed(&file, &args.file)?, &mut sink)?;
            (conversion, sink.finish().map_err(|err| failed(&args.output, err))?)
        }
        _ => {
            let mut sink = PerfettoSink::new(out, process).map_err(|err| failed(&args.output, err))?;
            (task.convert(feed(&file, &args.file)?, &mut sink)?, sink.finish())
        }
    };
    let sink = out.into_inner().map_err(|err| failed(&args.output, err.into_error()))?;
    sink.finish().map_err(|err| failed(&args.output, err))?;
    let written = output.finish()?;
    notices::say_place_faults(style, conversion.place_faults);
    let exported = conversion.exported;
    remarks(args, style, written, exported.undrawn, &links);
    let mut losses = conversion.outcome.notices;
    losses.retain(is_loss);
    Ok(Conclusion {
        command: "export",
        output: Some(args.output.clone()),
        bytes: written,
        records: exported.slices + exported.instants,
        dropped: conversion.outcome.totals.dropped_records,
        duration_ns: Some(clock.to_ns(survey.extent_ticks())),
        losses,
    })
}

struct Task<'a> {
    args: &'a Export,
    query: ConvertQuery<'a>,
    progress: Progress,
}

impl Task<'_> {
    fn convert(
        mut self,
        feed: BlockFeed<FileSource<&File>>,
        sink: &mut impl EventSink,
    ) -> Result<Conversion, Failure> {
        let converted = convert(feed, PipelineOptions::default(), self.query, sink, |done| {
            self.progress.update(done);
            ControlFlow::Continue(())
        });
        match converted {
            Ok(Some(conversion)) => Ok(conversion),
            // The callback never breaks off.
            Ok(None) => Err(Failure::ClosedPipe),
            Err(ConvertError::Trace(err)) => Err(Failure::trace(&self.args.file, err)),
            Err(ConvertError::Write(err)) => Err(failed(&self.args.output, err)),
        }
    }
}

fn feed<'a>(file: &'a File, path: &Path) -> Result<BlockFeed<FileSource<&'a File>>, Failure> {
    BlockFeed::from_file(file, ReadOptions::default()).map_err(|err| Failure::trace(path, err))
}

fn survey(
    feed: BlockFeed<FileSource<&File>>,
    path: &Path,
    mut progress: Progress,
) -> Result<(Survey, Links), Failure> {
    let mut links = Links::default();
    let survey = survey::run(
        feed,
        PipelineOptions::default(),
        |record, found: &mut Links| found.observe(record),
        |found| links.merge(found),
        |done| {
            progress.update(done);
            ControlFlow::Continue(())
        },
    );
    let survey = survey.map_err(|err| Failure::trace(path, err))?.ok_or(Failure::ClosedPipe)?;
    Ok((survey, links))
}

/// What the user should know and the numbers do not say.
fn remarks(args: &Export, style: &Style, written: u64, undrawn: u64, links: &Links) {
    if args.to == Target::Chrome && !args.compress && written > chrome::WARN_BYTES {
        style.say(&format!(
            "warning: viewers of this format fail to load files of {}\n  -> a part with --range, or --to perfetto",
            bytes(written)
        ));
    }
    if undrawn > 0 {
        style.say(&format!(
            "warning: {} not drawn: too many overlap without nesting\n  -> parts with --range or --where",
            plural(undrawn, "span")
        ));
    }
    if links.left_out() > 0 {
        style.say(&format!("note: {} between threads are not drawn", plural(links.left_out(), "arrow")));
    }
}

fn failed(path: &Path, err: io::Error) -> Failure {
    Failure::new(Exit::Io, "the output cannot be written").in_file(path).caused_by(err)
}
