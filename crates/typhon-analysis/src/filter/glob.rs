//! Text patterns: globs with `*`, and regular expressions.

use regex::{Regex, RegexBuilder};

/// Largest compiled form of a regular expression; beyond it the expression is refused.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// A test of a text.
#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    /// The whole text, `*` standing for any run of characters; ASCII case does not matter.
    Glob(String),
    /// Found anywhere in the text; ASCII case does not matter.
    Substring(String),
    /// Found anywhere in the text.
    Regex(Box<Regex>),
}

impl Pattern {
    /// Compiles a regular expression with bounded memory.
    pub(crate) fn regex(source: &str) -> Result<Self, String> {
        RegexBuilder::new(source)
            .size_limit(REGEX_BYTES_MAX)
            .dfa_size_limit(REGEX_BYTES_MAX)
            .nest_limit(64)
            .build()
            .map(|regex| Self::Regex(Box::new(regex)))
            .map_err(|err| match err {
                regex::Error::CompiledTooBig(_) => "the regular expression is too large".to_owned(),
                // The last line of the message says what is wrong; the lines before repeat the pattern.
                other => other.to_string().lines().last().unwrap_or_default().trim().to_owned(),
            })
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        match self {
            Self::Glob(pattern) => glob_matches(pattern, text),
            Self::Substring(part) => contains_ignoring_case(text.as_bytes(), part.as_bytes()),
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

/// Does the whole text match a glob, in which `*` stands for any run of characters? ASCII case does not matter.
pub fn glob_matches(pattern: &str, text: &str) -> bool {
    // On a mismatch only the last star needs to take one byte more: an earlier star could not help, since everything
    // up to the last star has already been placed at its leftmost.
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                retry = Some((p, t));
            }
            Some(byte) if byte.eq_ignore_ascii_case(&text[t]) => {
                p += 1;
                t += 1;
            }
            _ => match &mut retry {
                Some((after_star, from)) => {
                    *from += 1;
                    (p, t) = (*after_star, *from);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

fn contains_ignoring_case(text: &[u8], part: &[u8]) -> bool {
    part.is_empty() || text.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (pattern, text, expected) in [
            ("BTree*", "BTreeInsert", true),
            ("btree*", "BTreeInsert", true),
            ("*Insert", "BTreeInsert", true),
            ("B*e*t", "BTreeInsert", true),
            ("B*x*t", "BTreeInsert", false),
            ("BTree", "BTreeInsert", false),
            ("*", "", true),
            ("", "", true),
            ("", "x", false),
            ("a*a", "a", false),
            ("*ab", "aab", true),
            ("é*", "été", true),
        ] {
            assert_eq!(glob_matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn regexes_are_limited_in_size() {
        assert!(Pattern::regex(r"(\w{200}){200}").is_err());
        assert!(Pattern::regex("(").is_err());
        assert!(Pattern::regex("^a+$").expect("valid").matches("aaa"));
    }
}
