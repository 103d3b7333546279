//! The 207-byte file header (format spec, "File header").
//!
//! It is written when recording starts, with the fields that only the end can know set to zero, and rewritten in
//! place once when the file is closed. [`FileHeader::is_closed`] tells the two states apart.

use std::fmt;
use std::io::Read;

use crate::wire::{Wire, WireFault, WireReader, WireWriter, wire_struct};
use crate::{FORMAT_VERSION, TraceError};

/// Size of the header on disk.
pub const HEADER_BYTES: usize = 207;
/// First four bytes of a trace.
pub const MAGIC: [u8; 4] = *b"TYTR";
/// Longest database name, in bytes of UTF-8.
pub const MAX_DATABASE_NAME_BYTES: usize = 64;
/// Header flag: more than one engine was live during the capture, so that routing ids are ambiguous.
pub const FLAG_MULTIPLE_ENGINES: u16 = 0x0001;
/// [`FileHeader::reserved0`] of files whose GcEnd pauses are in clock ticks. Files of the reference engine have 0
/// there, and count pauses in 100 ns units.
pub const DIALECT_TYPHON: u16 = 1;
/// Clock frequency of recordings made here: nanoseconds.
pub const CLOCK_FREQUENCY_NS: i64 = 1_000_000_000;

/// 100 ns units between 0001-01-01 and the Unix epoch.
const UNIX_EPOCH_UTC_TICKS: i64 = 621_355_968_000_000_000;
const UTC_TICKS_PER_SECOND: i64 = 10_000_000;

wire_struct! {
    /// Everything in the header after magic and version. Offsets are absolute file positions, 0 = absent.
    #[derive(Debug, Clone, PartialEq)]
    pub struct FileHeader {
        /// Bit set of `FLAG_*`; written at close.
        flags: u16,
        /// Trace-clock ticks per second, > 0.
        timestamp_frequency: i64,
        /// Configured tick rate, Hz.
        base_tick_rate: f32,
        /// Configured workers; 255 stands for "255 or more".
        worker_count: u8,
        /// Entries of the system table. Informational, as are the next four: the tables' own counts rule.
        system_count: u16,
        /// Entries of the archetype table.
        archetype_count: u16,
        /// Entries of the component type table.
        component_type_count: u16,
        /// Entries of the track table.
        track_count: u16,
        /// Entries of the DAG table.
        dag_count: u16,
        /// Start of the recording, in 100 ns units since 0001-01-01 UTC.
        created_utc_ticks: i64,
        /// Trace clock at the start of the CPU sampler, 0 = no sampler.
        sampling_session_start_qpc: i64,
        /// Places of the trailer sections; written at close.
        offsets: FileOffsets,
        /// Identity of the database.
        database_id: DatabaseId,
        /// Name of the database, at most 64 bytes of UTF-8.
        database_name: String => header_name,
        /// Transaction sequence number at the start.
        tsn_min: i64,
        /// Transaction sequence number at the end; written at close.
        tsn_max: i64,
        /// Trace-clock ticks from start to stop; written at close.
        duration_ticks: i64,
        /// TickStart records in the file; written at close. The reference engine may count one less.
        tick_count: u32,
        /// Fingerprint of the schema, see [`crate::tables::Tables::schema_fingerprint`]; 0 without an engine.
        schema_fingerprint: u64,
        /// Dialect marker: [`DIALECT_TYPHON`] or 0.
        reserved0: u16,
        /// Always 0 so far.
        reserved1: u16,
    }
}

wire_struct! {
    /// Absolute positions of the offset-addressed trailer sections, 0 = absent. Negative or absurd values occur in
    /// damaged files and are kept as they are.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct FileOffsets {
        /// File table, `SFLB`.
        file_table: i64,
        /// Source location manifest, `SLMN`.
        source_location_manifest: i64,
        /// Query strings, `QSST`.
        query_source_string_table: i64,
        /// Query definitions, `QDFT`; reserved, 0 in all known files.
        query_definition_table: i64,
        /// CPU samples, `CPUS`.
        cpu_sample_section: i64,
    }
}

impl FileHeader {
    /// The header of a recording that starts now, in this project's dialect and with a nanosecond clock. Identity,
    /// rates and counts are left empty.
    pub fn new(created_utc_ticks: i64) -> Self {
        Self {
            flags: 0,
            timestamp_frequency: CLOCK_FREQUENCY_NS,
            base_tick_rate: 0.0,
            worker_count: 0,
            system_count: 0,
            archetype_count: 0,
            component_type_count: 0,
            track_count: 0,
            dag_count: 0,
            created_utc_ticks,
            sampling_session_start_qpc: 0,
            offsets: FileOffsets::default(),
            database_id: DatabaseId::NIL,
            database_name: String::new(),
            tsn_min: 0,
            tsn_max: 0,
            duration_ticks: 0,
            tick_count: 0,
            schema_fingerprint: 0,
            reserved0: DIALECT_TYPHON,
            reserved1: 0,
        }
    }

    /// Reads the header at the start of `bytes`; further bytes are left out. The magic is checked before the
    /// version, the version before the length.
    ///
    /// # Errors
    /// [`TraceError::NotATrace`], [`TraceError::UnsupportedVersion`], [`TraceError::HeaderTruncated`],
    /// [`TraceError::BadClockFrequency`].
    pub fn parse(bytes: &[u8]) -> Result<Self, TraceError> {
        if !bytes.starts_with(&MAGIC) {
            return Err(TraceError::NotATrace { found: bytes[..bytes.len().min(MAGIC.len())].to_vec() });
        }
        if let Some(&[low, high]) = bytes.get(4..6) {
            let found = u16::from_le_bytes([low, high]);
            if found != FORMAT_VERSION {
                return Err(TraceError::UnsupportedVersion { found });
            }
        }
        let truncated = TraceError::HeaderTruncated { found: bytes.len() as u64 };
        let Some(fields) = bytes.get(6..HEADER_BYTES) else { return Err(truncated) };
        let header = Self::read(&mut WireReader::new(fields, fields.len() as u64)).map_err(|_| truncated)?;
        if header.timestamp_frequency <= 0 {
            return Err(TraceError::BadClockFrequency { found: header.timestamp_frequency });
        }
        Ok(header)
    }

    /// The bytes on disk. A longer name is cut at a character boundary.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut writer = WireWriter::default();
        writer.put(&MAGIC);
        writer.put(&FORMAT_VERSION.to_le_bytes());
        let written = self.write(&mut writer);
        debug_assert!(written.is_ok() && writer.out.len() == HEADER_BYTES, "no header field has a limit");
        let mut bytes = [0; HEADER_BYTES];
        bytes.copy_from_slice(&writer.out);
        bytes
    }

    /// Sets the number of workers; what a byte cannot hold becomes 255.
    pub fn set_worker_count(&mut self, workers: usize) {
        self.worker_count = u8::try_from(workers).unwrap_or(u8::MAX);
    }

    /// Did the recorder close the file? A file whose recorder was killed has no end values and no section offsets.
    pub fn is_closed(&self) -> bool {
        self.tsn_max != 0 || self.duration_ticks != 0 || self.offsets != FileOffsets::default()
    }

    /// Was the file written in this project's dialect? Decides the unit of GcEnd pauses, nothing else.
    pub fn is_typhon_dialect(&self) -> bool {
        self.reserved0 == DIALECT_TYPHON
    }

    /// Was more than one engine live during the capture?
    pub fn multiple_engines_observed(&self) -> bool {
        self.flags & FLAG_MULTIPLE_ENGINES != 0
    }

    /// Start of the recording in nanoseconds since the Unix epoch; `None` when the field is out of range.
    pub fn created_unix_ns(&self) -> Option<i64> {
        self.created_utc_ticks.checked_sub(UNIX_EPOCH_UTC_TICKS)?.checked_mul(100)
    }

    /// Start of the recording as RFC 3339 text with microseconds, such as `2026-11-29T22:10:04.413385Z`; `None`
    /// outside the years 1..=9999.
    pub fn created_utc_text(&self) -> Option<String> {
        let ticks = self.created_utc_ticks;
        let (seconds, fraction) =
            (ticks.div_euclid(UTC_TICKS_PER_SECOND), ticks.rem_euclid(UTC_TICKS_PER_SECOND));
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = civil_from_days(days);
        (1..=9999).contains(&year).then(|| {
            let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
            let micros = fraction / 10;
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
        })
    }
}

/// 100 ns units since 0001-01-01 of a Unix time in nanoseconds.
pub fn utc_ticks_from_unix_ns(unix_ns: i64) -> i64 {
    UNIX_EPOCH_UTC_TICKS + unix_ns.div_euclid(100)
}

/// Proleptic Gregorian date of a day number, where day 0 is 0001-01-01. Works on a calendar that starts in March, so
/// that the leap day is the last of a year.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    const DAYS_PER_ERA: i64 = 146_097;
    const DAYS_FROM_MARCH_0000: i64 = 306;
    let shifted = days + DAYS_FROM_MARCH_0000;
    let era = shifted.div_euclid(DAYS_PER_ERA);
    let day_of_era = shifted.rem_euclid(DAYS_PER_ERA);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

/// Identity of a database: a GUID whose first three groups are stored little-endian.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DatabaseId(
    /// The bytes as stored.
    pub [u8; 16],
);

impl DatabaseId {
    /// No database.
    pub const NIL: Self = Self([0; 16]);
}

impl fmt::Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const TEXT_ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
        for (place, &stored) in TEXT_ORDER.iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{:02x}", self.0[stored])?;
        }
        Ok(())
    }
}

/// As text, like [`fmt::Display`].
#[cfg(feature = "serde")]
impl serde::Serialize for DatabaseId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Debug for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseId({self})")
    }
}

impl Wire for DatabaseId {
    fn read<R: Read>(reader: &mut WireReader<R>) -> Result<Self, WireFault> {
        reader.array().map(Self)
    }

    fn write(&self, writer: &mut WireWriter) -> Result<(), TraceError> {
        writer.put(&self.0);
        Ok(())
    }
}
