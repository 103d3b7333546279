//! A cursor over the text of a filter.

use super::ast::Op;
use super::error::FilterError;

/// A value as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Literal {
    /// The text without quotes and escapes.
    pub(crate) text: String,
    /// Whether it stood in quotes, which makes it a text even if it looks like a number.
    pub(crate) quoted: bool,
}

/// Bytes `start..end` of the source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

pub(crate) struct Lexer<'a> {
    source: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(source: &'a str) -> Self {
        Self { source, at: 0 }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    pub(crate) fn skip_space(&mut self) {
        self.at = self.source.len() - self.rest().trim_start().len();
    }

    /// The next character after white space, not consumed.
    pub(crate) fn peek(&mut self) -> Option<char> {
        self.skip_space();
        self.rest().chars().next()
    }

    /// Consumes the next character if it is `expected`.
    pub(crate) fn eat(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        if found {
            self.at += expected.len_utf8();
        }
        found
    }

    /// Consumes an operator if one comes next.
    pub(crate) fn operator(&mut self) -> Option<Op> {
        self.skip_space();
        let (text, op) = Op::SPELLINGS.iter().find(|(text, _)| self.rest().starts_with(text))?;
        self.at += text.len();
        Some(*op)
    }

    /// A key or bare word: up to white space, punctuation or an operator. May be empty.
    pub(crate) fn word(&mut self) -> (&'a str, Place) {
        self.run(|c| c.is_whitespace() || "|()\"=!<>~".contains(c))
    }

    /// A value: quoted, or up to white space or punctuation.
    pub(crate) fn value(&mut self) -> Result<(Literal, Place), FilterError> {
        if self.peek() == Some('"') {
            return self.quoted();
        }
        let (text, place) = self.run(|c| c.is_whitespace() || "|()".contains(c));
        if text.is_empty() || text.starts_with(['=', '!', '<', '>', '~']) {
            return Err(self.error(place, "a value is missing after the operator"));
        }
        Ok((Literal { text: text.to_owned(), quoted: false }, place))
    }

    fn run(&mut self, ends: impl Fn(char) -> bool) -> (&'a str, Place) {
        self.skip_space();
        let rest = self.rest();
        let text = &rest[..rest.find(ends).unwrap_or(rest.len())];
        let start = self.at;
        self.at += text.len();
        (text, Place { start, end: self.at })
    }

    pub(crate) fn quoted(&mut self) -> Result<(Literal, Place), FilterError> {
        let start = self.at;
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1).peekable();
        while let Some((offset, c)) = chars.next() {
            match c {
                '"' => {
                    self.at = start + offset + 1;
                    return Ok((Literal { text, quoted: true }, Place { start, end: self.at }));
                }
                '\\' => match chars.next_if(|(_, next)| matches!(next, '"' | '\\')) {
                    Some((_, escaped)) => text.push(escaped),
                    None => text.push('\\'),
                },
                other => text.push(other),
            }
        }
        Err(self.error(Place { start, end: start + 1 }, "this quote is never closed"))
    }

    pub(crate) fn error(&self, place: Place, message: impl Into<String>) -> FilterError {
        FilterError::spanning(self.source, place.start, place.end, message)
    }

    /// An error at the next character.
    pub(crate) fn error_here(&mut self, message: impl Into<String>) -> FilterError {
        let width = self.peek().map_or(0, char::len_utf8);
        self.error(Place { start: self.at, end: self.at + width }, message)
    }
}
