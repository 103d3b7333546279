//! Where the repository is and what it holds, asked from cargo and git.

use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

/// The part of `cargo metadata` that the checks read.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    /// Every package in the dependency graph, the workspace's own included.
    pub(crate) packages: Vec<Package>,
    /// Ids of the packages that are members of the workspace.
    pub(crate) workspace_members: Vec<String>,
    /// Where cargo puts what it builds.
    pub(crate) target_directory: PathBuf,
}

impl Metadata {
    /// The workspace's own packages.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }

    /// Everything that comes from outside the workspace.
    pub(crate) fn third_parties(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| !self.workspace_members.contains(&package.id))
    }
}

/// One package of the dependency graph.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    /// SPDX expression, if the package states one.
    pub(crate) license: Option<String>,
    /// Direct dependencies of every sort: normal, build and development.
    pub(crate) dependencies: Vec<Dependency>,
}

/// One direct dependency.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
}

/// The repository's root folder.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).unwrap_or(here)
}

/// The dependency graph of the workspace whose manifest is at `manifest` (relative to the root).
///
/// # Errors
/// When cargo cannot be run, fails, or answers something unexpected.
pub(crate) fn metadata(manifest: &str) -> Result<Metadata, String> {
    let manifest = root().join(manifest);
    let mut cargo = cargo();
    let answer = output(cargo.args(["metadata", "--format-version=1", "--manifest-path"]).arg(&manifest))?;
    serde_json::from_str(&answer)
        .map_err(|error| format!("cargo metadata of {}: {error}", manifest.display()))
}

/// Paths of all files under version control or about to be, relative to the root, with `/` between folders.
///
/// # Errors
/// When git cannot be run or this is no git work tree.
pub(crate) fn tracked_files() -> Result<Vec<String>, String> {
    let answer = output(Command::new("git").current_dir(root()).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    let files = answer.split('\0').filter(|path| !path.is_empty() && root().join(path).is_file());
    Ok(files.map(str::to_owned).collect())
}

/// The cargo that runs us, started in the repository's root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs cargo with its output going where ours goes.
///
/// # Errors
/// When it cannot be started or fails.
pub(crate) fn run_cargo(arguments: &[&str]) -> Result<(), String> {
    succeed(cargo().args(arguments))
}

/// Runs a command with its output going where ours goes.
///
/// # Errors
/// When it cannot be started or fails.
pub(crate) fn succeed(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

/// Path of a binary of the workspace as a debug build leaves it.
///
/// # Errors
/// When cargo does not say where that is.
pub(crate) fn debug_binary(name: &str) -> Result<PathBuf, String> {
    let folder = metadata("Cargo.toml")?.target_directory.join("debug");
    Ok(folder.join(name).with_extension(std::env::consts::EXE_EXTENSION))
}

/// Standard output of a command that has to succeed.
///
/// # Errors
/// When it cannot be started, fails, or prints anything but UTF-8.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let run = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !run.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&run.stderr).trim()));
    }
    String::from_utf8(run.stdout).map_err(|error| format!("{command:?}: {error}"))
}
