//! Opening the input of a command: a file with random access, or something that is read once.

use crate::failure::{Exit, Failure};
use crate::output::escape::shell_word;
use std::fs::File;
use std::io::{self, Read, Stdin};
use std::path::{Path, PathBuf};
use typhon_analysis::beside::trace_of;
use typhon_trace::reader::TraceFile;

/// Where a trace comes from.
pub(crate) enum Input {
    /// A regular file.
    File(File),
    /// Standard input, a named pipe or a device; it can be read once.
    Pipe(Pipe),
}

impl Input {
    /// Opens `path`; `-` is standard input.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::Pipe(Pipe::Stdin(io::stdin())));
        }
        let file = open_file(path)?;
        let is_regular = file.metadata().is_ok_and(|data| data.is_file());
        Ok(if is_regular { Self::File(file) } else { Self::Pipe(Pipe::Other(file)) })
    }

    /// Size, where it is known before reading.
    pub(crate) fn bytes(&self) -> Option<u64> {
        match self {
            Self::File(file) => file.metadata().ok().map(|data| data.len()),
            Self::Pipe(_) => None,
        }
    }
}

/// Opens a trace that must allow random access.
pub(crate) fn open_trace(path: &Path) -> Result<TraceFile<File>, Failure> {
    // Asked before opening, which would wait until somebody writes into a named pipe.
    let is_pipe =
        path == Path::new("-") || path.metadata().is_ok_and(|data| !data.is_file() && !data.is_dir());
    if is_pipe {
        return Err(Failure::usage("this command needs a file, not a pipe")
            .in_file(&shown(path))
            .hint("write the stream into a file first"));
    }
    trace_of(open_file(path)?, path).map_err(|err| Failure::trace(path, err))
}

/// Opens a trace that must allow random access, together with its file.
pub(crate) fn open_file_trace(path: &Path) -> Result<(File, TraceFile<File>), Failure> {
    let trace = open_trace(path)?;
    let file = trace.data().try_clone().map_err(|err| {
        Failure::new(Exit::NoInput, "the input cannot be opened twice").in_file(path).caused_by(err)
    })?;
    Ok((file, trace))
}

fn open_file(path: &Path) -> Result<File, Failure> {
    let refused = |err: io::Error| {
        Failure::new(Exit::of_opening(&err), "the input cannot be opened").in_file(path).caused_by(err)
    };
    let file = File::open(path).map_err(refused)?;
    match file.metadata() {
        Ok(data) if data.is_dir() => {
            Err(Failure::new(Exit::NoInput, "the input is a folder").in_file(path).hint("name a file in it"))
        }
        Ok(data) => {
            if data.is_file() {
                mark_in_use(&file);
            }
            Ok(file)
        }
        Err(err) => Err(refused(err)),
    }
}

/// Keeps recorders from deleting a capture to make room, or replacing it, for as long as the file is open. Where that
/// cannot be had, on file systems without locks or while a recorder is deleting the file already, what is open can be
/// read all the same. Locks of Windows would keep the recorder itself from writing; there, an open file stays anyway.
fn mark_in_use(file: &File) {
    if !cfg!(windows) {
        let _ = file.try_lock_shared();
    }
}

/// What standard input is called in messages.
const STDIN_NAME: &str = "standard input";

/// The name of an input in messages.
pub(crate) fn shown(path: &Path) -> PathBuf {
    if path == Path::new("-") { PathBuf::from(STDIN_NAME) } else { path.to_owned() }
}

/// An input, by its name in messages, as a word of a command that a message suggests.
pub(crate) fn suggested(shown: &Path) -> String {
    if shown == Path::new(STDIN_NAME) { "FILE".to_owned() } else { shell_word(shown) }
}

/// Something that can be read once, from front to back.
pub(crate) enum Pipe {
    Stdin(Stdin),
    Other(File),
}

impl Read for &Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Pipe::Stdin(stdin) => stdin.lock().read(buffer),
            Pipe::Other(file) => (&*file).read(buffer),
        }
    }
}
