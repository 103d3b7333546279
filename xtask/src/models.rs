//! `cargo xtask models`: what ordinary tests cannot see. The protocols of recorder, locks, tick loop and log under loom, the
//! stress tests of the recorder and of the locks under AddressSanitizer, and the instructions of a call site whose kind is off.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::{Outcome, workspace};

/// The crate whose stress tests and call sites are looked at.
const RECORDER: &str = "typhon-profiler";
/// Most instructions that a call site may run to find that its kind is off.
const OFF_INSTRUCTIONS_MAX: usize = 3;
/// The functions of the example that are such call sites, and nothing else.
const OFF_SITES: &[&str] = &["off_instant", "off_span"];
/// Call sites in a loop whose guard lives across a call, and the most instructions from the test to the call: those to
/// find that the kind is off and those that remember it. Nothing of a guard that records nothing may be copied.
const OFF_AROUND_CALLS: &str = "off_around_calls";
const OFF_AROUND_CALLS_MAX: usize = OFF_INSTRUCTIONS_MAX + 2;

/// Protocols that loom explores, each with planted faults that it has to find.
const LOOM_TESTS: &[(&str, &[&str])] = &[
    ("typhon-profiler", &["loom_capture"]),
    ("typhon-sync", &["loom_locks", "loom_gates", "loom_epochs"]),
    ("typhon-runtime", &["loom_dispatch", "loom_telemetry"]),
    ("typhon-log", &["loom_log"]),
];

/// Tests of unsafe code that run under AddressSanitizer. The log and the seam to storage have no such code; the log waits on
/// the locks and gates.
const SANITIZED: &[(&str, &[&str])] = &[
    (RECORDER, &["--test", "stress", "--test", "signal_and_fork"]),
    ("typhon-sync", &["--lib", "--test", "stress", "--test", "gates", "--test", "epochs"]),
];

/// Runs all of it. Sanitizer and instructions are those of x86-64 Linux; elsewhere only the models run.
pub(crate) fn run(_: &[String]) -> Outcome {
    for (package, tests) in LOOM_TESTS {
        let mut loom = cargo("test", package, "loom");
        loom.arg("--release").args(tests.iter().flat_map(|test| ["--test", test]));
        workspace::succeed(loom.env("RUSTFLAGS", "--cfg loom"))?;
    }
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        eprintln!("note: not x86-64 Linux: skipping AddressSanitizer and the count of instructions");
        return Ok(());
    }
    for (package, tests) in SANITIZED {
        let mut sanitizer = cargo("test", package, "asan");
        sanitizer.args(["--target", "x86_64-unknown-linux-gnu"]).args(*tests);
        // The sanitizer is not stable, but part of every stable compiler.
        sanitizer.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address");
        workspace::succeed(&mut sanitizer)?;
    }
    let assembly = assembly()?;
    OFF_SITES.iter().try_for_each(|site| check(site, &off_path(&assembly, site), OFF_INSTRUCTIONS_MAX))?;
    let path = off_path(&assembly, OFF_AROUND_CALLS);
    let test = path.iter().position(|line| line.starts_with("test\tbyte")).unwrap_or(path.len());
    let until_call: Vec<&str> =
        path[test..].iter().take_while(|line| !line.starts_with("call")).copied().collect();
    check(OFF_AROUND_CALLS, &until_call, OFF_AROUND_CALLS_MAX)
}

fn cargo(verb: &str, package: &str, target: &str) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(workspace::root()).args([verb, "-p", package]);
    command.arg("--target-dir").arg(folder(target));
    command
}

fn folder(name: &str) -> PathBuf {
    workspace::root().join("target").join(name)
}

/// The example as the compiler writes it for a program with the default profile.
fn assembly() -> Result<String, String> {
    let examples = folder("off-cost").join("release/examples");
    // Earlier ones have other hashes in their names.
    let _ = fs::remove_dir_all(&examples);
    let mut build = cargo("rustc", RECORDER, "off-cost");
    build.args([
        "--release",
        "--example",
        "off_cost",
        "--",
        "--emit",
        "asm",
        "-Cllvm-args=-x86-asm-syntax=intel",
    ]);
    build.env("CARGO_PROFILE_RELEASE_LTO", "off").env("RUSTFLAGS", "");
    workspace::succeed(&mut build)?;
    let entries = fs::read_dir(&examples).map_err(|error| format!("{}: {error}", examples.display()))?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    let path = paths.find(|path| path.extension().is_some_and(|extension| extension == "s"));
    let path = path.ok_or_else(|| format!("no assembly in {}", examples.display()))?;
    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

fn check(site: &str, instructions: &[&str], most: usize) -> Outcome {
    println!("{site}: {} instructions: {}", instructions.len(), instructions.join("; "));
    if instructions.is_empty() || instructions.len() > most {
        return Err(format!("{site} may run 1 to {most} instructions when its kind is off"));
    }
    Ok(())
}

/// What a function runs when no conditional jump is taken, without its own entry and exit.
fn off_path<'a>(assembly: &'a str, function: &str) -> Vec<&'a str> {
    let is_label = |line: &&str| line.ends_with(':') && !line.starts_with('.') && line.contains(function);
    let lines = assembly.lines().map(str::trim).skip_while(|line| !is_label(line)).skip(1);
    let code = lines.filter(|line| !line.starts_with('.') && !line.ends_with(':') && !line.starts_with('#'));
    let body = code.take_while(|line| !line.starts_with("ret"));
    let is_frame = |line: &&str| {
        line.starts_with("push") || line.starts_with("pop") || line.contains("rsp,") && !line.contains('[')
    };
    body.filter(|line| !line.is_empty() && !is_frame(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::off_path;

    #[test]
    fn off_path_is_what_runs_without_a_jump() {
        let assembly = "_ZN3foo10off_instant17hE:\n\t.cfi_startproc\n\tpush\trbx\n\tsub\trsp, 16\n\tmov\trax, qword ptr [rip]\n\
                        \ttest\tbyte ptr [rax], 1\n\tjne\t.LBB1_2\n.LBB1_1:\n\tadd\trsp, 16\n\tpop\trbx\n\tret\n.LBB1_2:\n\trdtsc\n";
        let found = off_path(assembly, "off_instant");
        assert_eq!(found, ["mov\trax, qword ptr [rip]", "test\tbyte ptr [rax], 1", "jne\t.LBB1_2"]);
        assert!(off_path(assembly, "off_span").is_empty());
    }
}
