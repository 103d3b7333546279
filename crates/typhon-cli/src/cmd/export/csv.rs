//! `--to csv`: one line a record.

use super::scope;
use super::sink::Sink;
use crate::cli::Export;
use crate::cmd::conclusion::Conclusion;
use crate::cmd::dump::{Csv, Layout};
use crate::cmd::input::{Input, shown};
use crate::cmd::notices;
use crate::cmd::portions::{Feed, Portion, Text};
use crate::failure::{Exit, Failure};
use crate::output::file::OutputFile;
use crate::output::progress::Progress;
use crate::output::stream::Style;
use std::io::{self, Write};
use std::ops::ControlFlow;
use typhon_analysis::clock::Clock;
use typhon_analysis::placing::PlaceFaults;
use typhon_trace::repair::is_loss;

pub(super) fn run(
    args: &Export,
    style: &Style,
    create: impl FnOnce() -> Result<OutputFile, Failure>,
) -> Result<Conclusion, Failure> {
    let path = shown(&args.file);
    let input = Input::open(&args.file)?;
    let (feed, mut names) = Feed::open(&input, &path).map_err(|err| Failure::trace(&path, err))?;
    let clock = Clock::new(names.header.timestamp_frequency);
    let scope = match &input {
        Input::File(file) => scope::of_file(args, file, clock, style)?,
        Input::Pipe(_) => scope::of_pipe(args)?,
    };
    names.survey = scope.survey.as_deref().cloned();
    let duration_ns = scope.survey.as_ref().map(|survey| clock.to_ns(survey.extent_ticks()));
    let progress = Progress::new(style, "exporting", input.bytes());
    let output = create()?;
    let failed = |err: io::Error| {
        Failure::new(Exit::Io, "the output cannot be written").in_file(&args.output).caused_by(err)
    };
    let csv = Csv::with_self_times(Layout::plain());
    let mut out = Sink::new(output.writer()?, args.compress);
    let mut heading = Vec::new();
    csv.heading(&mut heading);
    out.write_all(&heading).map_err(failed)?;
    let format = |portion: &Portion| {
        let mut text = Text::default();
        portion.for_each(&names, |row| {
            if scope.includes(&row.facts) {
                csv.record(&mut text.bytes, row);
                text.records += 1;
            }
        });
        text
    };
    let mut records = 0;
    let outcome = feed.run(&path, progress, true, format, |text| {
        records += text.records;
        out.write_all(&text.bytes).map_err(failed).map(ControlFlow::Continue)
    })?;
    out.finish().map_err(failed)?;
    // The callback never breaks off.
    let (outcome, faults) = outcome.ok_or(Failure::ClosedPipe)?;
    // Depths matter to a filter only; there is no column for them.
    let too_shallow = if scope.needs_places() { faults.too_shallow } else { 0 };
    notices::say_place_faults(style, PlaceFaults { too_shallow, ..faults });
    let (dropped, mut losses) = (outcome.totals.dropped_records, outcome.notices);
    losses.retain(is_loss);
    Ok(Conclusion {
        command: "export",
        bytes: output.finish()?,
        output: Some(args.output.clone()),
        records,
        dropped,
        duration_ns,
        losses,
    })
}
