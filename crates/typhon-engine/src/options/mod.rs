//! What can be set about an engine. Options are plain values; the engine checks them when it is built.

mod fault;
mod runtime;

pub use fault::{InvalidOptions, OptionFault};
pub use runtime::{FailurePolicy, OverloadOptions, RuntimeOptions, TimeStep, WorkerCount};

/// All options of an engine, by section.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct EngineOptions {
    /// The tick loop.
    pub runtime: RuntimeOptions,
}

impl EngineOptions {
    /// Every rule that these options break.
    ///
    /// # Errors
    /// The broken rules, if there are any.
    pub fn check(&self) -> Result<(), InvalidOptions> {
        let mut faults = Vec::new();
        self.runtime.check(&mut faults);
        InvalidOptions::unless_empty(faults)
    }
}
