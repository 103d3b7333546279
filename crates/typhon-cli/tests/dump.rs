//! `trace dump`: what the options select and how lines look.

mod common;

use common::traces::{self, Records};
use common::{arg, typhon};
use serde_json::{Value, json};
use std::path::PathBuf;
use tempfile::{TempDir, tempdir};

fn small() -> (TempDir, PathBuf) {
    let folder = tempdir().expect("a temporary folder");
    let path = traces::small(folder.path());
    (folder, path)
}

fn dump(args: &[&str]) -> Vec<Value> {
    let (_folder, path) = small();
    let mut all = vec!["trace", "dump", arg(&path), "--json"];
    all.extend(args);
    typhon(&all).expect(0).json_lines()
}

fn kinds(args: &[&str]) -> Vec<String> {
    dump(args).iter().map(|line| line["kind"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn a_span_has_every_member_of_the_contract() {
    let lines = dump(&["--kind", "TransactionCommit"]);
    assert_eq!(
        lines,
        [json!({
            "kind": "TransactionCommit", "id": 20, "slot": 1, "thread": "Worker-1", "tick": 2, "ts": 500_000,
            "dur": 1_500_000, "spanId": "0x0100000000000001", "parentSpanId": null, "traceId": null,
            "site": {"id": 1, "file": "src/sim.rs", "line": 76, "method": "execute"},
            "fields": {"tsn": 4242, "componentCount": 3}, "event": "1.2",
        })]
    );
    dump(&[]).iter().for_each(|line| common::schema::check(line, "dump-record.json"));
}

#[test]
fn b38_checksum_markers_are_not_shown_but_counted_in_event_ids() {
    let events: Vec<_> =
        dump(&[]).iter().map(|line| line["event"].as_str().expect("an id").to_owned()).collect();
    assert_eq!(events, ["0.1", "0.2", "0.3", "1.1", "1.2", "2.1", "2.2"]);
}

#[test]
fn times_are_relative_absolute_or_raw() {
    let commit = |time: &str| dump(&["--kind", "20", "--time", time])[0].clone();
    assert_eq!((&commit("rel")["ts"], &commit("rel")["dur"]), (&json!(500_000), &json!(1_500_000)));
    assert_eq!(commit("raw")["ts"], json!(traces::FIRST_TICKS + 500_000));
    let created_ns = (traces::CREATED_UTC_TICKS - 621_355_968_000_000_000) * 100;
    assert_eq!(commit("abs")["ts"], json!(created_ns + 500_000));
}

#[test]
fn selections() {
    assert_eq!(kinds(&["--kind", "BTree*"]), ["BTreeInsert"]);
    assert_eq!(kinds(&["--kind", "40", "--kind", "20"]), ["TransactionCommit", "BTreeInsert"]);
    assert_eq!(kinds(&["--where", "dur>100us"]), ["TransactionCommit"]);
    assert_eq!(kinds(&["--where", "site~sim"]), ["TransactionCommit"]);
    assert_eq!(kinds(&["--ticks", "3..4"]), ["TickStart", "BTreeInsert"]);
    assert_eq!(kinds(&["--thread", "Worker-*", "--kind", "TickStart"]).len(), 3);
    assert_eq!(kinds(&["--thread", "Main"]), Vec::<String>::new());
    assert_eq!(kinds(&["--limit", "2"]), ["ThreadInfo", "TickStart"]);
    assert_eq!(kinds(&["--tail", "2"]), ["TickStart", "BTreeInsert"]);
    assert_eq!(kinds(&["--limit", "0"]), Vec::<String>::new());
}

#[test]
fn a_range_takes_in_spans_that_reach_into_it() {
    assert_eq!(kinds(&["--range", "1.2ms..1.3ms"]), ["TransactionCommit"]);
    assert_eq!(kinds(&["--range", "..1us"]), ["ThreadInfo", "TickStart", "PerTickSnapshot"]);
    assert_eq!(
        kinds(&["--range", "2ms.."]),
        ["TickStart", "BTreeInsert"],
        "the commit ends where the range begins"
    );
}

#[test]
fn sorting_by_time() {
    let times =
        |args: &[&str]| dump(args).iter().map(|line| line["ts"].as_i64().expect("ns")).collect::<Vec<_>>();
    assert!(!times(&[]).is_sorted());
    let sorted = times(&["--sort", "time"]);
    assert!(sorted.is_sorted() && sorted.len() == 7);
    assert_eq!(times(&["--sort", "time", "--tail", "3"]), sorted[4..]);
    assert_eq!(times(&["--sort", "time", "--limit", "3"]), sorted[..3]);
}

#[test]
fn sorting_by_duration_puts_the_longest_first_and_instants_last() {
    let durations = |args: &[&str]| dump(args).iter().map(|line| line["dur"].as_i64()).collect::<Vec<_>>();
    let mut expected = durations(&[]);
    assert!(expected.contains(&None) && expected.iter().flatten().count() > 1);
    expected.sort_by_key(|&duration| std::cmp::Reverse(duration));
    assert_eq!(durations(&["--sort", "dur"]), expected);
    assert_eq!(durations(&["--sort", "dur", "--limit", "1"]), expected[..1]);
}

#[test]
fn kinds_may_be_separated_by_commas() {
    assert_eq!(
        kinds(&["--kind", "TickStart,TransactionCommit"]),
        kinds(&["--kind", "TickStart", "--kind", "TransactionCommit"])
    );
    assert!(kinds(&["--kind", "TickStart,TransactionCommit"]).contains(&"TickStart".to_owned()));
}

#[test]
fn integers_of_64_bits_can_be_strings() {
    let line = &dump(&["--kind", "20", "--int64", "string"])[0];
    assert_eq!(line["fields"], json!({"tsn": "4242", "componentCount": 3}));
    assert_eq!((&line["ts"], &line["dur"]), (&json!("500000"), &json!("1500000")));
}

#[test]
fn fields_can_be_chosen() {
    assert_eq!(
        dump(&["--kind", "20", "--fields", "componentCount"])[0]["fields"],
        json!({"componentCount": 3})
    );
    let (_folder, path) = small();
    let run = typhon(&["trace", "dump", arg(&path), "--fields", "componentCont"]).expect(64);
    assert!(run.stderr.contains("did you mean `componentCount`?"), "{}", run.stderr);
}

#[test]
fn unknown_kinds_and_raw_give_bytes() {
    let folder = tempdir().expect("a temporary folder");
    let blocks = [Records::default().raw(200, 1, 5, &[]).raw(255, 1, 7, &[0xab, 0xcd])];
    let path = traces::trace(&folder.path().join("t"), &blocks);
    let lines = typhon(&["trace", "dump", arg(&path), "--json", "--where", "id=255"]).expect(0).json_lines();
    assert_eq!(lines[0]["kind"], Value::Null);
    assert_eq!(lines[0]["raw"], "0e00ff010700000000000000abcd");
    common::schema::check(&lines[0], "dump-record.json");
    let all = typhon(&["trace", "dump", arg(&path), "--json", "--raw"]).expect(0).json_lines();
    assert!(all.iter().all(|line| line["raw"].is_string()));
}

#[test]
fn numbers_that_json_lacks_are_strings() {
    let folder = tempdir().expect("a temporary folder");
    // All bits set is a NaN.
    let kind = typhon_trace::registry::kind_by_name("SpatialRealmRates").expect("a known kind");
    let payload = vec![0xff; kind.required_bytes()];
    let path = traces::trace(&folder.path().join("t"), &[Records::default().raw(kind.id, 0, 1, &payload)]);
    let lines = typhon(&["trace", "dump", arg(&path), "--json"]).expect(0).json_lines();
    assert_eq!(lines[0]["fields"]["tightnessExtentSum"], "NaN");
}

#[test]
fn csv_has_a_column_per_field_for_one_kind_and_json_for_many() {
    let (_folder, path) = small();
    let many = typhon(&["trace", "dump", arg(&path), "--format", "csv"]).expect(0).stdout;
    let rows = parse_csv(&many);
    assert_eq!(
        rows[0].join(","),
        "event,kind,id,slot,thread,tick,ts_ns,dur_ns,span,parent,trace,site,fields"
    );
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    assert_eq!(rows.len(), 8);
    assert_eq!(rows[5][12], r#"{"tsn":4242,"componentCount":3}"#);
    let one = typhon(&["trace", "dump", arg(&path), "--format", "csv", "--kind", "transactioncommit"])
        .expect(0)
        .stdout;
    let rows = parse_csv(&one);
    let column = |name: &str| rows[0].iter().position(|title| title == name).expect("a column");
    assert_eq!((&*rows[1][column("tsn")], &*rows[1][column("componentCount")]), ("4242", "3"));
    assert_eq!(rows[1][column("conflictDetected")], "", "an absent field is an empty cell");
}

/// RFC 4180, strictly: CRLF ends rows, quotes double inside quotes.
fn parse_csv(text: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = Vec::new();
    let mut chars = text.chars().peekable();
    while chars.peek().is_some() {
        let mut cell = String::new();
        if chars.next_if_eq(&'"').is_some() {
            loop {
                match chars.next().expect("a closing quote") {
                    '"' if chars.next_if_eq(&'"').is_some() => cell.push('"'),
                    '"' => break,
                    c => cell.push(c),
                }
            }
        } else {
            while let Some(c) = chars.next_if(|c| !matches!(c, ',' | '\r')) {
                assert!(c != '"' && c != '\n', "unquoted {c:?}");
                cell.push(c);
            }
        }
        row.push(cell);
        match chars.next() {
            Some(',') => {}
            Some('\r') => {
                assert_eq!(chars.next(), Some('\n'));
                rows.push(std::mem::take(&mut row));
            }
            other => panic!("{other:?} after a cell"),
        }
    }
    rows
}

#[test]
fn text_is_one_line_a_record() {
    let (_folder, path) = small();
    let run = typhon(&["trace", "dump", arg(&path)]).expect(0);
    assert_eq!(run.stdout.lines().count(), 8, "{}", run.stdout);
    let commit = run.stdout.lines().find(|line| line.contains("TransactionCommit")).expect("a line");
    for part in ["0.000500000", "Worker-1", "1.5 ms", "tsn=4242", "componentCount=3", "@1.2"] {
        assert!(commit.contains(part), "{commit}");
    }
}

#[test]
fn a_limit_says_that_it_stopped_and_quiet_does_not() {
    let (_folder, path) = small();
    let run = typhon(&["trace", "dump", arg(&path), "--limit", "1"]).expect(0);
    assert_eq!(run.stderr, "stopped after 1 record (--limit)\n");
    assert_eq!(typhon(&["trace", "dump", arg(&path), "--limit", "1", "-q"]).expect(0).stderr, "");
    assert_eq!(
        typhon(&["trace", "dump", arg(&path), "--limit", "8"]).expect(0).stderr,
        "",
        "nothing was stopped"
    );
}
