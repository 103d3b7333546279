//! A session against the command line's own computations, on recorded files.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;
use typhon_analysis::facts::{TimeWindow, TraceContext};
use typhon_analysis::filter::{self, Filter};
use typhon_analysis::index::{EventId, LaneKind};
use typhon_analysis::pipeline::PipelineOptions;
use typhon_analysis::session::{Cancel, Direction, LaneInfo, Session, SessionOptions, SpanOrder, State};
use typhon_analysis::stats::{self, GroupBy, Row, StatsQuery};
use typhon_analysis::survey;
use typhon_analysis::tile::{
    CONTENT_COUNTERS, CONTENT_INSTANTS, CONTENT_SPANS, CONTENT_TICKS, Content, Entries, FLAG_FROM_LEFT,
    LaneRows, MAX_ROW_ENTRIES, SpanEntry, Tile, TileRequest,
};
use typhon_trace::reader::{BlockFeed, ReadOptions};

fn corpus(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(name)
}

const FILES: [&str; 3] = ["anthill.typhon-trace", "guide-shard.typhon-trace", "all-kinds.typhon-trace"];

fn open(name: &str) -> Session {
    let options = SessionOptions { answer_time: Duration::MAX, ..SessionOptions::default() };
    let session = Session::open(&corpus(name), options).expect("opens");
    assert_eq!(session.wait(), State::Ready);
    session
}

/// The same table by the way that `typhon trace stats` takes.
fn table(
    session: &Session,
    group_by: GroupBy,
    window: Option<&TimeWindow>,
    filter: Option<&Filter>,
) -> stats::Stats {
    let trace = session.trace();
    let feed = || BlockFeed::from_file(trace.data(), ReadOptions::default()).expect("opens");
    let options = PipelineOptions::new(NonZeroUsize::MIN);
    let survey = survey::run(feed(), options, |_, _: &mut ()| {}, |()| {}, |_| ControlFlow::Continue(()))
        .expect("reads");
    let survey = survey.expect("whole");
    let context = TraceContext::new(trace.header(), trace.tables(), trace.sections(), survey.origin_ticks);
    let query = StatsQuery { group_by, filter, window, context, survey: Some(&survey) };
    stats::run(feed(), options, query, |_| ControlFlow::Continue(())).expect("reads").expect("whole").0
}

type Figures = (String, u64, u64, u64, u64, u64, u64, [u64; 3]);

fn figures(rows: &[Row]) -> Vec<Figures> {
    let of = |row: &Row| {
        (
            row.key.clone(),
            row.count,
            row.spans,
            row.total_ns,
            row.self_ns,
            row.min_ns,
            row.max_ns,
            row.p50_p95_p99_ns,
        )
    };
    rows.iter().map(of).collect()
}

#[test]
fn inv6_statistics_equal_those_of_the_command_line() {
    for name in FILES {
        let session = open(name);
        let end = session.meta().expect("ready").end_ns;
        let windows = [None, Some(0..end / 3), Some(end / 3..end / 2), Some(end / 2..end / 2 + 1)];
        for window in windows.map(|range| range.map(|range| session.window(range).expect("ready"))) {
            for group_by in [GroupBy::Kind, GroupBy::Family, GroupBy::Name, GroupBy::System, GroupBy::Thread]
            {
                let expected = table(&session, group_by, window.as_ref(), None);
                let found = session.stats(group_by, window.as_ref(), 0, &Cancel::new()).expect("ready");
                assert_eq!(figures(&found.rows), figures(&expected.rows), "{name} {group_by:?} {window:?}");
                assert_eq!((found.gc, found.observed), (expected.gc, expected.observed));
            }
        }
    }
}

fn tiles(session: &Session, request: &TileRequest) -> Vec<Tile> {
    let mut tiles = Vec::new();
    session.tiles(request, &Cancel::new(), |tile| tiles.push(tile)).expect("ready");
    assert_eq!(tiles.pop().map(|tile| tile.content), Some(Content::End));
    tiles
}

fn whole(session: &Session, level: u8, content: u8) -> Vec<Tile> {
    let tile_count = (session.meta().expect("ready").end_ns >> (level + 9)) as u16 + 1;
    assert!(tile_count <= 64);
    let generation = session.generation();
    let request = TileRequest { generation, level, content, tile_count, ..TileRequest::default() };
    if content == CONTENT_TICKS {
        return tiles(session, &request);
    }
    // One lane at a time: a whole answer has a time limit, which a debug build may meet.
    let lanes = session.lanes().expect("ready");
    let of_lane = |id| TileRequest {
        lanes: vec![LaneRows { lane: id, first_row: 0, row_count: 255 }],
        ..request.clone()
    };
    lanes.iter().flat_map(|lane| tiles(session, &of_lane(lane.id))).collect()
}

#[test]
fn inv1_counts_add_up_at_every_level() {
    for name in FILES {
        let session = open(name);
        let lanes = session.lanes().expect("ready");
        let end = session.meta().expect("ready").end_ns;
        for level in (0..=48).filter(|level| end >> (level + 9) < 64) {
            let mut spans = vec![0; lanes.len()];
            let mut instants = vec![0; lanes.len()];
            for tile in whole(&session, level, CONTENT_SPANS | CONTENT_INSTANTS) {
                let Entries::Spans(entries) = &tile.entries else { panic!("spans were asked for") };
                let starting = |entry: &&SpanEntry| entry.flags & FLAG_FROM_LEFT == 0;
                let count: u64 = entries.iter().filter(starting).map(SpanEntry::count).sum();
                let sums = if tile.content == Content::Spans { &mut spans } else { &mut instants };
                sums[tile.lane as usize] += count;
                for row in 0..=255 {
                    assert!(entries.iter().filter(|entry| entry.row == row).count() <= MAX_ROW_ENTRIES);
                }
            }
            for lane in &lanes {
                let id = lane.id as usize;
                assert_eq!(
                    (spans[id], instants[id]),
                    (lane.spans, lane.instants),
                    "{name} {} {level}",
                    lane.label
                );
            }
        }
    }
}

#[test]
fn every_event_is_one_entry_of_its_thread() {
    for name in FILES {
        let session = open(name);
        let meta = session.meta().expect("ready");
        let lanes = session.lanes().expect("ready");
        let threads = lanes.iter().filter(|lane| matches!(lane.kind, LaneKind::Thread { .. }));
        assert_eq!(threads.map(|lane| lane.spans + lane.instants).sum::<u64>(), meta.totals.events);
        assert_eq!(meta.kinds.iter().map(|(_, count)| count).sum::<u64>(), meta.totals.events);
    }
}

#[test]
fn events_are_found_at_their_places_and_back() {
    for name in FILES {
        let session = open(name);
        let top = session.top_spans(SpanOrder::Own, None, 0, 50, &Cancel::new()).expect("ready");
        assert_eq!(top.len(), 50);
        assert!(top.windows(2).all(|pair| pair[0].self_ns >= pair[1].self_ns));
        for span in top {
            let detail = session.event(span.span.id).expect("there");
            assert_eq!(detail.place, Some(span.span.place));
            assert_eq!(session.event_at(span.span.place).expect("there"), span.span.id);
            assert_eq!((detail.self_ns, detail.tick), (Some(span.self_ns), span.tick));
            assert_eq!(
                (detail.start_ns, detail.duration_ns),
                (span.span.start_ns, Some(span.span.duration_ns as i64))
            );
            assert_eq!(EventId::from_u64(detail.id.to_u64()), detail.id);
            let parents = session.parents(span.span.place).expect("there");
            assert!(parents.iter().all(|parent| parent.start_ns <= detail.start_ns));
            let siblings = session.siblings(span.span.place, &Cancel::new()).expect("there");
            assert!(siblings.equal >= 1 && siblings.shorter + siblings.equal <= siblings.count);
        }
    }
}

#[test]
fn the_tick_strip_shows_every_tick_and_its_longest() {
    let session = open("anthill.typhon-trace");
    let ticks = session.ticks(0..usize::MAX).expect("ready");
    assert_eq!(ticks.len(), 67);
    let longest = ticks.iter().filter_map(|tick| tick.duration_ns).max().expect("some") as f32 / 1e6;
    let end = session.meta().expect("ready").end_ns;
    for level in (0..=48).filter(|level| end >> (level + 9) < 64) {
        let frames = whole(&session, level, CONTENT_TICKS);
        let entries = frames.iter().flat_map(|tile| match &tile.entries {
            Entries::Ticks(entries) => entries.as_slice(),
            _ => panic!("ticks were asked for"),
        });
        let (count, max) =
            entries.fold((0, 0f32), |(n, max), entry| (n + entry.ticks, max.max(entry.max_ms)));
        assert_eq!((count, max), (67, longest));
    }
}

#[test]
fn frames_come_back_from_their_bytes() {
    let session = open("anthill.typhon-trace");
    for tile in whole(&session, 20, CONTENT_SPANS | CONTENT_INSTANTS | CONTENT_COUNTERS | CONTENT_TICKS) {
        let mut bytes = Vec::new();
        tile.encode(&mut bytes);
        assert_eq!(bytes.len(), tile.encoded_bytes());
        assert_eq!(Tile::decode(&bytes), Ok(tile));
    }
}

#[test]
fn b25_a_filter_counts_exactly_and_draws_its_matches_at_their_places() {
    for name in FILES {
        let session = open(name);
        let lanes = session.lanes().expect("ready");
        for text in [
            "kind=BTree*",
            "dur>50us",
            "tick=20..30 | kind=SchedulerChunk",
            "name=* !dur>=0",
            "self>20us depth=1",
            // Decided by the index, by records, and by either.
            "thread=* thread!=Worker-1 dur<=20us",
            "slot>=1 ts=1ms..40ms",
            "Move | system=1 | family=Ecs*",
            "system=* dur>=1us",
            "!system=*",
            "kind!=SchedulerChunk !tick=3",
            "field.archetypeId>=0 | name~Gc",
            "kind=Instant name=*",
            "site>=0 | span=0 | parent!=0 | trace=*",
            "!(field.systemIdx>1) dur!=0",
            "id>=200 | field.generation=1",
        ] {
            let info = session.add_filter(text, &Cancel::new(), |_| {}).expect("parses");
            let parsed = filter::parse(text).expect("parses");
            let expected = table(&session, GroupBy::Kind, None, Some(&parsed));
            assert_eq!(info.matches, expected.rows.iter().map(|row| row.count).sum::<u64>(), "{name} {text}");
            let found = session.stats(GroupBy::Kind, None, info.id, &Cancel::new()).expect("ready");
            assert_eq!(figures(&found.rows), figures(&expected.rows), "{name} {text}");

            let is_thread = |kind| matches!(kind, LaneKind::Thread { .. });
            let drawn = drawn(&session, info.id, lanes.iter().filter(|lane| is_thread(lane.kind)));
            assert_eq!(drawn, info.matches, "{name} {text}");
            // Every chunk is once more in the lane of its system.
            let chunks = expected.rows.iter().find(|row| row.key == "SchedulerChunk");
            let is_system = |kind| matches!(kind, LaneKind::System { .. });
            let drawn = self::drawn(&session, info.id, lanes.iter().filter(|lane| is_system(lane.kind)));
            assert_eq!(drawn, chunks.map_or(0, |row| row.count), "{name} {text}");
            walk_matches(&session, info.id, info.matches.min(300) as usize);
            session.remove_filter(info.id);
            assert!(session.matches(info.id, None, Direction::Forward, 1).is_err());
        }
    }
}

/// Entries that begin in the tiles of some lanes.
fn drawn<'l>(session: &Session, filter: u16, lanes: impl Iterator<Item = &'l LaneInfo>) -> u64 {
    let (level, content) = (26, CONTENT_SPANS | CONTENT_INSTANTS);
    let tile_count = (session.meta().expect("ready").end_ns >> (level + 9)) as u16 + 1;
    let mut drawn = 0;
    for lane in lanes {
        let lanes = vec![LaneRows { lane: lane.id, first_row: 0, row_count: 255 }];
        let request = TileRequest { level, content, tile_count, filter, lanes, ..TileRequest::default() };
        for tile in tiles(session, &request) {
            let Entries::Spans(entries) = tile.entries else { panic!("spans were asked for") };
            let starting = entries.iter().filter(|entry| entry.flags & FLAG_FROM_LEFT == 0);
            drawn += starting.map(SpanEntry::count).sum::<u64>();
        }
    }
    drawn
}

/// Steps through matches one by one, forward and back again.
fn walk_matches(session: &Session, filter: u16, count: usize) {
    let listed = session.matches(filter, None, Direction::Forward, count).expect("ready");
    assert_eq!(listed.len(), count);
    assert!(listed.windows(2).all(|pair| pair[0].start_ns <= pair[1].start_ns));
    for pair in listed.windows(2).take(5) {
        assert_eq!(
            session.matches(filter, Some(pair[0].id), Direction::Forward, 1).expect("ready"),
            [pair[1]]
        );
        assert_eq!(
            session.matches(filter, Some(pair[1].id), Direction::Backward, 1).expect("ready"),
            [pair[0]]
        );
    }
}
