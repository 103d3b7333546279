//! Links between events (brief 11 B-20), against records that are looked for by filters.

use std::path::PathBuf;
use typhon_analysis::index::EventId;
use typhon_analysis::session::{
    Cancel, Direction, EventDetail, FieldValue, LinkReason, Session, SessionOptions, State,
};

fn open(name: &str) -> Session {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(name);
    let session = Session::open(&path, SessionOptions::default()).expect("opens");
    assert_eq!(session.wait(), State::Ready);
    session
}

/// The events that a filter finds, in order of time.
fn matching(session: &Session, text: &str) -> Vec<EventDetail> {
    let info = session.add_filter(text, &Cancel::new(), |_| {}).expect("parses");
    let found = session.matches(info.id, None, Direction::Forward, info.matches as usize).expect("ready");
    session.remove_filter(info.id);
    found.iter().map(|hit| session.event(hit.id).expect("there")).collect()
}

fn field(of: &EventDetail, name: &str) -> i64 {
    match of.fields.iter().find(|field| field.name == name).and_then(|field| field.value.as_ref()) {
        Some(FieldValue::Unsigned(value)) => *value as i64,
        Some(FieldValue::Signed(value)) => *value,
        other => panic!("{name} is {other:?}"),
    }
}

fn links(session: &Session, event: EventId) -> Vec<(LinkReason, EventId, EventId)> {
    let found = session.links(event, &Cancel::new()).expect("ready");
    assert!(!found.is_cut);
    found.links.iter().map(|link| (link.reason, link.from.id, link.to.id)).collect()
}

fn end(of: &EventDetail) -> i64 {
    of.start_ns as i64 + of.duration_ns.unwrap_or(0)
}

#[test]
fn b20_a_chunk_is_linked_with_what_made_its_system_ready_and_what_it_made_ready() {
    let session = open("anthill.typhon-trace");
    let chunks = matching(&session, "kind=SchedulerChunk");
    let of = |system: i64, tick: i64| {
        chunks.iter().filter(move |chunk| chunk.tick == tick && field(chunk, "systemIdx") == system)
    };
    let first = |system, tick| of(system, tick).min_by_key(|chunk| chunk.start_ns);
    let last = |system, tick| of(system, tick).max_by_key(|chunk| end(chunk));
    let (mut dependencies, mut ready) = (0, 0);
    for record in
        matching(&session, "kind=SchedulerDependencyReady tick=9|kind=SchedulerDependencyReady tick=37")
    {
        let (from, to) = (field(&record, "fromSysIdx"), field(&record, "toSysIdx"));
        let (Some(before), Some(after)) = (last(from, record.tick), first(to, record.tick)) else { continue };
        let link = (LinkReason::Dependency, before.id, after.id);
        // Seen from every chunk of either system.
        for chunk in of(from, record.tick).chain(of(to, record.tick)) {
            assert!(links(&session, chunk.id).contains(&link), "{link:?}");
        }
        dependencies += 1;
    }
    for record in matching(&session, "kind=SystemReady tick=9") {
        let Some(after) = first(field(&record, "systemIdx"), record.tick) else { continue };
        let link = (LinkReason::Ready, record.id, after.id);
        assert!(links(&session, after.id).contains(&link));
        assert!(links(&session, record.id).contains(&link));
        ready += 1;
    }
    assert!(dependencies > 10 && ready > 5, "{dependencies} {ready}");
    // Where the dependency is recorded nothing is guessed from the tables.
    let guessed = |chunk: &EventDetail| {
        let all = links(&session, chunk.id);
        let is = |reason| all.iter().any(|(of, _, to)| *of == reason && *to == chunk.id);
        assert!(!(is(LinkReason::Schedule) && is(LinkReason::Dependency)));
        is(LinkReason::Schedule)
    };
    let in_tick_9 = chunks.iter().filter(|chunk| chunk.tick == 9);
    let tables = &session.trace().tables().systems;
    for chunk in in_tick_9.filter(|chunk| guessed(chunk)) {
        let system =
            tables.iter().find(|one| i64::from(one.index) == field(chunk, "systemIdx")).expect("listed");
        let before = system.predecessors.iter().filter_map(|one| last(i64::from(*one), 9));
        let latest = before.filter(|one| end(one) <= chunk.start_ns as i64).max_by_key(|one| end(one));
        let latest = latest.expect("a system before it ran").id;
        assert!(links(&session, chunk.id).contains(&(LinkReason::Schedule, latest, chunk.id)));
    }
}

#[test]
fn b20_a_wait_for_the_log_is_linked_with_the_flush_that_ended_it() {
    let session = open("guide-shard.typhon-trace");
    let flushes = matching(&session, "kind=WalFlush");
    let waits = matching(&session, "kind=WalWait");
    assert!(!waits.is_empty());
    for wait in waits {
        let target = field(&wait, "targetLsn");
        let flush = flushes.iter().find(|flush| field(flush, "highLsn") >= target).expect("flushed");
        let link = (LinkReason::Durability, flush.id, wait.id);
        assert_eq!(links(&session, wait.id), [link]);
        assert!(links(&session, flush.id).contains(&link));
    }
    let other = matching(&session, "kind=TransactionCommit");
    assert_eq!(links(&session, other[0].id), []);
}

#[test]
fn b20_a_kick_off_is_linked_with_its_completion() {
    let session = open("anthill.typhon-trace");
    let started = matching(&session, "kind=PageCacheDiskWrite|kind=PageCacheFlush|kind=PageCacheDiskRead");
    let completed = matching(
        &session,
        "kind=PageCacheDiskWriteCompleted|kind=PageCacheFlushCompleted|kind=PageCacheDiskReadCompleted",
    );
    assert!(!completed.is_empty());
    for completion in &completed {
        let start = started.iter().find(|start| start.span_id == completion.span_id).expect("was started");
        let link = (LinkReason::Completion, start.id, completion.id);
        assert_eq!(links(&session, completion.id), [link]);
        assert_eq!(links(&session, start.id), [link]);
    }
    let is_complete = |start: &&EventDetail| completed.iter().any(|one| one.span_id == start.span_id);
    let open = started.iter().find(|start| !is_complete(start)).expect("one that was never complete");
    assert_eq!(links(&session, open.id), []);
}

#[test]
fn links_of_an_event_that_is_not_there_are_an_error() {
    let session = open("guide-shard.typhon-trace");
    assert!(session.links(EventId { block: 99_999, record: 0 }, &Cancel::new()).is_err());
}
