//! What can go wrong with a runtime as a whole.

use crate::schedule::ScheduleBuildError;
use crate::scheduler::failure::SystemFailure;
use crate::system::BindError;
use std::fmt;
use std::io;
use typhon_engine::{Coded, ErrorCode, InvalidOptions};

/// Why there is no runtime. Nothing was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// Options break rules.
    #[error(transparent)]
    Options(#[from] InvalidOptions),
    /// The schedule has faults.
    #[error(transparent)]
    Schedule(#[from] ScheduleBuildError),
}

impl Coded for CreateError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Options(error) => error.code(),
            Self::Schedule(_) => ErrorCode::SCHEDULE_BUILD,
        }
    }
}

/// Why a runtime does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Chunked systems wait for their contexts.
    #[error("no context is bound for {}; bind it between creating and starting the runtime", Quoted(systems))]
    UnboundContext {
        /// The systems.
        systems: Vec<String>,
    },
    /// The operating system refused a thread.
    #[error(
        "the thread {name} could not start: {source}; raise the limit on threads or ask for fewer workers"
    )]
    Thread {
        /// Name of the thread.
        name: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// It runs already, or runs the other way: a runtime either keeps its own time or is stepped.
    #[error("the runtime {0} already")]
    AlreadyRuns(&'static str),
    /// It has ended.
    #[error(transparent)]
    Terminal(#[from] Terminal),
}

impl Coded for StartError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::UnboundContext { .. } => ErrorCode::SCHEDULE_BUILD,
            Self::Thread { .. } => ErrorCode::UNSPECIFIED,
            Self::AlreadyRuns(_) | Self::Terminal(_) => ErrorCode::RUNTIME_TERMINAL,
        }
    }
}

/// Why a context could not be bound.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContextError {
    /// There is no such system, or it has no context.
    #[error("no chunked system named \"{system}\" has a context")]
    NoContext {
        /// The name that was given.
        system: String,
    },
    /// The context refuses.
    #[error("system \"{system}\": {source}")]
    Bind {
        /// Name of the system.
        system: String,
        /// The cause.
        #[source]
        source: BindError,
    },
    /// Systems may be using it.
    #[error("system \"{system}\": the runtime has started; bind contexts before")]
    Started {
        /// Name of the system.
        system: String,
    },
}

/// How a runtime ended. It never runs again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Terminal {
    /// Somebody asked for it.
    #[error("the runtime was shut down")]
    ShutDown,
    /// Somebody asked for it, without handlers.
    #[error("the runtime was stopped for good")]
    FatalStop,
    /// A system failed, and the policy is to stop then.
    #[error("the runtime stopped, since {0}")]
    Aborted(Box<SystemFailure>),
    /// A tick did not end.
    #[error("the runtime was given up in tick {tick}: {} did not return", Quoted(running))]
    Stalled {
        /// Number of the tick.
        tick: i64,
        /// Systems that were running.
        running: Vec<String>,
    },
    /// A thread of the runtime ended by itself.
    #[error("the runtime stopped in tick {tick}, since its thread {thread} ended unexpectedly")]
    ThreadDied {
        /// Number of the tick.
        tick: i64,
        /// Name of the thread.
        thread: String,
    },
}

impl Coded for Terminal {
    fn code(&self) -> ErrorCode {
        ErrorCode::RUNTIME_TERMINAL
    }
}

/// Why a shutdown is not complete. The runtime is terminal all the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShutdownError {
    /// Nothing was completed for a while; what still runs may go on.
    #[error(
        "tick {tick} does not end: nothing was completed for {waited_ms} ms, and {} is running",
        Quoted(running)
    )]
    Stalled {
        /// Number of the tick.
        tick: i64,
        /// Systems that are running.
        running: Vec<String>,
        /// How long it waited without anything being completed.
        waited_ms: u64,
    },
    /// The handlers of [`Runtime::on_shutdown`](super::Runtime::on_shutdown) take longer than a shutdown waits.
    #[error("on_shutdown did not return for {waited_ms} ms; shut down again to wait for it once more")]
    Hook {
        /// How long it waited.
        waited_ms: u64,
    },
    /// Threads that did not end in time.
    #[error("{} did not end in time", Quoted(threads))]
    Threads {
        /// Their names.
        threads: Vec<String>,
    },
}

/// Names in a sentence.
struct Quoted<'a>(&'a [String]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("nothing known");
        }
        for (at, name) in self.0.iter().enumerate() {
            write!(f, "{}\"{name}\"", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}
