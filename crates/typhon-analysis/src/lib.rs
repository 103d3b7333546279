//! Reading traces in bulk.
//!
//! `typhon-trace` reads one block at a time and knows no threads; this crate drives it over whole files:
//! an ordered parallel pipeline over blocks, and on it filters, tick numbering, nesting, statistics, comparison and
//! conversion to other tools' formats. For viewers, [`session`] opens a trace once and answers from an [`index`] with levels
//! of detail, in [`tile`]s where it is about the timeline.
//!
//! **Invariant:** results do not depend on the number of threads.
#![forbid(unsafe_code)]

pub mod beside;
pub mod clock;
pub mod diff;
pub mod documents;
pub mod export;
pub mod facts;
pub mod filter;
pub mod gc;
pub mod index;
pub mod nesting;
pub mod ordered;
mod parallel;
pub mod pipeline;
pub mod placing;
pub mod quantile;
pub mod rank_sum;
pub mod schedule;
pub mod session;
mod sidecar;
pub mod stats;
pub mod stream_state;
pub mod survey;
pub mod ticks;
pub mod tile;
pub mod units;
pub mod verify;
