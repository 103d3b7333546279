//! `typhon trace diff`: what got slower, what got faster?

use super::input::open_file_trace;
use super::notices;
use super::selection::parse_where;
use super::stats::{Report, Request, group_by, of_file};
use super::window::Window;
use crate::cli::Diff;
use crate::failure::Failure;
use crate::output::escape::printable;
use crate::output::json;
use crate::output::stream::{Style, print};
use crate::output::table::{Align, Table};
use crate::output::units::{count, duration, plural};
use serde_json::{Value, json};
use std::path::Path;
use typhon_analysis::diff::{Change, DiffOptions, DiffRow, Side, diff};
use typhon_analysis::filter::Filter;
use typhon_analysis::placing::PlaceFaults;

/// Exit code when something changed.
const CHANGED: u8 = 1;

/// Name of the test, for people who want to know what the p-values mean.
const TEST_NAME: &str = "Wilcoxon-Mann-Whitney rank sum, two-sided, normal approximation with tie correction";

pub(crate) fn run(args: &Diff, style: &Style) -> Result<u8, Failure> {
    if !(0.0..=1.0).contains(&args.max_p) {
        return Err(Failure::usage(format!("--max-p {}: not a probability", args.max_p))
            .hint("it lies between 0 and 1, such as 0.01"));
    }
    let options =
        DiffOptions { threshold: percent(&args.threshold)?, max_p: args.max_p, min_count: args.min_count };
    let a = side(&args.a, "-a", [&args.range_a, &args.ticks_a], args, style)?;
    let b = side(&args.b, "-b", [&args.range_b, &args.ticks_b], args, style)?;
    let rows = diff(&a.stats.rows, &b.stats.rows, options);
    let changed = rows.iter().filter(|row| row.change.is_significant()).count();
    if style.json {
        print(&json::document(&document(args, options, &rows)))?;
    } else {
        print(text(&rows, changed, args, style).as_bytes())?;
    }
    Ok(if changed > 0 { CHANGED } else { 0 })
}

fn side(
    path: &Path,
    suffix: &'static str,
    [range, ticks]: [&Option<String>; 2],
    args: &Diff,
    style: &Style,
) -> Result<Report, Failure> {
    let request = Request {
        group_by: group_by(args.by),
        filter: args.filter.as_deref().map(parse_where).transpose()?,
        window: Window::of_side(suffix, range.as_deref(), ticks.as_deref())?,
    };
    let (file, _) = open_file_trace(path)?;
    let report = of_file(&file, path, &request, style)?;
    notices::warn(style, path, &report.notices);
    if request.filter.as_ref().is_some_and(Filter::needs_places) {
        let (inexact, too_shallow) = (report.stats.inexact_self_times, report.stats.too_shallow_spans);
        notices::say_place_faults(style, PlaceFaults { inexact, too_shallow });
    }
    Ok(report)
}

/// `5%` or `0.05`.
fn percent(text: &str) -> Result<f64, Failure> {
    let (number, divisor) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value / divisor),
        _ => Err(Failure::usage(format!("--threshold {}: not a share", printable(text)))
            .hint("write it as 5% or 0.05")),
    }
}

fn document(args: &Diff, options: DiffOptions, rows: &[DiffRow]) -> Value {
    let side = |side: &Option<Side>| {
        side.map(|side| {
            json!({
                "count": side.count,
                "totalNs": side.total_ns,
                "meanNs": side.mean_ns,
                "p50Ns": side.p50_ns,
                "p99Ns": side.p99_ns,
            })
        })
    };
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "key": row.key,
                "a": side(&row.a),
                "b": side(&row.b),
                "deltaPct": row.relative_change.map(|change| change * 100.0),
                "p": row.p,
                "change": change_name(row.change),
                "significant": row.change.is_significant(),
            })
        })
        .collect();
    json!({
        "schema": "typhon.diff/1",
        "a": args.a.to_string_lossy(),
        "b": args.b.to_string_lossy(),
        "by": format!("{:?}", args.by).to_lowercase(),
        "test": TEST_NAME,
        "threshold": options.threshold,
        "maxP": options.max_p,
        "minCount": options.min_count,
        "rows": rows,
    })
}

fn change_name(change: Change) -> &'static str {
    match change {
        Change::None => "none",
        Change::Slower => "slower",
        Change::Faster => "faster",
        Change::Added => "added",
        Change::Removed => "removed",
        Change::TooFew => "too-few",
    }
}

fn text(rows: &[DiffRow], changed: usize, args: &Diff, style: &Style) -> String {
    let compared = rows.iter().filter(|row| row.p.is_some()).count() as u64;
    let too_few = rows.iter().filter(|row| row.change == Change::TooFew).count() as u64;
    let mut text = String::new();
    if changed == 0 {
        text.push_str("no significant changes\n");
    } else {
        let titles = [("COUNT A→B", Align::Right), ("MEAN A→B", Align::Right), ("CHANGE", Align::Right)];
        let mut columns = vec![("NAME", Align::Left)];
        columns.extend(titles);
        columns.extend([("TOTAL", Align::Right), ("P", Align::Right), ("", Align::Left)]);
        let mut table = Table::new(&columns);
        rows[..changed].iter().for_each(|row| table.push(cells(row)));
        text.push_str(&table.render(style.width(), style.is_colored()));
    }
    text.push_str(&format!("{} compared", plural(compared, "name")));
    if too_few > 0 {
        text.push_str(&format!(
            "; {} with fewer than {} spans on a side left out",
            count(too_few),
            args.min_count
        ));
    }
    text.push_str(&format!(
        ".\nA change counts with p < {} (rank-sum test) and a mean that differs by {} or more.\n",
        args.max_p, args.threshold
    ));
    text
}

fn cells(row: &DiffRow) -> Vec<String> {
    let both = |show: &dyn Fn(&Side) -> String| {
        let one = |side: &Option<Side>| side.as_ref().map_or_else(|| String::from("-"), show);
        format!("{}→{}", one(&row.a), one(&row.b))
    };
    let total = row.total_change_ns();
    vec![
        printable(&row.key).into_owned(),
        both(&|side| count(side.count)),
        both(&|side| duration(side.mean_ns.round() as i64)),
        row.relative_change.map_or_else(String::new, |change| format!("{:+.0} %", change * 100.0)),
        format!("{}{}", if total > 0 { "+" } else { "" }, duration(total)),
        row.p.map_or_else(String::new, p_value),
        match row.change {
            Change::Slower => "▲ slower",
            Change::Faster => "▼ faster",
            Change::Added => "only in B",
            Change::Removed => "only in A",
            Change::None | Change::TooFew => "",
        }
        .to_owned(),
    ]
}

fn p_value(p: f64) -> String {
    if p < 0.000_1 { String::from("<0.0001") } else { format!("{p:.4}") }
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn thresholds_are_shares() {
        assert_eq!(
            (percent("5%").ok(), percent("0.05").ok(), percent("12.5 %").ok()),
            (Some(0.05), Some(0.05), Some(0.125))
        );
        assert!(percent("-1%").is_err() && percent("five").is_err() && percent("nan").is_err());
    }
}
