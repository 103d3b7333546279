//! What the writer leaves on disk, in good and bad weather.
#![allow(clippy::unwrap_used)] // a panic is how a test fails

#[path = "../support/mod.rs"]
mod support;

mod faults;
mod output;
