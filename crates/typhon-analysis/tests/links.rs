//! Links between events (brief 11 B-20), against records that are looked for by filters.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use typhon_analysis::index::EventId;
use typhon_analysis::session::{
    Cancel, Direction, EventDetail, FieldValue, LinkReason, Session, SessionOptions, State,
};
use typhon_trace::header::FileHeader;
use typhon_trace::registry::id;
use typhon_trace::tables::{System, Tables};
use typhon_trace::writer::{CloseInfo, TraceWriter, WriterOptions};

fn open(name: &str) -> Session {
    open_at(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(name))
}

fn open_at(path: &Path) -> Session {
    let session = Session::open(path, SessionOptions::default()).expect("opens");
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

fn instant(kind: u8, at: i64, payload: &[u16]) -> Vec<u8> {
    let mut bytes = vec![12 + 2 * payload.len() as u8, 0, kind, 0];
    bytes.extend_from_slice(&at.to_le_bytes());
    bytes.extend(payload.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

fn chunk(system: u16, start: i64, duration: i64) -> Vec<u8> {
    let mut bytes = vec![47, 0, id::SCHEDULER_CHUNK, 0];
    bytes.extend_from_slice(&start.to_le_bytes());
    bytes.extend_from_slice(&duration.to_le_bytes());
    bytes.extend_from_slice(&(start as u64).to_le_bytes());
    bytes.extend_from_slice(&[0; 9]);
    bytes.extend([system, 0, 1, 0, 0].iter().flat_map(|value: &u16| value.to_le_bytes()));
    bytes
}

/// A tick in which every system waits for the one before it, the first one for the last, and one for itself.
fn record_cycle(path: &Path, systems: u16) {
    let named = |index: u16| System {
        index,
        name: format!("System{index}"),
        predecessors: vec![(index + systems - 1) % systems],
        successors: vec![(index + 1) % systems],
        ..System::default()
    };
    let tables = Tables { systems: (0..systems).map(named).collect(), ..Tables::default() };
    let mut records = vec![instant(id::TICK_START, 1_000, &[])];
    for system in 0..systems {
        let at = 2_000 + 1_000 * i64::from(system);
        records.push(chunk(system, at, 500));
        // Told twice, as no scheduler does.
        for from in [(system + systems - 1) % systems, (system + systems - 1) % systems] {
            records.push(instant(id::SCHEDULER_DEPENDENCY_READY, at, &[from, system, 1, 0]));
        }
        records.push(instant(id::SYSTEM_READY, at, &[system, 1]));
    }
    records.push(instant(id::SCHEDULER_DEPENDENCY_READY, 2_000, &[0, 0, 1, 0]));
    let header = FileHeader::new(639_028_224_000_000_000);
    let mut writer = TraceWriter::create(Cursor::new(Vec::new()), header, &tables, WriterOptions::new(250))
        .expect("created");
    writer.write_records(&records.concat()).expect("written");
    assert_eq!(writer.close(&CloseInfo::default()).problems.len(), 0);
    std::fs::write(path, writer.into_inner().into_inner()).expect("written");
}

#[test]
fn b20_links_that_lead_in_a_circle_are_a_step_each_and_come_back() {
    let folder = tempfile::tempdir().expect("made");
    for systems in [1, 2, 3, 40] {
        let path = folder.path().join(format!("{systems}.typhon-trace"));
        record_cycle(&path, systems);
        let session = open_at(&path);
        let chunks = matching(&session, "kind=SchedulerChunk");
        assert_eq!(chunks.len(), usize::from(systems));
        for (at, chunk) in chunks.iter().enumerate() {
            let all = links(&session, chunk.id);
            assert!((0..all.len()).all(|at| !all[..at].contains(&all[at])), "each once: {all:?}");
            // One step and no more: its own ends only.
            assert!(all.iter().all(|(_, from, to)| *from == chunk.id || *to == chunk.id), "{all:?}");
            let before = chunks[(at + chunks.len() - 1) % chunks.len()].id;
            assert!(all.contains(&(LinkReason::Dependency, before, chunk.id)), "{at} of {systems}: {all:?}");
        }
        // Whoever follows them passes every system once and is back where he began.
        let mut here = chunks[0].id;
        let mut seen = BTreeSet::new();
        while seen.insert(here) {
            let next = links(&session, here).into_iter().find(|(reason, from, to)| {
                *reason == LinkReason::Dependency && *from == here && (*to != here || systems == 1)
            });
            here = next.expect("there is a successor").2;
        }
        assert_eq!((here, seen.len()), (chunks[0].id, chunks.len()));
    }
}

#[test]
fn links_of_an_event_that_is_not_there_are_an_error() {
    let session = open("guide-shard.typhon-trace");
    assert!(session.links(EventId { block: 99_999, record: 0 }, &Cancel::new()).is_err());
}
