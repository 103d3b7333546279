//! Whole lives of processes: how a recording begins without code, and that it is finished however the process ends.
//!
//! Every test runs this program again as a child with a role to play; see `child.rs`.
#![cfg_attr(not(unix), allow(dead_code, unused_imports))]
#![allow(clippy::unwrap_used, reason = "these are tests")]

mod beginnings;
mod child;
#[cfg(unix)]
mod collections;
#[cfg(unix)]
mod endings;
mod gauges;
#[cfg(unix)]
mod kills;
mod recording;
#[cfg(target_os = "linux")]
mod surroundings;

use libtest_mimic::{Arguments, Failed, Trial};
use recording::Recording;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Output, Stdio};

/// Makes this program a child; the value is its role.
const ROLE: &str = "TEST_ROLE";
/// The file that children record to, below their working directory.
const TRACE: &str = "run.typhon-trace";

fn main() -> ExitCode {
    if let Ok(role) = std::env::var(ROLE) {
        return child::play(&role);
    }
    #[cfg(unix)]
    default_signals();
    let arguments = Arguments::from_args();
    let mut tests = Vec::new();
    tests.extend(beginnings::TESTS);
    tests.extend(gauges::TESTS);
    #[cfg(unix)]
    tests.extend([endings::TESTS, kills::TESTS, collections::TESTS].concat());
    #[cfg(target_os = "linux")]
    tests.extend(surroundings::TESTS);
    let trial = |(name, test): &(&str, fn())| {
        let test = *test;
        Trial::test(*name, move || {
            test();
            Ok::<(), Failed>(())
        })
    };
    libtest_mimic::run(&arguments, tests.iter().map(trial).collect()).exit_code()
}

/// `nohup` and background jobs of scripts start programs with signals ignored, which children would inherit and the
/// profiler would respect.
#[cfg(unix)]
fn default_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: no other thread runs yet, and the default action needs no handler.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// A place for a child to live in.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The names of everything in it.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn configure(&self, json: &str) {
        std::fs::write(self.path("typhon.telemetry.json"), json).unwrap();
    }

    fn command(&self, role: &str, environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TYPHON__"))
        {
            command.env_remove(name);
        }
        command.current_dir(self.0.path()).env(ROLE, role).envs(environment.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a child to its end.
    fn run(&self, role: &str, environment: &[(&str, &str)]) -> Life {
        Life::of(self.command(role, environment).output().unwrap())
    }

    /// Runs a child that records to [`TRACE`] because its environment says so.
    fn record(&self, role: &str) -> Life {
        self.run(role, &[("TYPHON__PROFILER__TRACE", TRACE)])
    }

    fn spawn_recording(&self, role: &str) -> Child {
        self.command(role, &[("TYPHON__PROFILER__TRACE", TRACE)]).spawn().unwrap()
    }

    fn recording(&self, name: &str) -> Recording {
        Recording::read(&self.path(name))
    }
}

/// What a child left behind.
struct Life {
    output: Output,
    /// Lines on standard output.
    said: Vec<String>,
    /// Lines on standard error.
    errors: Vec<String>,
}

impl Life {
    fn of(output: Output) -> Self {
        let lines = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect();
        Self { said: lines(&output.stdout), errors: lines(&output.stderr), output }
    }

    /// The child did its work and ended well.
    fn is_well(&self) -> bool {
        self.output.status.success() && self.said.last().is_some_and(|line| line == "done")
    }
}
