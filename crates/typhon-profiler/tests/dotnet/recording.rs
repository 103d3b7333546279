//! A trace file as the tests look at it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use typhon_trace::event::{
    GcEndView, GcStartView, GcSuspensionView, InstantView, NamedSpanView, ThreadInfoView,
};
use typhon_trace::reader::{FileVerdict, ReadOptions, StreamReader, VerifyOptions, verify};

/// A moment or a stretch of time, in ticks of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) kind: u8,
    pub(crate) slot: u8,
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) parent: u64,
    payload: Vec<u8>,
}

impl Row {
    pub(crate) fn is_within(&self, outer: &Row) -> bool {
        outer.start <= self.start && self.end <= outer.end
    }

    /// Number of a collection (kinds 7 and 8).
    pub(crate) fn count(&self) -> u32 {
        match self.kind {
            7 => GcStartView::from_payload(&self.payload).count(),
            _ => GcEndView::from_payload(&self.payload).count(),
        }
        .unwrap()
    }

    pub(crate) fn as_start(&self) -> GcStartView<'_> {
        GcStartView::from_payload(&self.payload)
    }

    pub(crate) fn as_end(&self) -> GcEndView<'_> {
        GcEndView::from_payload(&self.payload)
    }

    /// Size of the heap after a collection (kind 8).
    pub(crate) fn heap_bytes(&self) -> u64 {
        let end = self.as_end();
        let sizes = [
            end.gen0_size_after(),
            end.gen1_size_after(),
            end.gen2_size_after(),
            end.loh_size_after(),
            end.poh_size_after(),
        ];
        sizes.map(Option::unwrap).iter().sum()
    }

    pub(crate) fn as_suspension(&self) -> GcSuspensionView<'_> {
        GcSuspensionView::from_payload(&self.payload)
    }
}

/// Every record of a file that is sound.
pub(crate) struct Recording {
    rows: Vec<Row>,
    names: BTreeMap<i32, String>,
}

impl Recording {
    #[track_caller]
    pub(crate) fn read(path: &Path) -> Self {
        let open = || StreamReader::from_file(File::open(path).unwrap(), ReadOptions::default()).unwrap();
        let report = verify(open(), VerifyOptions { deep: true }, |_| ()).unwrap();
        assert_eq!(report.verdict, FileVerdict::Sound, "{:?}", report.findings);
        let mut rows = Vec::new();
        let mut reader = open();
        while let Some(block) = reader.next_delivered().unwrap() {
            block.payload.events().for_each(|record| {
                let span = record.span();
                let start = record.timestamp();
                rows.push(Row {
                    kind: record.kind(),
                    slot: record.slot(),
                    start,
                    end: start + span.map_or(0, |span| span.duration),
                    parent: span.map_or(0, |span| span.parent_span_id),
                    payload: record.payload().unwrap().to_vec(),
                });
            });
        }
        let names = reader.span_names().entries.iter();
        let names = names.map(|entry| (i32::from(entry.id), entry.name.clone())).collect();
        Self { rows, names }
    }

    pub(crate) fn of_kind(&self, kind: u8) -> Vec<&Row> {
        self.rows.iter().filter(|row| row.kind == kind).collect()
    }

    /// Spans of the program, with their names.
    pub(crate) fn spans(&self) -> Vec<(String, &Row)> {
        let name = |row: &Row| {
            let name = NamedSpanView::from_payload(&row.payload).name();
            name.as_str().unwrap().to_owned()
        };
        self.of_kind(NAMED_SPAN).into_iter().map(|row| (name(row), row)).collect()
    }

    /// Sum of a marker's values.
    pub(crate) fn marked(&self, name: &str) -> i32 {
        let views = self.of_kind(6);
        let views = views.iter().map(|row| InstantView::from_payload(&row.payload));
        let is_it =
            |view: &InstantView<'_>| self.names.get(&view.name_id().unwrap()).is_some_and(|it| it == name);
        views.filter(is_it).map(|view| view.payload().unwrap()).sum()
    }

    /// Names of the threads that a slot has belonged to.
    pub(crate) fn threads_of(&self, slot: u8) -> Vec<String> {
        let rows = self.of_kind(77);
        let rows = rows.iter().filter(|row| row.slot == slot);
        let name = |row: &&&Row| {
            ThreadInfoView::from_payload(&row.payload).name().unwrap().as_str().unwrap().to_owned()
        };
        rows.map(|row| name(&row)).collect()
    }
}

const NAMED_SPAN: u8 = <typhon_trace::event::NamedSpan<'_> as typhon_trace::event::Event>::KIND;
