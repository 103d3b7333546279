//! Where a capture goes, and what becomes of old ones (brief 02 B-33 to B-35).
//!
//! Captures that were not given a name live in `profilings/` below the database directory, named after their start
//! time. Before a new one is made, old ones are deleted as that directory's `retention.json` allows.

mod in_use;
mod name;
mod policy;
mod retention;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::config::{Fault, FaultCode, Origin, PROFILER, ProfilerOptions, Resolved, TracePath};

#[cfg(not(loom))]
pub(crate) use in_use::create_in_use;
pub use name::{CAPTURE_EXTENSION, capture_name, new_capture, time_of_name};
pub use policy::{POLICY_FILE, RetentionPolicy};
pub use retention::{CaptureFile, Inventory, Plan, RetentionReport, SizedFile, inventory, plan, prune};

/// Folder of automatic captures, below the database directory.
pub const CAPTURE_DIRECTORY: &str = "profilings";

/// A destination made ready.
#[derive(Debug, Clone, Default)]
pub struct Destination {
    /// The capture to create; `None`: no file.
    pub path: Option<PathBuf>,
    /// What became of old captures; `None` for destinations that are not pruned.
    pub retention: Option<RetentionReport>,
    /// What went wrong; a destination that cannot be used is no file and one fault.
    pub faults: Vec<Fault>,
}

/// The folder of the automatic capture, if these options ask for one: no destination was given, there is a database,
/// and no live stream takes its place.
pub fn automatic_directory(options: &ProfilerOptions, database_directory: Option<&Path>) -> Option<PathBuf> {
    let wanted = options.enabled && options.trace == TracePath::Automatic && options.live.port.is_none();
    database_directory.filter(|_| wanted).map(|directory| directory.join(CAPTURE_DIRECTORY))
}

/// Makes the destination ready: creates the folder of automatic captures and prunes it, or checks an explicit path.
pub fn prepare(resolved: &Resolved, database_directory: Option<&Path>, now: SystemTime) -> Destination {
    let options = &resolved.options;
    if let Some(directory) = automatic_directory(options, database_directory) {
        return prepare_automatic(&resolved.place(&directory), now);
    }
    match &options.trace {
        TracePath::Explicit(path) if options.enabled => {
            let place = resolved.place(path);
            match check_explicit(&place) {
                Ok(()) => Destination { path: Some(place), ..Default::default() },
                Err(error) => {
                    Destination { faults: vec![unusable(resolved, path, &error)], ..Default::default() }
                }
            }
        }
        _ => Destination::default(),
    }
}

/// The fault for a profiler that is on and has nowhere to send its records (brief 02 B-31).
pub fn no_output(resolved: &Resolved) -> Fault {
    let origin = resolved.gates.own(0).map_or(&Origin::Default, |(_, origin)| origin);
    let problem = "the profiler is on but has no output";
    let remedy = "set Typhon:Profiler:Trace (TYPHON__PROFILER__TRACE) to a file or Typhon:Profiler:Live \
                  (TYPHON__PROFILER__LIVE) to a port and start again: the environment is read at process start";
    Fault::new(FaultCode::Destination, origin, &format!("{PROFILER}Enabled"), problem, remedy)
}

/// The fault for a capture file that cannot be created or written, for this reason.
pub fn unusable(resolved: &Resolved, path: &Path, error: impl fmt::Display) -> Fault {
    let origin = resolved.trace_origin.as_ref().unwrap_or(&Origin::Default);
    unusable_path(origin, path, error)
}

fn unusable_path(origin: &Origin, path: &Path, error: impl fmt::Display) -> Fault {
    let problem = format!("no capture file at {} ({error})", path.display());
    let remedy = "name a file in an existing directory you may write to, or none; nothing is recorded there";
    Fault::new(FaultCode::Destination, origin, &format!("{PROFILER}Trace"), problem, remedy)
}

fn prepare_automatic(directory: &Path, now: SystemTime) -> Destination {
    if let Err(error) = std::fs::create_dir_all(directory) {
        let faults = vec![unusable_path(&Origin::Default, directory, &error)];
        return Destination { faults, ..Default::default() };
    }
    let mut faults = Vec::new();
    let retention = Some(prune(directory, &mut faults));
    match new_capture(directory, now) {
        Ok(path) => Destination { path: Some(path), retention, faults },
        Err(error) => {
            faults.push(unusable_path(&Origin::Default, directory, &error));
            Destination { path: None, retention, faults }
        }
    }
}

/// The mistakes that can be seen without creating the file. A missing folder is not created: it is more likely
/// misspelt than missing.
fn check_explicit(path: &Path) -> io::Result<()> {
    // Opening a pipe would wait for its reader, and a device cannot be read back.
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
        }
        Ok(metadata) if !metadata.is_file() => {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        _ => {}
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match folder.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(io::Error::new(io::ErrorKind::NotADirectory, "its folder is a file")),
        Err(error) => Err(error),
    }
}
