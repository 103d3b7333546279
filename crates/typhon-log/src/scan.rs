//! Reading what an earlier process left: which files count, how far the valid prefix goes, and whether what lies
//! behind it is a torn tail or damage.

use crate::anchor::Anchor;
use crate::error::LogError;
use crate::format::{
    BLOCK_ALIGNMENT, BLOCK_HEADER_BYTES, FORMAT_VERSION, Invalid, NotZero, SEGMENT_HEADER_BYTES,
    SegmentHeader, zeros,
};
use crate::names::Name;
use crate::reader::{Kept, Reader, read_up_to};
use crate::sync::{Fault, planted};
use crate::{Lsn, Tsn};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use typhon_store::{Access, File, Io, Op, Open};

/// A file with the name of a segment or a spare.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) name: Name,
    pub(crate) bytes: u64,
    pub(crate) path: PathBuf,
    file: Arc<dyn File>,
    /// What its first bytes say, if they are a right header.
    pub(crate) header: Option<SegmentHeader>,
    pub(crate) role: Role,
    /// What is not zero around the header, and should be.
    not_zero: Option<NotZero>,
}

/// What is done about something wrong: an open passes it on and ends, an inspection notes it and goes on.
pub(crate) type Refuse<'a> = dyn FnMut(LogError) -> Result<(), LogError> + 'a;

/// What a file is for this open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A segment of the open that counts.
    Segment(SegmentHeader),
    /// Prepared, or of a past open: it holds no block that matters.
    Spent,
    /// Any block may be in it: its header never arrived, or says something else than its name.
    Unclear,
    /// Begun by an open whose anchor never arrived: no block may be in it.
    TooNew,
    /// Of another program, version or database.
    Foreign,
}

impl Found {
    /// Does recovery need the file?
    pub(crate) fn is_needed(&self) -> bool {
        matches!(self.role, Role::Segment(_))
    }
}

/// Where a block of the prefix is.
#[derive(Debug)]
pub(crate) struct Extent {
    /// Index into the files.
    pub(crate) file: usize,
    pub(crate) offset: u64,
    pub(crate) end_lsn: u64,
    /// Its frames, if they were kept.
    pub(crate) kept: Option<Kept>,
}

/// Bytes that the format wants to be zero, and that are not: in the header of a segment, or in a block. Nothing reads
/// them, so that no frame is the worse for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stray {
    /// Index of the file.
    pub file: usize,
    /// Where the first is.
    pub offset: u64,
    /// How many there are in this header or block.
    pub bytes: u64,
}

/// Bytes of blocks that a scan keeps for whoever takes them in, which is as often as not all of the log. Nothing is given
/// out before it is known that nothing is damaged; what does not fit is read a second time.
const KEPT_BYTES_MAX: u64 = 128 << 20;

/// How the valid prefix ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// At bytes that are no block: the writer stopped here.
    End,
    /// At a block that is not whole.
    Torn(Invalid),
    /// At a whole block of other frames than those that come next: what lies between was lost.
    Gap,
}

/// What a scan found.
#[derive(Debug)]
pub(crate) struct Scan {
    /// Who reads ahead; nobody for a log that is only looked at.
    io: Option<Arc<dyn Io>>,
    pub(crate) files: Vec<Found>,
    /// The blocks with frames behind the base, in order.
    pub(crate) extents: Vec<Extent>,
    /// End of the valid prefix, not before the base.
    pub(crate) end: Lsn,
    /// Above every sequence number of the prefix.
    pub(crate) next_tsn: Tsn,
    pub(crate) stop: Stop,
    /// Where the prefix ends: file, offset, and the checksum of its last block.
    pub(crate) tail: Option<(usize, u64, u32)>,
    /// Bytes of blocks that were read.
    pub(crate) bytes: u64,
    /// For whoever only looks; an open does not mind them.
    pub(crate) strays: Vec<Stray>,
    kept_bytes: u64,
    /// Files that somebody has begun to read.
    begun: Vec<(usize, Reader)>,
}

/// Makes durable whatever a dead process may have left in the cache, and has the cache forget the rest. Without that,
/// what is read here could still vanish in the next power cut.
pub(crate) fn settle(io: &dyn Io, directory: &Path) -> Result<(), LogError> {
    let entries = io.list(directory).map_err(LogError::storage("read", directory))?;
    let mut files = Vec::new();
    for entry in &entries {
        if Name::of(directory, entry)?.is_none() {
            continue;
        }
        let path = directory.join(&entry.name);
        // A sync needs a file that may be written, on some systems.
        let file = io.open(&path, Open::cached(Access::Write)).map_err(LogError::storage("open", &path))?;
        let pending = io.submit(Op::SyncData { file: Arc::clone(&file) });
        files.push((path, file, pending));
    }
    for (path, file, pending) in files {
        pending.wait().result.map_err(LogError::storage("sync", &path))?;
        file.drop_cache().map_err(LogError::storage("read", &path))?;
    }
    io.sync_dir(directory).map_err(LogError::storage("sync", directory))
}

/// Opens every file of the log and says what it is for.
pub(crate) fn find(
    io: &dyn Io,
    directory: &Path,
    anchor: &Anchor,
    refuse: &mut Refuse<'_>,
) -> Result<Vec<Found>, LogError> {
    let entries = io.list(directory).map_err(LogError::storage("read", directory))?;
    let mut found = Vec::new();
    for entry in entries {
        let name = match Name::of(directory, &entry) {
            Ok(Some(name)) => name,
            Ok(None) => continue,
            Err(error) => {
                refuse(error)?;
                continue;
            }
        };
        match look_at(io, directory.join(&entry.name), name, anchor, refuse) {
            // Given up since the directory was read, by whoever has the log open.
            Err(error) if error.is_missing() => refuse(error)?,
            result => found.push(result?),
        }
    }
    found.sort_by_key(|found| found.name.number());
    Ok(found)
}

/// Opens one file of the log and says what it is for.
pub(crate) fn look_at(
    io: &dyn Io,
    path: PathBuf,
    name: Name,
    anchor: &Anchor,
    refuse: &mut Refuse<'_>,
) -> Result<Found, LogError> {
    let file = io.open(&path, Open::direct(Access::Read)).map_err(LogError::storage("open", &path))?;
    let bytes = file.length().map_err(LogError::storage("read", &path))?;
    let count = bytes.min(SEGMENT_HEADER_BYTES) as usize;
    let front = read_up_to(&*file, 0, count).map_err(LogError::storage("read", &path))?;
    let front = &front[..count];
    let header = SegmentHeader::decode(front).ok();
    let role = match role(front, name, &path, anchor) {
        Ok(role) => role,
        Err(error) => {
            refuse(error)?;
            Role::Foreign
        }
    };
    let not_zero = zeros::in_segment_header(front);
    Ok(Found { name, bytes, path, file, header, role, not_zero })
}

fn role(header: &[u8], name: Name, path: &Path, anchor: &Anchor) -> Result<Role, LogError> {
    let header = match SegmentHeader::decode(header) {
        Ok(header) => header,
        Err(Invalid::Magic | Invalid::Length) if !SegmentHeader::may_have_begun(header) => {
            return Err(LogError::Foreign { path: path.to_owned() });
        }
        Err(Invalid::Version(found)) => {
            return Err(LogError::Version { path: path.to_owned(), found, expected: FORMAT_VERSION });
        }
        Err(_) => return Ok(Role::Unclear),
    };
    if header.store != anchor.store {
        let (found, expected) = (header.store, anchor.store);
        return Err(LogError::ForeignStore { path: path.to_owned(), found, expected });
    }
    let is_current = header.open_epoch == anchor.open_epoch || planted(Fault::NoEpoch);
    let counts = is_current && name == Name::Segment(header.id) && header.id >= anchor.log_floor;
    Ok(match header.open_epoch {
        _ if header.is_spare() => Role::Spent,
        _ if counts => Role::Segment(header),
        // The header was durable before the first block behind it, so there is none of a later open.
        epoch if epoch < anchor.open_epoch => Role::Spent,
        epoch if epoch > anchor.open_epoch => Role::TooNew,
        _ => Role::Unclear,
    })
}

/// Finds the valid prefix, and refuses if what lies behind it shows that durable frames are damaged.
pub(crate) fn scan(
    io: Option<&Arc<dyn Io>>,
    directory: &Path,
    files: Vec<Found>,
    anchor: &Anchor,
    refuse: &mut Refuse<'_>,
) -> Result<Scan, LogError> {
    let segments: VecDeque<(usize, SegmentHeader)> = files
        .iter()
        .enumerate()
        .filter_map(|(index, found)| match found.role {
            Role::Segment(header) => Some((index, header)),
            _ => None,
        })
        .collect();
    let first = segments.iter().rposition(|(_, header)| header.first_lsn <= anchor.base.0);
    if first.is_none() && anchor.open_epoch > 0 {
        refuse(LogError::SegmentMissing { directory: directory.to_owned(), base: anchor.base })?;
    }
    let mut scan = Scan {
        io: io.cloned(),
        files,
        extents: Vec::new(),
        end: anchor.base,
        next_tsn: anchor.next_tsn,
        stop: Stop::End,
        tail: None,
        bytes: 0,
        strays: Vec::new(),
        kept_bytes: 0,
        begun: Vec::new(),
    };
    let mut prefix = Prefix { lsn: None, previous_crc: None };
    let first = first.unwrap_or(segments.len());
    for at in first..segments.len() {
        let (index, header) = &segments[at];
        // The device goes on with the next one while the end of this one is checked.
        for (index, _) in segments.range(at..segments.len().min(at + 2)) {
            scan.begin_reading(*index)?;
        }
        scan.has_its_length(*index, header, refuse)?;
        if let Some(lsn) = prefix.lsn.filter(|_| header.id > segments[at - 1].1.id + 1) {
            // A segment is begun when the one before it has its name for good.
            refuse(LogError::SegmentMissing { directory: directory.to_owned(), base: Lsn(lsn) })?;
        }
        if !scan.follow(*index, header, anchor, &mut prefix)? {
            break;
        }
    }
    let end = prefix.lsn.unwrap_or(anchor.base.0);
    scan.end = Lsn(if planted(Fault::EndBelowBase) { end } else { end.max(anchor.base.0) });
    scan.look_behind(anchor, refuse)?;
    scan.begun = Vec::new();
    Ok(scan)
}

/// How far a scan has come.
struct Prefix {
    lsn: Option<u64>,
    previous_crc: Option<u32>,
}

impl Scan {
    /// A segment had its whole length, for good, before it got its name.
    fn has_its_length(
        &self,
        index: usize,
        header: &SegmentHeader,
        refuse: &mut Refuse<'_>,
    ) -> Result<(), LogError> {
        let Found { path, bytes, .. } = &self.files[index];
        let (path, bytes, expected) = (path.clone(), *bytes, header.size_bytes);
        if bytes < expected { refuse(LogError::SegmentCut { path, bytes, expected }) } else { Ok(()) }
    }

    /// Follows the chain of blocks through one segment; `false` if it cannot go on behind it.
    fn follow(
        &mut self,
        index: usize,
        header: &SegmentHeader,
        anchor: &Anchor,
        prefix: &mut Prefix,
    ) -> Result<bool, LogError> {
        if prefix.lsn.is_some_and(|lsn| lsn != header.first_lsn) && !planted(Fault::ScanPastGap) {
            self.stop = if self.stop == Stop::End { Stop::Gap } else { self.stop };
            return Ok(false);
        }
        self.stop = Stop::End;
        let mut lsn = header.first_lsn;
        self.strays.extend(stray(index, 0, self.files[index].not_zero).filter(|_| self.only_looks()));
        let mut reader = self.take_reader(index)?;
        let found = &self.files[index];
        let reading = |error| LogError::storage("read", &found.path)(error);
        let mut offset = SEGMENT_HEADER_BYTES;
        let mut crc = prefix.previous_crc.unwrap_or(0);
        while offset + BLOCK_ALIGNMENT <= reader.length() {
            let block = match reader.block_at(offset, anchor.store).map_err(reading)? {
                Ok(block) => block,
                Err(_) if planted(Fault::ScanPastGap) => {
                    offset += BLOCK_ALIGNMENT;
                    continue;
                }
                Err(invalid) => {
                    self.stop = if invalid == Invalid::Magic { Stop::End } else { Stop::Torn(invalid) };
                    break;
                }
            };
            let head = block.header;
            let is_ours = head.segment == header.id && head.open_epoch == anchor.open_epoch;
            let is_next =
                head.first_lsn == lsn && prefix.previous_crc.is_none_or(|crc| head.previous_crc == crc);
            let is_lax = planted(Fault::ScanPastGap) || planted(Fault::NoEpoch) && head.first_lsn == lsn;
            if !(is_ours && is_next || is_lax) {
                self.stop = if is_ours { Stop::Gap } else { Stop::End };
                break;
            }
            let padded_bytes = head.padded_bytes();
            self.bytes += padded_bytes;
            self.next_tsn = Tsn(self.next_tsn.0.max(block.next_tsn()));
            if head.end_lsn > anchor.base.0 {
                let is_kept = self.kept_bytes + padded_bytes <= KEPT_BYTES_MAX;
                self.kept_bytes += if is_kept { padded_bytes } else { 0 };
                let kept = is_kept.then(|| reader.keep(offset, u64::from(head.length)));
                let kept = kept.transpose().map_err(reading)?.map(|block| block.behind(BLOCK_HEADER_BYTES));
                self.extents.push(Extent { file: index, offset, end_lsn: head.end_lsn, kept });
            }
            if self.only_looks() {
                let block = reader.bytes(offset, padded_bytes).map_err(reading)?;
                self.strays.extend(stray(index, offset, zeros::in_block(block)));
            }
            (lsn, crc, prefix.previous_crc) = (head.end_lsn, head.crc, Some(head.crc));
            offset += padded_bytes;
        }
        prefix.lsn = Some(lsn);
        self.tail = Some((index, offset, crc));
        // What follows is looked at next, if this was the last.
        self.begun.push((index, reader));
        Ok(true)
    }

    /// Nobody acts on what is found.
    fn only_looks(&self) -> bool {
        self.io.is_none()
    }

    /// Looks at everything that was not read as part of the prefix. A whole block behind it that was written when
    /// everything before was durable shows that the prefix is not torn but damaged; a block of a later open shows that
    /// the anchor is not the newest.
    fn look_behind(&mut self, anchor: &Anchor, refuse: &mut Refuse<'_>) -> Result<(), LogError> {
        let mut damage: Option<(PathBuf, u64, Lsn)> = None;
        let mut beyond = 0;
        for index in 0..self.files.len() {
            let found = &self.files[index];
            let is_skipped = match found.role {
                Role::Spent | Role::Foreign => true,
                // Segments before the last one of the prefix end before the base, or are part of it.
                Role::Segment(_) => self.tail.is_some_and(|(tail, ..)| index < tail),
                Role::Unclear => planted(Fault::IgnoreHeaderless),
                Role::TooNew => false,
            };
            if is_skipped {
                continue;
            }
            let mut reader = self.take_reader(index)?;
            let found = &self.files[index];
            let reading = |error| LogError::storage("read", &found.path)(error);
            let mut offset = match self.tail {
                Some((tail, offset, _)) if tail == index => offset,
                _ => SEGMENT_HEADER_BYTES,
            };
            while offset + BLOCK_ALIGNMENT <= reader.length() {
                let at = offset;
                offset += BLOCK_ALIGNMENT;
                let Ok(head) = reader.header_at(at).map_err(reading)? else { continue };
                let is_newer = head.open_epoch > anchor.open_epoch && !planted(Fault::EpochLate);
                let is_beyond = head.open_epoch == anchor.open_epoch
                    && head.follows_durable
                    && head.first_lsn > self.end.0;
                if !(is_newer || is_beyond) || reader.block_at(at, anchor.store).map_err(reading)?.is_err() {
                    continue;
                }
                if is_newer {
                    let reason =
                        "it holds frames of a later open than the anchor knows: the newest anchor is lost";
                    return refuse(LogError::AnchorDamaged { path: found.path.clone(), reason });
                }
                beyond += 1;
                damage.get_or_insert((found.path.clone(), at, Lsn(head.first_lsn)));
            }
        }
        match damage {
            Some((path, offset, lsn)) => {
                refuse(LogError::Corruption { path, offset, lsn, prefix: self.end, beyond })
            }
            None => Ok(()),
        }
    }

    /// Has one of the files read ahead.
    fn begin_reading(&mut self, file: usize) -> Result<(), LogError> {
        if self.begun.iter().all(|(index, _)| *index != file) {
            let mut reader = self.reader(file)?;
            reader.ask_ahead();
            self.begun.push((file, reader));
        }
        Ok(())
    }

    /// A reader of one of the files, which may have begun; those of earlier files are not needed any more.
    fn take_reader(&mut self, file: usize) -> Result<Reader, LogError> {
        let begun = self.begun.iter().position(|(index, _)| *index == file);
        let begun = begun.map(|at| self.begun.swap_remove(at).1);
        self.begun.retain(|(index, _)| *index > file);
        begun.map_or_else(|| self.reader(file), Ok)
    }

    /// A reader of one of the files.
    pub(crate) fn reader(&self, file: usize) -> Result<Reader, LogError> {
        let found = &self.files[file];
        Reader::new(self.io.as_ref(), &found.file).map_err(LogError::storage("read", &found.path))
    }

    pub(crate) fn path(&self, file: usize) -> &Path {
        &self.files[file].path
    }
}

/// What was found from an offset of a file on.
fn stray(file: usize, start: u64, found: Option<NotZero>) -> Option<Stray> {
    found.map(|found| Stray { file, offset: start + found.first as u64, bytes: found.bytes })
}
