use std::io::{self, Read};

use super::{Section, SectionRead};
use crate::TraceError;
use crate::header::HEADER_BYTES;
use crate::tables::Tables;

/// The metadata tables as a section: for programs that were described after their recording began.
impl Tables {
    /// Reads the tables after the magic of the section.
    ///
    /// # Errors
    /// Only those of the source itself.
    pub fn read_section(source: &mut impl Read) -> io::Result<SectionRead<Self>> {
        let read = Self::read(source)?;
        let mut notices = read.notices;
        // They count from the beginning of a file that has the tables in front.
        for notice in &mut notices {
            notice.offset = notice.offset.map(|offset| offset - HEADER_BYTES as u64);
        }
        let (bytes, cut) = (read.raw.len() as u64, read.cut.is_some());
        Ok(SectionRead { value: read.tables, bytes, cut, notices })
    }

    /// Appends the tables with the magic of the section. Texts above 255 bytes and neighbour lists above 255 entries
    /// are cut.
    ///
    /// # Errors
    /// Those of [`Tables::encode`].
    pub fn encode_section(&self, out: &mut Vec<u8>) -> Result<(), TraceError> {
        let encoded = self.encode()?;
        out.extend_from_slice(&Section::Tables.magic());
        out.extend_from_slice(&encoded.bytes);
        Ok(())
    }
}
