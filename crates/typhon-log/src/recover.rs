//! From what is on disk to a log that accepts appends: scan, redo by the caller, seal, start.

use crate::anchor::Anchor;
use crate::claim::Place as Numbers;
use crate::drive::Driven;
use crate::error::LogError;
use crate::format::{BLOCK_HEADER_BYTES, FRAME_HEADER_BYTES, Frame, FrameHeader};
use crate::log::Log;
use crate::options::Options;
use crate::reader::Reader;
use crate::scan::{self, Extent, Found, Scan, Stop};
use crate::segments::{Maker, Place, Segments};
use crate::spares::{Spare, Spares};
use crate::stream::{Cursor, Stream};
use crate::sync::{Fault, planted};
use crate::writer::{Told, Writer};
use crate::{Lsn, Tsn};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use typhon_store::Io;

/// Positions skipped by every open: more than any process can have appended without making it durable.
const LSN_STEP: u64 = 1 << 30;
/// Sequence numbers skipped by every open: more than so many bytes hold frames.
const TSN_STEP: u64 = 1 << 25;
/// Highest position from which a log goes on; claims can count 32 times as far.
const LSN_MAX: u64 = 1 << 58;
/// Highest sequence number from which it does.
const TSN_MAX: u64 = 1 << 47;
/// Highest number of a segment: names have sixteen digits, and some more must be left.
const SEGMENT_MAX: u64 = 9_000_000_000_000_000;

/// A log whose past was read, and whose future has not begun. Dropping it changes nothing on disk.
#[derive(Debug)]
pub struct Recovered {
    io: Arc<dyn Io>,
    directory: PathBuf,
    options: Options,
    anchor: Anchor,
    scan: Scan,
}

/// What recovery found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Frames up to here are not needed any more.
    pub base: Lsn,
    /// End of the valid prefix.
    pub end: Lsn,
    /// Blocks with frames between the two.
    pub blocks: usize,
    /// Bytes of blocks that were read and checked.
    pub bytes: u64,
    /// How the prefix ended.
    pub stop: Stop,
}

impl Report {
    pub(crate) fn of(scan: &Scan, base: Lsn) -> Self {
        Self { base, end: scan.end, blocks: scan.extents.len(), bytes: scan.bytes, stop: scan.stop }
    }
}

impl Recovered {
    /// Makes durable what is in the directory, reads it and finds the valid prefix. Beyond that nothing is changed.
    ///
    /// # Errors
    /// Files that are not this log's, versions other than ours, missing segments, durable frames that are damaged, and
    /// whatever the operating system refuses.
    pub fn open(
        io: Arc<dyn Io>,
        directory: &Path,
        anchor: Anchor,
        options: Options,
    ) -> Result<Self, LogError> {
        options.validate()?;
        let anchor = Anchor { base: anchor.base.of_frame_end(), ..anchor };
        if !planted(Fault::TrustCache) {
            scan::settle(&*io, directory)?;
        }
        let truncates = options.truncate_damage;
        let mut refuse = |error| match error {
            LogError::Corruption { .. } | LogError::SegmentCut { .. } if truncates => Ok(()),
            // Behind the base something is left.
            LogError::SegmentMissing { base, .. } if truncates && base > anchor.base => Ok(()),
            error => Err(error),
        };
        let files = scan::find(&*io, directory, &anchor, &mut refuse)?;
        let scan = scan::scan(Some(&io), directory, files, &anchor, &mut refuse)?;
        Ok(Self { io, directory: directory.to_owned(), options, anchor, scan })
    }

    /// What was found.
    pub fn report(&self) -> Report {
        Report::of(&self.scan, self.anchor.base)
    }

    /// End of the valid prefix.
    pub fn end(&self) -> Lsn {
        self.scan.end
    }

    /// The frames behind the base, in order.
    pub fn frames(&self) -> Replay<'_> {
        Replay::new(&self.scan, self.anchor.base)
    }

    /// Seals the past and starts the log: a new segment, durable; then `persist`, which must make the new anchor
    /// durable, together with everything that the frames behind the old base changed; then appends.
    ///
    /// # Errors
    /// Those of `persist`, and of creating the segment. Either way the next open finds the same frames again.
    pub fn start<E: From<LogError>>(self, persist: impl FnOnce(&Anchor) -> Result<(), E>) -> Result<Log, E> {
        let anchor = self.next_anchor()?;
        let (segments, previous_crc) = self.next_segments(&anchor)?;
        let persists = !planted(Fault::NoSeal) && !planted(Fault::EpochLate);
        if persists && !(planted(Fault::SealOnlyIfTorn) && self.scan.stop == Stop::End) {
            persist(&anchor)?;
        }
        self.give_up_past(&segments)?;
        let start = Numbers { position: anchor.base.0, tsn: anchor.next_tsn.0 };
        let stream = Stream::new(start, self.options.ring_bytes);
        let told = Arc::new(Told::default());
        let writer = Writer::new(Cursor(start), segments, previous_crc, Arc::clone(&told));
        let Options { waiters_write, writer_thread, .. } = self.options;
        let driven = Driven::new(stream, writer, waiters_write, writer_thread);
        Ok(Log::start(driven, told, anchor, self.options)?)
    }

    /// Above every number that was ever given, and every segment that ever was.
    fn next_anchor(&self) -> Result<Anchor, LogError> {
        let is_first = self.anchor.open_epoch == 0;
        let keeps_lsn = is_first || planted(Fault::ReusePositions) || planted(Fault::NoSeal);
        let keeps_tsn = is_first || planted(Fault::ReuseTsns) || planted(Fault::NoSeal);
        let highest = self.scan.files.iter().map(|found| found.name.number()).max().unwrap_or(0);
        self.has_numbers_left(highest)?;
        let next_tsn = self.scan.next_tsn.0 + if keeps_tsn { 0 } else { TSN_STEP };
        Ok(Anchor {
            store: self.anchor.store,
            open_epoch: self.anchor.open_epoch + u32::from(!planted(Fault::NoSeal)),
            log_floor: highest.max(self.anchor.log_floor.saturating_sub(1)) + 1,
            base: Lsn(self.scan.end.0 + if keeps_lsn { 0 } else { LSN_STEP }),
            next_tsn: Tsn(if planted(Fault::StaleNextTsn) { self.anchor.next_tsn.0 } else { next_tsn }),
        })
    }

    /// No log comes near these limits by being used: whoever reaches them reads made-up files.
    fn has_numbers_left(&self, highest: u64) -> Result<(), LogError> {
        let numbers = [
            ("position", self.scan.end.0, LSN_MAX),
            ("sequence number", self.scan.next_tsn.0, TSN_MAX),
            ("open", u64::from(self.anchor.open_epoch), u64::from(u32::MAX) - 1),
            ("segment", highest.max(self.anchor.log_floor), SEGMENT_MAX),
        ];
        match numbers.into_iter().find(|(_, number, limit)| number > limit) {
            Some((what, number, limit)) => Err(LogError::Exhausted { what, number, limit }),
            None => Ok(()),
        }
    }

    /// The new segment; nothing that recovery needs is touched for it.
    fn next_segments(&self, anchor: &Anchor) -> Result<(Segments, u32), LogError> {
        let free = self.scan.files.iter().filter(|found| is_free(found)).map(spare).collect();
        let place = Place {
            io: Arc::clone(&self.io),
            directory: self.directory.clone(),
            store: anchor.store,
            epoch: anchor.open_epoch,
        };
        let options = self.options.clone();
        let spares = Spares::new(free, anchor.log_floor + 1, options.segment_bytes, options.spare_segments);
        let maker = Maker { place, spares: Arc::new(spares), options };
        #[cfg(any(loom, feature = "mutants"))]
        if let Some((active, crc)) = self.continued()? {
            return Ok((Segments::new(maker, active), crc));
        }
        let active = maker.make(anchor.log_floor, anchor.base.0, 0)?;
        Ok((Segments::new(maker, active), 0))
    }

    /// For the mutants that write on in the last segment.
    #[cfg(any(loom, feature = "mutants"))]
    fn continued(&self) -> Result<Option<(crate::segments::Active, u32)>, LogError> {
        use typhon_store::{Access, Open};
        let is_planted = planted(Fault::NoSeal) || planted(Fault::ContinueSegment);
        let Some((file, position, crc)) = self.scan.tail.filter(|_| is_planted) else { return Ok(None) };
        let path = self.scan.path(file).to_owned();
        let opened = self.io.open(&path, Open::cached(Access::Write));
        let found = &self.scan.files[file];
        let active = crate::segments::Active {
            id: found.name.number(),
            file: opened.map_err(LogError::storage("open", &path))?,
            path,
            position,
            size_bytes: found.bytes,
        };
        Ok(Some((active, crc)))
    }

    /// Keeps files of the past as spares, as many as wanted, and deletes the others: nothing below the floor is ever
    /// read again.
    fn give_up_past(&self, segments: &Segments) -> Result<(), LogError> {
        if planted(Fault::NoSeal) || planted(Fault::ContinueSegment) {
            return Ok(());
        }
        let Maker { place, spares, .. } = &segments.maker;
        let mut past = spares.take_all();
        past.extend(self.scan.files.iter().filter(|found| !is_free(found)).map(spare));
        for file in past {
            if !spares.keep(file, 0) {
                let path = place.path(file.name);
                place.io.remove(&path).map_err(LogError::storage("remove", &path))?;
            }
        }
        Ok(())
    }
}

/// May a file be overwritten before the new anchor is durable?
fn is_free(found: &Found) -> bool {
    !found.is_needed() || planted(Fault::RecycleEarly)
}

fn spare(found: &Found) -> Spare {
    Spare { name: found.name, bytes: found.bytes }
}

/// The frames of a recovered log, one at a time.
#[derive(Debug)]
pub struct Replay<'a> {
    scan: &'a Scan,
    base: Lsn,
    /// Index of the next block.
    next: usize,
    open: Option<(usize, Reader)>,
    /// Frames of the current block if the scan has kept them; else they are in `read`.
    kept: Option<&'a [u8]>,
    read: Vec<u8>,
    /// How much of them was given, and the position there.
    at: usize,
    lsn: u64,
}

impl<'a> Replay<'a> {
    pub(crate) fn new(scan: &'a Scan, base: Lsn) -> Self {
        Self { scan, base, next: 0, open: None, kept: None, read: Vec::new(), at: 0, lsn: 0 }
    }

    /// Where the block is from which the last frame came: the file, counted from the first by number, and the offset.
    pub fn place(&self) -> Option<(usize, u64)> {
        let extent = self.scan.extents.get(self.next.checked_sub(1)?)?;
        Some((extent.file, extent.offset))
    }

    /// The next frame; `None` at the end of the prefix.
    ///
    /// # Errors
    /// If the file cannot be read, or does not hold any more what it held when the log was opened.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, LogError> {
        loop {
            if self.at == self.block().len() {
                let Some(extent) = self.scan.extents.get(self.next) else { return Ok(None) };
                self.load(extent)?;
                self.next += 1;
            }
            let (start, block) = (self.at, self.block());
            // What was kept was checked when it was read.
            let decode = if self.kept.is_some() { FrameHeader::parse } else { FrameHeader::decode };
            let Ok(header) = decode(&block[start..]) else {
                return Err(self.has_changed());
            };
            let end = start + header.span_bytes() as usize;
            let body = start + FRAME_HEADER_BYTES..start + header.length as usize;
            let is_right = || self.kept.is_some() || crc32c::crc32c(&block[body.clone()]) == header.body_crc;
            if end > block.len() || !is_right() {
                return Err(self.has_changed());
            }
            self.at = end;
            self.lsn += header.span_bytes();
            // The base may lie inside a block.
            if self.lsn > self.base.0 {
                return Ok(Some(Frame { lsn: Lsn(self.lsn), header, body: &self.block()[body] }));
            }
        }
    }

    fn block(&self) -> &[u8] {
        self.kept.unwrap_or(&self.read)
    }

    fn load(&mut self, extent: &'a Extent) -> Result<(), LogError> {
        self.kept = extent.kept.as_deref();
        if let Some(frames) = self.kept {
            (self.at, self.lsn) = (0, extent.end_lsn - frames.len() as u64);
            return Ok(());
        }
        let path = self.scan.path(extent.file);
        if self.open.as_ref().is_none_or(|(file, _)| *file != extent.file) {
            self.open = Some((extent.file, self.scan.reader(extent.file)?));
        }
        let Some((_, reader)) = &mut self.open else { return Err(self.has_changed()) };
        let reading = |error| LogError::storage("read", path)(error);
        let header = reader.header_at(extent.offset).map_err(reading)?;
        let Some(header) = header.ok().filter(|header| header.end_lsn == extent.end_lsn) else {
            return Err(self.has_changed());
        };
        let bytes = reader.bytes(extent.offset, u64::from(header.length)).map_err(reading)?;
        self.read.clear();
        self.read.extend_from_slice(&bytes[BLOCK_HEADER_BYTES..]);
        (self.at, self.lsn) = (0, header.first_lsn);
        Ok(())
    }

    fn has_changed(&self) -> LogError {
        let path = self.open.as_ref().map(|(file, _)| self.scan.path(*file).to_owned());
        let source = std::io::Error::other("the file changed while it was read");
        LogError::Storage { doing: "read", path: path.unwrap_or_default(), source }
    }
}
