//! An ant colony that ticks at 60 Hz: the demo world of Typhon, written to be read.
//!
//! Read it in this order:
//!
//! 1. [`world`]: the state, and nothing else. [`mod@column`], [`trail`], [`food`], [`spider`] and [`ant`] are its parts.
//! 2. [`systems`]: what happens, one plain function each. They could be tested without any runtime, and are.
//! 3. [`colony`]: the schedule. Every system declares what it touches, and the order follows from that.
//! 4. [`view`] and [`storm`]: a picture for the terminal, and artificial load.
//!
//! **Invariants**
//! - The same seed gives the same world, bit for bit, whatever the number of workers, and recorded or not. Chance comes
//!   from streams per ant; whatever many ants do to one cell at once has no order (sums and maxima); whoever comes
//!   first is decided by queues, which are read in a fixed order.
//! - A system that changes the world always runs. Under overload only the picture suffers.
//! - Nothing is made of nothing: the census fails if loads or ants do not add up.
#![forbid(unsafe_code)]

pub mod ant;
pub mod colony;
pub mod column;
pub mod food;
pub mod random;
pub mod spider;
pub mod storm;
pub mod systems;
pub mod terrain;
pub mod trail;
pub mod view;
pub mod world;

pub use colony::{Colony, Report, Told};
