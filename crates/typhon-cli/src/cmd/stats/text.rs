//! Statistics as tables for people.

use super::Report;
use crate::cli;
use crate::output::escape::printable;
use crate::output::stream::Style;
use crate::output::table::{Align, Table};
use crate::output::units::{count, duration, plural};
use typhon_analysis::gc::{GcSummary, PauseSource};
use typhon_analysis::stats::Row;

pub(super) fn render(report: &Report, args: &cli::Stats, style: &Style) -> String {
    let mut text = table(report, args, style);
    for paragraph in [ticks(report), report.stats.gc.as_ref().map(gc), losses(report)].into_iter().flatten() {
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
    let numbers = ["COUNT", "TOTAL", "SELF", "MEAN", "MIN", "P50", "P95", "P99", "MAX"];
    let columns: Vec<(&'static str, Align)> =
        [(heading, Align::Left)].into_iter().chain(numbers.map(|title| (title, Align::Right))).collect();
    let mut table = Table::new(&columns);
    let shown = if args.top == 0 { rows.len() } else { args.top.min(rows.len()) };
    rows[..shown].iter().for_each(|row| table.push(cells(row)));
    let mut text = table.render(style.width(), style.is_colored());
    if shown < rows.len() {
        text.push_str(&format!("{shown} of {} rows; all: --top 0\n", rows.len()));
    }
    text
}

fn cells(row: &Row) -> Vec<String> {
    let ns = |value: u64| duration(i64::try_from(value).unwrap_or(i64::MAX));
    let mark = if row.is_approximate { "≈" } else { "" };
    let mut cells = vec![printable(&row.key).into_owned(), count(row.count)];
    if row.spans == 0 {
        cells.extend(std::iter::repeat_n(String::from("-"), 8));
        return cells;
    }
    cells.extend([ns(row.total_ns), ns(row.self_ns), ns(row.mean_ns().round() as u64), ns(row.min_ns)]);
    cells.extend(row.p50_p95_p99_ns.map(|value| format!("{mark}{}", ns(value))));
    cells.push(ns(row.max_ns));
    cells
}

fn ticks(report: &Report) -> Option<String> {
    let (mut durations, worst) = report.tick_durations();
    let [p50, p95, p99, max] = durations.percentiles([50.0, 95.0, 99.0, 100.0])?;
    let ns = |value: u64| duration(i64::try_from(value).unwrap_or(i64::MAX));
    let worst: Vec<String> = worst.iter().map(|(tick, value)| format!("{tick} ({})", ns(*value))).collect();
    Some(format!(
        "ticks   {}   p50 {}   p95 {}   p99 {}   max {}\n        worst: {}",
        count(durations.count()),
        ns(p50.value),
        ns(p95.value),
        ns(p99.value),
        ns(max.value),
        worst.join(", ")
    ))
}

pub(super) fn gc(gc: &GcSummary) -> String {
    let ns = |value: u64| duration(i64::try_from(value).unwrap_or(i64::MAX));
    let by_generation: Vec<String> =
        gc.collections.iter().map(|(generation, n)| format!("gen{generation} {}", count(*n))).collect();
    let all: u64 = gc.collections.values().sum();
    let mut text = format!("gc      {} ({})", plural(all, "collection"), by_generation.join(", "));
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
    if report.stats.inexact_self_times > 0 {
        parts.push(format!("{} self times may be too large", count(report.stats.inexact_self_times)));
    }
    (!parts.is_empty()).then(|| format!("not in these figures: {}", parts.join(", ")))
}
