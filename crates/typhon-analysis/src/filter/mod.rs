//! The filter language: which records of a trace to show. One language for `--where` and the Workbench's search.
//!
//! ```text
//! kind=BTree* dur>50us thread~Worker field.archetypeId=5
//! ```
//!
//! - Terms joined by spaces must all hold; `|` is *or*, `!` is *not*, parentheses group. *And* binds tighter.
//! - A term is `key op value`; a word alone is a substring of the record's name, whatever its case.
//! - Keys: `kind id name family thread slot system tick ts dur self depth site span parent trace field.NAME`.
//! - Operators: `= != < <= > >= ~`. `=` and `!=` take globs (`*`) for text and ranges for numbers: `a..b` holds b
//!   out, `a..=b` includes it, and either end may be missing. `~` is a regular expression found anywhere in the text.
//! - Units: `ns us ms s`, `KiB MiB GiB`, `k M`. A plain number for `ts`, `dur` and `self` is in nanoseconds.
//! - Values with spaces, `|`, `(`, `)` or a leading quote are quoted: `name~"Commit|Rollback"`. Within quotes `\"`
//!   and `\\` stand for the second character; any other backslash is itself.
//!
//! A comparison with something that the record lacks does not hold, whatever the operator; `!` around a term turns
//! that into a match. So `dur!=5us` selects spans only, `!dur=5us` also instants.
//!
//! **Invariants**
//! - [`parse`] never panics, and its time and memory are linear in the text. The text, its comparisons, its regular
//!   expressions and its nesting are limited: what a filter is matched with takes a time of its size for each record.
//! - Matching takes linear time in the text of the record: globs and the regular expressions do not backtrack over
//!   more than one star.
//! - Printing a filter and parsing it again gives the same filter.

mod ast;
mod error;
mod eval;
mod glob;
mod keys;
mod lexer;
mod number;
mod parser;
pub(crate) mod partial;
mod suggest;

pub use ast::Filter;
pub use error::FilterError;
pub use eval::{Facts, FieldFact, SystemRef};
pub use glob::glob_matches;
pub use number::{Number, NumberRange};
pub use suggest::nearest;

/// Parses a filter.
///
/// # Errors
/// Points at the column of the first mistake and names the nearest valid word where there is one.
pub fn parse(text: &str) -> Result<Filter, FilterError> {
    parser::parse(text)
}

/// Parses a range of times since the first record, such as `1.2s..1.3s`, `..40ms` or `5ms..=6ms`, in nanoseconds.
///
/// # Errors
/// When it is not a range, a bound is not a time, or it holds nothing.
pub fn parse_time_range(text: &str) -> Result<NumberRange, FilterError> {
    number::parse_range(text, number::Dimension::Time)
}

/// Parses a range of whole numbers, such as `10..20`, in which one bound may be missing, or a single one.
///
/// # Errors
/// When it is neither, a bound is not a plain number, or it holds nothing.
pub fn parse_count_range(text: &str) -> Result<NumberRange, FilterError> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match number::parse_quantity(text).filter(|_| is_number) {
        Some(one) => Ok(NumberRange { from: Some(one.number), to: Some(one.number), includes_end: true }),
        None => number::parse_range(text, number::Dimension::Plain),
    }
}
