//! What a piece of work records, in memory.
#![allow(dead_code, reason = "every test file uses its own part")]

use std::sync::{Mutex, PoisonError};
use typhon_profiler::export::MemoryExporter;
use typhon_profiler::session::{self, SessionOptions, Started};
use typhon_trace::event::ThreadInfoView;

/// One record: its kind and payload, in the order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) kind: u8,
    pub(crate) payload: Vec<u8>,
    pub(crate) timestamp: i64,
}

impl Row {
    pub(crate) fn u8(&self, at: usize) -> u8 {
        self.payload[at]
    }

    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.payload[at], self.payload[at + 1]])
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.payload[at..at + 4].try_into().unwrap())
    }
}

/// Records these kinds while `work` runs; sessions take turns.
pub(crate) fn recorded(kinds: &[u8], work: impl FnOnce()) -> Vec<Row> {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (exporter, trace) = MemoryExporter::new();
    let options = SessionOptions {
        mask: kinds.iter().copied().collect(),
        exporters: vec![Box::new(exporter)],
        ..Default::default()
    };
    assert_eq!(session::start(options).unwrap(), Started::New);
    work();
    session::stop().unwrap();
    let mut rows = Vec::new();
    trace.for_each(|record| {
        if record.kind() != ThreadInfoView::KIND && kinds.contains(&record.kind()) {
            let payload = record.payload().unwrap().to_vec();
            rows.push(Row { kind: record.kind(), payload, timestamp: record.timestamp() });
        }
    });
    rows.sort_by_key(|row| row.timestamp);
    rows
}
