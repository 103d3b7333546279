//! Conversions whose spans come in any order, with room for few of them in memory.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Cursor};
use std::ops::ControlFlow;
use typhon_analysis::clock::Clock;
use typhon_analysis::export::{
    Annotation, ConvertLimits, ConvertQuery, EventSink, Exported, Links, Place, SourceEvent, convert,
};
use typhon_analysis::facts::TraceContext;
use typhon_analysis::pipeline::PipelineOptions;
use typhon_analysis::survey;
use typhon_trace::header::FileHeader;
use typhon_trace::reader::{BlockFeed, ReadOptions};
use typhon_trace::registry::{GaugeValueKind, id};
use typhon_trace::tables::Tables;
use typhon_trace::writer::{CloseInfo, TraceWriter, WriterOptions};

/// Events per place as they come; `true` for beginnings.
#[derive(Default)]
struct Sink {
    places: BTreeSet<Place>,
    events: BTreeMap<Place, Vec<(i64, bool)>>,
}

impl EventSink for Sink {
    fn place(&mut self, place: Place, label: &str) -> io::Result<()> {
        assert!(!label.is_empty() && self.places.insert(place), "{place:?} comes twice");
        Ok(())
    }

    fn begin(&mut self, place: Place, start_ns: i64, event: &SourceEvent<'_>) -> io::Result<()> {
        assert!(self.places.contains(&place));
        event.with_text(|text| assert_eq!(text.name, "BTreeInsert"));
        self.events.entry(place).or_default().push((start_ns, true));
        Ok(())
    }

    fn end(&mut self, place: Place, _: i64, end_ns: i64, _: &SourceEvent<'_>) -> io::Result<()> {
        self.events.entry(place).or_default().push((end_ns, false));
        Ok(())
    }

    fn instant(&mut self, _: Place, _: i64, _: &SourceEvent<'_>) -> io::Result<()> {
        Ok(())
    }

    fn counter(&mut self, _: &str, _: GaugeValueKind, _: i64, _: Annotation<'_>) -> io::Result<()> {
        Ok(())
    }

    fn tick(&mut self, _: i64, _: i64, _: i64) -> io::Result<()> {
        Ok(())
    }
}

impl Sink {
    /// All slices as a viewer pairs them: sorted by time, equal times in order of arrival, the innermost ends first.
    fn slices(mut self) -> Vec<(i64, i64)> {
        let mut slices = Vec::new();
        for (place, events) in &mut self.events {
            events.sort_by_key(|(at, _)| *at);
            let mut open = Vec::new();
            for (at, begins) in events {
                if *begins {
                    open.push(*at);
                } else {
                    slices.push((open.pop().unwrap_or_else(|| panic!("{place:?}: nothing is open")), *at));
                }
            }
            assert_eq!(open, [0i64; 0], "{place:?}");
        }
        slices.sort_unstable();
        slices
    }
}

/// A file with these spans of one slot, in blocks of 16.
fn file(spans: &[(i64, i64)]) -> Vec<u8> {
    let header = FileHeader::new(639_315_504_000_000_000);
    let tables = Tables::default();
    let mut writer =
        TraceWriter::create(Cursor::new(Vec::new()), header, &tables, WriterOptions::new(0)).expect("memory");
    for block in spans.chunks(16) {
        let mut records = Vec::new();
        for (start, duration) in block {
            let mut record = vec![37, 0, id::BTREE_INSERT, 3];
            record.extend_from_slice(&start.to_le_bytes());
            record.extend_from_slice(&duration.to_le_bytes());
            record.extend_from_slice(&[0; 17]);
            records.extend_from_slice(&record);
        }
        writer.copy_records(&records).expect("legal records");
        writer.flush().expect("memory");
    }
    assert!(writer.close(&CloseInfo::default()).complete);
    writer.into_inner().into_inner()
}

fn export(bytes: &[u8], limits: ConvertLimits) -> (Sink, Exported) {
    let feed = || BlockFeed::from_file(bytes, ReadOptions::default()).expect("a trace");
    let options = PipelineOptions::default();
    let mut links = Links::default();
    let go_on = |_| ControlFlow::Continue(());
    let survey = survey::run(
        feed(),
        options,
        |record, found: &mut Links| found.observe(record),
        |found| links.merge(found),
        go_on,
    );
    let survey = survey.expect("readable").expect("not broken off");
    let tables = Tables::default();
    let context = TraceContext {
        tables: &tables,
        clock: Clock::new(1_000_000_000),
        origin_ticks: survey.origin_ticks,
        own_dialect: true,
        file_table: None,
        source_manifest: None,
        mark_names: None,
    };
    let query = ConvertQuery {
        filter: None,
        window: None,
        context: &context,
        survey: &survey,
        links: &links,
        limits,
    };
    let mut sink = Sink::default();
    let conversion = convert(feed(), options, query, &mut sink, go_on).expect("no fault");
    (sink, conversion.expect("not broken off").exported)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_slice_survives_and_nests_however_little_may_wait(
        mut spans in prop::collection::vec((0i64..400, 0i64..90), 1..200),
        is_in_recording_order in any::<bool>(),
        pending_spans in 1usize..60,
        pending_bytes in prop::sample::select(vec![1usize, 2_000, 64 << 20]),
        depth in prop::sample::select(vec![0, 1, 3, 128]),
    ) {
        if is_in_recording_order {
            spans.sort_by_key(|(start, duration)| start + duration);
        }
        let limits = ConvertLimits { pending_spans, pending_bytes, depth, ..ConvertLimits::default() };
        let (sink, exported) = export(&file(&spans), limits);
        let mut expected: Vec<(i64, i64)> =
            spans.iter().map(|(start, duration)| (*start, start + duration)).collect();
        expected.sort_unstable();
        prop_assert_eq!(exported.slices as usize, spans.len());
        prop_assert_eq!(sink.slices(), expected);
    }
}

/// A span over everything is written last; its lane must hold it without an overlap row, however long it waits.
#[test]
fn a_parent_that_comes_after_its_settled_children_stays_in_its_lane() {
    let mut spans: Vec<(i64, i64)> = (0..2_000).map(|n| (10 + n * 10, 5)).collect();
    spans.push((0, 30_000));
    let (sink, _) = export(&file(&spans), ConvertLimits { pending_spans: 50, ..ConvertLimits::default() });
    assert_eq!(sink.places.iter().filter(|place| matches!(place, Place::Overlap { .. })).count(), 0);
    let together: Vec<(i64, i64)> =
        spans.iter().map(|(start, duration)| (*start.max(&10), *duration)).collect();
    let (sink, _) = export(&file(&together), ConvertLimits { pending_spans: 50, ..ConvertLimits::default() });
    let overlaps = sink.places.iter().filter(|place| matches!(place, Place::Overlap { .. })).count();
    assert_eq!(
        overlaps, 1,
        "it begins together with a slice that has been written, so it cannot be drawn around it"
    );
    assert_eq!(sink.slices().len(), spans.len());
}

/// Spans that all overlap need as many rows; finding a free one must not take quadratic time.
#[test]
fn thousands_of_overlapping_spans_get_a_row_each() {
    let spans: Vec<(i64, i64)> = (0..20_000).map(|n| (n, 200_000)).collect();
    let limits = ConvertLimits { overlap_rows: 20_000, ..ConvertLimits::default() };
    let (sink, exported) = export(&file(&spans), limits);
    assert_eq!((exported.slices, sink.slices().len()), (20_000, 20_000));
}

/// Files of a few megabytes hold millions of equal spans. Only so many levels and rows are drawn; the others are counted.
#[test]
fn spans_beyond_the_depth_and_the_rows_are_counted() {
    let spans = vec![(10, 50); 1_000];
    let limits = ConvertLimits { pending_spans: 300, depth: 5, overlap_rows: 7, ..ConvertLimits::default() };
    let (sink, exported) = export(&file(&spans), limits);
    assert_eq!((exported.slices, exported.undrawn), (5 + 7, 1_000 - 5 - 7));
    let in_lane = |place: &Place| matches!(place, Place::Thread(_));
    assert_eq!(sink.places.iter().filter(|place| in_lane(place)).count(), 1);
    assert_eq!(sink.places.len(), 1 + 7);
    assert_eq!(
        sink.events.iter().find(|(place, _)| in_lane(place)).map(|(_, events)| events.len()),
        Some(10)
    );
    let later: Vec<(i64, i64)> = spans.into_iter().chain([(60, 5)]).collect();
    assert_eq!(export(&file(&later), limits).1.slices, 5 + 7 + 1, "a free row is used again");
}

/// What waits is bounded by bytes too: the last span of a lane is written when its block must go, so its twin comes late.
#[test]
fn a_single_span_does_not_keep_its_block_in_memory() {
    let mut spans: Vec<(i64, i64)> = (0..15).map(|n| (n * 10, 5)).collect();
    spans.extend([(200, 100), (200, 100)]);
    let (sink, _) = export(&file(&spans), ConvertLimits { pending_bytes: 1, ..ConvertLimits::default() });
    let (without_limit, _) = export(&file(&spans), ConvertLimits::default());
    assert_eq!((sink.places.len(), without_limit.places.len()), (2, 1));
}
