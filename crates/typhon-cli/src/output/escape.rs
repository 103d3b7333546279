//! Text from a trace is hostile: it may hold escape sequences that reprogram a terminal, or bidirectional overrides
//! that make it read differently from what it is.

use std::borrow::Cow;
use std::fmt::Write;

/// Replaces control characters by `\x1b`-style escapes and invisible direction changes by `\u{202e}`-style ones.
/// Line breaks and tabs are control characters too: a name never spans lines.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hostile) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if !is_hostile(c) {
            safe.push(c);
            continue;
        }
        // Writing to a String cannot fail.
        let _ = match u32::from(c) {
            code @ 0..=0xff => write!(safe, "\\x{code:02x}"),
            code => write!(safe, "\\u{{{code:x}}}"),
        };
    }
    Cow::Owned(safe)
}

/// Must this character not reach a terminal as it is?
pub(crate) fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{061c}' | '\u{200e}' | '\u{200f}' // direction marks
            | '\u{2028}' | '\u{2029}' // line and paragraph separators
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') // embeddings, overrides, isolates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_text_is_not_copied() {
        assert!(matches!(printable("Worker-1 été 日本"), Cow::Borrowed(_)));
    }

    #[test]
    fn hostile_text_becomes_visible() {
        assert_eq!(printable("a\x1b[31mb\n"), "a\\x1b[31mb\\x0a");
        assert_eq!(printable("\u{9b}\u{7f}"), "\\x9b\\x7f");
        assert_eq!(printable("x\u{202e}gpj.exe"), "x\\u{202e}gpj.exe");
    }
}
