//! `typhon trace dump`: the records of a trace, in file order.

mod csv;
mod jsonl;
pub(crate) mod row;
mod sink;
mod sort;
mod text;
mod value;

use crate::cli::{self, Format, Sort};
use crate::cmd::input::{Input, shown};
use crate::cmd::notices;
use crate::cmd::portions::{Feed, Names, Portion, Text};
use crate::cmd::selection::Selection;
use crate::failure::Failure;
use crate::output::progress::Progress;
use crate::output::stream::{Style, print};
use crate::output::units;
pub(crate) use csv::Csv;
pub(crate) use row::Layout;
use row::Row;
use sink::{First, Last};
use sort::Sorter;
use std::io::{self, BufWriter};
use std::ops::ControlFlow;
use std::path::Path;
use typhon_analysis::placing::PlaceFaults;
use typhon_trace::reader::Outcome;
use typhon_trace::registry::{self, KindInfo};

pub(crate) fn run(args: &cli::Dump, style: &Style) -> Result<u8, Failure> {
    let selection = Selection::new(&args.selection)?
        .any_of("--kind", "kind", &args.kind)?
        .any_of("--thread", "thread", &args.thread)?
        .within_ticks(args.ticks.as_deref())?;
    let path = shown(&args.file);
    let input = Input::open(&args.file)?;
    let progress = Progress::new(style, "reading", input.bytes());
    let opened = Feed::open(&input, &path).map_err(|err| Failure::trace(&path, err))?;
    dump(args, style, &selection, &path, progress, opened)
}

fn dump(
    args: &cli::Dump,
    style: &Style,
    selection: &Selection,
    path: &Path,
    progress: Progress,
    (feed, names): (Feed<'_>, Names),
) -> Result<u8, Failure> {
    let emitter = Emitter::new(args, style, Layout::new(args, &names.header)?);
    print(&emitter.heading())?;
    let format = |portion: &Portion| {
        let mut text = Text::default();
        portion.for_each(&names, |row| {
            if !selection.passes(&row.facts) {
                return;
            }
            emitter.record(&mut text.bytes, row);
            text.records += 1;
            text.keys.extend(args.sort.map(|sort| sort_key(sort, row)));
        });
        text
    };
    let run = |deliver: &mut dyn FnMut(Text) -> Result<ControlFlow<()>, Failure>| {
        feed.run(path, progress, selection.needs_places(), format, deliver)
    };
    // Portions are larger than this and pass through; sorted lines come one by one.
    let out = BufWriter::with_capacity(64 * 1024, io::stdout().lock());
    let mut first = First::new(out, args.limit);
    let outcome = match (args.sort.is_some(), args.tail) {
        (false, None) => run(&mut |text| first.take(&text))?,
        (false, Some(tail)) => {
            let mut last = Last::new(tail);
            let outcome = run(&mut |text| {
                last.take(text);
                Ok(ControlFlow::Continue(()))
            })?;
            last.finish(|text| first.take(&text))?;
            outcome
        }
        (true, tail) => {
            let mut sorter = Sorter::new();
            let outcome = run(&mut |text| sorter.take(&text).map(ControlFlow::Continue))?;
            let skip = tail.map_or(0, |tail| sorter.records().saturating_sub(tail));
            sorter.finish(skip, |text| first.take(&text))?;
            outcome
        }
    };
    let written = first.finish()?;
    report(style, path, written, outcome.as_ref());
    Ok(0)
}

/// Lines are written in the order of this number; equal ones keep the order of the file.
fn sort_key(sort: Sort, row: &Row<'_>) -> i64 {
    match sort {
        Sort::Time => row.facts.record.timestamp(),
        Sort::Dur => row.span().map_or(i64::MAX, |span| span.duration.saturating_neg()),
    }
}

/// What the user should know about the output apart from its lines.
fn report(style: &Style, path: &Path, written: u64, outcome: Option<&(Outcome, PlaceFaults)>) {
    match outcome {
        None => style.say(&format!("stopped after {} (--limit)", units::plural(written, "record"))),
        Some((outcome, faults)) => {
            notices::say_place_faults(style, *faults);
            let (records, blocks) = (outcome.totals.events, outcome.totals.blocks);
            let read = format!("{} in {}", units::plural(records, "record"), units::plural(blocks, "block"));
            style.detail(&format!("{} of {read}", units::count(written)));
            if written == 0 && records > 0 {
                style.say(&format!("none of {read} passes"));
            }
            notices::warn(style, path, &outcome.notices);
        }
    }
}

/// One of the output formats.
enum Emitter {
    Jsonl(jsonl::Jsonl),
    Text(text::Text),
    Csv(Csv),
}

impl Emitter {
    fn new(args: &cli::Dump, style: &Style, layout: Layout) -> Self {
        match args.format {
            _ if style.json => Self::Jsonl(jsonl::Jsonl::new(layout)),
            Format::Jsonl => Self::Jsonl(jsonl::Jsonl::new(layout)),
            Format::Text => Self::Text(text::Text::new(layout, style.width())),
            Format::Csv => Self::Csv(Csv::new(layout, only_kind(&args.kind))),
        }
    }

    fn heading(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Jsonl(_) => {}
            Self::Text(text) => text.heading(&mut out),
            Self::Csv(csv) => csv.heading(&mut out),
        }
        out
    }

    fn record(&self, out: &mut Vec<u8>, row: &Row<'_>) {
        match self {
            Self::Jsonl(jsonl) => jsonl.record(out, row),
            Self::Text(text) => text.record(out, row),
            Self::Csv(csv) => csv.record(out, row),
        }
    }
}

/// The kind that `--kind` names, if it is just one.
fn only_kind(names: &[String]) -> Option<&'static KindInfo> {
    let [name] = names else { return None };
    match name.parse() {
        Ok(id) => registry::kind(id),
        Err(_) => registry::KINDS.iter().find(|kind| kind.name.eq_ignore_ascii_case(name)),
    }
}
