//! The diagnostics protocol: commands to a runtime over its local socket.
//!
//! [`message`] is the protocol as bytes, free of I/O. On Unix systems [`Endpoint`] connects to a runtime,
//! [`ReverseListener`] lets runtimes connect to us, and both are [`Connector`]s for sessions and commands.

pub mod message;

#[cfg(unix)]
mod client;
#[cfg(unix)]
mod connection;
#[cfg(unix)]
mod reverse;

#[cfg(unix)]
pub use client::{Connector, Endpoint, process_info, resume_runtime};
#[cfg(unix)]
pub use connection::{Connection, ReadOutcome};
#[cfg(unix)]
pub(crate) use connection::{Wait, wait_for_any};
pub use message::{
    Advertise, BufferMib, CollectVersion, ErrorCode, IpcError, ProcessInfo, ProcessInfoVersion, Provider,
    Request, TraceRequest,
};
#[cfg(unix)]
pub use reverse::{Bystanders, Incoming, ReverseListener, ReverseTarget};
