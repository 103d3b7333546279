use std::io::{self, Read};

use super::{MAX_FILES, MAX_IDS, Section, SectionRead, SectionReader};
use crate::TraceError;
use crate::wire::{Wire, WireReader, WireWriter, check_limit, long_list, long_text, wire_struct};

wire_struct! {
    /// One source file.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct FileEntry {
        /// Id that the other sections refer to.
        file_id: u16,
        /// Path as the compiler recorded it, at most 65,535 bytes.
        path: String => long_text,
    }
}

/// Source files that [`SourceManifest`] and the frames of [`super::CpuSamples`] refer to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileTable {
    /// Entries in file order.
    pub files: Vec<FileEntry>,
}

impl FileTable {
    /// Reads the table after its magic.
    ///
    /// # Errors
    /// Only those of the source itself.
    pub fn read(source: &mut impl Read) -> io::Result<SectionRead<Self>> {
        let mut section = SectionReader::new(Section::FileTable, source);
        let count: u32 = section.number("count")?;
        let files: Vec<FileEntry> = section.entries(u64::from(count), MAX_IDS, "files")?;
        section.report_duplicates(files.iter().map(|entry| entry.file_id));
        Ok(section.finish(Self { files }))
    }

    /// Appends the table with its magic.
    ///
    /// # Errors
    /// [`TraceError::Limit`] above 65,535 files.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TraceError> {
        out.extend_from_slice(&Section::FileTable.magic());
        self.encode_body(out)
    }

    /// Appends the table without its magic, as in the live stream.
    ///
    /// # Errors
    /// [`TraceError::Limit`] above 65,535 files.
    pub fn encode_body(&self, out: &mut Vec<u8>) -> Result<(), TraceError> {
        check_limit("files in the file table", self.files.len() as u64, MAX_FILES as u64)?;
        encode_list(&self.files, out)
    }

    /// The path of a file.
    pub fn path(&self, file_id: u16) -> Option<&str> {
        self.files.iter().rfind(|entry| entry.file_id == file_id).map(|entry| entry.path.as_str())
    }
}

wire_struct! {
    /// One place in the source code that spans refer to.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SourceLocation {
        /// Id in the records: from 1 for call sites, 0x8000 | system index for the code of a system.
        id: u16,
        /// File of [`FileTable`].
        file_id: u16,
        /// Line from 1.
        line: u32,
        /// 0 in every known file.
        kind: u8,
        /// Name of the function.
        method: String,
    }
}

/// Source locations by id. Written together with the [`FileTable`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceManifest {
    /// Entries in file order.
    pub entries: Vec<SourceLocation>,
}

impl SourceManifest {
    /// Reads the manifest after its magic.
    ///
    /// # Errors
    /// Only those of the source itself.
    pub fn read(source: &mut impl Read) -> io::Result<SectionRead<Self>> {
        let mut section = SectionReader::new(Section::SourceManifest, source);
        let count: u32 = section.number("count")?;
        let entries: Vec<SourceLocation> = section.entries(u64::from(count), MAX_IDS, "source locations")?;
        section.report_duplicates(entries.iter().map(|entry| entry.id));
        Ok(section.finish(Self { entries }))
    }

    /// Appends the manifest with its magic.
    ///
    /// # Errors
    /// [`TraceError::Limit`] above 65,536 entries.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TraceError> {
        out.extend_from_slice(&Section::SourceManifest.magic());
        self.encode_body(out)
    }

    /// Appends the manifest without its magic, as in the live stream.
    ///
    /// # Errors
    /// [`TraceError::Limit`] above 65,536 entries.
    pub fn encode_body(&self, out: &mut Vec<u8>) -> Result<(), TraceError> {
        check_limit("source locations in the manifest", self.entries.len() as u64, MAX_IDS as u64)?;
        encode_list(&self.entries, out)
    }

    /// The place with this id.
    pub fn get(&self, id: u16) -> Option<&SourceLocation> {
        self.entries.iter().rfind(|entry| entry.id == id)
    }
}

/// Texts that the file and method ids of query definitions (kind 247) refer to; the index is the id. Index 0 is the
/// empty text and means "none".
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueryStrings {
    /// Texts by id, index 0 included; each at most 65,535 bytes.
    pub texts: Vec<String>,
}

impl QueryStrings {
    /// Reads the table after its magic.
    ///
    /// # Errors
    /// Only those of the source itself.
    pub fn read(source: &mut impl Read) -> io::Result<SectionRead<Self>> {
        let mut section = SectionReader::new(Section::QueryStrings, source);
        let count: u32 = section.number("count")?;
        let mut texts = Vec::new();
        section.each(u64::from(count), MAX_IDS as u64, "texts", |reader| {
            texts.push(long_text::read(reader)?);
            Ok(())
        })?;
        Ok(section.finish(Self { texts }))
    }

    /// Appends the table with its magic.
    ///
    /// # Errors
    /// [`TraceError::Limit`] above 65,536 texts.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TraceError> {
        check_limit("texts in the query string table", self.texts.len() as u64, MAX_IDS as u64)?;
        let mut writer = WireWriter::default();
        writer.put(&Section::QueryStrings.magic());
        (self.texts.len() as u32).write(&mut writer)?;
        self.texts.iter().for_each(|text| writer.long_text(text));
        out.append(&mut writer.out);
        Ok(())
    }

    /// The text with this id; `None` for 0 and for ids without a text.
    pub fn get(&self, id: u16) -> Option<&str> {
        if id == 0 { None } else { self.texts.get(usize::from(id)).map(String::as_str) }
    }

    /// Is there nothing but the empty text of index 0? Such a table is not written.
    pub fn is_empty(&self) -> bool {
        self.texts.len() <= 1
    }
}

/// The reserved query definition section: kind 247 records, verbatim. Read for completeness; never written, since the
/// catalogue is found by scanning the records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueryDefinitions {
    /// The records, in file order.
    pub records: Vec<Vec<u8>>,
}

impl QueryDefinitions {
    /// Reads the section after its magic.
    ///
    /// # Errors
    /// Only those of the source itself.
    pub fn read(source: &mut impl Read) -> io::Result<SectionRead<Self>> {
        let mut section = SectionReader::new(Section::QueryDefinitions, source);
        let count: u32 = section.number("count")?;
        let mut records = Vec::new();
        section.each(u64::from(count), MAX_IDS as u64, "records", |reader: &mut WireReader<_>| {
            let len = u16::read(reader)?;
            records.push(reader.short_bytes(len)?);
            Ok(())
        })?;
        Ok(section.finish(Self { records }))
    }
}

fn encode_list<T: Wire>(list: &[T], out: &mut Vec<u8>) -> Result<(), TraceError> {
    let mut writer = WireWriter::default();
    long_list::write(list, &mut writer)?;
    out.append(&mut writer.out);
    Ok(())
}
