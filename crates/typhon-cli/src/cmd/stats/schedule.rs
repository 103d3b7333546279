//! The scheduler's side of `--by system`: phases, waits, skips, queues, overload.

use super::Report;
use crate::output::escape::printable;
use crate::output::stream::Style;
use crate::output::table::{Align, Table};
use crate::output::units::{count, duration, plural};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use typhon_analysis::schedule::{LevelChange, Overload, QueueUse, Schedule, Times};
use typhon_trace::event::SkipReason;
use typhon_trace::tables::Tables;

/// Tables for people, at most `top` rows each (0 = all), the largest first.
pub(super) fn text(report: &Report, top: usize, style: &Style) -> Vec<String> {
    let schedule = &report.stats.schedule;
    let names = Names(&report.tables);
    let notes = [None, None, throttled_note(schedule), growth_note(schedule, &names)];
    let tables = [
        times("PHASE", schedule.phases.iter().map(|(phase, times)| (phase.to_string(), times)).collect()),
        times("WAIT FOR A WORKER", waits(schedule, &names)),
        skips(schedule, &names),
        queues(schedule, &names),
    ];
    let mut paragraphs: Vec<String> = tables
        .into_iter()
        .zip(notes)
        .filter_map(|(rows, note)| Some(paragraph(rows?, note, top, style)))
        .collect();
    if let Some(seen) = &schedule.overload {
        paragraphs.push(overload(seen));
        paragraphs.extend(level_changes(report, seen, top, style));
    }
    if schedule.left_out > 0 {
        let records = plural(schedule.left_out, "record");
        paragraphs.push(format!("not in these tables: {records} about further systems or too short to read"));
    }
    paragraphs
}

/// `null` when the recording holds nothing of it.
pub(super) fn document(report: &Report) -> Value {
    let schedule = &report.stats.schedule;
    if schedule.is_empty() {
        return Value::Null;
    }
    let names = Names(&report.tables);
    let phases = schedule.phases.iter().map(|(phase, times)| times_json("phase", phase.to_string(), times));
    let waits =
        schedule.waits.iter().map(|(system, times)| times_json("system", names.system(*system), times));
    let skips = schedule.skips.iter().map(
        |((system, reason), count)| json!({ "system": names.system(*system), "reason": reason.to_string(), "count": count }),
    );
    let queues = schedule.queues.iter().map(|(queue, used)| {
        json!({
            "queue": names.queue(*queue),
            "capacity": names.capacity(*queue),
            "ticks": used.ticks,
            "peakDepth": used.peak_depth,
            "maxEndDepth": used.max_end_depth,
            "produced": used.produced,
            "consumed": used.consumed,
            "overflowed": used.overflowed,
        })
    });
    json!({
        "phases": phases.collect::<Vec<_>>(),
        "waits": waits.collect::<Vec<_>>(),
        "skips": skips.collect::<Vec<_>>(),
        "queues": queues.collect::<Vec<_>>(),
        "overload": schedule.overload.as_ref().map(|overload| overload_json(report, overload)),
        "leftOut": schedule.left_out,
    })
}

/// What the tables of the recording call things.
struct Names<'a>(&'a Tables);

impl Names<'_> {
    fn system(&self, index: u16) -> String {
        self.0.system_name(index).map_or_else(|| format!("system {index}"), str::to_owned)
    }

    fn queue(&self, index: u16) -> String {
        let queue = self.0.event_queues.iter().find(|queue| queue.queue_index == index);
        queue.map_or_else(|| format!("queue {index}"), |queue| queue.name.clone())
    }

    fn capacity(&self, index: u16) -> Option<i32> {
        self.0.event_queues.iter().find(|queue| queue.queue_index == index).map(|queue| queue.capacity)
    }
}

/// A table and its rows, with the number that orders them.
type Rows = (Table, Vec<(u64, Vec<String>)>);

fn waits<'a>(schedule: &'a Schedule, names: &Names<'_>) -> Vec<(String, &'a Times)> {
    schedule.waits.iter().map(|(system, times)| (names.system(*system), times)).collect()
}

fn times(title: &'static str, rows: Vec<(String, &Times)>) -> Option<Rows> {
    let numbers = ["COUNT", "TOTAL", "P50", "P95", "MAX"].map(|title| (title, Align::Right));
    let row = |(key, times): (String, &Times)| {
        let [p50, p95] = times.p50_p95_ns();
        let cells = [times.total_ns(), p50, p95, times.max_ns()].map(ns);
        let first = [printable(&key).into_owned(), count(times.count())];
        (times.total_ns(), first.into_iter().chain(cells).collect())
    };
    let titles: Vec<_> = [(title, Align::Left)].into_iter().chain(numbers).collect();
    table(&titles, rows.into_iter().map(row).collect())
}

fn skips(schedule: &Schedule, names: &Names<'_>) -> Option<Rows> {
    let mut by_system: BTreeMap<u16, Vec<(u64, String)>> = BTreeMap::new();
    for ((system, reason), count) in &schedule.skips {
        by_system.entry(*system).or_default().push((*count, reason.to_string()));
    }
    let row = |(system, mut reasons): (u16, Vec<(u64, String)>)| {
        reasons.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let all = reasons.iter().map(|(count, _)| count).sum();
        let why: Vec<String> = match reasons.as_slice() {
            [(_, only)] => vec![only.clone()],
            several => several.iter().map(|(n, reason)| format!("{reason} {}", count(*n))).collect(),
        };
        (all, vec![printable(&names.system(system)).into_owned(), count(all), why.join(", ")])
    };
    let titles = [("SKIPPED OR FAILED", Align::Left), ("TIMES", Align::Right), ("WHY", Align::Left)];
    table(&titles, by_system.into_iter().map(row).collect())
}

fn queues(schedule: &Schedule, names: &Names<'_>) -> Option<Rows> {
    let numbers = ["CAPACITY", "PEAK", "LEFT", "PRODUCED", "CONSUMED", "OVERFLOWED"];
    let titles: Vec<_> =
        [("QUEUE", Align::Left)].into_iter().chain(numbers.map(|title| (title, Align::Right))).collect();
    let row = |(queue, used): (&u16, &QueueUse)| {
        let capacity = names.capacity(*queue).and_then(|capacity| u64::try_from(capacity).ok());
        let cells = [
            used.peak_depth.into(),
            used.max_end_depth.into(),
            used.produced,
            used.consumed,
            used.overflowed,
        ];
        let first = [printable(&names.queue(*queue)).into_owned(), capacity.map_or("-".into(), count)];
        (used.produced, first.into_iter().chain(cells.map(count)).collect())
    };
    table(&titles, schedule.queues.iter().map(row).collect())
}

/// The registry has one reason for both.
fn throttled_note(schedule: &Schedule) -> Option<&'static str> {
    let is_throttled = schedule.skips.keys().any(|(_, reason)| *reason == SkipReason::THROTTLED);
    is_throttled.then_some(
        "Throttled: not its turn, by its own tick_divisor at any time or by the throttled one under load; \
         kind SchedulerOverloadSystemShed tells the latter",
    )
}

fn growth_note(schedule: &Schedule, names: &Names<'_>) -> Option<&'static str> {
    let is_above = |(queue, used): (&u16, &QueueUse)| {
        names.capacity(*queue).is_some_and(|capacity| i64::from(used.peak_depth) > i64::from(capacity))
    };
    let note = "a PEAK above the CAPACITY: the queue was declared to grow, and only what is beyond its limit overflows";
    schedule.queues.iter().any(is_above).then_some(note)
}

fn overload(overload: &Overload) -> String {
    let ticks: u64 = overload.ticks_by_level.values().sum();
    let levels: Vec<String> =
        overload.ticks_by_level.iter().map(|(level, ticks)| format!("{level} {}", count(*ticks))).collect();
    format!(
        "overload  {} of {} longer than the target, at most {:.2} times   multiplier up to {}   {}",
        count(overload.late_ticks),
        plural(ticks, "tick"),
        overload.max_ratio,
        overload.max_multiplier,
        levels.join(", ")
    )
}

/// When the level changed and what decided it, the first `top` of them (0 = all); `None` if it never did.
fn level_changes(report: &Report, overload: &Overload, top: usize, style: &Style) -> Option<String> {
    let titles = [
        ("OVERLOAD LEVEL", Align::Left),
        ("AFTER TICK", Align::Right),
        ("AT", Align::Right),
        ("OF TARGET", Align::Right),
    ];
    let more = [("QUEUED", Align::Right), ("MULTIPLIER", Align::Right)];
    let row = |change: &LevelChange| {
        let [before, after] = change.levels;
        let multiplier = match change.multipliers {
            [before, after] if before == after => format!("{after}"),
            [before, after] => format!("{before} -> {after}"),
        };
        vec![
            format!("{before} -> {after}"),
            report.survey.ticks.tick_at(change.at).to_string(),
            duration(report.clock.to_ns(change.at.saturating_sub(report.survey.origin_ticks))),
            format!("{:.2}", change.ratio),
            change.queue_depth.to_string(),
            multiplier,
        ]
    };
    // Weighed so that the order of time stays.
    let rows: Vec<_> =
        overload.changes.iter().rev().map(row).zip(0u64..).map(|(row, at)| (at, row)).collect();
    let titles: Vec<_> = titles.into_iter().chain(more).collect();
    table(&titles, rows).map(|rows| paragraph(rows, None, top, style))
}

fn level_change_json(report: &Report, change: &LevelChange) -> Value {
    let [from, to] = change.levels.map(|level| level.to_string());
    let [from_multiplier, to_multiplier] = change.multipliers;
    json!({
        "tick": report.survey.ticks.tick_at(change.at),
        "atNs": report.clock.to_ns(change.at.saturating_sub(report.survey.origin_ticks)),
        "from": from,
        "to": to,
        "ratio": change.ratio.is_finite().then_some(change.ratio),
        "queueDepth": change.queue_depth,
        "fromMultiplier": from_multiplier,
        "toMultiplier": to_multiplier,
    })
}

fn overload_json(report: &Report, overload: &Overload) -> Value {
    let levels: serde_json::Map<String, Value> =
        overload.ticks_by_level.iter().map(|(level, ticks)| (level.to_string(), json!(ticks))).collect();
    json!({
        "levels": levels,
        "lateTicks": overload.late_ticks,
        // A hostile trace can say that a tick took forever, which JSON has no number for.
        "maxRatio": overload.max_ratio.is_finite().then_some(overload.max_ratio),
        "maxMultiplier": overload.max_multiplier,
        "changes": overload.changes.iter().map(|change| level_change_json(report, change)).collect::<Vec<_>>(),
    })
}

fn times_json(what: &str, key: String, times: &Times) -> Value {
    let [p50, p95] = times.p50_p95_ns();
    json!({
        what: key,
        "count": times.count(),
        "totalNs": times.total_ns(),
        "p50Ns": p50,
        "p95Ns": p95,
        "maxNs": times.max_ns(),
    })
}

/// `None` without rows.
fn table(titles: &[(&'static str, Align)], rows: Vec<(u64, Vec<String>)>) -> Option<Rows> {
    (!rows.is_empty()).then(|| (Table::new(titles), rows))
}

/// A table, and what has to be known to read it.
fn paragraph(rows: Rows, note: Option<&str>, top: usize, style: &Style) -> String {
    let mut text = cut(rows.0, rows.1, top, style);
    if let Some(note) = note {
        text.push('\n');
        text.push_str(note);
    }
    text
}

fn cut(mut table: Table, mut rows: Vec<(u64, Vec<String>)>, top: usize, style: &Style) -> String {
    rows.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let all = rows.len();
    let shown = if top == 0 { all } else { top.min(all) };
    rows.into_iter().take(shown).for_each(|(_, cells)| table.push(cells));
    let mut text = table.render(style.width(), style.is_colored());
    if shown < all {
        text.push_str(&format!("{shown} of {all} rows; all: --top 0\n"));
    }
    text.truncate(text.trim_end().len());
    text
}

fn ns(value: u64) -> String {
    duration(i64::try_from(value).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use typhon_trace::tables::EventQueue;

    #[test]
    fn what_needs_a_word_gets_one_and_nothing_else_does() {
        let queue = EventQueue {
            queue_index: 3,
            name: "Hits".to_owned(),
            capacity: 64,
            event_type_name: String::new(),
        };
        let tables = Tables { event_queues: vec![queue], ..Tables::default() };
        let notes = |peak_depth, queue, reason| {
            let mut schedule = Schedule::default();
            schedule.queues.insert(queue, QueueUse { peak_depth, ..QueueUse::default() });
            schedule.skips.insert((0, reason), 1);
            (growth_note(&schedule, &Names(&tables)).is_some(), throttled_note(&schedule).is_some())
        };
        assert_eq!(notes(64, 3, SkipReason::EMPTY_EVENTS), (false, false));
        assert_eq!(notes(65, 3, SkipReason::THROTTLED), (true, true));
        assert_eq!(notes(65, 4, SkipReason::SHED), (false, false), "nobody knows that queue's capacity");
    }
}
