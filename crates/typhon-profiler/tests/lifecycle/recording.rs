//! What is in a recorded file.

use std::fs::File;
use std::path::Path;

use typhon_trace::event::{Gauge, InstantView, PerTickSnapshotView};
use typhon_trace::reader::{ReadOptions, StreamReader, VerifyOptions, verify};
use typhon_trace::{Notice, NoticeCode, Severity};

/// The parts of a file that the tests look at.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    /// It was closed, and all of it is in order.
    pub(crate) is_whole: bool,
    /// Workers of the program, as it described itself.
    pub(crate) workers: usize,
    /// Values of the application's instants, ascending.
    pub(crate) values: Vec<i32>,
    /// Kinds of all records in the order of the file.
    pub(crate) kinds: Vec<u8>,
    /// Tick number and gauges of each snapshot.
    pub(crate) snapshots: Vec<(u32, Vec<Gauge>)>,
}

impl Recording {
    pub(crate) fn read(path: &Path) -> Self {
        let open = || StreamReader::from_file(File::open(path).unwrap(), ReadOptions::default()).unwrap();
        let report = verify(open(), VerifyOptions { deep: true }, |_| ()).unwrap();
        let is_whole = !report.findings.iter().any(|notice| notice.code == NoticeCode::NotClosedCleanly);
        // A kill can end the write of the last block half way; nothing else may be wrong with the file.
        let is_expected = |notice: &Notice| {
            notice.severity() == Severity::Info || (!is_whole && notice.code == NoticeCode::Truncated)
        };
        assert!(report.findings.iter().all(is_expected), "{:?}", report.findings);
        let mut reader = open();
        let workers = usize::from(reader.preamble().header.worker_count);
        let mut recording = Self { is_whole, workers, ..Self::default() };
        while let Some(block) = reader.next_delivered().unwrap() {
            for record in block.payload.events() {
                recording.add(record.kind(), record.payload().unwrap());
            }
        }
        recording.values.sort_unstable();
        recording
    }

    fn add(&mut self, kind: u8, payload: &[u8]) {
        self.kinds.push(kind);
        match kind {
            // The lowest and the highest ids are names of the profiler's own.
            6 => {
                let view = InstantView::from_payload(payload);
                if (5..65_531).contains(&view.name_id().unwrap()) {
                    self.values.push(view.payload().unwrap());
                }
            }
            76 => {
                let view = PerTickSnapshotView::from_payload(payload);
                self.snapshots.push((view.tick_number().unwrap(), view.gauges().collect()));
            }
            _ => {}
        }
    }

    pub(crate) fn count(&self, kind: u8) -> usize {
        self.kinds.iter().filter(|each| **each == kind).count()
    }
}
