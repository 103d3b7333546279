//! `typhon gc`: the garbage collections of a .NET process as a trace.
//!
//! A source — a recorded stream ([`replay`]) or a running process ([`live`]) — delivers the collector's records.
//! [`Recording`] shows each collection and hands everything to
//! [`TraceFile`](trace_file::TraceFile), which alone knows the trace format. Data flows that way only.

#[cfg(unix)]
mod live;
mod recording;
mod replay;
mod trace_file;
mod view;

use super::conclusion::check_closed;
use crate::cli::Gc;
use crate::failure::{Exit, Failure};
use crate::output::escape::printable;
use crate::output::file::OutputFile;
use crate::output::signals;
use crate::output::stream::Style;
use recording::{Finish, Keeping, Recording};

/// Added to a signal's number for the exit code.
const SIGNAL_EXIT: u8 = 128;

pub(crate) fn run(args: &Gc, style: &Style) -> Result<u8, Failure> {
    let mut file = OutputFile::create(&args.output, args.force, args.from.as_deref())?;
    signals::keep_first();
    let keeping = if args.from.is_some() { Keeping::AtTheEnd } else { Keeping::FromTheStart };
    let mut recording = Recording::new(&args.output, &mut file, keeping, style);
    let ended = match &args.from {
        Some(path) => replay::replay(path, &mut recording),
        None => watch(args, &mut recording),
    };
    let has_begun = recording.has_begun();
    let ended = match ended {
        Ok(ended) => ended,
        Err(failure) if has_begun => return Err(kept(args, &mut file, failure)),
        Err(failure) => return Err(failure),
    };
    let signal_exit = || signals::received().map(|signal| SIGNAL_EXIT | signal);
    let mut finished = match recording.finish(ended.stop_ticks) {
        Ok(Finish::Recorded(finished)) => finished,
        Ok(Finish::NeverBegun(None)) => {
            style.say("nothing was recorded: no runtime was there yet");
            return Ok(signal_exit().unwrap_or_else(|| ended.exit_code()));
        }
        Ok(Finish::NeverBegun(Some(why))) => {
            let failure = Failure::new(Exit::Unreachable, "nothing was recorded").detail(printable(&why));
            // A command may go on.
            let _ = ended.exit_code();
            return Err(failure);
        }
        Err(failure) => return Err(kept(args, &mut file, failure)),
    };
    let closed = check_closed(&mut finished.written, &args.output);
    match closed.and_then(|()| file.complete()).and_then(|bytes| still_there(args, &file).map(|()| bytes)) {
        Ok(bytes) => finished.bytes = bytes,
        Err(failure) => return Err(kept(args, &mut file, failure)),
    }
    view::conclude(&finished, &args.output, style)?;
    // A command may go on after its recording has ended.
    let exit = ended.exit_code();
    Ok(signal_exit().unwrap_or(exit))
}

/// What happened in a process cannot be recorded again, so a recording that fails leaves what was written until then.
fn kept(args: &Gc, file: &mut OutputFile, failure: Failure) -> Failure {
    if args.from.is_some() {
        return failure;
    }
    #[cfg(unix)]
    if file.is_deleted() {
        return match file.rescue() {
            Ok(copy) => failure.hint(format!("what was recorded is in {}", copy.display())),
            Err(err) => failure.detail(format!("and there is no room for a copy elsewhere: {err}")),
        };
    }
    let _ = file;
    failure.hint("what was written before is kept; `typhon trace repair` completes it")
}

/// A file that was deleted while it was written looks well from inside.
fn still_there(args: &Gc, file: &OutputFile) -> Result<(), Failure> {
    #[cfg(unix)]
    if file.is_deleted() {
        return Err(
            Failure::new(Exit::Io, "the output was deleted while it was written").in_file(&args.output)
        );
    }
    let _ = (args, file);
    Ok(())
}

/// How a source ended.
#[derive(Debug, Default)]
struct Ended {
    /// When the recording ended, in ticks of the trace; `None` for the time of the last record.
    stop_ticks: Option<i64>,
    /// The command that was started, if it was.
    #[cfg(unix)]
    command: Option<live::StartedCommand>,
}

impl Ended {
    /// The exit code: that of the command, once it has ended, or our own.
    fn exit_code(self) -> u8 {
        #[cfg(unix)]
        if let Some(code) = self.command.and_then(live::StartedCommand::wait) {
            return code;
        }
        0
    }
}

#[cfg(unix)]
fn watch(args: &Gc, recording: &mut Recording<'_>) -> Result<Ended, Failure> {
    let limit = args.duration;
    match (args.pid, &args.listen) {
        (Some(process_id), _) => live::attach(process_id, recording, limit),
        (None, Some(path)) => live::listen(path, recording, limit),
        (None, None) => live::start(&args.command, recording, limit),
    }
}

#[cfg(not(unix))]
fn watch(_: &Gc, _: &mut Recording<'_>) -> Result<Ended, Failure> {
    Err(Failure::new(Exit::Unreachable, "running processes can be watched on Unix systems only")
        .hint("record with dotnet-trace, then use --from"))
}
