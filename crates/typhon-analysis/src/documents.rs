//! Parts of JSON documents that the command line and the Workbench share: the same figures under the same names
//! (brief 11 §5.3; what the UI shows the command line prints).

use crate::clock::Clock;
use crate::gc::{GcSummary, PauseSource};
use crate::stats::{Row, TickFigures};
use serde_json::{Map, Value, json};
use std::ops::Range;

/// A row of statistics. What needs a span is null in a row without.
pub fn stats_row(row: &Row) -> Value {
    let span = |value: u64| if row.spans > 0 { json!(value) } else { Value::Null };
    let [p50, p95, p99] = row.p50_p95_p99_ns;
    json!({
        "key": row.key,
        "count": row.count,
        "spans": row.spans,
        "totalNs": span(row.total_ns),
        "selfNs": span(row.self_ns),
        "meanNs": if row.spans > 0 { json!(row.mean_ns()) } else { Value::Null },
        "minNs": span(row.min_ns),
        "p50Ns": span(p50),
        "p95Ns": span(p95),
        "p99Ns": span(p99),
        "maxNs": span(row.max_ns),
        "sigmaNs": if row.spans > 0 { json!(row.sigma_ns) } else { Value::Null },
        "approx": row.is_approximate,
    })
}

/// The time that statistics looked at, in clock ticks, as times since the first record of the file.
pub fn observed(ticks: &Range<i64>, clock: Clock, origin_ticks: i64) -> Value {
    let relative = |at: i64| clock.to_ns(at.saturating_sub(origin_ticks));
    json!({
        "fromNs": relative(ticks.start),
        "toNs": relative(ticks.end),
        "durationNs": clock.to_ns(ticks.end.saturating_sub(ticks.start).max(0)),
    })
}

/// Durations of ticks and the longest ones.
pub fn tick_figures(figures: &TickFigures) -> Map<String, Value> {
    let worst = figures.worst.iter().map(|(tick, ns)| json!({ "tick": tick, "durNs": ns }));
    let [p50, p95, p99, max] = match figures.p50_p95_p99_max_ns {
        Some(of) => of.map(Value::from),
        None => [const { Value::Null }; 4],
    };
    [
        ("count", figures.count.into()),
        ("p50Ns", p50),
        ("p95Ns", p95),
        ("p99Ns", p99),
        ("maxNs", max),
        ("worst", worst.collect()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into_iter()
    .collect()
}

/// What is known of collections.
pub fn gc_summary(gc: &GcSummary) -> Value {
    let collections: Map<String, Value> =
        gc.collections.iter().map(|(generation, count)| (generation.to_string(), json!(count))).collect();
    json!({
        "collections": collections,
        "halfRecorded": gc.half_recorded,
        "pauses": {
            "count": gc.pause_count,
            "totalNs": gc.pause_total_ns,
            "maxNs": gc.pause_max_ns,
            "p99Ns": gc.pause_p99_ns,
            "source": match gc.pause_source {
                PauseSource::Suspensions => "suspensions",
                PauseSource::Collections => "collections",
            },
        },
        "suspendedShare": gc.suspended_share,
    })
}
