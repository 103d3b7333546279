//! Configuration: what to record, and where to.
//!
//! Three steps, each usable alone:
//!
//! 1. [`Settings`] collects key-value pairs from the program, its command line, the environment and
//!    `typhon.telemetry.json` files. This is the only step that looks at the outside world.
//! 2. [`resolve`] turns them into typed [`ProfilerOptions`], the state of every gate and the mask of kinds to record,
//!    together with every fault found. It is a pure function.
//! 3. [`process`] does both once for the running process and prints the faults, one line each, once.
//!
//! **Invariants**
//! - Nothing configured: nothing printed, everything off.
//! - A fault never stops the program: the value concerned counts as absent, and one line names source, key and remedy.
//! - No key, gate or default is written in two places: options come from [`OPTIONS`], gates from the event registry.

mod arguments;
mod explain;
mod fault;
mod json;
mod keys;
mod nearest;
mod options;
mod reader;
mod source;
mod unknown;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::gates::{GateValues, KindMask, Resolution};

pub use explain::explain;
pub use fault::{Fault, FaultCode};
pub use keys::{OPTIONS, OptionInfo, PROFILER, Part, ROOT, ValueType};
pub use options::{
    ChecksOptions, CpuSamplingOptions, DEFAULT_LIVE_PORT, GcTarget, GcTracingOptions, LiveOptions,
    ProfilerOptions, Secret, TracePath,
};
pub use source::{FILE_NAME, Origin, Overrides, Setting, Settings, SettingsBuilder};

pub(crate) use fault::{escaped, printable};
pub(crate) use json::{MAX_FILE_BYTES, flatten};
pub(crate) use nearest::nearest;
pub(crate) use reader::{Reader, parse_kind};

/// A configuration ready for use.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// Everything that is not a gate.
    pub options: ProfilerOptions,
    /// State of every gate and kind.
    pub gates: Resolution,
    /// Everything that is wrong, in the order of the sources.
    pub faults: Vec<Fault>,
    /// Files that were read, strongest first.
    pub files: Vec<PathBuf>,
    /// What the gates were resolved from; run-time changes start here.
    pub(crate) gate_values: GateValues,
    /// Who named the capture file.
    pub(crate) trace_origin: Option<Origin>,
    /// The working directory when the settings were read.
    working_directory: Option<PathBuf>,
}

impl Resolved {
    /// A path of the settings as it was meant when they were read: the program may have gone to another directory since.
    pub(crate) fn place(&self, path: &Path) -> PathBuf {
        self.working_directory.as_ref().map_or_else(|| path.to_owned(), |directory| directory.join(path))
    }

    /// The path that [`Self::place`] was given, as far as that can be told: for messages.
    pub(crate) fn shown<'p>(&self, place: &'p Path) -> &'p Path {
        let below = self.working_directory.as_ref().and_then(|directory| place.strip_prefix(directory).ok());
        below.filter(|below| !below.as_os_str().is_empty()).unwrap_or(place)
    }

    /// Kinds to record.
    pub fn mask(&self) -> KindMask {
        self.gates.mask()
    }
}

/// Resolves settings. Equal settings give equal results; nothing outside is read or written.
pub fn resolve(settings: &Settings) -> Resolved {
    let mut reader = Reader::new(settings);
    let (options, decided_by) = reader.options();
    let trace_origin = decided_by.trace.cloned();
    let gate_values = GateValues::read(&mut reader, options.enabled, decided_by.master);
    let gates = gate_values.resolve();
    let mut faults = reader.faults;
    faults.extend(gate_values.ineffective(&gates));
    faults.extend(unknown::unread_keys(settings, options.enabled));
    Resolved {
        options,
        gates,
        faults,
        files: settings.files().to_vec(),
        gate_values,
        trace_origin,
        working_directory: settings.working_directory.clone(),
    }
}

/// The configuration of this process, read at the first call and never again. Its faults go to standard error, once.
pub fn process() -> &'static Resolved {
    decide(Settings::from_process)
}

/// The configuration of this process: the one that was decided before, else that of these settings.
pub(crate) fn decide(settings: impl FnOnce() -> Settings) -> &'static Resolved {
    static RESOLVED: OnceLock<Resolved> = OnceLock::new();
    RESOLVED.get_or_init(|| {
        let resolved = resolve(&settings());
        // A program without standard error has nobody to tell.
        let _ = print_faults(&resolved.faults, &mut std::io::stderr().lock());
        resolved
    })
}

/// Writes one line per fault; of very many, the first ones and their number.
pub fn print_faults(faults: &[Fault], out: &mut dyn Write) -> std::io::Result<()> {
    const LINES_MAX: usize = 50;
    for fault in faults.iter().take(LINES_MAX) {
        writeln!(out, "typhon-profiler: {fault}")?;
    }
    match faults.len().saturating_sub(LINES_MAX) {
        0 => Ok(()),
        more => writeln!(out, "typhon-profiler: and {more} more faults in the configuration"),
    }
}
