//! What is wrong with a configuration, one printable line per fault.

use std::fmt;

use super::source::Origin;

/// What kind of fault it is, for programs that want to react to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultCode {
    /// No such key.
    UnknownKey,
    /// The text is not a value of the key's type.
    InvalidValue,
    /// A number outside the key's range.
    OutOfRange,
    /// The same key twice in one source; the later one counts.
    DuplicateKey,
    /// Not JSON, or larger than a configuration may be; the whole file is ignored.
    MalformedFile,
    /// The file exists and cannot be read.
    UnreadableFile,
    /// A key of older programs that no longer does anything.
    Obsolete,
    /// A key of a part this version does not have.
    NotAvailable,
    /// Valid, but another setting makes it ineffective.
    NoEffect,
    /// A capture destination that cannot be used.
    Destination,
}

/// One fault: where, what, and what to do. Faults never stop a program; the value concerned counts as absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Kind of fault.
    pub code: FaultCode,
    /// Source that holds the value.
    pub origin: Origin,
    /// Key in its full form (`Typhon:Profiler:…`); empty when the fault concerns a whole file.
    pub key: String,
    /// What is wrong, without the remedy.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

impl Fault {
    pub(crate) fn new(
        code: FaultCode,
        origin: &Origin,
        key: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            code,
            origin: origin.clone(),
            key: key.to_owned(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

/// `source: key: problem; remedy`, always one line: control characters of foreign text are escaped and long text is cut.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        // The name of a variable is its key.
        if !self.key.is_empty() && !matches!(self.origin, Origin::Environment(_)) {
            write!(f, "{}: ", printable(&self.key))?;
        }
        write!(f, "{}; {}", escaped(&self.problem), escaped(&self.remedy))
    }
}

/// Foreign text made fit for a log line: at most 80 characters, none of which moves a cursor or reorders text.
pub(crate) fn printable(text: &str) -> String {
    const LONGEST: usize = 80;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => escaped(&text[..end]) + "…",
        None => escaped(text),
    }
}

/// Control characters as `\u{…}`.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_bidi_control(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_one_line_whatever_the_text() {
        let hostile = "Typhon:\n\u{1b}[2J\u{202e}".to_owned() + &"x".repeat(1000);
        let origin = Origin::Environment("TYPHON__X\r\n".to_owned());
        let fault = Fault::new(FaultCode::UnknownKey, &origin, &hostile, "no file at a\nb", "remove it");
        let line = fault.to_string();
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert!(!line.contains('\u{202e}'));
        assert!(line.chars().count() < 300, "{}", line.len());
    }
}
