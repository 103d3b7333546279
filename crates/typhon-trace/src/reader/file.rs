//! Random access to a trace: any block at any time, from any number of threads.

use super::sections::{Sections, read_addressed};
use super::source::{FileSource, ReadAt};
use super::stream::{BlockFeed, Preamble, ReadOptions, ScanEnd, StreamReader};
use super::{BlockBuffer, BlockEntry, ChecksumChain, Closing, MarkerIds, NoticeLog, SequenceEnd, Verdict};
use crate::block::BLOCK_HEADER_BYTES;
use crate::header::FileHeader;
use crate::tables::Tables;
use crate::trailer::SpanNames;
use crate::{Notice, TraceError};

/// An open trace file. `Sync` when its data is, so that threads can share it.
#[derive(Debug)]
pub struct TraceFile<A> {
    data: A,
    preamble: Preamble,
    sections: Sections,
    notices: Vec<Notice>,
}

/// Where the blocks of a file are, found by reading the block headers only.
#[derive(Debug)]
pub struct BlockIndex {
    /// The blocks in file order.
    pub entries: Vec<BlockEntry>,
    /// Names that kind 6 records refer to, of all tables between the blocks.
    pub span_names: SpanNames,
    /// What was stepped over, by file offset; nothing about the contents of blocks.
    pub notices: Vec<Notice>,
    /// Where the block sequence ended and why.
    pub end_of_blocks: SequenceEnd,
    /// Size of the file when it was scanned.
    pub file_bytes: u64,
    ids: MarkerIds,
}

impl BlockIndex {
    /// Sum of the record counts in the block headers, checksum markers included.
    pub fn stated_records(&self) -> u64 {
        self.entries.iter().map(|entry| u64::from(entry.header.records)).sum()
    }

    /// Sum of the uncompressed sizes in the block headers.
    pub fn uncompressed_bytes(&self) -> u64 {
        self.entries.iter().map(|entry| u64::from(entry.header.uncompressed_bytes)).sum()
    }
}

impl<A: ReadAt> TraceFile<A> {
    /// Reads header, tables and the sections that the header points at. Damaged tables and sections are notices.
    ///
    /// # Errors
    /// Those of [`FileHeader::parse`], and [`TraceError::Io`].
    pub fn open(data: A) -> Result<Self, TraceError> {
        let size = data.size().map_err(|source| TraceError::Io { action: "read", offset: 0, source })?;
        let feed = BlockFeed::open(FileSource::scattered(&data, size), ReadOptions::default())?;
        let mut preamble = feed.preamble().clone();
        let mut log = NoticeLog::new();
        log.extend(feed.notices().iter().cloned());
        let mut source = FileSource::sequential(&data, size);
        let sections = read_addressed(&mut source, &preamble.header, preamble.tables_end, &mut log)?;
        preamble.add_late_tables(&sections);
        Ok(Self { data, preamble, sections, notices: log.into_sorted() })
    }

    /// Adds what a file beside the trace holds, see [`Sections::read_beside`]; what the trace itself has counts more.
    #[must_use]
    pub fn with_beside(mut self, sections: &Sections, notices: Vec<Notice>) -> Self {
        self.sections = self.sections.or(sections);
        self.preamble.add_late_tables(&self.sections);
        self.notices.extend(notices);
        self
    }

    /// The file header.
    pub fn header(&self) -> &FileHeader {
        &self.preamble.header
    }

    /// The metadata tables: those in front, or the late ones that replace them.
    pub fn tables(&self) -> &Tables {
        &self.preamble.tables
    }

    /// Header, tables and what they say about checksums.
    pub fn preamble(&self) -> &Preamble {
        &self.preamble
    }

    /// The sections that the header points at.
    pub fn sections(&self) -> &Sections {
        &self.sections
    }

    /// What was stepped over while opening.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The bytes of the file.
    pub fn data(&self) -> &A {
        &self.data
    }

    /// Finds the blocks by reading their headers and skipping their data. A file that is still being recorded is
    /// read as far as it reaches now; scan again to see more. With salvage, damaged places cost a search.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn scan(&self, options: ReadOptions) -> Result<BlockIndex, TraceError> {
        let mut entries = Vec::new();
        let end = self.walk_blocks(options, |entry| entries.push(entry))?;
        let ScanEnd { notices, span_names, end_of_blocks, file_bytes } = end;
        let ids = MarkerIds::with_losses(self.preamble.checksum_names(), &span_names);
        Ok(BlockIndex { entries, span_names, notices, end_of_blocks, file_bytes, ids })
    }

    /// The names that kind 6 records refer to, of all tables of the file. Takes a scan without keeping an index.
    ///
    /// # Errors
    /// [`TraceError::Io`].
    pub fn span_names(&self, options: ReadOptions) -> Result<SpanNames, TraceError> {
        Ok(self.walk_blocks(options, |_| ())?.span_names)
    }

    fn walk_blocks(
        &self,
        options: ReadOptions,
        mut visit: impl FnMut(BlockEntry),
    ) -> Result<ScanEnd, TraceError> {
        let size = self.data.size().map_err(|source| TraceError::Io { action: "read", offset: 0, source })?;
        let mut feed = BlockFeed::open(FileSource::scattered(&self.data, size), options)?;
        while let Some(entry) = feed.next_entry()? {
            visit(entry);
        }
        feed.finish_scan()
    }

    /// Reads and decodes one block of an index. Faults of the block are in the buffer's summary.
    ///
    /// # Errors
    /// [`TraceError::Io`]; also when the file has shrunk since the scan.
    pub fn read_block(
        &self,
        index: &BlockIndex,
        entry: &BlockEntry,
        buffer: &mut BlockBuffer,
    ) -> Result<(), TraceError> {
        self.load_block(index.ids, entry, buffer)
    }

    /// Reads and decodes one block whose place is known from elsewhere, such as an earlier scan; `names` are those of
    /// the whole file. Faults of the block are in the buffer's summary.
    ///
    /// # Errors
    /// As [`TraceFile::read_block`].
    pub fn read_known_block(
        &self,
        names: &SpanNames,
        entry: &BlockEntry,
        buffer: &mut BlockBuffer,
    ) -> Result<(), TraceError> {
        self.load_block(MarkerIds::with_losses(self.preamble.checksum_names(), names), entry, buffer)
    }

    fn load_block(
        &self,
        ids: MarkerIds,
        entry: &BlockEntry,
        buffer: &mut BlockBuffer,
    ) -> Result<(), TraceError> {
        let stored = buffer.load_into(*entry, ids);
        if read_at_most(&self.data, stored, entry.offset)? < stored.len() {
            let source = std::io::ErrorKind::UnexpectedEof.into();
            return Err(TraceError::Io { action: "read", offset: entry.offset, source });
        }
        let mut next = [0; BLOCK_HEADER_BYTES];
        let next = &mut next[..entry.lookahead_bytes()];
        let count = read_at_most(&self.data, next, entry.end())?;
        buffer.set_lookahead(&next[..count]);
        buffer.decode();
        Ok(())
    }

    /// Reads and decodes the block at a position of an index, and asks the blocks after it what they know of it: the
    /// same verdict as a stream reader gives. Costs one more block as a rule, and at most
    /// eight more.
    ///
    /// # Errors
    /// As [`TraceFile::read_block`].
    ///
    /// # Panics
    /// When the index has no such position.
    pub fn read_checked(
        &self,
        index: &BlockIndex,
        position: usize,
        buffer: &mut BlockBuffer,
    ) -> Result<Verdict, TraceError> {
        self.read_block(index, &index.entries[position], buffer)?;
        if index.ids.checksums.is_none() {
            return Ok(Verdict::Unchecked);
        }
        let mut chain = ChecksumChain::new();
        let mut closing = push_link(&mut chain, buffer);
        let mut later = BlockBuffer::new();
        for entry in &index.entries[position + 1..] {
            self.read_block(index, entry, &mut later)?;
            closing = push_link(&mut chain, &later);
            if let Some(verdict) = chain.next_verdict() {
                return Ok(verdict);
            }
        }
        chain.finish(closing.verdict_at_end());
        Ok(chain.next_verdict().unwrap_or(Verdict::Unchecked))
    }

    /// Reads the file from front to back.
    ///
    /// # Errors
    /// As [`TraceFile::open`].
    pub fn stream(&self, options: ReadOptions) -> Result<StreamReader<FileSource<&A>>, TraceError> {
        StreamReader::from_file(&self.data, options)
    }
}

/// Adds a decoded block to a chain; tells whether it is the closing block.
fn push_link(chain: &mut ChecksumChain, buffer: &BlockBuffer) -> Closing {
    let Some(summary) = buffer.summary() else { return Closing::No };
    chain.push(summary.link());
    summary.closing
}

/// Fills the buffer from `offset` on; returns the number of bytes, fewer only at the end of the file.
fn read_at_most<A: ReadAt>(data: &A, buffer: &mut [u8], offset: u64) -> Result<usize, TraceError> {
    let mut filled = 0;
    while filled < buffer.len() {
        let at = offset + filled as u64;
        match data.read_at(&mut buffer[filled..], at) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(source) => return Err(TraceError::Io { action: "read", offset: at, source }),
        }
    }
    Ok(filled)
}
