//! Number literals with units, and tests on numbers that never lose an integer's digits.

use super::error::FilterError;
use std::cmp::Ordering;

/// A number: exact when it is an integer.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    /// Any integer a trace can hold.
    Int(i128),
    /// Anything with a fraction.
    Float(f64),
}

impl Number {
    /// The order of two numbers; `None` when one is NaN.
    pub fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(&b)),
            (a, b) => a.as_f64().partial_cmp(&b.as_f64()),
        }
    }

    /// The nearest `f64`.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.compare(*other) == Some(Ordering::Equal)
    }
}

/// What a literal with a unit measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dimension {
    /// No unit, or a mere multiplier (`k`, `M`, `KiB` …).
    Plain,
    /// A time; the number is in nanoseconds.
    Time,
}

/// A literal after its unit has been applied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quantity {
    pub(crate) number: Number,
    pub(crate) dimension: Dimension,
}

/// (suffix, multiplier, what it measures). Longer suffixes stand before those they end with.
const UNITS: &[(&str, i128, Dimension)] = &[
    ("ns", 1, Dimension::Time),
    ("us", 1_000, Dimension::Time),
    ("µs", 1_000, Dimension::Time),
    ("ms", 1_000_000, Dimension::Time),
    ("s", 1_000_000_000, Dimension::Time),
    ("KiB", 1 << 10, Dimension::Plain),
    ("MiB", 1 << 20, Dimension::Plain),
    ("GiB", 1 << 30, Dimension::Plain),
    ("k", 1_000, Dimension::Plain),
    ("M", 1_000_000, Dimension::Plain),
];

/// Remedy for a literal that is no number.
pub(crate) const UNITS_HINT: &str = "units: ns us ms s, KiB MiB GiB, k M";

/// Digits a literal may have in all; keeps every product inside `i128`.
const DIGITS_MAX: usize = 20;

/// Parses `12`, `-3`, `0x1f`, `1_000`, `1.5ms`, `64KiB`. `None` when the text is no number.
pub(crate) fn parse_quantity(text: &str) -> Option<Quantity> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let fits = !digits.is_empty() && digits.len() <= 16 && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let value = fits.then(|| u64::from_str_radix(digits, 16).ok()).flatten()?;
        return Some(Quantity { number: Number::Int(value.into()), dimension: Dimension::Plain });
    }
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let unit_at =
        unsigned.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(unsigned.len());
    let (digits, suffix) = unsigned.split_at(unit_at);
    let (factor, dimension) = match suffix {
        "" => (1, Dimension::Plain),
        _ => UNITS.iter().find(|unit| unit.0 == suffix).map(|unit| (unit.1, unit.2))?,
    };
    let sign = if unsigned.len() < text.len() { -1 } else { 1 };
    let number = scaled(digits, sign * factor)?;
    Some(Quantity { number, dimension })
}

/// A decimal times a factor, as an integer when it comes out even.
fn scaled(digits: &str, factor: i128) -> Option<Number> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let valid = whole.starts_with(|c: char| c.is_ascii_digit())
        && !fraction.contains('.')
        && digits.contains('.') != fraction.is_empty();
    let figures: String = whole.chars().chain(fraction.chars()).filter(|&c| c != '_').collect();
    if !valid || figures.len() > DIGITS_MAX {
        return None;
    }
    let product = figures.parse::<i128>().ok()? * factor;
    let divisor = 10_i128.pow(fraction.chars().filter(|&c| c != '_').count() as u32);
    Some(if product % divisor == 0 {
        Number::Int(product / divisor)
    } else {
        Number::Float(product as f64 / divisor as f64)
    })
}

/// A range of numbers; a missing bound is open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NumberRange {
    /// First value inside.
    pub from: Option<Number>,
    /// Upper bound; inside only if `includes_end`.
    pub to: Option<Number>,
    /// Whether the upper bound is inside.
    pub includes_end: bool,
}

impl NumberRange {
    /// Is the value inside?
    pub fn contains(&self, value: Number) -> bool {
        let above = self
            .from
            .is_none_or(|from| matches!(value.compare(from), Some(Ordering::Greater | Ordering::Equal)));
        let below = self.to.is_none_or(|to| match value.compare(to) {
            Some(Ordering::Less) => true,
            Some(Ordering::Equal) => self.includes_end,
            _ => false,
        });
        above && below
    }

    fn is_empty(&self) -> bool {
        match (self.from, self.to) {
            (Some(from), Some(to)) => match from.compare(to) {
                Some(Ordering::Less) => false,
                Some(Ordering::Equal) => !self.includes_end,
                _ => true,
            },
            _ => false,
        }
    }
}

/// The two ends of `a..b` or `a..=b`, unparsed; `None` when the text is no range.
pub(crate) fn split_range(text: &str) -> Option<(&str, &str, bool)> {
    let (from, to) = text.split_once("..")?;
    Some(match to.strip_prefix('=') {
        Some(to) => (from, to, true),
        None => (from, to, false),
    })
}

/// Parses a whole text as a range in one dimension.
pub(crate) fn parse_range(text: &str, dimension: Dimension) -> Result<NumberRange, FilterError> {
    let error = |start, end, message: String| FilterError::spanning(text, start, end, message);
    let whole = |message: String| Err(error(0, text.len(), message));
    let Some((from, to, includes_end)) = split_range(text) else {
        return whole(format!("`{text}` is not a range such as `a..b`"));
    };
    if from.is_empty() && to.is_empty() {
        return whole("a range needs at least one bound".to_owned());
    }
    let bound = |part: &str, start: usize| -> Result<Option<Number>, FilterError> {
        if part.is_empty() {
            return Ok(None);
        }
        let end = start + part.len();
        match parse_quantity(part) {
            // Whoever leaves out the unit may mean anything; zero is zero.
            Some(q)
                if q.dimension == Dimension::Plain
                    && dimension == Dimension::Time
                    && q.number.as_f64() != 0.0 =>
            {
                Err(error(start, end, format!("`{part}` has no unit"))
                    .hint(format!("such as `{part}s` or `{part}ms`")))
            }
            Some(q) if q.dimension == dimension || q.dimension == Dimension::Plain => Ok(Some(q.number)),
            Some(_) => Err(error(start, end, format!("`{part}` is a time, a plain number is needed"))),
            None => Err(error(start, end, format!("`{part}` is not a number")).hint(UNITS_HINT)),
        }
    };
    let range = NumberRange { from: bound(from, 0)?, to: bound(to, text.len() - to.len())?, includes_end };
    if range.is_empty() {
        return whole(format!("the range `{text}` holds nothing"));
    }
    Ok(range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn int(text: &str) -> Option<i128> {
        match parse_quantity(text)?.number {
            Number::Int(value) => Some(value),
            Number::Float(_) => None,
        }
    }

    #[test]
    fn units_scale_exactly() {
        assert_eq!(int("50us"), Some(50_000));
        assert_eq!(int("50µs"), Some(50_000));
        assert_eq!(int("1.5ms"), Some(1_500_000));
        assert_eq!(int("0.1s"), Some(100_000_000));
        assert_eq!(int("-2ms"), Some(-2_000_000));
        assert_eq!(int("64KiB"), Some(65_536));
        assert_eq!(int("2k"), Some(2_000));
        assert_eq!(int("1_000"), Some(1_000));
        assert_eq!(int("0x00ff"), Some(255));
        assert_eq!(int("18446744073709551615"), Some(u64::MAX.into()));
        assert_eq!(parse_quantity("1.5").map(|q| q.number), Some(Number::Float(1.5)));
    }

    #[test]
    fn what_is_no_number() {
        for text in
            ["", "-", ".", "1.", ".5", "1.2.3", "5x", "0x", "0xg", "ms", "--1", "_1", "999999999999999999999"]
        {
            assert_eq!(parse_quantity(text), None, "{text}");
        }
    }

    #[test]
    fn large_integers_compare_without_rounding() {
        let below = Number::Int(i128::from(u64::MAX) - 1);
        assert_eq!(below.compare(Number::Int(u64::MAX.into())), Some(Ordering::Less));
    }

    #[test]
    fn ranges_hold_their_end_out_unless_asked() {
        let half_open = parse_range("2..4", Dimension::Plain).expect("valid");
        let closed = parse_range("2..=4", Dimension::Plain).expect("valid");
        let inside =
            |range: &NumberRange| (0..7).filter(|&n| range.contains(Number::Int(n))).collect::<Vec<_>>();
        assert_eq!(inside(&half_open), [2, 3]);
        assert_eq!(inside(&closed), [2, 3, 4]);
        assert_eq!(inside(&parse_range("..2", Dimension::Plain).expect("valid")), [0, 1]);
        assert_eq!(inside(&parse_range("5..", Dimension::Plain).expect("valid")), [5, 6]);
    }

    #[test]
    fn range_errors_point_at_the_bound() {
        let column = |text: &str| parse_range(text, Dimension::Plain).expect_err("invalid").column;
        assert_eq!(column("5"), 1);
        assert_eq!(column(".."), 1);
        assert_eq!(column("4..2"), 1);
        assert_eq!(column("1..x"), 4);
        assert_eq!(column("1..2ms"), 4);
        assert_eq!(column("1..=é"), 5);
    }

    #[test]
    fn a_range_of_time_needs_units_except_for_zero() {
        let err = parse_range("1..2", Dimension::Time).expect_err("no unit");
        assert_eq!((err.column, err.hint.as_deref()), (1, Some("such as `1s` or `1ms`")));
        assert_eq!(parse_range("0..2", Dimension::Time).expect_err("no unit").column, 4);
        assert!(parse_range("0..2s", Dimension::Time).is_ok());
        assert!(parse_range("1..2", Dimension::Plain).is_ok());
    }

    proptest! {
        #[test]
        fn any_text_is_a_number_or_not(text in "\\PC{0,12}") {
            let _ = parse_quantity(&text);
            let _ = parse_range(&text, Dimension::Time);
        }

        #[test]
        fn integers_survive(value in any::<i64>()) {
            prop_assert_eq!(int(&value.to_string()), Some(value.into()));
        }
    }
}
