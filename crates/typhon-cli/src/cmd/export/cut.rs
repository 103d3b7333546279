//! `--to trace`: a valid trace that holds the selected records and what is needed to understand them.

use super::scope;
use crate::cli::Export;
use crate::cmd::conclusion::{Conclusion, check_closed};
use crate::cmd::input::open_file_trace;
use crate::cmd::notices;
use crate::cmd::repair::recorded_ns;
use crate::failure::Failure;
use crate::output::file::OutputFile;
use crate::output::progress::Progress;
use crate::output::stream::Style;
use std::ops::ControlFlow;
use typhon_analysis::clock::Clock;
use typhon_analysis::export::cut;
use typhon_trace::repair::is_loss;

pub(super) fn run(
    args: &Export,
    style: &Style,
    create: impl FnOnce() -> Result<OutputFile, Failure>,
) -> Result<Conclusion, Failure> {
    let (file, source) = open_file_trace(&args.file)?;
    let clock = Clock::new(source.header().timestamp_frequency);
    let scope = match scope::is_limited(args) {
        true => Some(scope::of_file(args, &file, clock, style)?),
        false => None,
    };
    let output = create()?;
    let mut progress =
        Progress::new(style, "exporting", source.data().metadata().ok().map(|data| data.len()));
    let copied = cut(&source, scope.as_ref(), output.writer()?, |done| {
        progress.update(done);
        ControlFlow::Continue(())
    });
    let copied = copied.map_err(|err| Failure::copying(&args.file, Some(&args.output), err))?;
    // Progress never breaks off.
    let mut cut = copied.ok_or(Failure::ClosedPipe)?;
    check_closed(&mut cut.written, &args.output)?;
    notices::say_place_faults(style, cut.faults);
    Ok(Conclusion {
        command: "export",
        bytes: output.finish()?,
        output: Some(args.output.clone()),
        records: cut.written.records,
        dropped: cut.outcome.totals.dropped_records,
        duration_ns: recorded_ns(&args.output),
        losses: cut.outcome.notices.into_iter().filter(is_loss).collect(),
    })
}
