//! `trace export --to chrome`, read back with a parser that holds one event at a time.

use crate::common::traces::{FIRST_TICKS, Records, Span, trace};
use crate::common::{arg, recording, schema, typhon};
use crate::naive::Recording;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

#[derive(Debug, Deserialize)]
struct Event {
    ph: char,
    pid: u32,
    tid: u32,
    #[serde(default)]
    ts: f64,
    #[serde(default)]
    dur: f64,
    name: String,
    id: Option<String>,
    #[serde(default)]
    args: Value,
}

/// Hands every element of `traceEvents` to a function.
struct Document<F>(F);

impl<'de, F: FnMut(Event)> Visitor<'de> for Document<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trace")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "traceEvents" {
                map.next_value_seed(Events(&mut self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct Events<'a, F>(&'a mut F);

impl<'de, F: FnMut(Event)> serde::de::DeserializeSeed<'de> for Events<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(Event)> Visitor<'de> for Events<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<(), A::Error> {
        while let Some(event) = events.next_element()? {
            (self.0)(event);
        }
        Ok(())
    }
}

fn read(path: &Path, see: impl FnMut(Event)) {
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(File::open(path).unwrap()));
    json.deserialize_map(Document(see)).unwrap();
    json.end().unwrap();
}

/// Microseconds with three decimals are whole nanoseconds; doubles hold them exactly enough for a hundred days.
fn ns(microseconds: f64) -> i64 {
    (microseconds * 1_000.0).round() as i64
}

/// Slices of a lane, longest first where they begin together: every one must lie inside the ones around it.
fn assert_nests(lane: &str, slices: &mut [(i64, i64)]) {
    slices.sort_by_key(|(start, end)| (*start, -*end));
    let mut around: Vec<i64> = Vec::new();
    for (start, end) in slices.iter() {
        around.retain(|outer| outer > start);
        assert!(around.iter().all(|outer| outer >= end), "{lane}: {start}..{end} crosses an end");
        around.push(*end);
    }
}

fn export(name: &str, options: &[&str], see: impl FnMut(Event)) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("trace.json");
    let path = recording(name);
    let fixed = ["trace", "export", arg(&path), "-o", arg(&output), "--to", "chrome", "--json"];
    let summary = typhon(&[&fixed, options].concat()).expect(0).json();
    schema::check(&summary, "export.json");
    read(&output, see);
    summary
}

#[test]
fn a_chrome_export_is_json_with_every_record_and_nests() {
    for name in ["anthill.typhon-trace", "guide-shard.typhon-trace", "all-kinds.typhon-trace"] {
        let source = Recording::read(&recording(name));
        let mut lanes: BTreeMap<u32, String> = BTreeMap::new();
        let mut whole: BTreeMap<String, Vec<(i64, i64)>> = BTreeMap::new();
        let mut spans: Vec<(i64, i64)> = Vec::new();
        let mut open: BTreeMap<String, i64> = BTreeMap::new();
        let (mut instants, mut samples, mut arrows) = (0, 0, [0, 0]);
        export(name, &[], |event| {
            assert_eq!(event.pid, 1);
            let start = ns(event.ts);
            match event.ph {
                'M' if event.name == "thread_name" => {
                    lanes.insert(event.tid, event.args["name"].as_str().unwrap().to_owned());
                }
                'M' => assert_eq!(event.name, "process_name"),
                'X' => {
                    let lane = &lanes[&event.tid];
                    let end = start + ns(event.dur);
                    whole.entry(lane.clone()).or_default().push((start, end));
                    if lane != "Ticks" {
                        spans.push((start, end));
                    }
                }
                'b' => assert_eq!(open.insert(event.id.unwrap(), start), None),
                'e' => spans.push((open.remove(&event.id.unwrap()).unwrap(), start)),
                'i' => instants += 1,
                'C' => samples += 1,
                's' => arrows[0] += 1,
                't' | 'f' => arrows[1] += 1,
                other => panic!("phase {other}"),
            }
        });
        assert!(open.is_empty(), "{open:?}");
        whole.iter_mut().for_each(|(lane, slices)| assert_nests(lane, slices));
        let at = |ticks| source.ns(ticks) as i64;
        let is_span = |duration: &Option<i64>| duration.is_some();
        let mut expected: Vec<(i64, i64)> = source
            .records
            .iter()
            .filter(|record| is_span(&record.duration))
            .map(|record| (at(record.start), at(record.end())))
            .collect();
        expected.sort_unstable();
        spans.sort_unstable();
        assert!(spans == expected, "{name}: {} slices of {}", spans.len(), expected.len());
        assert_eq!(instants, source.records.iter().filter(|record| !is_span(&record.duration)).count());
        let gauges = |record: &crate::naive::Record| record.fields["gauges"].as_array().map_or(0, Vec::len);
        assert_eq!(samples, source.records.iter().map(gauges).sum::<usize>());
        assert!(arrows[0] > 0 && arrows[1] > 0, "{arrows:?}");
    }
}

#[test]
fn filters_and_ranges_cut_an_export() {
    let mut count = 0;
    let options = ["--where", "kind=SchedulerChunk", "--range", "0ms..100ms"];
    let summary = export("anthill.typhon-trace", &options, |event| {
        count += u64::from(event.ph == 'X' && event.name != "Tick");
    });
    let path = recording("anthill.typhon-trace");
    let dump = ["trace", "dump", "--kind", "SchedulerChunk", "--range", "0ms..100ms", "--json", arg(&path)];
    let expected = typhon(&dump).expect(0).json_lines().len() as u64;
    assert_eq!((summary["records"].as_u64(), count), (Some(expected), expected));
}

/// Equal spans compress so well that a small file holds millions; they can neither be drawn nor forgotten.
#[test]
fn spans_beyond_what_a_viewer_draws_are_counted_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = Records::default();
    for id in 0..20_000 {
        records = records.span(40, 1, FIRST_TICKS, Span { duration: 500, id, site: None, payload: &[] });
    }
    let (path, output) = (folder.path().join("same.typhon-trace"), folder.path().join("same.json"));
    trace(&path, &[records]);
    let run =
        typhon(&["trace", "export", arg(&path), "-o", arg(&output), "--to", "chrome", "--json"]).expect(0);
    let mut slices = 0;
    read(&output, |event| slices += u64::from(matches!(event.ph, 'X' | 'b')));
    assert_eq!(run.json()["records"], slices);
    let undrawn = run.stderr.strip_prefix("warning: ").and_then(|text| text.split_once(" spans not drawn: "));
    let undrawn: u64 =
        undrawn.unwrap_or_else(|| panic!("{}", run.stderr)).0.replace(',', "").parse().unwrap();
    assert!(slices >= 128 && slices + undrawn == 20_000, "{slices} + {undrawn}");
}
