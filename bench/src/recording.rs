//! Recordings of a [`World`], in memory or in a file, and which kinds a recorder has on.

use std::error::Error;
use std::io::Cursor;

use typhon_profiler::config::{Overrides, Settings, resolve};
use typhon_profiler::gates::KindMask;
use typhon_trace::TraceError;
use typhon_trace::header::FileHeader;
use typhon_trace::tables::Tables;
use typhon_trace::writer::{CloseInfo, TraceSink, TraceWriter, WriterOptions};

use crate::world::World;

/// The kinds that a process records when its profiler is on and nothing else is said.
pub fn default_mask() -> KindMask {
    resolve(&Settings::builder().overrides(Overrides::new().enabled(true)).build()).mask()
}

/// The slot that the writer of a recording has.
pub const WRITER_SLOT: u8 = 9;

/// When a recording is long enough.
#[derive(Debug, Clone, Copy)]
pub enum Length {
    /// At least this many records.
    Records(u64),
    /// At least this many bytes in the file.
    FileBytes(u64),
}

/// What was recorded.
#[derive(Debug, Clone, Copy)]
pub struct Recorded {
    /// Records in the file.
    pub records: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of the records.
    pub record_bytes: u64,
}

/// Records a world into a sink, tick by tick, and closes the file.
///
/// # Errors
/// When writing or closing fails.
pub fn record<S: TraceSink>(sink: S, length: Length, seed: u64) -> Result<(S, Recorded), Box<dyn Error>> {
    let mut world = World::new(seed);
    let mut writer = start(sink)?;
    let (mut records, mut record_bytes) = (0, 0);
    let is_long_enough = |records: u64, bytes: u64| match length {
        Length::Records(wanted) => records >= wanted,
        Length::FileBytes(wanted) => bytes >= wanted,
    };
    while !is_long_enough(records, writer.written().bytes) {
        let (bytes, count) = world.next_tick();
        writer.write_records(bytes)?;
        records += count;
        record_bytes += bytes.len() as u64;
    }
    let report = writer.close(&CloseInfo { duration_ticks: 1, ..CloseInfo::default() });
    if let Some(problem) = report.problems.first() {
        return Err(format!("closing failed: {problem:?}").into());
    }
    let recorded = Recorded { records: report.records, file_bytes: report.bytes, record_bytes };
    Ok((writer.into_inner(), recorded))
}

/// Starts a recording without metadata.
///
/// # Errors
/// Those of the writer.
pub fn start<S: TraceSink>(sink: S) -> Result<TraceWriter<S>, TraceError> {
    /// 2026-01-01, in 100 ns units.
    const CREATED_UTC_TICKS: i64 = 639_028_224_000_000_000;
    TraceWriter::create(
        sink,
        FileHeader::new(CREATED_UTC_TICKS),
        &Tables::default(),
        WriterOptions::new(WRITER_SLOT),
    )
}

/// A recording in memory.
///
/// # Errors
/// When writing or closing fails.
pub fn in_memory(records: u64) -> Result<Vec<u8>, Box<dyn Error>> {
    let (sink, _) = record(Cursor::new(Vec::new()), Length::Records(records), 1)?;
    Ok(sink.into_inner())
}
