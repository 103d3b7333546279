//! The trailer sections, read one after the other from the end of the blocks, or one by one through the header.

use std::io::{self, Read};

use super::source::{PipeSource, Source, SourceReader};
use super::walk::shifted;
use super::{EndReason, NoticeLog, SequenceEnd};
use crate::block::Boundary;
use crate::header::{FileHeader, FileOffsets};
use crate::tables::Tables;
use crate::trailer::{
    CpuSamples, FileTable, QueryDefinitions, QueryStrings, Section, SectionRead, SourceManifest, SpanNames,
};
use crate::{Notice, NoticeCode, TraceError};

/// The trailer sections of a trace; `None` = not in the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sections {
    /// Source files.
    pub file_table: Option<FileTable>,
    /// Source locations.
    pub source_manifest: Option<SourceManifest>,
    /// Metadata tables that were not known when the file was created.
    pub tables: Option<Tables>,
    /// Texts of query definitions.
    pub query_strings: Option<QueryStrings>,
    /// Query definitions; no known writer.
    pub query_definitions: Option<QueryDefinitions>,
    /// CPU samples.
    pub cpu_samples: Option<CpuSamples>,
    /// File offsets of the sections present, in file order; of a repeated section, the last one's.
    pub places: Vec<(u64, Section)>,
}

/// The sections that the header points at, with their offsets as stored.
pub(crate) fn addressed(offsets: &FileOffsets) -> [(i64, Section); 5] {
    [
        (offsets.file_table, Section::FileTable),
        (offsets.source_location_manifest, Section::SourceManifest),
        (offsets.query_source_string_table, Section::QueryStrings),
        (offsets.query_definition_table, Section::QueryDefinitions),
        (offsets.cpu_sample_section, Section::CpuSamples),
    ]
}

/// The places in [`addressed`] that can be offsets at all.
pub(crate) fn section_places(header: &FileHeader) -> Vec<(u64, Section)> {
    let places = addressed(&header.offsets).into_iter();
    places.filter_map(|(at, section)| Some((u64::try_from(at).ok().filter(|at| *at > 0)?, section))).collect()
}

impl Sections {
    /// These sections, and those of `other` that are missing here.
    #[must_use]
    pub fn or(mut self, other: &Self) -> Self {
        self.file_table = self.file_table.or_else(|| other.file_table.clone());
        self.source_manifest = self.source_manifest.or_else(|| other.source_manifest.clone());
        self.tables = self.tables.or_else(|| other.tables.clone());
        self.query_strings = self.query_strings.or_else(|| other.query_strings.clone());
        self.query_definitions = self.query_definitions.or_else(|| other.query_definitions.clone());
        self.cpu_samples = self.cpu_samples.or_else(|| other.cpu_samples.clone());
        self
    }

    /// Reads the body of a section at the reader's position, which is right after the magic; `true` when it is whole.
    fn read<R: Read>(
        &mut self,
        section: Section,
        reader: &mut R,
        body: u64,
        span_names: &mut SpanNames,
        log: &mut NoticeLog,
    ) -> io::Result<bool> {
        let mut sink = Sink { body, log };
        let whole = match section {
            Section::SpanNames => {
                let mut names = None;
                let whole = sink.take(SpanNames::read(reader)?, &mut names);
                span_names.merge(names.unwrap_or_default());
                return Ok(whole);
            }
            Section::FileTable => sink.take(FileTable::read(reader)?, &mut self.file_table),
            Section::SourceManifest => sink.take(SourceManifest::read(reader)?, &mut self.source_manifest),
            Section::Tables => sink.take(Tables::read_section(reader)?, &mut self.tables),
            Section::QueryStrings => sink.take(QueryStrings::read(reader)?, &mut self.query_strings),
            Section::QueryDefinitions => {
                sink.take(QueryDefinitions::read(reader)?, &mut self.query_definitions)
            }
            Section::CpuSamples => sink.take(CpuSamples::read(reader)?, &mut self.cpu_samples),
        };
        self.add_place(body - 4, section, log);
        Ok(whole)
    }

    /// Reads a section with its magic; returns where it ends.
    fn read_at<S: Source>(
        &mut self,
        section: Section,
        source: &mut S,
        at: u64,
        log: &mut NoticeLog,
    ) -> Result<u64, TraceError> {
        let mut reader = SourceReader::new(source, at + 4);
        let read = self.read(section, &mut reader, at + 4, &mut SpanNames::default(), log);
        let end = reader.position();
        reader.finish(read)?;
        Ok(end)
    }

    /// Reads the file that a recorder keeps beside a trace until it is closed (`<trace>.sites`): sections one after
    /// the other, up to the first thing that is none. Offsets in that file say nothing about the trace: neither the
    /// sections nor the notices have any.
    ///
    /// # Errors
    /// Only those of `source`.
    pub fn read_beside(source: impl Read) -> Result<(Self, Vec<Notice>), TraceError> {
        let mut source = PipeSource::new(source);
        let (mut sections, mut log) = (Self::default(), NoticeLog::new());
        let mut reader = SourceReader::new(&mut source, 0);
        sections.read_all(&mut reader, &mut SpanNames::default(), &mut log)?;
        sections.places.clear();
        let mut notices = log.into_sorted();
        for notice in &mut notices {
            notice.offset = None;
            notice.message.insert_str(0, "beside the trace: ");
        }
        Ok((sections, notices))
    }

    /// Reads sections from the reader's position to the first thing that is none, or that is cut.
    fn read_all<S: Source>(
        &mut self,
        reader: &mut SourceReader<'_, S>,
        span_names: &mut SpanNames,
        log: &mut NoticeLog,
    ) -> Result<(), TraceError> {
        let mut whole = true;
        while whole && let Some(section) = next_section(reader)? {
            let body = reader.position() + 4;
            let mut magic = [0; 4];
            let read = reader.read_exact(&mut magic);
            let read = read.and_then(|()| self.read(section, reader, body, span_names, log));
            whole = reader.checked(read)?;
        }
        Ok(())
    }

    /// A section counts once, however often a hostile file repeats it.
    fn add_place(&mut self, at: u64, section: Section, log: &mut NoticeLog) {
        if let Some(earlier) = self.places.iter().position(|(_, other)| *other == section) {
            let (earlier_at, _) = self.places.remove(earlier);
            let message = format!("a second {} stands at offset {at}; the last one counts", section.name());
            log.push(Notice::new(NoticeCode::DuplicateId, message).at(earlier_at));
        }
        self.places.push((at, section));
    }
}

/// Where the parts of a section go.
struct Sink<'a> {
    body: u64,
    log: &'a mut NoticeLog,
}

impl Sink<'_> {
    fn take<T>(&mut self, read: SectionRead<T>, place: &mut Option<T>) -> bool {
        self.log.extend(read.notices.into_iter().map(|notice| shifted(notice, self.body)));
        *place = Some(read.value);
        !read.cut
    }
}

/// What stands between the end of the blocks and the end of the file.
#[derive(Debug, Default)]
pub(crate) struct Trailer {
    pub(crate) sections: Sections,
    /// CRC-32C of everything after the last block; `None` when damage hides where that begins.
    pub(crate) crc: Option<u32>,
    pub(crate) file_bytes: u64,
}

/// Reads every section from the end of the blocks to the end of the file, and compares their places with the offsets
/// in the header.
pub(crate) fn read_sequential<S: Source>(
    source: &mut S,
    end: SequenceEnd,
    header: &FileHeader,
    span_names: &mut SpanNames,
    log: &mut NoticeLog,
) -> Result<Trailer, TraceError> {
    if matches!(end.reason, EndReason::Torn | EndReason::Damage) {
        let file_bytes = end.offset + source.bytes_from(end.offset)?;
        return Ok(Trailer { sections: Sections::default(), crc: None, file_bytes });
    }
    let mut sections = Sections::default();
    let mut reader = SourceReader::new(source, end.offset);
    sections.read_all(&mut reader, span_names, log)?;
    let rest_at = reader.position();
    let rest = reader.drain()?;
    if rest > 0 {
        let message = format!("{rest} bytes after the last section belong to nothing");
        log.push(Notice::new(NoticeCode::UnknownBytes, message).at(rest_at).counting(rest));
    }
    let (crc, bytes) = (reader.crc(), reader.position() - end.offset);
    compare_offsets(header, &sections, log);
    Ok(Trailer { sections, crc: end.lead.followed_by(crc, bytes), file_bytes: rest_at + rest })
}

fn next_section<S: Source>(reader: &mut SourceReader<'_, S>) -> Result<Option<Section>, TraceError> {
    Ok(match reader.peek(4)?.first_chunk().map(|next| Boundary::of(*next)) {
        Some(Boundary::Trailer(section)) => Some(section),
        Some(Boundary::SpanNames) => Some(Section::SpanNames),
        Some(Boundary::Block | Boundary::ZeroTail) | None => None,
    })
}

/// The offsets are patched into the header last and no checksum covers them, but the sections can be found without
/// them.
fn compare_offsets(header: &FileHeader, sections: &Sections, log: &mut NoticeLog) {
    for (stated, section) in addressed(&header.offsets) {
        let found = sections.places.iter().find(|(_, other)| *other == section).map(|(at, _)| *at);
        if u64::try_from(stated).ok() != Some(found.unwrap_or(0)) {
            let place = found.map_or("absent".to_owned(), |at| format!("at offset {at}"));
            let message = format!("the header has the {} at offset {stated}; it is {place}", section.name());
            log.push(Notice::new(NoticeCode::SectionOffset, message).at(found.unwrap_or(0)));
        }
    }
}

/// Reads the sections that the header points at. An offset before the end of the tables, past the end of the file or
/// to something else makes the section absent.
pub(crate) fn read_addressed<S: Source>(
    source: &mut S,
    header: &FileHeader,
    tables_end: u64,
    log: &mut NoticeLog,
) -> Result<Sections, TraceError> {
    let mut sections = Sections::default();
    for (stated, section) in addressed(&header.offsets) {
        let Ok(at) = u64::try_from(stated) else {
            log.push(offset_notice(section, stated, "the offset is negative"));
            continue;
        };
        if at == 0 {
            continue;
        }
        if at < tables_end {
            log.push(offset_notice(section, stated, "the offset lies before the first block"));
            continue;
        }
        let magic = source.peek(at, 4)?;
        if magic != section.magic() {
            let fault =
                if magic.len() < 4 { "the file ends before it" } else { "something else stands there" };
            log.push(offset_notice(section, stated, fault));
            continue;
        }
        let end = sections.read_at(section, source, at, log)?;
        if section == Section::SourceManifest && source.peek(end, 4)? == Section::Tables.magic() {
            sections.read_at(Section::Tables, source, end, log)?;
        }
    }
    sections.places.sort_unstable_by_key(|(at, _)| *at);
    Ok(sections)
}

fn offset_notice(section: Section, stated: i64, fault: &str) -> Notice {
    let message = format!("{} at offset {stated}: {fault}", section.name());
    Notice::new(NoticeCode::SectionOffset, message).at(u64::try_from(stated).unwrap_or(0))
}
