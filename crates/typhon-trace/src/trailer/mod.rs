//! Sections behind a magic: span names between the blocks, the others after the last block (format spec, "Trailer
//! sections").
//!
//! Every type has `read`, which takes the bytes *after* the magic and keeps what comes before a cut or an absurd
//! count, and `encode`, which writes the section with its magic. In the live stream the same sections travel
//! without it.
//!
//! Entries are kept as they are in the file, duplicates included; a look-up by id takes the last entry.

mod cpu;
mod names;
mod sources;
mod tables;

use std::io::{self, Read};

pub use cpu::{CpuFrame, CpuSample, CpuSamples, CpuStacks, NO_SLOT};
pub use names::{SpanName, SpanNames};
pub use sources::{FileEntry, FileTable, QueryDefinitions, QueryStrings, SourceLocation, SourceManifest};

use crate::tables::duplicates;
use crate::wire::{Wire, WireFault, WireReader};
use crate::{Notice, NoticeCode};

/// Most entries of a table whose ids are u16.
pub const MAX_IDS: usize = 1 << 16;
/// Most files of a file table that a writer accepts.
pub const MAX_FILES: usize = MAX_IDS - 1;

/// The sections of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Section {
    /// Names that kind 6 records refer to. Stands between blocks, may occur several times.
    SpanNames,
    /// Source files.
    FileTable,
    /// Places in them.
    SourceManifest,
    /// Metadata tables that were not known when the file was created. Stands behind the source manifest, without an
    /// offset in the header.
    Tables,
    /// Texts that query definitions refer to.
    QueryStrings,
    /// Query definitions; reserved, no known writer.
    QueryDefinitions,
    /// Samples of what the threads were doing.
    CpuSamples,
}

impl Section {
    /// Every section.
    pub const ALL: [Self; 7] = [
        Self::SpanNames,
        Self::FileTable,
        Self::SourceManifest,
        Self::Tables,
        Self::QueryStrings,
        Self::QueryDefinitions,
        Self::CpuSamples,
    ];

    /// The four bytes that open the section. As numbers they are too large to be the size of a block.
    pub const fn magic(self) -> [u8; 4] {
        match self {
            Self::SpanNames => *b"SPAN",
            Self::FileTable => *b"SFLB",
            Self::SourceManifest => *b"SLMN",
            Self::Tables => *b"MTBL",
            Self::QueryStrings => *b"QSST",
            Self::QueryDefinitions => *b"QDFT",
            Self::CpuSamples => *b"CPUS",
        }
    }

    /// The section that these bytes open.
    pub fn of_magic(magic: [u8; 4]) -> Option<Self> {
        Self::ALL.into_iter().find(|section| section.magic() == magic)
    }

    /// Name for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SpanNames => "span name table",
            Self::FileTable => "file table",
            Self::SourceManifest => "source location manifest",
            Self::Tables => "section of late metadata tables",
            Self::QueryStrings => "query string table",
            Self::QueryDefinitions => "query definition table",
            Self::CpuSamples => "CPU sample section",
        }
    }
}

/// What the `read` of a section found.
#[derive(Debug, Clone, PartialEq)]
pub struct SectionRead<T> {
    /// The entries before the damage, or all of them.
    pub value: T,
    /// Bytes consumed after the magic.
    pub bytes: u64,
    /// The section is not whole: what follows it cannot be located from here.
    pub cut: bool,
    /// What is wrong; offsets count from the first byte after the magic.
    pub notices: Vec<Notice>,
}

/// Collects a section: shared treatment of cuts, absurd counts, texts and duplicates.
struct SectionReader<R> {
    section: Section,
    reader: WireReader<R>,
    cut: bool,
    notices: Vec<Notice>,
}

impl<R: Read> SectionReader<R> {
    fn new(section: Section, source: R) -> Self {
        Self { section, reader: WireReader::new(source, u64::MAX), cut: false, notices: Vec::new() }
    }

    /// Reads `count` entries, or as many as there are; stops at `limit` entries, since no more of them could be
    /// referred to.
    fn entries<T: Wire>(&mut self, count: u64, limit: usize, what: &str) -> io::Result<Vec<T>> {
        let mut entries = Vec::new();
        self.each(count, limit as u64, what, |reader| {
            entries.push(T::read(reader)?);
            Ok(())
        })?;
        Ok(entries)
    }

    fn each(
        &mut self,
        count: u64,
        limit: u64,
        what: &str,
        mut read: impl FnMut(&mut WireReader<R>) -> Result<(), WireFault>,
    ) -> io::Result<()> {
        for index in 0..count {
            if self.cut {
                break;
            }
            if index == limit {
                self.damage(format!("it states {count} {what}, but there can be at most {limit}"));
                break;
            }
            if let Err(fault) = read(&mut self.reader) {
                self.fault(fault, || format!("it ends after {index} of {count} {what}"))?;
            }
        }
        Ok(())
    }

    /// Reads one number; 0 when the section ends before it.
    fn number<T: Wire + Default>(&mut self, what: &str) -> io::Result<T> {
        if self.cut {
            return Ok(T::default());
        }
        match T::read(&mut self.reader) {
            Ok(value) => Ok(value),
            Err(fault) => {
                self.fault(fault, || format!("it ends before its {what}"))?;
                Ok(T::default())
            }
        }
    }

    fn fault(&mut self, fault: WireFault, message: impl FnOnce() -> String) -> io::Result<()> {
        match fault {
            WireFault::Io(error) => return Err(error),
            WireFault::End | WireFault::TooLong => self.damage(message()),
        }
        Ok(())
    }

    fn damage(&mut self, message: String) {
        self.cut = true;
        let message = format!("{} is damaged: {message}", self.section.name());
        self.notices.push(Notice::new(NoticeCode::SectionDamaged, message).at(self.reader.position()));
    }

    fn report_duplicates(&mut self, ids: impl Iterator<Item = u16>) {
        let count = duplicates(ids);
        if count > 0 {
            let message = format!("entries of the {} repeat an id", self.section.name());
            self.notices.push(Notice::new(NoticeCode::DuplicateId, message).counting(count));
        }
    }

    fn finish<T>(mut self, value: T) -> SectionRead<T> {
        let replaced = self.reader.replaced_texts();
        if replaced > 0 {
            let message = format!("texts of the {} are not UTF-8", self.section.name());
            self.notices.push(Notice::new(NoticeCode::InvalidUtf8, message).counting(replaced));
        }
        SectionRead { value, bytes: self.reader.position(), cut: self.cut, notices: self.notices }
    }
}
