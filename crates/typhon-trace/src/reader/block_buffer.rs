//! One block in memory: its bytes as stored, its records, and what a first pass over them found.

use super::{BlockEntry, Link, Verdict};
use crate::block::{BLOCK_HEADER_BYTES, BlockFault, BlockHeader};
use crate::checksum::{
    Checksum, ChecksumNames, ClosingBlock, Crc32c, LOSS_NAMES, MARKER_BYTES, MARKER_KIND, Marker,
};
use crate::record::{Record, RecordFault, RecordWalk};
use crate::trailer::{Section, SpanNames};

/// The names that give kind 6 records a meaning of their own, as ids of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MarkerIds {
    /// The checksum names; `None` in files without checksums.
    pub(crate) checksums: Option<ChecksumNames>,
    /// The names of the loss markers.
    pub(crate) losses: LossIds,
}

impl MarkerIds {
    /// Looks up the loss markers among the names known so far.
    pub(crate) fn with_losses(checksums: Option<ChecksumNames>, names: &SpanNames) -> Self {
        let mut losses = LossIds::default();
        losses.learn(names);
        Self { checksums, losses }
    }
}

/// Ids of the names that report lost records: for want of memory, and as whole batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LossIds([Option<u16>; LOSS_NAMES.len()]);

impl LossIds {
    /// Takes note of loss markers among further names.
    pub(crate) fn learn(&mut self, names: &SpanNames) {
        for (id, name) in self.0.iter_mut().zip(LOSS_NAMES) {
            let entry = names.entries.iter().rfind(|entry| entry.name == name);
            *id = entry.map(|entry| entry.id).or(*id);
        }
    }

    fn is_empty(self) -> bool {
        self.0 == [None; LOSS_NAMES.len()]
    }

    /// How many losses a record of kind 6 reports.
    fn reported_by(self, record: &Record<'_>) -> u64 {
        let payload = record.payload().unwrap_or_default();
        let word = |at: usize| payload.get(at..)?.first_chunk().map(|raw| i32::from_le_bytes(*raw));
        let (Some(id), Some(count)) = (word(0), word(4)) else { return 0 };
        let is_loss = self.0.iter().flatten().any(|loss| i32::from(*loss) == id);
        if is_loss { u64::try_from(count).unwrap_or(0) } else { 0 }
    }
}

/// What a block turned out to be with regard to the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// An ordinary block.
    No,
    /// The closing block in its only form; its checksums tell about the block before, the header and the trailer.
    Sound(ClosingBlock),
    /// The last block, if it carries checksums of header or trailer but is not in the only form.
    Damaged,
}

/// What decoding a block found. Everything about a block except its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockSummary {
    /// Place and header.
    pub entry: BlockEntry,
    /// The data does not decompress: the block holds nothing that can be read.
    pub data_fault: Option<BlockFault>,
    /// CRC-32C of header and data as stored; `None` when the data does not decompress or the file has no checksums.
    pub crc: Option<u32>,
    /// The checksum marker at the start of the block.
    pub marker: Option<Marker>,
    /// Is it the closing block?
    pub closing: Closing,
    /// Records walked, markers and damaged ones included. To be compared with the header's count.
    pub walked_records: u32,
    /// Bytes of the records walked; less than the header's size when the walk met a fault.
    pub walked_bytes: u32,
    /// The fault that ended the walk early.
    pub record_fault: Option<RecordFault>,
    /// Spans shorter than their own header; they are left out of the events.
    pub short_spans: u32,
    /// Index in the block of the first of them.
    pub first_short_span: Option<u32>,
    /// Records delivered as events: those walked, without checksum markers and short spans.
    pub events: u32,
    /// Records that the recorder reports as lost in this block: one by one, or with whole batches.
    pub dropped_records: u64,
}

impl Closing {
    /// Verdict of the last block of a file: nothing follows that could vouch for it but its own form.
    pub(crate) fn verdict_at_end(&self) -> Verdict {
        match self {
            Self::Sound(_) => Verdict::Sound,
            Self::Damaged => Verdict::Mismatch,
            Self::No => Verdict::Unchecked,
        }
    }
}

impl BlockSummary {
    /// The checksum that is due at the start of the block: of the tables in the first, of the block before in others.
    pub(crate) fn due_checksum(&self) -> Checksum {
        if self.entry.index == 0 { Checksum::Tables } else { Checksum::Block }
    }

    /// Checksum markers; they are the first records of the block.
    pub fn leading_markers(&self) -> u32 {
        self.walked_records - self.short_spans - self.events
    }

    /// The block as the checksum chain sees it.
    pub(crate) fn link(&self) -> Link {
        let marker = self
            .marker
            .filter(|marker| marker.checksum == Checksum::Block && self.due_checksum() == Checksum::Block);
        Link { crc: self.crc, lead: self.entry.lead, claim: marker.map(|marker| marker.crc) }
    }

    fn empty(entry: BlockEntry) -> Self {
        Self {
            entry,
            data_fault: None,
            crc: None,
            marker: None,
            closing: Closing::No,
            walked_records: 0,
            walked_bytes: 0,
            record_fault: None,
            short_spans: 0,
            first_short_span: None,
            events: 0,
            dropped_records: 0,
        }
    }
}

/// A reusable buffer for one block. A reader loads it, [`BlockBuffer::decode`] makes its records available; the two
/// steps are apart so that decoding can run on other threads than reading.
#[derive(Debug, Default)]
pub struct BlockBuffer {
    stored: Vec<u8>,
    data: Vec<u8>,
    ids: MarkerIds,
    /// Does another block or span-name table follow?
    is_followed: bool,
    summary: Option<BlockSummary>,
}

impl BlockBuffer {
    /// An empty buffer; it grows to the size of the largest block it has held.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes over the stored bytes of a block.
    pub(crate) fn load(&mut self, entry: BlockEntry, ids: MarkerIds, stored: &[u8]) {
        debug_assert_eq!(stored.len(), entry.stored_bytes());
        self.stored.clear();
        self.stored.extend_from_slice(stored);
        self.begin(entry, ids);
    }

    /// Room for the stored bytes of a block, to be filled by the caller.
    pub(crate) fn load_into(&mut self, entry: BlockEntry, ids: MarkerIds) -> &mut [u8] {
        self.stored.resize(entry.stored_bytes(), 0);
        self.begin(entry, ids);
        &mut self.stored
    }

    /// What stands behind the loaded block, [`BlockEntry::lookahead_bytes`] of it.
    pub(crate) fn set_lookahead(&mut self, next: &[u8]) {
        self.is_followed = opens_block(next);
    }

    fn begin(&mut self, entry: BlockEntry, ids: MarkerIds) {
        self.ids = ids;
        self.is_followed = false;
        self.summary = Some(BlockSummary::empty(entry));
    }

    /// Decompresses the loaded block and makes one pass over its records. Faults are part of the summary. Does
    /// nothing when no block is loaded.
    pub fn decode(&mut self) {
        let Some(summary) = &mut self.summary else { return };
        let data = self.stored.get(BLOCK_HEADER_BYTES..).unwrap_or_default();
        match summary.entry.header.decompress(data, &mut self.data) {
            Err(fault) => summary.data_fault = Some(fault),
            Ok(records) => {
                if let Some(names) = &self.ids.checksums {
                    summary.crc = Some(Crc32c::of(&self.stored).value());
                    summary.marker = names.leading_marker(records);
                    summary.closing = closing(names, records, &self.stored, self.is_followed);
                }
                walk_records(summary, records, self.ids.losses);
            }
        }
    }

    /// What decoding found; `None` before the first block.
    pub fn summary(&self) -> Option<&BlockSummary> {
        self.summary.as_ref()
    }

    /// The block as it is stored, 12-byte header included.
    pub fn stored(&self) -> &[u8] {
        &self.stored
    }

    /// The decompressed bytes up to the first fault, checksum markers included.
    pub fn walked(&self) -> &[u8] {
        let bytes = self.summary.as_ref().map_or(0, |summary| summary.walked_bytes as usize);
        &self.data[..bytes]
    }

    /// The bytes of all events, when they are in one piece; `None` when short spans stand between them.
    pub fn events_bytes(&self) -> Option<&[u8]> {
        let summary = self.summary.as_ref()?;
        (summary.short_spans == 0).then(|| &self.walked()[marker_bytes(summary)..])
    }

    /// The events of the block in stored order, each with its offset in the decompressed block. Checksum markers and
    /// spans shorter than their own header are left out.
    pub fn events(&self) -> Events<'_> {
        let (skip, skip_short_spans) = match &self.summary {
            Some(summary) => (marker_bytes(summary), summary.short_spans > 0),
            None => (0, false),
        };
        let walked = self.walked();
        Events { walk: RecordWalk::new(&walked[skip..]), base: skip, skip_short_spans }
    }
}

/// Iterator over the events of a block.
#[derive(Debug, Clone)]
pub struct Events<'a> {
    walk: RecordWalk<'a>,
    base: usize,
    skip_short_spans: bool,
}

impl Events<'_> {
    /// Offset in the decompressed block of the record that comes next.
    pub fn offset(&self) -> usize {
        self.base + self.walk.offset()
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        loop {
            let record = self.walk.next()?;
            if !self.skip_short_spans || !record.is_short_span() {
                return Some(record);
            }
        }
    }
}

/// Bytes of checksum markers at the start of a block: one, or the whole of a closing block.
fn marker_bytes(summary: &BlockSummary) -> usize {
    match (&summary.closing, &summary.marker) {
        (Closing::Sound(_) | Closing::Damaged, _) => summary.walked_bytes as usize,
        (Closing::No, Some(_)) => MARKER_BYTES,
        (Closing::No, None) => 0,
    }
}

fn closing(names: &ChecksumNames, records: &[u8], stored: &[u8], is_followed: bool) -> Closing {
    match ClosingBlock::parse(names, records) {
        Some(closing) if closing.encode(names) == stored => Closing::Sound(closing),
        // Somebody's own instants may look similar; only in the last block must they be a damaged closing block.
        _ if is_followed => Closing::No,
        Some(_) => Closing::Damaged,
        None if resembles_closing_block(names, records) => Closing::Damaged,
        None => Closing::No,
    }
}

/// A block of the right size with a checksum of header or trailer in it: a closing block that was damaged.
fn resembles_closing_block(names: &ChecksumNames, records: &[u8]) -> bool {
    let is_end_marker = |record: Record<'_>| {
        let checksum = names.marker(&record).map(|marker| marker.checksum);
        matches!(checksum, Some(Checksum::Header | Checksum::Trailer))
    };
    records.len() == 3 * MARKER_BYTES && RecordWalk::new(records).any(is_end_marker)
}

/// Do these bytes begin another block, or a span-name table?
fn opens_block(next: &[u8]) -> bool {
    next.starts_with(&Section::SpanNames.magic())
        || next.first_chunk().is_some_and(|header| BlockHeader::parse(header).is_ok())
}

fn walk_records(summary: &mut BlockSummary, records: &[u8], losses: LossIds) {
    let mut walk = RecordWalk::new(records);
    let mut count = 0;
    for record in walk.by_ref() {
        if record.is_short_span() {
            summary.short_spans += 1;
            summary.first_short_span.get_or_insert(count);
        } else if record.kind() == MARKER_KIND && !losses.is_empty() {
            summary.dropped_records += losses.reported_by(&record);
        }
        count += 1;
    }
    summary.walked_records = count;
    summary.walked_bytes = walk.offset() as u32;
    summary.record_fault = walk.fault();
    let markers = match summary.closing {
        Closing::No => u32::from(summary.marker.is_some()),
        Closing::Sound(_) | Closing::Damaged => count - summary.short_spans,
    };
    summary.events = count - summary.short_spans - markers;
}
