//! Statistics the slow and obvious way, from the records that `dump` prints.

use crate::common::{arg, typhon};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

pub(crate) const GROUPS: [&str; 5] = ["kind", "family", "name", "system", "thread"];

/// One record.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) id: u64,
    pub(crate) kind: String,
    pub(crate) family: String,
    pub(crate) slot: u64,
    pub(crate) start: i64,
    /// `None` for instants.
    pub(crate) duration: Option<i64>,
    pub(crate) span_id: u64,
    /// It repeats the span of another record, so it lies in no lane.
    pub(crate) is_completion: bool,
    pub(crate) fields: Value,
}

impl Record {
    pub(crate) fn end(&self) -> i64 {
        self.start + self.duration.unwrap_or(0)
    }
}

/// All records of a file, in file order, and what is needed to name them.
pub(crate) struct Recording {
    pub(crate) records: Vec<Record>,
    pub(crate) ticks_per_second: i64,
    systems: BTreeMap<u64, String>,
}

/// One row, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) count: u64,
    pub(crate) spans: Vec<u64>,
    pub(crate) self_ns: u64,
}

pub(crate) type Rows = BTreeMap<String, Row>;

impl Recording {
    pub(crate) fn read(path: &Path) -> Self {
        let info = typhon(&["trace", "info", "--json", arg(path)]).json();
        let kinds = typhon(&["kinds", "--json"]).json();
        let registry: BTreeMap<u64, (String, bool)> = kinds["kinds"]
            .as_array()
            .unwrap()
            .iter()
            .map(|kind| {
                let family = kind["family"].as_str().unwrap().to_owned();
                (kind["id"].as_u64().unwrap(), (family, !kind["correlates_span_id"].is_null()))
            })
            .collect();
        let dump = typhon(&["trace", "dump", "--format", "jsonl", "--time", "raw", arg(path)]);
        let records = dump.json_lines().into_iter().map(|line| record(line, &registry)).collect();
        let systems = info["systems"].as_array().into_iter().flatten();
        let name = |system: &Value| Some((system["index"].as_u64()?, system["name"].as_str()?.to_owned()));
        Self {
            records,
            ticks_per_second: info["clock"]["frequency"].as_i64().unwrap(),
            systems: systems.filter_map(name).collect(),
        }
    }

    pub(crate) fn ns(&self, ticks: i64) -> u64 {
        (i128::from(ticks) * 1_000_000_000 / i128::from(self.ticks_per_second)) as u64
    }

    /// Rows of the records that `is_in` accepts.
    pub(crate) fn rows(&self, group_by: &str, is_in: impl Fn(&Record) -> bool) -> Rows {
        let places = self.places();
        let threads = self.threads();
        let mut rows = Rows::new();
        for (record, (self_ticks, _)) in self.records.iter().zip(places).filter(|(record, _)| is_in(record)) {
            let Some(key) = self.key(record, group_by, &threads) else { continue };
            let row = rows.entry(key).or_insert(Row { count: 0, spans: Vec::new(), self_ns: 0 });
            row.count += 1;
            if let Some(duration) = record.duration {
                row.spans.push(self.ns(duration));
                row.self_ns += self.ns(self_ticks);
            }
        }
        rows.values_mut().for_each(|row| row.spans.sort_unstable());
        rows
    }

    fn key(&self, record: &Record, group_by: &str, threads: &Threads) -> Option<String> {
        let system = record.fields["systemIdx"].as_u64().or(record.fields["sysIdx"].as_u64());
        let system = system.map(|index| match self.systems.get(&index) {
            Some(name) => name.clone(),
            None => format!("system {index}"),
        });
        match group_by {
            "kind" => Some(record.kind.clone()),
            "family" => Some(record.family.clone()),
            "system" => system.filter(|_| record.id == 10),
            "thread" => Some(threads.label(record.slot, record.start)),
            _ => match record.id {
                10 => Some(system.unwrap_or(record.kind.clone())),
                246 => Some(record.fields["name"].as_str().unwrap_or(&record.kind).to_owned()),
                _ => Some(record.kind.clone()),
            },
        }
    }

    /// Duration without the spans directly inside, in ticks, and the number of spans around; spans that overlap without
    /// nesting belong to nobody.
    pub(crate) fn places(&self) -> Vec<(i64, usize)> {
        let mut places: Vec<(i64, usize)> =
            self.records.iter().map(|record| (record.duration.unwrap_or(0), 0)).collect();
        for slot in self.records.iter().map(|record| record.slot).collect::<BTreeSet<_>>() {
            let lane =
                |record: &Record| record.slot == slot && record.duration.is_some() && !record.is_completion;
            let mut lane: Vec<usize> =
                (0..self.records.len()).filter(|index| lane(&self.records[*index])).collect();
            lane.sort_by_key(|index| {
                let record = &self.records[*index];
                (record.start, -record.end(), record.span_id)
            });
            let mut around: Vec<usize> = Vec::new();
            for index in lane {
                let record = &self.records[index];
                around.retain(|outer| self.records[*outer].end() > record.start);
                places[index].1 = around.len();
                if around.iter().all(|outer| self.records[*outer].end() >= record.end()) {
                    if let Some(parent) = around.last() {
                        places[*parent].0 -= record.duration.unwrap();
                    }
                    around.push(index);
                }
            }
        }
        places
    }

    pub(crate) fn threads(&self) -> Threads {
        let mut claims: Vec<&Record> = self.records.iter().filter(|record| record.id == 77).collect();
        claims.sort_by_key(|record| record.start);
        let mut entries: BTreeMap<u64, Vec<(i64, Value, Option<String>)>> = BTreeMap::new();
        for claim in claims {
            let slot = entries.entry(claim.slot).or_default();
            if slot.last().is_none_or(|(_, fields, _)| *fields != claim.fields) {
                let name = claim.fields["name"].as_str().filter(|name| !name.is_empty());
                slot.push((claim.start, claim.fields.clone(), name.map(str::to_owned)));
            }
        }
        for record in &self.records {
            entries.entry(record.slot).or_insert_with(|| vec![(i64::MIN, Value::Null, None)]);
        }
        Threads(entries)
    }

    /// Durations of the ticks that start in a window, by their number counted from 1.
    pub(crate) fn ticks(&self, window: &Range<i64>) -> Vec<(u64, u64)> {
        let times = |id| -> BTreeSet<i64> {
            self.records.iter().filter(|record| record.id == id).map(|record| record.start).collect()
        };
        let (starts, ends) = (times(0), times(1));
        let mut ticks = Vec::new();
        for (number, start) in (1..).zip(&starts) {
            let next = starts.range(start + 1..).next();
            let end = ends.range(start..).next();
            let until = match (end, next) {
                (Some(end), Some(next)) => Some(*end.min(next)),
                (one, other) => one.or(other).copied(),
            };
            if let Some(until) = until.filter(|_| window.contains(start)) {
                ticks.push((number, self.ns(until - start)));
            }
        }
        ticks
    }
}

/// Name of a slot's holder over time.
pub(crate) struct Threads(BTreeMap<u64, Vec<(i64, Value, Option<String>)>>);

impl Threads {
    pub(crate) fn label(&self, slot: u64, at: i64) -> String {
        let holders = &self.0[&slot];
        let index = holders.iter().rposition(|(from, ..)| *from <= at).unwrap_or(0);
        let plain = |slot: u64, name: &Option<String>| name.clone().unwrap_or(format!("slot {slot}"));
        let label = plain(slot, &holders[index].2);
        let everybody = self.0.iter().flat_map(|(slot, holders)| holders.iter().map(|h| plain(*slot, &h.2)));
        match everybody.filter(|other| *other == label).count() {
            1 => label,
            _ => format!("{label} (slot {slot}.{index})"),
        }
    }
}

fn record(line: Value, registry: &BTreeMap<u64, (String, bool)>) -> Record {
    let id = line["id"].as_u64().unwrap();
    let unknown = format!("kind {id}");
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let known = registry.get(&id);
    Record {
        id,
        kind: line["kind"].as_str().unwrap_or(&unknown).to_owned(),
        family: known.map_or(unknown, |(family, _)| family.clone()),
        slot: line["slot"].as_u64().unwrap(),
        start: line["ts"].as_i64().unwrap(),
        duration: line["dur"].as_i64().map(|duration| duration.max(0)),
        span_id: line["spanId"].as_str().map_or(0, hex),
        is_completion: known.is_some_and(|(_, is_completion)| *is_completion),
        fields: line["fields"].clone(),
    }
}

/// Compares the table of `stats --json` with rows; every figure must be equal.
#[track_caller]
pub(crate) fn assert_rows(stats: &Value, mut expected: Rows, what: &str) {
    let rows = stats["rows"].as_array().unwrap();
    assert_eq!(stats["rowCount"].as_u64().unwrap() as usize, rows.len(), "{what}: --top 0 shows all");
    for row in rows {
        let key = row["key"].as_str().unwrap();
        let Some(naive) = expected.remove(key) else { panic!("{what}: no record is of {key}") };
        let rank = |percent: usize| naive.spans[(naive.spans.len() * percent).div_ceil(100).max(1) - 1];
        let total: u64 = naive.spans.iter().sum();
        let wanted = match (naive.spans.first(), naive.spans.last()) {
            (Some(shortest), Some(longest)) => {
                let [p50, p95, p99] = [50, 95, 99].map(|percent| Value::from(rank(percent)));
                [total.into(), naive.self_ns.into(), (*shortest).into(), p50, p95, p99, (*longest).into()]
            }
            _ => [const { Value::Null }; 7],
        };
        let names = ["totalNs", "selfNs", "minNs", "p50Ns", "p95Ns", "p99Ns", "maxNs"];
        let got = names.map(|name| row[name].clone());
        let mean = row["meanNs"].as_f64().map(|mean| mean * naive.spans.len() as f64 - total as f64);
        assert!(mean.unwrap_or(0.0).abs() <= total as f64 * 1e-12, "{what}: mean of {key}");
        assert_eq!((row["count"].as_u64(), got), (Some(naive.count), wanted), "{what}: {key} {names:?}");
    }
    assert!(expected.is_empty(), "{what}: missing {:?}", expected.keys());
}
