//! What the engine says.

use super::framing::{Direction, Frame, Outgoing};
use super::{LiveError, frame_type};
use crate::TraceError;
use crate::block::{BLOCK_HEADER_BYTES, BlockHeader};
use crate::header::{FileHeader, HEADER_BYTES};
use crate::tables::{Tables, TablesRead};
use crate::trailer::{FileTable, SectionRead, SourceManifest, SpanNames};
use crate::wire::{Wire, WireReader, WireWriter, long_text, wire_struct};

/// A frame from the engine.
#[derive(Debug)]
pub enum ServerMessage<'a> {
    /// A session begins.
    Init(Box<Init>),
    /// Records.
    Block(LiveBlock<'a>),
    /// The session ends cleanly.
    Shutdown,
    /// Source files.
    FileTable(SectionRead<FileTable>),
    /// Source locations.
    SourceManifest(SectionRead<SourceManifest>),
    /// New texts of query definitions.
    QueryStrings(Vec<QueryString>),
    /// New span names, sent before the first block that uses them.
    SpanNames(SectionRead<SpanNames>),
    /// Answer to a client frame.
    Reply(Reply),
    /// A type that this build does not know; to be ignored.
    Unknown {
        /// Its type.
        kind: u8,
    },
}

/// Beginning of a session.
#[derive(Debug)]
pub struct Init {
    /// File header; close-time fields are zero.
    pub header: FileHeader,
    /// Metadata tables, whole.
    pub tables: TablesRead,
}

/// One block, as in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveBlock<'a> {
    /// Its header.
    pub header: BlockHeader,
    /// Its LZ4 data, exactly as long as the header says.
    pub data: &'a [u8],
}

wire_struct! {
    /// A text that the ids of query definitions refer to.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct QueryString {
        /// Its id.
        id: u16,
        /// The text, at most 65,535 bytes.
        text: String => long_text,
    }
}

/// Answer to a client frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Type of the frame that it answers.
    pub request_kind: u8,
    /// Outcome.
    pub status: ReplyStatus,
    /// What to tell the user; may be empty.
    pub message: String,
}

/// Outcome of a client frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReplyStatus {
    /// 0: done.
    Done,
    /// 1: not allowed.
    Refused,
    /// 2: the payload could not be read.
    Malformed,
    /// 3: the type is unknown to the server.
    Unknown,
    /// A number that this build does not know.
    Other(u8),
}

impl ReplyStatus {
    /// The status of a number on the wire.
    pub const fn from_wire(status: u8) -> Self {
        match status {
            0 => Self::Done,
            1 => Self::Refused,
            2 => Self::Malformed,
            3 => Self::Unknown,
            other => Self::Other(other),
        }
    }

    /// The number on the wire.
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Refused => 1,
            Self::Malformed => 2,
            Self::Unknown => 3,
            Self::Other(other) => other,
        }
    }
}

impl<'a> ServerMessage<'a> {
    /// Gives a frame its meaning.
    ///
    /// # Errors
    /// [`LiveError::Incompatible`] for an Init that cannot be read, [`LiveError::Malformed`] for other frames whose
    /// payload does not have its form.
    pub fn parse(frame: Frame<'a>) -> Result<Self, LiveError> {
        let Frame { kind, payload } = frame;
        let malformed = |reason: String| LiveError::Malformed { kind, reason };
        // Reading from a slice has no errors of its own.
        let broken = |error: std::io::Error| LiveError::Malformed { kind, reason: error.to_string() };
        let mut source = payload;
        Ok(match kind {
            frame_type::INIT => Self::Init(Box::new(Init::parse(payload)?)),
            frame_type::BLOCK => Self::Block(LiveBlock::parse(payload).map_err(malformed)?),
            frame_type::SHUTDOWN => Self::Shutdown,
            frame_type::FILE_TABLE => Self::FileTable(FileTable::read(&mut source).map_err(broken)?),
            frame_type::SOURCE_MANIFEST => {
                Self::SourceManifest(SourceManifest::read(&mut source).map_err(broken)?)
            }
            frame_type::QUERY_STRINGS => Self::QueryStrings(query_strings(payload).map_err(malformed)?),
            frame_type::SPAN_NAMES => Self::SpanNames(SpanNames::read(&mut source).map_err(broken)?),
            frame_type::REPLY => Self::Reply(Reply::parse(payload).map_err(malformed)?),
            kind => Self::Unknown { kind },
        })
    }
}

impl Init {
    fn parse(payload: &[u8]) -> Result<Self, LiveError> {
        let incompatible = |reason: String| LiveError::Incompatible { reason };
        let header = FileHeader::parse(payload).map_err(|error| incompatible(error.to_string()))?;
        let tables =
            Tables::read(&mut &payload[HEADER_BYTES..]).map_err(|error| incompatible(error.to_string()))?;
        match tables.cut {
            None => Ok(Self { header, tables }),
            Some(cut) => Err(incompatible(format!("it ends in metadata table {} of 11", cut.table))),
        }
    }
}

impl<'a> LiveBlock<'a> {
    fn parse(payload: &'a [u8]) -> Result<Self, String> {
        let Some((header, data)) = payload.split_first_chunk::<BLOCK_HEADER_BYTES>() else {
            return Err(format!("{} bytes are too few for a block header", payload.len()));
        };
        let header = BlockHeader::parse(header).map_err(|fault| fault.to_string())?;
        if data.len() != header.compressed_bytes as usize {
            return Err(format!(
                "it holds {} of {} bytes of block data",
                data.len(),
                header.compressed_bytes
            ));
        }
        Ok(Self { header, data })
    }
}

impl Reply {
    fn parse(payload: &[u8]) -> Result<Self, String> {
        let mut reader = WireReader::new(payload, payload.len() as u64);
        let mut read = || Ok((u8::read(&mut reader)?, u8::read(&mut reader)?, long_text::read(&mut reader)?));
        let (request_kind, status, message) =
            read().map_err(|_: crate::wire::WireFault| "the reply ends early".to_owned())?;
        Ok(Self { request_kind, status: ReplyStatus::from_wire(status), message })
    }
}

fn query_strings(payload: &[u8]) -> Result<Vec<QueryString>, String> {
    let mut reader = WireReader::new(payload, payload.len() as u64);
    let mut texts = Vec::new();
    while reader.position() < payload.len() as u64 {
        texts.push(QueryString::read(&mut reader).map_err(|_| "the last text ends early".to_owned())?);
    }
    Ok(texts)
}

/// Frames from the engine.
impl Outgoing {
    /// Init: header and tables.
    ///
    /// # Errors
    /// [`LiveError::TooLarge`], [`LiveError::Unsendable`].
    pub fn init(header: &FileHeader, tables: &Tables) -> Result<Self, LiveError> {
        let tables = tables.encode().map_err(beyond_format(frame_type::INIT))?;
        from_server(frame_type::INIT, &[&header.encode()[..], &tables.bytes].concat())
    }

    /// Block: header and data, as [`crate::block::BlockEncoder`] returns them.
    ///
    /// # Errors
    /// [`LiveError::TooLarge`].
    pub fn block(block: &[u8]) -> Result<Self, LiveError> {
        from_server(frame_type::BLOCK, block)
    }

    /// Shutdown.
    pub fn shutdown() -> Self {
        Self::within_limit(frame_type::SHUTDOWN, &[])
    }

    /// File table.
    ///
    /// # Errors
    /// [`LiveError::TooLarge`], [`LiveError::Unsendable`].
    pub fn file_table(table: &FileTable) -> Result<Self, LiveError> {
        section(frame_type::FILE_TABLE, |out| table.encode_body(out))
    }

    /// Source manifest.
    ///
    /// # Errors
    /// [`LiveError::TooLarge`], [`LiveError::Unsendable`].
    pub fn source_manifest(manifest: &SourceManifest) -> Result<Self, LiveError> {
        section(frame_type::SOURCE_MANIFEST, |out| manifest.encode_body(out))
    }

    /// New texts of query definitions.
    ///
    /// # Errors
    /// [`LiveError::TooLarge`], [`LiveError::Unsendable`].
    pub fn query_strings(texts: &[QueryString]) -> Result<Self, LiveError> {
        section(frame_type::QUERY_STRINGS, |out| {
            let mut writer = WireWriter::default();
            texts.iter().try_for_each(|text| text.write(&mut writer))?;
            out.append(&mut writer.out);
            Ok(())
        })
    }

    /// New span names.
    ///
    /// # Errors
    /// [`LiveError::TooLarge`], [`LiveError::Unsendable`].
    pub fn span_names(names: &SpanNames) -> Result<Self, LiveError> {
        section(frame_type::SPAN_NAMES, |out| names.encode_body(out))
    }

    /// Answer to a client frame. A message above 65,535 bytes is cut.
    pub fn reply(reply: &Reply) -> Self {
        let mut writer = WireWriter::default();
        writer.put(&[reply.request_kind, reply.status.to_wire()]);
        writer.long_text(&reply.message);
        Self::within_limit(frame_type::REPLY, &writer.out)
    }
}

fn section(
    kind: u8,
    encode: impl FnOnce(&mut Vec<u8>) -> Result<(), TraceError>,
) -> Result<Outgoing, LiveError> {
    let mut payload = Vec::new();
    encode(&mut payload).map_err(beyond_format(kind))?;
    from_server(kind, &payload)
}

fn from_server(kind: u8, payload: &[u8]) -> Result<Outgoing, LiveError> {
    Outgoing::new(Direction::FromServer, kind, payload)
}

fn beyond_format(kind: u8) -> impl FnOnce(TraceError) -> LiveError {
    move |error| LiveError::Unsendable { kind, reason: error.to_string() }
}
