//! Records a trace so that it can be read at any moment, whatever happens to the recorder.
//!
//! Order on disk: header with its close-time fields zero, metadata tables, a span name table with the checksum names
//! — all handed to the operating system before the first block — then blocks, the closing block, trailer sections,
//! and at last the header once more, in place. A file without the last step reads as "not closed cleanly" and is
//! whole up to its last block.
//!
//! - **The writer has no clock and no thread.** A block is cut at 262,124 bytes or 8,191 records; the caller calls
//!   [`TraceWriter::flush`] at least once a second, so that a crash loses no more than that.
//! - **Checksums** (see [`crate::checksum`]) are written into every file, recorded or copied.
//! - **Losses are in the file.** Records that could not be written, and those that the caller reports with
//!   [`TraceWriter::records_dropped`], appear as a loss marker in the next block.
//! - **After a failed write** the file is cut back to its last whole block before anything else is written.
//! - **Deterministic:** the same calls give the same bytes.
//!
//! Copying tools use [`TraceWriter::copy_records`], which keeps records of unknown and removed kinds, start from the
//! header of the source, which keeps its dialect and clock, and choose free name ids with
//! [`WriterOptions::avoiding`]. Checksum markers and checksum names of the source are left behind
//! ([`crate::checksum::ChecksumNames::events`], [`crate::checksum::is_checksum_name`]).

mod batch;
mod close;
mod sink;

pub use close::{CloseInfo, CloseProblem, CloseReport, CloseStep};
pub use sink::TraceSink;

use batch::{Batch, Losses, Run};
use sink::Output;

use crate::block::BlockEncoder;
use crate::checksum::{Checksum, ChecksumNames, Crc32c, DROPPED_RECORDS_NAME, Marker, is_checksum_name};
use crate::header::{FileHeader, FileOffsets, HEADER_BYTES};
use crate::record::{Record, RecordWalk};
use crate::registry::{self, Status};
use crate::tables::{ROUTING_ID_UNKNOWN, Tables, TablesEncoded};
use crate::trailer::SpanNames;
use crate::{Notice, RecordRefusal, TraceError};

/// Kind of the records that [`FileHeader::tick_count`] counts.
const TICK_START_KIND: u8 = 0;
/// A span name table counts its entries in a u16; one place is left for the name of the loss marker.
const MAX_PENDING_NAMES: usize = 65_534;

/// What a writer needs besides header and tables.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// Slot of the markers: that of the thread which writes the file.
    pub slot: u8,
    /// Span name ids of the checksum names.
    pub checksum_names: ChecksumNames,
    /// Span name id of the loss marker, unless the caller names it itself.
    pub dropped_records_id: u16,
}

impl WriterOptions {
    /// Options of a recording: the highest ids are the writer's own.
    pub fn new(slot: u8) -> Self {
        Self { slot, checksum_names: ChecksumNames::DEFAULT, dropped_records_id: 65_531 }
    }

    /// Options of a copy: ids that the source leaves free.
    ///
    /// # Errors
    /// [`TraceError::Limit`] when the source leaves fewer than five ids.
    pub fn avoiding(slot: u8, taken: impl IntoIterator<Item = u16>) -> Result<Self, TraceError> {
        let mut taken: std::collections::HashSet<u16> = taken.into_iter().collect();
        let used = taken.len() as u64;
        let full =
            || TraceError::Limit { what: "span name ids in use".to_owned(), value: used, limit: 65_531 };
        let checksum_names = ChecksumNames::avoiding(taken.iter().copied()).ok_or_else(full)?;
        taken.extend(Checksum::ALL.map(|checksum| checksum_names.id(checksum)));
        let dropped_records_id = (0..=u16::MAX).rev().find(|id| !taken.contains(id)).ok_or_else(full)?;
        Ok(Self { slot, checksum_names, dropped_records_id })
    }
}

/// Numbers of what is in the file so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Bytes of the file.
    pub bytes: u64,
    /// Event blocks.
    pub blocks: u64,
    /// Records, loss markers included, checksum markers not.
    pub records: u64,
    /// TickStart records.
    pub ticks: u32,
}

/// Writes one trace file.
#[derive(Debug)]
pub struct TraceWriter<S> {
    output: Output<S>,
    header: FileHeader,
    options: WriterOptions,
    encoder: BlockEncoder,
    batch: Batch,
    written: Written,
    /// Checksum that the marker of the next block will carry: of the tables, or of the last block.
    link: Crc32c,
    /// Names to be written before the next block.
    pending_names: SpanNames,
    dropped_records_named: bool,
    losses: Losses,
    dropped_records: u64,
    /// The routing ids, from the first to the last, with everything between them, all taken as unknown.
    routing_patch: Option<RoutingPatch>,
    removed_kinds: [bool; 256],
    notices: Vec<Notice>,
    closed: Option<CloseReport>,
}

#[derive(Debug)]
struct RoutingPatch {
    file_offset: u64,
    bytes: Vec<u8>,
}

/// Which records the writer takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    /// Those that a recorder of today may write.
    Record,
    /// Everything that can be stepped over.
    Copy,
}

impl<S: TraceSink> TraceWriter<S> {
    /// Starts a file: empties the sink, writes header, tables and checksum names and hands them to the operating
    /// system.
    ///
    /// Of `header`, the table counts are taken from `tables`, and flags, section offsets, transaction number at the
    /// end, duration and tick count are zero until [`TraceWriter::close`].
    ///
    /// # Errors
    /// [`TraceError::BadClockFrequency`], [`TraceError::Limit`] for tables that the format cannot hold,
    /// [`TraceError::Io`].
    pub fn create(
        sink: S,
        header: FileHeader,
        tables: &Tables,
        options: WriterOptions,
    ) -> Result<Self, TraceError> {
        if header.timestamp_frequency <= 0 {
            return Err(TraceError::BadClockFrequency { found: header.timestamp_frequency });
        }
        let encoded = tables.encode()?;
        let header = opening_header(header, tables);
        let mut names = SpanNames::default();
        options.checksum_names.add_to(&mut names);
        let mut names_bytes = Vec::new();
        names.encode(&mut names_bytes)?;
        let mut link = Crc32c::of_tables(&encoded.bytes, &encoded.routing_id_offsets);
        link.update(&names_bytes);
        let mut output = Output::new(sink);
        output.append(&[&header.encode(), &encoded.bytes, &names_bytes])?;
        output.flush()?;
        Ok(Self {
            written: Written { bytes: output.end(), ..Written::default() },
            output,
            header,
            options,
            encoder: BlockEncoder::default(),
            batch: Batch::new(),
            link,
            pending_names: SpanNames::default(),
            dropped_records_named: false,
            losses: Losses::default(),
            dropped_records: 0,
            routing_patch: RoutingPatch::of(&encoded),
            removed_kinds: std::array::from_fn(|id| {
                registry::kind(id as u8).is_some_and(|kind| kind.status == Status::Removed)
            }),
            notices: encoded.notices,
            closed: None,
        })
    }

    /// Adds names for kind 6 records. They stand in the file before the block that is written next.
    ///
    /// # Errors
    /// [`TraceError::ReservedName`] for an id or a name that the writer uses itself; [`TraceError::Limit`] above
    /// 65,534 names between two blocks; [`TraceError::AlreadyClosed`]. Nothing is taken then.
    pub fn span_names(&mut self, names: &SpanNames) -> Result<(), TraceError> {
        self.check_open()?;
        let reserved = names.entries.iter().find(|entry| {
            self.options.checksum_names.contains(entry.id)
                || is_checksum_name(&entry.name)
                || (entry.id == self.options.dropped_records_id && entry.name != DROPPED_RECORDS_NAME)
        });
        if let Some(entry) = reserved {
            return Err(TraceError::ReservedName { id: entry.id, name: entry.name.clone() });
        }
        let pending = self.pending_names.entries.len() + names.entries.len();
        if pending > MAX_PENDING_NAMES {
            let what = "span names between two blocks".to_owned();
            return Err(TraceError::Limit { what, value: pending as u64, limit: MAX_PENDING_NAMES as u64 });
        }
        for entry in &names.entries {
            if entry.name == DROPPED_RECORDS_NAME {
                self.options.dropped_records_id = entry.id;
                self.dropped_records_named = true;
            }
            self.pending_names.entries.push(entry.clone());
        }
        Ok(())
    }

    /// Adds whole records, one after the other, and writes every block that gets full.
    ///
    /// # Errors
    /// - [`TraceError::RefusedRecord`] for an illegal size, a span shorter than its own header or a removed kind: the
    ///   records before it are taken, it and the rest are not.
    /// - [`TraceError::Io`]: the records of the block that could not be written, and those that are left of
    ///   `records`, are counted as dropped. The writer stays usable.
    /// - [`TraceError::AlreadyClosed`].
    pub fn write_records(&mut self, records: &[u8]) -> Result<(), TraceError> {
        self.append(records, Policy::Record)
    }

    /// Writes whole records as a block of their own and hands it to the operating system. At most 262,124 bytes and
    /// 8,191 records, or they take several blocks.
    ///
    /// Unlike [`TraceWriter::write_records`] this is for callers that account for losses themselves: after an error
    /// nothing counts as dropped, and the records are the caller's again, except for the blocks that preceded the
    /// failure.
    ///
    /// # Errors
    /// As [`TraceWriter::write_records`].
    pub fn write_block(&mut self, records: &[u8]) -> Result<(), TraceError> {
        self.flush()?;
        let before = (self.losses.clone(), self.dropped_records);
        let written = self.write_records(records).and_then(|()| self.flush());
        if written.is_err() {
            self.batch.clear();
            (self.losses, self.dropped_records) = before;
        }
        written
    }

    /// Adds whole records of another trace as they are: removed kinds, kinds that this build does not know and spans
    /// too short for their own header are kept.
    ///
    /// # Errors
    /// As [`TraceWriter::write_records`], except that no kind is refused.
    pub fn copy_records(&mut self, records: &[u8]) -> Result<(), TraceError> {
        self.append(records, Policy::Copy)
    }

    /// Reports records that were lost before they reached the writer; the next block begins with a marker that says
    /// so. The counts of a slot saturate at 2^40 between two blocks.
    pub fn records_dropped(&mut self, slot: u8, count: u64) {
        self.dropped_records = self.dropped_records.saturating_add(count);
        self.losses.add(slot, count);
    }

    /// Writes the open block, if it holds anything, and hands it to the operating system.
    ///
    /// # Errors
    /// [`TraceError::Io`]; the records of the block are counted as dropped then. [`TraceError::AlreadyClosed`].
    pub fn flush(&mut self) -> Result<(), TraceError> {
        self.check_open()?;
        self.cut_block()?;
        self.output.flush()
    }

    /// What is in the file so far; records of the open block are not.
    pub fn written(&self) -> Written {
        self.written
    }

    /// Texts and lists of the tables that had to be cut.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Gives the sink back. Records of the open block are lost unless the trace was flushed or closed before.
    pub fn into_inner(self) -> S {
        self.output.into_sink()
    }

    /// Gives the sink back, and the report if the file was closed.
    pub fn into_parts(self) -> (S, Option<CloseReport>) {
        (self.output.into_sink(), self.closed)
    }

    fn check_open(&self) -> Result<(), TraceError> {
        if self.closed.is_some() { Err(TraceError::AlreadyClosed) } else { Ok(()) }
    }

    fn append(&mut self, records: &[u8], policy: Policy) -> Result<(), TraceError> {
        self.check_open()?;
        let mut run = Run::default();
        let mut taken = 0;
        while taken + run.bytes < records.len() {
            let at = taken + run.bytes;
            let record = match self.admit(&records[at..], policy) {
                Ok(record) => record,
                Err(refusal) => {
                    self.batch.push(&records[taken..at], &run);
                    return Err(TraceError::RefusedRecord { offset: at as u64, refusal });
                }
            };
            if self.batch.is_empty() && run.records == 0 {
                self.open_batch(record.timestamp());
            }
            if self.batch.has_room(&run, &record) {
                run.add(&record);
                continue;
            }
            self.batch.push(&records[taken..at], &run);
            (taken, run) = (at, Run::default());
            if let Err(error) = self.cut_block() {
                let left = RecordWalk::new(&records[taken..]).count() as u64;
                self.records_dropped(self.options.slot, left);
                return Err(error);
            }
        }
        self.batch.push(&records[taken..], &run);
        Ok(())
    }

    fn admit<'r>(&self, records: &'r [u8], policy: Policy) -> Result<Record<'r>, RecordRefusal> {
        let record = Record::parse(records)?;
        if policy == Policy::Record {
            if self.removed_kinds[usize::from(record.kind())] {
                return Err(RecordRefusal::RemovedKind { kind: record.kind() });
            }
            if record.is_short_span() {
                return Err(RecordRefusal::ShortSpan { size: record.size() });
            }
        }
        Ok(record)
    }

    /// Puts the loss markers in front of a new block.
    fn open_batch(&mut self, timestamp: i64) {
        if self.losses.is_empty() {
            return;
        }
        if !self.dropped_records_named {
            self.pending_names.push(self.options.dropped_records_id, DROPPED_RECORDS_NAME);
            self.dropped_records_named = true;
        }
        self.batch.push_losses(&mut self.losses, timestamp, self.options.dropped_records_id);
    }

    /// Writes the open block with its marker, and the pending names before it.
    fn cut_block(&mut self) -> Result<(), TraceError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let names = self.encode_pending_names()?;
        let (checksum, crc) = self.due_checksum(&names);
        let marker =
            Marker { checksum, crc, slot: self.options.slot, timestamp: self.batch.first_timestamp() };
        let (records, count) = self.batch.finish(&marker.encode(&self.options.checksum_names));
        let block = self.encoder.encode(records, count);
        let result = self.output.append(&[&names, block]);
        if result.is_ok() {
            self.link = Crc32c::of(block);
            self.pending_names.entries.clear();
            self.written.blocks += 1;
            self.written.records += self.batch.records();
            self.written.ticks = self.written.ticks.saturating_add(self.batch.ticks());
            self.written.bytes = self.output.end();
        } else {
            let lost = self.batch.take_losses(&mut self.losses);
            self.records_dropped(self.options.slot, lost);
        }
        self.batch.clear();
        result
    }

    /// The checksum that the next block begins with, given the span name table that stands before it.
    fn due_checksum(&self, names: &[u8]) -> (Checksum, u32) {
        let mut link = self.link;
        link.update(names);
        (if self.written.blocks == 0 { Checksum::Tables } else { Checksum::Block }, link.value())
    }

    fn encode_pending_names(&self) -> Result<Vec<u8>, TraceError> {
        let mut bytes = Vec::new();
        if !self.pending_names.entries.is_empty() {
            self.pending_names.encode(&mut bytes)?;
        }
        Ok(bytes)
    }
}

/// The header as it stands in the file until close.
fn opening_header(header: FileHeader, tables: &Tables) -> FileHeader {
    // The tables were encoded, so that none of them has more entries than a u16 can count.
    FileHeader {
        flags: 0,
        system_count: tables.systems.len() as u16,
        archetype_count: tables.archetypes.len() as u16,
        component_type_count: tables.component_types.len() as u16,
        track_count: tables.tracks.len() as u16,
        dag_count: tables.dags.len() as u16,
        offsets: FileOffsets::default(),
        tsn_max: 0,
        duration_ticks: 0,
        tick_count: 0,
        ..header
    }
}

impl RoutingPatch {
    fn of(encoded: &TablesEncoded) -> Option<Self> {
        let (&first, &last) = (encoded.routing_id_offsets.first()?, encoded.routing_id_offsets.last()?);
        let unknown = ROUTING_ID_UNKNOWN.to_le_bytes();
        let mut bytes = encoded.bytes[first..last + unknown.len()].to_vec();
        for offset in &encoded.routing_id_offsets {
            bytes[offset - first..][..unknown.len()].copy_from_slice(&unknown);
        }
        Some(Self { file_offset: (HEADER_BYTES + first) as u64, bytes })
    }
}
