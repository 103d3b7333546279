//! Text to filter, by recursive descent with a limit on nesting.

use super::ast::{Expr, FieldTest, Filter, NumberTest, Op, Term, Test, TextTest};
use super::error::FilterError;
use super::glob::Pattern;
use super::keys::{FieldUse, Key, KindSet};
use super::lexer::{Lexer, Literal, Place};
use super::number::{Dimension, Number, UNITS_HINT, parse_quantity, parse_range, split_range};
use super::suggest::nearest;
use typhon_trace::registry;

/// Parentheses and negations may nest this deep.
const NESTING_MAX: usize = 64;
/// Bytes of a filter. Nobody types as much, and a search keeps a filter's terms for every name of a recording.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Comparisons in a filter.
const TERMS_MAX: usize = 1_000;
/// Regular expressions in a filter: a few characters can stand for one that takes a mebibyte.
const REGEXES_MAX: usize = 32;

/// Words that other languages join terms with. Alone they would search for themselves, which nobody means.
const FOREIGN_OPERATORS: &[(&str, &str)] = &[
    ("and", "terms joined by a space must all hold"),
    ("&&", "terms joined by a space must all hold"),
    ("&", "terms joined by a space must all hold"),
    ("or", "write `|`"),
    ("not", "write `!` before the term"),
];

pub(crate) fn parse(text: &str) -> Result<Filter, FilterError> {
    if text.len() > TEXT_BYTES_MAX {
        let at = text.floor_char_boundary(TEXT_BYTES_MAX);
        return Err(FilterError::spanning(text, at, at, format!("more than {} KiB", TEXT_BYTES_MAX >> 10)));
    }
    let mut parser = Parser { lexer: Lexer::new(text), depth: 0, terms: 0, regexes: 0 };
    let root = parser.alternatives()?;
    match parser.lexer.peek() {
        None => Ok(Filter { root }),
        Some(c) => Err(parser.lexer.error_here(format!("`{c}` does not belong here"))),
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    depth: usize,
    /// Seen so far.
    terms: usize,
    regexes: usize,
}

impl Parser<'_> {
    fn alternatives(&mut self) -> Result<Expr, FilterError> {
        let mut parts = Vec::new();
        loop {
            match self.conjunction()? {
                Expr::Or(inner) => parts.extend(inner),
                other => parts.push(other),
            }
            if !self.lexer.eat('|') {
                break;
            }
        }
        Ok(single_or(parts, Expr::Or))
    }

    fn conjunction(&mut self) -> Result<Expr, FilterError> {
        let mut parts = Vec::new();
        loop {
            match self.unary()? {
                Expr::And(inner) => parts.extend(inner),
                other => parts.push(other),
            }
            if matches!(self.lexer.peek(), None | Some('|' | ')')) {
                break;
            }
        }
        Ok(single_or(parts, Expr::And))
    }

    fn unary(&mut self) -> Result<Expr, FilterError> {
        match self.lexer.peek() {
            Some('!') => {
                self.lexer.eat('!');
                self.nested(|parser| Ok(Expr::Not(Box::new(parser.unary()?))))
            }
            Some('(') => {
                let open = self.lexer.position();
                self.lexer.eat('(');
                self.nested(|parser| {
                    let inner = parser.alternatives()?;
                    if parser.lexer.eat(')') {
                        return Ok(inner);
                    }
                    Err(parser.lexer.error(Place { start: open, end: open + 1 }, "this `(` is never closed"))
                })
            }
            None | Some('|' | ')') => Err(self.lexer.error_here("a term is missing here")),
            Some(_) => {
                self.count_term()?;
                self.term().map(Expr::Term)
            }
        }
    }

    fn count_term(&mut self) -> Result<(), FilterError> {
        self.terms += 1;
        match self.terms > TERMS_MAX {
            true => Err(self.lexer.error_here(format!("more than {TERMS_MAX} comparisons"))),
            false => Ok(()),
        }
    }

    /// Counts a regular expression before it is made.
    fn count_regex(&mut self, op: Op, place: Place) -> Result<(), FilterError> {
        self.regexes += usize::from(op == Op::Match);
        match self.regexes > REGEXES_MAX {
            true => Err(self.lexer.error(place, format!("more than {REGEXES_MAX} regular expressions"))),
            false => Ok(()),
        }
    }

    fn nested(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<Expr, FilterError>,
    ) -> Result<Expr, FilterError> {
        if self.depth == NESTING_MAX {
            return Err(self.lexer.error_here(format!("more than {NESTING_MAX} levels of nesting")));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn term(&mut self) -> Result<Term, FilterError> {
        if self.lexer.peek() == Some('"') {
            let (literal, _) = self.lexer.quoted()?;
            return Ok(substring_of_name(literal));
        }
        let (word, place) = self.lexer.word();
        let Some(op) = self.lexer.operator() else {
            return self.bare_word(word, place);
        };
        if word.is_empty() {
            return Err(self.lexer.error(place, "a key is missing before the operator"));
        }
        let key = Key::parse(word).map_err(|unknown| {
            self.lexer.error(place, unknown.message).suggest(unknown.nearest.as_deref())
        })?;
        let (literal, value_place) = self.lexer.value()?;
        self.count_regex(op, value_place)?;
        let compiler = Compiler { lexer: &self.lexer, key_place: place, value_place };
        let test = compiler.test(&key, op, &literal)?;
        Ok(Term { key, op, literal, test })
    }

    fn bare_word(&self, word: &str, place: Place) -> Result<Term, FilterError> {
        let foreign = FOREIGN_OPERATORS.iter().find(|(other, _)| word.eq_ignore_ascii_case(other));
        match foreign {
            Some((_, remedy)) => Err(self
                .lexer
                .error(place, format!("`{word}` is no operator"))
                .hint(format!("{remedy}; to search for the word itself, quote it"))),
            None => Ok(substring_of_name(Literal { text: word.to_owned(), quoted: false })),
        }
    }
}

fn single_or(mut parts: Vec<Expr>, join: impl FnOnce(Vec<Expr>) -> Expr) -> Expr {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            join(parts)
        }
    }
}

fn substring_of_name(literal: Literal) -> Term {
    let pattern = Pattern::Substring(literal.text.clone());
    Term { key: Key::Name, op: Op::Contains, literal, test: Test::Text(TextTest { pattern, negated: false }) }
}

/// Turns key, operator and value into a test, or says why they do not fit together.
struct Compiler<'l, 'a> {
    lexer: &'l Lexer<'a>,
    key_place: Place,
    value_place: Place,
}

impl Compiler<'_, '_> {
    fn test(&self, key: &Key, op: Op, literal: &Literal) -> Result<Test, FilterError> {
        match key {
            Key::Kind => self.kinds(op, literal),
            Key::Id => {
                let test = self.number(key, op, literal, Dimension::Plain)?;
                let ids = (0..=u8::MAX).filter(|&id| test.matches(Number::Int(id.into())));
                match KindSet::of(ids) {
                    none if none.is_empty() => {
                        Err(self.value_error("kinds have ids from 0 to 255".to_owned()))
                    }
                    ids => Ok(Test::Kinds(ids)),
                }
            }
            Key::Family => {
                let test = self.text(key, op, literal)?;
                let families = registry::KINDS.iter().map(|kind| kind.family);
                self.kinds_where(literal, &test, families, |kind| kind.family)
            }
            Key::Name | Key::Thread | Key::Trace => Ok(Test::Text(self.text(key, op, literal)?)),
            Key::Ts | Key::Dur | Key::SelfTime => {
                Ok(Test::Number(self.number(key, op, literal, Dimension::Time)?))
            }
            Key::Slot | Key::Tick | Key::Depth | Key::Span | Key::Parent => {
                Ok(Test::Number(self.number(key, op, literal, Dimension::Plain)?))
            }
            Key::System | Key::Site if looks_numeric(op, literal) => {
                Ok(Test::Number(self.number(key, op, literal, Dimension::Plain)?))
            }
            Key::System | Key::Site => Ok(Test::Text(self.text(key, op, literal)?)),
            Key::Field(name) => self.field(key, name, op, literal),
        }
    }

    fn kinds(&self, op: Op, literal: &Literal) -> Result<Test, FilterError> {
        if looks_numeric(op, literal) {
            return self.test(&Key::Id, op, literal);
        }
        let test = self.text(&Key::Kind, op, literal)?;
        self.kinds_where(literal, &test, registry::KINDS.iter().map(|kind| kind.name), |kind| kind.name)
    }

    /// The kinds whose name or family passes. A pattern that no kind could pass is a typing error.
    fn kinds_where(
        &self,
        literal: &Literal,
        test: &TextTest,
        known: impl Iterator<Item = &'static str>,
        text_of: impl Fn(&registry::KindInfo) -> &'static str,
    ) -> Result<Test, FilterError> {
        let passing = registry::KINDS.iter().filter(|kind| test.pattern.matches(text_of(kind)));
        let set = KindSet::of(passing.map(|kind| kind.id));
        if set.is_empty() {
            let message = format!("nothing in the registry matches `{}`", literal.text);
            return Err(self.value_error(message).suggest(nearest(&literal.text, known)));
        }
        Ok(Test::Kinds(if test.negated { set.complement() } else { set }))
    }

    fn field(&self, key: &Key, name: &str, op: Op, literal: &Literal) -> Result<Test, FilterError> {
        let Some(uses) = FieldUse::find(name) else {
            let near = FieldUse::nearest(name).map(|near| format!("field.{near}"));
            let message = format!("no kind has a field `{name}`");
            return Err(self.lexer.error(self.key_place, message).suggest(near.as_deref()));
        };
        let test = if looks_numeric(op, literal) {
            match self.dimension(literal) {
                Dimension::Plain => FieldTest::Number(self.number(key, op, literal, Dimension::Plain)?),
                Dimension::Time if uses.is_time => {
                    FieldTest::Nanoseconds(self.number(key, op, literal, Dimension::Time)?)
                }
                Dimension::Time => return Err(self.value_error(format!("`{key}` is not a time"))),
            }
        } else {
            self.check_value_name(name, &uses, op, literal)?;
            FieldTest::Text(self.text(key, op, literal)?)
        };
        Ok(Test::Field(uses.kinds, test))
    }

    /// A word compared with a number must be the name of one of its values, else it could never hold.
    fn check_value_name(
        &self,
        name: &str,
        uses: &FieldUse,
        op: Op,
        literal: &Literal,
    ) -> Result<(), FilterError> {
        let exact = matches!(op, Op::Eq | Op::Ne) && !literal.text.contains('*');
        if !exact || uses.is_text || ["true", "false"].iter().any(|b| literal.text.eq_ignore_ascii_case(b)) {
            return Ok(());
        }
        let names = || uses.enumerations.iter().flat_map(|e| e.values).map(|(_, value_name)| *value_name);
        if names().any(|value_name| value_name.eq_ignore_ascii_case(&literal.text)) {
            return Ok(());
        }
        let message = format!("`{}` is no value of `field.{name}`", literal.text);
        Err(self.value_error(message).suggest(nearest(&literal.text, names())))
    }

    /// Does any bound of the literal measure a time?
    fn dimension(&self, literal: &Literal) -> Dimension {
        let (from, to) = split_range(&literal.text).map_or((literal.text.as_str(), ""), |(a, b, _)| (a, b));
        let is_time = |part| parse_quantity(part).is_some_and(|q| q.dimension == Dimension::Time);
        if is_time(from) || is_time(to) { Dimension::Time } else { Dimension::Plain }
    }

    fn text(&self, key: &Key, op: Op, literal: &Literal) -> Result<TextTest, FilterError> {
        let (pattern, negated) = match op {
            Op::Eq => (Pattern::Glob(literal.text.clone()), false),
            Op::Ne => (Pattern::Glob(literal.text.clone()), true),
            Op::Match => (Pattern::regex(&literal.text).map_err(|why| self.value_error(why))?, false),
            _ => {
                let message = format!("`{key}` with a text cannot be ordered");
                return Err(self.lexer.error(self.key_place, message).hint("use = != or ~"));
            }
        };
        Ok(TextTest { pattern, negated })
    }

    fn number(
        &self,
        key: &Key,
        op: Op,
        literal: &Literal,
        dimension: Dimension,
    ) -> Result<NumberTest, FilterError> {
        if op == Op::Match {
            let message = format!("`{key}` is a number, `~` is for texts");
            return Err(self.lexer.error(self.key_place, message).hint("use = != < <= > >= or a range"));
        }
        if split_range(&literal.text).is_some() {
            let negated = match op {
                Op::Eq => false,
                Op::Ne => true,
                _ => return Err(self.value_error("a range goes with = or !=".to_owned())),
            };
            let range = parse_range(&literal.text, dimension).map_err(|err| self.shifted(err, literal))?;
            return Ok(NumberTest::Range { range, negated });
        }
        match parse_quantity(&literal.text) {
            Some(quantity) if dimension == Dimension::Time || quantity.dimension == Dimension::Plain => {
                Ok(NumberTest::Compare(op, quantity.number))
            }
            Some(_) => Err(self.value_error(format!("`{key}` is not a time"))),
            None => {
                let message = format!("`{}` is not a number", literal.text);
                Err(self.value_error(message).hint(UNITS_HINT))
            }
        }
    }

    /// Moves an error about a part of the value to its place in the whole text. Inside quotes escapes may shift
    /// columns, so the whole value is pointed at.
    fn shifted(&self, err: FilterError, literal: &Literal) -> FilterError {
        let whole = self.value_error(err.message.clone());
        let moved = if literal.quoted {
            whole
        } else {
            FilterError { column: whole.column + err.column - 1, width: err.width, ..whole }
        };
        FilterError { hint: err.hint, ..moved }
    }

    fn value_error(&self, message: String) -> FilterError {
        self.lexer.error(self.value_place, message)
    }
}

/// Does the value stand for a number where both numbers and texts are possible? An ordering always does.
fn looks_numeric(op: Op, literal: &Literal) -> bool {
    match op {
        Op::Match => false,
        Op::Eq | Op::Ne if literal.quoted => false,
        Op::Eq | Op::Ne => match split_range(&literal.text) {
            Some((from, to, _)) => {
                let numeric = |part: &str| part.is_empty() || parse_quantity(part).is_some();
                numeric(from) && numeric(to) && from.len() + to.len() > 0
            }
            None => parse_quantity(&literal.text).is_some(),
        },
        _ => true,
    }
}
