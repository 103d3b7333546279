//! `typhon trace export`: a trace in another form, or a part of it.

mod csv;
mod cut;
mod scope;
mod sink;
mod timeline;

use crate::cli::{Export, Target};
use crate::failure::Failure;
use crate::output::file::OutputFile;
use crate::output::stream::Style;

pub(crate) fn run(args: &Export, style: &Style) -> Result<u8, Failure> {
    if args.compress && args.to == Target::Trace {
        return Err(Failure::usage(
            "--compress does not go with --to trace, whose blocks are compressed already",
        ));
    }
    let create = || OutputFile::create(&args.output, args.force, Some(&args.file));
    let conclusion = match args.to {
        Target::Trace => cut::run(args, style, create)?,
        Target::Csv => csv::run(args, style, create)?,
        Target::Perfetto | Target::Chrome => timeline::run(args, style, create)?,
    };
    conclusion.print(style)?;
    Ok(0)
}
