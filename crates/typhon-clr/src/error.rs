use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::gc::GcStreamError;
use crate::ipc::IpcError;

/// Why a runtime cannot be reached, asked or listened to.
#[derive(Debug, Error)]
pub enum ClrError {
    /// There is no process of that number.
    #[error("no process {0}")]
    NoProcess(u32),
    /// The process exists and offers no diagnostics socket.
    #[error(
        "process {process_id} has no .NET diagnostics socket (looked for {}): no runtime runs in it yet, or it was \
         started with another TMPDIR, or with DOTNET_EnableDiagnostics=0, COMPlus_EnableDiagnostics=0 or \
         DOTNET_EnableDiagnostics_IPC=0",
        show(looked_for)
    )]
    NoEndpoint {
        /// The process.
        process_id: u32,
        /// Every path that was tried.
        looked_for: Vec<PathBuf>,
    },
    /// The socket file is left over: nobody listens on it any more.
    #[error("{}: nobody listens there (left behind by a process that ended)", path.display())]
    StaleEndpoint {
        /// The socket file. It is never deleted by this crate.
        path: PathBuf,
    },
    /// The socket belongs to somebody else.
    #[error(
        "{}: permission denied, the same user or root is needed (socket of user {}, we are {our_uid})",
        path.display(),
        owner_uid.map_or_else(|| "unknown".to_owned(), |uid| uid.to_string())
    )]
    PermissionDenied {
        /// The socket file.
        path: PathBuf,
        /// User that owns it, if that can be seen.
        owner_uid: Option<u32>,
        /// User that we run as.
        our_uid: u32,
    },
    /// The other side did not answer in time.
    #[error("{doing}: no answer within {} ms", after.as_millis())]
    Timeout {
        /// What was being done.
        doing: &'static str,
        /// How long it was waited for.
        after: Duration,
    },
    /// The other side closed the connection where an answer was due.
    #[error("{doing}: the process closed the connection")]
    Closed {
        /// What was being done.
        doing: &'static str,
    },
    /// Any other failure of the operating system.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The request or the answer is not right.
    #[error(transparent)]
    Ipc(#[from] IpcError),
    /// The event stream is malformed.
    #[error(transparent)]
    Stream(#[from] GcStreamError),
}

fn show(paths: &[PathBuf]) -> String {
    let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}

impl ClrError {
    /// Whether the target is merely not there (yet): nothing to report more than once.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::NoProcess(_) | Self::NoEndpoint { .. } | Self::StaleEndpoint { .. })
    }

    #[cfg(unix)]
    pub(crate) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}
