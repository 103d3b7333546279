use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::connection::{Wait, wait_for_any};
use super::message::ADVERTISE_BYTES;
use super::{Advertise, Connection, Connector, Request};
use crate::ClrError;

/// What a runtime that has connected may take to introduce itself, however short the wait for it was.
const INTRODUCTION_TIMEOUT: Duration = Duration::from_millis(100);
/// Connections of bystanders that are held at most.
const MAX_HELD: usize = 64;

/// A socket to which runtimes connect that were started with `DOTNET_DiagnosticPorts=PATH`.
///
/// This is how the very first collection of a process is seen: such a runtime waits (unless told `,nosuspend`) until
/// it is resumed. The socket file is removed when the listener is dropped.
#[derive(Debug)]
pub struct ReverseListener {
    listener: UnixListener,
    path: PathBuf,
    inode: Option<u64>,
    /// A connection that [`Bystanders`] took in and that is its target's.
    set_aside: Mutex<Option<Incoming>>,
}

/// A runtime that has connected and introduced itself.
#[derive(Debug)]
pub struct Incoming {
    /// Who it is.
    pub advertise: Advertise,
    /// Good for one command.
    pub connection: Connection,
}

impl ReverseListener {
    /// Creates the socket file, open to our own user only.
    ///
    /// # Errors
    /// [`ClrError::Io`], also when the file exists, which is never overwritten, or when no runtime could be told of the
    /// path: `DOTNET_DiagnosticPorts` is a list, so there can be no comma and no semicolon in it.
    pub fn bind(path: &Path) -> Result<Self, ClrError> {
        let doing = "creating the socket for runtimes to connect to";
        if has_list_separator(path) {
            let why = "runtimes cannot be told of a path with a comma or a semicolon";
            return Err(ClrError::io(doing)(std::io::Error::new(ErrorKind::InvalidInput, why)));
        }
        let listener = UnixListener::bind(path).map_err(ClrError::io(doing))?;
        let metadata = path.metadata().map_err(ClrError::io(doing))?;
        let bound = Self {
            listener,
            path: path.to_owned(),
            inode: Some(metadata.ino()),
            set_aside: Mutex::default(),
        };
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).map_err(ClrError::io(doing))?;
        bound.listener.set_nonblocking(true).map_err(ClrError::io(doing))?;
        Ok(bound)
    }

    /// Waits for the next runtime that connects; `None` if none does in time.
    ///
    /// # Errors
    /// [`ClrError::Ipc`] when something else than a runtime connected, [`ClrError::Timeout`] when it did not introduce
    /// itself, or [`ClrError::Io`]. The listener stays usable.
    pub fn accept(&self, timeout: Duration) -> Result<Option<Incoming>, ClrError> {
        let set_aside = self.set_aside.lock().unwrap_or_else(PoisonError::into_inner).take();
        if set_aside.is_some() {
            return Ok(set_aside);
        }
        self.accept_new(timeout)
    }

    fn accept_new(&self, timeout: Duration) -> Result<Option<Incoming>, ClrError> {
        let wait =
            Wait { deadline: Instant::now() + timeout, timeout, doing: "waiting for a runtime to connect" };
        let stream = loop {
            match self.listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    match wait_for_any(&mut [PollFd::new(&self.listener, PollFlags::IN)], wait) {
                        Err(ClrError::Timeout { .. }) => return Ok(None),
                        other => other?,
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(ClrError::io(wait.doing)(error)),
            }
        };
        let mut connection = Connection::from_stream(stream)?;
        let mut bytes = [0; ADVERTISE_BYTES];
        let deadline = wait.deadline.max(Instant::now() + INTRODUCTION_TIMEOUT);
        let doing = "reading a runtime's introduction";
        connection.read_exact(&mut bytes, Wait { deadline, doing, ..wait })?;
        Ok(Some(Incoming { advertise: Advertise::parse(&bytes)?, connection }))
    }
}

impl Drop for ReverseListener {
    fn drop(&mut self) {
        // Another program may have put its own socket in the place of ours.
        if self.path.metadata().ok().map(|metadata| metadata.ino()) == self.inode {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn has_list_separator(path: &Path) -> bool {
    path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b',' | b';'))
}

/// One runtime behind a [`ReverseListener`]. It connects anew for each command.
#[derive(Debug)]
pub struct ReverseTarget {
    listener: Arc<ReverseListener>,
    advertise: Advertise,
    next: Option<Connection>,
}

impl ReverseTarget {
    /// Takes the runtime that just connected as the target.
    pub fn new(listener: Arc<ReverseListener>, incoming: Incoming) -> Self {
        Self { listener, advertise: incoming.advertise, next: Some(incoming.connection) }
    }

    /// Who it is.
    pub fn advertise(&self) -> Advertise {
        self.advertise
    }
}

impl Connector for ReverseTarget {
    /// Connections of other runtimes are closed meanwhile; they try again by themselves.
    fn connect(&mut self, timeout: Duration) -> Result<Connection, ClrError> {
        if let Some(connection) = self.next.take() {
            return Ok(connection);
        }
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.listener.accept(left)? {
                Some(incoming) if incoming.advertise.cookie == self.advertise.cookie => {
                    return Ok(incoming.connection);
                }
                Some(_) => {}
                None => {
                    let doing = "waiting for the runtime to connect again";
                    return Err(ClrError::Timeout { doing, after: timeout });
                }
            }
        }
    }
}

/// Runtimes that connect to the socket of a session without being its target.
///
/// A program passes its environment on to the programs that it starts, `DOTNET_DiagnosticPorts` included. Their
/// runtimes connect too, and wait for ever unless somebody lets them go on.
#[derive(Debug)]
pub struct Bystanders {
    listener: Arc<ReverseListener>,
    target: Advertise,
    /// The next connection of each: a runtime whose connection is closed connects again at once.
    held: HashMap<[u8; 16], Option<Connection>>,
}

impl Bystanders {
    /// Everybody but `target`.
    pub fn new(listener: Arc<ReverseListener>, target: Advertise) -> Self {
        Self { listener, target, held: HashMap::new() }
    }

    /// Lets those go on that have connected since the last call; does not wait for any. Call it now and then.
    ///
    /// # Errors
    /// As [`ReverseListener::accept`] and [`Connection::request`]: of one runtime, the others come with the next call.
    pub fn let_go_on(&mut self, timeout: Duration) -> Result<(), ClrError> {
        while let Some(mut incoming) = self.listener.accept_new(Duration::ZERO)? {
            let cookie = incoming.advertise.cookie;
            if cookie == self.target.cookie {
                let mut set_aside = self.listener.set_aside.lock().unwrap_or_else(PoisonError::into_inner);
                *set_aside = Some(incoming);
            } else if let Some(next) = self.held.get_mut(&cookie) {
                *next = Some(incoming.connection);
            } else {
                if self.held.len() >= MAX_HELD {
                    self.held.clear();
                }
                incoming.connection.request(&Request::ResumeRuntime, timeout, "letting a runtime go on")?;
                self.held.insert(cookie, None);
            }
        }
        Ok(())
    }
}
