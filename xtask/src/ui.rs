//! `cargo xtask ui`: checks, tests and builds the pages of the Workbench; and their tests in a browser.
//!
//! The bundle in `crates/typhon-workbench/assets` is committed, so that building Typhon needs no Node. `--check` builds
//! it again and compares, which is how CI knows that it belongs to the sources beside it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Outcome, testing, workspace};

/// Sources of the pages, and the committed bundle.
const SOURCES: &str = "workbench-ui";
const BUNDLE: &str = "crates/typhon-workbench/assets";

/// The script that has to arrive before anything shows, and what it may weigh: bytes, and bytes after gzip.
const FIRST_SCRIPT: &str = "app.js";
const FIRST_SCRIPT_MAX: [usize; 2] = [1_200_000, 300_000];

/// Files by their path in the bundle, with `/` between folders.
type Files = BTreeMap<String, Vec<u8>>;

/// Runs the task; `--check` compares the bundle instead of writing it.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let is_check = match arguments {
        [] => false,
        [argument] if argument == "--check" => true,
        _ => return Err(format!("ui takes --check or nothing, not {arguments:?}")),
    };
    prepare()?;
    npm(&["run", "--silent", "check"])?;
    npm(&["test", "--silent"])?;
    let built = build()?;
    weigh(&built)?;
    let folder = workspace::root().join(BUNDLE);
    if is_check { compare(&built, &read_files(&folder)?) } else { write_files(&folder, &built) }
}

/// Runs the pages in a browser against the `typhon` that a debug build left. Chromium comes from the system: nothing is
/// downloaded.
pub(crate) fn browser_tests(arguments: &[String]) -> Outcome {
    ensure_browser()?;
    prepare()?;
    let mut playwright = npm_command();
    playwright.args(["exec", "--", "playwright", "test"]).args(arguments);
    playwright.env("TYPHON_BINARY", workspace::debug_binary("typhon")?);
    workspace::succeed(&mut playwright)
}

/// Programs of the browser tests.
pub(crate) fn ensure_browser() -> Outcome {
    ensure("chromium", "chromium")?;
    ensure_node()
}

fn ensure_node() -> Outcome {
    ensure("node", "nodejs")?;
    ensure("npm", "npm")
}

/// Node, npm and the packages of the lock file.
fn prepare() -> Outcome {
    ensure_node()?;
    let sources = workspace::root().join(SOURCES);
    let lock = sources.join("package-lock.json");
    let lock = fs::read(&lock).map_err(|error| format!("{}: {error}", lock.display()))?;
    let installed = sources.join("node_modules/.installed-lock");
    if fs::read(&installed).is_ok_and(|of| of == lock) {
        return Ok(());
    }
    npm(&["ci", "--no-audit", "--no-fund", "--loglevel=error"])?;
    fs::write(&installed, lock).map_err(|error| format!("{}: {error}", installed.display()))
}

fn ensure(program: &str, package: &str) -> Outcome {
    if testing::is_installed(program) {
        return Ok(());
    }
    testing::install(package)
        .map_err(|fault| format!("{program} is missing and cannot be installed: {fault}"))
}

fn npm_command() -> Command {
    let mut command = Command::new("npm");
    command.current_dir(workspace::root().join(SOURCES)).stdin(Stdio::null());
    command
}

fn npm(arguments: &[&str]) -> Outcome {
    workspace::succeed(npm_command().args(arguments))
}

fn build() -> Result<Files, String> {
    let folder = workspace::root().join("target/workbench-assets");
    let out = folder.to_string_lossy();
    npm(&["exec", "--", "vite", "build", "--logLevel", "warn", "--emptyOutDir", "--outDir", &out])?;
    read_files(&folder)
}

/// What the first script weighs is what a user waits for.
fn weigh(files: &Files) -> Outcome {
    let script = files.get(FIRST_SCRIPT).ok_or_else(|| format!("the bundle has no {FIRST_SCRIPT}"))?;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let zipped = gzip.write_all(script).and_then(|()| gzip.finish()).map_err(|error| error.to_string())?;
    let weights = [script.len(), zipped.len()];
    println!("{FIRST_SCRIPT}: {} bytes, {} after gzip", weights[0], weights[1]);
    if weights.iter().zip(FIRST_SCRIPT_MAX).any(|(weight, max)| *weight > max) {
        return Err(format!("{FIRST_SCRIPT} is heavier than {FIRST_SCRIPT_MAX:?} bytes (plain, gzip)"));
    }
    Ok(())
}

fn read_files(folder: &Path) -> Result<Files, String> {
    let mut files = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        let entries = fs::read_dir(&inner).map_err(|error| format!("{}: {error}", inner.display()))?;
        for entry in entries {
            let path = entry.map_err(|error| error.to_string())?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            files.insert(name_in(folder, &path), bytes);
        }
    }
    Ok(files)
}

fn name_in(folder: &Path, path: &Path) -> String {
    let inner: PathBuf = path.strip_prefix(folder).unwrap_or(path).into();
    inner.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn compare(built: &Files, committed: &Files) -> Outcome {
    let all = built.keys().chain(committed.keys());
    let mut stale: Vec<&str> =
        all.filter(|name| built.get(*name) != committed.get(*name)).map(String::as_str).collect();
    stale.dedup();
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!("{BUNDLE} does not belong to {SOURCES}: {}; run `cargo xtask ui`", stale.join(", ")))
}

fn write_files(folder: &Path, files: &Files) -> Outcome {
    let in_folder = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(in_folder)?;
    fs::remove_dir_all(folder).map_err(in_folder)?;
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(in_folder)?;
        fs::write(&path, bytes).map_err(in_folder)?;
    }
    println!("wrote {} files to {BUNDLE}", files.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(named: &[(&str, &str)]) -> Files {
        named.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn a_bundle_is_stale_when_a_file_differs_is_missing_or_is_left_over() {
        let built = files(&[("app.js", "new"), ("index.html", "page")]);
        assert_eq!(compare(&built, &built), Ok(()));
        for committed in [
            files(&[("app.js", "old"), ("index.html", "page")]),
            files(&[("app.js", "new")]),
            files(&[("app.js", "new"), ("index.html", "page"), ("gone.js", "")]),
        ] {
            assert!(compare(&built, &committed).is_err(), "{committed:?}");
        }
    }

    #[test]
    fn the_first_script_may_not_grow_beyond_its_limits() {
        assert_eq!(weigh(&files(&[("app.js", "let a = 1;")])), Ok(()));
        assert!(weigh(&files(&[("index.html", "")])).is_err());
        assert!(weigh(&files(&[("app.js", &"a".repeat(FIRST_SCRIPT_MAX[0] + 1))])).is_err());
        // Gzip cannot shrink what looks random; a linear congruential generator does.
        let mut state = 1u32;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        });
        let noise: Vec<u8> = noise.take(FIRST_SCRIPT_MAX[1] + 1).collect();
        assert!(weigh(&Files::from([("app.js".to_owned(), noise)])).is_err());
    }
}
