//! Text from a trace is hostile: it may hold escape sequences that reprogram a terminal, or bidirectional overrides
//! that make it read differently from what it is.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

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

/// A file name as a word for a shell, for commands that messages suggest.
pub(crate) fn shell_word(path: &Path) -> String {
    let name = path.to_string_lossy();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    // A name that begins like an option would be taken for one.
    let prefix = if name.starts_with('-') { "./" } else { "" };
    if !name.is_empty() && name.chars().all(is_plain) {
        return format!("{prefix}{name}");
    }
    format!("'{prefix}{}'", printable(&name).replace('\'', "'\\''"))
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
    fn suggested_commands_name_one_file_whatever_it_is_called() {
        for (name, word) in [
            ("run-1.typhon-trace", "run-1.typhon-trace"),
            ("/tmp/été.tr", "/tmp/été.tr"),
            ("my run.tr", "'my run.tr'"),
            ("a;reboot", "'a;reboot'"),
            ("it's", "'it'\\''s'"),
            ("--force", "./--force"),
            ("-x y", "'./-x y'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(Path::new(name)), word);
        }
    }

    #[test]
    fn hostile_text_becomes_visible() {
        assert_eq!(printable("a\x1b[31mb\n"), "a\\x1b[31mb\\x0a");
        assert_eq!(printable("\u{9b}\u{7f}"), "\\x9b\\x7f");
        assert_eq!(printable("x\u{202e}gpj.exe"), "x\\u{202e}gpj.exe");
    }
}
