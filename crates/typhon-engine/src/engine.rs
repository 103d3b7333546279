//! The engine and how it is built.

use crate::options::{EngineOptions, InvalidOptions, RuntimeOptions};
use crate::recording::Recording;
use crate::resources::{Node, NodeType, Registry, Resource, Subsystem};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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
    _resource: Option<Resource>,
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

    /// The tree of resources of this process, in which the engine and all that runs on it have nodes.
    pub fn resources(&self) -> &'static Registry {
        Registry::process()
    }

    /// A name that nothing else of this process has: `prefix` with a number.
    pub fn unique_name(&self, prefix: &str) -> String {
        unique_name(prefix)
    }

    /// What became of the recording that the configuration asks for.
    pub fn recording(&self) -> Status {
        self.0.recording.status()
    }
}

fn unique_name(prefix: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{prefix}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
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
        let (name, node) = (unique_name("Engine"), Node::new(NodeType::Engine));
        // Refused only if a subscriber of the tree builds an engine; it has no node then.
        let resource = Registry::process().register(Subsystem::DataEngine, &name, node).ok();
        Ok(Engine(Arc::new(Open { options: self.options, _resource: resource, recording })))
    }
}
