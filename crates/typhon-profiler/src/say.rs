//! What the profiler has to tell the program's user: lines on standard error.
#![forbid(unsafe_code)]

use crate::config::escaped;
use std::fmt;
use std::io::{self, Write};

/// One line on standard error, whatever is in its text, and in one piece, so that those of several processes do not mix.
///
/// Never fails and never panics, as `eprintln!` would: a program without standard error, or with one on the disk that
/// has just become full, has nobody to tell.
pub(crate) fn say(line: impl fmt::Display) {
    let line = escaped(&line.to_string());
    let _ = io::stderr().lock().write_all(format!("typhon-profiler: {line}\n").as_bytes());
}
