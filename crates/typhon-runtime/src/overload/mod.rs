//! What is done when ticks take too long: a ladder of measures, climbed while it has to be and left when it can be.
//!
//! [`Ladder`] is the order of the measures, [`Overload`] decides after each tick whether to go up or down,
//! [`SystemLoad::decide`] says what that means for one system, [`QueueGrowth`] watches the queues.
//!
//! All of it is arithmetic on what the driver of the ticks hands in, once per tick; nothing reads a clock.
//!
//! **Invariants**
//! - One rung per change, and every change starts both counts anew.
//! - Decisions are made on the time that a tick *may* take as it is stretched now; an engine at the end of its ladder
//!   comes down again when the load does.
//! - Critical and high priority systems are never left out for the load.

mod decision;
mod detector;
mod growth;
mod ladder;
#[cfg(test)]
mod tests;

pub use decision::{Decision, SystemLoad, stagger_offsets};
pub use detector::{Change, Overload, TickLoad};
pub use growth::{QueueGrowth, QueueTotals};
pub use ladder::{Ladder, Rung};
