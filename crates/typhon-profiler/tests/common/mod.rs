//! Sessions in memory, and a plain view of what they recorded.
#![allow(dead_code, reason = "every test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use typhon_profiler::export::{Exporter, MemoryExporter, MemoryTrace, names};
use typhon_profiler::gates::KindMask;
use typhon_profiler::session::{self, SessionOptions, SessionReport, Started};
use typhon_trace::event::ThreadInfoView;
use typhon_trace::record::{Record, RecordWalk};

/// Every kind.
pub(crate) const ALL: &[u8] = &{
    let mut kinds = [0; 256];
    let mut at = 0;
    while at < 256 {
        kinds[at] = at as u8;
        at += 1;
    }
    kinds
};

static TURN: Mutex<()> = Mutex::new(());

pub(crate) fn mask(kinds: &[u8]) -> KindMask {
    kinds.iter().copied().collect()
}

/// A running session.
pub(crate) struct Running {
    pub(crate) trace: MemoryTrace,
    turn: Option<MutexGuard<'static, ()>>,
}

/// Waits for its turn and starts a session in memory.
pub(crate) fn start(kinds: &[u8]) -> Running {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    Running { turn: Some(turn), ..start_unlocked(kinds) }
}

/// As [`start`], by a test whose turn it is.
pub(crate) fn start_unlocked(kinds: &[u8]) -> Running {
    start_with(SessionOptions { mask: mask(kinds), ..Default::default() }, Vec::new())
}

pub(crate) fn start_with(options: SessionOptions, mut others: Vec<Box<dyn Exporter>>) -> Running {
    let (exporter, trace) = MemoryExporter::new();
    others.insert(0, Box::new(exporter));
    assert_eq!(session::start(SessionOptions { exporters: others, ..options }).unwrap(), Started::New);
    Running { trace, turn: None }
}

/// The turn alone, for tests that start sessions themselves.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn stop(running: Running) -> (Recorded, SessionReport) {
    let report = session::stop().unwrap();
    let recorded = Recorded::of(&running.trace);
    drop(running.turn);
    (recorded, report)
}

/// What a session and the work in it gave.
pub(crate) struct Outcome<R> {
    pub(crate) result: R,
    pub(crate) report: SessionReport,
}

/// Records what `work` does.
pub(crate) fn session<R>(kinds: &[u8], work: impl FnOnce() -> R) -> (Recorded, Outcome<R>) {
    let running = start(kinds);
    let result = work();
    let (recorded, report) = stop(running);
    (recorded, Outcome { result, report })
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) kind: u8,
    pub(crate) slot: u8,
    pub(crate) start: i64,
    pub(crate) duration: i64,
    pub(crate) id: u64,
    pub(crate) parent: u64,
    pub(crate) site: Option<u16>,
    pub(crate) trace_id: Option<[u8; 16]>,
    pub(crate) payload: Vec<u8>,
}

impl Row {
    pub(crate) fn end(&self) -> i64 {
        self.start + self.duration
    }

    fn of(record: &Record<'_>) -> Self {
        let span = record.span();
        Self {
            kind: record.kind(),
            slot: record.slot(),
            start: record.timestamp(),
            duration: span.map_or(0, |span| span.duration),
            id: span.map_or(0, |span| span.span_id),
            parent: span.map_or(0, |span| span.parent_span_id),
            site: span.and_then(|span| span.site),
            trace_id: span.and_then(|span| span.trace_id.copied()),
            payload: record.payload().unwrap().to_vec(),
        }
    }
}

/// The records of a session, markers of the profiler apart.
pub(crate) struct Recorded {
    pub(crate) rows: Vec<Row>,
    pub(crate) blocks: Vec<Vec<u8>>,
}

impl Recorded {
    pub(crate) fn of(trace: &MemoryTrace) -> Self {
        Self::of_blocks(trace.blocks())
    }

    pub(crate) fn of_blocks(blocks: Vec<Vec<u8>>) -> Self {
        let mut rows = Vec::new();
        for block in &blocks {
            let mut walk = RecordWalk::new(block);
            let mut last = i64::MIN;
            for record in &mut walk {
                assert!(record.timestamp() >= last, "a block is in the order of time");
                last = record.timestamp();
                rows.push(Row::of(&record));
            }
            assert_eq!(walk.fault(), None);
            assert!(block.len() <= typhon_profiler::export::MAX_BATCH_BYTES);
        }
        Self { rows, blocks }
    }

    pub(crate) fn spans(&self) -> Vec<Row> {
        self.rows.iter().filter(|row| row.id != 0).cloned().collect()
    }

    /// Rows of a kind; of kind 6, those of the application.
    pub(crate) fn of_kind(&self, kind: u8) -> Vec<Row> {
        let rows = self.rows.iter().filter(|row| row.kind == kind && marker_name(row).is_none());
        rows.cloned().collect()
    }

    /// Values of the profiler's markers of a name.
    pub(crate) fn markers(&self, name: &str) -> Vec<i32> {
        let rows = self.rows.iter().filter(|row| marker_name(row) == Some(name));
        rows.map(|row| i32::from_le_bytes(row.payload[4..8].try_into().unwrap())).collect()
    }

    /// Sum of all losses that the trace reports.
    pub(crate) fn losses(&self) -> u64 {
        ["typhon.dropped_records", "typhon.dropped_batches"]
            .iter()
            .flat_map(|name| self.markers(name))
            .map(|value| u64::try_from(value).unwrap())
            .sum()
    }

    /// Records of the program: neither `ThreadInfo` nor markers.
    pub(crate) fn events(&self) -> u64 {
        self.rows.iter().filter(|row| row.kind != 77 && marker_name(row).is_none()).count() as u64
    }

    /// Shows every row with the name of the thread that its slot belongs to at that point of the stream.
    pub(crate) fn each_with_thread(&self, mut look: impl FnMut(&Row, Option<&str>)) {
        let mut owners: HashMap<u8, String> = HashMap::new();
        for row in &self.rows {
            if row.kind == 77 {
                let name = ThreadInfoView::from_payload(&row.payload).name().unwrap();
                owners.insert(row.slot, name.as_str().unwrap().to_owned());
            }
            look(row, owners.get(&row.slot).map(String::as_str));
        }
    }
}

fn marker_name(row: &Row) -> Option<&'static str> {
    if row.kind != 6 {
        return None;
    }
    let id = u32::from_le_bytes(row.payload[..4].try_into().unwrap());
    let name = names(id, id + 1).first()?.1;
    name.starts_with("typhon.").then_some(name)
}
