//! `trace stats` over the recordings of the corpus.

use crate::common::traces::{FIRST_TICKS, Records, Span, trace};
use crate::common::{arg, command, corpora, recording, schema, typhon, typhon_with_stdin};
use crate::naive::{GROUPS, Record, Recording, assert_rows};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn corpus_traces() -> Vec<PathBuf> {
    let files = corpora().into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let traces: Vec<PathBuf> = files
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "typhon-trace"))
        .collect();
    assert!(traces.len() >= 3, "{traces:?}");
    traces
}

pub(crate) fn stats(path: &Path, options: &[&str]) -> Value {
    let fixed = ["trace", "stats", "--json", "--top", "0", arg(path)];
    let document = typhon(&[&fixed, options].concat()).expect(0).json();
    schema::check(&document, "stats.json");
    document
}

fn all(_: &Record) -> bool {
    true
}

#[test]
fn every_figure_equals_the_naive_computation_for_every_grouping() {
    for path in corpus_traces() {
        let recording = Recording::read(&path);
        for group in GROUPS {
            let what = format!("{} --by {group}", path.display());
            assert_rows(&stats(&path, &["--by", group]), recording.rows(group, all), &what);
        }
    }
}

#[test]
fn ticks_and_their_worst_equal_the_naive_computation() {
    for path in corpus_traces() {
        let recording = Recording::read(&path);
        let mut ticks = recording.ticks(&(i64::MIN..i64::MAX));
        let document = stats(&path, &[]);
        assert_eq!(document["ticks"]["count"], ticks.len());
        ticks.sort_by_key(|(number, duration)| (std::cmp::Reverse(*duration), *number));
        assert_eq!(document["ticks"]["maxNs"].as_u64(), ticks.first().map(|(_, duration)| *duration));
        let worst = document["ticks"]["worst"].as_array().unwrap();
        let durations: Vec<Value> = worst.iter().map(|tick| tick["durNs"].clone()).collect();
        let expected: Vec<Value> = ticks.iter().take(5).map(|(_, duration)| json!(duration)).collect();
        assert_eq!(durations, expected, "{}", path.display());
    }
}

#[test]
fn filters_decide_what_enters_the_rows_and_nothing_else() {
    let path = recording("anthill.typhon-trace");
    let recording = Recording::read(&path);
    let (everything, filtered) = (stats(&path, &[]), stats(&path, &["--where", "dur>=50us"]));
    let is_in = |record: &Record| record.duration.is_some_and(|duration| duration >= 50_000);
    assert_rows(&filtered, recording.rows("kind", is_in), "dur>=50us");
    for part in ["ticks", "gc", "window", "losses"] {
        assert_eq!(filtered[part], everything[part], "{part}");
    }
    let by_thread = stats(&path, &["--where", "thread~Worker kind=SchedulerChunk", "--by", "name"]);
    let threads = recording.threads();
    let is_in =
        |record: &Record| record.id == 10 && threads.label(record.slot, record.start).contains("Worker");
    assert_rows(&by_thread, recording.rows("name", is_in), "thread~Worker");
}

#[test]
fn a_range_takes_what_touches_it_and_ticks_take_what_starts_in_them() {
    let path = recording("anthill.typhon-trace");
    let recording = Recording::read(&path);
    let origin = recording.records[0].start;
    let (from, to) = (origin + 500_000_000, origin + 900_000_000);
    let touches = |record: &Record| record.start < to && (record.start >= from || record.end() > from);
    let document = stats(&path, &["--range", "500ms..900ms"]);
    assert_rows(&document, recording.rows("kind", touches), "--range");
    assert_eq!(
        document["window"],
        json!({ "fromNs": 500_000_000, "toNs": 900_000_000, "durationNs": 400_000_000 })
    );

    let mut starts: Vec<i64> =
        recording.records.iter().filter(|record| record.id == 0).map(|record| record.start).collect();
    starts.sort_unstable();
    starts.dedup();
    let tick = |record: &Record| starts.partition_point(|start| *start <= record.start);
    for (option, first, last) in [("37", 37, 37), ("10..=12", 10, 12), ("0..1", 0, 0)] {
        let document = stats(&path, &["--ticks", option]);
        let is_in = |record: &Record| (first..=last).contains(&tick(record));
        assert_rows(&document, recording.rows("kind", is_in), option);
    }
}

/// What the scheduler's records say, added up from the dump.
#[test]
fn the_schedule_equals_the_naive_computation() {
    for path in corpus_traces() {
        let recording = Recording::read(&path);
        let document = stats(&path, &[]);
        let info = typhon(&["trace", "info", "--json", arg(&path)]).json();
        let name = |table: &str, key: &str, index: &Value| {
            let entry = info[table].as_array().unwrap().iter().find(|entry| entry[key] == *index);
            entry
                .map_or(format!("{} {index}", if table == "systems" { "system" } else { "queue" }), |entry| {
                    entry["name"].as_str().unwrap().to_owned()
                })
        };
        let enumerated = |fields: &Value, field: &str| {
            let name = &fields[format!("{field}Name")];
            name.as_str().map_or(fields[field].to_string(), str::to_owned)
        };
        let of = |id: u64| recording.records.iter().filter(move |record| record.id == id);
        let mut skips: BTreeMap<(String, String), u64> = BTreeMap::new();
        for skip in of(5) {
            let system = name("systems", "index", &skip.fields["systemIdx"]);
            *skips.entry((system, enumerated(&skip.fields, "skipReason"))).or_default() += 1;
        }
        for failure in of(147).filter(|completion| completion.fields["reason"] == 6) {
            let system = name("systems", "index", &failure.fields["sysIdx"]);
            *skips.entry((system, enumerated(&failure.fields, "reason"))).or_default() += 1;
        }
        let mut phases: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for phase in of(243) {
            let duration = recording.ns(phase.duration.unwrap());
            phases.entry(enumerated(&phase.fields, "phase")).or_default().push(duration);
        }
        let mut queues: BTreeMap<String, [u64; 6]> = BTreeMap::new();
        for report in of(244) {
            let number = |field: &str| report.fields[field].as_u64().unwrap();
            let used =
                queues.entry(name("eventQueues", "queueIndex", &report.fields["queueId"])).or_default();
            used[0] += 1;
            used[1] = used[1].max(number("peakDepth"));
            used[2] = used[2].max(number("endOfTickDepth"));
            used[3] += number("produced");
            used[4] += number("consumed");
            used[5] += number("overflowCount");
        }
        let schedule = &document["schedule"];
        let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
        let number = |row: &Value, key: &str| row[key].as_u64().unwrap();
        let rows = |table: &str| schedule[table].as_array().unwrap().clone();
        let mut got_skips: BTreeMap<(String, String), u64> = BTreeMap::new();
        for row in rows("skips") {
            *got_skips.entry((text(&row, "system"), text(&row, "reason"))).or_default() +=
                number(&row, "count");
        }
        assert_eq!(got_skips, skips, "{}", path.display());
        assert_eq!(rows("phases").len(), phases.len());
        for row in rows("phases") {
            let durations = &phases[&text(&row, "phase")];
            let expected = [durations.len() as u64, durations.iter().sum(), *durations.iter().max().unwrap()];
            assert_eq!(["count", "totalNs", "maxNs"].map(|key| number(&row, key)), expected, "{row}");
        }
        assert_eq!(rows("queues").len(), queues.len());
        let keys = ["ticks", "peakDepth", "maxEndDepth", "produced", "consumed", "overflowed"];
        for row in rows("queues") {
            assert_eq!(keys.map(|key| number(&row, key)), queues[&text(&row, "queue")], "{row}");
        }
        let waits: u64 = rows("waits").iter().map(|row| number(row, "count")).sum();
        let waited: u64 = rows("waits").iter().map(|row| number(row, "totalNs")).sum();
        let wait_us = of(148).map(|wait| wait.fields["queueWaitUs"].as_u64().unwrap());
        assert_eq!((waits, waited), (of(148).count() as u64, wait_us.sum::<u64>() * 1_000));
        assert_eq!(schedule["leftOut"], 0);
    }
}

#[test]
fn by_system_names_phases_skips_and_queues() {
    let path = recording("anthill.typhon-trace");
    let text = typhon(&["trace", "stats", "--by", "system", arg(&path)]).expect(0).stdout;
    for expected in [
        r"\nPHASE +COUNT +TOTAL",
        r"\nUowFlush +67 ",
        r"\nWAIT FOR A WORKER +COUNT",
        r"\nHeatmapMaxFood +67  ShouldRunFalse",
        r"\nAntDied +4,096 ",
        r"overload  5 of 67 ticks longer than the target",
    ] {
        assert!(regex::Regex::new(expected).unwrap().is_match(&text), "{expected}\n{text}");
    }
    let info = typhon(&["trace", "info", arg(&path)]).expect(0).stdout;
    for expected in
        ["3 tracks: Engine-Pre, Public, Engine-Post", "graph AntHill in Public: 16 systems, Input → "]
    {
        assert!(info.contains(expected), "{info}");
    }
}

#[test]
fn a_pipe_gives_the_same_table_as_the_file() {
    let path = recording("guide-shard.typhon-trace");
    let bytes = std::fs::read(&path).unwrap();
    let piped = typhon_with_stdin(&["trace", "stats", "-", "--json", "--top", "0"], &bytes).expect(0).json();
    assert_eq!(piped["rows"], stats(&path, &[])["rows"]);
    let refused = typhon_with_stdin(&["trace", "stats", "-", "--by", "thread"], &bytes).expect(64);
    assert!(refused.stderr.contains("need a file"), "{}", refused.stderr);
}

#[test]
fn self_orders_by_self_time_and_top_cuts() {
    let path = recording("anthill.typhon-trace");
    let rows = |options: &[&str]| {
        let fixed = ["trace", "stats", "--json", arg(&path)];
        typhon(&[&fixed, options].concat()).expect(0).json()["rows"].as_array().unwrap().clone()
    };
    let own: Vec<u64> =
        rows(&["--self", "--top", "0"]).iter().map(|row| row["selfNs"].as_u64().unwrap_or(0)).collect();
    assert!(own.is_sorted_by(|a, b| a >= b) && own.len() > 20, "{own:?}");
    assert_eq!(rows(&["--top", "3"]).len(), 3);
    let text = typhon(&["trace", "stats", "--top", "3", arg(&path)]).expect(0).stdout;
    assert!(text.contains(&format!("3 of {} rows; all: --top 0", own.len())), "{text}");
}

#[test]
fn a_histogram_counts_every_span_once() {
    let path = recording("anthill.typhon-trace");
    let spans = Recording::read(&path).rows("name", all)["AntUpdate"].spans.clone();
    let options = ["trace", "stats", "--by", "name", "--hist", "AntUpdate", "--json", arg(&path)];
    let document = typhon(&options).expect(0).json();
    schema::check(&document, "stats-histogram.json");
    for bin in document["bins"].as_array().unwrap() {
        let (from, to) = (bin["fromNs"].as_u64().unwrap(), bin["toNs"].as_u64().unwrap());
        let inside = spans.iter().filter(|duration| (from..to).contains(duration)).count();
        assert_eq!(bin["count"], inside, "{bin}");
    }
    let counts = document["bins"].as_array().unwrap().iter().map(|bin| bin["count"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>() as usize, spans.len());
    let missing = typhon(&["trace", "stats", "--hist", "SchedulerChunc", arg(&path)]).expect(64);
    assert!(missing.stderr.contains("did you mean SchedulerChunk?"), "{}", missing.stderr);
    let instant = typhon(&["trace", "stats", "--hist", "TickStart", arg(&path)]).expect(64);
    assert!(instant.stderr.contains("instants"), "{}", instant.stderr);
}

/// Span ids of the records that `is_in` accepts by self time in ns and depth.
fn placed_ids(recording: &Recording, is_in: impl Fn(u64, usize) -> bool) -> Vec<u64> {
    let spans =
        recording.records.iter().zip(recording.places()).filter(|(record, _)| record.duration.is_some());
    let chosen = spans.filter(|(_, (self_ticks, depth))| is_in(recording.ns(*self_ticks), *depth));
    chosen.map(|(record, _)| record.span_id).collect()
}

#[test]
fn self_and_depth_in_a_filter_select_the_same_records_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    type IsIn = fn(u64, usize) -> bool;
    let cases: [(&str, IsIn); 3] = [
        ("self>=20us", |self_ns, _| self_ns >= 20_000),
        ("depth=1", |_, depth| depth == 1),
        ("depth>=1 self<5us", |self_ns, depth| depth >= 1 && self_ns < 5_000),
    ];
    for name in ["anthill.typhon-trace", "guide-shard.typhon-trace", "all-kinds.typhon-trace"] {
        let path = recording(name);
        let source = Recording::read(&path);
        for (number, (filter, is_in)) in cases.into_iter().enumerate() {
            let what = format!("{name} {filter}");
            let expected = placed_ids(&source, is_in);
            let dumped: Vec<u64> = typhon(&["trace", "dump", "--json", "--where", filter, arg(&path)])
                .expect(0)
                .json_lines()
                .iter()
                .map(|line| u64::from_str_radix(&line["spanId"].as_str().unwrap()[2..], 16).unwrap())
                .collect();
            assert!(dumped == expected, "{what}: {} of {}", dumped.len(), expected.len());
            let chosen: Vec<bool> = source
                .places()
                .into_iter()
                .zip(&source.records)
                .map(|((ticks, depth), record)| record.duration.is_some() && is_in(source.ns(ticks), depth))
                .collect();
            // Two records may be equal in all but their place, so rows are compared by number of spans.
            let rows = stats(&path, &["--where", filter]);
            let spans: u64 =
                rows["rows"].as_array().unwrap().iter().map(|row| row["spans"].as_u64().unwrap()).sum();
            assert_eq!(spans as usize, chosen.iter().filter(|is_in| **is_in).count(), "{what}");
            for target in ["trace", "csv", "chrome", "perfetto"] {
                let output = folder.path().join(format!("{number}-{name}-{target}"));
                let fixed = ["trace", "export", arg(&path), "-o", arg(&output), "--to", target, "--json"];
                let summary = typhon(&[&fixed[..], &["--where", filter]].concat()).expect(0).json();
                if target != "trace" {
                    assert_eq!(summary["records"], expected.len(), "{what} {target}");
                    continue;
                }
                let cut = Recording::read(&output);
                let ids: Vec<u64> = cut
                    .records
                    .iter()
                    .filter(|record| record.duration.is_some())
                    .map(|record| record.span_id)
                    .collect();
                assert!(ids == expected, "{what} {target}: {} of {}", ids.len(), expected.len());
            }
        }
    }
}

#[test]
fn ticks_mean_the_same_to_stats_and_every_export() {
    let folder = tempfile::tempdir().unwrap();
    let path = recording("anthill.typhon-trace");
    for ticks in ["37", "10..12", "0"] {
        let rows = stats(&path, &["--ticks", ticks]);
        let count: u64 =
            rows["rows"].as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap()).sum();
        for target in ["csv", "chrome", "perfetto"] {
            let output = folder.path().join(format!("{ticks}-{target}"));
            let options = [
                "trace",
                "export",
                arg(&path),
                "-o",
                arg(&output),
                "--to",
                target,
                "--ticks",
                ticks,
                "--json",
            ];
            assert_eq!(typhon(&options).expect(0).json()["records"], count, "{ticks} {target}");
        }
        let cut = folder.path().join(format!("{ticks}-trace"));
        typhon(&["trace", "export", arg(&path), "-o", arg(&cut), "--to", "trace", "--ticks", ticks])
            .expect(0);
        let kept = Recording::read(&cut);
        // A cut also holds what its records need: names of threads, capacities.
        let is_selected = |record: &&Record| ![76, 77, 247].contains(&record.id);
        let others: u64 = rows["rows"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| {
                !["PerTickSnapshot", "ThreadInfo", "QueryDefinitionDescribe"]
                    .contains(&row["key"].as_str().unwrap())
            })
            .map(|row| row["count"].as_u64().unwrap())
            .sum();
        assert_eq!(kept.records.iter().filter(is_selected).count() as u64, others, "{ticks}");
    }
    let beyond = folder.path().join("beyond");
    let options = ["trace", "export", arg(&path), "-o", arg(&beyond), "--to", "csv", "--ticks", "900"];
    assert!(typhon(&options).expect(64).stderr.contains("last tick"));
    assert!(!beyond.exists());
}

/// A terminal is simulated with `script`, which every Linux has; elsewhere the tests of the table stand alone.
#[cfg(target_os = "linux")]
#[test]
fn a_narrow_terminal_gets_fewer_columns_and_is_told_so() {
    let binary = command().get_program().to_owned();
    let line = format!(
        "stty rows 40 cols 60; '{}' trace stats '{}' --top 4",
        binary.to_string_lossy(),
        recording("anthill.typhon-trace").display()
    );
    let script = std::process::Command::new("script").args(["-qec", &line, "/dev/null"]).output();
    let Ok(output) = script else {
        assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "`script` is missing");
        eprintln!("skipped a_narrow_terminal_gets_fewer_columns_and_is_told_so: no `script`");
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("not shown for lack of width: MIN"), "{text}");
    let escapes = regex::Regex::new("\x1b\\[[0-9;]*m").unwrap();
    for line in text.lines() {
        let visible = escapes.replace_all(line, "");
        assert!(visible.trim_end().chars().count() <= 60, "{line}");
    }
}

/// Spans that arrive long after their surroundings: their places are not exact, and no command that used them is silent.
#[test]
fn places_that_may_be_off_are_said_by_every_command_that_filters_by_them() {
    let folder = tempfile::tempdir().unwrap();
    let payload = [b'x'; 60_000];
    let span = |records: Records, id: u64, start: i64, duration: i64, payload: &[u8]| {
        records.span(246, 1, FIRST_TICKS + start, Span { duration, id, site: None, payload })
    };
    // More bytes than may wait; then one span inside the first of them and one around several.
    let mut blocks: Vec<Records> = (0..10)
        .map(|block| {
            let ids = block * 80..(block + 1) * 80;
            ids.fold(Records::default(), |all, id| span(all, id, id as i64 * 10, 8, &payload))
        })
        .collect();
    blocks.push(span(span(Records::default(), 900, 3, 2, b"in"), 901, 9, 5_000, b"around"));
    let path = trace(&folder.path().join("late.typhon-trace"), &blocks);
    let (output, filter) = (folder.path().join("out"), ["--where", "depth=7 self<1us"]);
    let mut commands: Vec<Vec<&str>> = vec![vec!["dump", arg(&path)], vec!["diff", arg(&path), arg(&path)]];
    for target in ["trace", "csv", "perfetto", "chrome"] {
        commands.push(vec!["export", "--force", arg(&path), "-o", arg(&output), "--to", target]);
    }
    for command in commands {
        let run = typhon(&[&["trace"], &command[..], &filter].concat()).expect(0);
        let says = |what: &str| assert!(run.stderr.contains(what), "{command:?} {what}: {}", run.stderr);
        says(" may be too large");
        says(" are too small");
    }
    let report = stats(&path, &filter);
    let losses = report["losses"].as_array().unwrap();
    for what in ["inexact-self-times", "too-small-depths"] {
        assert!(losses.iter().any(|loss| loss["what"] == what), "{what}: {losses:?}");
    }
}
