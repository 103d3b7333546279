//! Systems: what they are made of ([`SystemBody`]), and what they see when they run ([`SystemCtx`], [`ChunkCtx`]).

mod body;
mod context;

pub use body::{
    AmbientContext, BindError, CallbackFn, ChunkFn, ChunkedBody, Chunks, IntoOutcome, PipelineFn, RunIf,
    SystemBody, SystemError, SystemResult,
};
pub use context::{ChunkCtx, Invocation, SystemCtx, TickInfo};
