//! `typhon demo`.

use crate::cmd::number::whole;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(
    after_help = "An ant colony on the Typhon runtime, at 60 ticks a second. A line a second tells how it goes; on a
terminal, with a picture. Ctrl+C ends it early (exit code 130); the recording is complete then.
What is recorded can be changed as for every program: by typhon.telemetry.json in the working
directory, or by the environment (docs/configuration.md). The same seed gives the same world.

Examples:
  typhon demo
  typhon demo --seconds 45 --overload
  typhon demo --gc --ui
  typhon demo --ants 1000000 --hz 10 -o big.typhon-trace"
)]
pub(crate) struct Demo {
    /// Run this long, such as 45, 45s or 5min; a number alone is seconds
    #[arg(
        long,
        visible_alias = "duration",
        value_name = "TIME",
        default_value = "10",
        allow_hyphen_values = true
    )]
    #[arg(value_parser = crate::cmd::duration::parse_duration)]
    pub(crate) seconds: Duration,
    /// Run so many ticks instead
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    #[arg(allow_negative_numbers = true, value_parser = whole(1..=u32::MAX))]
    pub(crate) ticks: Option<u32>,
    /// Number of ants
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(allow_negative_numbers = true, value_parser = whole(1..=4_000_000_u32))]
    pub(crate) ants: u32,
    /// Ticks per second
    #[arg(long, value_name = "N", default_value_t = 60)]
    #[arg(allow_negative_numbers = true, value_parser = whole(1..=1000_u32))]
    pub(crate) hz: u32,
    /// Threads that run systems; by default one a processor, up to eight
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole(1..=u8::MAX))]
    pub(crate) workers: Option<u8>,
    /// Which world
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(allow_negative_numbers = true, value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: u64,
    /// Trace file to write
    #[arg(short, long, value_name = "FILE", default_value = "anthill.typhon-trace", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Replace the output if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Add load in waves, to see the schedule give way and recover
    #[arg(long)]
    pub(crate) overload: bool,
    /// Run a small .NET program beside it, with its collections in the same trace (needs a .NET runtime, 6 or newer)
    #[arg(long)]
    pub(crate) gc: bool,
    /// Open the recording in a browser when the demo has ended, as `typhon ui` does
    #[arg(long)]
    pub(crate) ui: bool,
}
