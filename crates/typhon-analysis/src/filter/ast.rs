//! A parsed filter.

use super::glob::Pattern;
use super::keys::{Key, KindSet};
use super::lexer::Literal;
use super::number::{Number, NumberRange};
use std::fmt;

/// A parsed filter. Displays in its canonical spelling, which parses to the same filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    pub(crate) root: Expr,
}

impl Filter {
    /// Does it ask for the tick or the thread of a record, which only a survey of the whole trace can tell by time?
    pub fn needs_survey(&self) -> bool {
        self.root.mentions(&|key| matches!(key, Key::Tick | Key::Thread))
    }

    /// Does it ask for the self time or the depth of a span, which follow from the spans around it?
    pub fn needs_places(&self) -> bool {
        self.root.mentions(&|key| matches!(key, Key::SelfTime | Key::Depth))
    }

    /// How many comparisons it holds; at least 1.
    pub(crate) fn terms(&self) -> usize {
        self.root.terms()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expr {
    /// Two or more, none of them an `And`.
    And(Vec<Expr>),
    /// Two or more, none of them an `Or`.
    Or(Vec<Expr>),
    Not(Box<Expr>),
    Term(Term),
}

impl Expr {
    pub(super) fn mentions(&self, wanted: &impl Fn(&Key) -> bool) -> bool {
        match self {
            Self::And(parts) | Self::Or(parts) => parts.iter().any(|part| part.mentions(wanted)),
            Self::Not(part) => part.mentions(wanted),
            Self::Term(term) => wanted(&term.key),
        }
    }

    fn terms(&self) -> usize {
        match self {
            Self::And(parts) | Self::Or(parts) => parts.iter().map(Self::terms).sum(),
            Self::Not(part) => part.terms(),
            Self::Term(_) => 1,
        }
    }
}

/// One comparison. What it does follows from the first three members, so that these alone decide equality.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    pub(crate) key: Key,
    pub(crate) op: Op,
    pub(crate) literal: Literal,
    pub(crate) test: Test,
}

impl PartialEq for Term {
    fn eq(&self, other: &Self) -> bool {
        (&self.key, self.op, &self.literal) == (&other.key, other.op, &other.literal)
    }
}

/// How a term compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Match,
    /// A word without key and operator.
    Contains,
}

impl Op {
    /// Longer spellings first. `==` is accepted because many type it.
    pub(crate) const SPELLINGS: &'static [(&'static str, Self)] = &[
        ("!=", Self::Ne),
        ("<=", Self::Le),
        (">=", Self::Ge),
        ("==", Self::Eq),
        ("=", Self::Eq),
        ("<", Self::Lt),
        (">", Self::Gt),
        ("~", Self::Match),
    ];

    fn spelling(self) -> &'static str {
        match self {
            Self::Eq => "=",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::Match => "~",
            Self::Contains => "",
        }
    }
}

/// A term ready to be evaluated.
#[derive(Debug, Clone)]
pub(crate) enum Test {
    /// The kind is in the set.
    Kinds(KindSet),
    /// A number of the record.
    Number(NumberTest),
    /// A text of the record.
    Text(TextTest),
    /// A payload field of the kinds in the set.
    Field(KindSet, FieldTest),
}

#[derive(Debug, Clone)]
pub(crate) enum FieldTest {
    /// The number on the wire.
    Number(NumberTest),
    /// The time it means, in nanoseconds.
    Nanoseconds(NumberTest),
    /// Its text, the name of its value, or its digits.
    Text(TextTest),
}

#[derive(Debug, Clone)]
pub(crate) struct TextTest {
    pub(crate) pattern: Pattern,
    pub(crate) negated: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum NumberTest {
    Compare(Op, Number),
    Range { range: NumberRange, negated: bool },
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.root)
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::And(parts) => write_joined(f, parts, " ", |part| matches!(part, Self::Or(_))),
            Self::Or(parts) => write_joined(f, parts, " | ", |_| false),
            Self::Not(inner) => match **inner {
                Self::And(_) | Self::Or(_) => write!(f, "!({inner})"),
                _ => write!(f, "!{inner}"),
            },
            Self::Term(term) => write!(f, "{term}"),
        }
    }
}

fn write_joined(
    f: &mut fmt::Formatter<'_>,
    parts: &[Expr],
    separator: &str,
    needs_parentheses: impl Fn(&Expr) -> bool,
) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            f.write_str(separator)?;
        }
        if needs_parentheses(part) { write!(f, "({part})")? } else { write!(f, "{part}")? }
    }
    Ok(())
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.op != Op::Contains {
            write!(f, "{}{}", self.key, self.op.spelling())?;
        }
        write!(f, "{}", self.literal)
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.quoted {
            return f.write_str(&self.text);
        }
        write!(f, "\"{}\"", self.text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}
