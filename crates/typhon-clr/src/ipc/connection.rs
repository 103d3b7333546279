use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

use super::Request;
use super::message::{AnswerHeader, HEADER_BYTES};
use crate::ClrError;

/// Pause between attempts while the runtime's queue of waiting connections is full.
const BACKLOG_RETRY: Duration = Duration::from_millis(5);

/// A connection to a runtime. Every operation has a deadline; none blocks beyond it.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
}

/// What came of a read that may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOutcome {
    /// This many bytes.
    Data(usize),
    /// Nothing within the time.
    Idle,
    /// The other side closed the connection.
    Closed,
}

impl Connection {
    /// Connects to a socket file.
    ///
    /// # Errors
    /// [`ClrError::NoEndpoint`], [`ClrError::StaleEndpoint`], [`ClrError::PermissionDenied`], [`ClrError::Timeout`] or
    /// [`ClrError::Io`].
    pub(super) fn open(path: &Path, process_id: u32, timeout: Duration) -> Result<Self, ClrError> {
        let deadline = Instant::now() + timeout;
        let doing = "connecting to the runtime";
        let to_io = |errno: Errno| ClrError::Io { doing, source: errno.into() };
        let address = SocketAddrUnix::new(path).map_err(to_io)?;
        loop {
            let socket =
                socket_with(AddressFamily::UNIX, SocketType::STREAM, close_on_exec(), None).map_err(to_io)?;
            rustix::io::ioctl_fionbio(&socket, true).map_err(to_io)?;
            match rustix::net::connect(&socket, &address) {
                Ok(()) => return Ok(Self { stream: UnixStream::from(socket) }),
                Err(Errno::AGAIN | Errno::INTR) if Instant::now() < deadline => {
                    std::thread::sleep(BACKLOG_RETRY)
                }
                Err(Errno::AGAIN) => return Err(ClrError::Timeout { doing, after: timeout }),
                Err(errno) => return Err(connect_error(errno, path, process_id, doing)),
            }
        }
    }

    /// Wraps a connected socket, such as one end of a pair.
    ///
    /// # Errors
    /// [`ClrError::Io`].
    pub fn from_stream(stream: UnixStream) -> Result<Self, ClrError> {
        stream.set_nonblocking(true).map_err(ClrError::io("setting up the connection"))?;
        Ok(Self { stream })
    }

    /// Sends a request and waits for the answer's payload. Reads no byte beyond it.
    ///
    /// # Errors
    /// [`ClrError::Ipc`] for a refusal or an answer that is not of the protocol, [`ClrError::Timeout`],
    /// [`ClrError::Closed`] or [`ClrError::Io`].
    pub fn request(
        &mut self,
        request: &Request<'_>,
        timeout: Duration,
        doing: &'static str,
    ) -> Result<Vec<u8>, ClrError> {
        let wait = Wait { deadline: Instant::now() + timeout, timeout, doing };
        self.send(&request.encode()?, wait)?;
        self.answer(wait)
    }

    pub(crate) fn send(&mut self, mut bytes: &[u8], wait: Wait) -> Result<(), ClrError> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(0) => return Err(ClrError::Closed { doing: wait.doing }),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_for(PollFlags::OUT, wait)?
                }
                Err(error) => wait.check(error)?,
            }
        }
        Ok(())
    }

    pub(crate) fn answer(&mut self, wait: Wait) -> Result<Vec<u8>, ClrError> {
        let mut header = [0; HEADER_BYTES];
        self.read_exact(&mut header, wait)?;
        let header = AnswerHeader::parse(&header)?;
        let mut payload = vec![0; header.payload_bytes];
        self.read_exact(&mut payload, wait)?;
        header.check(&payload)?;
        Ok(payload)
    }

    pub(crate) fn read_exact(&mut self, mut into: &mut [u8], wait: Wait) -> Result<(), ClrError> {
        while !into.is_empty() {
            match self.stream.read(into) {
                Ok(0) => return Err(ClrError::Closed { doing: wait.doing }),
                Ok(read) => into = &mut into[read..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_for(PollFlags::IN, wait)?
                }
                Err(error) => wait.check(error)?,
            }
        }
        Ok(())
    }

    /// Reads what is there, or waits up to `timeout` for some of it.
    ///
    /// # Errors
    /// [`ClrError::Io`].
    pub fn read(&mut self, into: &mut [u8], timeout: Duration) -> Result<ReadOutcome, ClrError> {
        let wait = Wait { deadline: Instant::now() + timeout, timeout, doing: "reading events" };
        loop {
            match self.stream.read(into) {
                Ok(0) => return Ok(ReadOutcome::Closed),
                Ok(read) => return Ok(ReadOutcome::Data(read)),
                // A runtime that is killed with unread data on the connection resets it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Ok(ReadOutcome::Closed);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match self.wait_for(PollFlags::IN, wait) {
                        Ok(()) => {}
                        Err(ClrError::Timeout { .. }) => return Ok(ReadOutcome::Idle),
                        Err(error) => return Err(error),
                    }
                }
                Err(error) => wait.check(error)?,
            }
        }
    }

    fn wait_for(&self, events: PollFlags, wait: Wait) -> Result<(), ClrError> {
        let mut descriptors = [PollFd::new(&self.stream, events)];
        wait_for_any(&mut descriptors, wait)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// How long an operation may take, and how to name it when it takes longer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait {
    pub(crate) deadline: Instant,
    pub(crate) timeout: Duration,
    pub(crate) doing: &'static str,
}

impl Wait {
    fn check(self, error: io::Error) -> Result<(), ClrError> {
        match error.kind() {
            io::ErrorKind::Interrupted => Ok(()),
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                Err(ClrError::Closed { doing: self.doing })
            }
            _ => Err(ClrError::Io { doing: self.doing, source: error }),
        }
    }
}

/// Waits until one of the descriptors is ready, or fails with [`ClrError::Timeout`].
pub(crate) fn wait_for_any(descriptors: &mut [PollFd<'_>], wait: Wait) -> Result<(), ClrError> {
    loop {
        let left = wait.deadline.saturating_duration_since(Instant::now());
        let limit = Timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos().into() };
        match poll(descriptors, Some(&limit)) {
            Ok(0) => return Err(ClrError::Timeout { doing: wait.doing, after: wait.timeout }),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(ClrError::Io { doing: wait.doing, source: errno.into() }),
        }
    }
}

/// Descriptors must not leak into programs that our process starts; Apple's systems cannot ask for it at creation.
fn close_on_exec() -> SocketFlags {
    #[cfg(not(target_vendor = "apple"))]
    return SocketFlags::CLOEXEC;
    #[cfg(target_vendor = "apple")]
    return SocketFlags::empty();
}

fn connect_error(errno: Errno, path: &Path, process_id: u32, doing: &'static str) -> ClrError {
    use std::os::unix::fs::MetadataExt;
    match errno {
        Errno::NOENT | Errno::NOTDIR => {
            ClrError::NoEndpoint { process_id, looked_for: vec![path.to_owned()] }
        }
        Errno::CONNREFUSED => ClrError::StaleEndpoint { path: path.to_owned() },
        Errno::ACCESS | Errno::PERM => ClrError::PermissionDenied {
            path: path.to_owned(),
            owner_uid: path.metadata().ok().map(|metadata| metadata.uid()),
            our_uid: rustix::process::geteuid().as_raw(),
        },
        _ => ClrError::Io { doing, source: errno.into() },
    }
}
