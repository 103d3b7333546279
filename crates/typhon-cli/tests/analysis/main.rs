//! `stats`, `diff` and `export --to perfetto|chrome` against what `dump` prints of the same file.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../common/mod.rs"]
mod common;

mod chrome;
mod diff;
mod generated;
mod naive;
mod perfetto;
mod stats;
mod walkthrough;
