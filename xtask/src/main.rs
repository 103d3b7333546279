//! Project chores, run as `cargo xtask <task>`.
#![forbid(unsafe_code)]

fn main() {}
