//! Statistics as tables for people.

use super::{Report, schedule};
use crate::cli;
use crate::output::escape::printable;
use crate::output::stream::Style;
use crate::output::table::{Align, Table};
use crate::output::units::{count, duration, plural};
use typhon_analysis::gc::{GcSummary, PauseSource};
use typhon_analysis::stats::Row;
use typhon_analysis::ticks::{MAX_TICKS, Ticks};
use unicode_width::UnicodeWidthStr;

/// Continuation lines of a paragraph begin here, below its text.
const INDENT: usize = 8;

pub(super) fn render(report: &Report, args: &cli::Stats, style: &Style) -> String {
    let mut text = table(report, args, style);
    let schedule = match args.by {
        cli::By::System => schedule::text(report, args.top, style),
        _ => Vec::new(),
    };
    let gc = report.stats.gc.as_ref().map(gc);
    let paragraphs = [ticks(report, style)].into_iter().chain(gc).chain(schedule).chain(losses(report));
    for paragraph in paragraphs {
        text.push('\n');
        text.push_str(&paragraph);
        text.push('\n');
    }
    text
}

fn table(report: &Report, args: &cli::Stats, style: &Style) -> String {
    let rows = report.sorted_rows(args.by_self);
    if rows.is_empty() {
        return String::from("no records\n");
    }
    let heading = match args.by {
        cli::By::Kind => "KIND",
        cli::By::Family => "FAMILY",
        cli::By::Name => "NAME",
        cli::By::System => "SYSTEM",
        cli::By::Thread => "THREAD",
    };
    let shown = if args.top == 0 { rows.len() } else { args.top.min(rows.len()) };
    let mut text = fitting_table(heading, &rows[..shown], style);
    if shown < rows.len() {
        text.push_str(&format!("{shown} of {} rows; all: --top 0\n", rows.len()));
    }
    text
}

/// Columns that keys keep at least; numbers give way before.
const KEY_WIDTH_MIN: usize = 20;

/// Numbers are never cut, so a narrow terminal gets fewer columns; the last line names those that are missing.
fn fitting_table(heading: &'static str, rows: &[&Row], style: &Style) -> String {
    let mut columns: Vec<Column> = Column::ALL.to_vec();
    let mut left_out = Vec::new();
    loop {
        let titles = columns.iter().map(|column| (column.title(), Align::Right));
        let titles: Vec<_> = [(heading, Align::Left)].into_iter().chain(titles).collect();
        let mut table = Table::new(&titles);
        for row in rows {
            let numbers = columns.iter().map(|column| column.cell(row));
            table.push([printable(&row.key).into_owned()].into_iter().chain(numbers).collect());
        }
        let natural = table.render(None, false).lines().map(UnicodeWidthStr::width).max().unwrap_or(0);
        let key = rows.iter().map(|row| printable(&row.key).width()).max().unwrap_or(0);
        let fits = |width| natural - key.saturating_sub(KEY_WIDTH_MIN) <= width;
        match Column::BY_NEED.iter().find(|column| columns.contains(column)) {
            Some(column) if !style.width().is_none_or(fits) => {
                columns.retain(|kept| kept != column);
                left_out.push(column.title());
            }
            _ => {
                let mut text = table.render(style.width(), style.is_colored());
                if !left_out.is_empty() {
                    text.push_str(&format!("not shown for lack of width: {}\n", left_out.join(", ")));
                }
                return text;
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Count,
    Total,
    SelfTime,
    Mean,
    Min,
    P50,
    P95,
    P99,
    Max,
}

impl Column {
    const ALL: [Self; 9] = [
        Self::Count,
        Self::Total,
        Self::SelfTime,
        Self::Mean,
        Self::Min,
        Self::P50,
        Self::P95,
        Self::P99,
        Self::Max,
    ];
    /// What a narrow terminal can do without, first to go first.
    const BY_NEED: [Self; 6] = [Self::Min, Self::P95, Self::Mean, Self::P50, Self::P99, Self::SelfTime];

    fn title(self) -> &'static str {
        match self {
            Self::Count => "COUNT",
            Self::Total => "TOTAL",
            Self::SelfTime => "SELF",
            Self::Mean => "MEAN",
            Self::Min => "MIN",
            Self::P50 => "P50",
            Self::P95 => "P95",
            Self::P99 => "P99",
            Self::Max => "MAX",
        }
    }

    fn cell(self, row: &Row) -> String {
        if self == Self::Count {
            return count(row.count);
        }
        if row.spans == 0 {
            return String::from("-");
        }
        let [p50, p95, p99] = row.p50_p95_p99_ns;
        let value = match self {
            Self::Count | Self::Total => row.total_ns,
            Self::SelfTime => row.self_ns,
            Self::Mean => row.mean_ns().round() as u64,
            Self::Min => row.min_ns,
            Self::P50 => p50,
            Self::P95 => p95,
            Self::P99 => p99,
            Self::Max => row.max_ns,
        };
        let is_approximate = row.is_approximate && matches!(self, Self::P50 | Self::P95 | Self::P99);
        format!("{}{}", if is_approximate { "≈" } else { "" }, ns(value))
    }
}

fn ns(value: u64) -> String {
    duration(i64::try_from(value).unwrap_or(i64::MAX))
}

fn ticks(report: &Report, style: &Style) -> String {
    let (figures, all) = (report.tick_figures(), &report.survey.ticks);
    let Some(percentiles) = figures.p50_p95_p99_max_ns else {
        return String::from(match (all.starts(), &report.window) {
            ([], _) => "ticks   none was recorded (no TickStart)",
            (_, Some(_)) => "ticks   none ends in this window",
            (_, None) => "ticks   none ends in this recording",
        });
    };
    let [p50, p95, p99, max] = percentiles.map(ns);
    let counted = count(figures.count);
    let worst = figures.worst.iter().map(|(tick, value)| format!("{tick} ({})", ns(*value)));
    let mut text = wrapped(
        [format!("ticks   {counted}"), format!("p50 {p50}"), format!("p95 {p95}"), format!("p99 {p99}")]
            .into_iter()
            .chain([format!("max {max}")]),
        "   ",
        style.width(),
    );
    text.push('\n');
    text.push_str(&wrapped([format!("{:INDENT$}worst:", "")].into_iter().chain(worst), "  ", style.width()));
    if let Some(remark) = tick_remark(all) {
        text.push_str(&format!("\n{:INDENT$}{remark}", ""));
    }
    text
}

/// What is odd about the numbering; `--json` lists every case.
fn tick_remark(ticks: &Ticks) -> Option<String> {
    let (missing, odd, more) = (ticks.missing(), ticks.contradictions(), ticks.not_told_apart());
    let parts: Vec<String> = [
        (missing > 0).then(|| format!("{} not recorded", plural(missing, "tick"))),
        (odd > 0).then(|| format!("{} with contradictory numbers", plural(odd, "tick"))),
        (more > 0).then(|| {
            format!("{} beyond the first {} not told apart", plural(more, "tick"), count(MAX_TICKS as u64))
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Parts in one line, or in as many as the width asks for.
fn wrapped(parts: impl Iterator<Item = String>, gap: &str, width: Option<usize>) -> String {
    let (mut text, mut used) = (String::new(), 0);
    for part in parts {
        let needed = gap.len() + part.width();
        if used == 0 {
            used = part.width();
        } else if width.is_some_and(|width| used + needed > width) {
            text.push_str(&format!("\n{:INDENT$}", ""));
            used = INDENT + part.width();
        } else {
            text.push_str(gap);
            used += needed;
        }
        text.push_str(&part);
    }
    text
}

pub(in crate::cmd) fn gc(gc: &GcSummary) -> String {
    let by_generation: Vec<String> =
        gc.collections.iter().map(|(generation, n)| format!("gen{generation} {}", count(*n))).collect();
    let all: u64 = gc.collections.values().sum();
    let mut text = format!("gc      {}", plural(all, "collection"));
    if all > 0 {
        text.push_str(&format!(" ({})", by_generation.join(", ")));
    }
    if gc.half_recorded > 0 {
        text.push_str(&format!(", {} recorded by half", count(gc.half_recorded)));
    }
    text.push_str(&format!(
        "\n        {}   total {}   p99 {}   max {}",
        plural(gc.pause_count, "pause"),
        ns(gc.pause_total_ns),
        ns(gc.pause_p99_ns),
        ns(gc.pause_max_ns)
    ));
    match gc.pause_source {
        PauseSource::Suspensions => {
            text.push_str(&format!("   suspended {:.2} % of the time", gc.suspended_share * 100.0));
        }
        PauseSource::Collections => {
            text.push_str("   (as stated by the collections; no suspension was recorded)")
        }
    }
    text
}

fn losses(report: &Report) -> Option<String> {
    let mut parts = Vec::new();
    if report.dropped_records > 0 {
        parts.push(format!("{} dropped by the recorder", count(report.dropped_records)));
    }
    if report.withheld_records > 0 {
        parts.push(format!("{} in damaged blocks", count(report.withheld_records)));
    }
    if report.survey.more_infos > 0 {
        parts.push(format!("{} of threads", plural(report.survey.more_infos, "name")));
    }
    if report.stats.too_shallow_spans > 0 {
        parts.push(format!("{} too small", plural(report.stats.too_shallow_spans, "depth")));
    }
    if report.stats.inexact_self_times > 0 {
        parts.push(format!("{} self times may be too large", count(report.stats.inexact_self_times)));
    }
    (!parts.is_empty()).then(|| format!("not in these figures: {}", parts.join(", ")))
}
