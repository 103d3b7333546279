use std::io::{self, Read};

use super::{MAX_IDS, Section, SectionRead, SectionReader};
use crate::TraceError;
use crate::wire::{Wire, WireWriter, wire_struct};

wire_struct! {
    /// One name of a [`SpanNames`] table.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SpanName {
        /// Id that records refer to.
        id: u16,
        /// Name, at most 255 bytes.
        name: String,
    }
}

/// A span name table. Later tables of a file add to the earlier ones; of several names for an id the last counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpanNames {
    /// Entries in file order.
    pub entries: Vec<SpanName>,
}

impl SpanNames {
    /// Reads the table after its magic.
    ///
    /// # Errors
    /// Only those of the source itself.
    pub fn read(source: &mut impl Read) -> io::Result<SectionRead<Self>> {
        let mut section = SectionReader::new(Section::SpanNames, source);
        let count: u16 = section.number("count")?;
        let entries: Vec<SpanName> = section.entries(u64::from(count), MAX_IDS, "names")?;
        Ok(section.finish(Self { entries }))
    }

    /// Appends the table with its magic.
    ///
    /// # Errors
    /// [`TraceError::Limit`] above 65,535 names.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TraceError> {
        out.extend_from_slice(&Section::SpanNames.magic());
        self.encode_body(out)
    }

    /// Appends the table without its magic, as in the live stream.
    ///
    /// # Errors
    /// [`TraceError::Limit`] above 65,535 names.
    pub fn encode_body(&self, out: &mut Vec<u8>) -> Result<(), TraceError> {
        let mut writer = WireWriter::default();
        self.entries.write(&mut writer)?;
        out.append(&mut writer.out);
        Ok(())
    }

    /// The name of an id.
    pub fn get(&self, id: u16) -> Option<&str> {
        self.entries.iter().rfind(|entry| entry.id == id).map(|entry| entry.name.as_str())
    }

    /// Adds a later table of the same file. Names that are overridden are dropped from time to time, so that a file
    /// which repeats its ids without end cannot fill the memory.
    pub fn merge(&mut self, later: Self) {
        self.entries.extend(later.entries);
        if self.entries.len() > 2 * MAX_IDS {
            let mut seen = vec![false; MAX_IDS];
            self.entries.reverse();
            self.entries.retain(|entry| !std::mem::replace(&mut seen[usize::from(entry.id)], true));
            self.entries.reverse();
        }
    }

    /// Adds a name.
    pub fn push(&mut self, id: u16, name: impl Into<String>) {
        self.entries.push(SpanName { id, name: name.into() });
    }
}
