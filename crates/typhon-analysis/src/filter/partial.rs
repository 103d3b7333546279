//! Filters decided without the records, as far as what is known of them allows.
//!
//! An index knows the thread, the name and the times of an event, but not its payload. A filter is *reduced* once for all
//! events that share thread and name; what is left compares times, or needs the record. The logic has three values: what
//! is left may be true, false, or open.
//!
//! **Invariant:** a decision is the one that [`Filter::matches`] comes to with the record.

use super::ast::{Expr, Filter, NumberTest, Op, Term, Test, TextTest};
use super::eval::SystemRef;
use super::keys::Key;
use super::number::Number;
use crate::clock::Clock;
use std::borrow::Cow;
use std::cmp::Ordering;
use typhon_trace::registry;

/// Something about an event that is known, or left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fact<T> {
    Known(T),
    Open,
}

/// What events have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Common<'a> {
    pub(crate) is_span: bool,
    pub(crate) kind: Fact<u8>,
    pub(crate) slot: Fact<u8>,
    /// What their bars say; `None` when they say nothing.
    pub(crate) name: Fact<Option<&'a str>>,
    pub(crate) thread: Fact<Option<&'a str>>,
    pub(crate) system: Fact<Option<SystemRef<'a>>>,
}

impl Common<'_> {
    /// Spans, or instants, of which nothing else is known.
    pub(crate) fn open(is_span: bool) -> Self {
        Self {
            is_span,
            kind: Fact::Open,
            slot: Fact::Open,
            name: Fact::Open,
            thread: Fact::Open,
            system: Fact::Open,
        }
    }
}

/// From the ticks of the clock to the nanoseconds that filters compare.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    pub(crate) clock: Clock,
    /// Timestamp from which `ts` counts.
    pub(crate) origin_ticks: i64,
}

/// When an event is, or many are: bounds in ticks, both inclusive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct When {
    pub(crate) start: (i64, i64),
    /// `None` when the duration of some is not known.
    pub(crate) length: Option<(i64, i64)>,
}

/// What is left of a filter.
#[derive(Debug, Clone)]
pub(crate) enum Reduced {
    Decided(bool),
    /// Needs the record.
    Record,
    Start(TicksTest),
    Length(TicksTest),
    Tick(NumberTest),
    Not(Box<Reduced>),
    And(Vec<Reduced>),
    Or(Vec<Reduced>),
}

/// Ticks of the clock whose nanoseconds pass a test: they lie in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TicksTest {
    /// Inclusive; the first is behind the last when nothing passes.
    first: i64,
    last: i64,
    /// All others pass instead.
    negated: bool,
}

impl TicksTest {
    /// `ns` must not decrease.
    fn new(test: &NumberTest, ns: impl Fn(i64) -> i64) -> Self {
        let value = |ticks| Number::Int(ns(ticks).into());
        let reached = first_that(|ticks| test.is_reached(value(ticks)));
        let beyond = first_that(|ticks| test.is_beyond(value(ticks)));
        let last = match beyond {
            Some(beyond) => beyond.checked_sub(1),
            None => Some(i64::MAX),
        };
        let (first, last) = reached.zip(last).unwrap_or((i64::MAX, i64::MIN));
        Self { first, last, negated: test.is_negated() }
    }

    /// Do all ticks in these bounds pass, or none?
    #[inline]
    fn decide(&self, (low, high): (i64, i64)) -> Option<bool> {
        if self.first <= low && high <= self.last {
            Some(!self.negated)
        } else if high < self.first || low > self.last {
            Some(self.negated)
        } else {
            None
        }
    }
}

/// The first number from which something holds that holds for all larger ones too.
fn first_that(holds: impl Fn(i64) -> bool) -> Option<i64> {
    if !holds(i64::MAX) {
        return None;
    }
    let (mut low, mut high) = (i64::MIN, i64::MAX);
    while low < high {
        // Rounds down, also below zero.
        let middle = ((i128::from(low) + i128::from(high)) >> 1) as i64;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    Some(low)
}

impl NumberTest {
    /// A test holds for the values that are reached and not beyond, or, negated, for the others.
    fn is_reached(&self, value: Number) -> bool {
        let at_least = |bound| matches!(value.compare(bound), Some(Ordering::Greater | Ordering::Equal));
        match self {
            Self::Range { range, .. } => range.from.is_none_or(at_least),
            Self::Compare(Op::Lt | Op::Le, _) => true,
            Self::Compare(Op::Gt, bound) => value.compare(*bound) == Some(Ordering::Greater),
            Self::Compare(_, bound) => at_least(*bound),
        }
    }

    fn is_beyond(&self, value: Number) -> bool {
        let order = |bound| value.compare(bound);
        match self {
            Self::Range { range, .. } => range.to.is_some_and(|to| match order(to) {
                Some(Ordering::Less) => false,
                Some(Ordering::Equal) => !range.includes_end,
                _ => true,
            }),
            Self::Compare(Op::Gt | Op::Ge, _) => false,
            Self::Compare(Op::Lt, bound) => order(*bound) != Some(Ordering::Less),
            Self::Compare(_, bound) => order(*bound) == Some(Ordering::Greater),
        }
    }

    fn is_negated(&self) -> bool {
        matches!(self, Self::Range { negated: true, .. } | Self::Compare(Op::Ne, _))
    }
}

impl Filter {
    /// What is left to decide about events with this in common.
    pub(crate) fn reduce(&self, common: &Common<'_>, axis: Axis) -> Reduced {
        self.root.reduce(common, Some(axis))
    }

    /// Does it ask when something is, or how long?
    pub(crate) fn needs_times(&self) -> bool {
        self.root.mentions(&|key| matches!(key, Key::Tick | Key::Ts | Key::Dur))
    }

    /// What a kind decides alone; `None` when it does not.
    pub(crate) fn of_kind(&self, kind: u8) -> Option<bool> {
        let common = Common { kind: Fact::Known(kind), ..Common::open(registry::is_span(kind)) };
        // Bounds in ticks, which it says nothing of, are dear to find.
        match self.root.reduce(&common, None) {
            Reduced::Decided(verdict) => Some(verdict),
            _ => None,
        }
    }

    /// Does it ask for what only a record can tell?
    pub(crate) fn needs_records(&self) -> bool {
        self.root.mentions(&Key::is_in_records)
    }
}

impl Key {
    fn is_in_records(&self) -> bool {
        match self {
            Self::SelfTime
            | Self::Depth
            | Self::Site
            | Self::Span
            | Self::Parent
            | Self::Trace
            | Self::System
            | Self::Field(_) => true,
            Self::Kind
            | Self::Id
            | Self::Name
            | Self::Family
            | Self::Thread
            | Self::Slot
            | Self::Tick
            | Self::Ts
            | Self::Dur => false,
        }
    }
}

impl Expr {
    fn reduce(&self, common: &Common<'_>, axis: Option<Axis>) -> Reduced {
        match self {
            Self::And(parts) => join(parts, common, axis, true, Reduced::And),
            Self::Or(parts) => join(parts, common, axis, false, Reduced::Or),
            Self::Not(inner) => match inner.reduce(common, axis) {
                Reduced::Decided(verdict) => Reduced::Decided(!verdict),
                open => Reduced::Not(Box::new(open)),
            },
            Self::Term(term) => term.reduce(common, axis),
        }
    }
}

/// Parts that are `neutral` go, and one that is the opposite decides alone.
fn join(
    parts: &[Expr],
    common: &Common<'_>,
    axis: Option<Axis>,
    neutral: bool,
    of: fn(Vec<Reduced>) -> Reduced,
) -> Reduced {
    let mut open = Vec::new();
    for part in parts {
        match part.reduce(common, axis) {
            Reduced::Decided(verdict) if verdict == neutral => {}
            Reduced::Decided(_) => return Reduced::Decided(!neutral),
            part => open.push(part),
        }
    }
    match open.len() {
        0 => Reduced::Decided(neutral),
        1 => open.remove(0),
        _ => of(open),
    }
}

impl Term {
    /// Without an axis what asks for times is left to the record.
    fn reduce(&self, common: &Common<'_>, axis: Option<Axis>) -> Reduced {
        match &self.test {
            Test::Kinds(set) => decided(common.kind, |kind| set.contains(kind)),
            Test::Number(test) => self.reduce_number(test, common, axis),
            Test::Text(test) => self.reduce_text(test, common),
            Test::Field(kinds, _) => match common.kind {
                Fact::Known(kind) if !kinds.contains(kind) => Reduced::Decided(false),
                _ => Reduced::Record,
            },
        }
    }

    fn reduce_number(&self, test: &NumberTest, common: &Common<'_>, axis: Option<Axis>) -> Reduced {
        match &self.key {
            Key::Slot => decided(common.slot, |slot| test.matches(Number::Int(slot.into()))),
            Key::System => decided(common.system, |system| {
                system.is_some_and(|system| test.matches(Number::Int(system.index.into())))
            }),
            Key::Tick => Reduced::Tick(test.clone()),
            Key::Ts => {
                let Some(axis) = axis else { return Reduced::Record };
                let ns = |ticks: i64| axis.clock.to_ns(ticks.saturating_sub(axis.origin_ticks));
                Reduced::Start(TicksTest::new(test, ns))
            }
            // Everything else is a span's, and a comparison with what is lacking does not hold.
            _ if !common.is_span => Reduced::Decided(false),
            Key::Dur => match axis {
                Some(axis) => Reduced::Length(TicksTest::new(test, |ticks| axis.clock.to_ns(ticks))),
                None => Reduced::Record,
            },
            _ => Reduced::Record,
        }
    }

    fn reduce_text(&self, test: &TextTest, common: &Common<'_>) -> Reduced {
        let text = |text: Option<&str>| test.matches_any([text.map(Cow::Borrowed)]);
        match &self.key {
            Key::Name => decided(common.name, text),
            Key::Thread => decided(common.thread, text),
            Key::System => decided(common.system, |system| text(system.and_then(|system| system.name))),
            _ if !common.is_span => Reduced::Decided(false),
            _ => Reduced::Record,
        }
    }
}

fn decided<T>(fact: Fact<T>, passes: impl FnOnce(T) -> bool) -> Reduced {
    match fact {
        Fact::Known(value) => Reduced::Decided(passes(value)),
        Fact::Open => Reduced::Record,
    }
}

impl Reduced {
    /// Do events of that time pass? `None` when the record has to be asked, or when of many some may and some may not.
    /// `tick` tells the number of their tick, if it is one.
    #[inline]
    pub(crate) fn decide(&self, when: When, tick: &mut dyn FnMut() -> Option<u64>) -> Option<bool> {
        match self {
            Self::Decided(verdict) => Some(*verdict),
            Self::Record => None,
            Self::Start(test) => test.decide(when.start),
            Self::Length(test) => test.decide(when.length?),
            Self::Tick(test) => Some(test.matches(Number::Int(tick()?.into()))),
            Self::Not(inner) => Some(!inner.decide(when, tick)?),
            Self::And(parts) => all(parts, true, when, tick),
            Self::Or(parts) => all(parts, false, when, tick),
        }
    }
}

/// `same` if all parts are; the opposite if one is; else open.
fn all(parts: &[Reduced], same: bool, when: When, tick: &mut dyn FnMut() -> Option<u64>) -> Option<bool> {
    let mut all = Some(same);
    for part in parts {
        match part.decide(when, tick) {
            Some(verdict) if verdict == same => {}
            Some(_) => return Some(!same),
            None => all = None,
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter;
    use proptest::prelude::*;

    const ORIGIN: i64 = 1_000;

    fn axis(ticks_per_second: i64) -> Axis {
        Axis { clock: Clock::new(ticks_per_second), origin_ticks: ORIGIN }
    }

    fn known(name: &'static str) -> Common<'static> {
        Common {
            kind: Fact::Known(10),
            slot: Fact::Known(3),
            name: Fact::Known(Some(name)),
            thread: Fact::Known(None),
            system: Fact::Known(Some(SystemRef { index: 4, name: Some(name) })),
            ..Common::open(true)
        }
    }

    fn decide(text: &str, common: &Common<'_>, start: i64, length: Option<i64>) -> Option<bool> {
        let both = |ticks| (ticks, ticks);
        let when = When { start: both(start), length: length.map(both) };
        let filter = filter::parse(text).expect("a filter");
        filter.reduce(common, axis(1_000_000_000)).decide(when, &mut || Some(7))
    }

    #[test]
    fn what_is_known_decides_and_the_rest_is_open() {
        let span = known("Move");
        for (text, expected) in [
            ("name=Move dur>=30ns", Some(true)),
            ("name!=Move", Some(false)),
            ("system=Move system=4 slot=3", Some(true)),
            ("thread!=x", Some(false)),
            ("tick=7 ts=5ns", Some(true)),
            ("kind=SchedulerChunk field.systemIdx=4", None),
            ("kind=TickStart field.systemIdx=4", Some(false)),
            ("kind=SchedulerChunk | field.systemIdx=4", Some(true)),
            ("depth=1", None),
            ("!depth=1", None),
            ("depth=1 !dur=30ns", Some(false)),
            // No kind of that field.
            ("field.generation=1", Some(false)),
        ] {
            assert_eq!(decide(text, &span, ORIGIN + 5, Some(30)), expected, "{text}");
        }
        assert_eq!(decide("dur<1us", &span, ORIGIN, None), None);
        let instant = Common { is_span: false, ..span };
        assert_eq!(decide("dur>=0 | depth=0 | site=1 | trace!=x", &instant, ORIGIN, Some(0)), Some(false));
        assert_eq!(decide("!dur>=0", &instant, ORIGIN, Some(0)), Some(true));
    }

    #[test]
    fn a_kind_decides_what_it_decides_when_times_are_known_too() {
        let filters = [
            "kind=GcStart",
            "!kind=GcStart | dur<1ms",
            "dur>=0",
            "!dur>=0",
            "!dur>=0 | field.chunkIdx=1",
            "ts<1s !field.chunkIdx=1",
            "tick=7 | depth=1 | system=1",
            "system!=1 kind=SchedulerChunk",
            "!(name=x thread!=y) | site=1",
            "trace!=x slot=3",
        ];
        for text in filters {
            let filter = filter::parse(text).expect("a filter");
            for kind in 0..=u8::MAX {
                let common = Common { kind: Fact::Known(kind), ..Common::open(registry::is_span(kind)) };
                let expected = match filter.reduce(&common, axis(10_000_000)) {
                    Reduced::Decided(verdict) => Some(verdict),
                    _ => None,
                };
                assert_eq!(filter.of_kind(kind), expected, "{text} of {kind}");
            }
        }
    }

    #[test]
    fn of_many_all_pass_or_none_or_it_is_open() {
        let filter = filter::parse("dur>100ns ts<1us").expect("a filter");
        let reduced = filter.reduce(&Common::open(true), axis(1_000_000_000));
        let of = |start: (i64, i64), length| {
            let start = (ORIGIN + start.0, ORIGIN + start.1);
            reduced.decide(When { start, length: Some(length) }, &mut || None)
        };
        assert_eq!(of((0, 999), (101, 500)), Some(true));
        assert_eq!(of((0, 1_000), (101, 500)), None);
        assert_eq!(of((0, 2_000), (0, 100)), Some(false));
        assert_eq!(of((1_000, 2_000), (0, 500)), Some(false));
        assert_eq!(of((0, 1), (0, 101)), None);
    }

    proptest! {
        /// The bounds in ticks say of every time what the comparison of nanoseconds says.
        #[test]
        fn times_in_ticks_decide_as_nanoseconds_do(
            op in prop::sample::select(vec!["=", "!=", "<", "<=", ">", ">="]),
            value in prop::sample::select(vec!["0", "100ns", "333ns", "1.5us", "0.1ns", "-100ns", "2us"]),
            range in prop::sample::select(vec!["", "..2us", "..=2us"]),
            clock in prop::sample::select(vec![1_000_000_000, 10_000_000, 3_000_000, 2_918_400_000i64]),
            ticks in -40i64..6_000,
        ) {
            let op = if range.is_empty() || op == "!=" { op } else { "=" };
            let text = format!("dur{op}{value}{range}");
            let Ok(filter) = filter::parse(&text) else { return Ok(()) };
            let Expr::Term(Term { test: Test::Number(test), .. }) = &filter.root else { panic!("{text}") };
            let axis = axis(clock);
            let expected = test.matches(Number::Int(axis.clock.to_ns(ticks).into()));
            let found = TicksTest::new(test, |ticks| axis.clock.to_ns(ticks)).decide((ticks, ticks));
            prop_assert_eq!(found, Some(expected), "{}", text);
        }

        #[test]
        fn the_first_that_holds_is_found(first in any::<i64>()) {
            prop_assert_eq!(first_that(|value| value >= first), Some(first));
        }
    }
}
