//! One module per command, and what they share.

mod conclusion;
#[cfg(unix)]
pub(crate) mod db;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod dump;
pub(crate) mod duration;
pub(crate) mod export;
pub(crate) mod gc;
pub(crate) mod info;
mod input;
pub(crate) mod kinds;
mod notices;
pub(crate) mod number;
mod portions;
pub(crate) mod repair;
mod selection;
pub(crate) mod shell;
mod socket_folder;
pub(crate) mod stats;
pub(crate) mod ui;
pub(crate) mod verify;
mod window;
