//! `cargo xtask test`: fetches what the tests use besides Rust, then runs every test.

use std::process::{Command, Stdio};

use crate::{Outcome, dotnet, ui, workspace};

/// A program that some tests run: its name, the Debian package that brings it, and what is not tested without it.
struct Tool {
    program: &'static str,
    package: &'static str,
    without_it: &'static str,
}

const TOOLS: &[Tool] = &[Tool {
    program: "python3",
    package: "python3",
    without_it: "the proof that docs/trace-format.md is enough to write a reader from",
}];

/// Sets up and runs all tests of the workspace; arguments go to `cargo test`.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    for tool in TOOLS.iter().filter(|tool| !is_installed(tool.program)) {
        if let Err(fault) = install(tool.package) {
            eprintln!("note: no {} ({fault}): skipping {}", tool.program, tool.without_it);
        }
    }
    if let Err(fault) = python_packages() {
        eprintln!("note: no Python packages ({fault}): skipping the check of Perfetto exports");
    }
    if let Err(fault) = dotnet::run(&[]) {
        eprintln!("note: no .NET ({fault}): skipping the tests against real runtimes");
    }
    let mut command = vec!["test", "--workspace"];
    command.extend(arguments.iter().map(String::as_str));
    workspace::run_cargo(&command)?;
    // Arguments choose among the Rust tests; whoever gives some does not want the browser.
    if arguments.is_empty() { in_browser() } else { Ok(()) }
}

/// The Workbench's tests in a browser. Without Node or Chromium they are skipped, in CI that is a failure.
fn in_browser() -> Outcome {
    let Err(fault) = ui::ensure_browser() else { return ui::browser_tests(&[]) };
    if std::env::var_os("CI").is_some() {
        return Err(fault);
    }
    eprintln!("note: {fault}: skipping the tests of the Workbench in a browser");
    Ok(())
}

/// Packages that tests import, with the versions they were written against.
const PYTHON_PACKAGES: &[&str] = &["perfetto==0.59.1"];

/// Puts the packages into `target/python`, where the tests look for them.
fn python_packages() -> Outcome {
    let folder = workspace::root().join("target/python");
    let python = folder.join("bin/python3");
    let import = ["-c", "import perfetto.protos.perfetto.trace.perfetto_trace_pb2"];
    let probe = Command::new(&python).args(import).stderr(Stdio::null()).status();
    if probe.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    let create = || workspace::succeed(Command::new("python3").args(["-m", "venv"]).arg(&folder));
    // Debian splits this module from the language.
    create().or_else(|_| install("python3-venv").and_then(|()| create()))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    workspace::succeed(Command::new(&python).args(pip).args(PYTHON_PACKAGES))
}

/// Whether a program can be started.
pub(crate) fn is_installed(program: &str) -> bool {
    let probe = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    probe.is_ok_and(|status| status.success())
}

/// Installs a system package where that is possible without asking anybody.
pub(crate) fn install(package: &str) -> Outcome {
    if !is_installed("apt-get") {
        return Err("no apt-get to install it with".to_owned());
    }
    eprintln!("installing {package} (apt-get)");
    let script = format!("apt-get update -q && apt-get install -q -y --no-install-recommends {package}");
    workspace::succeed(Command::new("sh").arg("-c").arg(script).stdout(Stdio::null()))
}
