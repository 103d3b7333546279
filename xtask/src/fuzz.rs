//! `cargo xtask fuzz`: runs the fuzz targets one after the other, each for a given time.
//!
//! Sanitizers need flags that a stable compiler only accepts with `RUSTC_BOOTSTRAP=1`.

use std::path::PathBuf;
use std::process::Command;

use crate::{Outcome, testing, workspace};

const USAGE: &str = "usage: cargo xtask fuzz [--seconds N] [target…]";

/// Resident memory above which a target fails: no input may make us reserve more than a small multiple of its size.
const RSS_MEGABYTES_MAX: u32 = 1024;

/// Seconds that a single input may take before it counts as a hang.
const INPUT_SECONDS_MAX: u32 = 10;

/// Lines shown of what a failing target reported.
const CAUSE_LINES: usize = 12;

/// Builds and runs the named targets, or all of them, and prints executions and coverage of each.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let (seconds, targets) = parse(arguments, &all_targets()?)?;
    if !testing::is_installed("cargo-fuzz") {
        workspace::run_cargo(&["install", "cargo-fuzz", "--locked", "--quiet"])?;
    }
    workspace::succeed(cargo_fuzz("build").args(["--sanitizer", "address"]))?;
    println!("{:<16} {:>12} {:>10} {:>10}", "target", "executions", "edges", "features");
    let mut failed = Vec::new();
    for target in &targets {
        match fuzz(target, seconds) {
            Ok(run) => println!("{target:<16} {:>12} {:>10} {:>10}", run.executions, run.edges, run.features),
            Err(report) => {
                println!("{target:<16} FAILED\n{report}");
                failed.push(target.as_str());
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failing inputs are in fuzz/artifacts: {failed:?}")) }
}

/// Writes the committed seeds anew, from the recordings in `corpus/`.
pub(crate) fn write_seeds(_arguments: &[String]) -> Outcome {
    workspace::run_cargo(&["run", "--quiet", "--manifest-path", "fuzz/Cargo.toml", "--example", "seeds"])
}

/// Names of all targets, which are the files of `fuzz/fuzz_targets`.
fn all_targets() -> Result<Vec<String>, String> {
    let folder = workspace::root().join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".rs").map(str::to_owned))
        .collect();
    names.sort();
    Ok(names)
}

fn parse(arguments: &[String], known: &[String]) -> Result<(u32, Vec<String>), String> {
    let mut seconds = 10;
    let mut targets = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--seconds" {
            let value = rest.next().ok_or(USAGE)?;
            seconds = value.parse().map_err(|_| format!("--seconds {value}: not a number\n{USAGE}"))?;
        } else if known.contains(argument) {
            targets.push(argument.clone());
        } else {
            return Err(format!("no fuzz target {argument}; there are {}\n{USAGE}", known.join(", ")));
        }
    }
    if targets.is_empty() {
        targets = known.to_vec();
    }
    Ok((seconds, targets))
}

fn cargo_fuzz(task: &str) -> Command {
    let mut command = workspace::cargo();
    command.env("RUSTC_BOOTSTRAP", "1").args(["fuzz", task]);
    command
}

/// What one run of a target reached.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    executions: u64,
    edges: u64,
    features: u64,
}

/// Runs one target; new inputs go to `fuzz/corpus`, which is not under version control, beside the committed seeds.
fn fuzz(target: &str, seconds: u32) -> Result<Run, String> {
    let seeds = workspace::root().join("fuzz/seeds").join(target);
    let found = workspace::root().join("fuzz/corpus").join(target);
    for folder in [&seeds, &found] {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let output = cargo_fuzz("run")
        .args(["--sanitizer", "address", target])
        .args::<_, PathBuf>([found, seeds])
        .args(["--", "-print_final_stats=1", "-max_len=65536"])
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg(format!("-rss_limit_mb={RSS_MEGABYTES_MAX}"))
        .output()
        .map_err(|error| format!("cargo fuzz: {error}"))?;
    let log = String::from_utf8_lossy(&output.stderr);
    match summary(&log) {
        Some(run) if output.status.success() => Ok(run),
        _ => Err(failure(&log)),
    }
}

/// Reads libFuzzer's own summary.
fn summary(log: &str) -> Option<Run> {
    let number_after = |line: &str, label: &str| {
        let mut words = line.split_whitespace().skip_while(|word| *word != label);
        words.nth(1)?.parse().ok()
    };
    let progress = log.lines().rfind(|line| line.contains(" cov: "))?;
    let executed = log.lines().find(|line| line.starts_with("stat::number_of_executed_units:"))?;
    Some(Run {
        executions: number_after(executed, "stat::number_of_executed_units:")?,
        edges: number_after(progress, "cov:")?,
        features: number_after(progress, "ft:")?,
    })
}

/// The part of libFuzzer's log that says what went wrong and how to see it again.
fn failure(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let is_cause = |line: &&str| ["panicked at", "ERROR: ", "error: "].iter().any(|mark| line.contains(mark));
    let cause = lines.iter().position(is_cause).unwrap_or(lines.len().saturating_sub(CAUSE_LINES));
    let reproduce = lines.iter().rposition(|line| line.contains("cargo fuzz run"));
    let mut report = lines[cause..].iter().take(CAUSE_LINES).copied().collect::<Vec<_>>();
    report.extend(reproduce.map(|at| lines[at].trim()));
    report.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_choose_time_and_targets() {
        let known = ["block".to_owned(), "filter".to_owned()];
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(parse(&[], &known).unwrap(), (10, known.to_vec()));
        assert_eq!(parse(&words("--seconds 3 filter"), &known).unwrap(), (3, vec!["filter".to_owned()]));
        assert!(parse(&words("--seconds"), &known).is_err());
        assert!(parse(&words("no-such-target"), &known).is_err());
    }

    #[test]
    fn the_summary_is_read_from_the_last_lines() {
        let log = "#2\tINITED cov: 3 ft: 4 corp: 1/1b\n#9\tDONE   cov: 12 ft: 34 corp: 2/9b\n\
                   stat::number_of_executed_units: 567\n";
        assert_eq!(summary(log), Some(Run { executions: 567, edges: 12, features: 34 }));
        assert_eq!(summary("nothing"), None);
    }

    #[test]
    fn a_failure_shows_its_cause_and_how_to_repeat_it() {
        let log = "#2 INITED\nthread panicked at x.rs:1\nleft: 1\nReproduce with:\n\tcargo fuzz run block crash-1\n";
        let report = failure(log);
        assert!(report.starts_with("thread panicked"), "{report}");
        assert!(report.ends_with("cargo fuzz run block crash-1"), "{report}");
    }
}
