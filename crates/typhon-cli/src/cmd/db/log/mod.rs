//! `typhon db log`: segments, frames and the tail of a write-ahead log. Only reads, through a storage that cannot do
//! anything else.

mod document;
mod findings;
mod text;

use crate::cli::DbLog;
use crate::failure::{Exit, Failure};
use crate::output::json;
use crate::output::progress::Progress;
use crate::output::stream::{Style, print};
use findings::{Finding, Verdict};
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use typhon_log::LogError;
use typhon_log::format::Frame;
use typhon_log::inspect::Inspection;
use typhon_store::{Io, PoolIo, ReadOnly};

/// How often a log is read again that changed while it was read.
const ATTEMPTS: usize = 3;

pub(crate) fn run(args: &DbLog, style: &Style) -> Result<u8, Failure> {
    let io = storage(style);
    let mut attempt = 1;
    loop {
        let look = look(&io, args);
        match look {
            Ok(log) => return show(&log, args, style),
            Err(error) if attempt < ATTEMPTS && has_changed(&error) => attempt += 1,
            Err(error) => return refused(&error, args, style),
        }
    }
}

/// The disk, reading only; says how far it is on a terminal.
fn storage(style: &Style) -> impl Io {
    let (done, progress) = (AtomicU64::new(0), Mutex::new(Progress::new(style, "reading", None)));
    ReadOnly::new(PoolIo::new(), move |bytes| {
        let done = done.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        if let Ok(mut progress) = progress.lock() {
            progress.update(done);
        }
    })
}

/// A log and what was counted in it.
struct Log {
    found: Inspection,
    /// Frames behind the base in each file.
    frames: Vec<u64>,
    /// Bytes of bodies of all frames behind the base.
    body_bytes: u64,
    /// The frames that were asked for.
    shown: VecDeque<Row>,
    findings: Vec<Finding>,
    verdict: Verdict,
}

impl Log {
    fn frames_total(&self) -> u64 {
        self.frames.iter().sum()
    }
}

/// A frame, and where its block is.
struct Row {
    lsn: u64,
    kind: u8,
    seq: u64,
    uow: u16,
    flags: u8,
    records: u32,
    body_bytes: u64,
    file: usize,
    offset: u64,
}

impl Row {
    /// Where its block is, is not known yet.
    fn new(frame: &Frame<'_>) -> Self {
        let header = &frame.header;
        Self {
            lsn: frame.lsn.0,
            kind: header.kind,
            seq: header.seq,
            uow: header.uow,
            flags: header.flags,
            records: header.records,
            body_bytes: frame.body.len() as u64,
            file: 0,
            offset: 0,
        }
    }
}

fn look(io: &dyn Io, args: &DbLog) -> Result<Log, LogError> {
    let is_directory = args.path.is_dir();
    let found = match is_directory {
        true => Inspection::of_directory(io, &args.path)?,
        false => Inspection::of_segment(io, &args.path)?,
    };
    let mut log = Log {
        frames: vec![0; found.files.len()],
        body_bytes: 0,
        shown: VecDeque::new(),
        findings: findings::of(&found),
        verdict: Verdict::Sound,
        found,
    };
    log.verdict = findings::verdict(&log.findings);
    count(&mut log, args)?;
    Ok(log)
}

/// Goes through all frames and keeps those that were asked for.
fn count(log: &mut Log, args: &DbLog) -> Result<(), LogError> {
    let (limit, keeps_last) = match args.tail {
        Some(tail) => (tail as usize, true),
        None => (args.limit as usize, false),
    };
    let mut frames = log.found.frames();
    loop {
        let Some(frame) = frames.next_frame()? else { return Ok(()) };
        let mut row = Row::new(&frame);
        (row.file, row.offset) = frames.place().unwrap_or_default();
        log.frames[row.file] += 1;
        log.body_bytes += row.body_bytes;
        if row.lsn <= args.from || limit == 0 || (!keeps_last && log.shown.len() == limit) {
            continue;
        }
        if log.shown.len() == limit {
            log.shown.pop_front();
        }
        log.shown.push_back(row);
    }
}

fn show(log: &Log, args: &DbLog, style: &Style) -> Result<u8, Failure> {
    match style.json {
        true => print(&json::document(&document::of(log, &args.path)))?,
        false => print(text::of(log, args, style).as_bytes())?,
    }
    Ok(log.verdict as u8)
}

/// A file that was there is gone, or holds something else now.
fn has_changed(error: &LogError) -> bool {
    let LogError::Storage { doing, source, .. } = error else { return false };
    *doing == "read" && matches!(source.kind(), io::ErrorKind::Other | io::ErrorKind::UnexpectedEof)
}

/// Nothing can be shown: because of the operating system, or because it is no log.
fn refused(error: &LogError, args: &DbLog, style: &Style) -> Result<u8, Failure> {
    let what = match error {
        LogError::Storage { path, source, .. } => return Err(unreadable(error, path, source)),
        LogError::Foreign { path } => not_a_segment(path),
        LogError::NotALog { .. } => "holds no log: there is neither an anchor nor a segment in it".to_owned(),
        error if error.path() == Some(&args.path) => error.without_path(),
        error => error.to_string(),
    };
    match style.json {
        true => print(&json::document(&document::unopenable(&args.path, &what)))?,
        false => print(text::unopenable(&args.path, &what).as_bytes())?,
    }
    Ok(Verdict::Unopenable as u8)
}

fn unreadable(error: &LogError, path: &Path, source: &io::Error) -> Failure {
    if has_changed(error) {
        return Failure::new(Exit::Io, "the log changed while it was read")
            .in_file(path)
            .hint("it is being written; look again, or look at a copy");
    }
    let (exit, hint) = match source.kind() {
        io::ErrorKind::PermissionDenied => (
            Exit::NotPermitted,
            "run as the owner, or give this user the right to read the files and to enter the directory",
        ),
        io::ErrorKind::NotFound => (Exit::NoInput, "name the directory of a log, or one of its segments"),
        io::ErrorKind::IsADirectory | io::ErrorKind::NotSeekable => {
            (Exit::NoInput, "only files can be looked at; if this is in a log's directory, move it away")
        }
        _ => (Exit::Io, "the disk or the file system failed; look at a copy, or at what the system logged"),
    };
    // The file has a line of its own.
    let text = source.to_string();
    let text = text.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&text);
    let source = io::Error::new(source.kind(), text);
    Failure::new(exit, "the log cannot be read").in_file(path).caused_by(source).hint(hint)
}

/// A file that was named and is no segment may still belong to a log.
fn not_a_segment(path: &Path) -> String {
    let front = std::fs::File::open(path).and_then(|mut file| {
        let mut front = [0; 4];
        io::Read::read_exact(&mut file, &mut front)?;
        Ok(front)
    });
    match front {
        Ok([b'T', b'Y', b'A', b'N']) => "this is the anchor of a log; name its directory".to_owned(),
        Ok([b'T', b'Y', b'T', b'R']) => "this is a trace; look at it with `typhon trace info`".to_owned(),
        _ => "not a segment of a log; segments begin with the bytes TYFW".to_owned(),
    }
}
