//! The Workbench's server: opened traces over HTTP and WebSocket on loopback, and the page that shows them (brief 11).
//!
//! `API.md` beside this crate's manifest is the contract between server and page. [`Server`] binds, opens files and
//! runs; `typhon ui` is its user.
//!
//! ```text
//!  socket ──▶ net ──▶ guard ──▶ api, ws ──▶ work (pool) ──▶ typhon_analysis::session
//!                        └────▶ assets (the page)
//! ```
//!
//! **Invariants**
//! - Nothing but loopback is listened on, and nothing is answered that does not name this server in `Host`.
//! - Nothing below `/api` but `health` is answered without the token of this run.
//! - The two network threads do no work that takes time; the pool does, with a deadline, and gives up what nobody waits
//!   for any more.
//! - A panic in one request ends that request alone.
//! - Files are opened below the root, or when the user named them; source files below a source root only.
#![forbid(unsafe_code)]

mod answers;
mod api;
mod app;
mod assets;
mod guard;
mod handover;
mod kept;
mod net;
mod paths;
pub mod places;
mod problem;
mod server;
mod sessions;
mod token;
mod unstalled;
mod work;
mod ws;

pub use net::DEFAULT_PORT;
pub use server::{Options, Server, ServerError};
