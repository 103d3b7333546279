//! A part of the trace as a trace of its own (brief 11 §5.5).

use super::{Cancel, Session, SessionError};
use crate::export::{Cut, Scope, cut};
use std::borrow::Cow;
use std::fs::File;
use std::ops::{ControlFlow, Range};

impl Session {
    /// Writes what touches a time into a file: a closed trace, as `typhon trace export --to trace --range` writes it.
    ///
    /// # Errors
    /// When the index is not ready, the trace cannot be read or the file not be written, or cancelled.
    pub fn cut(&self, range_ns: Range<u64>, sink: File, cancel: &Cancel) -> Result<Cut, SessionError> {
        let index = self.index()?;
        let scope = Scope {
            filter: None,
            window: Some(self.window(range_ns)?),
            survey: Some(Cow::Borrowed(&index.survey)),
        };
        let go_on =
            |_| if cancel.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let cut = cut(self.trace(), Some(&scope), sink, go_on)?.ok_or(SessionError::Cancelled)?;
        self.shared.check_length()?;
        match cut.written.problems.first() {
            None => Ok(cut),
            Some(problem) => Err(SessionError::Cut(problem.error.to_string())),
        }
    }
}
