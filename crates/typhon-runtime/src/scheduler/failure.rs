//! What went wrong in systems, for the program and for people.

use std::any::Any;
use std::fmt;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use typhon_sync::panics::drop_guarded;

/// How a system failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// Its code returned an error.
    Error,
    /// Its code panicked.
    Panic,
    /// A gate returned an error or panicked: `run_if`, `should_run` or `prepare`.
    Gate(&'static str),
}

/// One failure of one system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemFailure {
    /// Name of the system.
    pub system: String,
    /// Number of the tick.
    pub tick: i64,
    /// Chunk that failed; `None` if it was a gate.
    pub chunk: Option<u32>,
    /// How.
    pub kind: FailureKind,
    /// What the error or the panic said.
    pub message: String,
}

impl fmt::Display for SystemFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { system, tick, chunk, kind, message } = self;
        write!(f, "system \"{system}\" failed in tick {tick}")?;
        if let Some(chunk) = chunk {
            write!(f, ", chunk {chunk}")?;
        }
        match kind {
            FailureKind::Error => write!(f, ": {message}"),
            FailureKind::Panic => write!(f, ": panic: {message}"),
            FailureKind::Gate(gate) => write!(f, ": {gate}: {message}"),
        }
    }
}

/// Shortest time between two lines about one system.
const QUIET: Duration = Duration::from_secs(10);

/// The last failure of every system.
#[derive(Debug)]
pub(crate) struct Failures {
    by_system: Box<[Mutex<Last>]>,
    latest: Mutex<Option<SystemFailure>>,
}

#[derive(Debug, Default)]
struct Last {
    failure: Option<SystemFailure>,
    said_at: Option<Instant>,
    /// Failures since a line was written.
    unsaid: u64,
}

impl Failures {
    pub(crate) fn new(systems: usize) -> Self {
        Self { by_system: (0..systems).map(|_| Mutex::default()).collect(), latest: Mutex::new(None) }
    }

    /// Keeps a failure, and says it on standard error unless that was done a moment ago.
    #[cold]
    pub(crate) fn note(&self, system: usize, failure: SystemFailure) {
        let mut last = lock(&self.by_system[system]);
        if last.said_at.is_none_or(|at| at.elapsed() >= QUIET) {
            say(&failure, last.unsaid);
            (last.said_at, last.unsaid) = (Some(Instant::now()), 0);
        } else {
            last.unsaid += 1;
        }
        last.failure = Some(failure.clone());
        *lock(&self.latest) = Some(failure);
    }

    /// The last failure of a system.
    pub(crate) fn of(&self, system: usize) -> Option<SystemFailure> {
        lock(&self.by_system[system]).failure.clone()
    }

    /// The last failure of any system.
    pub(crate) fn latest(&self) -> Option<SystemFailure> {
        lock(&self.latest).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One line. A program without a standard error has nobody to tell.
fn say(failure: &SystemFailure, unsaid: u64) {
    let mut stderr = io::stderr().lock();
    let _ = match unsaid {
        0 => writeln!(stderr, "typhon-runtime: {failure}"),
        more => writeln!(stderr, "typhon-runtime: {failure} (and {more} times since the last line)"),
    };
}

/// What a panic said. Consumes its payload, whose destructor may panic too.
#[cold]
pub(crate) fn panic_message(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    drop_guarded(payload);
    text.unwrap_or_else(|| "(no text)".to_owned())
}

/// What an error says; asking it is running user code.
#[cold]
pub(crate) fn error_message(error: Box<dyn std::error::Error + Send + Sync>) -> String {
    let text = catch_unwind(AssertUnwindSafe(|| chain(&*error)));
    drop_guarded(error);
    text.unwrap_or_else(panic_message)
}

fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
