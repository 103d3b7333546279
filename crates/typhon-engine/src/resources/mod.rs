//! What the engine uses, and how close to its limits it is: one tree of named resources for the whole process.
//!
//! A part of the engine [registers](Registry::register) a node when it comes to be and drops the [`Resource`] when it
//! ends. A node may have a [`MetricSource`], which is asked for its numbers when somebody takes a [`Snapshot`]. Snapshots
//! answer everything else: what is most used, how healthy it all is, what a symptom goes back to, how fast counters rise
//! ([`Snapshot::rates_since`]), what is [worse than before](Alerts).
//!
//! Things of which there are thousands are no nodes; whoever owns them sums them up, and tells them apart when somebody
//! asks ([`Registry::debug_properties`]).
//!
//! **Invariants**
//! - A name is unique below its parent; paths are what readers use, and registering code never spells one.
//! - Health and alerts use the same thresholds, and look at every node with a capacity.
//! - Taking a snapshot asks the sources without any lock held.

mod alerts;
mod error;
mod health;
mod json;
mod kinds;
mod metrics;
mod rates;
mod registry;
mod shape;
mod snapshot;
#[cfg(test)]
mod tests;

pub use alerts::{Alert, Alerts, Severity};
pub use error::{ResourceError, ResourceExhausted};
pub use health::{Health, Thresholds};
pub use kinds::{ExhaustionPolicy, NodeId, NodeType, Subsystem};
pub use metrics::{Metric, MetricSink, MetricSource};
pub use rates::Rate;
pub use registry::{Mutation, MutationKind, Node, Registry, Resource, Subscription};
pub use snapshot::{NodeView, Snapshot};
