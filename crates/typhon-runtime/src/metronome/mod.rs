//! When ticks start: on a grid of absolute moments that does not drift, however long the program runs.
//!
//! [`Grid`] is the arithmetic, [`Metronome`] waits for its moments and keeps [`TimerMetrics`], [`StepClock`] says how
//! much time a tick moves the world on. Time comes from a [`Clock`](typhon_sync::clock::Clock), so that tests run days in
//! a moment.
//!
//! **Invariants**
//! - Every target is the start plus a whole number of base intervals, rounded down to a nanosecond once.
//! - A late tick starts at once; more than a few steps of lateness are skipped and counted, never worked off.

mod grid;
mod metrics;
mod step;
mod wait;

pub use grid::{Grid, Target};
pub use metrics::TimerMetrics;
pub use step::StepClock;
pub use wait::{Metronome, TickWait};
