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
use typhon_analysis::filter;

/// Added to a signal's number for the exit code.
const SIGNAL_EXIT: u8 = 128;

pub(crate) fn run(args: &Gc, style: &Style) -> Result<u8, Failure> {
    let duration_ns = args.duration.as_deref().map(parse_duration).transpose()?;
    let mut file = OutputFile::create(&args.output, args.force, args.from.as_deref())?;
    signals::keep_first();
    let keeping = if args.from.is_some() { Keeping::AtTheEnd } else { Keeping::FromTheStart };
    let mut recording = Recording::new(&args.output, &mut file, keeping, style);
    let ended = match &args.from {
        Some(path) => replay::replay(path, &mut recording),
        None => watch(args, duration_ns, &mut recording),
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
fn watch(args: &Gc, duration_ns: Option<u64>, recording: &mut Recording<'_>) -> Result<Ended, Failure> {
    let limit = duration_ns.map(std::time::Duration::from_nanos);
    match (args.pid, &args.listen) {
        (Some(process_id), _) => live::attach(process_id, recording, limit),
        (None, Some(path)) => live::listen(path, recording, limit),
        (None, None) => live::start(&args.command, recording, limit),
    }
}

#[cfg(not(unix))]
fn watch(_: &Gc, _: Option<u64>, _: &mut Recording<'_>) -> Result<Ended, Failure> {
    Err(Failure::new(Exit::Unreachable, "running processes can be watched on Unix systems only")
        .hint("record with dotnet-trace, then use --from"))
}

/// Units that the times of a trace have no use for, in seconds.
const LONG_UNITS: [(&str, f64); 2] = [("min", 60.0), ("h", 3600.0)];

/// `30s`, `500ms`, `5min`: a time with its unit, in ns.
fn parse_duration(text: &str) -> Result<u64, Failure> {
    let wrong = || {
        Failure::usage(format!("--duration: {} is not a time", printable(text)))
            .hint("a number with a unit, such as 30s or 500ms; units: ns us ms s min h")
    };
    if text.contains("..") {
        return Err(wrong());
    }
    let long = LONG_UNITS.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)));
    let (time, factor) =
        long.map_or((text.to_owned(), 1.0), |(number, seconds)| (format!("{number}s"), seconds));
    let range = filter::parse_time_range(&format!("0s..={time}")).map_err(|_| wrong())?;
    let ns = range.to.map(|to| to.as_f64() * factor).filter(|ns| *ns > 0.0).ok_or_else(wrong)?;
    Ok(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::parse_duration;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(parse_duration("500ms").ok(), Some(500_000_000));
        assert_eq!(parse_duration("1.5s").ok(), Some(1_500_000_000));
        assert_eq!(parse_duration("5min").ok(), Some(300_000_000_000));
        assert_eq!(parse_duration("0.5h").ok(), Some(1_800_000_000_000));
        for wrong in ["", "abc", "-1s", "1s..2s", "0s", "5", "min", "-1h", "1smin", "5m"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
