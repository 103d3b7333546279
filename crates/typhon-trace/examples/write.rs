//! Writes a small trace: a named thread and three ticks, each with a commit inside a system's chunk.
//!
//! ```sh
//! cargo run -p typhon-trace --example write -- small.typhon-trace
//! cargo run --release -p typhon-cli -- trace stats small.typhon-trace
//! ```

use std::error::Error;
use std::fs::File;
use std::time::{SystemTime, UNIX_EPOCH};

use typhon_trace::event::{
    InstantEvent, SchedulerChunk, SpanEvent, SpanFields, ThreadInfo, ThreadKind, TickEnd, TickStart,
    TransactionCommit,
};
use typhon_trace::header::{FileHeader, utc_ticks_from_unix_ns};
use typhon_trace::tables::{System, Tables};
use typhon_trace::writer::{CloseInfo, CloseReport, TraceSink, TraceWriter, WriterOptions};

/// A slot stands for a thread.
const SLOT: u8 = 0;
const TICK_NS: i64 = 16_666_667;

/// Whole records, one behind the other.
#[derive(Default)]
struct Records {
    bytes: Vec<u8>,
    spans: u64,
}

impl Records {
    fn instant(&mut self, event: &impl InstantEvent, at_ns: i64) -> Result<(), Box<dyn Error>> {
        let (start, size) = (self.bytes.len(), event.record_bytes());
        self.bytes.resize(start + size, 0);
        event.encode(SLOT, at_ns, &mut self.bytes[start..])?;
        Ok(())
    }

    fn span(
        &mut self,
        event: &impl SpanEvent,
        start_ns: i64,
        span: &SpanFields,
    ) -> Result<(), Box<dyn Error>> {
        let (start, size) = (self.bytes.len(), event.record_bytes(span));
        self.bytes.resize(start + size, 0);
        event.encode(SLOT, start_ns, span, &mut self.bytes[start..])?;
        Ok(())
    }

    /// Ids hold the slot in their highest byte, so that threads need not agree on a counter.
    fn next_span_id(&mut self) -> u64 {
        self.spans += 1;
        u64::from(SLOT) << 56 | self.spans
    }

    fn tick(&mut self, number: i64) -> Result<(), Box<dyn Error>> {
        let start_ns = number * TICK_NS;
        self.instant(&TickStart {}, start_ns)?;
        let chunk_id = self.next_span_id();
        let chunk = SpanFields { duration: 3_000_000, span_id: chunk_id, ..SpanFields::default() };
        let commit = SpanFields {
            duration: 85_000 * (number + 1),
            span_id: self.next_span_id(),
            parent_span_id: chunk_id,
            ..SpanFields::default()
        };
        // Inner spans end first, so a recorder writes them first; readers do not rely on it.
        let event =
            TransactionCommit { tsn: number, component_count: Some(3), ..TransactionCommit::default() };
        self.span(&event, start_ns + 2_000_000, &commit)?;
        self.span(&SchedulerChunk::default(), start_ns + 1_000_000, &chunk)?;
        self.instant(&TickEnd { tick_multiplier: 1, ..TickEnd::default() }, start_ns + 5_000_000)
    }
}

/// Writes the trace and says how that went.
fn write(sink: impl TraceSink) -> Result<CloseReport, Box<dyn Error>> {
    let created_unix_ns = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())?;
    let created = utc_ticks_from_unix_ns(created_unix_ns);
    let header = FileHeader { base_tick_rate: 60.0, worker_count: 1, ..FileHeader::new(created) };
    let movement = System { name: "Movement".to_owned(), ..System::default() };
    let tables = Tables { systems: vec![movement], ..Tables::default() };
    let mut writer = TraceWriter::create(sink, header, &tables, WriterOptions::new(SLOT))?;

    let mut records = Records::default();
    records
        .instant(&ThreadInfo { name: "Main", thread_kind: ThreadKind::MAIN, ..ThreadInfo::default() }, 0)?;
    for number in 0..3 {
        records.tick(number)?;
    }
    writer.write_records(&records.bytes)?;
    // In a longer recording: at least once a second, so that a crash loses no more than that.
    writer.flush()?;

    // A file that is never closed is readable too; closing adds what only the end can know.
    let end_ns = 3 * TICK_NS;
    writer.close(&CloseInfo { stop_timestamp: end_ns, duration_ticks: end_ns, ..CloseInfo::default() });
    writer.into_parts().1.ok_or_else(|| "not closed".into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: write FILE")?;
    let report = write(File::create(path)?)?;
    for problem in &report.problems {
        eprintln!("{:?}: {}", problem.step, problem.error);
    }
    println!("{} records in {} bytes", report.records, report.bytes);
    Ok(())
}

#[test]
fn what_is_written_reads_back_whole() -> Result<(), Box<dyn Error>> {
    use typhon_trace::event::Event;
    use typhon_trace::reader::{ReadOptions, StreamReader};

    let mut file = tempfile::tempfile()?;
    write(file.try_clone()?)?;
    std::io::Seek::rewind(&mut file)?;
    let mut reader = StreamReader::from_reader(file, ReadOptions::default())?;
    let mut commits_ns = Vec::new();
    while let Some(block) = reader.next_delivered()? {
        let commits = block.payload.events().filter(|record| record.kind() == TransactionCommit::KIND);
        commits_ns.extend(commits.filter_map(|record| record.span()).map(|span| span.duration));
    }
    assert_eq!(commits_ns, [85_000, 170_000, 255_000]);
    assert_eq!(reader.finish()?.notices, []);
    Ok(())
}
