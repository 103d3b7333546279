//! `typhon demo`: the same world every time, a recording that is sound however it ends, and clear words when it cannot
//! begin.
#![cfg(unix)]

mod common;

use anthill::Colony;
use common::{Run, arg, schema, typhon};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use typhon::prelude::*;

const ANTS: u32 = 5_000;
const TICKS: u32 = 90;

fn demo(output: &Path, more: &[&str]) -> Run {
    let ants = ANTS.to_string();
    let mut args = vec!["demo", "--ants", &ants, "--hz", "200", "--json", "-o", arg(output)];
    args.extend(more);
    typhon(&args)
}

/// The world of the same seed, without any recording.
fn unrecorded_hash() -> String {
    let engine = Engine::builder().build().expect("default options");
    let colony = Colony::new(ANTS, 1);
    let runtime = Runtime::create(&engine, |schedule| colony.declare(schedule)).expect("a valid schedule");
    for tick in 1..=TICKS {
        runtime.step(Duration::from_millis(5) * tick).expect("it runs");
    }
    runtime.shutdown().expect("it ends");
    format!("{:016x}", colony.world().hash())
}

#[test]
fn a_seed_is_a_world_for_any_number_of_workers_recorded_or_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let expected = unrecorded_hash();
    for workers in ["1", "2", "4"] {
        let output = folder.path().join(format!("{workers}.typhon-trace"));
        let ticks = TICKS.to_string();
        let document = demo(&output, &["--ticks", &ticks, "--workers", workers]).expect(0).json();
        schema::check(&document, "demo.json");
        assert_eq!(document["ticks"]["count"], TICKS, "{document}");
        assert_eq!(document["world"]["hash"], expected.as_str(), "{workers} workers");
        assert_eq!(
            (&document["dropped"], &document["workers"]),
            (&Value::from(0), &workers.parse().unwrap())
        );
        typhon(&["trace", "verify", "--deep", arg(&output)]).expect(0);
    }
}

#[test]
fn the_recording_names_tracks_phases_systems_and_queues() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("run.typhon-trace");
    demo(&output, &["--ticks", "70", "--workers", "2"]).expect(0);
    let text = typhon(&["trace", "info", arg(&output)]).expect(0).stdout;
    assert!(text.contains("workers 2") && text.contains("ticks 70 (200 Hz target)"), "{text}");
    let info = typhon(&["trace", "info", "--json", arg(&output)]).expect(0).json();
    assert_eq!(info["counts"]["ticks"], 70);
    let names = |table: &str| -> Vec<String> {
        let rows = info[table].as_array().unwrap_or_else(|| panic!("no table {table}: {info}"));
        rows.iter().map(|row| row["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(names("tracks"), ["Engine-Pre", "Public", "Environment", "Presentation", "Engine-Post"]);
    assert_eq!(names("dags"), ["Colony", "Garden", "Spiders", "Picture"]);
    assert!(names("systems").contains(&"AntSteer".to_owned()));
    assert!(names("eventQueues").contains(&"FoodReached".to_owned()));
    let text = typhon(&["trace", "stats", "--by", "system", arg(&output)]).expect(0).stdout;
    assert!(text.contains("Throttled: not its turn, by its own tick_divisor"), "{text}");
    // Systems that run alone have a span around their chunks as well; it does not count twice.
    let stats = typhon(&["trace", "stats", "--by", "system", "--json", arg(&output)]).expect(0).json();
    let steered = stats["rows"].as_array().into_iter().flatten().find(|row| row["key"] == "AntSteer");
    assert!(steered.is_some_and(|row| row["count"] == 70 * 2), "two chunks of ants in each tick: {stats}");
}

#[test]
fn the_demo_and_the_statistics_of_its_recording_count_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("run.typhon-trace");
    // Too fast for the storm: some ticks are longer than the target, at several multipliers.
    let args = ["demo", "--ants", "500", "--hz", "500", "--ticks", "650", "--overload", "--json", "-o"];
    let said = typhon(&[&args[..], &[arg(&output)]].concat()).expect(0).json();
    let stats = typhon(&["trace", "stats", "--by", "system", "--json", arg(&output)]).expect(0).json();
    let overload = &stats["schedule"]["overload"];
    assert!(said["ticks"]["overruns"].as_u64().is_some_and(|overruns| overruns > 0), "{said}");
    assert_eq!(said["ticks"]["overruns"], overload["lateTicks"], "{said} {overload}");
    // When the level changed, and why: it climbs from the normal one because ticks took too long.
    let changes = overload["changes"].as_array().expect("a list");
    let first = changes.first().unwrap_or_else(|| panic!("no change: {overload}"));
    assert_eq!((&first["from"], &first["to"]), (&"Normal".into(), &"SystemThrottling".into()), "{first}");
    assert!(first["ratio"].as_f64().is_some_and(|ratio| ratio > 0.0), "{first}");
    assert!(first["tick"].as_i64().is_some_and(|tick| (5..=650).contains(&tick)), "{first}");
    assert!(
        changes.windows(2).all(|two| two[0]["to"] == two[1]["from"]),
        "each begins where one ended: {overload}"
    );
    let text = typhon(&["trace", "stats", "--by", "system", arg(&output)]).expect(0).stdout;
    let tick = first["tick"].to_string();
    let shown = text.lines().find(|line| line.starts_with("Normal -> SystemThrottling"));
    assert!(shown.is_some_and(|line| line.split_whitespace().any(|word| word == tick)), "{text}");
}

#[test]
fn the_commands_at_the_end_name_the_recording_whatever_it_is_called() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("an ant's life.typhon-trace");
    let said = typhon(&["demo", "--ants", "50", "--ticks", "3", "-o", arg(&output)]).expect(0).stdout;
    let (_, command) = said.split_once("  typhon trace stats ").expect("what to run next");
    let (word, _) = command.split_once(" --by system").expect("the first command");
    let shell = Command::new("sh").args(["-c", &format!("printf %s {word}")]).output().expect("a shell");
    assert_eq!(String::from_utf8_lossy(&shell.stdout), arg(&output));
}

#[test]
fn how_long_it_runs_is_said_in_either_spelling() {
    let folder = tempfile::tempdir().expect("a folder");
    for (option, time) in [("--seconds", "1"), ("--seconds", "600ms"), ("--duration", "0.6s")] {
        let output = folder.path().join("run.typhon-trace");
        let started = std::time::Instant::now();
        typhon(&["demo", "--ants", "50", "--force", "-o", arg(&output), option, time]).expect(0);
        assert!(started.elapsed().as_millis() >= 600, "{option} {time}");
    }
    for wrong in ["0", "-1", "25h", "soon"] {
        let run = typhon(&["demo", &format!("--duration={wrong}")]).expect(64);
        assert!(run.stderr.contains("a number alone is seconds"), "{}", run.stderr);
    }
    let help = typhon(&["demo", "--help"]).expect(0).stdout;
    assert!(help.contains("--duration"), "{help}");
}

#[test]
fn an_output_that_exists_is_kept_unless_forced() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("run.typhon-trace");
    std::fs::write(&output, "precious").expect("a file");
    let refused = demo(&output, &["--ticks", "5"]).expect(73);
    assert!(
        refused.stderr.contains("the output exists") && refused.stderr.contains("--force"),
        "{}",
        refused.stderr
    );
    assert_eq!(std::fs::read(&output).expect("still there"), b"precious");
    demo(&output, &["--ticks", "5", "--force"]).expect(0);
    typhon(&["trace", "verify", arg(&output)]).expect(0);
}

#[test]
fn a_place_that_cannot_be_written_to_ends_the_demo_before_it_begins() {
    let folder = tempfile::tempdir().expect("a folder");
    for place in [folder.path().join("missing/run.typhon-trace"), folder.path().to_path_buf()] {
        let refused = demo(&place, &["--ticks", "5"]).expect(73);
        assert!(refused.stderr.contains("error: "), "{}", refused.stderr);
        assert_eq!(refused.stdout, "");
    }
}

/// A demo that runs until it is stopped, and has written something. Whoever runs the tests may ignore signals, which
/// children inherit; `env` puts the defaults back.
fn running(output: &Path) -> Child {
    let child = Command::new("env")
        .args(["--default-signal", env!("CARGO_BIN_EXE_typhon")])
        .args(["demo", "--ants", "2000", "--seconds", "60", "-o", arg(output)])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let patience = Instant::now() + Duration::from_secs(60);
    while std::fs::metadata(output).map_or(0, |data| data.len()) < 50_000 {
        assert!(Instant::now() < patience, "nothing is recorded");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

#[test]
fn ctrl_c_ends_the_demo_and_completes_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("run.typhon-trace");
    let mut child = running(&output);
    signal(&child, "-INT");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    typhon(&["trace", "verify", arg(&output)]).expect(0);
    let info = typhon(&["trace", "info", "--json", arg(&output)]).expect(0).json();
    assert_eq!(info["file"]["closed"], true);
}

#[test]
fn a_killed_demo_leaves_what_it_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("run.typhon-trace");
    let mut child = running(&output);
    signal(&child, "-KILL");
    child.wait().expect("it ends");
    let info = typhon(&["trace", "info", "--json", arg(&output)]).expect(0).json();
    assert_eq!(info["file"]["closed"], false);
    assert!(info["counts"]["records"].as_u64().is_some_and(|records| records > 1_000), "{}", info["counts"]);
}

#[test]
fn a_second_demo_does_not_touch_the_recording_of_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("run.typhon-trace");
    let mut first = running(&output);
    demo(&output, &["--ticks", "5"]).expect(73);
    let refused = demo(&output, &["--ticks", "5", "--force"]).expect(73);
    assert!(refused.stderr.contains("in use") || refused.stderr.contains("another"), "{}", refused.stderr);
    signal(&first, "-TERM");
    assert_eq!(first.wait().expect("it ends").code(), Some(143));
    typhon(&["trace", "verify", arg(&output)]).expect(0);
}

#[test]
fn a_full_disk_is_said_and_what_fits_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("run.typhon-trace");
    // A limit on the size of files stands for the disk: 100 blocks of 512 bytes or 1 KiB, as the shell counts.
    let script = "ulimit -f 100; exec \"$@\"";
    let run = Command::new("sh")
        .args(["-c", script, "sh", env!("CARGO_BIN_EXE_typhon")])
        .args(["demo", "--ants", "2000", "--hz", "200", "--ticks", "400", "--json", "-o", arg(&output)])
        .output()
        .expect("the shell runs");
    let document: Value = serde_json::from_slice(&run.stdout).expect("one document");
    schema::check(&document, "demo.json");
    assert_eq!(document["losses"][0]["code"], "unwritten", "{document}");
    assert_eq!(document["losses"][0]["count"], document["dropped"]);
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(74), "{said}");
    assert!(said.contains("not complete") && said.contains("could not be written"), "{said}");
    let info = typhon(&["trace", "info", "--json", arg(&output)]).expect(0).json();
    assert!(info["counts"]["records"].as_u64().is_some_and(|records| records > 0), "{}", info["counts"]);
}

/// A page of the repository.
fn page(path: &str) -> String {
    std::fs::read_to_string(common::repository().join(path)).unwrap_or_else(|err| panic!("{path}: {err}"))
}

/// The kinds of a recording.
fn kinds(trace: &Path) -> BTreeSet<u64> {
    let dump = typhon(&["trace", "dump", arg(trace), "--format", "jsonl"]).expect(0);
    dump.json_lines().iter().filter_map(|line| line["id"].as_u64()).collect()
}

/// The numbers in the parentheses of a text, `(146–148, 150)`, one by one.
fn numbers_in(text: &str) -> Vec<u64> {
    let number = |text: &str| text.trim().parse::<u64>().unwrap_or_else(|_| panic!("`{text}` is no number"));
    let expand = |part: &str| match part.split_once('–') {
        Some((first, last)) => number(first)..=number(last),
        None => number(part)..=number(part),
    };
    let groups = text.split('(').skip(1).filter_map(|rest| rest.split_once(')'));
    let numbers: Vec<u64> = groups.flat_map(|(group, _)| group.split(',')).flat_map(expand).collect();
    assert!(!numbers.is_empty(), "no numbers in `{text}`");
    numbers
}

/// The kinds for which a column of the page's table says "yes".
fn promised(table: &str, column: usize) -> BTreeSet<u64> {
    let rows = table.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let rows = rows.take_while(|line| line.starts_with('|')).map(|line| line.split('|').collect::<Vec<_>>());
    let yes = rows.filter(|cells| cells[column].trim().starts_with("yes"));
    yes.flat_map(|cells| numbers_in(cells[1])).collect()
}

#[test]
fn the_page_says_which_kinds_are_recorded_here_and_by_the_reference() {
    let page = page("docs/demo.md");
    let (_, table) = page.split_once("## What it records").expect("the section");
    let reference = kinds(&common::repository().join("corpus/anthill.typhon-trace"));
    assert_eq!(promised(table, 2), reference, "what the reference records");

    let folder = tempfile::tempdir().expect("a folder");
    let run = |name: &str, args: &[&str]| {
        let output = folder.path().join(name);
        typhon(&[&["demo", "--json", "-o", arg(&output)], args].concat()).expect(0);
        kinds(&output)
    };
    // Ticks long enough for helpers to be called, and ticks that are too long at several levels.
    let long = ["--ants", "60000", "--hz", "30", "--ticks", "60", "--workers", "2"];
    let mut ours = run("long", &long);
    ours.extend(run("storm", &["--ants", "500", "--hz", "500", "--ticks", "650", "--overload"]));
    assert_eq!(promised(table, 3), ours, "what the demo records");
}

/// What the demo calls the levels of overload: which it shows depends on how busy the machine is.
const LEVELS: [&str; 5] = ["normal", "throttling", "reduced scope", "lower tick rate", "shedding players"];

/// A line without its numbers and what stands for one: units, plurals, hashes, levels of overload.
fn shape(line: &str) -> String {
    let mut line = LEVELS.iter().fold(line.to_owned(), |line, level| line.replace(level, "LEVEL"));
    if let Some((before, (_, after))) =
        line.split_once(", every ").and_then(|(a, b)| Some((a, b.split_once(" steps")?)))
    {
        line = format!("{before}{after}");
    }
    let words = line.split_whitespace().map(|word| {
        let bare = word.trim_end_matches([',', ';', ')']).trim_start_matches('(');
        let is_hash = bare.len() == 16 && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
        match bare {
            "ns" | "µs" | "ms" | "s" => "TIME".to_owned(),
            "B" | "KiB" | "MiB" | "GiB" => "SIZE".to_owned(),
            _ if is_hash || bare.starts_with(|letter: char| letter.is_ascii_digit()) => "N".to_owned(),
            _ if bare.ends_with(".typhon-trace") => "FILE".to_owned(),
            _ => word.trim_end_matches(',').to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_pages_show_the_output_that_the_demo_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("anthill.typhon-trace");
    let args = ["demo", "--ants", "2000", "--hz", "200", "--ticks", "250", "-o", arg(&output)];
    let printed: Vec<String> = typhon(&args).expect(0).stdout.lines().map(shape).collect();
    for path in ["README.md", "docs/demo.md"] {
        let page = page(path);
        let (before, after) = page.split_once("\nworld   ").unwrap_or_else(|| panic!("no output in {path}"));
        let (block, _) = after.split_once("\n```").expect("its end");
        let (_, above) = before.rsplit_once("```text").expect("its beginning");
        let result = format!("world   {block}");
        let shown = above.lines().chain(result.lines());
        let shown = shown.filter(|line| !line.is_empty() && !line.starts_with('$'));
        for line in shown {
            let shape = shape(line);
            assert!(printed.contains(&shape), "{path}: `{line}` is `{shape}`, not one of {printed:#?}");
        }
    }
}

#[test]
fn records_number_ticks_from_0_as_the_reference_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let ours = folder.path().join("run.typhon-trace");
    demo(&ours, &["--ticks", "40"]).expect(0);
    let theirs = common::repository().join("corpus/anthill.typhon-trace");
    for trace in [&ours, &theirs] {
        let dump = typhon(&["trace", "dump", arg(trace), "--format", "jsonl"]).expect(0);
        let mut checked = BTreeMap::<u64, u32>::new();
        for line in dump.json_lines() {
            let (Some(id), Some(tick)) = (line["id"].as_u64(), line["tick"].as_i64()) else { continue };
            let fields = &line["fields"];
            let number = match id {
                76 => fields["tickNumber"].as_i64(),
                // Said before the tick begins.
                158 => fields["tick"].as_i64().map(|number| number - 1),
                162 | 242 | 244 => fields["tick"].as_i64(),
                _ => continue,
            };
            assert_eq!(number, Some(tick - 1), "{}: {line}", trace.display());
            *checked.entry(id).or_default() += 1;
        }
        assert!(checked.len() >= 3 && checked.values().all(|&count| count > 1), "{checked:?}");
    }
}
