//! The filter language: what it selects, where it points when it is wrong, and that printing keeps its meaning.

use proptest::prelude::*;
use std::borrow::Cow;
use typhon_analysis::filter::{Facts, FieldFact, Number, SystemRef, parse};

/// A record with everything set by hand.
#[derive(Default)]
struct Sample {
    kind: u8,
    slot: u8,
    tick: u64,
    ts_ns: i64,
    dur_ns: Option<i64>,
    self_ns: Option<i64>,
    depth: Option<u32>,
    span: Option<u64>,
    parent: Option<u64>,
    trace: Option<&'static str>,
    site: Option<(u16, &'static str)>,
    name: Option<&'static str>,
    thread: Option<&'static str>,
    system: Option<SystemRef<'static>>,
    fields: Vec<(&'static str, FieldFact<'static>)>,
}

impl Facts for Sample {
    fn kind(&self) -> u8 {
        self.kind
    }
    fn slot(&self) -> u8 {
        self.slot
    }
    fn tick(&self) -> u64 {
        self.tick
    }
    fn ts_ns(&self) -> i64 {
        self.ts_ns
    }
    fn dur_ns(&self) -> Option<i64> {
        self.dur_ns
    }
    fn self_ns(&self) -> Option<i64> {
        self.self_ns
    }
    fn depth(&self) -> Option<u32> {
        self.depth
    }
    fn span_id(&self) -> Option<u64> {
        self.span
    }
    fn parent_span_id(&self) -> Option<u64> {
        self.parent
    }
    fn trace_id(&self) -> Option<Cow<'_, str>> {
        self.trace.map(Cow::Borrowed)
    }
    fn site_id(&self) -> Option<u16> {
        self.site.map(|(id, _)| id)
    }
    fn site_texts(&self) -> [Option<Cow<'_, str>>; 2] {
        [self.site.map(|(_, text)| Cow::Borrowed(text)), None]
    }
    fn name(&self) -> Option<Cow<'_, str>> {
        self.name.map(Cow::Borrowed)
    }
    fn thread(&self) -> Option<Cow<'_, str>> {
        self.thread.map(Cow::Borrowed)
    }
    fn system(&self) -> Option<SystemRef<'_>> {
        self.system
    }
    fn field(&self, name: &str) -> Option<FieldFact<'_>> {
        self.fields.iter().find(|(field, _)| *field == name).map(|(_, fact)| fact.clone())
    }
}

/// BTreeInsert on a worker: a span without fields.
fn insert() -> Sample {
    Sample {
        kind: 40,
        slot: 2,
        tick: 28,
        ts_ns: 1_500_000,
        dur_ns: Some(50_000),
        span: Some(0x0200_0000_0000_0001),
        trace: Some("4bf92f3577b34da6a3ce929d0e0e4736"),
        site: Some((17, "src/sim.rs:76")),
        name: Some("BTreeInsert"),
        thread: Some("Worker-2"),
        ..Sample::default()
    }
}

/// CheckpointCycle (83): fields targetLsn, reason.
fn checkpoint() -> Sample {
    let lsn = FieldFact { number: Some(Number::Int(i128::from(u64::MAX))), ..FieldFact::default() };
    let reason = FieldFact {
        number: Some(Number::Int(2)),
        text: Some(Cow::Borrowed("Shutdown")),
        ..FieldFact::default()
    };
    Sample {
        kind: 83,
        name: Some("CheckpointCycle"),
        fields: vec![("targetLsn", lsn), ("reason", reason)],
        ..Sample::default()
    }
}

#[track_caller]
fn holds(filter: &str, sample: &Sample) -> bool {
    match parse(filter) {
        Ok(parsed) => parsed.matches(sample),
        Err(err) => panic!("{filter}\n{}\n{err}", err.pointer()),
    }
}

#[test]
fn the_example_of_the_brief_parses() {
    parse("kind=BTree* dur>50us thread~Worker field.archetypeId=5").expect("valid");
}

#[test]
fn terms_select() {
    let record = insert();
    for filter in [
        "kind=BTree*",
        "kind=btreeinsert",
        "kind=40",
        "kind~^BTree",
        "kind!=Transaction*",
        "id=40",
        "id=40..43",
        "family=BTree*",
        "slot=2",
        "tick=28",
        "tick=20..29",
        "tick=..=28",
        "tick!=29..",
        "ts=1.5ms",
        "ts>1ms",
        "ts=1ms..2ms",
        "dur>=50us",
        "dur=50000",
        "thread=worker-*",
        "thread~\"Worker|Main\"",
        "site=17",
        "site=*sim.rs:76",
        "site~sim",
        "span=0x0200000000000001",
        "trace=4bf9*",
        "name~Insert",
        "insert",
        "\"TreeIns\"",
        "dur > 49us",
        "slot==2",
    ] {
        assert!(holds(filter, &record), "{filter}");
    }
    for filter in [
        "kind=Transaction*",
        "tick=20..28",
        "dur<50us",
        "dur!=50us",
        "thread~worker",
        "thread!=Worker-2",
        "commit",
        "trace=4b",
        "ts=..1.5ms",
    ] {
        assert!(!holds(filter, &record), "{filter}");
    }
}

#[test]
fn joining_terms() {
    let record = insert();
    assert!(holds("slot=2 tick=28", &record));
    assert!(!holds("slot=2 tick=29", &record));
    assert!(holds("slot=9 | tick=28", &record));
    assert!(holds("slot=9 tick=29 | insert", &record), "`and` binds tighter than `|`");
    assert!(!holds("slot=9 (tick=28 | insert)", &record));
    assert!(holds("!slot=9", &record));
    assert!(holds("!(slot=9 | tick=9) insert", &record));
    assert!(holds("!!insert", &record));
    assert!(holds("slot=2|slot=3", &record));
}

#[test]
fn what_a_record_lacks_matches_nothing_but_its_negation() {
    let instant = Sample { kind: 1, ..Sample::default() };
    for filter in
        ["dur>0", "dur<1s", "dur!=5us", "thread!=Main", "span!=1", "parent=0", "system!=Move", "site!=3"]
    {
        assert!(!holds(filter, &instant), "{filter}");
        assert!(holds(&format!("!{filter}"), &instant), "!{filter}");
    }
}

#[test]
fn systems_by_index_and_name() {
    let record =
        Sample { kind: 10, system: Some(SystemRef { index: 3, name: Some("Move") }), ..Sample::default() };
    assert!(holds("system=3", &record));
    assert!(holds("system=mo*", &record));
    assert!(holds("system<4", &record));
    assert!(!holds("system=\"3\"", &record), "a quoted number is a text");
}

#[test]
fn fields_by_number_name_and_presence() {
    let record = checkpoint();
    for filter in [
        "field.targetLsn=18446744073709551615",
        "field.targetLsn>18446744073709551614",
        "field.targetLsn=0xffffffffffffffff",
        "field.reason=2",
        "field.reason=Shutdown",
        "field.reason=shutdown",
        "field.reason!=Forced",
        "field.reason=*",
        "field.reason~^Shut",
        "field.targetLsn~615$",
    ] {
        assert!(holds(filter, &record), "{filter}");
    }
    assert!(!holds("field.reason=Forced", &record));
    assert!(!holds("field.tsn=*", &record), "the kind has no such field");
}

#[test]
fn field_times_compare_in_nanoseconds() {
    let wait = FieldFact {
        number: Some(Number::Int(1500)),
        nanoseconds: Some(Number::Int(1_500_000)),
        ..FieldFact::default()
    };
    let record = Sample { kind: 90, fields: vec![("elapsedUs", wait)], ..Sample::default() };
    assert!(holds("field.elapsedUs>1ms", &record));
    assert!(holds("field.elapsedUs=1500", &record));
    assert!(holds("field.elapsedUs=1ms..2ms", &record));
    assert!(!holds("field.elapsedUs>2ms", &record));
}

#[track_caller]
fn complaint(filter: &str) -> (usize, usize, String, Option<String>) {
    let err = parse(filter).expect_err(filter);
    (err.column, err.width, err.message.clone(), err.hint)
}

#[test]
fn errors_point_at_the_column() {
    for (filter, column, width, part) in [
        ("", 1, 1, "missing"),
        ("knd=1", 1, 3, "unknown key `knd`"),
        ("kind=", 6, 1, "value is missing"),
        ("slot=2 kind=BTreeInsrt", 13, 10, "nothing in the registry"),
        ("dur>50uss", 5, 5, "not a number"),
        ("tick=5ms", 6, 3, "not a time"),
        ("(slot=1", 1, 1, "never closed"),
        ("slot=1)", 7, 1, "does not belong"),
        ("slot=1 |", 9, 1, "missing"),
        ("name~(", 6, 1, "missing"),
        ("name~\"(\"", 6, 3, "unclosed group"),
        ("name>x", 1, 4, "cannot be ordered"),
        ("slot~2", 1, 4, "is a number"),
        ("field.tsm=1", 1, 9, "no kind has a field"),
        ("field.reason=Shutdwn", 14, 7, "no value of"),
        ("été knd=1", 5, 3, "unknown key"),
        ("\"open", 1, 1, "never closed"),
        ("tick=5..2", 6, 4, "holds nothing"),
        ("tick=5..x", 9, 1, "not a number"),
        ("tick>5..6", 6, 4, "goes with"),
        ("=5", 1, 1, "key is missing"),
        ("depth>5us", 7, 3, "not"),
        ("self~5", 1, 4, "is a number"),
        ("slot=1 and slot=2", 8, 3, "no operator"),
        ("field.tsn>5ms", 11, 3, "not a time"),
    ] {
        let (found_column, found_width, message, _) = complaint(filter);
        assert_eq!((found_column, found_width), (column, width), "{filter}: {message}");
        assert!(message.contains(part), "{filter}: {message}");
    }
}

#[test]
fn errors_suggest_the_nearest_name() {
    for (filter, near) in [
        ("tread=Main", "thread"),
        ("kind=BTreeInsrt", "BTreeInsert"),
        ("family=BTre", "BTree"),
        ("field.targetLns=1", "field.targetLsn"),
        ("field.reason=Shutdwn", "Shutdown"),
        ("filed.tsn=1", "field.tsn"),
        ("reason=2", "field.reason"),
    ] {
        let (_, _, message, hint) = complaint(filter);
        assert_eq!(hint, Some(format!("did you mean `{near}`?")), "{filter}: {message}");
    }
}

#[test]
fn pointer_lines_up_with_the_source() {
    let err = parse("slot=2 knd=1").expect_err("unknown key");
    assert_eq!(err.pointer(), "       ^^^");
}

#[test]
fn nesting_is_limited() {
    assert!(parse(&format!("{}slot=1{}", "(".repeat(64), ")".repeat(64))).is_ok());
    for deep in ["(".repeat(60_000), "!".repeat(60_000)] {
        assert!(parse(&deep).expect_err("too deep").message.contains("nesting"));
    }
}

#[test]
fn what_a_filter_may_hold_is_limited() {
    let many = |term: &str, count| vec![term; count].join(" | ");
    for (fits, too_much, message) in [
        (many("slot=1", 1_000), many("slot=1", 1_001), "comparisons"),
        (many("name~x", 32), many("name~x", 33), "regular expressions"),
        ("n".repeat(64 << 10), "é".repeat((32 << 10) + 1), "KiB"),
    ] {
        assert!(parse(&fits).is_ok(), "{message}");
        let refused = parse(&too_much).expect_err("too much");
        assert!(refused.message.contains(message) && refused.pointer().len() < 100_000, "{refused}");
    }
    // Each of them would take a mebibyte.
    assert!(parse(&many(r"name~\w{60}", 80_000)).is_err());
}

/// Filters that are valid by construction.
fn filters() -> impl Strategy<Value = String> {
    let term = prop_oneof![
        "[a-zA-Z]{4,8}x",
        "\"[ -~]{0,8}\"".prop_filter("quotes within", |text| {
            let inner = &text[1..text.len() - 1];
            !inner.contains('"') && !inner.ends_with('\\')
        }),
        (0..300u32).prop_map(|n| format!("slot={n}")),
        (0..300u32).prop_map(|n| format!("dur > {n}us")),
        (0..300u32, 1..9u32).prop_map(|(n, m)| format!("tick!={n}..{}", n + m)),
        Just("kind=BTree*".to_owned()),
        Just("thread~\"a|b c\"".to_owned()),
        Just("field.reason=Forced".to_owned()),
        Just("system=\"12\"".to_owned()),
    ];
    term.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} {b}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} | {b}")),
            inner.clone().prop_map(|a| format!("( {a} )")),
            inner.prop_map(|a| format!("!({a})")),
        ]
    })
}

proptest! {
    #[test]
    fn printing_and_parsing_again_gives_the_same_filter(text in filters()) {
        let once = parse(&text).expect(&text);
        let printed = once.to_string();
        let twice = parse(&printed).expect(&printed);
        prop_assert_eq!(&once, &twice, "{} printed as {}", text, &printed);
        prop_assert_eq!(printed, twice.to_string());
    }

    #[test]
    fn any_text_parses_or_complains_inside_itself(text in "[ -~é]{0,40}") {
        if let Err(err) = parse(&text) {
            prop_assert!(err.column >= 1 && err.column <= text.chars().count() + 1);
            prop_assert!(err.width >= 1);
        }
    }

    #[test]
    fn negation_is_exact(text in filters()) {
        let plain = parse(&text).expect(&text);
        let negated = parse(&format!("!({text})")).expect(&text);
        for record in [insert(), checkpoint(), Sample::default()] {
            prop_assert_ne!(plain.matches(&record), negated.matches(&record));
        }
    }
}
