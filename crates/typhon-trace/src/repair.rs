//! Copies what can be read of a trace into a new, closed file with checksums.
//!
//! [`repair`] copies everything; [`TraceCopy`] is the writing half alone, for tools that copy a part. A copy keeps
//! header identity, dialect and clock, so that no value changes its meaning, unknown kinds and appended bytes as they
//! are, and the block boundaries of the source as far as they fit. Its checksums are its own.

use std::collections::{HashMap, HashSet};
use std::io::{self, Seek, SeekFrom, Write};

use crate::checksum::is_checksum_name;
use crate::header::FileHeader;
use crate::reader::{
    BlockBuffer, BlockDigest, Derived, Outcome, ReadAt, ReadOptions, Sections, Totals, TraceFile,
};
use crate::record::RecordWalk;
use crate::trailer::{FileTable, SourceManifest, SpanNames};
use crate::writer::{CloseInfo, CloseReport, TraceSink, TraceWriter, WriterOptions};
use crate::{Notice, NoticeCode, Severity, TraceError};

/// Slot of the checksum markers in copies; markers are not shown as events of a thread.
const MARKER_SLOT: u8 = 0;

/// Writes a copy of a trace, block by block.
#[derive(Debug)]
pub struct TraceCopy<K> {
    writer: TraceWriter<K>,
    source_header: FileHeader,
    copied: Derived,
}

impl<K: TraceSink> TraceCopy<K> {
    /// Starts a copy: header, tables, and the span names of the whole source ([`TraceFile::span_names`]).
    ///
    /// # Errors
    /// Those of [`TraceWriter::create`] and [`TraceWriter::span_names`]; [`TraceError::Limit`] when the source leaves
    /// no span name ids for the checksums.
    pub fn begin<A: ReadAt>(source: &TraceFile<A>, names: &SpanNames, sink: K) -> Result<Self, TraceError> {
        let names = effective_names(names);
        let options = WriterOptions::avoiding(MARKER_SLOT, names.entries.iter().map(|entry| entry.id))?;
        let mut writer = TraceWriter::create(sink, source.header().clone(), source.tables(), options)?;
        if !names.entries.is_empty() {
            writer.span_names(&names)?;
        }
        Ok(Self { writer, source_header: source.header().clone(), copied: Derived::default() })
    }

    /// Copies the events of a decoded block, as a block of their own.
    ///
    /// # Errors
    /// Those of [`TraceWriter::copy_records`].
    pub fn block(&mut self, buffer: &BlockBuffer) -> Result<(), TraceError> {
        self.copied.add(&BlockDigest::of(buffer));
        match buffer.events_bytes() {
            Some(events) => self.writer.copy_records(events)?,
            None => buffer.events().try_for_each(|record| self.writer.copy_records(record.bytes()))?,
        }
        self.writer.flush()
    }

    /// Copies some records, whole and one after the other; they may share a block with what was copied before. Also for
    /// records that the source does not hold in this form.
    ///
    /// # Errors
    /// Those of [`TraceWriter::copy_records`].
    pub fn records(&mut self, records: &[u8]) -> Result<(), TraceError> {
        self.copied.add(&BlockDigest::of_records(RecordWalk::new(records)));
        self.writer.copy_records(records)
    }

    /// Writes the sections and closes the file. `whole` says that the copy holds everything of the source: then the
    /// times and counts of a closed source's header are kept, otherwise they are those of the copied events.
    /// Section entries that a later one of the same id overrides are left out: nothing can refer to them.
    pub fn finish(mut self, mut sections: Sections, whole: bool) -> (K, CloseReport) {
        drop_overridden(&mut sections);
        let header = &self.source_header;
        let keep = whole && header.is_closed();
        let info = CloseInfo {
            stop_timestamp: self.copied.range.map_or(0, |range| range.end),
            duration_ticks: if keep { header.duration_ticks } else { self.copied.duration_ticks() },
            tsn_max: header.tsn_max,
            multiple_engines: header.multiple_engines_observed(),
            tick_count: keep.then_some(header.tick_count),
            sources: sources(sections.file_table, sections.source_manifest),
            cpu_samples: sections.cpu_samples.unwrap_or_default(),
            query_strings: sections.query_strings.unwrap_or_default(),
            // The copy has all tables in front.
            identity: None,
            tables: None,
        };
        self.writer.close(&info);
        let (sink, report) = self.writer.into_parts();
        (sink, report.unwrap_or_default())
    }
}

/// One name per id, the last, without the names of the source's own checksums.
fn effective_names(names: &SpanNames) -> SpanNames {
    let mut last = HashMap::new();
    for (place, entry) in names.entries.iter().enumerate() {
        last.insert(entry.id, place);
    }
    let kept = names
        .entries
        .iter()
        .enumerate()
        .filter(|(place, entry)| last.get(&entry.id) == Some(place) && !is_checksum_name(&entry.name));
    SpanNames { entries: kept.map(|(_, entry)| entry.clone()).collect() }
}

fn drop_overridden(sections: &mut Sections) {
    if let Some(table) = &mut sections.file_table {
        keep_last(&mut table.files, |entry| entry.file_id);
    }
    if let Some(manifest) = &mut sections.source_manifest {
        keep_last(&mut manifest.entries, |entry| entry.id);
    }
    if let Some(cpu) = &mut sections.cpu_samples {
        keep_last(&mut cpu.frames, |frame| frame.frame_id);
    }
}

/// Keeps the last entry of each id; the order stays.
fn keep_last<T>(entries: &mut Vec<T>, id: impl Fn(&T) -> u16) {
    let mut seen = HashSet::new();
    entries.reverse();
    entries.retain(|entry| seen.insert(id(entry)));
    entries.reverse();
}

/// The format has both sections or neither.
fn sources(files: Option<FileTable>, places: Option<SourceManifest>) -> Option<(FileTable, SourceManifest)> {
    if files.is_none() && places.is_none() {
        return None;
    }
    Some((files.unwrap_or_default(), places.unwrap_or_default()))
}

/// Result of [`repair`].
#[derive(Debug)]
pub struct RepairReport {
    /// What was written, and what went wrong in closing the copy.
    pub written: CloseReport,
    /// What is in the source and not in the copy, by file offset of the source.
    pub losses: Vec<Notice>,
    /// Everything else that is worth knowing about the source.
    pub notices: Vec<Notice>,
    /// Sums over the blocks of the source.
    pub totals: Totals,
}

/// Copies everything that can be read of a trace into `sink`; the source is not touched. With
/// [`ReadOptions::salvage`], blocks behind damage and blocks with a mismatching checksum are copied as well. A
/// [`CountingSink`] makes it a dry run. `progress` gets the number of source bytes done after each block.
///
/// # Errors
/// [`TraceError::Io`] of either side, and those of [`TraceCopy::begin`].
pub fn repair<A: ReadAt, K: TraceSink>(
    source: &TraceFile<A>,
    options: ReadOptions,
    sink: K,
    mut progress: impl FnMut(u64),
) -> Result<(K, RepairReport), TraceError> {
    let mut copy = TraceCopy::begin(source, &source.span_names(options)?, sink)?;
    let mut reader = source.stream(options)?;
    while let Some(block) = reader.next_delivered()? {
        copy.block(&block.payload)?;
        progress(block.summary.entry.end());
    }
    let Outcome { notices, totals, sections, .. } = reader.finish()?;
    let sections = sections.or(source.sections());
    let (losses, mut notices): (Vec<_>, Vec<_>) = notices.into_iter().partition(is_loss);
    if sections.query_definitions.is_some() {
        let message = "the query definition section is not copied; the records that it repeats are";
        notices.push(Notice::new(NoticeCode::UnknownBytes, message));
    }
    let (sink, written) = copy.finish(sections, losses.is_empty());
    Ok((sink, RepairReport { written, losses, notices, totals }))
}

/// Does a notice about a source mean that a copy lacks something? A wrong section offset costs nothing here: a copy has
/// its own.
pub fn is_loss(notice: &Notice) -> bool {
    notice.severity() > Severity::Info && notice.code != NoticeCode::SectionOffset
}

/// A sink that keeps nothing and counts the bytes: what would a copy look like?
#[derive(Debug, Default, Clone, Copy)]
pub struct CountingSink {
    position: u64,
    length: u64,
}

impl Write for CountingSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.position += bytes.len() as u64;
        self.length = self.length.max(self.position);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for CountingSink {
    fn seek(&mut self, target: SeekFrom) -> io::Result<u64> {
        let position = match target {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(delta) => self.length.checked_add_signed(delta),
            SeekFrom::Current(delta) => self.position.checked_add_signed(delta),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

impl TraceSink for CountingSink {
    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.length = len;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}
