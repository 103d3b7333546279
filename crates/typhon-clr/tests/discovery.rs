//! Finding a process's socket, in hand-made `/proc` trees and for real processes.

#![cfg(unix)]
#![allow(clippy::unwrap_used)] // a panic is a report

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use typhon_clr::ClrError;
use typhon_clr::endpoint::{Discovery, find, start_time_ticks, unix_socket_name};
use typhon_clr::ipc::Connector;

/// A `/proc` with one process of id 4711, started at tick 99, and folders to put sockets in.
struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn new(tmpdir: Option<&str>, namespace_ids: &str) -> Self {
        let machine = Self { folder: tempfile::tempdir().unwrap() };
        let process = machine.path("proc/4711");
        std::fs::create_dir_all(process.join("root/tmp")).unwrap();
        std::fs::create_dir_all(machine.path("temp")).unwrap();
        let stat = "4711 (a) b) S 1 2 3 4 -1 4194560 6 7 8 9 10 11 12 13 20 0 5 0 99 1234 56";
        std::fs::write(process.join("stat"), stat).unwrap();
        std::fs::write(process.join("status"), format!("Name:\ta\nNSpid:\t{namespace_ids}\n")).unwrap();
        if let Some(tmpdir) = tmpdir {
            let value = machine.path(tmpdir);
            let environ = format!("A=1\0TMPDIR={}\0B=TMPDIR=/wrong\0", value.display());
            std::fs::write(process.join("environ"), environ).unwrap();
        }
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, "").unwrap();
        path
    }

    /// Puts a file into `/tmp` as the process itself sees it.
    fn put_inside(&self, name: &str) -> PathBuf {
        let path = self.path("proc/4711/root").join("tmp").join(name);
        std::fs::write(&path, "").unwrap();
        path
    }

    fn discovery(&self) -> Discovery {
        let fallback_tmpdir = Some(OsString::from(self.path("temp")));
        Discovery { proc_dir: self.path("proc"), fallback_tmpdir }
    }
}

#[test]
fn the_targets_own_tmpdir_is_searched() {
    let machine = Machine::new(Some("temp"), "4711");
    let path = machine.put("temp/dotnet-diagnostic-4711-99-socket");
    assert_eq!(machine.discovery().find(4711).unwrap().path, path);
}

#[test]
fn an_unreadable_environment_falls_back_to_our_tmpdir() {
    let machine = Machine::new(None, "4711");
    let path = machine.put("temp/dotnet-diagnostic-4711-99-socket");
    assert_eq!(machine.discovery().find(4711).unwrap().path, path);
}

#[test]
fn a_socket_of_an_earlier_process_of_the_same_id_is_not_taken() {
    let machine = Machine::new(Some("temp"), "4711");
    machine.put("temp/dotnet-diagnostic-4711-98-socket");
    assert!(matches!(machine.discovery().find(4711), Err(ClrError::NoEndpoint { .. })));
}

#[test]
fn without_a_start_time_the_newest_socket_is_taken() {
    let machine = Machine::new(Some("temp"), "4711");
    std::fs::remove_file(machine.path("proc/4711/stat")).unwrap();
    let old = machine.put("temp/dotnet-diagnostic-4711-99-socket");
    let new = machine.put("temp/dotnet-diagnostic-4711-12-socket");
    machine.put("temp/dotnet-diagnostic-4712-99-socket");
    let hour_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
    std::fs::File::options().write(true).open(old).unwrap().set_modified(hour_ago).unwrap();
    assert_eq!(machine.discovery().find(4711).unwrap().path, new);
}

#[test]
fn containers_are_searched_through_their_root_with_their_own_id() {
    let machine = Machine::new(None, "4711\t17\t1");
    std::fs::write(machine.path("proc/4711/environ"), "TMPDIR=/tmp\0").unwrap();
    machine.put_inside("dotnet-diagnostic-4711-99-socket");
    let path = machine.put_inside("dotnet-diagnostic-1-99-socket");
    assert_eq!(machine.discovery().find(4711).unwrap().path, path);
}

#[test]
fn diagnostics_turned_off_is_one_clear_line() {
    let machine = Machine::new(Some("temp"), "4711");
    let error = machine.discovery().find(4711).unwrap_err();
    assert!(error.is_absent());
    let text = error.to_string();
    let path = machine.path("temp/dotnet-diagnostic-4711-99-socket");
    assert!(text.starts_with("process 4711 has no .NET diagnostics socket (looked for "), "{text}");
    for part in [path.to_str().unwrap(), "DOTNET_EnableDiagnostics=0", "COMPlus_EnableDiagnostics=0"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(text.contains("DOTNET_EnableDiagnostics_IPC=0") && !text.contains('\n'));
}

#[test]
fn a_process_that_does_not_exist_is_told_from_one_without_runtime() {
    let machine = Machine::new(Some("temp"), "4711");
    assert!(matches!(machine.discovery().find(4712), Err(ClrError::NoProcess(4712))));
}

#[cfg(target_os = "linux")]
#[test]
fn our_own_socket_is_found_by_our_real_start_time() {
    let process_id = std::process::id();
    assert!(matches!(find(process_id), Err(ClrError::NoEndpoint { .. })), "there is no runtime in a test");
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(unix_socket_name(process_id, start_time_ticks(&stat).unwrap()));
    let _listener = UnixListener::bind(&path).unwrap();
    let discovery =
        Discovery { fallback_tmpdir: Some(folder.path().as_os_str().to_owned()), ..Discovery::default() };
    let mut endpoint = discovery.find(process_id).unwrap();
    assert_eq!(endpoint.path, path);
    endpoint.connect(Duration::from_secs(30)).unwrap();
}

/// Set in the process that plays the other user.
const CONNECT_TO: &str = "TYPHON_CLR_TEST_CONNECT_TO";

/// Runs itself a second time as another user, because no permission binds root.
#[test]
fn permission_denied_names_both_users() {
    if let Some(path) = std::env::var_os(CONNECT_TO) {
        let mut endpoint = typhon_clr::ipc::Endpoint { process_id: 1, path: path.into() };
        println!("outcome: {}", endpoint.connect(Duration::from_secs(30)).unwrap_err());
        return;
    }
    let folder = tempfile::Builder::new().prefix("typhon-clr").tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let path = folder.path().join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    let we_are = rustix::process::geteuid();
    let (mode, other_uid) = if we_are.is_root() { (0o600, 65_534) } else { (0, we_are.as_raw()) };
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    let program = copy_of_this_test(folder.path());
    let mut command = std::process::Command::new(program);
    command.args(["--exact", "permission_denied_names_both_users", "--nocapture"]).env(CONNECT_TO, &path);
    if we_are.is_root() {
        std::os::unix::process::CommandExt::uid(&mut command, other_uid);
    }
    command.current_dir("/");
    let output = loop {
        // While another test forks, its child holds what was open here: the program just written, for a moment.
        match command.output() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            output => break output.unwrap(),
        }
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let expected = format!(
        "outcome: {}: permission denied, the same user or root is needed (socket of user {}, we are {other_uid})",
        path.display(),
        we_are.as_raw()
    );
    assert!(text.contains(&expected), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// The other user may not be allowed to read the folder in which cargo builds.
fn copy_of_this_test(folder: &Path) -> PathBuf {
    let copy = folder.join("test");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    std::fs::set_permissions(&copy, PermissionsExt::from_mode(0o755)).unwrap();
    copy
}
