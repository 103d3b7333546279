//! Where a runtime's diagnostics server listens.
//!
//! The names are pure functions for all systems. [`find`] looks a process up on a Unix system.

#[cfg(unix)]
mod discovery;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

#[cfg(unix)]
pub use discovery::{Discovery, find};

/// File name of a runtime's Unix socket.
///
/// `key` tells processes apart that had the same id one after the other: on Linux the process's start in clock ticks
/// since boot ([`start_time_ticks`]), on macOS and NetBSD its start in seconds since 1970.
pub fn unix_socket_name(process_id: u32, key: u64) -> String {
    format!("dotnet-diagnostic-{process_id}-{key}-socket")
}

/// Path of a runtime's named pipe on Windows.
pub fn windows_pipe_name(process_id: u32) -> String {
    format!(r"\\.\pipe\dotnet-diagnostic-{process_id}")
}

/// Folder of the sockets, from the `TMPDIR` of the *target*: `/tmp` if unset or empty.
pub fn socket_dir(tmpdir: Option<&OsStr>) -> PathBuf {
    tmpdir.filter(|dir| !dir.is_empty()).map_or_else(|| Path::new("/tmp").to_owned(), PathBuf::from)
}

/// Whether a file name is that of some runtime socket of this process, whatever its key.
pub fn is_socket_of(file_name: &OsStr, process_id: u32) -> bool {
    let key = file_name.to_str().and_then(|name| {
        name.strip_prefix("dotnet-diagnostic-")?
            .strip_prefix(&format!("{process_id}-"))?
            .strip_suffix("-socket")
    });
    key.is_some_and(|key| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Start of a process in clock ticks since boot: field 22 of Linux's `/proc/PID/stat`.
pub fn start_time_ticks(stat: &str) -> Option<u64> {
    // The second field is the program's name in parentheses and may itself hold spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Process id as the process itself sees it: last number of `NSpid` in Linux's `/proc/PID/status`.
pub fn innermost_process_id(status: &str) -> Option<u32> {
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_ascii_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_on_each_system() {
        assert_eq!(unix_socket_name(4711, 8_811_223), "dotnet-diagnostic-4711-8811223-socket");
        assert_eq!(windows_pipe_name(4711), r"\\.\pipe\dotnet-diagnostic-4711");
    }

    #[test]
    fn tmpdir_unset_or_empty_means_tmp() {
        assert_eq!(socket_dir(None), Path::new("/tmp"));
        assert_eq!(socket_dir(Some(OsStr::new(""))), Path::new("/tmp"));
        assert_eq!(socket_dir(Some(OsStr::new("/var/tmp/x"))), Path::new("/var/tmp/x"));
    }

    #[test]
    fn start_time_is_found_behind_any_program_name() {
        let fields = "S 1 2 3 4 -1 4194560 6 7 8 9 10 11 12 13 20 0 5 0 987654 1234 56";
        for name in ["(dotnet)", "(a b)", "(evil) 1 2 (x)", "()"] {
            assert_eq!(start_time_ticks(&format!("4711 {name} {fields}")), Some(987_654), "{name}");
        }
        assert_eq!(start_time_ticks("4711 (short) S 1 2"), None);
        assert_eq!(start_time_ticks(""), None);
    }

    #[test]
    fn innermost_id_in_nested_namespaces() {
        assert_eq!(innermost_process_id("Name:\tx\nNSpid:\t4711\t17\t1\nThreads:\t3\n"), Some(1));
        assert_eq!(innermost_process_id("NSpid:\t4711\n"), Some(4711));
        assert_eq!(innermost_process_id("Name:\tx\n"), None);
    }

    #[test]
    fn socket_names_of_other_processes_do_not_match() {
        let is = |name: &str| is_socket_of(OsStr::new(name), 47);
        assert!(is("dotnet-diagnostic-47-123-socket"));
        assert!(!is("dotnet-diagnostic-471-123-socket"));
        assert!(!is("dotnet-diagnostic-47--socket"));
        assert!(!is("dotnet-diagnostic-47-12x-socket"));
        assert!(!is("dotnet-diagnostic-47-123-socket.old"));
    }
}
