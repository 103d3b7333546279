//! Project chores, run as `cargo xtask <task>`.
//!
//! Each task lives in a file of its own; this file only finds the task and reports its outcome.
#![forbid(unsafe_code)]

mod check;
mod codegen;
mod docs;
mod dotnet;
mod edges;
mod fuzz;
mod licences;
mod models;
mod picture;
mod rules;
mod testing;
mod tree;
mod ui;
mod workspace;

use std::process::ExitCode;

/// Outcome of a task; the message is for the person who ran it.
type Outcome = Result<(), String>;

/// A task: name, one line of help, and what it does with the remaining arguments.
type Task = (&'static str, &'static str, fn(&[String]) -> Outcome);

/// All tasks, in the order in which the help shows them.
const TASKS: &[Task] = &[
    ("codegen", "write the files generated from the event registry; with --check only compare", codegen::run),
    ("test", "set up what the tests need, then run all of them", testing::run),
    (
        "models",
        "check the profiler's protocol with loom, its memory with AddressSanitizer, its cost when off",
        models::run,
    ),
    (
        "dotnet",
        "install the .NET runtimes and the programs of the live tests into target/dotnet",
        dotnet::run,
    ),
    (
        "check",
        "check the tree: edges, licences, file hygiene, links and commands in pages, a test for each rule",
        check::run,
    ),
    ("ui", "check, test and build the Workbench's pages; with --check compare the committed bundle", ui::run),
    ("ui-test", "run the tests of the Workbench in a browser; arguments go to Playwright", ui::browser_tests),
    ("picture", "draw docs/typhon.svg and docs/demo.svg from what the commands print", picture::run),
    ("fuzz", "run the fuzz targets one after the other", fuzz::run),
    ("fuzz-seeds", "write the seeds of the fuzz targets from the recordings", fuzz::write_seeds),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = args.split_first().filter(|(name, _)| !name.starts_with('-')) else {
        print_help();
        return ExitCode::SUCCESS;
    };
    let Some((_, _, task)) = TASKS.iter().find(|(known, _, _)| known == name) else {
        eprintln!("error: no task named {name:?}");
        print_help();
        return ExitCode::from(64);
    };
    match task(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn print_help() {
    println!("usage: cargo xtask <task> [arguments]\n");
    for (name, help, _) in TASKS {
        println!("  {name:<12} {help}");
    }
}
