//! The invariants of the timeline (brief 11 §7) against a naive model, on made-up recordings.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::PathBuf;
use std::time::Duration;
use typhon_analysis::index::{EventId, LaneKind};
use typhon_analysis::session::{Cancel, LaneInfo, Memory, Place, Session, SessionOptions, State};
use typhon_analysis::tile::{
    CONTENT_COUNTERS, CONTENT_SPANS, Content, Entries, FLAG_AGGREGATE, FLAG_FROM_LEFT, FLAG_NO_END,
    FLAG_OVERFLOW, LaneRows, MAX_ROW_ENTRIES, SpanEntry, Tile, TileRequest, tile_range_ns,
};
use typhon_trace::event::{Gauge, GaugeValue, InstantEvent, PerTickSnapshot};
use typhon_trace::header::FileHeader;
use typhon_trace::registry::id;
use typhon_trace::tables::Tables;
use typhon_trace::writer::{CloseInfo, TraceWriter, WriterOptions};

/// A recording on disk that goes away with its folder.
struct Recording {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn record(records: &[Vec<u8>]) -> Recording {
    let header = FileHeader::new(639_028_224_000_000_000);
    let sink = Cursor::new(Vec::new());
    let mut writer =
        TraceWriter::create(sink, header, &Tables::default(), WriterOptions::new(250)).expect("created");
    for block in records.chunks(5_000) {
        writer.write_records(&block.concat()).expect("written");
    }
    assert_eq!(writer.close(&CloseInfo::default()).problems.len(), 0);
    let folder = tempfile::tempdir().expect("made");
    let path = folder.path().join("made-up.typhon-trace");
    std::fs::write(&path, writer.into_inner().into_inner()).expect("written");
    Recording { _folder: folder, path }
}

fn span(kind: u8, slot: u8, start: i64, duration: i64, span_id: u64) -> Vec<u8> {
    let mut bytes = vec![37, 0, kind, slot];
    bytes.extend_from_slice(&start.to_le_bytes());
    bytes.extend_from_slice(&duration.to_le_bytes());
    bytes.extend_from_slice(&span_id.to_le_bytes());
    bytes.extend_from_slice(&[0; 9]);
    bytes
}

fn open(recording: &Recording, memory_bytes: usize) -> Session {
    // Answers must be whole however busy the machine is.
    let options = SessionOptions {
        memory: Memory::new(memory_bytes),
        answer_time: Duration::MAX,
        ..SessionOptions::default()
    };
    let session = Session::open(&recording.path, options).expect("opens");
    assert_eq!(session.wait(), State::Ready);
    session
}

fn thread_lanes(session: &Session) -> Vec<LaneInfo> {
    let lanes = session.lanes().expect("ready").into_iter();
    lanes.filter(|lane| matches!(lane.kind, LaneKind::Thread { .. })).collect()
}

/// All tiles of some rows at a level, in requests of at most 64.
fn tiles(session: &Session, lane: u32, first_row: u16, row_count: u8, level: u8, content: u8) -> Vec<Tile> {
    let last = session.meta().expect("ready").end_ns >> (level + 9);
    let mut tiles = Vec::new();
    for first_tile in (0..=last).step_by(64) {
        let tile_count = (last - first_tile + 1).min(64) as u16;
        let lanes = vec![LaneRows { lane, first_row, row_count }];
        let request = TileRequest { level, content, first_tile, tile_count, lanes, ..TileRequest::default() };
        session.tiles(&request, &Cancel::new(), |tile| tiles.push(tile)).expect("ready");
        assert_eq!(tiles.pop().map(|tile| tile.content), Some(Content::End));
    }
    tiles
}

fn spans_of(tile: &Tile) -> &[SpanEntry] {
    match &tile.entries {
        Entries::Spans(entries) => entries,
        _ => panic!("spans were asked for"),
    }
}

/// Start and end of a span of the model, ns since the first.
type Extent = (u64, u64);

/// Checks the tiles of a row against the spans that the session says are in it.
fn check_row(session: &Session, lane: u32, row: u16, spans: &[Extent], level: u8) {
    let width = 1u64 << level;
    let mut counted = 0;
    for tile in tiles(session, lane, row, 1, level, CONTENT_SPANS) {
        let range = tile_range_ns(level, tile.tile);
        let entries = spans_of(&tile);
        assert!(entries.len() <= MAX_ROW_ENTRIES);
        assert!(entries.is_sorted_by_key(|entry| entry.x0));
        for entry in entries {
            assert!(entry.x0 < entry.x1 && entry.x1 <= 512);
            if entry.flags & FLAG_FROM_LEFT == 0 {
                counted += entry.count();
            }
            if entry.flags & FLAG_AGGREGATE == 0 {
                let (start, end) = spans[entry.index as usize];
                assert!(
                    start < range.end && end.max(start + 1) > range.start,
                    "an exact entry is in its tile"
                );
                assert_eq!(u64::from(entry.x0), (start.max(range.start) - range.start) >> level);
                // What is shorter than a bucket counts whole where it begins.
                let busy_ns = match end - start >= width {
                    true => end.min(range.end).saturating_sub(start.max(range.start)),
                    false => end - start,
                } as f64;
                let buckets_ns = (u64::from(entry.x1 - entry.x0) * width) as f64;
                let off = f64::from(entry.cover) - busy_ns / buckets_ns * f64::from(u16::MAX);
                assert!(off.abs() <= 1.0, "level {level}: {entry:?} says how much of its buckets is busy");
            }
        }
        for (index, (start, end)) in spans.iter().enumerate() {
            if end - start >= width && *start < range.end && *end > range.start {
                let is_it =
                    |entry: &SpanEntry| entry.flags & FLAG_AGGREGATE == 0 && entry.index as usize == index;
                assert!(
                    entries.iter().any(is_it),
                    "level {level}: a span of a bucket or more has its own entry"
                );
            }
        }
    }
    assert_eq!(counted, spans.len() as u64, "level {level}: counts add up");
}

/// The spans of a row as the inspector has them.
fn row_spans(session: &Session, lane: u32, row: u16) -> Vec<(Extent, EventId)> {
    let mut spans = Vec::new();
    while let Ok(id) = session.event_at(Place { lane, row: Some(row), index: spans.len() as u64 }) {
        let detail = session.event(id).expect("there");
        let end = detail.start_ns + detail.duration_ns.expect("a span").max(0) as u64;
        spans.push(((detail.start_ns, end), id));
    }
    spans
}

fn made_up() -> impl Strategy<Value = Vec<(u8, i64, i64)>> {
    let near = (0u8..2, 0i64..3_000, 0i64..400);
    let far = (0u8..2, 0i64..50_000_000, (0u32..26).prop_map(|bits| 1i64 << bits));
    let same = (0u8..1, Just(700i64), 0i64..3);
    prop::collection::vec(prop_oneof![4 => near, 3 => far, 1 => same], 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn inv1_2_3_5_hold_for_any_spans(spans in made_up(), memory in prop::sample::select(vec![0usize, 64 << 20])) {
        let kinds = [id::BTREE_INSERT, id::BTREE_DELETE];
        let records: Vec<Vec<u8>> = spans
            .iter()
            .zip(1u64..)
            .map(|((slot, start, length), id)| span(kinds[(id % 2) as usize], *slot, 1_000 + start, *length, id))
            .collect();
        let session = open(&record(&records), memory);
        let mut seen = Vec::new();
        for lane in thread_lanes(&session) {
            for row in 0..lane.rows as u16 {
                let held = row_spans(&session, lane.id, row);
                prop_assert!(held.windows(2).all(|pair| pair[0].0.1 <= pair[1].0.0), "spans of a row do not overlap");
                seen.extend(held.iter().map(|(_, id)| *id));
                let extents: Vec<Extent> = held.iter().map(|(extent, _)| *extent).collect();
                for level in [10, 13, 17, 20, 26, 40] {
                    check_row(&session, lane.id, row, &extents, level);
                }
            }
        }
        seen.sort_unstable();
        seen.dedup();
        prop_assert_eq!(seen.len(), spans.len(), "each span once");
    }
}

/// A row of many groups, so that levels of detail are used, with spans of all lengths.
#[test]
fn inv1_2_3_hold_on_rows_with_a_pyramid() {
    let (mut records, mut at, mut state) = (Vec::new(), 1_000i64, 7u64);
    for id in 1..=30_000u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let length = 1i64 << ((state >> 59) % 20);
        records.push(span(id::BTREE_INSERT + (state >> 40) as u8 % 3, 1, at, length, id));
        at += length + (state >> 50) as i64 % 500 * i64::from(id % 1_000 == 0) + (state >> 33) as i64 % 3;
    }
    let session = open(&record(&records), 0);
    let extents: Vec<Extent> = records
        .iter()
        .map(|bytes| {
            let word = |at: usize| i64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
            ((word(4) - 1_000) as u64, (word(4) - 1_000 + word(12)) as u64)
        })
        .collect();
    let [lane] = thread_lanes(&session).try_into().expect("one lane");
    assert_eq!(lane.rows, 1);
    for level in 14..=48 {
        check_row(&session, lane.id, 0, &extents, level);
    }
}

#[test]
fn inv3_adversarial_recordings_stay_within_bounds() {
    let equal: Vec<Vec<u8>> = (1..=100_000).map(|id| span(id::BTREE_INSERT, 1, 5_000, 700, id)).collect();
    let nested: Vec<Vec<u8>> = (0..80_000)
        .map(|depth| span(id::BTREE_INSERT, 1, depth, 1_000_000 - 2 * depth, depth as u64 + 1))
        .collect();
    let mut slots: Vec<Vec<u8>> =
        (0..25_000u64).map(|n| span(id::BTREE_INSERT, (n % 249) as u8, n as i64 * 10, 400, n + 1)).collect();
    slots.push(span(id::BTREE_DELETE, 3, 0, 1 << 40, 1 << 40));
    for (name, records) in [("equal", equal), ("nested", nested), ("slots", slots)] {
        let session = open(&record(&records), 4 << 20);
        let lanes = thread_lanes(&session);
        assert_eq!(lanes.iter().map(|lane| lane.spans).sum::<u64>(), records.len() as u64, "{name}");
        for lane in lanes {
            assert!(lane.rows <= 65_534, "{name}");
            for first_row in [0, lane.rows.saturating_sub(255)] {
                for level in [6, 12, 20, 32, 48] {
                    let lanes = vec![LaneRows { lane: lane.id, first_row: first_row as u16, row_count: 255 }];
                    let request = TileRequest {
                        level,
                        content: CONTENT_SPANS,
                        tile_count: 2,
                        lanes,
                        ..TileRequest::default()
                    };
                    let check = |tile: Tile| {
                        let mut of_row = BTreeMap::new();
                        if tile.content == Content::Spans {
                            spans_of(&tile)
                                .iter()
                                .for_each(|entry| *of_row.entry(entry.row).or_insert(0) += 1);
                        }
                        assert!(of_row.values().all(|count| *count <= MAX_ROW_ENTRIES), "{name}");
                    };
                    session.tiles(&request, &Cancel::new(), check).expect("ready");
                }
            }
        }
    }
}

#[test]
fn b12_completions_stand_beside_their_kick_off() {
    let records = [
        span(id::PAGE_CACHE_DISK_READ, 1, 1_000, 100, 7),
        span(id::PAGE_CACHE_DISK_READ_COMPLETED, 1, 1_000, 5_000, 7),
        span(id::BTREE_INSERT, 1, 2_000, 300, 8),
    ];
    let session = open(&record(&records), 0);
    let [lane] = thread_lanes(&session).try_into().expect("one lane");
    assert_eq!((lane.nested_rows, lane.rows), (1, 2));
    assert_eq!(row_spans(&session, lane.id, 0).len(), 2);
    let [tile] = tiles(&session, lane.id, 1, 1, 10, CONTENT_SPANS).try_into().expect("one tile");
    let [tail] = spans_of(&tile) else { panic!("one tail") };
    assert_eq!(tail.flags & FLAG_OVERFLOW, FLAG_OVERFLOW);
    assert_eq!(tail.flags & typhon_analysis::tile::FLAG_TAIL, typhon_analysis::tile::FLAG_TAIL);
    let strips = session.lanes().expect("ready").into_iter();
    assert_eq!(strips.filter(|lane| lane.label == "Disk I/O").map(|lane| lane.spans).sum::<u64>(), 2);
}

#[test]
fn b13_a_span_without_an_end_stops_at_the_next_record() {
    let records = [
        span(id::BTREE_INSERT, 1, 1_000, -1, 7),
        span(id::BTREE_DELETE, 1, 9_000, 50, 8),
        span(id::BTREE_INSERT, 2, 1_000, 1, 9),
    ];
    let session = open(&record(&records), 0);
    let lane = thread_lanes(&session).into_iter().find(|lane| lane.slot == Some((1, 0))).expect("there");
    let [tile] = tiles(&session, lane.id, 0, 1, 5, CONTENT_SPANS).try_into().expect("one tile");
    let first = spans_of(&tile)[0];
    assert_eq!((first.flags & FLAG_NO_END, first.x0, first.x1), (FLAG_NO_END, 0, 250));
    let detail =
        session.event(session.event_at(Place { lane: lane.id, row: Some(0), index: 0 }).expect("there"));
    assert!(detail.expect("there").has_no_end);
}

#[test]
fn b14_the_scale_of_a_gauge_does_not_depend_on_the_view() {
    let mut records = Vec::new();
    for tick in 0..20_000u32 {
        let value = u64::from(tick) * 7_919 % 100_003;
        let gauges = [Gauge { id: 0x0110, value: GaugeValue::U64Bytes(value) }];
        let snapshot = PerTickSnapshot { tick_number: tick, gauges: &gauges };
        let mut bytes = [0; 256];
        let size = snapshot.encode(1, 1_000 + i64::from(tick) * 1_000, &mut bytes).expect("fits");
        records.push(bytes[..size].to_vec());
    }
    let session = open(&record(&records), 0);
    let lane = session.lanes().expect("ready").into_iter().find(|lane| lane.samples > 0).expect("a gauge");
    let values: Vec<u64> = (0..20_000u64).map(|tick| tick * 7_919 % 100_003).collect();
    let largest = *values.iter().max().expect("some");
    assert_eq!(lane.value_range, Some((0, largest as i64)));
    for level in [6, 9, 12, 15, 18, 30] {
        let frames = tiles(&session, lane.id, 0, 1, level, CONTENT_COUNTERS);
        let (mut samples, mut max) = (0, 0f32);
        for (index, tile) in frames.iter().enumerate() {
            let Entries::Counter(entries) = &tile.entries else { panic!("a gauge was asked for") };
            assert_eq!(
                entries.first().is_some_and(|entry| entry.samples == 0),
                index > 0,
                "the value from before"
            );
            samples += entries.iter().map(|entry| u64::from(entry.samples)).sum::<u64>();
            max = entries.iter().fold(max, |max, entry| max.max(entry.max));
        }
        assert_eq!((samples, max), (20_000, largest as f32), "level {level}");
        assert_eq!(session.lanes().expect("ready")[lane.id as usize].value_range, Some((0, largest as i64)));
    }
}
