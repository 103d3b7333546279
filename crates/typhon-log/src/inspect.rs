//! Looking at a log without changing it, also while it is open elsewhere or damaged.
//!
//! An open refuses as soon as something is wrong; this notes it and goes on. It takes no lock, syncs nothing and
//! believes the cache, so it says what is *there*, not what a power cut would leave.

use crate::anchor::{Anchor, AnchorFile};
use crate::error::LogError;
use crate::format::{SegmentHeader, StoreId};
use crate::names::Name;
use crate::recover::{Replay, Report};
pub use crate::scan::Stray;
use crate::scan::{self, Found, Role, Scan};
use crate::{Lsn, Tsn};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use typhon_store::Io;

/// How often a log that changes underneath is looked at again.
const LOOKS_MAX: usize = 8;

/// A log as it lies on disk.
#[derive(Debug)]
pub struct Inspection {
    /// What the anchor says; `None` if there is none, or none that can be read, or one segment was looked at.
    pub anchor: Option<AnchorView>,
    /// Segments and spares, by number.
    pub files: Vec<FileView>,
    /// What an open would refuse with, all of it.
    pub problems: Vec<LogError>,
    /// What is not zero in the headers and blocks of the prefix, and should be.
    pub strays: Vec<Stray>,
    /// Where the prefix ends: the file (an index into `files`) and the offset of what follows.
    pub tail: Option<(usize, u64)>,
    /// Above every sequence number that was found.
    pub next_tsn: Tsn,
    base: Lsn,
    scan: Scan,
}

/// What an anchor says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnchorView {
    /// Everything that the log itself needs.
    pub anchor: Anchor,
    /// How often it was written.
    pub generation: u64,
    /// Bytes of the owner's state.
    pub state_bytes: usize,
}

/// A file of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileView {
    /// Where it is.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// What it is for.
    pub state: FileState,
    /// What it says about itself, if that is right.
    pub header: Option<SegmentHeader>,
    /// Blocks of the prefix in it, behind the base.
    pub blocks: usize,
}

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// Holds frames behind the base, or will.
    Current,
    /// Of this open, and everything in it is before the base.
    Covered,
    /// Of an earlier open; nothing in it counts.
    Past,
    /// Prepared to become a segment.
    Spare,
    /// Its header is not right or does not fit its name: it may be about to become a segment.
    Unclear,
    /// Of an open whose anchor never arrived.
    TooNew,
    /// Of another program, version or database.
    Foreign,
}

impl FileState {
    /// The state in one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Covered => "covered",
            Self::Past => "past",
            Self::Spare => "spare",
            Self::Unclear => "unclear",
            Self::TooNew => "too-new",
            Self::Foreign => "foreign",
        }
    }
}

impl Inspection {
    /// Looks at the log in a directory. Without an anchor the newest open that has a segment is taken for the one that
    /// counts, and its first segment for the base.
    ///
    /// Pass a [`ReadOnly`](typhon_store::ReadOnly) to be sure that nothing is written.
    ///
    /// # Errors
    /// [`LogError::NotALog`] if there are neither segments nor an anchor; otherwise what cannot be read.
    pub fn of_directory(io: &dyn Io, directory: &Path) -> Result<Self, LogError> {
        let mut before = generation(io, directory);
        for _ in 1..LOOKS_MAX {
            let result = Self::look(io, directory);
            let after = generation(io, directory);
            // Whoever has the log open may have moved on from what was read first.
            if result.as_ref().is_ok_and(Self::is_clean) || after == before {
                return result;
            }
            before = after;
        }
        Self::look(io, directory)
    }

    /// Looks at one segment, whatever is beside it: the base is where it begins.
    ///
    /// # Errors
    /// What cannot be read, and files that are no segments of this version.
    pub fn of_segment(io: &dyn Io, path: &Path) -> Result<Self, LogError> {
        let mut before = header_of(io, path)?;
        for _ in 1..LOOKS_MAX {
            let result = Self::look_at_segment(io, path, &before);
            let is_clean = result.as_ref().is_ok_and(Self::is_clean);
            match header_of(io, path) {
                // It has become another segment, or a spare.
                Ok(after) if after != before => before = after,
                // It was given up, which is why it looked damaged.
                Err(error) if !is_clean => return Err(error),
                _ => return result,
            }
        }
        Self::look_at_segment(io, path, &before)
    }

    /// Nothing that could be due to looking while somebody writes.
    fn is_clean(&self) -> bool {
        self.problems.is_empty() && self.strays.is_empty()
    }

    fn look_at_segment(io: &dyn Io, path: &Path, header: &SegmentHeader) -> Result<Self, LogError> {
        let mut problems = Vec::new();
        let anchor = following(header);
        let name = Name::Segment(header.id);
        let find = |refuse: &mut scan::Refuse<'_>| {
            scan::look_at(io, path.to_owned(), name, &anchor, refuse).map(|found| vec![found])
        };
        let files = find(&mut |error| note(&mut problems, error))?;
        let mut scan = scan::scan(None, path, files, &anchor, &mut |error| note(&mut problems, error))?;
        Self::drop_overtaken(path, find, &anchor, &mut scan, &mut problems)?;
        Ok(Self::new(None, anchor, scan, problems))
    }

    fn look(io: &dyn Io, directory: &Path) -> Result<Self, LogError> {
        let mut problems = Vec::new();
        let view = match AnchorFile::peek(io, directory) {
            Ok((anchor, generation, state_bytes)) => Some(AnchorView { anchor, generation, state_bytes }),
            Err(error) if error.is_missing() => {
                problems.push(LogError::AnchorMissing { path: AnchorFile::path(directory) });
                None
            }
            Err(LogError::Storage { doing, path, source }) => {
                return Err(LogError::Storage { doing, path, source });
            }
            Err(error) if scan::find(io, directory, &NO_ANCHOR, &mut |_| Ok(()))?.is_empty() => {
                return Err(error);
            }
            Err(error) => {
                problems.push(error);
                None
            }
        };
        let anchor = match view {
            Some(view) => view.anchor,
            None => Self::newest_open(io, directory)?,
        };
        let find = |refuse: &mut scan::Refuse<'_>| scan::find(io, directory, &anchor, refuse);
        let files = find(&mut |error| note(&mut problems, error))?;
        let mut scan = scan::scan(None, directory, files, &anchor, &mut |error| note(&mut problems, error))?;
        Self::drop_overtaken(directory, find, &anchor, &mut scan, &mut problems)?;
        Ok(Self::new(view, anchor, scan, problems))
    }

    /// What an anchor would say if everything in the newest open counted.
    fn newest_open(io: &dyn Io, directory: &Path) -> Result<Anchor, LogError> {
        let files = scan::find(io, directory, &NO_ANCHOR, &mut |_| Ok(()))?;
        if files.is_empty() {
            return Err(LogError::NotALog { path: directory.to_owned() });
        }
        let headers = files.iter().filter_map(|found| found.header);
        let segments = headers.clone().filter(|header| !header.is_spare());
        let newest = segments.clone().max_by_key(|header| (header.open_epoch, header.id));
        let Some(newest) = newest else {
            return Ok(headers.clone().next().as_ref().map_or(NO_ANCHOR, following));
        };
        let is_of_that_open =
            |header: &SegmentHeader| header.open_epoch == newest.open_epoch && header.store == newest.store;
        let first = segments.filter(is_of_that_open).min_by_key(|header| header.id);
        Ok(following(&first.unwrap_or(newest)))
    }

    /// A block behind the end that says that everything before it was durable is damage, unless the end was read
    /// before the frames in between were written. The padding of a block may not have been written yet, either. So the
    /// same files are read once more.
    fn drop_overtaken(
        path: &Path,
        find: impl Fn(&mut scan::Refuse<'_>) -> Result<Vec<Found>, LogError>,
        anchor: &Anchor,
        scan: &mut Scan,
        problems: &mut Vec<LogError>,
    ) -> Result<(), LogError> {
        let lsn = problems.iter().find_map(|problem| match problem {
            LogError::Corruption { lsn, .. } => Some(*lsn),
            _ => None,
        });
        if lsn.is_none() && scan.strays.is_empty() {
            return Ok(());
        }
        let files = find(&mut |_| Ok(()))?;
        let again = scan::scan(None, path, files, anchor, &mut |_| Ok(()))?;
        if lsn.is_some_and(|lsn| again.end >= lsn) {
            problems.retain(|problem| !matches!(problem, LogError::Corruption { .. }));
        }
        let still: HashSet<_> = again.strays.iter().map(|stray| place(&again, stray)).collect();
        let strays = std::mem::take(&mut scan.strays);
        scan.strays = strays.into_iter().filter(|stray| still.contains(&place(scan, stray))).collect();
        Ok(())
    }

    fn new(view: Option<AnchorView>, anchor: Anchor, scan: Scan, problems: Vec<LogError>) -> Self {
        let first = scan.extents.first().map(|extent| extent.file);
        let tail = scan.tail.map(|(file, offset, _)| (file, offset));
        let begin = first.or(tail.map(|(file, _)| file)).unwrap_or(0);
        let files = scan.files.iter().enumerate().map(|(index, found)| FileView {
            path: found.path.clone(),
            bytes: found.bytes,
            state: state(found, index < begin, &anchor),
            header: found.header,
            blocks: scan.extents.iter().filter(|extent| extent.file == index).count(),
        });
        let (files, base, next_tsn) = (files.collect(), anchor.base, scan.next_tsn);
        let strays = scan.strays.clone();
        Self { anchor: view, files, problems, strays, tail, next_tsn, base, scan }
    }

    /// What a recovery would report.
    pub fn report(&self) -> Report {
        Report::of(&self.scan, self.base)
    }

    /// The frames behind the base, in order.
    pub fn frames(&self) -> Replay<'_> {
        Replay::new(&self.scan, self.base)
    }
}

/// Nothing is known: every file shows its own header, and none counts.
const NO_ANCHOR: Anchor = Anchor::new(StoreId([0; 16]));

/// Everything from a segment on counts; beside a spare, nothing can.
fn following(header: &SegmentHeader) -> Anchor {
    Anchor {
        store: header.store,
        open_epoch: if header.is_spare() { 0 } else { header.open_epoch },
        log_floor: header.id,
        base: Lsn(header.first_lsn),
        next_tsn: Tsn(1),
    }
}

/// What a segment says about itself, whatever database it is of.
fn header_of(io: &dyn Io, path: &Path) -> Result<SegmentHeader, LogError> {
    let mut refuse = |error| match error {
        // It is not compared with any database.
        LogError::ForeignStore { .. } => Ok(()),
        error => Err(error),
    };
    let probe = scan::look_at(io, path.to_owned(), Name::Segment(0), &NO_ANCHOR, &mut refuse)?;
    probe.header.ok_or_else(|| LogError::Foreign { path: path.to_owned() })
}

/// Where something is, whatever files came and went.
fn place<'a>(scan: &'a Scan, stray: &Stray) -> (&'a Path, u64) {
    (scan.path(stray.file), stray.offset)
}

fn state(found: &Found, is_before: bool, anchor: &Anchor) -> FileState {
    match found.role {
        Role::Segment(_) if is_before => FileState::Covered,
        Role::Segment(_) => FileState::Current,
        Role::Spent if found.header.is_some_and(|header| header.is_spare()) => FileState::Spare,
        Role::Spent => FileState::Past,
        // The floor moves with the anchor of an open; what is below it is of the past whatever it says.
        Role::Unclear if found.header.is_some_and(|header| header.id < anchor.log_floor) => FileState::Past,
        Role::Unclear => FileState::Unclear,
        Role::TooNew => FileState::TooNew,
        Role::Foreign => FileState::Foreign,
    }
}

fn note(problems: &mut Vec<LogError>, error: LogError) -> Result<(), LogError> {
    // A file that was given up meanwhile is no problem. If it was needed, that shows.
    if !error.is_missing() {
        problems.push(error);
    }
    Ok(())
}

/// What changes when somebody else changes the set of files that count: the anchor's generation, and the names.
fn generation(io: &dyn Io, directory: &Path) -> (Option<u64>, Vec<String>) {
    let generation = AnchorFile::peek(io, directory).ok().map(|(_, generation, _)| generation);
    let names = io.list(directory).unwrap_or_default().into_iter().map(|entry| entry.name);
    (generation, names.collect())
}
