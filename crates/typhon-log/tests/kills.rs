//! Processes that are killed while they append: what they had been told is durable is there for the next one.
//!
//! `TYPHON_TEST_KILLS=200 cargo test -p typhon-log --test kills` kills as often as told. A machine that goes on running
//! keeps the cache of its disk, so this says nothing of power cuts; the simulated disk does.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use typhon_log::{Draft, LogError, Lsn, Opening, Options, Store, SyncMode};
use typhon_store::PoolIo;
use typhon_store::sim::Random;
use typhon_sync::Deadline;

const DIRECTORY: &str = "TYPHON_TEST_LOG";
const THREADS: usize = 3;
const KILLS: u64 = 12;

/// What a child says of an append: thread, number in that thread, position, sequence number.
type Acknowledged = (usize, u64, u64, u64);

/// Position and sequence number of each append, by thread and number.
type Places = BTreeMap<(usize, u64), (u64, u64)>;

fn options(round: u64) -> Options {
    Options {
        segment_bytes: 64 << 10,
        spare_segments: 1,
        writer_thread: round.is_multiple_of(2),
        sync: if round.is_multiple_of(3) { SyncMode::WriteThrough } else { SyncMode::Flush },
        direct: round.is_multiple_of(5),
        ..Options::small()
    }
}

fn open(directory: &Path, round: u64) -> Opening {
    let nothing = encode(&[0; THREADS]);
    loop {
        match Store::open(Arc::new(PoolIo::new()), directory, options(round), &nothing) {
            Ok(opening) => return opening,
            // The lock of a process that was killed is released when the system has cleaned up after it.
            Err(LogError::Locked { .. }) => std::thread::yield_now(),
            Err(error) => panic!("round {round}: {error}"),
        }
    }
}

/// The highest number of each thread, as the state of the anchor.
fn encode(highest: &[u64; THREADS]) -> Vec<u8> {
    highest.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A body that shows whether it is whole: thread, number, and as many bytes of both as they say.
fn body(thread: usize, number: u64) -> Vec<u8> {
    let length = (number * 131 + thread as u64 * 17) % 2_500;
    let mut body = [thread as u64, number].map(u64::to_le_bytes).concat();
    body.extend((0..length).map(|index| (number ^ index) as u8));
    body
}

/// What is recovered: the state, every frame behind it in the order of its thread, and the highest of all numbers.
fn recovered(opening: &Opening) -> ([u64; THREADS], Places) {
    let mut state = [0; THREADS];
    for (number, bytes) in state.iter_mut().zip(opening.state().chunks_exact(8)) {
        *number = u64::from_le_bytes(bytes.try_into().unwrap());
    }
    let mut highest = state;
    let mut found = Places::new();
    let mut frames = opening.frames();
    let mut last_tsn = 0;
    while let Some(frame) = frames.next_frame().unwrap() {
        let word = |at: usize| u64::from_le_bytes(frame.body[at..at + 8].try_into().unwrap());
        let (thread, number) = (word(0) as usize, word(8));
        assert_eq!(number, highest[thread] + 1, "a hole in what thread {thread} appended");
        assert_eq!(frame.body, body(thread, number));
        assert!(frame.header.seq > last_tsn, "sequence numbers are out of order");
        last_tsn = frame.header.seq;
        highest[thread] = number;
        found.insert((thread, number), (frame.lsn.0, frame.header.seq));
    }
    (highest, found)
}

/// The child: appends from several threads and says what is durable, until it is killed.
#[test]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let round = std::env::var("TYPHON_TEST_ROUND").unwrap().parse().unwrap();
    let opening = open(&directory, round);
    let (highest, _) = recovered(&opening);
    let log = opening.start(&encode(&highest)).unwrap();
    // The numbers that were appended; held while appending, so that a checkpoint knows what is before it.
    let appended = Mutex::new(highest);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (log, appended) = (&log, &appended);
            scope.spawn(move || append(log, appended, thread));
        }
    });
}

fn append(log: &Store, appended: &Mutex<[u64; THREADS]>, thread: usize) {
    loop {
        let mut numbers = appended.lock().unwrap();
        let number = numbers[thread] + 1;
        let body = body(thread, number);
        let put = log.append(&Draft::commit(&body), Deadline::INFINITE).unwrap();
        numbers[thread] = number;
        if thread == 0 && number.is_multiple_of(20) {
            log.wait_durable(put.lsn, Deadline::INFINITE).unwrap();
            log.checkpoint(put.lsn, &encode(&numbers)).unwrap();
        }
        drop(numbers);
        log.wait_durable(put.lsn, Deadline::INFINITE).unwrap();
        let line = format!("{thread} {number} {} {}\n", put.lsn.0, put.tsn.unwrap().0);
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
}

/// Runs a child for a while after its first append, or for a while at all, and kills it.
fn kill_one(directory: &Path, round: u64, random: &mut Random) -> Vec<Acknowledged> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(DIRECTORY, directory)
        .env("TYPHON_TEST_ROUND", round.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut acknowledged = Vec::new();
    // One in four is killed while it opens; the others have appended something.
    if !round.is_multiple_of(4) {
        acknowledged.push(parse(&lines.next().unwrap().unwrap()));
    }
    std::thread::sleep(Duration::from_micros(random.below(30_000)));
    child.kill().unwrap();
    acknowledged.extend(lines.map(|line| parse(&line.unwrap())));
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "{status}");
    acknowledged
}

fn parse(line: &str) -> Acknowledged {
    let numbers: Vec<u64> =
        line.split(' ').map(|number| number.parse().unwrap_or_else(|_| panic!("{line}"))).collect();
    (numbers[0] as usize, numbers[1], numbers[2], numbers[3])
}

#[test]
fn what_a_killed_process_was_told_is_durable_is_there() {
    let kills = std::env::var("TYPHON_TEST_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("log");
    let mut random = Random::new(kills);
    let (mut acknowledgements, mut last) = (0, (Lsn::START.0, 0));
    for round in 0..kills {
        let acknowledged = kill_one(&directory, round, &mut random);
        if !directory.join("anchor").exists() {
            assert!(acknowledged.is_empty());
            continue;
        }
        let opening = open(&directory, round);
        let (highest, found) = recovered(&opening);
        for (thread, number, lsn, tsn) in &acknowledged {
            assert!(*number <= highest[*thread], "round {round}: thread {thread} lost {number}");
            if let Some(place) = found.get(&(*thread, *number)) {
                assert_eq!(place, &(*lsn, *tsn), "round {round}: {thread} {number}");
            }
            assert!(*lsn > last.0 && *tsn > last.1, "round {round}: numbers issued before, {last:?}");
        }
        let numbers = acknowledged.iter().map(|(.., lsn, tsn)| (*lsn, *tsn)).chain(found.values().copied());
        last = numbers.fold(last, |last, (lsn, tsn)| (last.0.max(lsn), last.1.max(tsn)));
        acknowledgements += acknowledged.len();
        // Half of the time somebody else opens it in between, and closes it.
        if random.chance(500_000) {
            drop(opening.start(&encode(&highest)).unwrap());
        }
    }
    println!("{kills} kills, {acknowledgements} appends acknowledged");
    assert!(acknowledgements as u64 >= kills / 2, "{acknowledgements}");
}
