//! Everything that decides how results look: streams, escapes, units, tables, JSON, progress, output files.
//!
//! **Invariants**
//! - Data goes to standard output, everything else to standard error.
//! - No text from a trace reaches a terminal unescaped.
//! - Output into a pipe or file depends neither on the terminal's width nor on its colours.

pub(crate) mod escape;
pub(crate) mod file;
pub(crate) mod json;
pub(crate) mod progress;
pub(crate) mod signals;
pub(crate) mod stream;
pub(crate) mod table;
pub(crate) mod units;
