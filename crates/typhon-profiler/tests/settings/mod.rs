//! Settings from texts, and what is said about them.
#![allow(dead_code, reason = "every test file uses its own part")]

use typhon_profiler::config::{Fault, FaultCode, Resolved, Settings, resolve};

pub(crate) fn file(text: &str) -> Resolved {
    resolve(&Settings::builder().file_text("typhon.telemetry.json", text).build())
}

/// A file with this content of the section `Typhon:Profiler`.
pub(crate) fn profiler(section: &str) -> Resolved {
    file(&format!("{{ \"Typhon\": {{ \"Profiler\": {section} }} }}"))
}

pub(crate) fn environment(variables: &[(&str, &str)]) -> Resolved {
    resolve(&Settings::builder().environment(variables.iter().copied()).build())
}

pub(crate) fn lines(resolved: &Resolved) -> Vec<String> {
    resolved.faults.iter().map(Fault::to_string).collect()
}

pub(crate) fn codes(resolved: &Resolved) -> Vec<FaultCode> {
    resolved.faults.iter().map(|fault| fault.code).collect()
}

pub(crate) const NO_FAULTS: [&str; 0] = [];
