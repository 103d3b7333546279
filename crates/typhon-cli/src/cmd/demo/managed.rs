//! The managed program beside the colony: `managed/allocator.cs`, run by a .NET runtime of this machine. The recording listens
//! for it on a socket, and so has its collections on the colony's own timeline.

use crate::cmd::socket_folder::{self, SocketFolder};
use crate::output::escape::printable;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What the runtime runs. It works as long as its standard input is open.
const PROGRAM: &[u8] = include_bytes!("../../../managed/demo-allocator.exe");
/// Any runtime that connects to a socket when it is asked to.
const CONFIGURATION: &str = r#"{ "runtimeOptions": {
  "framework": { "name": "Microsoft.NETCore.App", "version": "6.0.0" }, "rollForward": "LatestMajor",
  "configProperties": { "System.GC.Server": false, "System.Globalization.Invariant": true } } }"#;
/// Budget of the youngest generation, hexadecimal: 4 MiB, so that there are some collections a second on every machine.
const YOUNGEST_BYTES: &str = "400000";
/// Switches that the user may have set for all of .NET, and that hide collections.
const HIDING: [&str; 4] = [
    "DOTNET_EnableDiagnostics",
    "COMPlus_EnableDiagnostics",
    "DOTNET_EnableDiagnostics_IPC",
    "COMPlus_EnableDiagnostics_IPC",
];
/// For the program to end by itself, once its input is closed.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The program and its surroundings, which have to be there before the recording starts.
pub(super) struct Managed {
    host: PathBuf,
    /// Program, socket and the runtime's own files.
    folder: SocketFolder,
    socket: String,
    child: Option<Child>,
}

impl Managed {
    /// Finds a runtime and makes a place for it.
    ///
    /// # Errors
    /// Why there is none, for the user.
    pub(super) fn prepare() -> Result<Self, String> {
        if cfg!(not(unix)) {
            return Err("runtimes can be listened to on Unix systems only".to_owned());
        }
        let host = find(|name| std::env::var_os(name))
            .ok_or("no .NET runtime was found (DOTNET_ROOT, PATH, the usual places)")?;
        Self::unpack(host).map_err(|err| format!("no place for the .NET program ({err})"))
    }

    fn unpack(host: PathBuf) -> io::Result<Self> {
        let folder = socket_folder::create("typhon-demo-")?;
        std::fs::write(folder.path().join("demo-allocator.exe"), PROGRAM)?;
        std::fs::write(folder.path().join("runtimeconfig.json"), CONFIGURATION)?;
        // Settings of a recording are text.
        let not_text = || io::Error::new(io::ErrorKind::InvalidInput, "its name is not Unicode text");
        let socket = folder.path().join("port").to_str().ok_or_else(not_text)?.to_owned();
        Ok(Self { host, folder, socket, child: None })
    }

    /// Where the runtime will connect to.
    pub(super) fn socket(&self) -> &str {
        &self.socket
    }

    /// Starts the program. It waits by itself until somebody listens to its collections; the runtime does not, since it
    /// would wait for ever if we were killed meanwhile.
    ///
    /// # Errors
    /// Why it cannot be started, for the user.
    pub(super) fn start(&mut self) -> Result<(), String> {
        let started = self.command().and_then(|mut command| command.spawn());
        let host = self.host.to_string_lossy();
        self.child = Some(started.map_err(|err| format!("{} cannot be started ({err})", printable(&host)))?);
        Ok(())
    }

    fn command(&self) -> io::Result<Command> {
        let file = |name: &str| self.folder.path().join(name);
        let mut command = Command::new(&self.host);
        command
            .args(["exec", "--runtimeconfig"])
            .arg(file("runtimeconfig.json"))
            .arg(file("demo-allocator.exe"));
        HIDING.iter().for_each(|name| _ = command.env_remove(name));
        command.env("DOTNET_DiagnosticPorts", format!("{},nosuspend", self.socket));
        command.env("DOTNET_GCgen0size", YOUNGEST_BYTES).env("TMPDIR", self.folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(File::create(self.complaints())?);
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            // Ctrl+C is for the demo, which ends the program in its turn.
            command.process_group(0);
        }
        Ok(command)
    }

    fn complaints(&self) -> PathBuf {
        self.folder.path().join("stderr")
    }

    /// Does it still run?
    ///
    /// # Errors
    /// Why it does not, for the user.
    pub(super) fn look(&mut self) -> Result<(), String> {
        let Some(Ok(Some(status))) = self.child.as_mut().map(Child::try_wait) else { return Ok(()) };
        self.child = None;
        let complaints = std::fs::read(self.complaints()).unwrap_or_default();
        Err(explain(&self.host, status, &String::from_utf8_lossy(&complaints)))
    }
}

impl Drop for Managed {
    /// Ends the program.
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        drop(child.stdin.take());
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(LOOK_EVERY);
        }
        // It has ended already, as a rule.
        let _ = child.kill().and_then(|()| child.wait());
    }
}

fn explain(host: &Path, status: ExitStatus, complaints: &str) -> String {
    let host = host.to_string_lossy();
    let first = complaints.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    format!("{} ended ({status}): {}", printable(&host), printable(first.trim()))
}

/// The host program of a .NET installation: what the environment names, what a shell would find, and where installers
/// put it.
fn find(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let named = ["DOTNET_ROOT", "DOTNET_HOST_PATH"].into_iter().filter_map(&variable).map(PathBuf::from);
    let path = variable("PATH").unwrap_or_default();
    let registered = std::fs::read_to_string("/etc/dotnet/install_location").unwrap_or_default();
    let registered = registered.lines().next().filter(|line| line.starts_with('/')).map(PathBuf::from);
    let usual = ["/usr/share/dotnet", "/usr/lib/dotnet", "/usr/lib64/dotnet", "/usr/local/share/dotnet"];
    let own = variable("HOME").map(|home| Path::new(&home).join(".dotnet"));
    named
        .chain(std::env::split_paths(&path))
        .chain(registered)
        .chain(usual.map(PathBuf::from))
        .chain(own)
        .filter(|place| !place.as_os_str().is_empty())
        .flat_map(|place| [place.join("dotnet"), place])
        .find(|place| is_host(place))
}

fn is_host(path: &Path) -> bool {
    path.file_name() == Some(OsStr::new("dotnet")) && path.metadata().is_ok_and(|data| is_program(&data))
}

#[cfg(unix)]
fn is_program(data: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    data.is_file() && data.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_program(data: &Metadata) -> bool {
    data.is_file()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::os::unix::fs::PermissionsExt;

    fn host_in(folder: &Path, mode: u32) -> PathBuf {
        std::fs::create_dir_all(folder).expect("a folder");
        let host = folder.join("dotnet");
        std::fs::write(&host, "").expect("a file");
        std::fs::set_permissions(&host, std::fs::Permissions::from_mode(mode)).expect("ours");
        host
    }

    #[test]
    fn what_the_environment_names_comes_before_the_path_and_the_usual_places() {
        let place = tempfile::tempdir().expect("a folder");
        let [named, first, second, home] =
            ["named", "first", "second", "home"].map(|name| place.path().join(name));
        let path = std::env::join_paths([&first, &second]).expect("plain names");
        let with = |names: &[(&str, &OsStr)]| {
            let names: HashMap<String, OsString> =
                names.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            find(|name| names.get(name).cloned())
        };
        let everything =
            [("DOTNET_ROOT", named.as_os_str()), ("PATH", path.as_os_str()), ("HOME", home.as_os_str())];
        let in_home = host_in(&home.join(".dotnet"), 0o755);
        // The machine's own installation may come before that in the home folder.
        assert!(with(&everything).is_some_and(|found| found == in_home || !found.starts_with(place.path())));
        host_in(&first, 0o644);
        let in_path = host_in(&second, 0o755);
        assert_eq!(with(&everything), Some(in_path), "a file that cannot be run is none");
        let in_root = host_in(&named, 0o755);
        assert_eq!(with(&everything), Some(in_root.clone()));
        assert_eq!(with(&[("DOTNET_HOST_PATH", in_root.as_os_str())]), Some(in_root));
    }

    #[test]
    fn a_program_that_ends_by_itself_is_one_line() {
        use std::os::unix::process::ExitStatusExt;
        let status = ExitStatus::from_raw(150 << 8);
        let line = explain(Path::new("/usr/bin/dotnet"), status, "\nno \x1b framework\nmore\n");
        assert_eq!(line, "/usr/bin/dotnet ended (exit status: 150): no \\x1b framework");
    }
}
