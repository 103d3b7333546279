//! `--to csv`: one line a record.

use super::sink::Sink;
use crate::cli::Export;
use crate::cmd::conclusion::Conclusion;
use crate::cmd::dump::{Csv, Layout};
use crate::cmd::input::{Input, shown};
use crate::cmd::portions::{Feed, Portion, Text};
use crate::cmd::selection::Selection;
use crate::failure::{Exit, Failure};
use crate::output::file::OutputFile;
use crate::output::progress::Progress;
use crate::output::stream::Style;
use std::io::{self, Write};
use std::ops::ControlFlow;
use typhon_trace::repair::is_loss;

pub(super) fn run(
    args: &Export,
    selection: &Selection,
    style: &Style,
    create: impl FnOnce() -> Result<OutputFile, Failure>,
) -> Result<Conclusion, Failure> {
    let path = shown(&args.file);
    let input = Input::open(&args.file)?;
    let progress = Progress::new(style, "exporting", input.bytes());
    let (feed, names) = Feed::open(&input, &path).map_err(|err| Failure::trace(&path, err))?;
    let output = create()?;
    let failed = |err: io::Error| {
        Failure::new(Exit::Io, "the output cannot be written").in_file(&args.output).caused_by(err)
    };
    let csv = Csv::new(Layout::plain(), None);
    let mut out = Sink::new(output.writer()?, args.compress);
    let mut heading = Vec::new();
    csv.heading(&mut heading);
    out.write_all(&heading).map_err(failed)?;
    let format = |portion: &Portion| {
        let mut text = Text::default();
        portion.for_each(&names, |row| {
            if selection.passes(&row.facts) {
                csv.record(&mut text.bytes, row);
                text.records += 1;
            }
        });
        text
    };
    let mut records = 0;
    let outcome = feed.run(&path, progress, format, |text| {
        records += text.records;
        out.write_all(&text.bytes).map_err(failed).map(ControlFlow::Continue)
    })?;
    out.finish().map_err(failed)?;
    let (dropped, mut losses) =
        outcome.map_or((0, Vec::new()), |outcome| (outcome.totals.dropped_records, outcome.notices));
    losses.retain(is_loss);
    Ok(Conclusion {
        command: "export",
        bytes: output.finish()?,
        output: Some(args.output.clone()),
        records,
        dropped,
        duration_ns: None,
        losses,
    })
}
