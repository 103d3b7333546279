//! Running the binary, and the recordings it is run on.
#![allow(dead_code, reason = "every test file uses a part of it")]

pub(crate) mod schema;
pub(crate) mod traces;

use flate2::read::GzDecoder;
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a run left behind.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// Standard output as one JSON document.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|err| panic!("{err}\n{}\n{}", self.stdout, self.stderr))
    }

    /// Standard output as JSON lines.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|err| panic!("{err}: {line}")))
            .collect()
    }

    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }
}

/// A command that looks the same in every environment.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_typhon"));
    command.env_remove("CLICOLOR_FORCE").env_remove("NO_COLOR").env_remove("RUST_BACKTRACE");
    command
}

pub(crate) fn typhon(args: &[impl AsRef<OsStr>]) -> Run {
    typhon_with_stdin(args, &[])
}

pub(crate) fn typhon_with_stdin(args: &[impl AsRef<OsStr>], stdin: &[u8]) -> Run {
    let mut child = command()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut pipe = child.stdin.take().expect("piped");
    let output = std::thread::scope(|scope| {
        // The child may end without reading everything.
        scope.spawn(move || drop(pipe.write_all(stdin)));
        child.wait_with_output().expect("the binary ends")
    });
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("output is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("messages are UTF-8"),
    }
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Folders with recordings: the repository's own, and the one that `TYPHON_CORPUS` names.
pub(crate) fn corpora() -> Vec<PathBuf> {
    let own = repository().join("corpus");
    std::iter::once(own).chain(std::env::var_os("TYPHON_CORPUS").map(PathBuf::from)).collect()
}

/// Recordings that have a file of expected records: (recording, path without extension).
pub(crate) fn recordings(extension: &str) -> Vec<(PathBuf, PathBuf)> {
    let mut found = Vec::new();
    for folder in corpora() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|err| panic!("{}: {err}", folder.display())) {
            let path = entry.expect("a folder entry").path();
            let stem = path.with_extension("");
            if path.extension() == Some(OsStr::new(extension))
                && read_packed(&stem, "expected.jsonl").is_some()
            {
                found.push((path, stem));
            }
        }
    }
    assert!(!found.is_empty(), "no recordings with extension {extension}");
    found
}

/// A file beside a recording, plain or as gzip.
pub(crate) fn read_packed(stem: &Path, suffix: &str) -> Option<String> {
    let name = |ending: &str| PathBuf::from(format!("{}.{suffix}{ending}", stem.display()));
    if let Ok(text) = std::fs::read_to_string(name("")) {
        return Some(text);
    }
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(name(".gz")).ok()?).read_to_string(&mut text).expect("valid gzip");
    Some(text)
}

/// A path as an argument.
pub(crate) fn arg(path: &Path) -> &str {
    path.to_str().expect("test paths are UTF-8")
}

/// A recording of the repository.
pub(crate) fn recording(name: &str) -> PathBuf {
    repository().join("corpus").join(name)
}
