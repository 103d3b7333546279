//! What can go wrong, where, and what to do about it.

use crate::{Lsn, format::StoreId};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use typhon_store::EntryKind;

/// Why an operation of the log did not happen.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// Options contradict themselves or each other; all faults at once.
    #[error("options of the log: {}", .0.join("; "))]
    Options(Vec<String>),
    /// Storage refused before anything was promised.
    #[error("cannot {doing} {}: {}{}", path.display(), said(path, source), remedy(doing, source))]
    Storage {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Another process, or another part of this one, has the log open.
    #[error("{} is locked: the log is open elsewhere. Close it there, or wait until that process has ended", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// A file with the name of a segment or an anchor is none.
    #[error("{} is not a file of this log. It was left as it is: move it out of the directory", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Something else than a file has the name of a segment.
    #[error("{} is a {kind}, and its name is that of a segment. It was left as it is: move it out of the directory{}", path.display(), link_remedy(*kind))]
    NotAFile {
        /// What has the name.
        path: PathBuf,
        /// What it is.
        kind: EntryKind,
    },
    /// A file was written by another version of the format.
    #[error("{} has format version {found}; this program reads version {expected}. Nothing was changed: open it with a program of that version", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// Ours.
        expected: u32,
    },
    /// A segment belongs to another database.
    #[error("{} belongs to database {found}, this is {expected}. Nothing was changed: move the file to where it belongs", path.display())]
    ForeignStore {
        /// The segment.
        path: PathBuf,
        /// The database in the file.
        found: StoreId,
        /// The database that is being opened.
        expected: StoreId,
    },
    /// Neither an anchor nor a segment is there, and none was to be created.
    #[error("{} holds no log: there is neither an anchor nor a segment. Nothing was created", path.display())]
    NotALog {
        /// The directory.
        path: PathBuf,
    },
    /// A log has come to the end of its numbers, which no use of it can bring about: its files were made up.
    #[error(
        "{what} {number} is beyond {limit}, where this log ends. Nothing was changed: restore it from a backup"
    )]
    Exhausted {
        /// Which number.
        what: &'static str,
        /// How far it has come.
        number: u64,
        /// The highest with which a log still opens.
        limit: u64,
    },
    /// There are segments and no anchor that says which of them count.
    #[error("{} is missing, but there are segments beside it. Nothing was changed: restore it, or the whole directory, from a backup", path.display())]
    AnchorMissing {
        /// Where it should be.
        path: PathBuf,
    },
    /// No slot of the anchor is right, or the newest one is lost.
    #[error("{}: {reason}. Nothing was changed: restore the directory from a backup", path.display())]
    AnchorDamaged {
        /// The anchor, or the file that shows that it is out of date.
        path: PathBuf,
        /// What is wrong.
        reason: &'static str,
    },
    /// A segment that recovery needs is not there.
    #[error("{}: no segment covers position {base}, so a file is missing. Nothing was changed: put it back, or restore the directory from a backup", directory.display())]
    SegmentMissing {
        /// The directory.
        directory: PathBuf,
        /// The position from which frames are needed.
        base: Lsn,
    },
    /// A segment is shorter than it was made, before it got its first frame.
    #[error("{} has {bytes} of its {expected} bytes: it was cut off, and what was in the rest is lost. Nothing was changed: restore from a backup, or accept the loss with the option `truncate_damage`", path.display())]
    SegmentCut {
        /// The segment.
        path: PathBuf,
        /// Its length.
        bytes: u64,
        /// Its length as its header says.
        expected: u64,
    },
    /// Frames that were durable are damaged: behind the damage there is a block that was written after they were.
    #[error("{}: damage before byte {offset}: frames after {prefix} are lost, but the block there at {lsn} says that they were durable ({beyond} such blocks). Nothing was changed: restore from a backup, or accept the loss with the option `truncate_damage`", path.display())]
    Corruption {
        /// The file with the block.
        path: PathBuf,
        /// Where in the file it is.
        offset: u64,
        /// Its first position.
        lsn: Lsn,
        /// Where the valid prefix ends.
        prefix: Lsn,
        /// How many such blocks there are.
        beyond: u64,
    },
    /// A write or sync failed. Nothing more becomes durable in this process; what is durable stays.
    #[error(
        "the log has failed and accepts nothing more: {cause}. What was acknowledged is safe: close and open it again"
    )]
    Failed {
        /// The first failure.
        cause: Arc<Failure>,
    },
    /// A frame can never fit.
    #[error(
        "a frame of {bytes} bytes is larger than the limit of {limit}. Split it, or open the log with a larger `ring_bytes`"
    )]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The largest possible.
        limit: u64,
    },
    /// The deadline passed while the ring was full.
    #[error("no space in the ring after {waited:?}: the disk is slower than the producers. Try again later")]
    BackPressure {
        /// How long the wait was.
        waited: Duration,
    },
    /// There is no room for another segment. Nothing is lost; a log that is open goes on with reads and waits, and with
    /// appends as soon as there is room.
    #[error("no room for another segment: {reason}. To go on, {remedy}")]
    Full {
        /// Why.
        reason: String,
        /// What makes room.
        remedy: &'static str,
    },
    /// The deadline passed before the position was durable. It may become durable later.
    #[error("position {lsn} is not durable after {waited:?}; it may become so later")]
    Uncertain {
        /// The position.
        lsn: Lsn,
        /// How long the wait was.
        waited: Duration,
    },
    /// Nothing was appended up to this position yet: the wait would have no end.
    #[error("position {lsn} was not given to any frame yet: the log ends at {limit}")]
    Beyond {
        /// The position.
        lsn: Lsn,
        /// The end of what was appended.
        limit: Lsn,
    },
    /// A checkpoint of a position that is not durable would lose what lies before it.
    #[error(
        "position {lsn} is not durable, only what ends at {durable} is: wait for it before the checkpoint"
    )]
    NotDurable {
        /// The position.
        lsn: Lsn,
        /// The end of what is durable.
        durable: Lsn,
    },
    /// A checkpoint never goes back: the frames from there on may be gone.
    #[error("position {lsn} is before {base}, which a checkpoint or an open has covered already")]
    Covered {
        /// The position.
        lsn: Lsn,
        /// The base.
        base: Lsn,
    },
    /// More user bytes than an anchor holds.
    #[error("{bytes} bytes do not fit into an anchor; it holds {limit}")]
    UserBytes {
        /// How many.
        bytes: usize,
        /// How many fit.
        limit: usize,
    },
}

impl LogError {
    /// The engine's number for this error, where it has one.
    pub fn code(&self) -> Option<u32> {
        match self {
            Self::BackPressure { .. } => Some(7001),
            Self::TooLarge { .. } => Some(7002),
            Self::Failed { .. } => Some(7003),
            Self::Storage { .. }
            | Self::SegmentMissing { .. }
            | Self::Foreign { .. }
            | Self::NotAFile { .. }
            | Self::NotALog { .. } => Some(7004),
            Self::Uncertain { .. } => Some(7008),
            Self::Corruption { .. } | Self::SegmentCut { .. } => Some(7009),
            Self::Full { .. } => Some(2004),
            Self::Version { .. } | Self::ForeignStore { .. } => Some(2010),
            _ => None,
        }
    }

    /// The file or directory that the error is about, if it is about one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Storage { path, .. }
            | Self::Locked { path }
            | Self::Foreign { path }
            | Self::NotAFile { path, .. }
            | Self::Version { path, .. }
            | Self::ForeignStore { path, .. }
            | Self::NotALog { path }
            | Self::AnchorMissing { path }
            | Self::AnchorDamaged { path, .. }
            | Self::SegmentMissing { directory: path, .. }
            | Self::SegmentCut { path, .. }
            | Self::Corruption { path, .. } => Some(path),
            Self::Failed { cause } => Some(&cause.path),
            Self::Options(_)
            | Self::Exhausted { .. }
            | Self::TooLarge { .. }
            | Self::BackPressure { .. }
            | Self::Full { .. }
            | Self::Uncertain { .. }
            | Self::Beyond { .. }
            | Self::NotDurable { .. }
            | Self::Covered { .. }
            | Self::UserBytes { .. } => None,
        }
    }

    /// The message without the path that it begins with, for a text that names the file itself: `has 8192 of its 16384
    /// bytes: …`.
    pub fn without_path(&self) -> String {
        let text = self.to_string();
        let path = self.path().map(|path| path.display().to_string()).unwrap_or_default();
        match text.strip_prefix(&path) {
            Some(rest) => rest.trim_start_matches(':').trim_start().to_owned(),
            None => text,
        }
    }

    /// Is a file not there?
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Storage { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// For `map_err`: what was tried on which path.
    pub(crate) fn storage(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Storage { doing, path, source }
    }
}

/// What was tried when the directory of a log could not be created.
pub(crate) const CREATE_DIRECTORY: &str = "create the directory";

/// What the operating system said; of an error that names the path itself, without the path.
pub(crate) fn said(path: &Path, error: &io::Error) -> String {
    let text = error.to_string();
    let bare = text.strip_prefix(&format!("{}: ", path.display())).map(str::to_owned);
    bare.unwrap_or(text)
}

/// What helps against an error of the operating system, if that is known.
fn remedy(doing: &str, error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound if doing == CREATE_DIRECTORY => ". Create the directory above it first",
        io::ErrorKind::PermissionDenied => {
            ". Run as the owner of the files, or give this user the right to read and write them"
        }
        io::ErrorKind::ReadOnlyFilesystem => ". Mount the file system for writing",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ". Free some space on the disk",
        io::ErrorKind::IsADirectory | io::ErrorKind::NotSeekable => {
            ". A log has a file of this name: move away what is there, or choose another directory"
        }
        io::ErrorKind::NotADirectory => {
            ". A log needs a directory: move away the file, or choose another name"
        }
        _ => "",
    }
}

/// A log follows no links to segments: it would rename and remove them, not the files.
fn link_remedy(kind: EntryKind) -> &'static str {
    if kind == EntryKind::Link { ", and put the file itself there if it is of this log" } else { "" }
}

/// The write or sync that ended a log.
#[derive(Debug, Error)]
#[error("cannot {doing} {}: {}", path.display(), said(path, source))]
pub struct Failure {
    /// What failed.
    pub doing: &'static str,
    /// On what.
    pub path: PathBuf,
    /// What the operating system said.
    pub source: io::Error,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_file_can_be_said_without_its_path() {
        let path = PathBuf::from("/wal/0000000000000002.wal");
        let of = |path: &PathBuf| path.clone();
        let store = StoreId([1; 16]);
        for error in [
            LogError::Locked { path: of(&path) },
            LogError::Foreign { path: of(&path) },
            LogError::NotAFile { path: of(&path), kind: EntryKind::Link },
            LogError::Version { path: of(&path), found: 2, expected: 1 },
            LogError::ForeignStore { path: of(&path), found: store, expected: store },
            LogError::NotALog { path: of(&path) },
            LogError::AnchorMissing { path: of(&path) },
            LogError::AnchorDamaged { path: of(&path), reason: "both slots are damaged" },
            LogError::SegmentMissing { directory: of(&path), base: Lsn(8) },
            LogError::SegmentCut { path: of(&path), bytes: 1, expected: 2 },
            LogError::Corruption { path: of(&path), offset: 1, lsn: Lsn(8), prefix: Lsn(8), beyond: 1 },
        ] {
            let (whole, short) = (error.to_string(), error.without_path());
            assert_eq!(error.path(), Some(&*path), "{whole}");
            assert_eq!(whole.matches("/wal").count(), 1, "once: {whole}");
            assert!(!short.contains("/wal") && short.starts_with(char::is_alphanumeric), "{short}");
            assert!(whole.ends_with(&short), "{whole} | {short}");
        }
        let error = LogError::UserBytes { bytes: 3, limit: 2 };
        assert_eq!((error.path(), error.without_path()), (None, error.to_string()));
    }
}
