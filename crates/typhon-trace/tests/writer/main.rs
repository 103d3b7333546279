//! What the writer leaves on disk, in good and bad weather.

#[path = "../support/mod.rs"]
mod support;

mod faults;
mod output;
