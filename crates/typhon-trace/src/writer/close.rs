//! The clean end of a file.

use super::{TraceSink, TraceWriter};
use crate::TraceError;
use crate::checksum::{ClosingBlock, Crc32c};
use crate::header::{FLAG_MULTIPLE_ENGINES, FileHeader, FileOffsets};
use crate::tables::Tables;
use crate::trailer::{CpuSamples, FileTable, QueryStrings, SourceManifest};

/// What is known only at the end of a recording.
#[derive(Debug, Clone, Default)]
pub struct CloseInfo {
    /// Trace clock at the stop; the time of the closing block.
    pub stop_timestamp: i64,
    /// Trace-clock ticks from start to stop.
    pub duration_ticks: i64,
    /// Transaction sequence number at the stop.
    pub tsn_max: i64,
    /// More than one engine was live during the capture: routing ids are replaced by "unknown".
    pub multiple_engines: bool,
    /// TickStart records, if not those that the writer has counted.
    pub tick_count: Option<u32>,
    /// Source files and the places in them; the format has both or neither.
    pub sources: Option<(FileTable, SourceManifest)>,
    /// Identity, rates and first transaction number, if they were not known when the file was created.
    pub identity: Option<FileHeader>,
    /// Metadata tables, if they were not known when the file was created; they become a trailer section.
    pub tables: Option<Tables>,
    /// CPU samples; written unless empty.
    pub cpu_samples: CpuSamples,
    /// Texts of query definitions; written unless there is nothing but the empty text.
    pub query_strings: QueryStrings,
}

/// How the file was closed.
#[derive(Debug, Default)]
pub struct CloseReport {
    /// Bytes of the file.
    pub bytes: u64,
    /// Event blocks in the file.
    pub blocks: u64,
    /// Records in the file, loss markers included, checksum markers not.
    pub records: u64,
    /// TickStart records in the file.
    pub ticks: u32,
    /// Records that are not in the file: those reported to the writer and those that it could not write.
    pub dropped_records: u64,
    /// The header was patched and everything is on stable storage.
    pub complete: bool,
    /// What went wrong, in order. The file is readable in any case.
    pub problems: Vec<CloseProblem>,
}

/// A step of closing that failed.
#[derive(Debug)]
pub struct CloseProblem {
    /// The step.
    pub step: CloseStep,
    /// The cause.
    pub error: TraceError,
}

/// The steps of closing, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CloseStep {
    /// Writing the open block. Its records are lost.
    LastBlock,
    /// Replacing the routing ids. They are ambiguous, and the header says so.
    RoutingIds,
    /// Encoding file table and source manifest. The file is without them.
    Sources,
    /// Encoding late metadata tables. The file is without them.
    Tables,
    /// Encoding the CPU samples. The file is without them.
    CpuSamples,
    /// Encoding the query texts. The file is without them.
    QueryStrings,
    /// Writing the trailer sections. The file is without them.
    Trailer,
    /// Writing the closing block. The file reads as not closed.
    ClosingBlock,
    /// Handing everything to the operating system. The file reads as not closed.
    Flush,
    /// Rewriting the header. The file reads as not closed.
    Header,
    /// Getting everything onto stable storage.
    Sync,
}

/// Encoded trailer sections and their places in the file.
#[derive(Debug, Default)]
struct Trailer {
    /// File offset of the first byte.
    start: u64,
    bytes: Vec<u8>,
    offsets: FileOffsets,
}

impl<S: TraceSink> TraceWriter<S> {
    /// Writes what is left, the closing block and the trailer sections, and completes the header. Further calls
    /// return the first report. A file that could not be completed is readable up to its last block.
    pub fn close(&mut self, info: &CloseInfo) -> &CloseReport {
        if self.closed.is_none() {
            let mut problems = Vec::new();
            self.end_blocks(info, &mut problems);
            let complete = self.complete_file(info, &mut problems);
            self.written.bytes = self.output.end();
            self.closed = Some(CloseReport {
                bytes: self.written.bytes,
                blocks: self.written.blocks,
                records: self.written.records,
                ticks: self.written.ticks,
                dropped_records: self.dropped_records,
                complete,
                problems,
            });
        }
        self.closed.get_or_insert_default()
    }

    /// Writes the open block, then further blocks until no loss is left unreported. When the open block does not fit
    /// on the disk any more, its loss may.
    fn end_blocks(&mut self, info: &CloseInfo, problems: &mut Vec<CloseProblem>) {
        let mut attempts = 2;
        while attempts > 0 {
            if self.batch.is_empty() {
                self.open_batch(info.stop_timestamp);
            }
            let cut = self.cut_block();
            if !succeeded(CloseStep::LastBlock, cut, problems) {
                attempts -= 1;
            } else if self.losses.is_empty() {
                return;
            }
        }
    }

    fn complete_file(&mut self, info: &CloseInfo, problems: &mut Vec<CloseProblem>) -> bool {
        if info.multiple_engines {
            let patched = self.patch_routing_ids();
            succeeded(CloseStep::RoutingIds, patched, problems);
        }
        let Some(header) = self.write_end(info, problems) else { return false };
        let flushed = self.output.flush();
        if !succeeded(CloseStep::Flush, flushed, problems) {
            return false;
        }
        let patched = self.output.patch(0, &header.encode());
        if !succeeded(CloseStep::Header, patched, problems) {
            return false;
        }
        let synced = self.output.sync();
        succeeded(CloseStep::Sync, synced, problems)
    }

    fn patch_routing_ids(&mut self) -> Result<(), TraceError> {
        self.routing_patch.as_ref().map_or(Ok(()), |patch| self.output.patch(patch.file_offset, &patch.bytes))
    }

    /// Writes the closing block and the trailer sections, or the closing block alone when there is no room for more.
    /// Returns the header that belongs to it.
    fn write_end(&mut self, info: &CloseInfo, problems: &mut Vec<CloseProblem>) -> Option<FileHeader> {
        let names = match self.encode_pending_names() {
            Ok(names) => names,
            Err(error) => {
                problems.push(CloseProblem { step: CloseStep::ClosingBlock, error });
                return None;
            }
        };
        let mut trailer = Trailer::at(self.output.end() + (names.len() + ClosingBlock::BYTES) as u64);
        trailer.encode(info, problems);
        let mut header = self.closing_header(info, &trailer);
        let mut result = self.write_closing_block(info, &header, &names, &trailer);
        if result.is_err() && !trailer.bytes.is_empty() {
            succeeded(CloseStep::Trailer, result, problems);
            trailer = Trailer::default();
            header = self.closing_header(info, &trailer);
            result = self.write_closing_block(info, &header, &names, &trailer);
        }
        succeeded(CloseStep::ClosingBlock, result, problems).then_some(header)
    }

    fn closing_header(&self, info: &CloseInfo, trailer: &Trailer) -> FileHeader {
        let mut header = self.header.clone();
        if let Some(identity) = &info.identity {
            header.base_tick_rate = identity.base_tick_rate;
            header.worker_count = identity.worker_count;
            header.database_id = identity.database_id;
            header.database_name.clone_from(&identity.database_name);
            header.tsn_min = identity.tsn_min;
            header.schema_fingerprint = identity.schema_fingerprint;
        }
        FileHeader {
            flags: if info.multiple_engines { FLAG_MULTIPLE_ENGINES } else { 0 },
            offsets: trailer.offsets,
            tsn_max: info.tsn_max,
            duration_ticks: info.duration_ticks,
            tick_count: info.tick_count.unwrap_or(self.written.ticks),
            ..header
        }
    }

    /// Writes names, closing block and trailer as one part.
    fn write_closing_block(
        &mut self,
        info: &CloseInfo,
        header: &FileHeader,
        names: &[u8],
        trailer: &Trailer,
    ) -> Result<(), TraceError> {
        let (first, first_crc) = self.due_checksum(names);
        let block = ClosingBlock {
            slot: self.options.slot,
            timestamp: info.stop_timestamp,
            first,
            first_crc,
            header_crc: Crc32c::of_header(&header.encode()).value(),
            trailer_crc: Crc32c::of(&trailer.bytes).value(),
        };
        self.output.append(&[names, &block.encode(&self.options.checksum_names), &trailer.bytes])
    }
}

/// Notes a failure.
fn succeeded(step: CloseStep, result: Result<(), TraceError>, problems: &mut Vec<CloseProblem>) -> bool {
    match result {
        Ok(()) => true,
        Err(error) => {
            problems.push(CloseProblem { step, error });
            false
        }
    }
}

impl Trailer {
    fn at(start: u64) -> Self {
        Self { start, ..Self::default() }
    }

    /// Encodes the sections in the order of the reference engine. A section that the format cannot hold is left out;
    /// the others are not affected.
    fn encode(&mut self, info: &CloseInfo, problems: &mut Vec<CloseProblem>) {
        // Late tables have no offset in the header: they follow the manifest.
        let no_sources = info.tables.as_ref().map(|_| Default::default());
        if let Some((files, manifest)) = info.sources.as_ref().or(no_sources.as_ref()) {
            self.section(CloseStep::Sources, problems, |trailer| {
                trailer.offsets.file_table = trailer.here();
                files.encode(&mut trailer.bytes)?;
                trailer.offsets.source_location_manifest = trailer.here();
                manifest.encode(&mut trailer.bytes)
            });
        }
        if let Some(tables) = &info.tables {
            self.section(CloseStep::Tables, problems, |trailer| tables.encode_section(&mut trailer.bytes));
        }
        if !info.cpu_samples.samples.is_empty() {
            self.section(CloseStep::CpuSamples, problems, |trailer| {
                trailer.offsets.cpu_sample_section = trailer.here();
                info.cpu_samples.encode(&mut trailer.bytes)
            });
        }
        if !info.query_strings.is_empty() {
            self.section(CloseStep::QueryStrings, problems, |trailer| {
                trailer.offsets.query_source_string_table = trailer.here();
                info.query_strings.encode(&mut trailer.bytes)
            });
        }
    }

    fn here(&self) -> i64 {
        (self.start + self.bytes.len() as u64) as i64
    }

    fn section(
        &mut self,
        step: CloseStep,
        problems: &mut Vec<CloseProblem>,
        encode: impl FnOnce(&mut Self) -> Result<(), TraceError>,
    ) {
        let before = (self.bytes.len(), self.offsets);
        let result = encode(self);
        if !succeeded(step, result, problems) {
            self.bytes.truncate(before.0);
            self.offsets = before.1;
        }
    }
}
