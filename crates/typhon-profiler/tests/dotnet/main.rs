//! Recordings beside real .NET runtimes: inside a program that hosts one, inside a .NET application that loads a library of
//! ours, and of another process. Every test runs this program again as a child, or an application.
//!
//! `cargo xtask dotnet` installs what they need. Without it each reports itself as skipped, and with `CI=true` as failed.
#![cfg_attr(not(target_os = "linux"), allow(dead_code, unused_imports))]
#![allow(clippy::unwrap_used, reason = "these are tests")]

#[cfg(target_os = "linux")]
mod application;
#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod hostfxr;
#[cfg(target_os = "linux")]
mod hosting;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod recording;
#[cfg(target_os = "linux")]
mod targets;

use std::process::ExitCode;

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    ExitCode::SUCCESS
}

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    use libtest_mimic::{Arguments, Failed, Trial};
    if let Ok(role) = std::env::var(process::ROLE) {
        return child::play(&role);
    }
    let mut arguments = Arguments::from_args();
    // Runtimes beside each other would take each other's processor.
    arguments.test_threads = Some(1);
    let tests = [hosting::TESTS, application::TESTS, targets::TESTS].concat();
    let trial = |(name, test): &(&'static str, fn())| {
        let (name, test) = (*name, *test);
        Trial::test(name, move || {
            if process::can_run(name) {
                test();
            }
            Ok::<(), Failed>(())
        })
    };
    libtest_mimic::run(&arguments, tests.iter().map(trial).collect()).exit_code()
}
