//! The rows of the table.

use super::StatsQuery;
use super::digest::RowKey;
use crate::clock::Clock;
use crate::gc::GcSummary;
use crate::nesting::Nesting;
use crate::quantile::Durations;
use crate::schedule::Schedule;
use crate::survey::{Survey, Thread};
use std::collections::HashMap;
use std::ops::Range;
use typhon_trace::registry;

/// A row while it is being filled.
#[derive(Debug, Default)]
pub(crate) struct RowData {
    instants: u64,
    durations_ns: Durations,
    total_ns: u64,
    self_ns: u64,
    min_ns: u64,
    max_ns: u64,
    /// Sum of the squares of durations. Whole numbers, so that it does not depend on the order.
    squares_ns2: u128,
}

impl RowData {
    pub(crate) fn add_instants(&mut self, count: u64) {
        self.instants += count;
    }

    fn exact_durations(&self) -> usize {
        self.durations_ns.exact_values()
    }

    fn spill(&mut self) {
        self.durations_ns.spill();
    }

    pub(crate) fn add_span(&mut self, duration_ns: u64, self_ns: u64) {
        self.min_ns = if self.durations_ns.count() == 0 { duration_ns } else { self.min_ns.min(duration_ns) };
        self.max_ns = self.max_ns.max(duration_ns);
        self.total_ns = self.total_ns.saturating_add(duration_ns);
        self.self_ns = self.self_ns.saturating_add(self_ns);
        self.squares_ns2 = self.squares_ns2.saturating_add(u128::from(duration_ns).pow(2));
        self.durations_ns.push(duration_ns);
    }
}

/// Makes histograms of the rows with the most durations until at most `limit` are kept one by one.
pub(crate) fn bound_exact_durations<'r>(rows: impl Iterator<Item = &'r mut RowData>, limit: usize) {
    let mut rows: Vec<&mut RowData> = rows.collect();
    let mut exact: usize = rows.iter().map(|row| row.exact_durations()).sum();
    if exact > limit {
        rows.sort_by_key(|row| std::cmp::Reverse(row.exact_durations()));
    }
    for row in rows {
        if exact <= limit {
            return;
        }
        exact -= row.exact_durations();
        row.spill();
    }
}

/// Adds a span whose place is known to its row, if it has one.
pub(super) fn add_placed(rows: &mut [RowData], clock: Clock, step: Nesting<Option<u32>>) {
    let Some((span, self_ticks, _)) = step.placed() else { return };
    let Some(row) = span.item else { return };
    let duration_ns = clock.to_ns(span.end.saturating_sub(span.start)) as u64;
    rows[row as usize].add_span(duration_ns, clock.to_ns(self_ticks).max(0) as u64);
}

/// One finished row. Rows without a span have only a count.
#[derive(Debug, Clone)]
pub struct Row {
    /// What it stands for. May contain anything; it comes from the trace.
    pub key: String,
    /// Records, spans and instants.
    pub count: u64,
    /// Spans among them.
    pub spans: u64,
    /// Sum of durations, ns.
    pub total_ns: u64,
    /// Sum of self times, ns.
    pub self_ns: u64,
    /// Shortest, ns.
    pub min_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
    /// Standard deviation of the durations, ns; 0 without spans.
    pub sigma_ns: f64,
    /// 50th, 95th and 99th percentile, ns.
    pub p50_p95_p99_ns: [u64; 3],
    /// Are the percentiles read from a histogram, within 1 %?
    pub is_approximate: bool,
    /// The durations, for histograms and comparisons.
    pub durations_ns: Durations,
}

impl Row {
    /// Mean duration of the spans, ns; 0 without spans.
    pub fn mean_ns(&self) -> f64 {
        if self.spans == 0 { 0.0 } else { self.total_ns as f64 / self.spans as f64 }
    }
}

/// The finished table.
#[derive(Debug)]
pub struct Stats {
    /// Rows, largest total first, then by count, then by name.
    pub rows: Vec<Row>,
    /// Garbage collections in the window, if the trace has any.
    pub gc: Option<GcSummary>,
    /// The time that was looked at, in trace-clock ticks; empty when a window asked for lies outside the trace.
    pub observed: Range<i64>,
    /// Spans whose self time may be too large because they came out of order in a file too big to keep.
    pub inexact_self_times: u64,
    /// Outermost intervals whose depth a filter saw too small, for the same reason.
    pub too_shallow_spans: u64,
    /// Phases, skipped systems, queues and overload in the window.
    pub schedule: Schedule,
    /// Ticks and threads of the whole trace; `None` when the query brought a survey.
    pub new_survey: Option<Survey>,
}

/// Turns keys into texts.
pub(super) struct RowTexts<'q> {
    query: &'q StatsQuery<'q>,
    /// How many threads have a name.
    namesakes: HashMap<String, u32>,
}

impl<'q> RowTexts<'q> {
    pub(super) fn new(query: &'q StatsQuery<'q>) -> Self {
        let mut namesakes = HashMap::new();
        for thread in query.survey.map_or(&[][..], |survey| survey.threads.all()) {
            *namesakes.entry(thread.label().into_owned()).or_default() += 1;
        }
        Self { query, namesakes }
    }

    pub(super) fn of(&self, key: RowKey) -> String {
        match key {
            RowKey::Kind(kind) => match registry::kind(kind) {
                Some(info) => info.name.to_owned(),
                None => format!("kind {kind}"),
            },
            RowKey::Family(family) => family.to_owned(),
            RowKey::System(index) => match self.query.context.tables.system_name(index) {
                Some(name) => name.to_owned(),
                None => format!("system {index}"),
            },
            RowKey::Thread(index) => match self.query.survey {
                Some(survey) => self.thread(&survey.threads.all()[index]),
                None => format!("slot {index}"),
            },
            RowKey::Text(text) => text,
            RowKey::OtherTexts => String::from("(other names)"),
        }
    }

    /// Name of a thread, with its slot where several threads have that name.
    fn thread(&self, thread: &Thread) -> String {
        label(thread, matches!(self.namesakes.get(&*thread.label()), Some(2..)))
    }
}

/// Name of a thread, with its slot where several threads have that name; by its place in the survey.
pub(crate) fn thread_label(survey: &Survey, thread: usize) -> String {
    let all = survey.threads.all();
    let Some(of) = all.get(thread) else { return String::new() };
    let has_namesake = all.iter().enumerate().any(|(at, other)| at != thread && other.label() == of.label());
    label(of, has_namesake)
}

fn label(thread: &Thread, has_namesake: bool) -> String {
    match has_namesake {
        true => format!("{} (slot {}.{})", thread.label(), thread.slot, thread.incarnation),
        false => thread.label().into_owned(),
    }
}

/// Sorts rows and reads their percentiles. Keys with the same text (a system named like a kind) become one row, since
/// the reader of the table could not tell them apart.
pub(crate) fn finish(named: impl Iterator<Item = (String, RowData)>) -> Vec<Row> {
    let mut by_text = std::collections::BTreeMap::<String, RowData>::new();
    for (key, data) in named {
        match by_text.entry(key) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(data);
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => merge(entry.get_mut(), data),
        }
    }
    let mut rows: Vec<Row> = by_text.into_iter().map(|(key, data)| row(key, data)).collect();
    rows.sort_by(|a, b| (b.total_ns, b.count, &a.key).cmp(&(a.total_ns, a.count, &b.key)));
    rows
}

fn merge(into: &mut RowData, data: RowData) {
    into.instants += data.instants;
    if data.durations_ns.count() == 0 {
        return;
    }
    into.min_ns = if into.durations_ns.count() == 0 { data.min_ns } else { into.min_ns.min(data.min_ns) };
    into.max_ns = into.max_ns.max(data.max_ns);
    into.total_ns = into.total_ns.saturating_add(data.total_ns);
    into.self_ns = into.self_ns.saturating_add(data.self_ns);
    into.squares_ns2 = into.squares_ns2.saturating_add(data.squares_ns2);
    into.durations_ns.merge(data.durations_ns);
}

/// Standard deviation of all values, from their number, sum and sum of squares.
fn sigma(count: u64, sum: u64, squares: u128) -> f64 {
    if count == 0 {
        return 0.0;
    }
    let mean = sum as f64 / count as f64;
    // What is left of rounding may be negative.
    (squares as f64 / count as f64 - mean * mean).max(0.0).sqrt()
}

fn row(key: String, mut data: RowData) -> Row {
    let spans = data.durations_ns.count();
    let percentiles = data.durations_ns.percentiles([50.0, 95.0, 99.0]);
    let p50_p95_p99_ns = percentiles.map_or([0; 3], |of| of.map(|p| p.value.clamp(data.min_ns, data.max_ns)));
    Row {
        key,
        count: data.instants + spans,
        spans,
        total_ns: data.total_ns,
        self_ns: data.self_ns,
        min_ns: data.min_ns,
        max_ns: data.max_ns,
        sigma_ns: sigma(spans, data.total_ns, data.squares_ns2),
        p50_p95_p99_ns,
        is_approximate: data.durations_ns.is_approximate(),
        durations_ns: data.durations_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigma_is_that_of_all_values() {
        let mut of = [RowData::default(), RowData::default()];
        for (at, value) in [2, 4, 4, 4, 5, 5, 7, 9].into_iter().enumerate() {
            of[at % 2].add_span(value, value);
        }
        let row = finish(of.map(|data| ("row".to_owned(), data)).into_iter()).remove(0);
        assert_eq!((row.mean_ns(), row.sigma_ns), (5.0, 2.0));
    }
}
