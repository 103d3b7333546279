//! `--hist NAME`: how the durations of one row are spread, drawn with characters.

use crate::failure::Failure;
use crate::output::escape::printable;
use crate::output::json;
use crate::output::stream::Style;
use crate::output::units::{count, duration, plural};
use serde_json::{Value, json};
use typhon_analysis::filter::nearest;
use typhon_analysis::quantile::Durations;
use typhon_analysis::stats::Row;

/// Columns of the longest bar when the terminal's width is unknown.
const BAR_WIDTH: usize = 50;
/// Columns that the rest of a line takes.
const LABEL_WIDTH: usize = 40;
const BAR_WIDTH_MIN: usize = 10;

pub(super) fn render(rows: &[Row], name: &str, style: &Style) -> Result<Vec<u8>, Failure> {
    let row = find(rows, name)?;
    if style.json {
        return Ok(json::document(&document(row)));
    }
    let text = format!("{}  {}\n", printable(&row.key), plural(row.spans, "span"));
    Ok((text + &bars(&row.durations_ns, style)).into_bytes())
}

/// One line an octave of durations.
pub(in crate::cmd) fn bars(durations_ns: &Durations, style: &Style) -> String {
    let bins = durations_ns.octaves();
    let largest = bins.iter().map(|(_, _, n)| *n).max().unwrap_or(1).max(1);
    let width = style.width().map_or(BAR_WIDTH, |width| width.saturating_sub(LABEL_WIDTH).max(BAR_WIDTH_MIN));
    let mut text = String::new();
    for (from, to, n) in &bins {
        let range = format!("{} – {}", ns(*from), ns(*to));
        let share = *n as f64 * 100.0 / durations_ns.count().max(1) as f64;
        let line = format!("{range:>19}  {:>9} {share:>5.1} %  {}", count(*n), bar(*n, largest, width));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn find<'a>(rows: &'a [Row], name: &str) -> Result<&'a Row, Failure> {
    if let Some(row) = rows.iter().find(|row| row.key == name) {
        return match row.spans {
            0 => {
                Err(Failure::usage(format!("{} has no durations: its records are instants", printable(name))))
            }
            _ => Ok(row),
        };
    }
    let failure = Failure::usage(format!("--hist: no row is named {}", printable(name)));
    let keys = rows.iter().filter(|row| row.spans > 0).map(|row| row.key.as_str());
    Err(match nearest(name, keys) {
        Some(key) => failure.hint(format!("did you mean {}?", printable(key))),
        None => failure.hint("`--top 0` without --hist lists all rows; --by decides what a row is"),
    })
}

fn document(row: &Row) -> Value {
    let bins = row.durations_ns.octaves();
    let bins: Vec<Value> =
        bins.iter().map(|(from, to, n)| json!({ "fromNs": from, "toNs": to, "count": n })).collect();
    json!({ "schema": "typhon.stats-histogram/1", "key": row.key, "spans": row.spans, "bins": bins })
}

/// A bar in eighths of a column, so that small counts still differ; what is not zero is never invisible.
fn bar(value: u64, largest: u64, width: usize) -> String {
    const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    if value == 0 {
        return String::new();
    }
    let eighths = ((value as f64 / largest as f64) * (width * 8) as f64).round().max(1.0) as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8 - 1]);
    }
    bar
}

fn ns(value: u64) -> String {
    duration(i64::try_from(value).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bars_have_eighths_and_are_never_invisible() {
        assert_eq!(bar(0, 100, 10), "");
        assert_eq!(bar(1, 10_000, 10), "▏");
        assert_eq!(bar(50, 100, 10), "█████");
        assert_eq!(bar(100, 100, 10), "██████████");
        assert_eq!(bar(55, 100, 10), "█████▌");
    }
}
