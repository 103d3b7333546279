//! Things that happen at regular times: callbacks on one thread, the nearest first.
//!
//! The targets of a timer are a grid: each is the one before plus the interval, however late the callback came. A timer
//! that falls more than one interval behind skips whole intervals and counts them; it never runs several times in a row to
//! catch up. Timers that must be exact spin the last 50 to 150 µs ([`crate::sleep`]); the others do not. A thread without
//! timers blocks and uses no processor.
//!
//! One service per process is shared ([`shared`]); what must not wait for others' callbacks has one of its own
//! ([`Dedicated`]). The metronome of the tick is not here: it is the runtime's.

mod metrics;
mod service;
mod watchdog;

pub use metrics::{ServiceMetrics, TimerMetrics};
pub use service::{Dedicated, Precision, Timer, TimerError, TimerService, shared};
pub use watchdog::{DeadlineWatchdog, WatchedDeadline};
