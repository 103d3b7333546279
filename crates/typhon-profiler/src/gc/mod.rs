//! Garbage collections of a .NET runtime on the timeline of the program (brief 03).
//!
//! With `Typhon:Profiler:GcTracing:Enabled` a recording holds every collection and every suspension of a runtime: the
//! one inside this process, that of another process, or one that connects to a socket. Nothing of it runs on a
//! thread of the program:
//!
//! - `Typhon.GcReader` waits for the runtime, reads its event stream, and puts what the events add up to into a bounded
//!   queue. It has no slot.
//! - `Typhon.GcIngest` takes records out of the queue and writes them under a slot of its own ([`Ingestion`]).
//!
//! A program that learns of collections some other way, such as a .NET application with a listener of its own, puts
//! them into the queue itself, in place of the reader ([`Bridge`]).
//!
//! **Invariants**
//! - Records carry the time at which things happened, never that of their arrival.
//! - A full queue drops the newest record; every loss is counted and marked in the trace.
//! - A runtime that is absent, slow, killed or malformed costs at most a line on standard error.
#![forbid(unsafe_code)]

mod bridge;
mod control;
mod host;
mod ingest;

pub use bridge::{Bridge, BridgeError};
pub(crate) use host::GcHost;
pub use ingest::{Ingestion, Input};
pub use typhon_clr::gc::{
    Collection, CollectionStart, GcReason, GcRecord, GcType, HeapSizes, Loss, LossKind, SuspendReason,
    Suspension,
};
