//! How commands that write a file end: what was written, and what was lost.

use super::notices;
use crate::failure::{Exit, Failure};
use crate::output::escape::printable;
use crate::output::json;
use crate::output::stream::{Style, print};
use crate::output::units::{bytes, plural};
use serde_json::json;
use std::path::{Path, PathBuf};
use typhon_trace::Notice;
use typhon_trace::writer::CloseReport;

/// The end of a command that writes a file.
pub(crate) struct Conclusion {
    /// Name of the command, for the schema.
    pub(crate) command: &'static str,
    /// The file; `None` for a dry run.
    pub(crate) output: Option<PathBuf>,
    /// Its size.
    pub(crate) bytes: u64,
    /// Records in it.
    pub(crate) records: u64,
    /// Records that the recorder of the source reported as dropped.
    pub(crate) dropped: u64,
    /// Length of the recording that was written, where the format has such a thing.
    pub(crate) duration_ns: Option<i64>,
    /// What is in the source and not in the output because of damage.
    pub(crate) losses: Vec<Notice>,
}

impl Conclusion {
    /// Says it on standard output.
    pub(crate) fn print(&self, style: &Style) -> Result<(), Failure> {
        if style.json {
            print(&json::document(&json!({
                "schema": format!("typhon.{}/1", self.command),
                "output": self.output.as_ref().map(|path| path.to_string_lossy()),
                "bytes": self.bytes,
                "records": self.records,
                "dropped": self.dropped,
                "durationNs": self.duration_ns,
                "losses": notices::to_json(&self.losses),
            })))
        } else {
            print(self.text().as_bytes())
        }
    }

    fn text(&self) -> String {
        let target = match &self.output {
            Some(path) => printable(&path.to_string_lossy()).into_owned(),
            None => "dry run".to_owned(),
        };
        let mut text = format!("{target}  {}  {}\n", bytes(self.bytes), plural(self.records, "record"));
        for loss in &self.losses {
            text.push_str(&format!("  lost: {}\n", notices::line(loss)));
        }
        text
    }
}

/// A copy that could not be closed is no copy.
pub(crate) fn check_closed(report: &mut CloseReport, path: &Path) -> Result<(), Failure> {
    if report.complete && report.problems.is_empty() {
        return Ok(());
    }
    let failure = Failure::new(Exit::Io, "the output could not be completed").in_file(path);
    Err(match report.problems.pop() {
        Some(problem) => failure.detail(format!("step  {:?}", problem.step)).caused_by(problem.error),
        None => failure,
    })
}
