//! One module per command, and what they share.

pub(crate) mod dump;
pub(crate) mod info;
mod input;
pub(crate) mod kinds;
mod notices;
mod portions;
mod selection;
pub(crate) mod shell;
pub(crate) mod verify;
