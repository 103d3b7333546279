//! Commands apart from dump: kinds, info, export, help, completions, man pages.

mod common;

use common::{arg, command, recording, repository, typhon};
use serde_json::{Value, json};
use tempfile::tempdir;

#[test]
fn kinds_json_is_the_registry_file() {
    let registry = std::fs::read_to_string(repository().join("crates/typhon-trace/registry/kinds.json"));
    assert_eq!(typhon(&["kinds", "--json"]).expect(0).stdout, registry.expect("readable"));
}

#[test]
fn kinds_json_with_a_filter_has_the_same_shape() {
    let all = typhon(&["kinds", "--json"]).expect(0).json();
    let some = typhon(&["kinds", "BTree*", "--default", "on", "--json"]).expect(0).json();
    let keys = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&all), keys(&some));
    let names: Vec<_> = some["kinds"].as_array().expect("a list").iter().map(|kind| &kind["name"]).collect();
    assert_eq!(names, ["BTreeInsert", "BTreeDelete", "BTreeNodeSplit", "BTreeNodeMerge"]);
    assert_eq!(
        some["counts"],
        json!({"entries": 4, "live": 4, "retired": 0, "removed": 0, "span": 4, "instant": 0})
    );
    assert!(
        some["kinds"]
            .as_array()
            .expect("a list")
            .iter()
            .all(|kind| all["kinds"].as_array().expect("a list").contains(kind))
    );
}

#[test]
fn kinds_are_found_by_name_id_family_and_default() {
    let lines = |args: &[&str]| typhon(args).expect(0).stdout.lines().count();
    assert_eq!(lines(&["kinds"]), 229, "a heading and 228 kinds");
    assert_eq!(lines(&["kinds", "20"]), 3, "a heading, a kind, a count");
    assert!(lines(&["kinds", "--family", "Spatial"]) > lines(&["kinds", "--family", "Spatial.Query"]));
    assert!(lines(&["kinds", "--default", "suppressed"]) > 2);
    let fields = typhon(&["kinds", "TransactionCommit", "--fields"]).expect(0).stdout;
    assert!(fields.contains("tsn") && fields.contains("mask 0x01"), "{fields}");
    assert!(typhon(&["kinds", "BTreeInsrt"]).expect(64).stderr.contains("did you mean `BTreeInsert`?"));
}

#[test]
fn info_says_what_a_file_is() {
    let text = typhon(&["trace", "info", arg(&recording("guide-shard.typhon-trace"))]).expect(0).stdout;
    for part in [
        "format 12",
        "2026-11-29 22:10:04Z",
        "duration 1.24 s",
        "ticks 30 (60 Hz target)",
        "world-shard",
        "workers 1",
        "systems 10",
        "4,194 in 116 blocks",
        "68 kinds",
        "SFLB, SLMN, CPUS, QSST",
        "gc 4 collections",
        "checksums  none",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
}

#[test]
fn info_of_standard_input_is_the_same() {
    let path = recording("guide-shard.typhon-trace");
    let bytes = std::fs::read(&path).expect("readable");
    let mut piped = common::typhon_with_stdin(&["trace", "info", "-", "--json"], &bytes).expect(0).json();
    let mut file = typhon(&["trace", "info", arg(&path), "--json"]).expect(0).json();
    assert_eq!(piped["file"]["path"].take(), "standard input");
    file["file"]["path"].take();
    assert_eq!(piped, file);
}

#[test]
fn verify_of_standard_input_is_the_same() {
    let path = recording("guide-shard.typhon-trace");
    let bytes = std::fs::read(&path).expect("readable");
    let piped = common::typhon_with_stdin(&["trace", "verify", "-", "--deep", "--json"], &bytes).json();
    common::schema::check(&piped, "verify.json");
    let file = typhon(&["trace", "verify", arg(&path), "--deep", "--json"]).json();
    assert_eq!(piped["findings"], file["findings"]);
}

/// Numbers of records agree between walk, info, dump and verify (brief 11 §7, invariant 6).
#[test]
fn commands_agree_on_the_number_of_records() {
    let folder = tempdir().expect("a temporary folder");
    for path in [common::traces::small(folder.path()), recording("anthill.typhon-trace")] {
        let info = typhon(&["trace", "info", arg(&path), "--json"]).expect(0).json();
        let records = info["counts"]["records"].as_u64().expect("scanned");
        let per_kind: u64 =
            info["counts"]["perKind"].as_object().expect("scanned").values().filter_map(Value::as_u64).sum();
        let dumped = typhon(&["trace", "dump", arg(&path), "--json"]).expect(0).stdout.lines().count() as u64;
        let verified = typhon(&["trace", "verify", arg(&path), "--json"]).json()["records"].as_u64();
        assert_eq!((per_kind, dumped, verified), (records, records, Some(records)));
    }
}

#[test]
fn a_cut_keeps_what_its_records_need() {
    let folder = tempdir().expect("a temporary folder");
    let source = common::traces::small(folder.path());
    let cut = folder.path().join("cut.typhon-trace");
    let run = typhon(&[
        "trace",
        "export",
        arg(&source),
        "-o",
        arg(&cut),
        "--to",
        "trace",
        "--where",
        "kind=BTree*",
        "--json",
    ]);
    let summary = run.expect(0).json();
    common::schema::check(&summary, "export.json");
    assert_eq!(summary["records"], 3);
    typhon(&["trace", "verify", arg(&cut)]).expect(0);
    let lines = typhon(&["trace", "dump", arg(&cut), "--json"]).expect(0).json_lines();
    let names: Vec<_> = lines.iter().map(|line| line["kind"].as_str().expect("a name")).collect();
    assert_eq!(names, ["ThreadInfo", "PerTickSnapshot", "BTreeInsert"]);
    let gauges = &lines[1]["fields"]["gauges"];
    assert_eq!(gauges.as_array().map(Vec::len), Some(1), "only the capacity: {gauges}");
    assert_eq!((&gauges[0]["gauge"], &gauges[0]["value"]), (&json!(0x0200), &json!(512)));
    assert_eq!(lines[2]["thread"], "Worker-1");
    let info = |path| typhon(&["trace", "info", arg(path), "--json"]).expect(0).json();
    assert_eq!(info(&cut)["systems"], info(&source)["systems"]);
    assert_eq!(info(&cut)["sections"].as_array().map(Vec::len), Some(2), "source locations stay");
}

#[test]
fn a_range_cuts_cpu_samples_too() {
    let folder = tempdir().expect("a temporary folder");
    let source = recording("guide-shard.typhon-trace");
    let cut = folder.path().join("cut.typhon-trace");
    typhon(&["trace", "export", arg(&source), "-o", arg(&cut), "--to", "trace", "--range", "1s..1.5s"])
        .expect(0);
    let samples = |path| {
        let info = typhon(&["trace", "info", arg(path), "--json"]).expect(0).json();
        let sections = info["sections"].as_array().expect("a list").clone();
        sections
            .iter()
            .find(|section| section["name"] == "CPUS")
            .map_or(0, |cpu| cpu["entries"].as_u64().expect("a count"))
    };
    assert!(samples(&cut) > 0 && samples(&cut) < samples(&source));
    assert!(typhon(&["trace", "verify", arg(&cut)]).code.is_some_and(|code| code <= 1));
}

#[test]
fn csv_export_is_the_dump_with_self_times_and_can_be_compressed() {
    use std::io::Read;
    let folder = tempdir().expect("a temporary folder");
    let source = recording("guide-shard.typhon-trace");
    let dumped = typhon(&["trace", "dump", arg(&source), "--format", "csv"]).expect(0).stdout;
    let plain = folder.path().join("plain.csv");
    typhon(&["trace", "export", arg(&source), "-o", arg(&plain), "--to", "csv"]).expect(0);
    let plain = std::fs::read_to_string(&plain).expect("readable");
    // Threads and ticks go by time and not by place in the file, and there is one column more, before the first that
    // may hold commas.
    let without = |line: &str, columns: &[usize]| {
        let cells = line.splitn(14, ',').enumerate().filter(|(index, _)| !columns.contains(index));
        cells.map(|(_, cell)| cell.to_owned()).collect::<Vec<_>>().join(",")
    };
    assert_eq!(plain.lines().next().and_then(|heading| heading.split(',').nth(8)), Some("self_ns"));
    assert_eq!(plain.lines().count(), dumped.lines().count());
    for (line, dumped) in plain.lines().zip(dumped.lines()) {
        assert_eq!(without(line, &[4, 5, 8]), without(dumped, &[4, 5]));
    }
    let packed = folder.path().join("packed.csv.gz");
    typhon(&["trace", "export", arg(&source), "-o", arg(&packed), "--to", "csv", "--compress"]).expect(0);
    let mut unpacked = String::new();
    let file = std::fs::File::open(&packed).expect("readable");
    flate2::read::GzDecoder::new(file).read_to_string(&mut unpacked).expect("valid gzip");
    assert_eq!(unpacked, plain);
}

#[test]
fn every_command_has_help_with_an_example() {
    for path in [
        vec![],
        vec!["kinds"],
        vec!["trace", "info"],
        vec!["trace", "dump"],
        vec!["trace", "verify"],
        vec!["trace", "repair"],
        vec!["trace", "export"],
        vec!["db", "log"],
        vec!["completions"],
        vec!["man"],
    ] {
        let mut args = path.clone();
        args.push("--help");
        let help = typhon(&args).expect(0).stdout;
        assert!(help.contains("Example") && help.contains("Usage: typhon"), "{path:?}\n{help}");
    }
    assert!(typhon(&["--version"]).expect(0).stdout.starts_with("typhon "));
}

#[test]
fn completions_and_man_pages() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = typhon(&["completions", shell]).expect(0).stdout;
        assert!(script.contains("dump") && script.contains("verify"), "{shell}");
    }
    let folder = tempdir().expect("a temporary folder");
    let target = folder.path().join("man1");
    typhon(&["man", arg(&target)]).expect(0);
    for page in
        ["typhon.1", "typhon-kinds.1", "typhon-trace-dump.1", "typhon-trace-repair.1", "typhon-db-log.1"]
    {
        let text = std::fs::read_to_string(target.join(page)).unwrap_or_else(|err| panic!("{page}: {err}"));
        assert!(text.contains(".TH"), "{page}");
    }
}

#[test]
fn colours_only_where_wanted() {
    let styled = |args: &[&str], env: &[(&str, &str)]| {
        let output = command().args(args).envs(env.iter().copied()).output().expect("the binary runs");
        output.stdout.contains(&0x1b) || output.stderr.contains(&0x1b)
    };
    for args in [["kinds", "20", "--quiet"], ["trace", "info", "/no/such/file"]] {
        let with = |color: &'static str| [&args[..], &["--color", color]].concat();
        assert!(!styled(&args, &[]), "a pipe");
        assert!(styled(&with("always"), &[]));
        assert!(!styled(&with("never"), &[("CLICOLOR_FORCE", "1")]));
        assert!(styled(&args, &[("CLICOLOR_FORCE", "1")]));
        assert!(!styled(&args, &[("NO_COLOR", "1")]));
    }
}

#[test]
fn what_is_looked_for_one_level_above_is_named() {
    let run = typhon(&["verify", "run.typhon-trace"]).expect(64);
    assert!(run.stderr.contains("did you mean `typhon trace verify`?"), "{}", run.stderr);
    assert!(!typhon(&["frobnicate"]).expect(64).stderr.contains("did you mean"));
}

#[test]
fn a_file_in_place_of_a_command_gets_the_commands_that_open_it() {
    let folder = tempdir().expect("a temporary folder");
    let renamed = folder.path().join("an old run.bin");
    std::fs::write(&renamed, "").expect("written");
    for (file, word) in [
        (arg(&renamed), format!("'{}'", arg(&renamed))),
        ("missing.typhon-trace", "missing.typhon-trace".to_owned()),
    ] {
        let said = typhon(&[file]).expect(64).stderr;
        for command in ["typhon ui", "typhon trace info"] {
            assert!(said.contains(&format!("`{command} {word}`")), "{said}");
        }
    }
    assert!(!typhon(&["frobnicate"]).expect(64).stderr.contains("typhon ui"));
}

#[test]
fn a_part_of_a_kinds_name_gets_the_pattern_for_it() {
    let run = typhon(&["kinds", "commit"]).expect(64);
    assert!(run.stderr.contains("typhon kinds '*commit*'"), "{}", run.stderr);
    assert!(typhon(&["kinds", "*commit*"]).expect(0).stdout.contains("TransactionCommit"));
}

#[test]
fn a_compressed_trace_gets_the_command_that_unpacks_it() {
    let folder = tempdir().expect("a folder");
    let packed = folder.path().join("a.gz");
    std::fs::write(&packed, [0x1F, 0x8B, 8, 0, 0]).expect("written");
    for command in [&["trace", "info"][..], &["ui", "--no-browser"]] {
        let stderr = typhon(&[command, &[arg(&packed)]].concat()).expect(65).stderr;
        assert!(stderr.contains("gunzip -c FILE > NEW.typhon-trace"), "{stderr}");
        assert!(!stderr.contains("trace info -"), "{stderr}");
    }
}

#[test]
fn what_the_workbench_cannot_be_started_with_is_said_in_words() {
    for (arguments, why) in [
        (["ui", "--at", "t=zzz"], "t is a window in ns"),
        (["ui", "--port", "x"], "write a whole number from 1 to 65535"),
    ] {
        let stderr = typhon(&arguments).expect(64).stderr;
        assert!(stderr.contains(why), "{stderr}");
    }
}

#[test]
fn exports_do_not_make_a_file_named_like_standard_output() {
    let folder = tempdir().expect("a folder");
    let source = recording("guide-shard.typhon-trace");
    let mut export = command();
    export.args(["trace", "export", arg(&source), "--to", "csv", "-o", "-"]).current_dir(folder.path());
    let output = export.output().expect("the binary ends");
    assert_eq!(output.status.code(), Some(73));
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn help_is_wrapped_between_words_and_ends_with_the_options_of_every_command() {
    for name in ["info", "dump", "stats", "diff", "verify", "repair", "export"] {
        let help = typhon(&["trace", name, "--help"]).expect(0).stdout;
        let (own, global) = help.split_once("Options of every command:").expect("two headings");
        assert!(!own.contains("--color") && global.contains("--color"), "{name}");
        // A line of our own that is too long leaves a single word behind.
        let orphan = |line: &&str| !line.is_empty() && !line.contains(' ') && !line.ends_with(':');
        assert_eq!(global.lines().find(orphan), None, "{name}");
    }
}
