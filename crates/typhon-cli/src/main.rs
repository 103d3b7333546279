//! The `typhon` command.
#![forbid(unsafe_code)]

fn main() {}
