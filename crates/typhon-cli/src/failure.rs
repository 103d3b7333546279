//! What went wrong, where, and what to do about it; and the exit code that says so to scripts.

use anstyle::{AnsiColor, Effects, Style};
use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use crate::output::escape::printable;
use typhon_trace::TraceError;

/// Exit codes of faults (the numbers are those of `sysexits.h`). Verdict commands add 0 to 4 of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// The command line is wrong.
    Usage = 64,
    /// Not a trace, or of an unsupported version.
    NotATrace = 65,
    /// The input is missing or unreadable.
    NoInput = 66,
    /// The process to be watched cannot be reached.
    Unreachable = 69,
    /// A broken invariant of this program.
    Internal = 70,
    /// The output exists or cannot be created.
    CannotCreate = 73,
    /// Reading or writing failed, or the disk is full.
    Io = 74,
    /// The operating system did not permit it.
    NotPermitted = 77,
}

impl Exit {
    /// For an input that cannot be opened.
    pub(crate) fn of_opening(err: &io::Error) -> Self {
        match err.kind() {
            io::ErrorKind::PermissionDenied => Self::NotPermitted,
            _ => Self::NoInput,
        }
    }

    /// For an output that cannot be created.
    pub(crate) fn of_creating(err: &io::Error) -> Self {
        match err.kind() {
            io::ErrorKind::PermissionDenied => Self::NotPermitted,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Io,
            _ => Self::CannotCreate,
        }
    }
}

/// Why a command ends without its result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reader of standard output went away; nobody is left to talk to.
    ClosedPipe,
    /// Anything that the user should hear about.
    Report(Box<Report>),
}

#[derive(Debug)]
pub(crate) struct Report {
    exit: Exit,
    what: String,
    /// Lines that say where and give detail.
    details: Vec<String>,
    hint: Option<String>,
    cause: Option<Box<dyn Error + Send + Sync>>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self::Report(Box::new(Report {
            exit,
            what: what.into(),
            details: Vec::new(),
            hint: None,
            cause: None,
        }))
    }

    /// A wrong command line that only looking at values can find.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// Standard output cannot be written.
    pub(crate) fn stdout(err: io::Error) -> Self {
        match err.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::new(Exit::Io, "standard output cannot be written").caused_by(err),
        }
    }

    /// A trace that cannot be read, or not written.
    pub(crate) fn trace(path: &Path, err: TraceError) -> Self {
        let (exit, offset, hint) = match &err {
            TraceError::NotATrace { .. } => {
                let hint = err.unpack_hint().unwrap_or("trace files start with the bytes TYTR");
                (Exit::NotATrace, Some(0), hint)
            }
            TraceError::UnsupportedVersion { .. } => {
                (Exit::NotATrace, Some(4), "re-record, or convert with the version that wrote it")
            }
            TraceError::HeaderTruncated { found } => {
                (Exit::NotATrace, Some(*found), "nothing was recorded yet, or the copy is incomplete")
            }
            TraceError::BadClockFrequency { .. } => {
                (Exit::NotATrace, Some(8), "the header is damaged; recover the file from a copy")
            }
            TraceError::Io { source, offset, .. } => {
                let exit = match source.kind() {
                    io::ErrorKind::PermissionDenied => Exit::NotPermitted,
                    _ => Exit::Io,
                };
                (exit, Some(*offset), "")
            }
            _ => (Exit::Internal, None, ""),
        };
        let place = match offset {
            Some(offset) => format!("file  {}, offset {offset}", path.display()),
            None => format!("file  {}", path.display()),
        };
        let mut failure = Self::new(exit, err.to_string()).detail(place);
        if !hint.is_empty() {
            failure = failure.hint(hint);
        }
        match err {
            TraceError::Io { source, .. } => failure.caused_by(source),
            _ => failure,
        }
    }

    /// A trace that cannot be copied: reading the one side failed, or writing the other.
    pub(crate) fn copying(source: &Path, output: Option<&Path>, err: TraceError) -> Self {
        match (&err, output) {
            (TraceError::Io { action, .. }, Some(output)) if *action != "read" => Self::trace(output, err),
            _ => Self::trace(source, err),
        }
    }

    /// Adds the file concerned.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        self.detail(format!("file  {}", path.display()))
    }

    /// Adds a line of detail.
    pub(crate) fn detail(mut self, line: impl Into<String>) -> Self {
        if let Self::Report(report) = &mut self {
            report.details.push(line.into());
        }
        self
    }

    /// Adds what the user can do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        if let Self::Report(report) = &mut self {
            report.hint = Some(hint.into());
        }
        self
    }

    /// Adds the error behind it.
    pub(crate) fn caused_by(mut self, cause: impl Error + Send + Sync + 'static) -> Self {
        if let Self::Report(report) = &mut self {
            report.cause = Some(Box::new(cause));
        }
        self
    }

    /// The exit code of the process.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::ClosedPipe => 0,
            Self::Report(report) => report.exit as u8,
        }
    }

    /// The whole message, styled; empty when there is nothing to say. Whatever names files, options and traces brought
    /// into it, a terminal can show it.
    pub(crate) fn render(&self) -> String {
        let Self::Report(report) = self else { return String::new() };
        let red = Style::new().fg_color(Some(AnsiColor::Red.into())).effects(Effects::BOLD);
        let mut text = format!("{red}error:{red:#} {}\n", printable(&report.what));
        let mut line = |label: &str, value: &str| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {label}{}", printable(value));
        };
        for detail in &report.details {
            line("", detail);
        }
        let mut cause: Option<&(dyn Error + 'static)> = report.cause.as_deref().map(|err| err as _);
        while let Some(err) = cause {
            line("cause ", &err.to_string());
            cause = err.source();
        }
        if let Some(hint) = &report.hint {
            line("hint  ", hint);
        }
        text
    }
}
