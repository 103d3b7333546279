//! What the writer leaves on disk, in good and bad weather.
#![allow(clippy::unwrap_used)] // a panic is how a test fails

mod copy;
mod faults;
mod output;
mod support;
