//! The profiler's life in a process: from configuration to a recording, and to its orderly end.
//!
//! A program needs no code for it: its first record reads the configuration and, if that says so, starts a session.
//! [`init`] does the same at a moment of the program's choosing, [`Init`] adds what only the program knows, and
//! [`shutdown`] ends the recording before the process does.
//!
//! **Invariants**
//! - Nothing configured: no file, no thread, no handler, no output.
//! - A failure is one line on standard error that names key, file and remedy; the program goes on without a recording.
//! - A recording is finished at normal exit, at a termination signal and at a panic that aborts; a process that is
//!   killed leaves a file that is whole up to its last block, which is at most a second old.
//! - A forked child records nothing and touches nothing of its parent's.

mod exit;
pub(crate) mod first_use;
mod panic;
#[cfg(unix)]
mod signals;

use crate::config::{self, Fault, FaultCode, Origin, Overrides, Resolved, Settings, TracePath};
use crate::destination::{self, Destination};
use crate::export::{Exporter, FileExporter};
use crate::fork;
use crate::gates::Gates;
use crate::gauges::IntervalReader;
#[cfg(all(unix, feature = "gc"))]
use crate::gc::GcHost;
use crate::say::say;
use crate::session::{self, SessionOptions, SessionReport, StartError, Started};
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};
#[cfg(all(unix, feature = "gc"))]
use typhon_trace::event::{Event, GcEnd, GcStart, GcSuspension};

/// Longest time that finishing a recording may delay the end of the process.
const HOOK_BUDGET: Duration = Duration::from_secs(2);

/// What [`init`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The configuration does not ask for a recording, or this process is a fork of one that recorded.
    Off,
    /// A recording runs, now or already.
    Recording,
    /// A recording was asked for and could not start; a line on standard error says why.
    Failed,
}

/// What the program adds to its configuration. Counts if it comes before the first record; later the configuration of
/// the process is decided, and [`Init::start`] says so.
///
/// ```no_run
/// use typhon_profiler::{Init, config::Overrides};
///
/// Init::new()
///     .overrides(Overrides::new().gate("Scheduler", true))
///     .arguments(std::env::args_os().skip(1))
///     .database_directory("world.typhon")
///     .start();
/// ```
#[derive(Debug, Clone, Default)]
pub struct Init {
    overrides: Overrides,
    arguments: Vec<OsString>,
    host: Host,
}

/// What only the program knows.
#[derive(Debug, Clone, Default)]
struct Host {
    database_directory: Option<PathBuf>,
}

impl Init {
    /// Environment and configuration files alone, as [`init`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Settings that win over those of the environment and of files.
    pub fn overrides(mut self, overrides: Overrides) -> Self {
        self.overrides = overrides;
        self
    }

    /// The command line without the program's name; see
    /// [`SettingsBuilder::arguments`](config::SettingsBuilder::arguments).
    pub fn arguments<I: IntoIterator<Item: Into<OsString>>>(mut self, arguments: I) -> Self {
        self.arguments = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// Where recordings go that were not given a path: into `profilings` below this directory, where old ones are
    /// deleted as its `retention.json` says.
    pub fn database_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.host.database_directory = Some(directory.into());
        self
    }

    /// Starts the recording that the configuration asks for. Does nothing if one runs.
    pub fn start(self) -> Status {
        if fork::is_child() {
            return Status::Off;
        }
        first_use::is_not_awaited();
        let mut turn = lock(&TURN);
        let is_plain = self.is_plain();
        let mut is_decided_here = false;
        let process = PROCESS.get_or_init(|| {
            let Self { overrides, arguments, host } = self;
            let resolved = config::decide(|| {
                is_decided_here = true;
                Settings::builder().overrides(overrides).arguments(arguments).process().build()
            });
            Process {
                resolved,
                host,
                gates: Gates::new(resolved, |change| _ = session::set_mask(change.mask)),
            }
        });
        if !is_decided_here && !is_plain {
            say(
                "what Init adds comes after the first record and has no effect; start it first thing in main",
            );
        }
        process.start(&mut turn)
    }

    fn is_plain(&self) -> bool {
        self.overrides.is_empty() && self.arguments.is_empty() && self.host.database_directory.is_none()
    }
}

/// Starts the recording that environment and configuration files ask for; see [`Init`] for more. Does nothing if one
/// runs; after [`shutdown`], starts the next one.
pub fn init() -> Status {
    Init::new().start()
}

/// Ends the recording: everything recorded is in the file when this returns, and the file is closed. `None` when none
/// runs. Takes a few milliseconds, at most 7 s when the disk does not keep up, and 5 s more when a .NET runtime whose
/// collections are recorded does not answer.
pub fn shutdown() -> Option<SessionReport> {
    session::stop()
}

/// The gates of this process, to switch them while it runs. Changes also count for later recordings of the process.
/// `None` before the first record and [`init`].
pub fn gates() -> Option<&'static Gates> {
    PROCESS.get().map(|process| &process.gates)
}

/// Decided once, and never again.
struct Process {
    resolved: &'static Resolved,
    host: Host,
    gates: Gates,
}

static PROCESS: OnceLock<Process> = OnceLock::new();
/// Threads that start take turns.
static TURN: Mutex<Turn> = Mutex::new(Turn { recordings: 0 });

struct Turn {
    /// Recordings started so far.
    recordings: u32,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Process {
    fn start(&self, turn: &mut Turn) -> Status {
        if !self.resolved.options.enabled {
            return Status::Off;
        }
        if session::is_running() {
            return Status::Recording;
        }
        let Some(path) = self.destination(turn.recordings) else { return Status::Failed };
        match session::start(self.session_options(path.as_deref())) {
            Ok(Started::New) => self.started(turn, path.as_deref()),
            Ok(Started::AlreadyRunning) => {}
            Ok(Started::Forked) => return Status::Off,
            Err(error) => {
                say(start_failure(self.resolved, path.as_deref(), &error));
                return Status::Failed;
            }
        }
        Status::Recording
    }

    /// The file to write, or none on purpose. `None`, and a line said, when there is nowhere to write to.
    fn destination(&self, earlier_recordings: u32) -> Option<Option<PathBuf>> {
        let Destination { path, faults, .. } =
            destination::prepare(self.resolved, self.host.database_directory.as_deref(), SystemTime::now());
        faults.iter().for_each(say);
        match (&self.resolved.options.trace, path) {
            (TracePath::None, _) => Some(None),
            (TracePath::Explicit(_), Some(path)) => Some(Some(numbered(path, earlier_recordings + 1))),
            (_, Some(path)) => Some(Some(path)),
            (_, None) => {
                if faults.is_empty() {
                    say(destination::no_output(self.resolved));
                }
                None
            }
        }
    }

    fn session_options(&self, path: Option<&Path>) -> SessionOptions {
        let options = &self.resolved.options;
        let exporter = path.map(|path| Box::new(FileExporter::new(path)) as Box<dyn Exporter>);
        SessionOptions {
            mask: self.gates.mask(),
            exporters: exporter.into_iter().collect(),
            buffer_budget_bytes: options.buffer_budget_bytes as u64,
            cadence: options.consumer_cadence,
            queue_depth: options.exporter_queue_batches,
        }
    }

    fn started(&self, turn: &mut Turn, path: Option<&Path>) {
        // A gate that was switched while the session started has not reached it.
        self.gates.publish_mask();
        turn.recordings += 1;
        watch_for_the_end();
        let kinds = self.gates.mask().len();
        match path {
            Some(path) => {
                let path = self.resolved.shown(path);
                say(format_args!("recording {kinds} kinds to {}", path.display()));
            }
            None => say(format_args!("collecting {kinds} kinds, to no file (Trace = none)")),
        }
        match IntervalReader::start(self.resolved.options.gauges_interval) {
            Ok(gauges) => session::accompany(Box::new(gauges)),
            Err(error) => say(format_args!("no gauges without ticks: no thread to read them ({error})")),
        }
        #[cfg(all(unix, feature = "gc"))]
        self.start_gc();
    }
}

#[cfg(all(unix, feature = "gc"))]
impl Process {
    /// Starts the tracer of a .NET runtime if any of its kinds is recorded.
    fn start_gc(&self) {
        let kinds = [GcStart::KIND, GcEnd::KIND, GcSuspension::KIND];
        if !kinds.iter().any(|&kind| self.gates.mask().contains(kind)) {
            return;
        }
        match GcHost::start(&self.resolved.options.gc_tracing, |line| say(line)) {
            Ok(host) => session::accompany(Box::new(host)),
            Err(error) => say(format_args!("no .NET collections: no thread to read them ({error})")),
        }
    }
}

fn start_failure(resolved: &Resolved, path: Option<&Path>, error: &StartError) -> Fault {
    match (error, path) {
        (StartError::Exporter { source, .. }, Some(path)) => {
            let mut fault = destination::unusable(resolved, resolved.shown(path), root_cause(source));
            if source.storage_full {
                fault.remedy = "free some space or name a file elsewhere; nothing is recorded".to_owned();
            }
            fault
        }
        _ => {
            let remedy = "nothing is recorded; start the program again";
            Fault::new(FaultCode::Destination, &Origin::Default, "", error.to_string(), remedy)
        }
    }
}

/// The error at the end of the chain, which says what happened rather than where.
fn root_cause<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause
}

/// A later recording of a process does not replace the first one: `run.typhon-trace`, `run-2.typhon-trace`, …
fn numbered(path: PathBuf, number: u32) -> PathBuf {
    if number == 1 {
        return path;
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (stem, extension) = match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => (stem, format!(".{extension}")),
        _ => (&*name, String::new()),
    };
    path.with_file_name(format!("{stem}-{number}{extension}"))
}

/// Sees to it, once per process, that recordings are finished when the process ends.
fn watch_for_the_end() {
    static PANICS: AtomicBool = AtomicBool::new(false);
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if !exit::at_exit(finish_at_exit) {
            say("no room for an exit handler; call typhon_profiler::shutdown() at the end of main");
        }
        #[cfg(unix)]
        if let Err(error) = signals::watch() {
            say(format_args!("termination signals will not close the file ({error}); it stays readable"));
        }
    });
    if !PANICS.load(Ordering::Relaxed) {
        PANICS.store(panic::watch(), Ordering::Relaxed);
    }
}

extern "C" fn finish_at_exit() {
    // A panic must not leave a function of the C library's; it has been reported by then.
    let _ = std::panic::catch_unwind(|| session::stop_within(HOOK_BUDGET));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::ExportError;
    use std::io;
    use typhon_trace::TraceError;

    #[test]
    fn b28_later_recordings_do_not_replace_the_first() {
        let name = |path: &str, number| numbered(PathBuf::from(path), number).to_str().unwrap().to_owned();
        assert_eq!(name("a.b/run.typhon-trace", 1), "a.b/run.typhon-trace");
        assert_eq!(name("a.b/run.typhon-trace", 2), "a.b/run-2.typhon-trace");
        assert_eq!(name("a.b/run", 3), "a.b/run-3");
        assert_eq!(name(".hidden", 2), ".hidden-2");
    }

    #[test]
    fn b35_a_full_disk_is_one_line_with_key_file_and_remedy() {
        let source = io::Error::from(io::ErrorKind::StorageFull);
        let source = ExportError::from(TraceError::Io { action: "write", offset: 0, source });
        let error = StartError::Exporter { name: "file".to_owned(), source };
        let settings = Settings::builder().environment([("TYPHON__PROFILER__TRACE", "run.typhon-trace")]);
        let line =
            start_failure(&config::resolve(&settings.build()), Some(Path::new("run.typhon-trace")), &error);
        assert_eq!(
            line.to_string(),
            "environment TYPHON__PROFILER__TRACE: no capture file at run.typhon-trace (no storage space); \
             free some space or name a file elsewhere; nothing is recorded"
        );
    }
}
