//! Which files of the machine the page may have opened, listed or read (brief 11 F-5, F-6).

use crate::problem::Problem;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

/// Entries of a listing.
const ENTRIES_MAX: usize = 5_000;
/// Entries that are looked at for it; the rest is not even counted.
const ENTRIES_SEEN_MAX: usize = 100_000;
const SOURCE_BYTES_MAX: u64 = 2 << 20;
/// Ending of the files that can be opened.
const TRACE: &str = "typhon-trace";

/// What may be touched.
#[derive(Debug)]
pub(crate) struct Paths {
    /// Canonical.
    root: PathBuf,
    /// Canonical paths of files named on the command line.
    named: Mutex<Vec<PathBuf>>,
    /// Canonical.
    source_roots: Vec<PathBuf>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listing {
    schema: &'static str,
    dir: String,
    parent: Option<String>,
    entries: Vec<Entry>,
    left: usize,
}

#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
struct Entry {
    /// First, so that folders sort before files.
    #[serde(skip)]
    is_file: bool,
    name: String,
    path: String,
    is_folder: bool,
    bytes: Option<u64>,
    modified_unix_ms: Option<u64>,
}

impl Paths {
    /// Both as they are on disk; `source_roots` that do not exist are left out.
    pub(crate) fn new(root: PathBuf, source_roots: &[PathBuf]) -> Self {
        let source_roots = source_roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
        Self { root, named: Mutex::default(), source_roots }
    }

    /// From now on this file may be opened.
    pub(crate) fn allow(&self, file: &Path) {
        if let Ok(file) = file.canonicalize() {
            self.named.lock().unwrap_or_else(PoisonError::into_inner).push(file);
        }
    }

    /// The file that may be opened under a path, which is absolute or relative to the root. Whether something else
    /// exists is nobody's business.
    pub(crate) fn file(&self, path: &str) -> Result<PathBuf, Problem> {
        let refused = || {
            let detail = format!(
                "{path} is no file below {} and was not named on the command line",
                self.root.display()
            );
            Problem::not_allowed(detail).hint("start typhon ui with the file, or with --root DIR")
        };
        let found = self.root.join(path).canonicalize().map_err(|_| refused())?;
        let is_named = self.named.lock().unwrap_or_else(PoisonError::into_inner).contains(&found);
        // By component: /runs-old is not below /runs.
        if !is_named && !found.starts_with(&self.root) {
            return Err(refused());
        }
        // Opening a named pipe would wait for its writer.
        if found.is_file() { Ok(found) } else { Err(refused()) }
    }

    /// Folders and traces in a folder below the root.
    pub(crate) fn list(&self, dir: Option<&str>) -> Result<Listing, Problem> {
        let dir = self.root.join(dir.unwrap_or_default());
        let refused =
            || Problem::not_allowed(format!("{} is no folder below {}", dir.display(), self.root.display()));
        let dir = dir.canonicalize().map_err(|_| refused())?;
        if !dir.starts_with(&self.root) || !dir.is_dir() {
            return Err(refused());
        }
        let found = fs::read_dir(&dir).map_err(|_| refused())?.take(ENTRIES_SEEN_MAX);
        let mut entries: Vec<Entry> = found.flatten().filter_map(|entry| self.entry(&entry)).collect();
        entries.sort();
        let left = entries.len().saturating_sub(ENTRIES_MAX);
        entries.truncate(ENTRIES_MAX);
        let parent = dir.parent().filter(|parent| parent.starts_with(&self.root));
        Ok(Listing {
            schema: "typhon.files/1",
            parent: parent.map(|parent| parent.to_string_lossy().into_owned()),
            dir: dir.to_string_lossy().into_owned(),
            entries,
            left,
        })
    }

    fn entry(&self, entry: &fs::DirEntry) -> Option<Entry> {
        let name = entry.file_name().to_str()?.to_owned();
        let path = entry.path();
        // A link out of the root could not be opened, so it is not shown.
        if entry.file_type().ok()?.is_symlink() && !path.canonicalize().ok()?.starts_with(&self.root) {
            return None;
        }
        let data = path.metadata().ok()?;
        let is_trace = data.is_file() && path.extension().is_some_and(|ending| ending == TRACE);
        let is_folder = data.is_dir() && !name.starts_with('.');
        let modified = data.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        (is_trace || is_folder).then(|| Entry {
            is_file: is_trace,
            name,
            path: path.to_string_lossy().into_owned(),
            is_folder,
            bytes: is_trace.then_some(data.len()),
            modified_unix_ms: modified.map(|since| since.as_millis() as u64),
        })
    }

    /// The text of a source file that a trace names: a trace is untrusted, so only regular files below a source root.
    pub(crate) fn source(&self, named: &str) -> Result<String, Problem> {
        let refused = |why: &str| Problem::unknown(format!("source text of {named}: {why}"));
        if self.source_roots.is_empty() {
            return Err(refused("no source root is set").hint("start typhon ui with --source-root DIR"));
        }
        let inside = self.source_roots.iter().find_map(|root| {
            let path = root.join(named).canonicalize().ok()?;
            path.starts_with(root).then_some(path)
        });
        let path = inside.ok_or_else(|| refused("it is not below a source root"))?;
        let data = path.metadata().map_err(|_| refused("it cannot be read"))?;
        if !data.is_file() || data.len() > SOURCE_BYTES_MAX {
            return Err(refused("it is no file of at most 2 MiB"));
        }
        let bytes = fs::read(&path).map_err(|_| refused("it cannot be read"))?;
        String::from_utf8(bytes).map_err(|_| refused("it is no UTF-8 text"))
    }

    /// Could [`Self::source`] have an answer?
    pub(crate) fn has_source(&self, named: &str) -> bool {
        let below = |root: &PathBuf| {
            root.join(named).canonicalize().is_ok_and(|path| path.starts_with(root) && path.is_file())
        };
        self.source_roots.iter().any(below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree {
        _folder: tempfile::TempDir,
        top: PathBuf,
        paths: Paths,
    }

    /// `top/root/…` is allowed, `top/root-not/…` and `top/secret…` are not.
    fn tree() -> Tree {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        for dir in ["root/sub", "root-not", "root/.hidden"] {
            fs::create_dir_all(top.join(dir)).unwrap();
        }
        for file in [
            "root/a.typhon-trace",
            "root/sub/b.typhon-trace",
            "root-not/c.typhon-trace",
            "secret.typhon-trace",
            "root/notes.txt",
        ] {
            fs::write(top.join(file), "text").unwrap();
        }
        #[cfg(unix)]
        for (to, link) in [
            ("secret.typhon-trace", "root/link.typhon-trace"),
            ("root-not", "root/out"),
            ("root/sub", "root/in"),
        ] {
            std::os::unix::fs::symlink(top.join(to), top.join(link)).unwrap();
        }
        let paths = Paths::new(top.join("root"), &[top.join("root")]);
        Tree { _folder: folder, top, paths }
    }

    #[test]
    fn only_files_below_the_root_or_named_ones_open() {
        let Tree { top, paths, .. } = &tree();
        let path = |name: &str| top.join(name).to_string_lossy().into_owned();
        for good in [
            "a.typhon-trace",
            "sub/b.typhon-trace",
            "sub/../a.typhon-trace",
            "in/b.typhon-trace",
            &path("root/a.typhon-trace"),
        ] {
            assert!(paths.file(good).is_ok(), "{good}");
        }
        let bad = [
            "",
            ".",
            "sub",
            "../secret.typhon-trace",
            "../root-not/c.typhon-trace",
            "sub/../../secret.typhon-trace",
            "link.typhon-trace",
            "out/c.typhon-trace",
            "missing.typhon-trace",
            "/etc/passwd",
            "a.typhon-trace/",
            "a.typhon-trace\0",
            "/proc/self/environ",
            &path("secret.typhon-trace"),
            &path("root-not/c.typhon-trace"),
        ];
        for bad in bad {
            assert_eq!(paths.file(bad).unwrap_err().code, "not-allowed", "{bad}");
        }
        paths.allow(&top.join("secret.typhon-trace"));
        assert!(paths.file(&path("secret.typhon-trace")).is_ok());
        assert!(paths.file(&path("root-not/c.typhon-trace")).is_err());
    }

    #[test]
    fn what_is_refused_says_the_same_whether_it_exists_or_not() {
        let Tree { top, paths, .. } = &tree();
        let detail = |name: &str| {
            let path = top.join(name).to_string_lossy().into_owned();
            paths.file(&path).unwrap_err().detail.replace(name, "NAME")
        };
        assert_eq!(detail("secret.typhon-trace"), detail("nowhere.typhon-trace"));
    }

    #[test]
    fn listings_hold_folders_and_traces_of_the_root_only() {
        let Tree { top, paths, .. } = &tree();
        let listing = paths.list(None).unwrap();
        let names: Vec<&str> = listing.entries.iter().map(|entry| entry.name.as_str()).collect();
        let links: &[&str] = if cfg!(unix) { &["in"] } else { &[] };
        assert_eq!(names, [links, &["sub", "a.typhon-trace"]].concat());
        assert_eq!(listing.parent, None);
        assert_eq!(paths.list(Some("sub")).unwrap().parent.as_deref(), top.join("root").to_str());
        for bad in ["..", "../root-not", "out", "/", "a.typhon-trace", "missing"] {
            assert!(paths.list(Some(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn source_texts_come_from_below_a_source_root_only() {
        let Tree { top, paths, .. } = &tree();
        assert_eq!(paths.source("notes.txt").as_deref(), Ok("text"));
        fs::write(top.join("root/big.rs"), vec![b'x'; SOURCE_BYTES_MAX as usize + 1]).unwrap();
        fs::write(top.join("root/binary.rs"), [0xFF, 0xFE]).unwrap();
        for bad in [
            "../secret.typhon-trace",
            "../../etc/passwd",
            "/etc/passwd",
            "link.typhon-trace",
            "sub",
            "big.rs",
            "binary.rs",
            "",
        ] {
            assert_eq!(paths.source(bad).unwrap_err().code, "unknown", "{bad}");
        }
        assert!(paths.has_source("notes.txt") && !paths.has_source("../secret.typhon-trace"));
        assert!(Paths::new(top.join("root"), &[]).source("notes.txt").is_err());
    }
}
