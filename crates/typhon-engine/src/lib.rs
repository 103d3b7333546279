//! The engine of a world: what a program opens first and closes last.
//!
//! An [`Engine`] owns the options, all checked before anything happens, and the recording that the configuration asks
//! for. Everything that runs on it keeps it open: the recording is finished when the last handle is gone.
//!
//! - [`options`]: what can be set, within which bounds.
//! - [`resources`]: what is used of what, in one tree for the whole process.
//! - [`error`]: stable numbers of the errors of all crates above this one, for logs and dashboards.
//!
//! What it is not yet: there is no storage. Worlds live in memory until it arrives here.
//!
//! **Invariants**
//! - Options that break a rule start nothing; all broken rules are reported at once.
//! - The number of an error never changes and is never used again.
#![forbid(unsafe_code)]

mod engine;
pub mod error;
pub mod options;
mod recording;
pub mod resources;

pub use engine::{Engine, EngineBuilder};
pub use error::{Coded, ErrorCode};
pub use options::{EngineOptions, InvalidOptions};
