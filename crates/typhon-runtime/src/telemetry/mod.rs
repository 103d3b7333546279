//! The last ticks in numbers, readable at any time from any thread: what a host shows, logs or decides by.
//!
//! Always on. The driver of the ticks writes one slot per tick through the [`TelemetryWriter`]; a [`Telemetry`] reads.
//! Writing never waits and never allocates; reading never waits either: a tick that is gone, not there yet or
//! overwritten while it is read is an error, and nothing half is ever returned.

#[cfg(not(loom))]
mod record;
#[cfg(not(loom))]
mod ring;
mod slots;

#[cfg(not(loom))]
pub use record::{SystemTelemetry, TickTelemetry};
#[cfg(not(loom))]
pub use ring::{Telemetry, TelemetryError, TelemetryWriter, telemetry_ring};
#[cfg(loom)]
pub use slots::{Fault, Slots, plant};
