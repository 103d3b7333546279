//! The Workbench's server: opened traces over HTTP and WebSocket on loopback, and the page that shows them (brief 11).
//!
//! `API.md` beside this crate's manifest is the contract between server and page.
#![forbid(unsafe_code)]

pub mod token;
