//! Records of a running process: by its id, at a socket to which it connects, or started by us.

use super::recording::Recording;
use super::trace_file::Timebase;
use super::{Ended, SIGNAL_EXIT};
use crate::cmd::socket_folder::{self, SocketFolder};
use crate::failure::{Exit, Failure};
use crate::output::escape::printable;
use crate::output::signals;
use crate::output::stream::Style;
use crate::output::units::duration;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use typhon_clr::gc::{GcItem, GcRecord};
use typhon_clr::ipc::{Bystanders, Incoming, ReverseListener, ReverseTarget};
use typhon_clr::nettrace::TraceInfo;
use typhon_clr::session::{GcProgress, GcSession, GcSettings, monotonic_ns};
use typhon_clr::{ClockSync, ClrError};
use typhon_trace::header::utc_ticks_from_unix_ns;

/// How long a command may take to bring up its runtime before a word about it is due.
const PATIENCE: Duration = Duration::from_secs(3);

/// What can be started and recorded.
const A_COMMAND: &str = "it must be a .NET program (5 or newer) with diagnostics enabled";

/// How soon a signal or the end of a command is noticed.
const POLL: Duration = Duration::from_millis(100);

/// For an answer of a runtime that is not recorded.
const BYSTANDER_TIMEOUT: Duration = Duration::from_millis(500);

/// When to stop, besides the end of the process.
#[derive(Debug, Clone, Copy)]
struct Until {
    deadline: Option<Instant>,
}

impl Until {
    /// Until a signal comes, or the time is over that begins now.
    fn new(limit: Option<Duration>) -> Self {
        Self { deadline: limit.and_then(|limit| Instant::now().checked_add(limit)) }
    }

    fn is_over(self) -> bool {
        signals::received().is_some() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The next wait.
    fn wait(self) -> Duration {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        left.map_or(POLL, |left| left.min(POLL))
    }
}

/// Records a process by its id.
pub(super) fn attach(
    process_id: u32,
    recording: &mut Recording<'_>,
    limit: Option<Duration>,
) -> Result<Ended, Failure> {
    let session = GcSession::attach(process_id, GcSettings::default()).map_err(unreachable)?;
    recording.style().say(&format!("recording the collections of process {process_id}; Ctrl+C ends it"));
    follow(session, None, recording, limit)
}

/// Records the first process that connects to a socket.
pub(super) fn listen(
    path: &Path,
    recording: &mut Recording<'_>,
    limit: Option<Duration>,
) -> Result<Ended, Failure> {
    let listener = Arc::new(bind(path)?);
    // The process may be started in another folder.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let shown = printable(&path.to_string_lossy()).into_owned();
    recording.style().say(&format!(
        "waiting for a process that was started with DOTNET_DiagnosticPorts={shown}; Ctrl+C ends it"
    ));
    match next_runtime(&listener, recording, || Ok(()))? {
        Some(incoming) => {
            let mut bystanders = Bystanders::new(Arc::clone(&listener), incoming.advertise);
            let session = begin(&listener, incoming, recording.style())?;
            follow(session, Some(&mut bystanders), recording, limit)
        }
        None => Ok(Ended::default()),
    }
}

/// Starts a command and records it from its first collection on.
pub(super) fn start(
    command: &[OsString],
    recording: &mut Recording<'_>,
    limit: Option<Duration>,
) -> Result<Ended, Failure> {
    let folder = socket_folder::create("typhon-gc-").map_err(|err| {
        Failure::new(Exit::Io, "no folder for the socket can be created")
            .caused_by(err)
            .hint("TMPDIR must name a folder")
    })?;
    let socket = folder.path().join("port");
    let listener = Arc::new(bind(&socket)?);
    let mut child = spawn(command, &socket)?;
    let style = recording.style();
    let mut word_due = Some(Instant::now() + PATIENCE);
    let check = || {
        if let Ok(Some(status)) = child.try_wait() {
            let what = format!("the command ended ({status}) and no .NET runtime had connected");
            return Err(Failure::new(Exit::Unreachable, what).hint(A_COMMAND));
        }
        if word_due.take_if(|due| Instant::now() >= *due).is_some() {
            style.say(&format!(
                "waiting for the command's .NET runtime to connect; {A_COMMAND}; Ctrl+C ends it"
            ));
        }
        Ok(())
    };
    let begun = next_runtime(&listener, recording, check).and_then(|incoming| {
        let Some(incoming) = incoming else { return Ok(None) };
        let bystanders = Bystanders::new(Arc::clone(&listener), incoming.advertise);
        Ok(Some((begin(&listener, incoming, recording.style())?, bystanders)))
    });
    let (session, mut bystanders) = match begun {
        Ok(Some(begun)) => begun,
        other => {
            // Its runtime would wait for us for ever. That the command has ended already is no failure of ours.
            let _ = child.kill().and_then(|()| child.wait());
            return other.map(|_| Ended::default());
        }
    };
    let ended = follow(session, Some(&mut bystanders), recording, limit);
    let command = StartedCommand { child, bystanders, _folder: folder };
    match ended {
        Ok(ended) => Ok(Ended { command: Some(command), ..ended }),
        Err(failure) => {
            recording.style().say("warning: the recording ends here; the command goes on");
            command.wait();
            Err(failure)
        }
    }
}

/// A command whose recording has ended.
#[derive(Debug)]
pub(super) struct StartedCommand {
    child: Child,
    bystanders: Bystanders,
    _folder: SocketFolder,
}

impl StartedCommand {
    /// Waits for its end and gives its exit code; `None` if a signal of our own ended the wait.
    pub(super) fn wait(mut self) -> Option<u8> {
        while signals::received().is_none() {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(exit_code(status)),
                Ok(None) => std::thread::sleep(POLL),
                Err(_) => return None,
            }
            // Programs that it starts now still look for us; whoever fails tries again.
            let _ = self.bystanders.let_go_on(BYSTANDER_TIMEOUT);
        }
        None
    }
}

/// As a shell would tell it.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.signal().map(|signal| SIGNAL_EXIT | signal as u8);
    code.or(status.code().map(|code| code as u8)).unwrap_or(SIGNAL_EXIT)
}

/// The command's own output goes to standard error: standard output is for the collections.
fn spawn(command: &[OsString], socket: &Path) -> Result<Child, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::usage("no command is given"));
    };
    let cannot = |err| {
        let shown = printable(&program.to_string_lossy()).into_owned();
        Failure::new(Exit::of_opening(&err), format!("{shown} cannot be started")).caused_by(err)
    };
    let output = std::io::stderr().as_fd().try_clone_to_owned().map_err(cannot)?;
    let mut child = Command::new(program);
    child.args(arguments).env("DOTNET_DiagnosticPorts", socket).stdout(Stdio::from(output));
    child.spawn().map_err(cannot)
}

fn bind(path: &Path) -> Result<ReverseListener, Failure> {
    let failure = |exit| Failure::new(exit, "the socket cannot be created").in_file(path);
    ReverseListener::bind(path).map_err(|err| match err {
        ClrError::Io { source, .. } if source.kind() == ErrorKind::AddrInUse => {
            failure(Exit::CannotCreate).caused_by(source).hint("delete it, if no other program waits there")
        }
        ClrError::Io { source, .. } if source.kind() == ErrorKind::InvalidInput => {
            failure(Exit::CannotCreate).caused_by(source).hint("choose another path")
        }
        ClrError::Io { source, .. } => failure(Exit::of_creating(&source)).caused_by(source),
        other => failure(Exit::CannotCreate).caused_by(other),
    })
}

/// Waits for a runtime; `None` if a signal came first. `check` may end the wait with a reason.
fn next_runtime(
    listener: &ReverseListener,
    recording: &Recording<'_>,
    mut check: impl FnMut() -> Result<(), Failure>,
) -> Result<Option<Incoming>, Failure> {
    while signals::received().is_none() {
        match listener.accept(POLL) {
            Ok(Some(incoming)) => return Ok(Some(incoming)),
            // A signal often reaches the command too, and what ends it then is no failure.
            Ok(None) => match check() {
                Err(_) if signals::received().is_some() => {}
                checked => checked?,
            },
            // Somebody else knocked, or a runtime went away again.
            Err(err @ (ClrError::Ipc(_) | ClrError::Timeout { .. } | ClrError::Closed { .. })) => {
                recording.style().say(&format!("warning: a connection was turned away: {err}"));
            }
            Err(err) => return Err(unreachable(err)),
        }
    }
    Ok(None)
}

/// Starts the session before the runtime runs its first line of managed code.
fn begin(listener: &Arc<ReverseListener>, incoming: Incoming, style: &Style) -> Result<GcSession, Failure> {
    let process_id = incoming.advertise.process_id;
    let target = ReverseTarget::new(Arc::clone(listener), incoming);
    let mut session = GcSession::start(Box::new(target), GcSettings::default()).map_err(unreachable)?;
    session.resume_runtime().map_err(unreachable)?;
    style.say(&format!("recording the collections of process {process_id}; Ctrl+C ends it"));
    Ok(session)
}

/// Takes records until the process or the time ends, and ends the session.
fn follow(
    mut session: GcSession,
    mut bystanders: Option<&mut Bystanders>,
    recording: &mut Recording<'_>,
    limit: Option<Duration>,
) -> Result<Ended, Failure> {
    let until = Until::new(limit);
    let mut taken = Taken::default();
    let mut progress = Ok(GcProgress::Running);
    while matches!(progress, Ok(GcProgress::Running)) && !until.is_over() {
        progress = session.poll(until.wait(), &mut |item| taken.item(item));
        taken.hand_over(session.clock().copied(), recording)?;
        if let Some(Err(err)) = bystanders.as_mut().map(|others| others.let_go_on(BYSTANDER_TIMEOUT)) {
            recording.style().detail(&format!("a process that is not recorded was turned away: {err}"));
        }
    }
    match progress {
        Ok(GcProgress::Running | GcProgress::Ended) => {}
        Ok(GcProgress::Cut) => {
            recording.broken_off("the process was killed; everything before is kept".to_owned());
        }
        Err(err) => recording.broken_off(format!("{err}; everything before is kept")),
    }
    let stop_ns = monotonic_ns();
    if let Err(err) = session.stop(&mut |item| taken.item(item)) {
        recording.broken_off(format!("the session could not be ended properly: {err}"));
    }
    taken.hand_over(session.clock().copied(), recording)?;
    Ok(Ended { stop_ticks: Some(i64::try_from(stop_ns).unwrap_or(i64::MAX)), ..Ended::default() })
}

/// Records that wait for the clock: the first batch may still correct it.
#[derive(Debug, Default)]
struct Taken {
    trace: Option<TraceInfo>,
    records: Vec<GcRecord>,
}

impl Taken {
    fn item(&mut self, item: GcItem<'_>) {
        match item {
            GcItem::Trace(trace) => self.trace = Some(trace),
            GcItem::Record(record) => self.records.push(record),
            GcItem::Event(..) => {}
        }
    }

    fn hand_over(&mut self, clock: Option<ClockSync>, recording: &mut Recording<'_>) -> Result<(), Failure> {
        if !recording.has_begun()
            && let (Some(trace), Some(clock)) = (&self.trace, clock)
        {
            if !clock.is_same_clock() {
                let error = duration(i64::try_from(clock.uncertainty_ns()).unwrap_or(i64::MAX));
                recording.style().say(&format!(
                    "warning: the process has another clock than we; its times are right within {error}"
                ));
            }
            recording.begin(trace, Timebase::Host(clock), now_utc_ticks())?;
        }
        recording.take(&mut self.records)
    }
}

fn now_utc_ticks() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    utc_ticks_from_unix_ns(i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX))
}

/// A process that cannot be watched, in one line.
fn unreachable(err: ClrError) -> Failure {
    let exit = match &err {
        ClrError::PermissionDenied { .. } => Exit::NotPermitted,
        _ => Exit::Unreachable,
    };
    Failure::new(exit, printable(&err.to_string()).into_owned())
}
