//! Statistics, histograms and the longest spans of a selection.

use super::event::{SpanRef, tick_number};
use super::{Params, from_session, window};
use crate::app::App;
use crate::problem::Problem;
use crate::work::Weight;
use axum::extract::{Path, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use typhon_analysis::documents;
use typhon_analysis::facts::TimeWindow;
use typhon_analysis::session::{Session, SpanOrder};
use typhon_analysis::stats::{GroupBy, Row, TickFigures};

const TOP_MAX: usize = 1_000;
/// Rows of a table. A trace may bring tens of thousands of names, of which nobody reads more.
const ROWS_MAX: usize = 4_096;

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum By {
    #[default]
    Kind,
    Family,
    Name,
    System,
    Thread,
}

impl By {
    fn group(self) -> (GroupBy, &'static str) {
        match self {
            Self::Kind => (GroupBy::Kind, "kind"),
            Self::Family => (GroupBy::Family, "family"),
            Self::Name => (GroupBy::Name, "name"),
            Self::System => (GroupBy::System, "system"),
            Self::Thread => (GroupBy::Thread, "thread"),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Order {
    #[default]
    Total,
    #[serde(rename = "self")]
    Own,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Selection {
    #[serde(default)]
    by: By,
    #[serde(default)]
    order: Order,
    from_ns: Option<u64>,
    to_ns: Option<u64>,
    #[serde(default)]
    filter: u16,
    top: Option<usize>,
    /// With the durations of each row.
    #[serde(default)]
    histograms: bool,
    /// Row of a histogram.
    #[serde(default)]
    key: String,
}

pub(crate) async fn table(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Params(of): Params<Selection>,
) -> Result<Response, Problem> {
    from_session(&app, &id, Weight::Heavy, move |opened, cancel| {
        let session = &opened.session;
        let window = window(session, of.from_ns, of.to_ns)?;
        let (axis, (group, by)) = (session.axis()?, of.by.group());
        let stats = session.stats(group, window.as_ref(), of.filter, cancel)?;
        let mut rows: Vec<&Row> = stats.rows.iter().collect();
        if of.order == Order::Own {
            rows.sort_by_key(|row| std::cmp::Reverse((row.self_ns, row.count)));
        }
        let all = rows.len();
        let shown = match of.top.unwrap_or(50) {
            0 => ROWS_MAX,
            top => top.min(ROWS_MAX),
        };
        let left = rows.split_off(shown.min(all));
        Ok(json!({
            "schema": "typhon.stats/1",
            "by": by,
            "window": documents::observed(&stats.observed, axis.time.clock(), axis.origin_ticks),
            "rows": rows.into_iter().map(|row| shown_row(row, of.histograms)).collect::<Vec<_>>(),
            "rowCount": all,
            "left": sums(&left),
            "ticks": documents::tick_figures(&ticks(session, window.as_ref())?),
            "gc": stats.gc.as_ref().map(documents::gc_summary),
        }))
    })
    .await
}

/// A row of the table. Its durations come from the same reading of the records, which takes seconds in a large file.
fn shown_row(row: &Row, has_histogram: bool) -> Value {
    let mut document = documents::stats_row(row);
    if has_histogram {
        document["buckets"] = buckets(row);
    }
    document
}

/// The durations of a row, one bucket a power of two.
fn buckets(row: &Row) -> Value {
    let buckets = row.durations_ns.octaves().into_iter();
    buckets.map(|(from, to, count)| json!({ "fromNs": from, "toNs": to, "count": count })).collect()
}

/// What the rows have in all that did not find room.
fn sums(rows: &[&Row]) -> Value {
    let sum = |of: fn(&Row) -> u64| rows.iter().fold(0u64, |sum, row| sum.saturating_add(of(row)));
    json!({
        "rows": rows.len(),
        "count": sum(|row| row.count),
        "totalNs": sum(|row| row.total_ns),
        "selfNs": sum(|row| row.self_ns),
    })
}

/// The ticks that begin in a window.
fn ticks(session: &Session, window: Option<&TimeWindow>) -> Result<TickFigures, Problem> {
    let axis = session.axis()?;
    let extent = window.map(|window| {
        let extent = window.extent();
        axis.time.ns(extent.start)..axis.time.ns(extent.end)
    });
    let is_inside = |start_ns: &u64| extent.as_ref().is_none_or(|extent| extent.contains(start_ns));
    Ok(session.with_ticks(|ticks| {
        let inside = ticks.iter().filter(|tick| is_inside(&tick.start_ns));
        inside.filter_map(|tick| Some((tick.number, tick.duration_ns?))).collect()
    })?)
}

pub(crate) async fn histogram(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Params(of): Params<Selection>,
) -> Result<Response, Problem> {
    from_session(&app, &id, Weight::Heavy, move |opened, cancel| {
        let session = &opened.session;
        let window = window(session, of.from_ns, of.to_ns)?;
        let stats = session.stats(of.by.group().0, window.as_ref(), of.filter, cancel)?;
        let row = stats.rows.iter().find(|row| row.key == of.key);
        let row = row.ok_or_else(|| Problem::unknown(format!("row {}", of.key)))?;
        Ok(json!({
            "schema": "typhon.histogram/1",
            "key": row.key,
            "count": row.spans,
            "buckets": buckets(row),
            "approx": row.is_approximate,
        }))
    })
    .await
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Top {
    #[serde(default)]
    order: Order,
    count: Option<usize>,
    from_ns: Option<u64>,
    to_ns: Option<u64>,
    #[serde(default)]
    filter: u16,
}

pub(crate) async fn top(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Params(of): Params<Top>,
) -> Result<Response, Problem> {
    from_session(&app, &id, Weight::Heavy, move |opened, cancel| {
        let session = &opened.session;
        let window = window(session, of.from_ns, of.to_ns)?;
        let order = match of.order {
            Order::Total => SpanOrder::Total,
            Order::Own => SpanOrder::Own,
        };
        let count = of.count.unwrap_or(100).clamp(1, TOP_MAX);
        let spans = session.top_spans(order, window.as_ref(), of.filter, count, cancel)?;
        let spans = session.with_ticks(|ticks| {
            let of = |top: &typhon_analysis::session::TopSpan| SpanRef {
                self_ns: Some(top.self_ns),
                tick: Some(tick_number(ticks, top.span.start_ns)),
                ..SpanRef::of(&top.span)
            };
            spans.iter().map(of).collect::<Vec<SpanRef>>()
        })?;
        Ok(json!({ "schema": "typhon.top/1", "spans": spans }))
    })
    .await
}
