use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{innermost_process_id, is_socket_of, socket_dir, start_time_ticks, unix_socket_name};
use crate::ClrError;
use crate::ipc::Endpoint;

/// Finds the socket of a process on this system.
///
/// # Errors
/// [`ClrError::NoProcess`] or [`ClrError::NoEndpoint`]. A socket that is found may still be stale or belong to somebody
/// else: connecting tells.
pub fn find(process_id: u32) -> Result<Endpoint, ClrError> {
    Discovery::default().find(process_id)
}

/// Finds sockets of processes. The default looks at this system; the parts can be replaced for tests and containers.
#[derive(Debug, Clone)]
pub struct Discovery {
    /// Where process information is mounted, `/proc`.
    pub proc_dir: PathBuf,
    /// Folder to look into when the target's environment cannot be read: our own `TMPDIR`.
    pub fallback_tmpdir: Option<OsString>,
}

impl Default for Discovery {
    fn default() -> Self {
        Self { proc_dir: PathBuf::from("/proc"), fallback_tmpdir: std::env::var_os("TMPDIR") }
    }
}

impl Discovery {
    /// See [`find`].
    ///
    /// # Errors
    /// As there.
    pub fn find(&self, process_id: u32) -> Result<Endpoint, ClrError> {
        let process_dir = self.proc_dir.join(process_id.to_string());
        if self.proc_dir.is_dir() && !process_dir.is_dir() {
            return Err(ClrError::NoProcess(process_id));
        }
        let key = read_text(&process_dir.join("stat")).and_then(|stat| start_time_ticks(&stat));
        let status = read_text(&process_dir.join("status"));
        let inner_id = status.and_then(|status| innermost_process_id(&status)).unwrap_or(process_id);
        let dirs = self.socket_dirs(process_id, inner_id, &process_dir);
        let mut looked_for = Vec::new();
        for dir in &dirs {
            if let Some(key) = key {
                let path = dir.join(unix_socket_name(inner_id, key));
                if path.exists() {
                    return Ok(Endpoint { process_id, path });
                }
                looked_for.push(path);
            }
            // Another namespace may count the start time from another origin, so there the key proves nothing.
            if key.is_none() || inner_id != process_id {
                if let Some(path) = newest_socket(dir, inner_id) {
                    return Ok(Endpoint { process_id, path });
                }
                looked_for.push(dir.join(format!("dotnet-diagnostic-{inner_id}-*-socket")));
            }
        }
        Err(ClrError::NoEndpoint { process_id, looked_for })
    }

    /// Folders in which the socket may be, as seen from here, best guess first.
    fn socket_dirs(&self, process_id: u32, inner_id: u32, process_dir: &Path) -> Vec<PathBuf> {
        let inside = if process_id == std::process::id() {
            // What /proc shows of our own environment is that of our start; a hosted runtime sees the present one.
            vec![socket_dir(self.fallback_tmpdir.as_deref())]
        } else {
            match std::fs::read(process_dir.join("environ")) {
                Ok(environ) => vec![socket_dir(environment_value(&environ, b"TMPDIR"))],
                Err(_) => vec![socket_dir(self.fallback_tmpdir.as_deref()), socket_dir(None)],
            }
        };
        let root = process_dir.join("root");
        let through_root = |dir: &PathBuf| root.join(dir.strip_prefix("/").unwrap_or(dir));
        let mut dirs: Vec<PathBuf> = if inner_id == process_id { inside.clone() } else { Vec::new() };
        dirs.extend(inside.iter().map(through_root));
        let mut unique = Vec::new();
        for dir in dirs {
            if !unique.contains(&dir) {
                unique.push(dir);
            }
        }
        unique
    }
}

fn read_text(path: &Path) -> Option<String> {
    // A program's name may be any bytes.
    std::fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Value of a variable in the zero-separated list of `/proc/PID/environ`.
fn environment_value<'a>(environ: &'a [u8], name: &[u8]) -> Option<&'a OsStr> {
    let value = environ
        .split(|&byte| byte == 0)
        .find_map(|entry| entry.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"=")))?;
    Some(OsStr::from_bytes(value))
}

fn newest_socket(dir: &Path, process_id: u32) -> Option<PathBuf> {
    let modified = |entry: &std::fs::DirEntry| -> io::Result<SystemTime> { entry.metadata()?.modified() };
    std::fs::read_dir(dir)
        .ok()?
        .flatten()
        .filter(|entry| is_socket_of(&entry.file_name(), process_id))
        .max_by_key(|entry| modified(entry).unwrap_or(SystemTime::UNIX_EPOCH))
        .map(|entry| entry.path())
}
