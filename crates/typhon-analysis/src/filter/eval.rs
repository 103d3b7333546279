//! Does a record pass?

use super::ast::{Expr, FieldTest, Filter, NumberTest, Op, Term, Test, TextTest};
use super::keys::Key;
use super::number::Number;
use std::borrow::Cow;
use std::cmp::Ordering;

/// What a filter may ask about one record. `None` means that the record has no such thing, or that it is not known.
pub trait Facts {
    /// Event kind id.
    fn kind(&self) -> u8;
    /// Thread slot.
    fn slot(&self) -> u8;
    /// Number of the tick.
    fn tick(&self) -> u64;
    /// Start, in nanoseconds since the first record of the trace.
    fn ts_ns(&self) -> i64;
    /// Duration in nanoseconds; spans only.
    fn dur_ns(&self) -> Option<i64>;
    /// Duration without that of the spans directly inside, in nanoseconds; spans only.
    fn self_ns(&self) -> Option<i64>;
    /// Spans of the same slot around this one; spans only.
    fn depth(&self) -> Option<u32>;
    /// Span id; spans only.
    fn span_id(&self) -> Option<u64>;
    /// Parent's span id; spans with a parent only.
    fn parent_span_id(&self) -> Option<u64>;
    /// Trace id as 32 hexadecimal digits.
    fn trace_id(&self) -> Option<Cow<'_, str>>;
    /// Source-location id.
    fn site_id(&self) -> Option<u16>;
    /// Texts that name the source location: `file:line` and the method.
    fn site_texts(&self) -> [Option<Cow<'_, str>>; 2];
    /// What a bar of this record says: the system, the user's text, or the kind.
    fn name(&self) -> Option<Cow<'_, str>>;
    /// Name of the thread that had the slot.
    fn thread(&self) -> Option<Cow<'_, str>>;
    /// The system that the record is about.
    fn system(&self) -> Option<SystemRef<'_>>;
    /// A payload field by its registry name.
    fn field(&self, name: &str) -> Option<FieldFact<'_>>;
}

/// A system of the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemRef<'a> {
    /// Index in the systems table.
    pub index: u16,
    /// Its name, when the table has it.
    pub name: Option<&'a str>,
}

/// A payload field of one record.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FieldFact<'a> {
    /// The number on the wire; booleans are 0 and 1.
    pub number: Option<Number>,
    /// The same in nanoseconds, if the field is a time.
    pub nanoseconds: Option<Number>,
    /// The text of a text field, the name of an enumerated value, or `true` and `false`.
    pub text: Option<Cow<'a, str>>,
}

impl Filter {
    /// Does the record pass?
    pub fn matches<F: Facts + ?Sized>(&self, facts: &F) -> bool {
        self.root.matches(facts)
    }
}

impl Expr {
    fn matches<F: Facts + ?Sized>(&self, facts: &F) -> bool {
        match self {
            Self::And(parts) => parts.iter().all(|part| part.matches(facts)),
            Self::Or(parts) => parts.iter().any(|part| part.matches(facts)),
            Self::Not(inner) => !inner.matches(facts),
            Self::Term(term) => term.matches(facts),
        }
    }
}

impl Term {
    fn matches<F: Facts + ?Sized>(&self, facts: &F) -> bool {
        match &self.test {
            Test::Kinds(set) => set.contains(facts.kind()),
            Test::Number(test) => number_of(&self.key, facts).is_some_and(|number| test.matches(number)),
            Test::Text(test) => match &self.key {
                Key::Site => test.matches_any(facts.site_texts()),
                Key::Name => test.matches_any([facts.name()]),
                Key::Thread => test.matches_any([facts.thread()]),
                Key::Trace => test.matches_any([facts.trace_id()]),
                Key::System => {
                    test.matches_any([facts.system().and_then(|system| system.name).map(Cow::Borrowed)])
                }
                _ => false,
            },
            Test::Field(kinds, test) => match &self.key {
                Key::Field(name) if kinds.contains(facts.kind()) => {
                    facts.field(name).is_some_and(|fact| test.matches(&fact))
                }
                _ => false,
            },
        }
    }
}

fn number_of<F: Facts + ?Sized>(key: &Key, facts: &F) -> Option<Number> {
    let value: i128 = match key {
        Key::Slot => facts.slot().into(),
        Key::System => facts.system()?.index.into(),
        Key::Tick => facts.tick().into(),
        Key::Ts => facts.ts_ns().into(),
        Key::Dur => facts.dur_ns()?.into(),
        Key::SelfTime => facts.self_ns()?.into(),
        Key::Depth => facts.depth()?.into(),
        Key::Site => facts.site_id()?.into(),
        Key::Span => facts.span_id()?.into(),
        Key::Parent => facts.parent_span_id()?.into(),
        _ => return None,
    };
    Some(Number::Int(value))
}

impl FieldTest {
    fn matches(&self, fact: &FieldFact<'_>) -> bool {
        match self {
            Self::Number(test) => fact.number.is_some_and(|number| test.matches(number)),
            Self::Nanoseconds(test) => fact.nanoseconds.is_some_and(|number| test.matches(number)),
            Self::Text(test) => {
                let digits = fact.number.map(|number| match number {
                    Number::Int(value) => Cow::Owned(value.to_string()),
                    Number::Float(value) => Cow::Owned(value.to_string()),
                });
                test.matches_any([fact.text.as_deref().map(Cow::Borrowed), digits])
            }
        }
    }
}

impl TextTest {
    /// Several texts say the same thing; one that passes is enough, and with `!=` none may. With no text at all the
    /// record lacks the thing, and nothing holds.
    pub(super) fn matches_any<'a>(&self, texts: impl IntoIterator<Item = Option<Cow<'a, str>>>) -> bool {
        let mut any = false;
        for text in texts.into_iter().flatten() {
            any = true;
            if self.pattern.matches(&text) {
                return !self.negated;
            }
        }
        any && self.negated
    }
}

impl NumberTest {
    pub(crate) fn matches(&self, value: Number) -> bool {
        match self {
            Self::Range { range, negated } => range.contains(value) != *negated,
            Self::Compare(op, bound) => value.compare(*bound).is_some_and(|order| match op {
                Op::Eq => order == Ordering::Equal,
                Op::Ne => order != Ordering::Equal,
                Op::Lt => order == Ordering::Less,
                Op::Le => order != Ordering::Greater,
                Op::Gt => order == Ordering::Greater,
                Op::Ge => order != Ordering::Less,
                Op::Match | Op::Contains => false,
            }),
        }
    }
}
