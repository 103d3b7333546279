//! The block sequence of a trace: block headers and span-name tables, from the end of the metadata tables to the
//! first trailer section (format spec, "Reader and recovery").
//!
//! One walk serves everything. It reads headers and steps over the data, so that a scan of a file touches a few bytes
//! per block; whoever wants the data peeks at it before the next step.

use super::NoticeLog;
use super::block_buffer::LossIds;
use super::salvage::{Found, is_sound_block, search};
use super::source::{SEQUENTIAL_READ_BYTES, Source, SourceReader};
use crate::block::{BLOCK_HEADER_BYTES, BlockHeader, Boundary};
use crate::checksum::MARKER_BYTES;
use crate::trailer::{Section, SpanNames};
use crate::{Notice, NoticeCode, TraceError};

/// Where a block is and what its header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockEntry {
    /// Position in the sequence of blocks that the walk accepted, from 0.
    pub index: u64,
    /// File offset of the 12-byte block header.
    pub offset: u64,
    /// Sizes and record count as stored. The count includes checksum markers.
    pub header: BlockHeader,
    /// What lies between the block before and this one.
    pub lead: Lead,
}

impl BlockEntry {
    /// File offset of the first byte after the block.
    pub fn end(&self) -> u64 {
        self.offset + self.header.total_bytes()
    }

    /// Bytes of the block in the file, header included.
    pub fn stored_bytes(&self) -> usize {
        self.header.total_bytes() as usize
    }

    /// Bytes after the block that tell whether it can be the closing block; 0 when its size rules that out.
    pub(crate) fn lookahead_bytes(&self) -> usize {
        if self.header.uncompressed_bytes as usize == 3 * MARKER_BYTES { BLOCK_HEADER_BYTES } else { 0 }
    }
}

/// What lies between one block and the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lead {
    /// Nothing.
    #[default]
    Adjacent,
    /// Span-name tables. They belong to the checksum of the block before them.
    SpanNames {
        /// CRC-32C of their bytes.
        crc: u32,
        /// Number of their bytes.
        bytes: u64,
    },
    /// Bytes that could not be read, perhaps with lost blocks among them.
    Gap,
}

impl Lead {
    /// The checksum of a block and the span-name tables after it.
    pub(crate) fn extend_crc(self, crc: u32) -> Option<u32> {
        match self {
            Self::Adjacent => Some(crc),
            Self::SpanNames { crc: more, bytes } => {
                Some(crc32c::crc32c_combine(crc, more, usize::try_from(bytes).ok()?))
            }
            Self::Gap => None,
        }
    }

    /// The checksum of what follows the last block: span-name tables, then `bytes` bytes with checksum `crc`.
    pub(crate) fn followed_by(self, crc: u32, bytes: u64) -> Option<u32> {
        match self {
            Self::Adjacent => Some(crc),
            Self::SpanNames { crc: before, .. } => {
                Some(crc32c::crc32c_combine(before, crc, usize::try_from(bytes).ok()?))
            }
            Self::Gap => None,
        }
    }

    fn push_span_names(&mut self, crc: u32, bytes: u64) {
        *self = match *self {
            Self::Adjacent => Self::SpanNames { crc, bytes },
            Self::SpanNames { crc: before, bytes: held } => Self::SpanNames {
                crc: crc32c::crc32c_combine(before, crc, bytes as usize),
                bytes: held + bytes,
            },
            Self::Gap => Self::Gap,
        };
    }
}

/// Why the block sequence ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// The input ends after a whole item.
    EndOfFile,
    /// A trailer section begins.
    Section,
    /// The input ends inside an item, or in zeros that a crash left behind.
    Torn,
    /// What follows is not a block, and no sound block was searched or found.
    Damage,
}

/// End of the block sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequenceEnd {
    /// File offset of the first byte that belongs to no block or span-name table.
    pub offset: u64,
    /// What ended it.
    pub reason: EndReason,
    /// What lies between the last block and the end.
    pub lead: Lead,
}

/// Steps through the block sequence.
#[derive(Debug)]
pub(crate) struct BlockWalk<S> {
    pub(crate) source: S,
    pub(crate) span_names: SpanNames,
    /// The names of loss markers met so far.
    pub(crate) losses: LossIds,
    pub(crate) log: NoticeLog,
    salvage: bool,
    /// Sections that the file header points at: places where a salvage search stops.
    sections: Vec<(u64, Section)>,
    position: u64,
    lead: Lead,
    /// The block right before `position`.
    previous: Option<BlockEntry>,
    next_index: u64,
    end: Option<SequenceEnd>,
    /// Work of all salvage searches so far.
    search_work: u64,
    scratch: Vec<u8>,
}

impl<S: Source> BlockWalk<S> {
    pub(crate) fn new(source: S, position: u64, salvage: bool, sections: Vec<(u64, Section)>) -> Self {
        Self {
            source,
            span_names: SpanNames::default(),
            losses: LossIds::default(),
            log: NoticeLog::new(),
            salvage,
            sections,
            position,
            lead: Lead::Adjacent,
            previous: None,
            next_index: 0,
            end: None,
            search_work: 0,
            scratch: Vec::new(),
        }
    }

    /// The end of the sequence, once it is reached.
    pub(crate) fn end(&self) -> Option<SequenceEnd> {
        self.end
    }

    /// Ends the sequence here.
    pub(crate) fn give_up(&mut self, reason: EndReason) {
        self.finish(reason);
    }

    /// Reads the span-name tables that stand right here, without going on to a block.
    pub(crate) fn read_span_names(&mut self) -> Result<(), TraceError> {
        while self.boundary()? == Some(Boundary::SpanNames) {
            if !self.span_table()? {
                break;
            }
        }
        Ok(())
    }

    fn boundary(&mut self) -> Result<Option<Boundary>, TraceError> {
        let next = self.source.peek(self.position, 4)?;
        Ok(next.first_chunk().map(|next| Boundary::of(*next)))
    }

    /// The span-name tables between the tables and the first block belong to the checksum of the tables: takes them
    /// out of the lead.
    pub(crate) fn take_lead(&mut self) -> Lead {
        std::mem::take(&mut self.lead)
    }

    /// The next block. Its data can be peeked at until the step after it.
    pub(crate) fn step(&mut self) -> Result<Option<BlockEntry>, TraceError> {
        while self.end.is_none() {
            if let Some(entry) = self.item()? {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Steps over one item: a block, a span-name table, damage, or the end.
    fn item(&mut self) -> Result<Option<BlockEntry>, TraceError> {
        match self.boundary()? {
            Some(Boundary::Block) => return self.block(),
            Some(Boundary::SpanNames) if self.span_table()? => {}
            Some(Boundary::SpanNames) => self.torn("the file ends inside a span-name table")?,
            Some(Boundary::Trailer(_)) => self.finish(EndReason::Section),
            Some(Boundary::ZeroTail) => self.zeros()?,
            None if self.source.peek(self.position, 1)?.is_empty() => self.finish(EndReason::EndOfFile),
            None => self.torn("the file ends inside a block header")?,
        }
        Ok(None)
    }

    fn block(&mut self) -> Result<Option<BlockEntry>, TraceError> {
        let head = self.source.peek(self.position, BLOCK_HEADER_BYTES)?;
        let Some(head) = head.first_chunk() else {
            self.torn("the file ends inside a block header")?;
            return Ok(None);
        };
        let header = match BlockHeader::parse(head) {
            Ok(header) => header,
            Err(fault) => {
                self.damage(self.position, fault.to_string())?;
                return Ok(None);
            }
        };
        if !self.source.reaches(self.position, header.total_bytes() as usize)? {
            self.torn("the file ends inside a block")?;
            return Ok(None);
        }
        let entry = BlockEntry { index: self.next_index, offset: self.position, header, lead: self.lead };
        // The block before is not needed any more: this header shows that its length was right.
        self.source.release(self.position);
        self.next_index += 1;
        self.position = entry.end();
        self.lead = Lead::Adjacent;
        self.previous = Some(entry);
        Ok(Some(entry))
    }

    /// `false` when the table is cut.
    fn span_table(&mut self) -> Result<bool, TraceError> {
        let start = self.position;
        let magic = Section::SpanNames.magic();
        let body = start + magic.len() as u64;
        // A table that turns out to be cut may have swallowed blocks, which a salvage search has to see.
        let mut reader = SourceReader::holding(&mut self.source, body);
        let table = SpanNames::read(&mut reader);
        let crc = reader.crc();
        let table = reader.finish(table)?;
        self.log.extend(table.notices.into_iter().map(|notice| shifted(notice, body)));
        self.losses.learn(&table.value);
        self.span_names.merge(table.value);
        if !table.cut {
            let crc = crc32c::crc32c_combine(crc32c::crc32c(&magic), crc, table.bytes as usize);
            self.position = body + table.bytes;
            self.lead.push_span_names(crc, self.position - start);
            self.previous = None;
        }
        Ok(!table.cut)
    }

    /// A size of zero ends the sequence: preallocated space that a crash left behind. That is only believed when
    /// nothing but zeros follows; otherwise the size is damaged.
    fn zeros(&mut self) -> Result<(), TraceError> {
        if self.salvage && self.previous_is_damaged()? {
            return self.damage(self.position, "the size is zero".to_owned());
        }
        self.previous = None;
        let start = self.position;
        let mut at = start;
        loop {
            let bytes = self.source.peek(at, SEQUENTIAL_READ_BYTES)?;
            if bytes.is_empty() {
                let message =
                    format!("after {} blocks only zeros follow, {} bytes", self.next_index, at - start);
                self.log.push(Notice::new(NoticeCode::Truncated, message).at(start).counting(at - start));
                self.finish(EndReason::Torn);
                return Ok(());
            }
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            let all_zero = zeros == bytes.len();
            at += zeros as u64;
            if !all_zero {
                // No block can begin with its size field inside the zeros.
                let from = at.saturating_sub(3).max(start);
                return self.damage(from, "the size is zero, but more than zeros follows".to_owned());
            }
            self.source.release(at.saturating_sub(BLOCK_HEADER_BYTES as u64));
        }
    }

    /// The input ends inside an item. If a damaged size field is to blame, blocks follow after all.
    fn torn(&mut self, what: &str) -> Result<(), TraceError> {
        if self.salvage {
            let (start, found) = self.search(self.position)?;
            if !found.at_end {
                self.resume(start, format!("{what}, as its size has it"), found);
                return Ok(());
            }
        }
        let lost = self.source.bytes_from(self.position)?;
        let message = format!("truncated after {} blocks: {what}; {lost} bytes unreadable", self.next_index);
        self.log.push(Notice::new(NoticeCode::Truncated, message).at(self.position).counting(lost));
        self.finish(EndReason::Torn);
        Ok(())
    }

    /// What stands at the position is no item. Goes on behind the damage when salvage is asked for; no item begins
    /// before `from`.
    fn damage(&mut self, from: u64, what: String) -> Result<(), TraceError> {
        if self.salvage {
            let (start, found) = self.search(from)?;
            self.resume(start, what, found);
        } else {
            let lost = self.source.bytes_from(self.position)?;
            let message = format!("{what}; reading stops here, {lost} bytes unread");
            self.log.push(Notice::new(NoticeCode::BadBlockHeader, message).at(self.position).counting(lost));
            self.finish(EndReason::Damage);
        }
        Ok(())
    }

    /// Searches for the next item behind the position. If the block before it does not decode, its own length may be
    /// what led here, and the search begins inside that block. Returns where the damage begins as well.
    fn search(&mut self, from: u64) -> Result<(u64, Found), TraceError> {
        let damaged = if self.previous_is_damaged()? { self.previous } else { None };
        let (start, from) = match damaged {
            Some(previous) => (previous.offset, previous.offset + 1),
            None => (self.position, from.max(self.position + 1)),
        };
        Ok((start, search(&mut self.source, from, &self.sections, &mut self.search_work)?))
    }

    fn previous_is_damaged(&mut self) -> Result<bool, TraceError> {
        let Some(previous) = self.previous else { return Ok(false) };
        Ok(!is_sound_block(&mut self.source, previous.offset, &mut self.scratch)?)
    }

    /// Reports the skipped range and continues at what the search found.
    fn resume(&mut self, start: u64, what: String, found: Found) {
        self.log.push(Notice::new(NoticeCode::BadBlockHeader, what).at(self.position));
        let skipped = found.offset - start;
        let mut message = format!("{skipped} bytes skipped, to offset {}", found.offset);
        if found.untested > 0 {
            message += &format!("; {} places in it looked like blocks and were not tried", found.untested);
        }
        self.log.push(Notice::new(NoticeCode::Skipped, message).at(start).counting(skipped));
        self.position = found.offset;
        self.previous = None;
        self.lead = Lead::Gap;
        if found.at_end {
            self.finish(EndReason::Damage);
        }
    }

    fn finish(&mut self, reason: EndReason) {
        self.end = Some(SequenceEnd { offset: self.position, reason, lead: self.lead });
    }
}

/// Moves the place of a notice from the start of a section's body to the start of the file.
pub(crate) fn shifted(mut notice: Notice, base: u64) -> Notice {
    notice.offset = Some(base + notice.offset.unwrap_or(0));
    notice
}
