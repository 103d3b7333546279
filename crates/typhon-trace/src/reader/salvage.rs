//! The search for the next sound place after damage (format spec, "Salvage").
//!
//! Every byte offset is a candidate. Cheap tests come first: the size fields of a block header are in range (true for
//! about one random offset in 2^24), the LZ4 sequences add up to the stated size, and only then the block is
//! decompressed and its records are walked. What the tests cost is charged to a budget that grows with the file
//! offset, so that a file made of plausible headers costs linear time as well; a candidate that comes while the budget
//! is spent is passed over.

use super::lz4_probe::probe;
use super::source::{SEQUENTIAL_READ_BYTES, Source};
use crate::TraceError;
use crate::block::{BLOCK_HEADER_BYTES, BlockHeader};
use crate::record::RecordWalk;
use crate::trailer::Section;

/// Work that all searches of a file may do at its beginning, in bytes of output: four blocks of the largest size.
const BUDGET_BASE: u64 = 64 << 20;
/// Work that each byte of file offset adds.
const BUDGET_PER_BYTE: u64 = 4;

/// Where a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// Offset of the first sound item, or the end of the input.
    pub(crate) offset: u64,
    /// The input ends at `offset`.
    pub(crate) at_end: bool,
    /// Plausible places that were passed over because the budget was spent.
    pub(crate) untested: u64,
}

/// Searches forward from `from` for a block, a span-name table or one of the sections whose offsets the file header
/// gives. Bytes before the found place are released. `spent` carries the work from one search of a file to the next.
pub(crate) fn search<S: Source>(
    source: &mut S,
    from: u64,
    sections: &[(u64, Section)],
    spent: &mut u64,
) -> Result<Found, TraceError> {
    let mut search = Search { source, spent, untested: 0, sections, scratch: Vec::new() };
    let mut position = from;
    loop {
        search.source.release(position);
        let chunk = search.source.peek(position, SEQUENTIAL_READ_BYTES)?;
        if chunk.len() < 4 {
            let offset = position + chunk.len() as u64;
            return Ok(Found { offset, at_end: true, untested: search.untested });
        }
        match next_candidate(chunk, position, sections) {
            Err(tested) => position += tested as u64,
            Ok(skip) => {
                position += skip as u64;
                if search.is_sound_item(position)? {
                    return Ok(Found { offset: position, at_end: false, untested: search.untested });
                }
                position += 1;
            }
        }
    }
}

/// Does the block at `offset` pass every test there is: header in range, exact decompressed size, exact walk?
pub(crate) fn is_sound_block<S: Source>(
    source: &mut S,
    offset: u64,
    scratch: &mut Vec<u8>,
) -> Result<bool, TraceError> {
    let Some(header) = header_at(source, offset)? else { return Ok(false) };
    let compressed_bytes = header.compressed_bytes as usize;
    let data = source.peek(offset + BLOCK_HEADER_BYTES as u64, compressed_bytes)?;
    Ok(data.len() == compressed_bytes && decodes_exactly(data, header, scratch))
}

/// Offset in `chunk` of the first place that deserves a closer look, or how many offsets were ruled out.
fn next_candidate(chunk: &[u8], base: u64, sections: &[(u64, Section)]) -> Result<usize, usize> {
    // The last offsets of the chunk have no room for a header; they come first in the next chunk, or the input ends.
    let complete = chunk.len().saturating_sub(BLOCK_HEADER_BYTES - 1);
    for (at, window) in chunk.windows(BLOCK_HEADER_BYTES).enumerate() {
        // Sizes are at most 2^24, so that the top byte rules most offsets out before anything else is looked at.
        if window[3] <= 1 && plausible_header(window).is_some() {
            return Ok(at);
        }
        if window[0].is_ascii_uppercase()
            && (is_span_magic(window) || is_section(window, base + at as u64, sections))
        {
            return Ok(at);
        }
    }
    if complete > 0 {
        return Err(complete);
    }
    (0..=chunk.len() - 4)
        .find(|&at| is_section(&chunk[at..], base + at as u64, sections))
        .ok_or(chunk.len() - 3)
}

fn is_section(bytes: &[u8], offset: u64, sections: &[(u64, Section)]) -> bool {
    sections.iter().any(|(at, section)| *at == offset && bytes.starts_with(&section.magic()))
}

fn is_span_magic(bytes: &[u8]) -> bool {
    bytes.starts_with(&Section::SpanNames.magic())
}

/// A block header in range. Stricter than the reader: a salvaged block holds at least one record.
fn plausible_header(bytes: &[u8]) -> Option<BlockHeader> {
    BlockHeader::parse(bytes.first_chunk()?).ok().filter(|header| header.records > 0)
}

fn header_at<S: Source>(source: &mut S, offset: u64) -> Result<Option<BlockHeader>, TraceError> {
    Ok(plausible_header(source.peek(offset, BLOCK_HEADER_BYTES)?))
}

/// Decompresses to exactly the stated size, and the records add up to exactly that size and the stated count.
fn decodes_exactly(data: &[u8], header: BlockHeader, scratch: &mut Vec<u8>) -> bool {
    let Ok(records) = header.decompress(data, scratch) else { return false };
    let mut walk = RecordWalk::new(records);
    let count = walk.by_ref().count();
    walk.fault().is_none() && count == header.records as usize
}

struct Search<'a, S> {
    source: &'a mut S,
    /// Work done by all searches of the file so far.
    spent: &'a mut u64,
    untested: u64,
    sections: &'a [(u64, Section)],
    scratch: Vec<u8>,
}

impl<S: Source> Search<'_, S> {
    fn is_sound_item(&mut self, offset: u64) -> Result<bool, TraceError> {
        if *self.spent > BUDGET_BASE.saturating_add(offset.saturating_mul(BUDGET_PER_BYTE)) {
            self.untested += 1;
            return Ok(false);
        }
        let magic = self.source.peek(offset, 4)?;
        if is_section(magic, offset, self.sections) {
            return Ok(true);
        }
        if is_span_magic(magic) { self.is_span_table(offset) } else { self.is_block(offset) }
    }

    fn is_block(&mut self, offset: u64) -> Result<bool, TraceError> {
        let Some(header) = header_at(self.source, offset)? else { return Ok(false) };
        let compressed_bytes = header.compressed_bytes as usize;
        let data = self.source.peek(offset + BLOCK_HEADER_BYTES as u64, compressed_bytes)?;
        if data.len() < compressed_bytes {
            return Ok(false);
        }
        let size = header.uncompressed_bytes as usize;
        let probed = probe(data, size);
        *self.spent += probed.steps;
        if probed.output_bytes != Some(size) {
            return Ok(false);
        }
        *self.spent += size as u64;
        Ok(decodes_exactly(data, header, &mut self.scratch))
    }

    /// A span-name table has no size or checksum of its own: it counts when its names are text and something known
    /// follows it.
    fn is_span_table(&mut self, offset: u64) -> Result<bool, TraceError> {
        const MAX_ENTRY_BYTES: usize = 2 + 1 + 255;
        let head = self.source.peek(offset + 4, 2)?;
        let Some(count) = head.first_chunk().map(|raw| u16::from_le_bytes(*raw)) else { return Ok(false) };
        let bytes = self.source.peek(offset + 6, usize::from(count) * MAX_ENTRY_BYTES)?;
        *self.spent += u64::from(count);
        let Some(size) = span_entries_bytes(bytes, count).filter(|_| count > 0) else { return Ok(false) };
        *self.spent += size as u64;
        let end = offset + 6 + size as u64;
        let next = self.source.peek(end, 4)?;
        Ok(next.is_empty()
            || is_span_magic(next)
            || is_section(next, end, self.sections)
            || header_at(self.source, end)?.is_some())
    }
}

/// Size of `count` entries of u16 id and u8-prefixed UTF-8 name; `None` when they are not all there.
fn span_entries_bytes(bytes: &[u8], count: u16) -> Option<usize> {
    let mut at = 0;
    for _ in 0..count {
        let length = usize::from(*bytes.get(at + 2)?);
        let name = bytes.get(at + 3..at + 3 + length)?;
        std::str::from_utf8(name).ok()?;
        at += 3 + length;
    }
    Some(at)
}
