//! Messages of the diagnostics protocol as bytes, without any I/O.
//!
//! A malformed CollectTracing terminates some runtimes with a segmentation fault. So the types here cannot express
//! one: sizes are validated newtypes, text is checked, the stream format is fixed.

use std::fmt;

use thiserror::Error;

/// Bytes of every message's header.
pub const HEADER_BYTES: usize = 20;

const MAGIC: &[u8; 14] = b"DOTNET_IPC_V1\0";
/// Stream format asked for: nettrace version 4.
const FORMAT_NETTRACE: u32 = 1;
const RESPONSE_SET: u8 = 0xff;
const RESPONSE_OK: u8 = 0x00;
const RESPONSE_ERROR: u8 = 0xff;

/// What can be wrong with a request before it is sent, or with the answer to it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IpcError {
    /// The request does not fit the protocol's 16-bit size field.
    #[error("the request has {0} bytes, more than the protocol can carry (65,535)")]
    RequestTooLarge(usize),
    /// A provider name or argument holds a zero character, or a name is empty.
    #[error("provider name or arguments are empty or hold a zero character")]
    BadText,
    /// A value outside its range.
    #[error("{what} must be within {min}..={max}, not {value}")]
    OutOfRange {
        /// Name of the value.
        what: &'static str,
        /// Value given.
        value: u32,
        /// Smallest accepted value.
        min: u32,
        /// Largest accepted value.
        max: u32,
    },
    /// The answer does not begin with the protocol's magic: whatever listens there is no .NET runtime.
    #[error("the answer is not of the .NET diagnostics protocol")]
    BadMagic,
    /// The answer's size is below that of a header.
    #[error("the answer claims a size of {0} bytes, less than its header has")]
    BadSize(u16),
    /// The answer is neither success nor error.
    #[error("unexpected answer (command set {0:#04x}, id {1:#04x})")]
    UnexpectedAnswer(u8, u8),
    /// The answer's payload ends before its last field.
    #[error("the answer is shorter than its layout")]
    AnswerTooShort,
    /// The runtime refused.
    #[error("the runtime refused: {0}")]
    Refused(ErrorCode),
}

/// Result code of a refusal (an HRESULT).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// The message could not be read.
    pub const BAD_ENCODING: Self = Self(0x8013_1384);
    /// The runtime is older than the command.
    pub const UNKNOWN_COMMAND: Self = Self(0x8013_1385);
    /// Unspecific; on starting a session mostly that 64 of them run already.
    pub const FAIL: Self = Self(0x8000_4005);

    /// What the code means, or `None` for one that this crate does not know.
    pub fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0x8013_1384 => "bad encoding",
            0x8013_1385 => "unknown command",
            0x8013_1386 => "unknown magic",
            0x8013_1515 => "not supported",
            0x8000_4005 => "failure (too many sessions?)",
            0x8013_135b => "not yet available",
            0x8013_1371 => "runtime not initialised",
            0x8007_0057 => "invalid argument",
            _ => return None,
        })
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:#010x})", self.name().unwrap_or("unknown code"), self.0)
    }
}

/// Size of the runtime's event buffer, 1 to 1024 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferMib(u32);

impl BufferMib {
    /// # Errors
    /// [`IpcError::OutOfRange`]; size 0 would kill some runtimes.
    pub fn new(mebibytes: u32) -> Result<Self, IpcError> {
        let (min, max) = (1, 1024);
        if !(min..=max).contains(&mebibytes) {
            return Err(IpcError::OutOfRange { what: "buffer size in MiB", value: mebibytes, min, max });
        }
        Ok(Self(mebibytes))
    }

    /// The size in MiB.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl Default for BufferMib {
    /// 16 MiB.
    fn default() -> Self {
        Self(16)
    }
}

/// A source of events within the runtime, and how much of it is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    keywords: u64,
    level: u32,
    name: String,
    arguments: String,
}

impl Provider {
    /// `keywords` is a bit set of subjects, `level` 0 (always) to 5 (verbose), `arguments` mostly empty.
    ///
    /// # Errors
    /// [`IpcError::BadText`] or [`IpcError::OutOfRange`].
    pub fn new(name: &str, keywords: u64, level: u32, arguments: &str) -> Result<Self, IpcError> {
        if name.is_empty() || name.contains('\0') || arguments.contains('\0') {
            return Err(IpcError::BadText);
        }
        if level > 5 {
            return Err(IpcError::OutOfRange { what: "provider level", value: level, min: 0, max: 5 });
        }
        Ok(Self { keywords, level, name: name.to_owned(), arguments: arguments.to_owned() })
    }

    /// The runtime's own provider with the collector's keyword, at the level that has every collector event.
    pub fn gc() -> Self {
        let name = crate::gc::RUNTIME_PROVIDER.to_owned();
        Self { keywords: 0x1, level: 4, name, arguments: String::new() }
    }
}

/// Which form of CollectTracing is sent. All give the same stream; newer forms only add options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectVersion {
    /// Known to every runtime; rundown (a dump of all method names at the end) cannot be turned off.
    V1,
    /// .NET Core 3.1 and newer: rundown on or off.
    V2,
    /// Later updates of .NET 8 and newer: call stacks on or off.
    V3,
    /// .NET 9 and newer: rundown by keyword.
    V4,
    /// .NET 10 and newer: event filters (this crate asks for everything).
    V5,
}

/// What a tracing session shall record. At least one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceRequest {
    /// Buffer in the runtime; events are dropped (and counted) when it is full.
    pub buffer: BufferMib,
    /// Whether the stream ends with a dump of method names. Large; of no use for collections.
    pub rundown: bool,
    /// Whether events carry call stacks. Only [`CollectVersion::V3`] and newer can turn them off.
    pub stacks: bool,
    providers: Vec<Provider>,
}

/// Keywords of a full rundown in the forms that name them: loader, JIT, NGen and their starts and ends.
const RUNDOWN_KEYWORDS: u64 = 0x8002_0139;

impl TraceRequest {
    /// A request for one provider's events, without rundown.
    pub fn new(provider: Provider) -> Self {
        Self { buffer: BufferMib::default(), rundown: false, stacks: false, providers: vec![provider] }
    }

    /// A request for the collector's events.
    pub fn gc(buffer: BufferMib) -> Self {
        Self { buffer, ..Self::new(Provider::gc()) }
    }

    /// Adds another provider.
    #[must_use]
    pub fn with_provider(mut self, provider: Provider) -> Self {
        self.providers.push(provider);
        self
    }
}

/// Which form of ProcessInfo is sent; newer ones tell more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessInfoVersion {
    /// .NET 5 and newer.
    V1,
    /// .NET 6 and newer: entry assembly and runtime version.
    V2,
    /// .NET 8 and newer: runtime identifier.
    V3,
}

/// A command to a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// Ends a session. Its stream must be read meanwhile, or both sides wait for each other.
    StopTracing {
        /// Session number from the answer to CollectTracing.
        session: u64,
    },
    /// Starts a session whose stream follows the answer on the same connection.
    CollectTracing(CollectVersion, &'a TraceRequest),
    /// Asks who the process is.
    ProcessInfo(ProcessInfoVersion),
    /// Lets a runtime go on that waits at start-up.
    ResumeRuntime,
}

impl Request<'_> {
    /// The message's bytes.
    ///
    /// # Errors
    /// [`IpcError::RequestTooLarge`].
    pub fn encode(&self) -> Result<Vec<u8>, IpcError> {
        let (command_set, command_id) = self.command();
        let mut message = MAGIC.to_vec();
        message.extend([0, 0, command_set, command_id, 0, 0]);
        match self {
            Self::StopTracing { session } => message.extend(session.to_le_bytes()),
            Self::CollectTracing(version, request) => put_collect(&mut message, *version, request),
            Self::ProcessInfo(_) | Self::ResumeRuntime => {}
        }
        let size = u16::try_from(message.len()).map_err(|_| IpcError::RequestTooLarge(message.len()))?;
        message[14..16].copy_from_slice(&size.to_le_bytes());
        Ok(message)
    }

    fn command(&self) -> (u8, u8) {
        match self {
            Self::StopTracing { .. } => (2, 1),
            Self::CollectTracing(CollectVersion::V1, _) => (2, 2),
            Self::CollectTracing(CollectVersion::V2, _) => (2, 3),
            Self::CollectTracing(CollectVersion::V3, _) => (2, 4),
            Self::CollectTracing(CollectVersion::V4, _) => (2, 5),
            Self::CollectTracing(CollectVersion::V5, _) => (2, 6),
            Self::ProcessInfo(ProcessInfoVersion::V1) => (4, 0),
            Self::ResumeRuntime => (4, 1),
            Self::ProcessInfo(ProcessInfoVersion::V2) => (4, 4),
            Self::ProcessInfo(ProcessInfoVersion::V3) => (4, 8),
        }
    }
}

fn put_collect(message: &mut Vec<u8>, version: CollectVersion, request: &TraceRequest) {
    if version == CollectVersion::V5 {
        let session_type_ipc_stream = 0u32;
        message.extend(session_type_ipc_stream.to_le_bytes());
    }
    message.extend(request.buffer.get().to_le_bytes());
    message.extend(FORMAT_NETTRACE.to_le_bytes());
    match version {
        CollectVersion::V1 => {}
        CollectVersion::V2 => message.push(u8::from(request.rundown)),
        CollectVersion::V3 => message.extend([u8::from(request.rundown), u8::from(request.stacks)]),
        CollectVersion::V4 | CollectVersion::V5 => {
            let keywords = if request.rundown { RUNDOWN_KEYWORDS } else { 0 };
            message.extend(keywords.to_le_bytes());
            message.push(u8::from(request.stacks));
        }
    }
    message.extend((request.providers.len() as u32).to_le_bytes());
    for provider in &request.providers {
        message.extend(provider.keywords.to_le_bytes());
        message.extend(provider.level.to_le_bytes());
        put_text(message, &provider.name);
        put_text(message, &provider.arguments);
        if version == CollectVersion::V5 {
            // Filter off with an empty list: every event.
            message.extend([0; 5]);
        }
    }
}

/// Length in UTF-16 units with the terminating zero, then the units; nothing at all for empty text.
fn put_text(message: &mut Vec<u8>, text: &str) {
    if text.is_empty() {
        message.extend(0u32.to_le_bytes());
        return;
    }
    let units = text.encode_utf16().chain([0]);
    message.extend((units.clone().count() as u32).to_le_bytes());
    message.extend(units.flat_map(u16::to_le_bytes));
}

/// Header of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerHeader {
    /// Bytes of payload that follow. At most 65,515.
    pub payload_bytes: usize,
    is_error: bool,
}

impl AnswerHeader {
    /// Reads an answer's header.
    ///
    /// # Errors
    /// [`IpcError::BadMagic`], [`IpcError::BadSize`] or [`IpcError::UnexpectedAnswer`].
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Self, IpcError> {
        if bytes[..14] != *MAGIC {
            return Err(IpcError::BadMagic);
        }
        let size = u16::from_le_bytes([bytes[14], bytes[15]]);
        let payload_bytes = usize::from(size).checked_sub(HEADER_BYTES).ok_or(IpcError::BadSize(size))?;
        match (bytes[16], bytes[17]) {
            (RESPONSE_SET, RESPONSE_OK) => Ok(Self { payload_bytes, is_error: false }),
            (RESPONSE_SET, RESPONSE_ERROR) => Ok(Self { payload_bytes, is_error: true }),
            (command_set, command_id) => Err(IpcError::UnexpectedAnswer(command_set, command_id)),
        }
    }

    /// Turns a refusal into its error, once the payload has been read.
    ///
    /// # Errors
    /// [`IpcError::Refused`], or [`IpcError::AnswerTooShort`] for a refusal without its code.
    pub fn check(self, payload: &[u8]) -> Result<(), IpcError> {
        if !self.is_error {
            return Ok(());
        }
        Err(AnswerReader(payload).u32().map_or_else(|error| error, |code| IpcError::Refused(ErrorCode(code))))
    }
}

/// What a runtime says about its process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Process id as the process sees it.
    pub process_id: u64,
    /// Random number of this runtime instance.
    pub cookie: [u8; 16],
    /// Command line.
    pub command_line: String,
    /// Operating system, such as `Linux`.
    pub operating_system: String,
    /// Processor architecture, such as `x64`.
    pub architecture: String,
    /// Name of the managed program ([`ProcessInfoVersion::V2`] and newer).
    pub entry_assembly: Option<String>,
    /// Version of the runtime ([`ProcessInfoVersion::V2`] and newer).
    pub runtime_version: Option<String>,
    /// Such as `linux-x64` ([`ProcessInfoVersion::V3`]).
    pub runtime_identifier: Option<String>,
}

impl ProcessInfo {
    /// Reads the payload of the answer to the given form of the request.
    ///
    /// # Errors
    /// [`IpcError::AnswerTooShort`].
    pub fn parse(version: ProcessInfoVersion, payload: &[u8]) -> Result<Self, IpcError> {
        let mut reader = AnswerReader(payload);
        if version == ProcessInfoVersion::V3 {
            reader.u32()?;
        }
        let mut info = Self {
            process_id: reader.u64()?,
            cookie: reader.array()?,
            command_line: reader.text()?,
            operating_system: reader.text()?,
            architecture: reader.text()?,
            entry_assembly: None,
            runtime_version: None,
            runtime_identifier: None,
        };
        if version != ProcessInfoVersion::V1 {
            info.entry_assembly = Some(reader.text()?);
            info.runtime_version = Some(reader.text()?);
        }
        if version == ProcessInfoVersion::V3 {
            info.runtime_identifier = Some(reader.text()?);
        }
        Ok(info)
    }
}

/// The session number in the answer to CollectTracing or StopTracing.
///
/// # Errors
/// [`IpcError::AnswerTooShort`].
pub fn parse_session_id(payload: &[u8]) -> Result<u64, IpcError> {
    AnswerReader(payload).u64()
}

/// Bytes that a runtime sends when it connects to a reverse port.
pub const ADVERTISE_BYTES: usize = 34;

/// How a runtime introduces itself on a reverse port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advertise {
    /// Random number of this runtime instance; the same on each of its connections.
    pub cookie: [u8; 16],
    /// Process id as the process sees it.
    pub process_id: u64,
}

impl Advertise {
    /// Reads the introduction.
    ///
    /// # Errors
    /// [`IpcError::BadMagic`]: whoever connected is no .NET runtime.
    pub fn parse(bytes: &[u8; ADVERTISE_BYTES]) -> Result<Self, IpcError> {
        let mut reader = AnswerReader(bytes);
        if reader.array()? != *b"ADVR_V1\0" {
            return Err(IpcError::BadMagic);
        }
        Ok(Self { cookie: reader.array()?, process_id: reader.u64()? })
    }
}

struct AnswerReader<'a>(&'a [u8]);

impl<'a> AnswerReader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], IpcError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(IpcError::AnswerTooShort)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], IpcError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u32(&mut self) -> Result<u32, IpcError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, IpcError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn text(&mut self) -> Result<String, IpcError> {
        let units = self.u32()? as usize;
        let bytes = self.take(units.checked_mul(2).ok_or(IpcError::AnswerTooShort)?)?;
        let units = bytes.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
        let text = char::decode_utf16(units.take_while(|&unit| unit != 0));
        Ok(text.map(|unit| unit.unwrap_or('\u{fffd}')).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// "Microsoft-Windows-DotNETRuntime" with its length and terminator.
    const RUNTIME_PROVIDER_HEX: &str = "200000004d006900630072006f0073006f00660074002d00570069006e0064006f00770073002d0044006f0074004e0045005400520075006e00740069006d0065000000";

    #[test]
    fn i11_default_session_request_bytes() {
        let request = TraceRequest::gc(BufferMib::default());
        let message = Request::CollectTracing(CollectVersion::V2, &request).encode().unwrap();
        let header = "444f544e45545f4950435f563100" /* magic */
            .to_owned()
            + "7500"
            + "0203"
            + "0000";
        let payload = "10000000".to_owned() // 16 MiB
            + "01000000" // nettrace
            + "00" // no rundown
            + "01000000" // one provider
            + "0100000000000000" // the collector's keyword
            + "04000000" // informational
            + RUNTIME_PROVIDER_HEX
            + "00000000"; // no arguments
        assert_eq!(hex(&message), header + &payload);
    }

    #[test]
    fn newer_forms_add_their_options_where_they_belong() {
        let mut request = TraceRequest::gc(BufferMib::new(1).unwrap());
        request.rundown = true;
        request.stacks = true;
        let provider =
            "01000000".to_owned() + "0100000000000000" + "04000000" + RUNTIME_PROVIDER_HEX + "00000000";
        for (version, id, options, filter) in [
            (CollectVersion::V1, 2, "0100000001000000", ""),
            (CollectVersion::V2, 3, "010000000100000001", ""),
            (CollectVersion::V3, 4, "01000000010000000101", ""),
            (CollectVersion::V4, 5, "0100000001000000390102800000000001", ""),
            (CollectVersion::V5, 6, "000000000100000001000000390102800000000001", "0000000000"),
        ] {
            let message = Request::CollectTracing(version, &request).encode().unwrap();
            assert_eq!((message[16], message[17]), (2, id));
            assert_eq!(usize::from(u16::from_le_bytes([message[14], message[15]])), message.len());
            assert_eq!(hex(&message[20..]), options.to_owned() + &provider + filter, "{version:?}");
        }
    }

    #[test]
    fn commands_without_options() {
        let message = Request::StopTracing { session: 0x0102_0304_0506_0708 }.encode().unwrap();
        assert_eq!(hex(&message[14..]), "1c00020100000807060504030201");
        for (request, id) in [
            (Request::ResumeRuntime, 1),
            (Request::ProcessInfo(ProcessInfoVersion::V1), 0),
            (Request::ProcessInfo(ProcessInfoVersion::V2), 4),
            (Request::ProcessInfo(ProcessInfoVersion::V3), 8),
        ] {
            assert_eq!(request.encode().unwrap()[14..], [20, 0, 4, id, 0, 0]);
        }
    }

    #[test]
    fn i11_requests_that_kill_runtimes_cannot_be_built() {
        assert!(BufferMib::new(0).is_err());
        assert!(BufferMib::new(1025).is_err());
        assert_eq!(Provider::new("", 1, 4, ""), Err(IpcError::BadText));
        assert_eq!(Provider::new("a\0b", 1, 4, ""), Err(IpcError::BadText));
        assert_eq!(Provider::new("a", 1, 4, "\0"), Err(IpcError::BadText));
        assert!(Provider::new("a", 1, 6, "").is_err());
        let long = Provider::new(&"x".repeat(40_000), 1, 4, "").unwrap();
        let request = TraceRequest::new(long);
        let encoded = Request::CollectTracing(CollectVersion::V2, &request).encode();
        assert!(matches!(encoded, Err(IpcError::RequestTooLarge(_))));
    }

    #[test]
    fn refusals_carry_their_code_whatever_their_size() {
        for size in [24u16, 28] {
            let mut header = [0; HEADER_BYTES];
            header[..14].copy_from_slice(MAGIC);
            header[14..16].copy_from_slice(&size.to_le_bytes());
            header[16..18].fill(0xff);
            let header = AnswerHeader::parse(&header).unwrap();
            assert_eq!(header.payload_bytes, usize::from(size) - 20);
            let mut payload = vec![0; header.payload_bytes];
            payload[..4].copy_from_slice(&0x8013_1385u32.to_le_bytes());
            assert_eq!(header.check(&payload), Err(IpcError::Refused(ErrorCode::UNKNOWN_COMMAND)));
            assert_eq!(header.check(&payload[..3]), Err(IpcError::AnswerTooShort));
        }
    }

    #[test]
    fn process_info_reads_each_form() {
        let mut payload = 77u64.to_le_bytes().to_vec();
        payload.extend([9; 16]);
        for text in ["dotnet app.dll", "", "x64"] {
            put_text(&mut payload, text);
        }
        let info = ProcessInfo::parse(ProcessInfoVersion::V1, &payload).unwrap();
        assert_eq!(
            (info.process_id, info.command_line.as_str(), info.entry_assembly),
            (77, "dotnet app.dll", None)
        );
        assert_eq!((info.operating_system.as_str(), info.architecture.as_str()), ("", "x64"));
        assert_eq!(ProcessInfo::parse(ProcessInfoVersion::V2, &payload), Err(IpcError::AnswerTooShort));
        put_text(&mut payload, "app");
        put_text(&mut payload, "8.0.4");
        let info = ProcessInfo::parse(ProcessInfoVersion::V2, &payload).unwrap();
        assert_eq!(info.runtime_version.as_deref(), Some("8.0.4"));
        put_text(&mut payload, "linux-x64");
        payload.splice(0..0, 1u32.to_le_bytes());
        let info = ProcessInfo::parse(ProcessInfoVersion::V3, &payload).unwrap();
        assert_eq!(info.runtime_identifier.as_deref(), Some("linux-x64"));
    }

    proptest! {
        #[test]
        fn garbage_answers_are_errors_and_never_panics(bytes: Vec<u8>, header: [u8; HEADER_BYTES], mut named: [u8; 20]) {
            named[..14].copy_from_slice(MAGIC);
            for header in [header, named] {
                if let Ok(header) = AnswerHeader::parse(&header) {
                    let _ = header.check(&bytes);
                }
            }
            for version in [ProcessInfoVersion::V1, ProcessInfoVersion::V2, ProcessInfoVersion::V3] {
                let _ = ProcessInfo::parse(version, &bytes);
            }
        }
    }
}
