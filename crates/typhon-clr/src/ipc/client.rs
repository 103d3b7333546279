use std::path::PathBuf;
use std::time::Duration;

use super::{Connection, ErrorCode, IpcError, ProcessInfo, ProcessInfoVersion, Request};
use crate::ClrError;

/// A way to get connections to one runtime. A runtime takes one command a connection, so sessions need several.
pub trait Connector {
    /// The next connection.
    ///
    /// # Errors
    /// The runtime cannot be reached within `timeout`.
    fn connect(&mut self, timeout: Duration) -> Result<Connection, ClrError>;
}

/// The socket on which a runtime listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Process id as seen from here.
    pub process_id: u32,
    /// Socket file.
    pub path: PathBuf,
}

impl Connector for Endpoint {
    fn connect(&mut self, timeout: Duration) -> Result<Connection, ClrError> {
        Connection::open(&self.path, self.process_id, timeout)
    }
}

/// Asks a runtime who it is, in the newest form that it knows. .NET Core 3.1 knows none and refuses.
///
/// # Errors
/// As [`Connector::connect`] and [`Connection::request`].
pub fn process_info(connector: &mut dyn Connector, timeout: Duration) -> Result<ProcessInfo, ClrError> {
    use ProcessInfoVersion::{V1, V2, V3};
    let ask = |connector: &mut dyn Connector, version| -> Result<ProcessInfo, ClrError> {
        let mut connection = connector.connect(timeout)?;
        let payload =
            connection.request(&Request::ProcessInfo(version), timeout, "asking for process information")?;
        Ok(ProcessInfo::parse(version, &payload)?)
    };
    for version in [V3, V2] {
        match ask(connector, version) {
            Err(ClrError::Ipc(IpcError::Refused(ErrorCode::UNKNOWN_COMMAND))) => {}
            result => return result,
        }
    }
    ask(connector, V1)
}

/// Lets a runtime go on that waits at start-up for its tools. Without effect on one that does not wait.
///
/// # Errors
/// As [`Connector::connect`] and [`Connection::request`].
pub fn resume_runtime(connector: &mut dyn Connector, timeout: Duration) -> Result<(), ClrError> {
    let mut connection = connector.connect(timeout)?;
    connection.request(&Request::ResumeRuntime, timeout, "resuming the runtime")?;
    Ok(())
}
