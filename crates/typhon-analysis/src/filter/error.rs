//! What is wrong with a filter, and where.

use std::fmt;

/// A mistake in a filter. Displays as one line; [`FilterError::pointer`] draws the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FilterError {
    /// Column of the first wrong character, counted in characters from 1.
    pub column: usize,
    /// How many characters are wrong, at least 1.
    pub width: usize,
    /// What is wrong.
    pub message: String,
    /// The nearest valid word or another remedy.
    pub hint: Option<String>,
}

impl FilterError {
    /// An error about the bytes `start..end` of `source`; both must lie on character boundaries.
    pub(crate) fn spanning(source: &str, start: usize, end: usize, message: impl Into<String>) -> Self {
        Self {
            column: source[..start].chars().count() + 1,
            width: source[start..end].chars().count().max(1),
            message: message.into(),
            hint: None,
        }
    }

    /// Adds a remedy.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds "did you mean …" when a near word is known.
    #[must_use]
    pub(crate) fn suggest(self, nearest: Option<&str>) -> Self {
        match nearest {
            Some(word) => self.hint(format!("did you mean `{word}`?")),
            None => self,
        }
    }

    /// A line of `^` that belongs under the source text.
    pub fn pointer(&self) -> String {
        format!("{}{}", " ".repeat(self.column - 1), "^".repeat(self.width))
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (column {})", self.message, self.column)
    }
}
