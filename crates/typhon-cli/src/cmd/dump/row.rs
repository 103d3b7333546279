//! One record on its way to the output, and the choices that all formats share.

use crate::cli::{Dump, Int64, Time};
use crate::failure::{Exit, Failure};
use typhon_analysis::facts::{RecordFacts, TraceContext};
use typhon_analysis::filter::nearest;
use typhon_trace::decode::{self, Field};
use typhon_trace::header::FileHeader;
use typhon_trace::record::SpanHead;
use typhon_trace::registry;

/// A record with its place in the file.
pub(crate) struct Row<'a> {
    pub(crate) facts: RecordFacts<'a>,
    /// Index of the block in the file.
    pub(crate) block: u64,
    /// Index of the record in its block, checksum markers included.
    pub(crate) ordinal: u32,
}

impl<'a> Row<'a> {
    pub(crate) fn span(&self) -> Option<SpanHead<'a>> {
        self.facts.record.span()
    }
}

/// How records are written, whatever the format.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) time: TimeScale,
    pub(crate) quote_int64: bool,
    pub(crate) raw: bool,
    /// Only these payload fields; empty for all.
    fields: Vec<String>,
}

/// What times mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeScale {
    /// Nanoseconds since the first record of the file.
    Relative,
    /// Nanoseconds since the Unix epoch; the first record of the file lies at this one.
    Absolute(i64),
    /// Clock ticks as stored.
    Raw,
}

impl TimeScale {
    #[inline]
    pub(crate) fn timestamp(self, context: &TraceContext<'_>, ticks: i64) -> i64 {
        match self {
            Self::Raw => ticks,
            Self::Relative => context.relative_ns(ticks),
            Self::Absolute(origin_ns) => origin_ns.saturating_add(context.relative_ns(ticks)),
        }
    }

    #[inline]
    pub(crate) fn duration(self, context: &TraceContext<'_>, ticks: i64) -> i64 {
        match self {
            Self::Raw => ticks,
            Self::Relative | Self::Absolute(_) => context.clock.to_ns(ticks),
        }
    }
}

impl Layout {
    /// The layout of CSV and JSON exports: everything, relative times.
    pub(crate) fn plain() -> Self {
        Self { time: TimeScale::Relative, quote_int64: false, raw: false, fields: Vec::new() }
    }

    pub(crate) fn new(args: &Dump, header: &FileHeader) -> Result<Self, Failure> {
        let time = match args.time {
            Time::Rel => TimeScale::Relative,
            Time::Raw => TimeScale::Raw,
            Time::Abs => TimeScale::Absolute(header.created_unix_ns().ok_or_else(|| {
                Failure::new(Exit::NotATrace, "the file does not say when it was recorded")
                    .in_file(&args.file)
                    .hint("use --time rel")
            })?),
        };
        for name in &args.fields {
            check_field_name(name)?;
        }
        Ok(Self {
            time,
            quote_int64: args.int64 == Int64::String,
            raw: args.raw,
            fields: args.fields.clone(),
        })
    }

    /// The payload fields to show, in wire order.
    #[inline]
    pub(crate) fn fields<'r>(&self, row: &Row<'r>) -> impl Iterator<Item = Field<'r>> {
        decode::fields(&row.facts.record).filter(|field| self.shows(field.name))
    }

    /// Is this payload field to be shown?
    #[inline]
    pub(crate) fn shows(&self, name: &str) -> bool {
        self.fields.is_empty() || self.fields.iter().any(|shown| shown == name)
    }
}

fn check_field_name(name: &str) -> Result<(), Failure> {
    let known = || registry::KINDS.iter().flat_map(decode::field_names);
    if known().any(|field| field == name) {
        return Ok(());
    }
    let failure = Failure::usage(format!("no kind has a field `{name}`"));
    Err(match nearest(name, known()) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint("`typhon kinds --fields` lists all"),
    })
}
