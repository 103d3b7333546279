//! `trace diff`: verdicts, their numbers, exit codes.

use crate::common::traces::{FIRST_TICKS, Records, Span, trace};
use crate::common::{Run, arg, recording, schema, typhon};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// BTreeInsert spans with these durations, one after the other, after a TransactionCommit that never changes.
fn recording_of(folder: &Path, name: &str, durations: &[i64]) -> PathBuf {
    let span = |id: usize, duration: i64| Span { duration, id: id as u64, site: None, payload: &[0; 24] };
    let mut records = Records::default();
    for (index, duration) in durations.iter().enumerate() {
        let start = FIRST_TICKS + index as i64 * 100_000;
        records = records.span(40, 1, start, span(2 * index + 1, *duration));
        records = records.span(20, 1, start + 50_000, span(2 * index + 2, 1_000 + (index as i64 * 7) % 11));
    }
    trace(&folder.join(name), &[records])
}

fn diff(a: &Path, b: &Path, options: &[&str]) -> Run {
    typhon(&[&["trace", "diff", arg(a), arg(b)], options].concat())
}

fn row<'a>(document: &'a Value, key: &str) -> &'a Value {
    document["rows"].as_array().unwrap().iter().find(|row| row["key"] == key).unwrap()
}

/// The p-value from its definition: every pair is compared.
fn p_value(a: &[i64], b: &[i64]) -> f64 {
    let wins: f64 = b
        .iter()
        .flat_map(|b| a.iter().map(move |a| (b > a, b == a)))
        .map(|(wins, ties)| {
            if wins {
                1.0
            } else if ties {
                0.5
            } else {
                0.0
            }
        })
        .sum();
    let (n_a, n_b) = (a.len() as f64, b.len() as f64);
    let n = n_a + n_b;
    let mut all: Vec<i64> = a.iter().chain(b).copied().collect();
    all.sort_unstable();
    let cubes = all.chunk_by(|x, y| x == y).map(|tie| tie.len() as f64);
    let ties: f64 = cubes.map(|tie| tie.powi(3) - tie).sum();
    let deviation = (n_a * n_b / 12.0 * ((n + 1.0) - ties / (n * (n - 1.0)))).sqrt();
    let z = ((wins - n_a * n_b / 2.0).abs() - 0.5).max(0.0) / deviation;
    // Twice the upper tail of the normal distribution, integrated in small steps.
    let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let step = 1e-4;
    2.0 * (0..120_000).map(|n| density(z + (f64::from(n) + 0.5) * step) * step).sum::<f64>()
}

#[test]
fn a_real_shift_is_reported_with_the_p_value_of_its_definition() {
    let folder = tempfile::tempdir().unwrap();
    let fast: Vec<i64> = (0..60).map(|n| 1_000 + (n * 37) % 400).collect();
    let slow: Vec<i64> = (0..50).map(|n| 1_100 + (n * 53) % 400).collect();
    let a = recording_of(folder.path(), "a.typhon-trace", &fast);
    let b = recording_of(folder.path(), "b.typhon-trace", &slow);
    let document = diff(&a, &b, &["--json"]).expect(1).json();
    schema::check(&document, "diff.json");
    let insert = row(&document, "BTreeInsert");
    assert_eq!((&insert["change"], &insert["significant"]), (&json!("slower"), &json!(true)));
    assert_eq!((&insert["a"]["count"], &insert["b"]["count"]), (&json!(60), &json!(50)));
    assert_eq!(insert["a"]["totalNs"], fast.iter().sum::<i64>());
    let (p, expected) = (insert["p"].as_f64().unwrap(), p_value(&fast, &slow));
    assert!((p - expected).abs() < 1e-6 && expected > 1e-12, "{p} {expected}");
    assert_eq!(row(&document, "TransactionCommit")["change"], "none");

    let text = diff(&a, &b, &[]).expect(1).stdout;
    assert!(text.contains("▲ slower") && !text.contains("TransactionCommit"), "{text}");
    assert!(diff(&b, &a, &[]).expect(1).stdout.contains("▼ faster"));
    assert!(diff(&a, &b, &["--threshold", "50%"]).expect(0).stdout.contains("no significant changes"));
    assert!(diff(&a, &b, &["--min-count", "55"]).expect(0).stdout.contains("left out"));
}

#[test]
fn a_recording_does_not_differ_from_itself() {
    for name in ["anthill.typhon-trace", "guide-shard.typhon-trace", "all-kinds.typhon-trace"] {
        let path = recording(name);
        let document = diff(&path, &path, &["--json"]).expect(0).json();
        schema::check(&document, "diff.json");
        assert!(document["rows"].as_array().unwrap().iter().all(|row| row["significant"] == false));
    }
}

#[test]
fn two_parts_of_one_recording_can_be_compared() {
    let folder = tempfile::tempdir().unwrap();
    let durations: Vec<i64> = (0..80).map(|n| if n < 40 { 1_000 + n } else { 3_000 + n }).collect();
    let path = recording_of(folder.path(), "one.typhon-trace", &durations);
    let options = ["--range-a", "0ms..4ms", "--range-b", "4ms..8ms", "--json"];
    let document = diff(&path, &path, &options).expect(1).json();
    let insert = row(&document, "BTreeInsert");
    assert_eq!((&insert["a"]["count"], &insert["b"]["count"]), (&json!(40), &json!(40)));
    assert_eq!(insert["change"], "slower");
}

#[test]
fn ticks_and_filters_cut_both_sides() {
    let path = recording("anthill.typhon-trace");
    let options = ["--ticks-a", "1..34", "--ticks-b", "34..68", "--where", "kind=SchedulerChunk", "--json"];
    let run = diff(&path, &path, &options);
    let document = run.json();
    schema::check(&document, "diff.json");
    let count = |side: &str| -> u64 {
        let rows = document["rows"].as_array().unwrap();
        rows.iter().filter_map(|row| row[side]["count"].as_u64()).sum()
    };
    let expected = |ticks: &str| -> u64 {
        let options = ["--by", "name", "--ticks", ticks, "--where", "kind=SchedulerChunk"];
        let rows = crate::stats::stats(&path, &options)["rows"].clone();
        rows.as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap()).sum()
    };
    assert_eq!([count("a"), count("b")], [expected("1..34"), expected("34..68")]);
    diff(&path, &path, &["--ticks-a", "900"]).expect(64);
}

#[test]
fn what_only_one_side_has_is_added_or_removed() {
    let folder = tempfile::tempdir().unwrap();
    let a = recording_of(folder.path(), "a.typhon-trace", &[500; 40]);
    let b = recording("guide-shard.typhon-trace");
    let document = diff(&a, &b, &["--json", "--by", "kind"]).expect(1).json();
    let changes: Vec<&str> =
        document["rows"].as_array().unwrap().iter().map(|row| row["change"].as_str().unwrap()).collect();
    assert!(changes.contains(&"added") && changes.iter().all(|change| *change != "none"), "{changes:?}");
}

#[test]
fn mistakes_in_the_options_are_usage_errors() {
    let path = recording("guide-shard.typhon-trace");
    for options in [["--threshold", "much"], ["--range-a", "1s"], ["--by", "colour"], ["--max-p", "2"]] {
        diff(&path, &path, &options).expect(64);
    }
    let sided = [["--range-a", "1s"], ["--range-b", "nan..1s"], ["--ticks-a", "1e9"], ["--ticks-b", "x"]];
    for [option, value] in sided {
        let run = diff(&path, &path, &[option, value]).expect(64);
        assert!(run.stderr.contains(option), "{}", run.stderr);
    }
    typhon(&["trace", "diff", arg(&path), "/no/such/file"]).expect(66);
    typhon(&["trace", "diff", "-", arg(&path)]).expect(64);
}
