//! The search of a session, which asks the index first, against the filter applied to every record: any filter over any
//! recording, sound, cut or damaged.

use proptest::prelude::*;
use std::collections::BTreeSet;
use std::io::Cursor;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use typhon_analysis::facts::{MarkNames, RecordFacts, TraceContext};
use typhon_analysis::filter::{self, Filter};
use typhon_analysis::index::EventId;
use typhon_analysis::pipeline::{PipelineOptions, map_blocks};
use typhon_analysis::placing::{Place, Placer};
use typhon_analysis::session::{Cancel, Direction, Session, SessionOptions, State};
use typhon_analysis::survey::{self, Survey};
use typhon_trace::TraceError;
use typhon_trace::event::enums::ThreadKind;
use typhon_trace::event::{InstantEvent, ThreadInfo};
use typhon_trace::header::FileHeader;
use typhon_trace::reader::{BlockBuffer, BlockFeed, ReadOptions, Sequenced};
use typhon_trace::record::{Record, RecordWalk};
use typhon_trace::registry::{self, id};
use typhon_trace::tables::{System, Tables};
use typhon_trace::trailer::{SpanName, SpanNames};
use typhon_trace::writer::{CloseInfo, TraceWriter, WriterOptions};

/// A recording on disk that goes away with its folder.
struct Recording {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

/// What happens to a file after it was written.
#[derive(Debug, Clone, Copy)]
enum Harm {
    None,
    /// It ends at this share of its length, in 1/1,000.
    Cut(usize),
    /// The byte there has other bits.
    Bits(usize, u8),
}

#[derive(Debug)]
struct MadeUp {
    ticks_per_second: i64,
    records: Vec<Vec<u8>>,
    records_per_block: usize,
    harm: Harm,
    is_closed: bool,
}

impl MadeUp {
    fn sound(records: Vec<Vec<u8>>, ticks_per_second: i64) -> Self {
        Self { ticks_per_second, records, records_per_block: 5_000, harm: Harm::None, is_closed: true }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut header = FileHeader::new(639_028_224_000_000_000);
        header.timestamp_frequency = self.ticks_per_second;
        let system = |index: u16, name: &str| System { index, name: name.into(), ..Default::default() };
        let tables = Tables {
            systems: vec![system(0, "Move"), system(1, "Collide"), system(3, "")],
            ..Tables::default()
        };
        let sink = Cursor::new(Vec::new());
        let mut writer =
            TraceWriter::create(sink, header, &tables, WriterOptions::new(250)).expect("created");
        for (number, block) in self.records.chunks(self.records_per_block).enumerate() {
            if number == 1 {
                let name = |id, name: &str| SpanName { id, name: name.into() };
                let names = SpanNames { entries: vec![name(0, "Loaded"), name(1, "Saved")] };
                writer.span_names(&names).expect("taken");
            }
            writer.copy_records(&block.concat()).expect("written");
            writer.flush().expect("written");
        }
        if self.is_closed {
            writer.close(&CloseInfo::default());
        }
        let mut bytes = writer.into_inner().into_inner();
        match self.harm {
            Harm::None => {}
            Harm::Cut(share) => bytes.truncate(bytes.len() * share / 1_000),
            Harm::Bits(share, bits) => {
                let at = bytes.len() * share / 1_000;
                bytes[at] ^= bits;
            }
        }
        bytes
    }

    fn record(&self) -> Recording {
        let folder = tempfile::tempdir().expect("made");
        let path = folder.path().join("made-up.typhon-trace");
        std::fs::write(&path, self.bytes()).expect("written");
        Recording { _folder: folder, path }
    }
}

/// A record of any kind.
fn raw(kind: u8, slot: u8, start: i64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, kind, slot];
    bytes.extend_from_slice(&start.to_le_bytes());
    bytes.extend_from_slice(payload);
    let size = bytes.len() as u16;
    bytes[..2].copy_from_slice(&size.to_le_bytes());
    bytes
}

/// A span; `optional` adds a trace id or a source location as its lowest bits say.
fn span(
    kind: u8,
    slot: u8,
    start: i64,
    duration: i64,
    ids: (u64, u64),
    optional: u8,
    payload: &[u8],
) -> Vec<u8> {
    let mut rest = duration.to_le_bytes().to_vec();
    rest.extend_from_slice(&ids.0.to_le_bytes());
    rest.extend_from_slice(&ids.1.to_le_bytes());
    rest.push(optional & 3);
    if optional & 1 != 0 {
        rest.extend_from_slice(&[7; 16]);
    }
    if optional & 2 != 0 {
        rest.extend_from_slice(&2u16.to_le_bytes());
    }
    rest.extend_from_slice(payload);
    raw(kind, slot, start, &rest)
}

fn thread_info(slot: u8, start: i64, name: &str) -> Vec<u8> {
    let info = ThreadInfo { managed_thread_id: 5, name, thread_kind: ThreadKind(1) };
    let mut bytes = [0; 256];
    let size = info.encode(slot, start, &mut bytes).expect("fits");
    bytes[..size].to_vec()
}

/// Moments: near each other, far apart, and at the ends of what a timestamp can say.
fn moment() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => 1_000i64..6_000,
        2 => 0i64..50_000_000,
        1 => prop::sample::select(vec![i64::MIN, i64::MIN + 5, -3, 0, i64::MAX / 2, i64::MAX - 700, i64::MAX]),
    ]
}

fn duration() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => 0i64..900,
        2 => (0u32..40).prop_map(|bits| 1i64 << bits),
        1 => -5i64..0,
        1 => prop::sample::select(vec![i64::MIN, i64::MIN + 1, i64::MAX / 2, i64::MAX - 1, i64::MAX]),
    ]
}

fn kind() -> impl Strategy<Value = u8> {
    let usual = vec![
        id::SCHEDULER_CHUNK,
        id::SCHEDULER_CHUNK,
        id::NAMED_SPAN,
        id::NAMED_SPAN,
        id::INSTANT,
        id::TICK_START,
        id::TICK_END,
        id::BTREE_INSERT,
        id::PAGE_CACHE_DISK_READ_COMPLETED,
        id::GC_START,
        id::GC_END,
        id::GC_SUSPENSION,
        id::RUNTIME_PHASE_SPAN,
        id::PER_TICK_SNAPSHOT,
        76,
        242,
        244,
    ];
    prop_oneof![3 => prop::sample::select(usual), 1 => any::<u8>()]
}

/// Payloads of small numbers, so that fields agree now and then, and texts with all that texts may hold.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let small = prop_oneof![3 => Just(0u8), 2 => 0u8..4, 1 => any::<u8>()];
    let text = prop::sample::select(vec!["Load", "Move", "\0", "", "é\0rest", "load\u{301}", "x"]);
    prop_oneof![
        3 => prop::collection::vec(small, 0..40),
        2 => text.prop_map(|text| text.as_bytes().to_vec()),
        1 => Just(vec![0xFF, b'L', 0xC3]),
    ]
}

fn any_record() -> impl Strategy<Value = Vec<u8>> {
    let slot = prop_oneof![8 => 0u8..3, 1 => any::<u8>()];
    let ids = (0u64..4, 0u64..3);
    let event = (kind(), slot, moment(), duration(), ids, any::<u8>(), payload()).prop_map(
        |(kind, slot, start, duration, ids, optional, payload)| match registry::is_span(kind) {
            true => span(kind, slot, start, duration, ids, optional, &payload),
            false => raw(kind, slot, start, &payload),
        },
    );
    let name = prop::sample::select(vec!["", "Worker-1", "Worker-2", "main", "Move"]);
    let info = (0u8..3, moment(), name).prop_map(|(slot, start, name)| thread_info(slot, start, name));
    // Shorter than the header of a span.
    let short = (0u8..3, moment(), prop::collection::vec(any::<u8>(), 0..24))
        .prop_map(|(slot, start, rest)| raw(id::BTREE_INSERT, slot, start, &rest));
    let mark = (0u8..3, moment(), 0i32..3).prop_map(|(slot, start, name)| {
        raw(id::INSTANT, slot, start, &[name.to_le_bytes(), [0; 4]].concat())
    });
    prop_oneof![12 => event, 1 => mark, 1 => info, 1 => short]
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        3 => Just(Harm::None),
        1 => (0usize..1_000).prop_map(Harm::Cut),
        1 => (0usize..1_000, 1u8..=255).prop_map(|(at, bits)| Harm::Bits(at, bits)),
    ]
}

fn made_up() -> impl Strategy<Value = MadeUp> {
    let clocks = vec![1_000_000_000, 1_000_000_000, 10_000_000, 3_000_000, 2_918_400_000, 1, i64::MAX];
    let clock = prop::sample::select(clocks);
    let records = prop::collection::vec(any_record(), 0..120);
    (clock, records, 1usize..40, harm(), any::<bool>()).prop_map(
        |(ticks_per_second, records, records_per_block, harm, is_closed)| MadeUp {
            ticks_per_second,
            records,
            records_per_block,
            harm,
            is_closed,
        },
    )
}

fn number() -> impl Strategy<Value = String> {
    let limits = vec![i64::MIN, i64::MIN + 1, -1, 0, 1, 333, i64::MAX / 2, i64::MAX - 1, i64::MAX];
    prop_oneof![
        2 => (-3i64..6).prop_map(|value| value.to_string()),
        3 => (0i64..9_000).prop_map(|value| value.to_string()),
        2 => prop::sample::select(limits).prop_map(|value| value.to_string()),
        1 => prop::sample::select(vec!["1.5", "0.1", "333.3", "99999999999999999999"]).prop_map(str::to_owned),
    ]
}

fn number_test(keys: Vec<&'static str>, unit: &'static str) -> impl Strategy<Value = String> {
    let ops = prop::sample::select(vec!["=", "!=", "<", "<=", ">", ">="]);
    let to = prop_oneof![
        3 => Just(String::new()),
        1 => Just("..".to_owned()),
        1 => number().prop_map(move |to| format!("..{to}{unit}")),
        1 => number().prop_map(move |to| format!("..={to}{unit}")),
    ];
    (prop::sample::select(keys), ops, number(), to).prop_map(move |(key, op, from, to)| {
        let op = if to.is_empty() || op == "!=" { op } else { "=" };
        format!("{key}{op}{from}{unit}{to}")
    })
}

fn term() -> impl Strategy<Value = String> {
    let texts = vec!["Load", "Move", "*", "\"\"", "load*", "Worker-1", "BTree*", "*o*", "1", "Saved"];
    let text = (
        prop::sample::select(vec!["name", "thread", "system", "site", "trace"]),
        prop::sample::select(vec!["=", "!="]),
        prop::sample::select(texts),
    )
        .prop_map(|(key, op, value)| format!("{key}{op}{value}"));
    let others = prop::sample::select(vec![
        "o",
        "name~^[LM]",
        "name~[^a-z]",
        "thread~er",
        "kind=SchedulerChunk",
        "kind!=BTree*",
        "kind=Instant",
        "kind=NamedSpan",
        "family!=Scheduler",
        "id>=245",
        "field.systemIdx=0..2",
        "field.nameId=Saved",
        "field.name=*o*",
        "field.archetypeId>=0",
        "field.generation=1",
    ]);
    prop_oneof![
        4 => number_test(vec!["ts", "dur"], "ns"),
        3 => number_test(vec!["slot", "tick", "system", "site", "span", "parent"], ""),
        2 => text,
        3 => others.prop_map(str::to_owned),
        1 => number_test(vec!["self"], "ns"),
        1 => number_test(vec!["depth"], ""),
    ]
}

fn expression() -> impl Strategy<Value = String> {
    term().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|part| format!("!({part})")),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| parts.join(" ")),
            prop::collection::vec(inner, 2..4).prop_map(|parts| format!("({})", parts.join(" | "))),
        ]
    })
}

fn open(path: &Path, keeps_index: bool) -> Option<Session> {
    let options =
        SessionOptions { index_files: keeps_index, index_min_bytes: 0, ..SessionOptions::default() };
    // One that is cut in its header does not open, which is not the search's business.
    let session = Session::open(path, options).ok()?;
    assert_eq!(session.wait_until_idle(), State::Ready);
    Some(session)
}

/// A file by its records, each with its place if it is a span.
struct Scan<'s> {
    session: &'s Session,
    survey: Survey,
    marks: MarkNames,
    records: Vec<(EventId, Vec<u8>, Option<Place>)>,
}

impl<'s> Scan<'s> {
    fn new(session: &'s Session) -> Self {
        let trace = session.trace();
        let feed = || BlockFeed::from_file(trace.data(), ReadOptions::default()).expect("opens");
        let options = PipelineOptions::new(NonZeroUsize::MIN);
        let keep_on = |_| ControlFlow::Continue(());
        let survey = survey::run(feed(), options, |_, _: &mut ()| {}, |()| {}, keep_on);
        let survey = survey.expect("reads").expect("whole");
        let mut placer = Placer::<(EventId, Vec<u8>)>::default();
        let copy =
            || |block: &BlockBuffer| block.events().flat_map(|record| record.bytes().to_vec()).collect();
        let keep = |block: Sequenced<Vec<u8>>| {
            if block.delivered {
                let (number, record) = (block.summary.entry.index, block.summary.leading_markers());
                let first = EventId { block: number as u32, record };
                placer.push((first, block.payload), |(_, bytes), see| RecordWalk::new(bytes).for_each(see));
            }
            Ok::<_, TraceError>(ControlFlow::Continue(()))
        };
        map_blocks(feed(), options, copy, keep).expect("reads");
        placer.finish();
        let mut records = Vec::new();
        while let Some(((first, bytes), places)) = placer.pop() {
            let mut places = places.into_iter();
            for (record, number) in RecordWalk::new(&bytes).zip(first.record..) {
                let place = record.span().and_then(|_| places.next());
                records.push((EventId { record: number, ..first }, record.bytes().to_vec(), place));
            }
        }
        Self { session, survey, marks: MarkNames::read(trace).expect("reads"), records }
    }

    /// The events that match, by the filter applied to each of them.
    fn matches(&self, filter: &Filter) -> BTreeSet<EventId> {
        let trace = self.session.trace();
        let Survey { threads, ticks, origin_ticks, .. } = &self.survey;
        let context = TraceContext::new(trace.header(), trace.tables(), trace.sections(), *origin_ticks)
            .with_mark_names(&self.marks);
        let matching = self.records.iter().filter(|(_, bytes, place)| {
            let record = Record::parse(bytes).expect("whole");
            let at = record.timestamp();
            filter.matches(&RecordFacts {
                record,
                context: &context,
                thread: threads.at(record.slot(), at).and_then(|thread| thread.name.as_deref()),
                tick: u64::try_from(ticks.tick_at(at)).unwrap_or(0),
                place: *place,
            })
        });
        matching.map(|(id, ..)| *id).collect()
    }
}

/// Compares both for every filter.
fn check(session: &Session, filters: &[String]) -> Result<(), TestCaseError> {
    let scan = Scan::new(session);
    let cancel = Cancel::new();
    for text in filters {
        // Not every value goes with every key, and not every range holds something.
        let Ok(filter) = filter::parse(text) else { continue };
        let expected = scan.matches(&filter);
        let info = session.add_filter(text, &cancel, |_| {}).expect("ready");
        let listed = session.matches(info.id, None, Direction::Forward, usize::MAX).expect("ready");
        let found: BTreeSet<EventId> = listed.iter().map(|span| span.id).collect();
        prop_assert_eq!(&found, &expected, "{}", text);
        for limit in [0, 1, 7, usize::MAX] {
            let first = session.first_matches(text, limit, Duration::MAX, &cancel).expect("ready");
            let is_empty = filter.needs_places();
            let expected = if is_empty { &[][..] } else { &listed[..limit.min(listed.len())] };
            prop_assert_eq!(&first, expected, "the first {} of {}", limit, text);
        }
        prop_assert_eq!((info.matches, listed.len()), (expected.len() as u64, expected.len()), "{}", text);
        // Within no time at all there are some of them, but no others.
        let none = session.first_matches(text, 7, Duration::ZERO, &cancel).expect("ready");
        prop_assert!(listed.starts_with(&none), "{}", text);
        session.remove_filter(info.id);
    }
    Ok(())
}

/// Each case is a file and a dozen filters, so there are fewer than usual; `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_some() { usual } else { ProptestConfig { cases: 64, ..usual } }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn b25_a_search_finds_what_a_scan_of_all_records_finds(
        made_up in made_up(),
        filters in prop::collection::vec(expression(), 1..24),
        keeps_index in prop::sample::select(vec![false, false, false, true]),
    ) {
        let recording = made_up.record();
        let Some(session) = open(&recording.path, keeps_index) else { return Ok(()) };
        check(&session, &filters)?;
        if keeps_index {
            drop(session);
            check(&open(&recording.path, true).expect("opened before"), &filters)?;
        }
    }
}

/// Spans that last beyond the end of all time look short on the axis.
#[test]
fn b25_spans_that_end_after_all_time_have_their_durations() {
    let (first, last) = (i64::MAX / 2, i64::MAX - 100);
    let filters = ["dur>1us", "dur<=1us", "dur=7us", "dur>=5s", "!dur<1s"].map(str::to_owned);
    for ticks_per_second in [1_000_000_000, 10_000_000, i64::MAX] {
        for starts in [[0, last], [i64::MIN, first], [-2, first + 5], [0, first / 50]] {
            let spans = starts.into_iter().zip([7_000, i64::MAX]).zip(0u64..);
            let records = spans.map(|((start, duration), number)| {
                span(id::BTREE_INSERT, number as u8, start, duration, (number, 0), 0, &[])
            });
            let recording = MadeUp::sound(records.collect(), ticks_per_second).record();
            check(&open(&recording.path, false).expect("opens"), &filters).expect("equal");
        }
    }
}

/// More texts than there are names in the index: those beyond share one.
#[test]
fn b25_texts_beyond_the_names_of_the_index_are_told_apart() {
    let text = |number: u64| {
        if number.is_multiple_of(9_973) { "often".to_owned() } else { format!("span {number}") }
    };
    let records = (0..70_000u64).map(|number| {
        span(id::NAMED_SPAN, 1, number as i64 * 10, 4, (number, 0), 0, text(number).as_bytes())
    });
    let recording = MadeUp::sound(records.collect(), 1_000_000_000).record();
    let session = open(&recording.path, false).expect("opens");
    assert_eq!(session.names().expect("ready").len(), 65_535);
    let filters = [
        "name=often",
        "name!=often ts>600us",
        "name=\"span 69999\"",
        "69998 | 12",
        "name~[05]000$ dur=4 !tick=9 slot=1",
    ];
    check(&session, &filters.map(str::to_owned)).expect("equal");
}
