//! Reading a trace from front to back in bounded memory, from a pipe or a file.

use std::io::Read;

use super::sections::{Sections, Trailer, read_sequential, section_places};
use super::sequence::{ClosingState, FileChecks, Sequenced, Sequencer, Totals, mismatch};
use super::source::{FileSource, PipeSource, ReadAt, Source, SourceReader};
use super::walk::BlockWalk;
use super::{BlockBuffer, BlockEntry, EndReason, Lead, MarkerIds, NoticeLog, SequenceEnd};
use crate::checksum::{ChecksumNames, Crc32c, NamesFound};
use crate::header::{DIALECT_TYPHON, FileHeader, HEADER_BYTES};
use crate::tables::{Archetype, ROUTING_ID_UNKNOWN, Tables};
use crate::trailer::SpanNames;
use crate::{Notice, NoticeCode, TraceError};

/// How to treat damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadOptions {
    /// Search for the next sound block after damage, and deliver blocks whose checksum does not match.
    pub salvage: bool,
}

/// The part of a trace before its first block.
#[derive(Debug, Clone)]
pub struct Preamble {
    /// The file header.
    pub header: FileHeader,
    /// The header's bytes; its checksum covers them, padding included.
    pub header_bytes: [u8; HEADER_BYTES],
    /// The metadata tables.
    pub tables: Tables,
    /// File offset of the first byte after the tables.
    pub tables_end: u64,
    /// Does the file declare checksums?
    pub names: NamesFound,
    /// What the blocks are checked against.
    pub(crate) checks: FileChecks,
}

/// What is known once the whole trace was read.
#[derive(Debug)]
pub struct Outcome {
    /// Everything that was stepped over, by file offset.
    pub notices: Vec<Notice>,
    /// Sums over the blocks.
    pub totals: Totals,
    /// Names that kind 6 records refer to, of all tables.
    pub span_names: SpanNames,
    /// Trailer sections in the order of the file.
    pub sections: Sections,
    /// Where the block sequence ended and why.
    pub end_of_blocks: SequenceEnd,
    /// Bytes of the whole input.
    pub file_bytes: u64,
}

/// Reads blocks in file order without decoding them. [`StreamReader`] does the rest on one thread; a parallel reader
/// hands the loaded buffers to its workers and puts the results through a [`Sequencer`].
#[derive(Debug)]
pub struct BlockFeed<S> {
    preamble: Preamble,
    walk: BlockWalk<S>,
}

impl<R: Read> BlockFeed<PipeSource<R>> {
    /// Opens a trace that is read from front to back; the reader must stand at its first byte.
    ///
    /// # Errors
    /// Those of [`FileHeader::parse`], and [`TraceError::Io`].
    pub fn from_reader(input: R, options: ReadOptions) -> Result<Self, TraceError> {
        Self::open(PipeSource::new(input), options)
    }
}

impl<A: ReadAt> BlockFeed<FileSource<A>> {
    /// Opens a trace with positioned reads, as long as it is now.
    ///
    /// # Errors
    /// As [`BlockFeed::from_reader`].
    pub fn from_file(data: A, options: ReadOptions) -> Result<Self, TraceError> {
        let size = data.size().map_err(|source| TraceError::Io { action: "read", offset: 0, source })?;
        Self::open(FileSource::sequential(data, size), options)
    }
}

impl<S: Source> BlockFeed<S> {
    /// Reads header, tables and the span names before the first block.
    ///
    /// # Errors
    /// As [`BlockFeed::from_reader`].
    pub fn open(mut source: S, options: ReadOptions) -> Result<Self, TraceError> {
        let head = source.peek(0, HEADER_BYTES)?;
        let header = FileHeader::parse(head)?;
        let mut header_bytes = [0; HEADER_BYTES];
        header_bytes.copy_from_slice(head);
        let mut reader = SourceReader::new(&mut source, HEADER_BYTES as u64);
        let read = Tables::read(&mut reader);
        let tables = reader.finish(read)?;
        let tables_end = HEADER_BYTES as u64 + tables.raw.len() as u64;
        let mut walk = BlockWalk::new(source, tables_end, options.salvage, section_places(&header));
        walk.log.extend(tables.notices);
        let mut checks = FileChecks { checksums: false, tables_crc: 0 };
        if tables.cut.is_some() {
            walk.give_up(EndReason::Torn);
        } else {
            walk.read_span_names()?;
            let crc = Crc32c::of_tables(&tables.raw, &tables.routing_id_offsets).value();
            checks.tables_crc = walk.take_lead().extend_crc(crc).unwrap_or(crc);
        }
        let names = ChecksumNames::find(&walk.span_names);
        checks.checksums = matches!(names, NamesFound::All(_));
        let preamble = Preamble { header, header_bytes, tables: tables.tables, tables_end, names, checks };
        preamble.report(tables.cut.is_none(), &mut walk.log);
        Ok(Self { preamble, walk })
    }

    /// Header and tables.
    pub fn preamble(&self) -> &Preamble {
        &self.preamble
    }

    /// The span names met so far.
    pub fn span_names(&self) -> &SpanNames {
        &self.walk.span_names
    }

    /// Notices about the file apart from the contents of its blocks, so far.
    pub fn notices(&self) -> &[Notice] {
        self.walk.log.kept()
    }

    /// The next block's place, without its data.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn next_entry(&mut self) -> Result<Option<BlockEntry>, TraceError> {
        self.walk.step()
    }

    /// Loads the next block into `buffer`; `false` when there is none. The block is not decoded.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn next_block(&mut self, buffer: &mut BlockBuffer) -> Result<bool, TraceError> {
        let Some(entry) = self.walk.step()? else { return Ok(false) };
        let checksums = self.preamble.checksum_names();
        let ids = MarkerIds { checksums, losses: self.walk.losses };
        let wanted = entry.stored_bytes() + entry.lookahead_bytes();
        let held = self.walk.source.peek(entry.offset, wanted)?;
        let Some((stored, next)) = held.split_at_checked(entry.stored_bytes()) else {
            // Only a file that shrinks while it is read gets here.
            let source = std::io::ErrorKind::UnexpectedEof.into();
            return Err(TraceError::Io { action: "read", offset: entry.offset, source });
        };
        buffer.load(entry, ids, stored);
        buffer.set_lookahead(next);
        Ok(true)
    }

    /// Reads what follows the blocks, checks the closing block and puts everything together. To be called after the
    /// last block went through the sequencer.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn finish<T>(mut self, sequencer: Sequencer<T>) -> Result<Outcome, TraceError> {
        let (totals, block_log, closing) = sequencer.finish();
        let (end, trailer) = self.read_trailer()?;
        self.preamble.check_closing(closing, &trailer, &mut self.walk.log);
        if totals.dropped_records > 0 {
            let message = format!("the recorder reports {} dropped records", totals.dropped_records);
            let notice = Notice::new(NoticeCode::RecordsDropped, message).counting(totals.dropped_records);
            self.walk.log.push(notice);
        }
        Ok(Outcome {
            notices: self.walk.log.merge(block_log),
            totals,
            span_names: self.walk.span_names,
            sections: trailer.sections,
            end_of_blocks: end,
            file_bytes: trailer.file_bytes,
        })
    }

    /// Reads what follows the blocks, without having looked into any block.
    pub(crate) fn finish_scan(mut self) -> Result<ScanEnd, TraceError> {
        let (end, trailer) = self.read_trailer()?;
        let BlockWalk { span_names, log, .. } = self.walk;
        Ok(ScanEnd {
            notices: log.into_sorted(),
            span_names,
            end_of_blocks: end,
            file_bytes: trailer.file_bytes,
        })
    }

    fn read_trailer(&mut self) -> Result<(SequenceEnd, Trailer), TraceError> {
        while self.walk.step()?.is_some() {}
        let torn = SequenceEnd { offset: self.preamble.tables_end, reason: EndReason::Torn, lead: Lead::Gap };
        let end = self.walk.end().unwrap_or(torn);
        let BlockWalk { source, span_names, log, .. } = &mut self.walk;
        let trailer = read_sequential(source, end, &self.preamble.header, span_names, log)?;
        Ok((end, trailer))
    }
}

/// What a scan of the block headers found besides the blocks.
#[derive(Debug)]
pub(crate) struct ScanEnd {
    pub(crate) notices: Vec<Notice>,
    pub(crate) span_names: SpanNames,
    pub(crate) end_of_blocks: SequenceEnd,
    pub(crate) file_bytes: u64,
}

impl Preamble {
    /// Replaces the tables by those that came later, if any did.
    pub fn add_late_tables(&mut self, sections: &Sections) {
        if let Some(tables) = &sections.tables {
            self.tables.clone_from(tables);
        }
    }

    /// Ids of the checksum names, if the file declares them all.
    pub fn checksum_names(&self) -> Option<ChecksumNames> {
        match self.names {
            NamesFound::All(names) => Some(names),
            NamesFound::None | NamesFound::Partial => None,
        }
    }

    /// A sequencer for the blocks of this file.
    pub fn sequencer<T>(&self, options: ReadOptions) -> Sequencer<T> {
        Sequencer::new(self.checks, options.salvage)
    }

    /// What header, tables and names tell before any block is read.
    fn report(&self, tables_whole: bool, log: &mut NoticeLog) {
        if !self.header.is_closed() {
            log.push(Notice::new(NoticeCode::NotClosedCleanly, "the file was not closed"));
        }
        let typhon = self.header.reserved0 == DIALECT_TYPHON;
        match self.names {
            NamesFound::All(_) => {}
            NamesFound::None if !typhon => {
                log.push(Notice::new(NoticeCode::NoChecksums, "the file has no checksums"));
            }
            NamesFound::None if !tables_whole => {}
            NamesFound::None | NamesFound::Partial => {
                let message = if typhon {
                    "the header has this project's dialect marker, but the checksum names are not all there"
                } else {
                    "some of the checksum names are missing"
                };
                log.push(Notice::new(NoticeCode::DialectMismatch, message).at(self.tables_end));
            }
        }
        let has_routing_id = |archetype: &Archetype| archetype.routing_id != ROUTING_ID_UNKNOWN;
        if self.header.multiple_engines_observed() && self.tables.archetypes.iter().any(has_routing_id) {
            let message = "archetypes have routing ids, though the header says that these are ambiguous";
            log.push(Notice::new(NoticeCode::TableDamaged, message).at(HEADER_BYTES as u64));
        }
    }

    /// Compares header and trailer with the checksums of the closing block.
    fn check_closing(&self, closing: ClosingState, trailer: &Trailer, log: &mut NoticeLog) {
        if !self.checks.checksums {
            return;
        }
        let Some(block) = closing.block else {
            if self.header.is_closed() {
                let message = "the file was closed, but its closing block is missing";
                log.push(Notice::new(NoticeCode::ChecksumMissing, message).at(trailer.file_bytes));
            }
            return;
        };
        let header_crc = Crc32c::of_header(&self.header_bytes).value();
        if block.header_crc != header_crc {
            let mut message = mismatch("header", block.header_crc, header_crc);
            if !self.header.is_closed() {
                message += "; closing was interrupted before its last step";
            }
            log.push(Notice::new(NoticeCode::ChecksumHeader, message).at(0));
        }
        match trailer.crc {
            Some(crc) if crc != block.trailer_crc => {
                let message = mismatch("trailer", block.trailer_crc, crc);
                log.push(Notice::new(NoticeCode::ChecksumTrailer, message).at(closing.offset));
            }
            Some(_) => {}
            None => {
                let message = "the trailer cannot be located and is unchecked";
                log.push(Notice::new(NoticeCode::ChecksumTrailer, message).at(closing.offset));
            }
        }
    }
}

/// A block with its verdict, ready to be used.
pub type CheckedBlock = Sequenced<BlockBuffer>;

/// Reads a trace from front to back on one thread. Memory is bounded by the largest block and the number of blocks
/// whose checksums are undecided, not by the size of the input, except for tables, sections and names.
///
/// A block is delivered once its checksum is known, usually one block later.
#[derive(Debug)]
pub struct StreamReader<S> {
    feed: BlockFeed<S>,
    sequencer: Sequencer<BlockBuffer>,
    spare: Vec<BlockBuffer>,
    current: Option<CheckedBlock>,
    at_end: bool,
}

impl<R: Read> StreamReader<PipeSource<R>> {
    /// Opens a trace from a reader that stands at its first byte: standard input, a socket, a file.
    ///
    /// # Errors
    /// As [`BlockFeed::from_reader`].
    pub fn from_reader(input: R, options: ReadOptions) -> Result<Self, TraceError> {
        Ok(Self::new(BlockFeed::from_reader(input, options)?, options))
    }
}

impl<A: ReadAt> StreamReader<FileSource<A>> {
    /// Opens a trace with positioned reads, as long as it is now.
    ///
    /// # Errors
    /// As [`BlockFeed::from_reader`].
    pub fn from_file(data: A, options: ReadOptions) -> Result<Self, TraceError> {
        Ok(Self::new(BlockFeed::from_file(data, options)?, options))
    }
}

impl<S: Source> StreamReader<S> {
    fn new(feed: BlockFeed<S>, options: ReadOptions) -> Self {
        let sequencer = feed.preamble().sequencer(options);
        Self { feed, sequencer, spare: Vec::new(), current: None, at_end: false }
    }

    /// Header and tables.
    pub fn preamble(&self) -> &Preamble {
        self.feed.preamble()
    }

    /// The span names met so far.
    pub fn span_names(&self) -> &SpanNames {
        self.feed.span_names()
    }

    /// Notices so far about header, tables and the places of blocks; those about the blocks' contents come with
    /// [`StreamReader::finish`].
    pub fn notices(&self) -> &[Notice] {
        self.feed.notices()
    }

    /// Sums over the blocks given so far.
    pub fn totals(&self) -> &Totals {
        self.sequencer.totals()
    }

    /// The next block in file order. Blocks that are damaged are given too, with [`Sequenced::delivered`] false when
    /// their events are not to be used; [`StreamReader::next_delivered`] leaves those out.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn next_block(&mut self) -> Result<Option<&CheckedBlock>, TraceError> {
        self.spare.extend(self.current.take().map(|block| block.payload));
        loop {
            if let Some(block) = self.sequencer.pop() {
                return Ok(Some(self.current.insert(block)));
            }
            if self.at_end {
                return Ok(None);
            }
            self.read_ahead()?;
        }
    }

    /// The next block whose events may be used.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn next_delivered(&mut self) -> Result<Option<&CheckedBlock>, TraceError> {
        while self.next_block()?.is_some_and(|block| !block.delivered) {}
        Ok(self.current.as_ref())
    }

    fn read_ahead(&mut self) -> Result<(), TraceError> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        if self.feed.next_block(&mut buffer)? {
            buffer.decode();
            if let Some(summary) = buffer.summary().cloned() {
                self.sequencer.push(summary, buffer);
            }
        } else {
            self.sequencer.end_of_blocks();
            self.at_end = true;
        }
        Ok(())
    }

    /// Reads the rest of the blocks, if any, and the trailer sections.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn finish(mut self) -> Result<Outcome, TraceError> {
        while self.next_block()?.is_some() {}
        self.feed.finish(self.sequencer)
    }
}
