//! The code of a system, in the form that execution calls.

use std::any::{Any, type_name};
use std::fmt;
use std::sync::{Arc, OnceLock};

use super::{ChunkCtx, SystemCtx, TickInfo};

/// Why a system failed, as its code says it.
pub type SystemError = Box<dyn std::error::Error + Send + Sync>;

/// What a run of a system comes to.
pub type SystemResult = Result<(), SystemError>;

/// What the closures of a schedule may return: a plain value, or a `Result` of it with any error.
///
/// A closure that uses `?` has to name its type: `|ctx| -> SystemResult { … }`.
pub trait IntoOutcome<T> {
    /// The value, or why there is none.
    fn into_outcome(self) -> Result<T, SystemError>;
}

impl<T> IntoOutcome<T> for T {
    fn into_outcome(self) -> Result<T, SystemError> {
        Ok(self)
    }
}

impl<T, E: Into<SystemError>> IntoOutcome<T> for Result<T, E> {
    fn into_outcome(self) -> Result<T, SystemError> {
        self.map_err(Into::into)
    }
}

/// Code of a callback system.
pub type CallbackFn = dyn FnMut(&mut SystemCtx<'_>) -> SystemResult + Send;
/// Code of one chunk of a chunked system.
pub type ChunkFn = dyn Fn(&ChunkCtx<'_>) -> SystemResult + Send + Sync;
/// Code of one chunk of a pipeline, called with the chunk's number and the number of chunks.
pub type PipelineFn = dyn Fn(u32, u32) -> SystemResult + Send + Sync;
/// Gate of a system: does it run in this tick?
pub type RunIf = dyn FnMut(&TickInfo) -> Result<bool, SystemError> + Send;

/// The code of a system.
pub enum SystemBody {
    /// Runs once per tick, on one worker.
    Callback(Box<CallbackFn>),
    /// Runs once per chunk, on any number of workers at once.
    Chunked(ChunkedBody),
    /// Runs once per chunk, without any context.
    Pipeline(Box<PipelineFn>),
}

impl fmt::Debug for SystemBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Callback(_) => "Callback",
            Self::Chunked(_) => "Chunked",
            Self::Pipeline(_) => "Pipeline",
        })
    }
}

/// How many chunks a chunked system has in a tick, as its `prepare` hook says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunks {
    /// None: the system is skipped.
    Skip,
    /// As many as declared.
    Declared,
    /// This many; 0 is the same as [`Skip`](Self::Skip).
    Count(u32),
}

/// The code of a chunked system, with its hooks. Both hooks run once per tick, before any chunk.
pub struct ChunkedBody {
    /// One chunk.
    pub run: Box<ChunkFn>,
    /// Does the system run in this tick? Asked after the gates that the system was given with `run_if`.
    pub should_run: Option<Box<dyn Fn() -> Result<bool, SystemError> + Send + Sync>>,
    /// How many chunks are there in this tick? Asked last.
    pub prepare: Option<Box<dyn Fn() -> Result<Chunks, SystemError> + Send + Sync>>,
    /// The context that the three of them share, of a system that has one.
    pub context: Option<AmbientContext>,
}

/// The typed context of a chunked system: declared with the system, bound before the runtime starts.
#[derive(Clone)]
pub struct AmbientContext {
    slot: Arc<OnceLock<Box<dyn Any + Send + Sync>>>,
    is_of_type: fn(&dyn Any) -> bool,
    type_name: &'static str,
}

impl AmbientContext {
    /// An unbound context of type `C`.
    pub fn of<C: Send + Sync + 'static>() -> Self {
        Self { slot: Arc::default(), is_of_type: |value| value.is::<C>(), type_name: type_name::<C>() }
    }

    /// Type that it was declared with.
    pub fn type_name(&self) -> &'static str {
        self.type_name
    }

    /// Has it got a value?
    pub fn is_bound(&self) -> bool {
        self.slot.get().is_some()
    }

    /// Gives it its value, once.
    ///
    /// # Errors
    /// `value` is of another type than declared, or there is a value already.
    pub fn bind<C: Send + Sync + 'static>(&self, value: C) -> Result<(), BindError> {
        if !(self.is_of_type)(&value) {
            return Err(BindError::WrongType { declared: self.type_name, given: type_name::<C>() });
        }
        self.slot.set(Box::new(value)).map_err(|_| BindError::AlreadyBound { declared: self.type_name })
    }

    /// The value.
    ///
    /// # Errors
    /// There is none, or it is not a `C`.
    pub fn get<C: 'static>(&self) -> Result<&C, BindError> {
        let value = self.slot.get().ok_or(BindError::Unbound { declared: self.type_name })?;
        let wrong = BindError::WrongType { declared: self.type_name, given: type_name::<C>() };
        value.downcast_ref().ok_or(wrong)
    }
}

impl fmt::Debug for AmbientContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AmbientContext({}, {})", self.type_name, if self.is_bound() { "bound" } else { "unbound" })
    }
}

/// What is wrong with the context of a chunked system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// Another type than declared.
    #[error("the context is declared as {declared}, not as {given}")]
    WrongType {
        /// Type of the declaration.
        declared: &'static str,
        /// Type that was given or asked for.
        given: &'static str,
    },
    /// It has a value, which chunks may be using.
    #[error(
        "the context {declared} is bound already; a context is bound once, between building and starting"
    )]
    AlreadyBound {
        /// Type of the declaration.
        declared: &'static str,
    },
    /// It has no value yet.
    #[error("the context {declared} is not bound; bind it between building and starting")]
    Unbound {
        /// Type of the declaration.
        declared: &'static str,
    },
}
