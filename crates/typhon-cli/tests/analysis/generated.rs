//! Generated recordings: whatever lies in them, in whatever order, `stats` agrees with the naive computation.

use crate::common::traces::{FIRST_TICKS, Records, Span, trace, worker};
use crate::common::{arg, typhon};
use crate::naive::{GROUPS, Recording, assert_rows};
use crate::stats::stats;
use proptest::prelude::*;
use typhon_trace::event::TickStart;

/// One record to be.
#[derive(Debug, Clone)]
enum Event {
    Span { kind: u8, slot: u8, start: i64, duration: i64 },
    Chunk { system: u16, slot: u8, start: i64, duration: i64 },
    Named { name: String, slot: u8, start: i64, duration: i64 },
    TickStart(i64),
    TickEnd(i64),
    Claim { slot: u8, at: i64, name: &'static str },
    Unknown { slot: u8, at: i64 },
}

/// Times are close together, so that spans touch, nest, overlap, have no length and cross ticks; slots are few and
/// change hands.
fn event() -> impl Strategy<Value = Event> {
    let at = || 0i64..500;
    let slot = || 0u8..3;
    prop_oneof![
        8 => (prop::sample::select(vec![20u8, 40, 42, 51, 56, 75]), slot(), at(), 0i64..120)
            .prop_map(|(kind, slot, start, duration)| Event::Span { kind, slot, start, duration }),
        3 => (0u16..4, slot(), at(), 0i64..90)
            .prop_map(|(system, slot, start, duration)| Event::Chunk { system, slot, start, duration }),
        2 => ("[ab]|TransactionCommit|\x1b\\[2J\u{202e}x", slot(), at(), 0i64..90)
            .prop_map(|(name, slot, start, duration)| Event::Named { name, slot, start, duration }),
        2 => at().prop_map(Event::TickStart),
        1 => at().prop_map(Event::TickEnd),
        1 => (slot(), at(), prop::sample::select(vec!["Worker-1", "Worker-2", ""]))
            .prop_map(|(slot, at, name)| Event::Claim { slot, at, name }),
        1 => (slot(), at()).prop_map(|(slot, at)| Event::Unknown { slot, at }),
    ]
}

fn write(records: Records, event: &Event, id: u64) -> Records {
    let at = |offset: &i64| FIRST_TICKS + offset;
    let span = |duration: &i64, payload: &[u8], records: Records, kind: u8, slot: &u8, start: &i64| {
        records.span(kind, *slot, at(start), Span { duration: *duration, id, site: None, payload })
    };
    match event {
        Event::Span { kind, slot, start, duration } => span(duration, &[0; 24], records, *kind, slot, start),
        Event::Chunk { system, slot, start, duration } => {
            let mut payload = system.to_le_bytes().to_vec();
            payload.resize(10, 0);
            span(duration, &payload, records, 10, slot, start)
        }
        Event::Named { name, slot, start, duration } => {
            let mut payload = name.as_bytes().to_vec();
            payload.push(0);
            span(duration, &payload, records, 246, slot, start)
        }
        Event::TickStart(start) => records.instant(&TickStart {}, 1, at(start)),
        Event::TickEnd(end) => records.raw(1, 1, at(end), &[0; 2]),
        Event::Claim { slot, at: moment, name } => records.instant(&worker(name), *slot, at(moment)),
        Event::Unknown { slot, at: moment } => records.raw(255, *slot, at(moment), &[1, 2, 3]),
    }
}

/// Blocks of a few records each, in the order given.
fn blocks(events: &[(usize, Event)], per_block: usize) -> Vec<Records> {
    let fill = |chunk: &[(usize, Event)]| {
        chunk
            .iter()
            .fold(Records::default(), |records, (index, event)| write(records, event, *index as u64 + 1))
    };
    events.chunks(per_block).map(fill).collect()
}

fn check(path: &std::path::Path) {
    let recording = Recording::read(path);
    for group in GROUPS {
        assert_rows(&stats(path, &["--by", group]), recording.rows(group, |_| true), group);
    }
    let ticks = stats(path, &[])["ticks"]["count"].clone();
    assert_eq!(ticks, recording.ticks(&(i64::MIN..i64::MAX)).len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn stats_equals_the_naive_computation_whole_and_cut(
        events in prop::collection::vec(event(), 1..80),
        per_block in 1usize..30,
        kept in 0.3f64..1.0,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let events: Vec<(usize, Event)> = events.into_iter().enumerate().collect();
        let whole = trace(&folder.path().join("whole.typhon-trace"), &blocks(&events, per_block));
        check(&whole);
        let bytes = std::fs::read(&whole).unwrap();
        let cut = folder.path().join("cut.typhon-trace");
        std::fs::write(&cut, &bytes[..(bytes.len() as f64 * kept) as usize]).unwrap();
        if typhon(&["trace", "info", arg(&cut)]).code == Some(0) {
            check(&cut);
        }
    }

    /// Recorders drain threads in any order, and a span is written when it ends (brief 01 invariant 9).
    #[test]
    fn order_of_blocks_and_records_changes_nothing(
        (events, shuffled) in prop::collection::vec(event(), 1..80)
            .prop_map(|events| events.into_iter().enumerate().collect::<Vec<_>>())
            .prop_flat_map(|events| (Just(events.clone()), Just(events).prop_shuffle())),
        per_block in 1usize..30,
    ) {
        // Two claims of one slot at the same moment have no order but that of the file.
        let claims = |events: &[(usize, Event)]| -> Vec<(u8, i64)> {
            let key = |(_, event): &(usize, Event)| match event {
                Event::Claim { slot, at, .. } => Some((*slot, *at)),
                _ => None,
            };
            events.iter().filter_map(key).collect()
        };
        let mut moments = claims(&events);
        moments.sort_unstable();
        prop_assume!(moments.windows(2).all(|pair| pair[0] != pair[1]));
        let folder = tempfile::tempdir().unwrap();
        let one = trace(&folder.path().join("a.typhon-trace"), &blocks(&events, per_block));
        let other = trace(&folder.path().join("b.typhon-trace"), &blocks(&shuffled, 7));
        for group in ["name", "thread"] {
            let (one, other) = (stats(&one, &["--by", group]), stats(&other, &["--by", group]));
            for part in ["rows", "ticks", "gc"] {
                prop_assert_eq!(&one[part], &other[part], "{}", part);
            }
        }
    }
}

#[test]
fn w7_a_capture_without_a_single_tick_shows_everything_but_ticks() {
    let folder = tempfile::tempdir().unwrap();
    let events = [(0, Event::Span { kind: 40, slot: 1, start: 5, duration: 30 })];
    let path = trace(&folder.path().join("tickless.typhon-trace"), &blocks(&events, 1));
    check(&path);
    let text = typhon(&["trace", "stats", arg(&path)]).expect(0).stdout;
    assert!(text.contains("BTreeInsert") && text.contains("ticks   none was recorded"), "{text}");
    assert!(
        stats(&path, &["--ticks", "0"])["rows"][0]["count"] == 1,
        "what lies before the first tick is tick 0"
    );
    let beyond = typhon(&["trace", "stats", "--ticks", "5", arg(&path)]).expect(64);
    assert!(beyond.stderr.contains("last tick"), "{}", beyond.stderr);
}

/// A recorder attached to a running engine: numbers come from the engine, and lost ticks are a gap.
#[test]
fn b36_a_capture_that_starts_mid_run_shows_the_engines_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let at = |offset: i64| FIRST_TICKS + offset;
    let snapshot = |tick_number: u32| typhon_trace::event::PerTickSnapshot { tick_number, gauges: &[] };
    let mut records = Records::default().instant(&worker("Driver"), 1, at(0));
    for (start, number) in [(10, 499u32), (20, 500), (30, 507)] {
        records = records
            .instant(&TickStart {}, 1, at(start * 1_000))
            .raw(1, 1, at(start * 1_000 + 4_000), &[0, 1])
            .instant(&snapshot(number), 1, at(start * 1_000 + 4_001));
    }
    let path = trace(&folder.path().join("attached.typhon-trace"), &[records]);
    let document = stats(&path, &[]);
    let worst: Vec<i64> = document["ticks"]["worst"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tick| tick["tick"].as_i64().unwrap())
        .collect();
    assert_eq!(worst, [500, 501, 508]);
    assert_eq!(
        document["ticks"]["notices"],
        serde_json::json!([{ "what": "gap", "tick": 508, "missing": 6 }])
    );
    let text = typhon(&["trace", "stats", arg(&path)]).expect(0).stdout;
    assert!(text.contains("6 ticks not recorded"), "{text}");
    assert_eq!(stats(&path, &["--ticks", "501"])["ticks"]["count"], 1);
}

#[test]
fn names_from_a_trace_cannot_touch_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let name = String::from("\x1b[2J\u{202e}evil\n");
    let events = [(0, Event::Named { name: name.clone(), slot: 1, start: 5, duration: 30 })];
    let path = trace(&folder.path().join("hostile.typhon-trace"), &blocks(&events, 1));
    for options in [&["--by", "name"][..], &["--by", "name", "--hist", &name]] {
        let run = typhon(&[&["trace", "stats", arg(&path)], options].concat()).expect(0);
        assert!(!run.stdout.contains('\x1b') && !run.stdout.contains('\u{202e}'), "{}", run.stdout);
        assert!(run.stdout.contains("\\x1b[2J"), "{}", run.stdout);
    }
    assert_eq!(stats(&path, &["--by", "name"])["rows"][0]["key"], name);
}
