//! Children and .NET programs: how they are started, what they say, and what they are told.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Makes this program a child; the value is its role.
pub(crate) const ROLE: &str = "TEST_ROLE";
/// File that children record to, below their folder.
pub(crate) const TRACE: &str = "run.typhon-trace";
/// Longer than anything takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A .NET version, and where its host program is in `target/dotnet`.
#[derive(Clone, Copy)]
pub(crate) struct Version {
    host: &'static str,
    framework: &'static str,
}

pub(crate) const NET_8: Version = Version { host: "net8/dnv/net/runtime/.net/dotnet", framework: "8.0.0" };
pub(crate) const NET_31: Version = Version { host: "net31/dotnetcore2/bin/dotnet", framework: "3.1.0" };

/// Folder of runtimes and test programs.
pub(crate) fn dotnet_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/dotnet").canonicalize().unwrap_or_default()
}

/// Installation of .NET 8.
pub(crate) fn dotnet_root() -> PathBuf {
    dotnet_dir().join(NET_8.host).parent().unwrap().to_owned()
}

/// Folder of the library that .NET applications load; cargo builds it with all tests, and not for one alone.
fn library_dir() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples")
}

/// Is everything there? If not, says so.
pub(crate) fn can_run(test: &str) -> bool {
    let programs = ["allocator.exe", "application.exe", "hosted.dll", NET_8.host, NET_31.host];
    let needed = programs.map(|program| dotnet_dir().join(program));
    let library = library_dir().join("libdotnet_library.so");
    let missing = needed.iter().chain([&library]).find(|path| !path.is_file());
    let must_be_there = std::env::var("CI").is_ok_and(|ci| ci == "true");
    if let Some(path) = missing {
        let advice = "run `cargo xtask dotnet` and `cargo build -p typhon-profiler --examples`";
        assert!(!must_be_there, "{} is missing: {advice}", path.display());
        eprintln!("SKIPPED {test}: {} is missing: {advice}", path.display());
    }
    missing.is_none()
}

/// A folder in which the programs of a test live; their sockets too.
pub(crate) struct Home(tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A runtime configuration with further properties, each followed by a comma.
    pub(crate) fn runtime_config(&self, version: Version, properties: &str) -> PathBuf {
        let path = self.path("app.runtimeconfig.json");
        let text = format!(
            r#"{{"runtimeOptions":{{"framework":{{"name":"Microsoft.NETCore.App","version":"{}"}},
            "configProperties":{{{properties}"System.Globalization.Invariant":true}}}}}}"#,
            version.framework
        );
        std::fs::write(&path, text).unwrap();
        path
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let inherited = std::env::vars_os().map(|(name, _)| name);
        for name in inherited.filter(|name| name.to_string_lossy().starts_with("TYPHON__")) {
            command.env_remove(name);
        }
        command.current_dir(self.0.path()).env("TMPDIR", self.0.path());
        command
    }

    /// This program in a role. It records collections of `target`.
    pub(crate) fn child(&self, role: &str, target: &str, environment: &[(&str, &str)]) -> Program {
        let mut command = self.command(&std::env::current_exe().unwrap());
        command.env(ROLE, role);
        self.recording(&mut command, target);
        Program::start(command.envs(environment.iter().copied()))
    }

    /// A .NET program.
    pub(crate) fn dotnet(
        &self,
        version: Version,
        program: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Program {
        Program::start(self.dotnet_command(version, program, arguments).envs(environment.iter().copied()))
    }

    /// A .NET application that loads the library with the profiler in it.
    pub(crate) fn application(&self, arguments: &[&str]) -> Program {
        let mut command = self.dotnet_command(NET_8, "application.exe", arguments);
        self.recording(&mut command, "self");
        Program::start(command.env("LD_LIBRARY_PATH", library_dir()))
    }

    fn dotnet_command(&self, version: Version, program: &str, arguments: &[&str]) -> Command {
        let config = self.runtime_config(version, r#""System.GC.Concurrent":false,"#);
        let mut command = self.command(&dotnet_dir().join(version.host));
        command.args(["exec", "--runtimeconfig"]).arg(config).arg(dotnet_dir().join(program)).args(arguments);
        command
    }

    fn recording(&self, command: &mut Command, target: &str) {
        command.env("TYPHON__PROFILER__TRACE", TRACE);
        command.env("TYPHON__PROFILER__GCTRACING__ENABLED", "true");
        command.env("TYPHON__PROFILER__GCTRACING__TARGET", target);
    }
}

/// A running program.
pub(crate) struct Program {
    child: Child,
    input: Option<ChildStdin>,
    said: Receiver<String>,
    noted: Receiver<String>,
}

impl Program {
    fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        Self {
            input: child.stdin.take(),
            said: lines(child.stdout.take().unwrap()),
            noted: lines(child.stderr.take().unwrap()),
            child,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// One line on its standard input.
    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The rest of its next line on standard output that begins so.
    #[track_caller]
    pub(crate) fn says(&mut self, start: &str) -> String {
        wait_for(&self.said, start).unwrap_or_else(|silence| self.explain(&silence))
    }

    /// Like [`Self::says`], but its death by a signal is an answer too.
    #[track_caller]
    pub(crate) fn says_unless_killed(&mut self, start: &str) -> Result<String, ExitStatus> {
        wait_for(&self.said, start).or_else(|silence| match self.end() {
            Some(status) if status.signal().is_some() => Err(status),
            _ => self.explain(&silence),
        })
    }

    /// The rest of its next line on standard error that has this in it.
    #[track_caller]
    pub(crate) fn notes(&mut self, part: &str) -> String {
        wait_for(&self.noted, part).unwrap_or_else(|silence| self.explain(&silence))
    }

    /// Panics with what is known of a program that does not say what a test waits for.
    #[track_caller]
    fn explain(&mut self, silence: &str) -> ! {
        let end = self.end();
        let rest: Vec<String> = self.said.try_iter().chain(self.noted.try_iter()).collect();
        panic!("{silence}; its end: {end:?}; what else it said: {rest:#?}");
    }

    /// How it ended, if it did.
    fn end(&mut self) -> Option<ExitStatus> {
        // Its output closes a moment before it can be waited for.
        let deadline = Instant::now() + Duration::from_secs(2);
        while self.child.try_wait().unwrap().is_none() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.child.try_wait().unwrap()
    }

    /// Ends it without a chance to do anything.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Has nothing more to tell it, and waits for its end; gives what it noted meanwhile.
    #[track_caller]
    pub(crate) fn ends_well(mut self) -> Vec<String> {
        self.input = None;
        let status: ExitStatus = self.child.wait().unwrap();
        let noted: Vec<String> = self.noted.iter().collect();
        assert!(status.success(), "{status}: {noted:#?}");
        noted
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended, unless a test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    receiver
}

/// The rest of the next line with this part; otherwise what was said instead.
fn wait_for(lines: &Receiver<String>, part: &str) -> Result<String, String> {
    let mut seen = Vec::new();
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) => match line.split_once(part) {
                Some((_, rest)) => return Ok(rest.to_owned()),
                None => seen.push(line),
            },
            Err(error) => return Err(format!("{part:?} was not said ({error}), but {seen:#?}")),
        }
    }
}
