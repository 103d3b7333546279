//! The engine and how it is built.

use crate::options::{EngineOptions, InvalidOptions, RuntimeOptions};
use crate::recording::Recording;
use std::fmt;
use std::sync::Arc;
use typhon_profiler::{Init, Status};

/// The engine of a world. Cloning gives another handle; it closes when the last one is gone.
///
/// ```
/// use typhon_engine::Engine;
///
/// let engine = Engine::builder().runtime(|runtime| runtime.base_tick_rate_hz = 30).build()?;
/// assert_eq!(engine.options().runtime.base_tick_rate_hz, 30);
/// # Ok::<(), typhon_engine::InvalidOptions>(())
/// ```
#[derive(Debug, Clone)]
pub struct Engine(Arc<Open>);

#[derive(Debug)]
struct Open {
    options: EngineOptions,
    /// Last, so that everything else is torn down while it still runs.
    recording: Recording,
}

impl Engine {
    /// An engine with default options, to be changed and built.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// The options that it was built with.
    pub fn options(&self) -> &EngineOptions {
        &self.0.options
    }

    /// What became of the recording that the configuration asks for.
    pub fn recording(&self) -> Status {
        self.0.recording.status()
    }
}

/// Options of an engine that is not there yet.
#[must_use = "nothing happens before `build`"]
#[derive(Default)]
pub struct EngineBuilder {
    options: EngineOptions,
    profiler: Init,
}

impl fmt::Debug for EngineBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}

impl EngineBuilder {
    /// Changes options of the tick loop.
    pub fn runtime(mut self, change: impl FnOnce(&mut RuntimeOptions)) -> Self {
        change(&mut self.options.runtime);
        self
    }

    /// Adds what only the program knows to the configuration of its recording: its command line, settings that win over
    /// files. Without it, `typhon.telemetry.json` and the environment decide alone.
    pub fn profiler(mut self, change: impl FnOnce(Init) -> Init) -> Self {
        self.profiler = change(self.profiler);
        self
    }

    /// Checks all options, starts the recording that the configuration asks for, and opens the engine. A recording that
    /// cannot start is no error: one line on standard error says why, and [`Engine::recording`] tells.
    ///
    /// # Errors
    /// All options that break a rule; nothing was started then.
    pub fn build(self) -> Result<Engine, InvalidOptions> {
        self.options.check()?;
        let recording = Recording::begin(self.profiler);
        Ok(Engine(Arc::new(Open { options: self.options, recording })))
    }
}
